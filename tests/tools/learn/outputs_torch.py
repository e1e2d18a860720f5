# tests/tools/learn/outputs_torch.py - a small network of two outputs trained by PyTorch, for test_outputs.sh.
#
#   data FOLDER KIND        images.npy and labels.npy of 16 samples. classes: one label for both outputs; own: one for
#                           each, some of which are 255; multi: six for each; numbers: six for both; maps: a class for
#                           each pixel; boxes: a class, and four numbers, of which some are NaN; heads: these and
#                           whether there is one, for each pixel; places: a class, and four numbers for each pixel
#   check {FIRST LAST LOSSES KIND BITS}...
#                           trains on all 16 from FIRST's weights and compares with LAST's (checkpoints of ghp), and the
#                           losses with those of LOSSES (ghp's metrics), or, of BITS `evaluated`, the loss of LAST with
#                           what an evaluation printed; exits 1 where any is further off than 1e-10 (64 bits) or 1e-5
#                           (32, evaluated) of its size or 1
import json
import math
import os
import sys

import numpy
import torch
import torch.nn.functional as F

from torch_weights import read_weights

SAMPLES, CHANNELS, CLASSES, STEPS, RATE = 16, 12, 6, 10, 0.2
OF_OUTPUTS, OF_CLASSES = [1, 0.3], [1, 0.25, 3, 2, 0.5, 1]  # test_outputs.sh gives these
OF_PARTS = {"boxes": [1, 0.3], "heads": [1, 0.5, 0.3], "places": [1, 0.3]}  # and these
MAPS = ("maps", "heads", "places")


def images(maps):
    return numpy.random.default_rng(3).standard_normal((SAMPLES, 2, 6, 6) if maps else (SAMPLES, CHANNELS))


def boxes(kind):
    draw = numpy.random.default_rng(5)
    pixels = () if kind == "boxes" else (6, 6)
    y = draw.standard_normal((SAMPLES, 5 if kind == "boxes" else 6, *pixels)).astype(numpy.float32)
    y[:, 0] = draw.integers(0, CLASSES if kind == "boxes" else CLASSES - 1, (SAMPLES, *pixels))
    if kind == "heads":
        y[:, 1] = draw.integers(0, 2, (SAMPLES, *pixels))
    y[::5, 0] = y[1::3, -4:] = y[0, -1] = numpy.nan
    return y


def places():
    draw = numpy.random.default_rng(6)
    y = draw.standard_normal((SAMPLES, 5, 36)).astype(numpy.float32)
    y[:, 0] = numpy.nan
    y[:, 0, 0] = draw.integers(0, CLASSES, SAMPLES)
    y[::5, 0] = y[1::3, 1:, ::4] = numpy.nan
    return y


def labels(kind):
    draw = numpy.random.default_rng(4)
    if kind in OF_PARTS:
        return places() if kind == "places" else boxes(kind)
    if kind == "numbers":
        return draw.standard_normal((SAMPLES, CLASSES)).astype(numpy.float32)
    if kind == "multi":
        return draw.integers(0, 2, (SAMPLES, 2 * CLASSES))
    if kind == "maps":
        return draw.integers(0, CLASSES, (SAMPLES, 6, 6))
    if kind != "own":
        return draw.integers(0, CLASSES, SAMPLES)
    y = draw.integers(0, CLASSES, (SAMPLES, 2))
    y[::3, 0] = y[1::2, 1] = 255
    return y


def class_loss(output, y, **more):
    y = y[:, 0]
    return F.cross_entropy(output, torch.where(y.isnan(), -100, y).long(), **more)


def parts_of(kind, outputs, y):
    """The loss of each output of its own kind."""
    if kind == "places":
        there = ~y[:, 1:].isnan()
        return [class_loss(outputs[0], y[:, :, 0]),
                F.mse_loss(outputs[1][there], y[:, 1:][there].to(outputs[1].dtype))]
    there = ~y[:, -4:].isnan()
    if kind == "boxes":
        return [class_loss(outputs[0], y, label_smoothing=0.1),
                F.smooth_l1_loss(outputs[1][there], y[:, -4:][there].to(outputs[1].dtype), beta=0.5)]
    return [class_loss(outputs[0][:, :-1], y),
            F.binary_cross_entropy_with_logits(outputs[0][:, -1], y[:, 1].to(outputs[0].dtype)),
            F.mse_loss(outputs[1][there], y[:, -4:][there].to(outputs[1].dtype))]


def loss_sum(kind, outputs, y):
    if kind in OF_PARTS:
        return sum(w * part for w, part in zip(OF_PARTS[kind], parts_of(kind, outputs, y)))
    return sum(OF_OUTPUTS[i] * loss_of(kind, output, i, y) for i, output in enumerate(outputs))


