"""Weights of a module there and back: ghp trains it at rate 0, and what the checkpoint holds is the module's own.

    way_back.py     exits 1 where a tensor or a loss is another

The tools are in GHP_BIN. Matrices are square where a transposed one would be taken without an error.
"""
import json
import os
import subprocess
import sys

import numpy
import torch
from safetensors.torch import load_file, save_file
from torch import nn

BIN = os.environ.get("GHP_BIN", "build/bin")
MODE = torch.onnx.TrainingMode.TRAINING


class Product(nn.Module):
    """x @ weight, as Conv1D of transformers has it, with a bias or without."""

    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.4)
        self.bias = nn.Parameter(torch.randn(outputs)) if bias else None

    def forward(self, x):
        if self.bias is None:
            return x @ self.weight
        return torch.addmm(self.bias, x, self.weight)


class Named(nn.Module):
    """Parameters that are called neither weight nor bias."""

    def __init__(self, size):
        super().__init__()
        self.left, self.right = nn.Parameter(torch.randn(size, size) * 0.4), nn.Parameter(torch.randn(size, size) * 0.4)
        self.gain, self.shift = nn.Parameter(torch.rand(size, 1, 1) + 0.5), nn.Parameter(torch.randn(size, 1, 1))

    def forward(self, x):
        x = nn.functional.linear(torch.tanh(x @ self.left), self.right)
        return (x[:, :, None, None] * self.gain + self.shift).flatten(1)


class Attention(nn.Module):
    """Its in_proj_weight is three layers' in ghp."""

    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0][:, 0]


def network(inputs, outputs, bias):
    if isinstance(inputs, tuple):
        return nn.Sequential(Attention(outputs), nn.Linear(outputs, 4))
    if bias is None:
        return nn.Sequential(Named(inputs), nn.ReLU(), nn.Linear(outputs, 4))
    return nn.Sequential(Product(inputs, outputs, bias), nn.ReLU(), nn.Linear(outputs, 4))


CASES = {"square": (16, 16, False), "square with a bias": (16, 16, True), "wide": (16, 24, False), "to one": (16, 1, True),
         "named": (16, 16, None), "attention": ((6, 16), 16, True)}


def tool(name, *arguments):
    done = subprocess.run([os.path.join(BIN, name), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, "%s: %s" % (name, done.stderr)


def train(network_file, *options):
    """Two steps at rate 0: the losses, and the checkpoint's tensors."""
    tool("ghp-profile", "--analytic", "F=1e11,bandwidth=1e9,latency=1e-5", "--model", network_file, "-o", "profile")
    tool("ghp-plan", network_file, "--profile", "profile", "--workers", 1, "--batch", 32, "--no-break-even", "-o", "plan")
    tool("ghp-run", "plan", "--data", "npy:data", "--steps", 2, "--lr", 0, "--momentum", 0.9, "--eval", "off",
         "--normalise", "none", "--precision", "double", "--backend", "reference", "--run", "run.json",
         "--checkpoint", "trained", "--overwrite", *options)
    with open("run.json") as run:
        return json.load(run)["losses"], load_file("trained/checkpoint.safetensors")


def find(trained, name, like):
    """A tensor under its name, with .weight or .bias at its end, or in parts (docs/how-to/weights-back.md)."""
    for key in (name, name + ".weight", name + ".bias"):
        if key in trained:
            return trained[key].reshape(like.shape)
    base, _, kind = name.rpartition(".")
    if kind.startswith("in_proj_"):
        base, kind = base + ".in_proj_weight", kind[len("in_proj_"):]
    parts = ["%s.%s.%s" % (base, part, kind) for part in "qkv"]
    if all(part in trained for part in parts):
        return torch.cat([trained[part] for part in parts])
    return torch.full_like(like, float("nan"))


def check(name, sizes, dynamo):
    torch.manual_seed(1)
    net = network(*sizes).train()
    inputs = sizes[0] if isinstance(sizes[0], tuple) else (sizes[0],)
    x, labels = torch.randn(32, *inputs), torch.randint(0, 4, (32,))
    numpy.save("data/images.npy", x.numpy())
    numpy.save("data/labels.npy", labels.numpy())
    options = {"dynamo": True, "optimize": False, "verbose": False} if dynamo else \
        {"dynamo": False, "training": MODE, "do_constant_folding": False}
    torch.onnx.export(net, (x,), "net.onnx", **options)
    state = {key: value.double() for key, value in net.state_dict().items()}
    net = net.double()
    loss = nn.functional.cross_entropy(net(x.double()), labels)
    loss.backward()
    losses, trained = train("net.onnx")
    wrong = [key for key, value in state.items() if not torch.equal(find(trained, key, value), value)]
    moments = {key: parameter.grad * 1.9 for key, parameter in net.named_parameters()} # of two steps
    wrong += ["moment of " + key for key, value in moments.items()
              if not torch.allclose(find(trained, "momentum." + key, value), value)]
    close = [abs(losses[0] - loss.item()) < 1e-9]
    save_file({key: value.contiguous() for key, value in state.items()}, "state.safetensors")
    own = [] if name in ("named", "attention") else [["--init", "state.safetensors"]]
    for options in own + [["--init", "again.safetensors"]]:
        os.replace("trained/checkpoint.safetensors", "again.safetensors")
        close.append(train("net.onnx", *options)[0] == losses)
    tool("ghp-inspect", "plan", "--export-onnx", "out.onnx", "--weights", "trained/checkpoint.safetensors")
    exported, again = train("out.onnx")
    close.append(abs(exported[0] - losses[0]) < 1e-9)
    wrong += ["exported " + key for key, value in state.items() if not torch.equal(find(again, key, value), value)]
    print("%-20s dynamo %d: other tensors %s; losses agree %s" % (name, dynamo, wrong, close))
    return not wrong and all(close)


os.makedirs("data", exist_ok=True)
CHOSEN = [(name, dynamo) for name in CASES for dynamo in (True, False)]
if os.environ.get("GHP_TEST_FULL") != "1":
    CHOSEN = [("square", True), ("square with a bias", False), ("named", True), ("attention", True)]
GOOD = [check(name, CASES[name], dynamo) for name, dynamo in CHOSEN]
sys.exit(0 if all(GOOD) else 1)
