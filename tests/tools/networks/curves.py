"""A U-Net on synthetic masks and a ViT-tiny on synthetic pictures, trained by ghp and by PyTorch, for test_curves.sh.

    curves.py CASE...    NETWORK.WORKERS...: the planner's own plan for WORKERS workers, compared with one worker
                         and PyTorch

Each network is exported by PyTorch with its weights, planned from a profile by formulas, and trained for STEPS steps in
double, on batches in the order of the files. Every step's loss is the same on one worker, on WORKERS workers and in
PyTorch, and so are the weights at the end, but for the rounding of other orders of sums.
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
from torch import nn

import modules

sys.path.insert(0, os.path.join(sys.path[0], "..", "learn"))
from torch_weights import find, read_weights

BIN = os.environ["GHP_BIN"]
STEPS, BATCH, SAMPLES = 50, 8, 64
# Double has 1e-16, sums have some thousands of terms, and training multiplies what they differ by: seen 3e-14, and with
# AdamW, which divides by small numbers, 2e-11.
LIMIT = 1e-10
CURVES = {"unet": {"lr": 0.2, "optimizer": "sgd"}, "vit": {"lr": 2e-3, "optimizer": "adamw"}}


def masks(side=16):
    """A picture with noise, and a class for each pixel: 0, or that of the last of three discs that covers it."""
    draw = numpy.random.default_rng(11)
    y, x = numpy.mgrid[:side, :side]
    images = 0.3 * draw.standard_normal((SAMPLES, 3, side, side))
    labels = numpy.zeros((SAMPLES, side, side), "int64")
    for image, label in zip(images, labels):
        for kind in draw.permutation(3):
            inside = (y - draw.integers(side)) ** 2 + (x - draw.integers(side)) ** 2 < (side / 4) ** 2
            label[inside] = kind + 1
        for kind in range(3):
            image[kind][label == kind + 1] += 1
    return images.astype("float32"), labels


def gratings(side=32):
    """Waves in one of ten directions, with noise; the direction is the class."""
    draw = numpy.random.default_rng(12)
    y, x = numpy.mgrid[:side, :side]
    labels = draw.integers(0, modules.CLASSES, SAMPLES)
    angles = labels * numpy.pi / modules.CLASSES
    phase = draw.uniform(0, 6, SAMPLES)[:, None, None]
    waves = numpy.sin(0.8 * (numpy.cos(angles)[:, None, None] * x + numpy.sin(angles)[:, None, None] * y) + phase)
    images = waves[:, None] + 0.3 * draw.standard_normal((SAMPLES, 3, side, side))
    return images.astype("float32"), labels


def vit_tiny():
    """ViT-tiny's three heads, of half its channels, in two blocks: pictures of 32 x 32 pixels are 16 patches."""
    return torchvision.models.VisionTransformer(32, 8, 2, 3, 96, 384, num_classes=modules.CLASSES)


NETWORKS = {"unet": (modules.UNet, masks), "vit": (vit_tiny, gratings)}


def tool(name, *arguments, ranks=0):
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks else []
    done = subprocess.run([*launch, os.path.join(BIN, name), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (name, arguments, done.stderr[-2000:])
    return done.stdout


def prepare(network):
    """The network with its first weights, its file, its data and its profile."""
    torch.manual_seed(5)
    make, draw = NETWORKS[network]
    net, (images, labels) = make().train(), draw()
    os.makedirs(f"{network}.data", exist_ok=True)
    numpy.save(f"{network}.data/images.npy", images)
    numpy.save(f"{network}.data/labels.npy", labels)
    batch = ({0: torch.export.Dim("batch", min=2, max=1024)},)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (torch.tensor(images[:2]),), dynamo=True, optimize=False, verbose=False,
                          dynamic_shapes=batch).save(f"{network}.onnx", external_data=False)
    tool("ghp-profile", "--analytic", "F=1e10,bandwidth=1e8,latency=1e-6", "--model", f"{network}.onnx", "-o",
         f"{network}.profile")
    return net, torch.tensor(images).double(), torch.tensor(labels)


def theirs(network, net, images, labels):
    """PyTorch's losses, and its weights at the end."""
    net, rate = copy.deepcopy(net).double(), CURVES[network]["lr"]
    sgd = CURVES[network]["optimizer"] == "sgd"
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9) if sgd else \
        torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0)
    losses = []
    for step in range(STEPS):
        at = step * BATCH % SAMPLES
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[at:at + BATCH]), labels[at:at + BATCH])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: value.detach() for name, value in net.named_parameters()}


def ours(network, workers):
    """The losses of ghp by the planner's own plan, its weights, and its groups of layers."""
    made = f"{network}.{workers}"
    by = CURVES[network]
    said = tool("ghp-plan", f"{network}.onnx", "--profile", f"{network}.profile", "--workers", workers, "--batch",
                BATCH, "--optimizer", by["optimizer"], "--no-break-even", "-o", f"{made}.plan")
    momentum = ["--momentum", 0.9] if by["optimizer"] == "sgd" else []
    tool("ghp-run", f"{made}.plan", "--init", f"{network}.onnx", "--data", f"npy:{network}.data",
         "--eval", "off", "--shuffle", "off", "--steps", STEPS, "--lr", by["lr"], *momentum, "--weight-decay", 0,
         "--precision", "double", "--backend", "reference", "--threads", 1, "--numerics", "exact", "--metrics",
         f"{made}.metrics", "--checkpoint", f"{made}.checkpoint", ranks=workers)
    with open(f"{made}.metrics") as file:
        losses = [step["loss"] for step in map(json.loads, file) if "loss" in step]
    return losses, read_weights(f"{made}.checkpoint/checkpoint.safetensors"), said


def apart(curve, other):
    """The largest difference of two curves, relative to the loss."""
    assert len(curve) == len(other) == STEPS, (len(curve), len(other))
    return max(abs(a - b) / abs(b) for a, b in zip(curve, other))


def weights_apart(weights, others):
    """The largest difference of the tensors that others have, relative to a tensor's largest element or to 1."""
    return max(((find(weights, name).double().flatten() - value.double().flatten()).abs().max() /
                value.abs().max().clamp(min=1)).item() for name, value in others.items())


def check(network, workers):
    net, images, labels = prepare(network)
    curve, weights = theirs(network, net, images, labels)
    one, weights_of_one, _ = ours(network, 1)
    far = {"one worker from PyTorch": (apart(one, curve), weights_apart(weights_of_one, weights))}
    print("%s: losses %.3f to %.3f" % (network, curve[0], curve[-1]))
    for n in workers:
        several, weights_of_several, said = ours(network, n)
        print("".join(line.lstrip("#") for line in said.splitlines() if " groups of " in line))
        far["%s workers from PyTorch" % n] = (apart(several, curve), weights_apart(weights_of_several, weights))
        far["%s workers from one" % n] = (apart(several, one), weights_apart(weights_of_several, weights_of_one))
    for whom, (loss, weight) in far.items():
        print("  %s: losses %.1e, weights %.1e" % (whom, loss, weight), flush=True)
    return curve[-1] < 0.7 * curve[0] and all(value <= LIMIT for values in far.values() for value in values)


torch.set_num_threads(1)
cases = [case.split(".") for case in sys.argv[1:]]
sys.exit(0 if cases and all([check(network, workers) for network, *workers in cases]) else 1)
