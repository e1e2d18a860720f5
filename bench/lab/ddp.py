"""bench/lab/ddp.py - trains a ghp.model/1 network with PyTorch's DistributedDataParallel, or with its parameters sharded
by FSDP2, and prints one JSON line.

Started by bench/lab/ddp under mpirun (rank and size from Open MPI's environment); alone it is one worker.  Not a copy
of ghp's numerics: batch norm takes each worker's own statistics, as DistributedDataParallel does, and initial weights
and samples come from PyTorch's generator.  Keys of a model that it does not know are refused.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

KEYS = {
    "conv2d": {"channels", "kernel", "stride", "pad", "dilation", "groups", "bias"},
    "linear": {"features", "bias", "deviation", "tied", "transposed"},  # transposed: as files hold it, not what it computes
    "embedding": {"channels", "deviation"},
    "position_embedding": {"deviation"},
    "layer_norm": {"epsilon"},
    "attention": {"heads"},
    "gelu": {"approximate"},
    "max_pool": {"kernel", "stride", "pad", "ceil"},
    "avg_pool": {"kernel", "stride", "pad", "count_pad"},
    "batch_norm": {"epsilon", "momentum", "statistics"},
    "lrn": {"size", "alpha", "beta", "k"},
    "dropout": {"ratio"},
    **{op: set() for op in ("bias", "relu", "global_avg_pool", "add", "concat", "flatten", "softmax_cross_entropy")},
}


def pair(value):
    return tuple(value) if isinstance(value, list) else (value, value)


def sides(pad):
    """[top, left, bottom, right] of any way to write a pad."""
    pad = list(pad) if isinstance(pad, list) else [pad, pad]
    return pad if len(pad) == 4 else pad * 2


class Bias(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return x + self.bias.view(1, -1, *[1] * (x.dim() - 2))


class Pad(nn.Module):
    """Padding that PyTorch's layers cannot do themselves: sides that differ, or more than half a pooling window."""

    def __init__(self, pad, value):
        super().__init__()
        self.pad, self.value = pad, value

    def forward(self, x):
        top, left, bottom, right = self.pad
        return F.pad(x, (left, right, top, bottom), value=self.value)


def padded(pad, window, value, make):
    """make(pad) with PyTorch's own padding if that can do it, else after a Pad."""
    top, left, bottom, right = pad
    limit = window if window else (top, left)
    if (top, left) == (bottom, right) and top <= limit[0] and left <= limit[1]:
        return make((top, left))
    return nn.Sequential(Pad(pad, value), make((0, 0)))


def conv(layer, channels):
    return padded(sides(layer.get("pad", 0)), None, 0.0, lambda pad: nn.Conv2d(
        channels, layer["channels"], pair(layer["kernel"]), pair(layer.get("stride", 1)), pad,
        pair(layer.get("dilation", 1)), layer.get("groups", 1), layer.get("bias", True)))


