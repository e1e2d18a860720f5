"""Networks of torchvision as PyTorch's exporters write them, read and trained by ghp.

    exporters.py CASE...     NETWORK.EXPORTER.OPSET[.BITS]: EXPORTER is traced (dynamo=False) or dynamo, BITS 32, 64 or
                             both; one line each of the table in docs/results/exactness.md. Exits 1 where a gradient is
                             further off than LIMITS, or a network is refused.
    exporters.py read CASE...    whether they are read alone
    exporters.py survey          the same of all of NETWORKS and modules.py by both exporters, and how many are read

The tools are in GHP_BIN. Weights and biases of all
modules are drawn, norms' around one and zero. Samples are noise in NumPy arrays. The gradients are the momentum that
SGD keeps after one step.

A network is exported as torchvision makes it. Masks of two programs differ, so its layers, dropouts with their shares
among them, are what is compared; gradients are those of the same network without dropout.
"""
import contextlib
import copy
import io
import json
import os
import subprocess
import sys
import warnings

import numpy
import torch
import torchvision

import modules

sys.path.insert(0, os.path.join(sys.path[0], "..", "learn"))
from torch_weights import find, read_tensors

LIMITS = {32: 2e-5, 64: 1e-10}
# pixels, samples: of as many as the network takes, and as make norms and the first kernels sound
SIZES = {"alexnet": (224, 2), "vgg11": (224, 1), "vgg16": (224, 1), "vgg11_bn": (224, 2), "inception_v3": (80, 4),
         "maxvit_t": (224, 2)}
USUAL = (64, 4)
MORE = {"googlenet": {"aux_logits": False, "init_weights": False},
        "inception_v3": {"aux_logits": False, "init_weights": False}}
