"""What of a PyTorch module ghp trains: modules with buffers, constants, frozen and single parameters, step by step
compared with PyTorch in double, as both exporters write them; and those that it refuses, and what it says.

    parameters.py     exits 1 where losses differ by more than 1e-6 of them, or a message is another

The tools are in GHP_BIN. Values go through the file as floats, of which a constant divided by keeps 6e-8.
"""
import json
import os
import subprocess
import sys

import numpy
import onnx
import torch
from torch import nn

STEPS, BATCH, LIMIT = 12, 16, 1e-6
LEFT_OUT = "pool", "no_grad", "detach" # an exporter leaves something out of the file, and ghp says so
BIN = os.environ.get("GHP_BIN", "build/bin")
MODE = torch.onnx.TrainingMode.TRAINING


class Net(nn.Module):
    """A convolution, something between, and a linear layer."""

    def __init__(self, between, **tensors):
        super().__init__()
        self.conv, self.out, self.between = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8 * 36, 4), between
        for name, tensor in tensors.items():
            if isinstance(tensor, (nn.Parameter, nn.Module)):
                setattr(self, name, tensor)
            else:
                self.register_buffer(name, tensor)

    def forward(self, x):
        return self.out(torch.relu(self.between(self, self.conv(x))).flatten(1))


def parameter(*shape, value=0.5):
    return nn.Parameter(torch.full(shape, value))


def without_gradient(s, x):
    with torch.no_grad():
        y = torch.relu(nn.functional.conv2d(x, s.w))
    return x + y


class Normalised(Net):
    """Its input is normalised where no gradient is lost."""

    def forward(self, x):
        with torch.no_grad():
            x = (x - self.mean) / 2
        return super().forward(x)


def frozen(net):
    net.conv.requires_grad_(False)
    return net


# name: (the module, part of what ghp says by exporter: of a refusal "!", of a warning, or "" for nothing)
UNSAID = "ghp trains all parameters, since" # of files without a list
UNSURE, COMPUTED = "does not say whether", "!computes from the parameter"
REFUSED = "!" + UNSURE
CASES = {
    "mean": (lambda: Net(lambda s, x: x - s.mean.view(8, 1, 1), mean=torch.arange(8.0)), "", UNSURE),
    "blur": (lambda: Net(lambda s, x: nn.functional.conv2d(x, s.kernel, padding=1, groups=8),
                         kernel=torch.full((8, 1, 3, 3), 1 / 8)), "", UNSURE),
    "constant": (lambda: Net(lambda s, x: x * torch.arange(1.0, 9).to(x.dtype).view(8, 1, 1)), "", ""),
    "temperature": (lambda: Net(lambda s, x: x * s.t, t=parameter(1)), "", UNSURE),
    "rezero": (lambda: Net(lambda s, x: x + s.t * torch.tanh(x), t=parameter(1, value=0.0)), "", UNSURE),
    "shift": (lambda: Net(lambda s, x: x + s.t, t=parameter(1)), "", UNSURE),
    "divisor": (lambda: Net(lambda s, x: x / s.t, t=parameter(1)), "", REFUSED),
    "scaled": (lambda: Net(lambda s, x: nn.functional.conv2d(x, s.w * 0.3), w=parameter(8, 8, 1, 1)), COMPUTED, REFUSED),
    "divisors": (lambda: Net(lambda s, x: x / s.t.view(8, 1, 1), t=parameter(8)), "", REFUSED),
    "less": (lambda: Net(lambda s, x: x - s.t.view(8, 1, 1), t=parameter(8)), "", UNSURE),
    "pool": (lambda: Net(lambda s, x: nn.functional.avg_pool2d(x, 3, 1, 1, divisor_override=5)),
             "!has a divisor_override", ""),
    "no_grad": (lambda: Net(without_gradient, w=parameter(8, 8, 1, 1)), "runs without gradients", UNSURE),
    "detach": (lambda: Net(lambda s, x: x + torch.tanh(x.detach())), "is a detach() of the module", ""),
    "no_grad input": (lambda: Normalised(lambda s, x: x, mean=torch.full((3, 1, 1), 0.5)), "", UNSURE),
    "momentum": (lambda: Net(lambda s, x: s.n(x), n=nn.BatchNorm2d(8, momentum=None)), None, "as momentum=None"),
    "logit scale": (lambda: Net(lambda s, x: x * s.t.exp(), t=parameter(1)), "", REFUSED),
    "power": (lambda: Net(lambda s, x: torch.relu(x) ** s.t, t=parameter(1)), "!computes with the parameter 't'", REFUSED),
}