def loss_of(kind, output, number, y):
    if kind == "numbers":
        return F.huber_loss(output, y.to(output.dtype), delta=0.5)
    if kind == "multi":
        y = y[:, number * CLASSES : (number + 1) * CLASSES]
        return F.binary_cross_entropy_with_logits(output, y.to(output.dtype))
    if kind == "own":
        return F.cross_entropy(output, y[:, number], ignore_index=255)
    return F.cross_entropy(output, y, weight=torch.tensor(OF_CLASSES, dtype=output.dtype) if kind == "classes" else None)


def outputs_of(w, x):
    if "conv1.weight" in w:
        hidden = F.relu(F.conv2d(x, w["conv1.weight"], w["conv1.bias"], padding=1))
        if "fc1.weight" in w:
            return [F.linear(hidden.mean((2, 3)), w["fc1.weight"], w["fc1.bias"]),
                    F.conv2d(hidden, w["conv2.weight"], w["conv2.bias"], padding=1).flatten(2)]
        return [F.conv2d(hidden, w[key + ".weight"], w[key + ".bias"], padding=1) for key in ("conv2", "conv3")]
    hidden = F.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"]))
    return [F.linear(hidden, w[key + ".weight"], w[key + ".bias"]) for key in ("fc2", "fc3")]


def check_parts(parts, outputs, y, printed):
    with open(printed) as file:
        said = json.load(file)
    there = ~y[:, 0].isnan()
    hits = (outputs[0].argmax(1) == y[:, 0])[there].double().mean()
    absolute = (outputs[1] - y[:, -4:]).abs()[~y[:, -4:].isnan()].mean()
    pairs = [(said["loss"], parts[0] + OF_OUTPUTS[1] * parts[1]), (said["outputs"][0]["loss"], parts[0]),
             (said["outputs"][1]["loss"], parts[1]), (said["top1"], hits), (said["outputs"][0]["top1"], hits),
             (said["outputs"][1]["absolute_error"], absolute)]
    most = max(abs(a - b.item()) for a, b in pairs)
    print(f"boxes, evaluated: {most:.1e} from PyTorch's (limit 1e-05)")
    return most <= 1e-5


def check_evaluation(last, printed, kind):
    """Without weights of classes, and where outputs share their labels of the first alone."""
    w = {key: value.double() for key, value in read_weights(last).items()}
    y = torch.from_numpy(labels(kind))
    outputs = outputs_of(w, torch.from_numpy(images(False)))
    if kind == "boxes":
        return check_parts(parts_of(kind, outputs, y), outputs, y, printed)
    first = F.cross_entropy(outputs[0], y) if kind == "classes" else loss_of(kind, outputs[0], 0, y)
    wanted = first if kind == "classes" else first + OF_OUTPUTS[1] * loss_of(kind, outputs[1], 1, y)
    y = y if kind == "classes" else y[:, 0]
    hits = (outputs[0].argmax(1) == y)[y < CLASSES].double().mean()
    with open(printed) as file:
        said = json.load(file)
    most = max(abs(said["loss"] - wanted.item()), abs(said["top1"] - hits.item()))
    print(f"{kind}, evaluated: {most:.1e} from PyTorch's (limit 1e-05)")
    return most <= 1e-5


def check(first, last, losses, kind, bits):
    if bits == "evaluated":
        return check_evaluation(last, losses, kind)
    numbers = torch.float64 if bits == "64" else torch.float32
    w = {key: value.to(numbers).requires_grad_() for key, value in read_weights(first).items()}
    x, y = torch.from_numpy(images(kind in MAPS)).to(numbers), torch.from_numpy(labels(kind))
    optimizer = torch.optim.SGD(w.values(), lr=RATE, momentum=0.9)
    with open(losses) as file:
        said = [json.loads(line)["loss"] for line in file]
    most = 0.0 if len(said) == STEPS else math.inf
    for got in said:
        optimizer.zero_grad()
        value = loss_sum(kind, outputs_of(w, x), y)
        value.backward()
        optimizer.step()
        most = max(most, abs(value.item() - got))
    ours = read_weights(last)
    for key, value in w.items():
        off = (value.detach().double() - ours[key].double()).abs() / value.detach().double().abs().clamp(min=1)
        most = max(most, off.max().item())
    limit = 1e-10 if bits == "64" else 1e-5
    print(f"{kind}, {bits} bits: {most:.1e} from PyTorch's (limit {limit:.0e})")
    return math.isfinite(most) and most <= limit


def main():
    if sys.argv[1] == "data":
        os.makedirs(sys.argv[2], exist_ok=True)
        numpy.save(f"{sys.argv[2]}/images.npy", images(sys.argv[3] in MAPS))
        numpy.save(f"{sys.argv[2]}/labels.npy", labels(sys.argv[3]))
        return 0
    torch.set_num_threads(1)
    cases = [sys.argv[i : i + 5] for i in range(2, len(sys.argv), 5)]
    return 0 if cases and all([check(*case) for case in cases]) else 1


sys.exit(main())
