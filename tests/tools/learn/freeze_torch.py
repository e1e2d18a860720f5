# tests/tools/learn/freeze_torch.py - a frozen resnet18 trained by PyTorch, for test_freeze.sh.
#
#   data            writes images.npy and labels.npy, and base.safetensors: resnet18 of 1000 classes whose batch norms
#                   have running statistics of some images
#   check FIRST LAST METRICS STEPS LR DECAY FROZEN EVALUATED SCALED
#                   trains the network of 10 classes from FIRST (a checkpoint of ghp) and the statistics of `data`.
#                   Parameters that begin with one of FROZEN (a list with commas) have requires_grad=False, and batch
#                   norms of EVALUATED are in evaluation mode; those that begin with one of SCALED get a tenth of the
#                   rate. Exits 1 if a step's loss, or a running statistic of LAST, is further from PyTorch's in double
#                   than it may be: four times as far as PyTorch's own in float (another order of sums, whose
#                   differences grow from step to step), and 1e-6 of the first loss, or of the largest statistic
import json
import sys

import numpy
import torch
import torch.nn.functional as F
import torchvision

from safetensors.torch import save_file
from torch_weights import read_weights

SAMPLES, SIDE, CLASSES = 4, 64, 10


def images():
    draw = numpy.random.default_rng(3)
    return draw.standard_normal((SAMPLES, 3, SIDE, SIDE)).astype("float32")


def write():
    torch.manual_seed(0)
    net = torchvision.models.resnet18()
    for _ in range(3):
        net(torch.tensor(images()) + 0.5)
    state = {name: x for name, x in net.state_dict().items() if not name.endswith("num_batches_tracked")}
    save_file(state, "base.safetensors")
    numpy.save("images.npy", images())
    numpy.save("labels.npy", numpy.arange(SAMPLES) % CLASSES)


def begins(name, prefixes):
    return any(name.startswith(prefix) for prefix in prefixes.split(",") if prefix)


def network(first, frozen, evaluated):
    net = torchvision.models.resnet18(num_classes=CLASSES)
    net.load_state_dict(read_weights(first), strict=False)
    net.load_state_dict({name: x for name, x in read_weights("base.safetensors").items() if "running_" in name}, strict=False)
    net.train()
    for name, module in net.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d) and begins(name + ".", evaluated):
            module.eval()
    for name, p in net.named_parameters():
        p.requires_grad_(not begins(name, frozen))
    return net


def losses(net, steps, lr, decay, scaled, kind):
    net = net.to(kind)
    groups = {}
    for name, p in net.named_parameters():
        if p.requires_grad:
            groups.setdefault(0.1 if begins(name, scaled) else 1, []).append(p)
    optimizer = torch.optim.SGD([{"params": ps, "lr": lr * rate} for rate, ps in groups.items()], momentum=0.9,
                                weight_decay=decay)
    x, y = torch.tensor(images()).to(kind), torch.arange(SAMPLES) % CLASSES
    said = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        said.append(loss.item())
    return said


def statistics(state):
    return torch.cat([state[name].double().flatten() for name in sorted(state) if "running_" in name])


def check(first, last, metrics, steps, lr, decay, frozen, evaluated, scaled):
    with open(metrics) as lines:
        ours = [json.loads(line)["loss"] for line in lines if '"loss"' in line and '"step"' in line]
    exact, rounded = network(first, frozen, evaluated), network(first, frozen, evaluated)
    said = [losses(net, steps, lr, decay, scaled, kind) for net, kind in ((exact, torch.float64), (rounded, torch.float32))]
    if len(ours) < steps:
        return False
    off = [max(abs(a - b) for a, b in zip(some, said[0])) / said[0][0] for some in (ours, said[1])]
    right = statistics(exact.state_dict())
    moved = [float((statistics(state) - right).abs().max() / right.abs().max())
             for state in (read_weights(last), rounded.state_dict())]
    print(f"{steps} steps: losses {ours[0]:.4f} .. {ours[steps - 1]:.4f}, {off[0]:.1e} from PyTorch's in double, "
          f"{off[1]:.1e} PyTorch's in float; running statistics {moved[0]:.1e} and {moved[1]:.1e}")
    return off[0] <= 4 * off[1] + 1e-6 and moved[0] <= 4 * moved[1] + 1e-6


torch.set_num_threads(1)
if sys.argv[1] == "data":
    write()
else:
    sys.exit(0 if check(*sys.argv[2:5], int(sys.argv[5]), float(sys.argv[6]), float(sys.argv[7]), *sys.argv[8:11]) else 1)