def export(net, dynamo, listed):
    x = torch.zeros(BATCH, 3, 6, 6)
    if dynamo:
        program = torch.onnx.export(net, (x,), dynamo=True, optimize=False, verbose=False)
        model = program.model_proto
    else:
        torch.onnx.export(net, (x,), "net.onnx", dynamo=False, training=MODE, do_constant_folding=False)
        model = onnx.load("net.onnx")
    if listed:
        names = [name for name, p in net.named_parameters(remove_duplicate=False) if p.requires_grad]
        onnx.helper.set_model_props(model, {"ghp.parameters": json.dumps(names)})
    onnx.save(model, "net.onnx")


def tool(name, *arguments):
    return subprocess.run([os.path.join(BIN, name), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)


def must(name, *arguments):
    done = tool(name, *arguments)
    assert done.returncode == 0, "%s: %s" % (name, done.stderr)


def ours(rate):
    must("ghp-profile", "--analytic", "F=1e11,bandwidth=1e9,latency=1e-5", "--model", "net.onnx", "-o", "profile")
    must("ghp-plan", "net.onnx", "--profile", "profile", "--workers", 1, "--batch", BATCH, "--no-break-even", "-o", "plan")
    must("ghp-run", "plan", "--data", "npy:data", "--steps", STEPS, "--lr", rate, "--momentum", 0.9, "--weight-decay", 1e-2,
         "--eval", "off", "--normalise", "none", "--precision", "double", "--backend", "reference", "--run", "run.json")
    with open("run.json") as run:
        return json.load(run)["losses"]


def theirs(net, x, labels, rate):
    net, losses = net.double(), []
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=rate, momentum=0.9, weight_decay=1e-2)
    for _ in range(STEPS):
        loss = nn.functional.cross_entropy(net(x.double()), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check(name, make, dynamo, listed, said):
    torch.manual_seed(3)
    net = make().train()
    export(net, dynamo, listed)
    done = tool("ghp-inspect", "net.onnx")
    good = done.returncode == (1 if said.startswith("!") else 0)
    lines = [line for line in done.stderr.splitlines() if UNSAID not in line]
    good = good and (said.lstrip("!") in done.stderr if said else not lines)
    good = good and (done.returncode != 0 or listed == (UNSAID not in done.stderr))
    off = 0.0
    if done.returncode == 0 and (listed or dynamo or said == "") and name not in LEFT_OUT:
        a, b = ours(0.05), theirs(net, *SAMPLES, 0.05)
        off = max(abs(p - q) / abs(q) for p, q in zip(a, b))
        good = good and off <= LIMIT and abs(b[-1] - b[0]) > 100 * LIMIT
    print("%-12s dynamo %d listed %d: %s, %.1e%s" % (name, dynamo, listed, "good" if good else "BAD", off,
                                                     "" if good else ": " + done.stderr))
    return good


def check_folded():
    """The default call loses batch norms: a network that was never trained has biases of zeros."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    torch.onnx.export(net.train(), (torch.zeros(2, 3, 6, 6),), dynamo=True, verbose=False).save("folded.onnx")
    refused, taken = tool("ghp-inspect", "folded.onnx"), tool("ghp-inspect", "folded.onnx", "--folded-batch-norm")
    return (refused.returncode == 1 and "folded batch norms into 1 node," in refused.stderr and
            "optimize=False" in refused.stderr and taken.returncode == 0)


draw = torch.Generator().manual_seed(1)
SAMPLES = torch.randn(BATCH, 3, 6, 6, generator=draw), torch.randint(0, 4, (BATCH,), generator=draw)
os.makedirs("data", exist_ok=True)
numpy.save("data/images.npy", SAMPLES[0].numpy())
numpy.save("data/labels.npy", SAMPLES[1].numpy())
GOOD = [check(name, make, dynamo == 1, False, said[1 - dynamo])
        for name, (make, *said) in CASES.items() for dynamo in (1, 0) if said[1 - dynamo] is not None]
GOOD += [check(name, CASES[name][0], dynamo, True, "") for name in ("mean", "blur", "rezero") for dynamo in (True, False)]
GOOD += [check("frozen", lambda: frozen(Net(lambda s, x: x)), dynamo, True, "") for dynamo in (True, False)]
GOOD.append(check_folded())
sys.exit(0 if all(GOOD) else 1)
