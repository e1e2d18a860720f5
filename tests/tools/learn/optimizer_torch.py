# tests/tools/learn/optimizer_torch.py - lenet5 trained by PyTorch, for test_optimizer_torch.sh.
#
#   data FOLDER             writes 16 images and labels as IDX files, for training and for tests
#   check FIRST LAST OPTIMIZER STEPS LR DECAY CLIP BITS
#                           trains on all 16 from FIRST's weights and compares with LAST's (checkpoints of ghp); exits 1
#                           where a weight is further off than 1e-10 (64 bits) or 1e-5 (32) of its size or 1
import math
import os
import random
import struct
import sys

import torch
import torch.nn.functional as F

from torch_weights import read_weights

SAMPLES, SIDE = 16, 28


def pixels():
    draw = random.Random(5)
    return bytes(draw.randrange(256) for _ in range(SAMPLES * SIDE * SIDE))


def labels():
    return bytes(i % 10 for i in range(SAMPLES))


def write_data(folder):
    os.makedirs(folder, exist_ok=True)
    for name in "train", "t10k":
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">IIII", 0x803, SAMPLES, SIDE, SIDE) + pixels())
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">II", 0x801, SAMPLES) + labels())


def loss_of(w, x, y):
    x = F.max_pool2d(F.relu(F.conv2d(x, w["conv1.weight"], w["conv1.bias"], padding=2)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, w["conv2.weight"], w["conv2.bias"])), 2).flatten(1)
    x = F.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"]))
    x = F.relu(F.linear(x, w["fc2.weight"], w["fc2.bias"]))
    return F.cross_entropy(F.linear(x, w["fc3.weight"], w["fc3.bias"]), y)


class Lion:
    """Chen et al., 2023, which PyTorch does not have."""

    def __init__(self, w, rate, decay):
        self.w, self.rate, self.decay = list(w), rate, decay
        self.m = [torch.zeros_like(p) for p in self.w]

    def zero_grad(self):
        for p in self.w:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p, m in zip(self.w, self.m):
            if p.dim() >= 2:
                p.mul_(1 - self.rate * self.decay)
            p.sub_(self.rate * (0.9 * m + 0.1 * p.grad).sign())
            m.mul_(0.99).add_(p.grad, alpha=0.01)


def optimizer_of(name, w, rate, decay):
    if name == "lion":
        return Lion(w.values(), rate, decay)
    if name == "sgd":
        return torch.optim.SGD(w.values(), lr=rate, momentum=0.9, weight_decay=decay)
    matrices = [p for p in w.values() if p.dim() >= 2]
    others = [p for p in w.values() if p.dim() < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0}],
                             lr=rate, betas=(0.9, 0.999), eps=1e-8)


def check(first, last, name, steps, rate, decay, clip, bits):
    kind = torch.float64 if bits == 64 else torch.float32
    w = {key: value.to(kind).requires_grad_() for key, value in read_weights(first).items()}
    x = torch.tensor(list(pixels()), dtype=torch.float64)
    x = ((x - x.mean()) / x.std(unbiased=False)).to(kind).reshape(SAMPLES, 1, SIDE, SIDE)
    y = torch.tensor(list(labels()))
    optimizer = optimizer_of(name, w, rate, decay)
    clipped = 0
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(w, x, y).backward()
        if clip > 0:
            clipped += torch.nn.utils.clip_grad_norm_(w.values(), clip) > clip
        optimizer.step()
    ours, most = read_weights(last), 0.0
    for key, value in w.items():
        off = (value.detach().double() - ours[key].double()).abs() / value.detach().double().abs().clamp(min=1)
        most = max(most, off.max().item())
    limit = 1e-10 if bits == 64 else 1e-5
    print(f"{name}, clipped in {int(clipped)} of {steps} steps: {most:.2e} from PyTorch's (limit {limit:.0e})")
    return math.isfinite(most) and most <= limit and (clip == 0 or clipped > 0)


def main():
    if sys.argv[1] == "data":
        write_data(sys.argv[2])
        return 0
    first, last, name = sys.argv[2:5]
    torch.set_num_threads(1)
    return 0 if check(first, last, name, int(sys.argv[5]), *map(float, sys.argv[6:9]), int(sys.argv[9])) else 1


sys.exit(main())