def max_pool(layer):
    kernel = pair(layer["kernel"])
    return padded(sides(layer.get("pad", 0)), (kernel[0] // 2, kernel[1] // 2), float("-inf"),
                  lambda pad: nn.MaxPool2d(kernel, pair(layer.get("stride", layer["kernel"])), pad,
                                           ceil_mode=layer.get("ceil", False)))


def avg_pool(layer):
    kernel, pad, counts = pair(layer["kernel"]), sides(layer.get("pad", 0)), layer.get("count_pad", True)
    if pad[:2] != pad[2:] and not counts:
        raise ValueError("an avg_pool whose pads differ and do not count is not supported here")
    return padded(pad, (kernel[0] // 2, kernel[1] // 2), 0.0,
                  lambda own: nn.AvgPool2d(kernel, pair(layer.get("stride", layer["kernel"])), own,
                                           count_include_pad=counts))


class Positions(nn.Module):
    def __init__(self, positions, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(positions, channels))

    def forward(self, x):
        return x + self.weight


def module(layer, shape, vocabulary):
    """The module of a layer with parameters or windows; None: forward() does it by itself.

    shape: (channels, height, width), (channels,), or (positions, channels) of a sequence; () of its tokens
    """
    op, channels = layer["op"], shape[-1 if len(shape) == 2 else 0] if shape else 0
    if op == "embedding":
        return nn.Embedding(vocabulary, layer["channels"])
    if op == "position_embedding":
        return Positions(*shape)
    if op == "layer_norm":
        return nn.LayerNorm(channels, layer.get("epsilon", 1e-5))
    if op == "gelu":
        return nn.GELU(approximate="tanh" if layer.get("approximate") == "tanh" else "none")
    if op == "conv2d":
        return conv(layer, channels)
    if op == "linear":
        return nn.Linear(channels, layer["features"], layer.get("bias", True))
    if op == "bias":
        return Bias(channels)
    if op == "max_pool":
        return max_pool(layer)
    if op == "avg_pool":
        return avg_pool(layer)
    if op == "batch_norm":
        norm = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
        return norm(channels, layer.get("epsilon", 1e-5), layer.get("momentum", 0.1))
    if op == "lrn":
        return nn.LocalResponseNorm(layer["size"], layer.get("alpha", 1e-4), layer.get("beta", 0.75),
                                    layer.get("k", 1.0))
    if op == "dropout":
        return nn.Dropout(layer.get("ratio", 0.5))
    return None


class Network(nn.Module):
    """The layers of a model in their order, all but the loss; shapes are found by running one sample."""

    def __init__(self, model):
        super().__init__()
        size, self.vocabulary = model["input"], model["input"].get("vocabulary")
        if self.vocabulary:
            self.shape, first = (size["positions"],), torch.zeros(2, size["positions"], dtype=torch.long)
        else:
            self.shape = (size["channels"], size.get("height", 1), size.get("width", 1))
            if self.shape[1:] == (1, 1):
                self.shape = self.shape[:1]
            first = torch.zeros(2, *self.shape)
        self.plan, self.layers, self.heads, self.owners = [], nn.ModuleDict(), {}, {}
        values, before = {"input": first}, "input"
        for layer in model["layers"]:
            name, op = layer["name"], layer["op"]
            inputs = layer.get("inputs", [before])
            unknown = set(layer) - KEYS.get(op, set()) - {"name", "op", "inputs"}
            if op not in KEYS or unknown:
                raise ValueError(f"layer '{name}': unknown {'key ' + min(unknown) if unknown else 'op ' + op}")
            before = name
            if op == "softmax_cross_entropy":
                self.out = inputs[0]
                continue
            self.heads[name], self.owners[name] = layer.get("heads"), layer.get("tied")
            x = values[inputs[0]]
            made = module(layer, x.shape[1:] if x.is_floating_point() else (), self.vocabulary)
            if made is not None and not layer.get("tied"):
                self.layers[name.replace(".", "/")] = made
            self.plan.append((name, op, inputs))
            with torch.no_grad():
                values[name] = self.step(name, op, [values[i] for i in inputs])
        self.classes = values[self.out].shape[-1 if self.vocabulary else 1]
        self.places = self.shape if self.vocabulary else ()  # of a sample's labels
        for part in self.modules():
            if isinstance(part, nn.Embedding) or self.vocabulary and isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.02)
            elif isinstance(part, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            if isinstance(part, (nn.Conv2d, nn.Linear)) and part.bias is not None:
                nn.init.zeros_(part.bias)
        self.uses = {name: sum(inputs.count(name) for _, _, inputs in self.plan) for name, _, _ in self.plan}

    def step(self, name, op, x):
        if op == "relu":
            return F.relu(x[0])
        if op == "global_avg_pool":
            return x[0].mean((2, 3))
        if op == "add":
            return sum(x[1:], x[0])
        if op == "concat":
            return torch.cat(x, 1)
        if op == "flatten":
            return torch.flatten(x[0], 1)
        if op == "attention":
            q, k, v = (t.unflatten(2, (self.heads[name], -1)).transpose(1, 2) for t in x)
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        if self.owners[name]:
            return F.linear(x[0], self.layers[self.owners[name].replace(".", "/")].weight)
        return self.layers[name.replace(".", "/")](x[0])

    def forward(self, x):
        values, left = {"input": x}, dict(self.uses)
        for name, op, inputs in self.plan:
            values[name] = self.step(name, op, [values[i] for i in inputs])
            for i in inputs:  # what nobody needs any more is not kept
                left[i] = left.get(i, 2) - 1
                if left[i] == 0:
                    del values[i]
        return values[self.out]


def shard(network, kind):
    """Shards the parameters by FSDP2: each block of a transformer by itself, and elsewhere each module. What other layers
    use too, and what belongs to no block, is gathered by the whole network.

    kind   pass: gathered for each pass; step: kept gathered between the passes
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    shared = {owner for owner in network.owners.values() if owner}
    groups = {}
    for name, layer in network.layers.items():
        name = name.replace("/", ".")
        if name in shared or not any(True for _ in layer.parameters()):
            continue
        parts = name.split(".")
        block = next((".".join(parts[:i + 1]) for i, part in enumerate(parts) if part.isdigit()), name)
        groups.setdefault(block, []).append(layer)
    for layers in groups.values():
        fully_shard(layers, mesh=mesh, reshard_after_forward=kind == "pass")
    return fully_shard(network, mesh=mesh, reshard_after_forward=kind == "pass")


class Trainer:
    """Steps over a few batches that stay in memory."""

    def __init__(self, network, inner, batch, memory_format, precision):
        self.network, self.batches, self.precision = network, [], precision
        self.tokens = bool(inner.vocabulary)
        # small: the labels mean nothing, and a loss that overflows would be timed instead of training
        self.optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9)
        for _ in range(2):
            shape = (batch, *inner.shape)
            x = torch.randint(inner.vocabulary, shape) if inner.vocabulary else torch.randn(shape)
            if x.dim() == 4:
                x = x.contiguous(memory_format=memory_format)
            self.batches.append((x, torch.randint(inner.classes, (batch, *inner.places))))
        self.at, self.loss = 0, None

    def steps(self, n):
        for _ in range(n):
            x, labels = self.batches[self.at % len(self.batches)]
            self.at += 1
            self.optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
                scores = self.network(x)
                self.loss = (F.cross_entropy(scores.flatten(0, 1), labels.flatten()) if self.tokens else
                             F.cross_entropy(scores, labels))
            self.loss.backward()
            self.optimizer.step()

    def timed(self, n):
        """Seconds of one of n steps, on the slowest worker."""
        dist.barrier()
        start = time.perf_counter()
        self.steps(n)
        seconds = torch.tensor((time.perf_counter() - start) / n, dtype=torch.float64)
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        return float(seconds)


SLOW_FLOPS = 10e9  # the plain BLAS does 4e9 on a core whose vector units do 100e9
FORMATS = {"contiguous": torch.contiguous_format, "channels-last": torch.channels_last}


def choose_format(model, batch, wanted, precision):
    """The memory format whose steps without any exchange are the fastest; equal on all workers, whose times are one."""
    if wanted != "fastest":
        return wanted
    times = {}
    for name, memory_format in FORMATS.items():
        network = Network(model).to(memory_format=memory_format)
        trainer = Trainer(network, network, batch, memory_format, precision)
        trainer.steps(1)
        times[name] = trainer.timed(2)
    return min(times, key=times.get)


def matrix_flops():
    """Operations a second of a matrix product like a linear layer's, the best of a few."""
    a, b, best = torch.randn(128, 1024), torch.randn(1024, 1024), float("inf")
    for _ in range(5):
        start_s = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - start_s)
    return 2 * 128 * 1024 * 1024 / best


def start():
    """Joins the other workers; this worker's number and how many there are."""
    rank, size = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0)), int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
    lab = "GHP_LAB" in os.environ
    os.environ.setdefault("MASTER_ADDR", "10.77.0.1" if lab else "127.0.0.1")
    # outside the lab mpirun is every worker's parent: one port for all of its, below those that systems hand out
    os.environ.setdefault("MASTER_PORT", "29500" if lab else str(20000 + os.getppid() % 12000))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0" if lab else "lo")
    torch.set_num_threads(1)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    return rank, size, store


