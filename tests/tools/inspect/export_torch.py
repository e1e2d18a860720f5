"""Networks that PyTorch trains by ghp's plans, for test_export_torch.sh.

    export_torch.py export NETWORK    NETWORK.onnx
    export_torch.py train NETWORK     on each rank of torchrun, by plan.py: the largest difference of ten losses from
                                      those of one process, relative; exits 1 where it is above LIMIT
"""
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

# a float has 6e-8; sums of some hundred products in another order, carried on through ten steps
LIMIT, STEPS, BATCH, WORDS, POSITIONS = 1e-5, 10, 16, 32, 8


class Block(nn.Module):
    """A transformer's: attention by samples, and a feed-forward pair."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32) for _ in range(4))
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.head = nn.Linear(32, WORDS)

    def forward(self, ids):
        x = self.embed(ids)
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(2, (2, 16)).transpose(1, 2) for part in (self.q, self.k, self.v))
        weights = F.softmax(q @ k.transpose(2, 3) / 4, dim=-1)
        x = x + self.o((weights @ v).transpose(1, 2).flatten(2))
        return self.head(x + self.down(F.gelu(self.up(self.norm2(x)))))


def make(network):
    torch.manual_seed(3)
    if network == "mlp":
        return nn.Sequential(nn.Linear(48, 64), nn.Sigmoid(), nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 64),
                             nn.Sigmoid(), nn.Linear(64, 12))
    if network == "cnn":
        return nn.Sequential(nn.Conv2d(3, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 64), nn.ReLU(), nn.Linear(64, 64),
                             nn.ReLU(), nn.Linear(64, 10))
    if network == "normed":
        return nn.Sequential(nn.Conv2d(3, 8, 5, padding=2, bias=False), nn.BatchNorm2d(8), nn.Sigmoid(),
                             nn.AvgPool2d(4), nn.Flatten(), nn.Linear(128, 32), nn.BatchNorm1d(32), nn.Sigmoid(),
                             nn.Linear(32, 10))
    return Block()


def draw(network, n):
    if network == "block":
        ids = torch.randint(WORDS, (n, POSITIONS + 1))
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    if network in ("cnn", "normed"):
        return torch.randn(n, 3, 16, 16), torch.randint(10, (n,))
    return torch.randn(n, 48), torch.randint(12, (n,))


def export(network):
    torch.onnx.export(make(network).train(), (draw(network, 2)[0],), dynamo=True, optimize=False,
                      verbose=False).save(network + ".onnx", external_data=False)


def loss_of(module, inputs, labels):
    return F.cross_entropy(module(inputs).flatten(0, -2), labels.flatten())


def train(network):
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor

    import plan

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    alone, module, mesh = make(network), make(network), plan.mesh("cpu")
    plan.divide(module, mesh)
    weights = {id(module.get_submodule(name).weight) for name, *_ in plan.SHARDED}
    sharded = [p for p in module.parameters() if isinstance(p, DTensor) and p.device_mesh.mesh_dim_names == ("data",)]
    assert weights <= {id(p) for p in sharded} and all(p.to_local().numel() < p.numel() or p.numel() < 4 for p in sharded)
    divided = [p for p in module.parameters() if isinstance(p, DTensor) and id(p) not in {id(s) for s in sharded}]
    whole = sum(p.numel() == p.to_local().numel() for p in divided)  # biases of row-parallel layers
    assert len(divided) == 2 * len(plan.LAYERS) and whole == sum(way == "row" for _, way, *_ in plan.LAYERS), divided
    rates = {"lr": 0.1, "momentum": 0.9, "foreach": False}
    optimizers = [torch.optim.SGD(m.parameters(), **rates) for m in (alone, module)]
    torch.manual_seed(9)
    worst = 0.0
    for _ in range(STEPS):
        inputs, labels = draw(network, BATCH)
        for optimizer in optimizers:
            optimizer.zero_grad()
        wanted = loss_of(alone, inputs, labels)
        wanted.backward()
        loss = loss_of(module, plan.samples(inputs), plan.samples(labels))
        loss.backward()
        plan.reduce_gradients(module, mesh)
        for optimizer in optimizers:
            optimizer.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        worst = max(worst, abs(loss.item() / dist.get_world_size() - wanted.item()) / wanted.item())
    for (name, buffer), kept in zip(module.named_buffers(), alone.buffers()):
        assert (buffer - kept).double().norm() <= LIMIT * kept.double().norm(), name
    if dist.get_rank() == 0:
        print("%s: %d layers over %d of %d ranks, %d sharded, losses off by %.1e" %
              (network, len(plan.LAYERS), plan.TENSOR_SIZE, dist.get_world_size(), len(plan.SHARDED), worst))
    dist.destroy_process_group()
    return worst <= LIMIT


if sys.argv[1] == "export":
    export(sys.argv[2])
else:
    holds = train(sys.argv[2])
    sys.stdout.flush()
    os._exit(0 if holds else 1)  # at the interpreter's end PyTorch aborts where busy cores left it threads