# of torchvision, one of each family
NETWORKS = ["alexnet", "vgg11_bn", "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "densenet121",
            "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "squeezenet1_1", "shufflenet_v2_x1_0",
            "efficientnet_b0", "efficientnet_v2_s", "mnasnet0_5", "regnet_x_400mf", "regnet_y_400mf", "convnext_tiny",
            "swin_t", "swin_v2_t", "maxvit_t", "googlenet", "inception_v3", "fcn_resnet50",
            "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]
SURVEYED = [("traced", 17), ("dynamo", 20)]
BIN = os.environ.get("GHP_BIN", "build/bin")


class Out(torch.nn.Module):
    """A segmentation network of torchvision, whose outputs are in a dictionary."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of(x)["out"]


def segments(network):
    return network in torchvision.models.list_models(torchvision.models.segmentation)


def make(network):
    torch.manual_seed(5)
    if network in modules.MODULES:
        net = modules.MODULES[network][0]().train()
    else:
        more = {"weights_backbone": None, "num_classes": 5} if segments(network) else MORE.get(network, {})
        net = torchvision.models.get_model(network, weights=None, **more).train()
        net = Out(net) if segments(network) else net
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter += 0.05 * torch.randn_like(parameter)
    return net


def dropouts(net, shape):
    """The modules that drop something in a forward pass, each with its share's name: torchvision makes some that it never
    calls."""
    twin, called = copy.deepcopy(net), set()
    for module in twin.modules():
        module.register_forward_hook(lambda module, *_: called.add(module))
    with torch.no_grad():
        twin(torch.zeros(2, *shape))
    kinds = ((torch.nn.modules.dropout._DropoutNd, "p"), (torchvision.ops.StochasticDepth, "p"),
             (torch.nn.MultiheadAttention, "dropout"))
    return [(mine, name) for mine, other in zip(net.modules(), twin.modules()) if other in called
            for kind, name in kinds if isinstance(mine, kind) and getattr(mine, name) > 0]


def share_of(layer):
    """What a layer drops: a dropout, or an attention of its weights."""
    drops = layer["op"] == "dropout" or layer["op"] == "attention" and layer["window"].startswith("dropout ")
    return float(layer["window"].split()[-1]) if drops else 0


def check_dropouts(shares, layers, without):
    """Whether ghp read the shares that the modules drop, and nothing else of the network but its views, which put a
    dropout's input in order, is another for them."""
    read = [share_of(layer) for layer in layers if share_of(layer) > 0]
    others = [[(layer["op"], "" if share_of(layer) else layer["window"], layer["out"])
               for layer in some if layer["op"] not in ("dropout", "view")] for some in (layers, without)]
    near = len(read) == len(shares) and all(abs(a - b) < 1e-6 for a, b in zip(sorted(read), sorted(shares)))
    if near and others[0] == others[1]:
        return True
    print("the modules drop %s, ghp %s of %d and %d other layers" % (shares, read, *map(len, others)), file=sys.stderr)
    return False


def export(net, shape, samples, exporter, opset):
    x = torch.zeros(max(samples, 2), *shape)
    if exporter == "traced":
        torch.onnx.export(net, (x,), "net.onnx", dynamo=False, opset_version=opset, input_names=["x"],
                          do_constant_folding=False, dynamic_axes={"x": {0: "batch"}},
                          training=torch.onnx.TrainingMode.TRAINING)
    else:
        batch = ({0: torch.export.Dim("batch", min=2, max=1024)},)
        torch.onnx.export(net, (x,), dynamo=True, opset_version=opset, dynamic_shapes=batch, optimize=False,
                          verbose=False).save("net.onnx", external_data=False)


def make_samples(shape, samples, classes, of=()):
    draw = torch.Generator().manual_seed(7)
    x = torch.randn(samples, *shape, generator=draw, dtype=torch.float32)
    labels = torch.randint(0, classes, (samples, *of), generator=draw)
    os.makedirs("data", exist_ok=True)
    numpy.save("data/images.npy", x.numpy())
    numpy.save("data/labels.npy", labels.numpy())
    return x, labels


def theirs(net, x, labels, bits):
    """The gradients and running statistics of one step. The derivative of PyTorch's hardsigmoid is the float nearest to
    1/6 in double too, so it is computed here by what it is made of."""
    net = copy.deepcopy(net).to({32: torch.float32, 64: torch.float64}[bits])
    for module in net.modules():
        if isinstance(module, torch.nn.Hardsigmoid):
            module.forward = lambda y: torch.nn.functional.relu6(y + 3) / 6
    torch.nn.functional.cross_entropy(net(x.to(next(net.parameters()).dtype)), labels).backward()
    tensors = {"momentum." + name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    tensors.update((name, b) for name, b in net.named_buffers() if "running_" in name and b.dim() > 0)
    return {name: tensor.double() for name, tensor in tensors.items()}


class Refused(Exception):
    """What a tool said when it failed."""


def tool(name, *arguments, ranks=0):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 0 else []
    done = subprocess.run(command + [os.path.join(BIN, name), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Refused("%s: %s" % (name, done.stderr.strip()))
    return done.stdout, done.stderr


def ours(samples, bits):
    by = ["--precision", "double", "--backend", "reference"] if bits == 64 else ["--backend", "onednn"]
    tool("ghp-profile", "--analytic", "F=1e11,bandwidth=1e9,latency=1e-5", "--model", "net.onnx", "-o", "profile")
    tool("ghp-plan", "net.onnx", "--profile", "profile", "--workers", 1, "--batch", samples, "--no-break-even",
         "-o", "plan")
    tool("ghp-run", "plan", "--data", "npy:data", "--steps", 1, "--lr", 0, "--momentum", 0.9, "--checkpoint", "first",
         "--overwrite", "--eval", "off", "--numerics", "exact", *by, ranks=1)
    return read_tensors("first/checkpoint.safetensors")


def worst(got, wanted):
    """The largest |g - g_ref| of a tensor, and its name: relative to all gradients of its module, since that of a bias
    before a norm is rounding alone; running statistics to their own size."""
    size, most, which = {}, 0.0, "none"
    for name, tensor in wanted.items():
        of = name.rpartition(".")[0] if name.startswith("momentum.") else name
        size[of] = size.get(of, 0) + tensor.square().sum().item()
    for name, tensor in wanted.items():
        of = name.rpartition(".")[0] if name.startswith("momentum.") else name
        off = ((find(got, name).double().flatten() - tensor.flatten()).square().sum().item() / size[of]) ** 0.5
        if not off <= most:
            most, which = off, name
    return most, which


def read(net, shape, samples, exporter, opset):
    """The layers of an exported network, and what else ghp says of it."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        export(net, shape, samples, exporter, opset)
    layers, said = tool("ghp-inspect", "net.onnx", "--json")
    return json.loads(layers)["layers"], said


def check(case, read_only):
    network, exporter, opset, *bits = case.split(".")
    pixels, samples = SIZES.get(network, USUAL)
    shape = modules.MODULES[network][1] if network in modules.MODULES else (3, pixels, pixels)
    net = make(network)
    row = "| %s | %s | %s | " % (network, exporter, opset)
    dropped = dropouts(net, shape)
    shares = [getattr(*each) for each in dropped]
    try:
        layers, said = read(net, shape, samples, exporter, int(opset))
        for module, name in dropped:
            setattr(module, name, 0.0)
        good = check_dropouts(
            shares, layers, read(net, shape, samples, exporter, int(opset))[0] if shares else layers)
    except Refused as error:
        print(row + "no: %s | | | |" % str(error).split("net.onnx: ")[-1].split("; ")[0], flush=True)
        return False
    except Exception as error:  # the exporter's own refusal
        print(row + "not written: %s | | | |" % str(error).strip().splitlines()[0][:160], flush=True)
        return True
    if said != "":
        print(said, file=sys.stderr)
    cells = {}
    labels_of = (modules.CLASSES, *modules.MODULES[network][2:]) if network in modules.MODULES else \
        (5, (pixels, pixels)) if segments(network) else (256,)
    x, labels = make_samples(shape, samples, *labels_of)
    for n in () if read_only else [int(b) for b in bits] or [64, 32]:
        reference, limit = theirs(net, x, labels, n), LIMITS[n]
        most, which = worst(ours(samples, n), reference)
        if n == 32:
            own, _ = worst(reference, theirs(net, x, labels, 64))
            # a decision of a ReLU or max pool within rounding changes gradients by far more: there float shows nothing
            limit = limit + own if own <= limit else float("inf")
            cells["own"] = "%.1e" % own
        cells[n] = "%.1e" % most + ("" if most <= limit else " (%s)" % which)
        good = good and most <= limit
    print(row + "yes | %s |" % " | ".join(cells.get(key, "") for key in (64, 32, "own")), flush=True)
    return good


def main():
    torch.set_num_threads(1)
    read_only = sys.argv[1] in ("read", "survey")
    cases = sys.argv[2 if read_only else 1:]
    if sys.argv[1] == "survey":
        cases = ["%s.%s.%d" % (network, *by) for network in [*NETWORKS, *modules.MODULES] for by in SURVEYED]
    print("| network | exporter | opset | read | double | float | PyTorch's own |")
    print("|---|---|---|---|---|---|---|", flush=True)
    good = [check(case, read_only) for case in cases]
    if sys.argv[1] == "survey":
        print("%d of %d are read, or not written by PyTorch's exporter" % (sum(good), len(good)))
    return all(good)


sys.exit(0 if main() else 1)