def leave(rank, size, store):
    """Nobody goes before all have done their last exchange, and rank 0, which holds the store, goes last.

    A barrier of gloo's does not do: a rank that has left it and closes its connections can take another's last message
    along, which then waits for half an hour.
    """
    store.set(f"done-{rank}", "")
    store.wait([f"done-{r}" for r in range(size)])
    store.set(f"left-{rank}", "")
    if rank == 0:
        store.wait([f"left-{r}" for r in range(size)])


def quartile(values, q):
    """Linear between order statistics, as ghp-run --compare has them."""
    values, at = sorted(values), q * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--format", choices=[*FORMATS, "fastest"], default="fastest")
    parser.add_argument("--precision", choices=["float", "bf16"], default="float")
    parser.add_argument("--shard", choices=["none", "step", "pass"], default="none")
    args = parser.parse_args()
    if min(args.batch, args.steps, args.repeats) < 1 or args.warmup < 0:
        parser.error("--batch, --steps and --repeats are at least 1, --warmup at least 0")
    return args


def main():
    args = arguments()
    rank, size, store = start()
    if args.batch % size != 0:
        sys.exit(f"ddp: cannot use {size} workers: global batch {args.batch} is not a multiple of {size}")
    with open(args.model, encoding="utf-8") as file:
        model = json.load(file)
    rate = matrix_flops()
    if rank == 0 and rate < SLOW_FLOPS:
        print(f"ddp: PyTorch's matrix product does only {rate / 1e9:.1f} GFLOP/s here, so the comparison is unfair to "
              "it: its BLAS is the plain one; install libopenblas0-pthread", file=sys.stderr)
    torch.manual_seed(1)
    chosen = choose_format(model, args.batch // size, args.format, args.precision)
    torch.manual_seed(1)
    network = Network(model)
    if args.shard == "none":  # fully_shard takes contiguous weights alone; convolutions keep the samples' format
        network = network.to(memory_format=FORMATS[chosen])
    weights = sum(p.numel() for p in network.parameters())
    torch.manual_seed(2 + rank)
    if args.shard == "none":
        wrapped = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    else:
        wrapped = shard(network, args.shard)
    trainer = Trainer(wrapped, network, args.batch // size, FORMATS[chosen], args.precision)
    trainer.steps(args.warmup)
    repeats = [trainer.timed(args.steps) for _ in range(args.repeats)]
    step = statistics.median(repeats)
    if rank == 0:
        print(json.dumps({
            "what": "ddp" if args.shard == "none" else "fsdp", "shard": args.shard, "torch": torch.__version__,
            "model": model["name"], "workers": size,
            "global_batch": args.batch, "weights": weights, "format": chosen,
            "precision": args.precision, "matrix_flops_per_s": rate,
            "steps": args.steps, "repeats": args.repeats, "step_s": step,
            "spread": (quartile(repeats, 0.75) - quartile(repeats, 0.25)) / step, "images_per_s": args.batch / step,
            "repeats_s": repeats, "loss": trainer.loss.item()}), flush=True)
    leave(rank, size, store)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        sys.exit(f"ddp: {type(problem).__name__}: {problem}")
