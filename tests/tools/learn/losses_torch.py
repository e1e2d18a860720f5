# tests/tools/learn/losses_torch.py - a small network trained by PyTorch with one loss or another, for
# test_losses_torch.sh.
#
#   data FOLDER LABELS      images.npy and labels.npy: 16 samples of 12 numbers, with one label of LABELS, 0: with five
#                           of their own, 0 or 1 each; numbers: five numbers; maps: images of 2 and of 3 channels
#   check {FIRST LAST LOSSES LOSS BITS}...
#                           trains on all 16 from FIRST's weights and compares with LAST's (checkpoints of ghp), and the
#                           losses with those of LOSSES (ghp's metrics); of the loss `evaluated`, those of LAST with what
#                           an evaluation printed; exits 1 where any is further off than 1e-10 (64 bits) or 1e-5 (32) of
#                           its size or 1
import json
import math
import os
import sys

import numpy
import torch
import torch.nn.functional as F

from torch_weights import read_weights

SAMPLES, CHANNELS, OUTPUTS, STEPS, RATE = 16, 12, 5, 10, 0.2
WEIGHTS = [1, 0.25, 3, 2, 0.5]  # test_losses_torch.sh gives these
MIXUP, SEED = 0.4, 1  # likewise, and ghp-run's own


def unit(stream, index):
    """Number `index` of ghp's stream, in [0, 1): Philox4x32 with ten rounds (executor/platform/random.h)."""
    key = (SEED + 2 * 0x9E3779B97F4A7C15) % 2**64
    keys = [key % 2**32, key >> 32]
    a, b, c, d = index % 2**32, index >> 32, stream % 2**32, stream >> 32
    for _ in range(10):
        low, high = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = high >> 32 ^ b ^ keys[0], high % 2**32, low >> 32 ^ d ^ keys[1], low % 2**32
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return ((b << 32 | a) >> 11) / 2**53


def blend(epoch, sample):
    """The sample that it is blended with, and that one's share (executor/data/image/blend.c)."""
    draws = (unit(0x626C656E << 32 ^ epoch, sample * 132 + i) for i in range(132))
    next(draws)
    other = (sample + 1 + int(next(draws) * (SAMPLES - 1))) % SAMPLES
    while True:
        u, v = ((1 - next(draws)) ** (1 / MIXUP) for _ in range(2))
        if u + v <= 1:
            return other, v / (u + v)


def images(maps=False):
    return numpy.random.default_rng(3).standard_normal((SAMPLES, 2, 6, 6) if maps else (SAMPLES, CHANNELS))


def labels(n):
    draw = numpy.random.default_rng(4)
    if n in ("numbers", "maps"):
        return draw.standard_normal((SAMPLES, 3, 6, 6) if n == "maps" else (SAMPLES, OUTPUTS)).astype(numpy.float32)
    return draw.integers(0, 2, (SAMPLES, OUTPUTS)) if n == 0 else draw.integers(0, n, SAMPLES)


def loss_of(loss, logits, y):
    if loss == "smoothed":
        return F.cross_entropy(logits, y, label_smoothing=0.1)
    if loss == "blended":
        ones, others, shares = y
        return sum(
            (share * F.cross_entropy(logits, of, label_smoothing=0.1, reduction="none")).mean()
            for of, share in ((ones, 1 - shares), (others, shares))
        )
    if loss == "weighted":
        return F.cross_entropy(logits, y, weight=torch.tensor(WEIGHTS, dtype=logits.dtype))
    if loss in ("squared", "averaged"):
        return F.mse_loss(logits, y.to(logits.dtype))
    if loss == "maps":
        return F.huber_loss(logits, y.to(logits.dtype), delta=0.5)
    if loss == "multi":
        return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype))
    if loss == "one":
        return F.binary_cross_entropy_with_logits(logits[:, 0], y.to(logits.dtype))
    return F.binary_cross_entropy_with_logits(logits, F.one_hot(y, OUTPUTS).to(logits.dtype))


def outputs_of(w, x):
    if "conv1.weight" in w:
        hidden = F.relu(F.conv2d(x, w["conv1.weight"], w["conv1.bias"], padding=1))
        return F.conv2d(hidden, w["conv2.weight"], w["conv2.bias"], padding=1)
    hidden = F.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"]))
    return F.linear(hidden, w["fc2.weight"], w["fc2.bias"])


def check_evaluation(last, printed):
    w = {key: value.double() for key, value in read_weights(last).items()}
    outputs, y = outputs_of(w, torch.from_numpy(images())), torch.from_numpy(labels("numbers"))
    with open(printed) as file:
        said = json.load(file)
    most = max(abs(said["loss"] - F.mse_loss(outputs, y.double()).item()),
               abs(said["absolute_error"] - F.l1_loss(outputs, y.double()).item()))
    print(f"evaluated: {most:.1e} from PyTorch's (limit 1e-05)")
    return most <= 1e-5


def check(first, last, losses, loss, bits):
    if loss == "evaluated":
        return check_evaluation(last, losses)
    kind = torch.float64 if bits == 64 else torch.float32
    w = {key: value.to(kind).requires_grad_() for key, value in read_weights(first).items()}
    x = torch.from_numpy(images(loss == "maps")).to(kind)
    y = torch.from_numpy(labels({"multi": 0, "one": 2, "squared": "numbers", "averaged": "numbers", "maps": "maps"}.get(loss, OUTPUTS)))
    optimizer = torch.optim.SGD(w.values(), lr=RATE, momentum=0.9)
    means = {key: value.detach().clone() for key, value in w.items()}
    with open(losses) as file:
        said = [json.loads(line)["loss"] for line in file]
    most = 0.0 if len(said) == STEPS else math.inf
    for step, got in enumerate(said):
        optimizer.zero_grad()
        seen, of = x, y
        if loss == "blended":  # a step is an epoch
            others, shares = zip(*(blend(step, i) for i in range(SAMPLES)))
            others, shares = torch.tensor(others), torch.tensor(shares, dtype=kind)
            seen, of = torch.lerp(x, x[others], shares[:, None]), (y, y[others], shares)
        value = loss_of(loss, outputs_of(w, seen), of)
        value.backward()
        optimizer.step()
        means = {key: 0.9 * mean + 0.1 * w[key].detach() for key, mean in means.items()}
        most = max(most, abs(value.item() - got))
    ours = read_weights(last)
    if loss == "averaged":  # the weights are the averages
        w = {**means, **{"training." + key: value for key, value in w.items()}}
    for key, value in w.items():
        off = (value.detach().double() - ours[key].double()).abs() / value.detach().double().abs().clamp(min=1)
        most = max(most, off.max().item())
    limit = 1e-10 if bits == 64 else 1e-5
    print(f"{loss}, {bits} bits: {most:.1e} from PyTorch's (limit {limit:.0e})")
    return math.isfinite(most) and most <= limit


def main():
    if sys.argv[1] == "data":
        os.makedirs(sys.argv[2], exist_ok=True)
        kind = sys.argv[3]
        numpy.save(f"{sys.argv[2]}/images.npy", images(kind == "maps"))
        numpy.save(f"{sys.argv[2]}/labels.npy", labels(int(kind) if kind.isdigit() else kind))
        return 0
    torch.set_num_threads(1)
    cases = [sys.argv[i : i + 5] for i in range(2, len(sys.argv), 5)]
    return 0 if cases and all([check(*case[:4], int(case[4])) for case in cases]) else 1


sys.exit(main())
