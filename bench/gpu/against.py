"""bench/gpu/against.py MODEL BATCH - PyTorch's training step of a network of ghp's on one GPU, in JSON lines.

The network is built from ghp's own description (models/*.json), layer by layer, so that both sides train the same
thing: channels_last, bf16 autocast over float weights, cudnn.benchmark, SGD with momentum and weight decay (foreach and
fused where there is), synthetic samples that already lie on the GPU. Each way of running it (eager, CUDA graph,
torch.compile, its max-autotune, these with a graph) is timed; the fastest counts. A line is printed after each way,
with the fastest so far: the last one counts, also where the time was up before all were timed ("untimed"). Times are
CUDA events around --steps steps, the median of --rounds; memory is the allocator's peak. `--rates` prints the matmul
and copy rates that floors are taken from instead.
"""
import argparse
import gc
import json
import statistics
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

WARMUP = 15
# how torch.compile is called, if at all; whether a CUDA graph plays the step
WAYS = {"eager": (None, False), "graph": (None, True), "compile": ("default", False), "compile+graph": ("default", True),
        "autotune": ("max-autotune-no-cudagraphs", False), "autotune+graph": ("max-autotune-no-cudagraphs", True)}


class Network(nn.Module):
    """A model of ghp's: one module a layer with weights, the rest by function."""

    def __init__(self, path):
        super().__init__()
        with open(path) as file:
            model = json.load(file)
        size = model["input"]
        self.layers = model["layers"]
        self.parts = nn.ModuleDict()
        self.shapes = {"": (size["channels"], size["height"], size["width"])}
        self.names = []
        for i, layer in enumerate(self.layers):
            self.names.append(layer["name"])
            self.make(i, layer)

    def inputs(self, i):
        before = self.names[i - 1] if i > 0 else ""
        return self.layers[i].get("inputs", [before])

    def make(self, i, layer):
        name, op = layer["name"], layer["op"]
        c, h, w = self.shapes[self.inputs(i)[0]]
        module, bias = None, layer.get("bias", True)
        if op == "conv2d":
            module = nn.Conv2d(c, layer["channels"], pair(layer["kernel"]), pair(layer.get("stride", 1)), pad(layer),
                               pair(layer.get("dilation", 1)), layer.get("groups", 1), bias=bias)
        elif op == "linear":
            module = nn.Linear(c * h * w, layer["features"], bias=bias)
        elif op == "batch_norm":
            module = nn.BatchNorm2d(c, layer.get("epsilon", 1e-5), layer.get("momentum", 0.1))
        if module is not None:
            self.parts[key_of(name)] = module
        with torch.no_grad():
            shape = self.apply_layer(layer, [torch.zeros(2, *self.shapes[n]) for n in self.inputs(i)]).shape[1:]
        self.shapes[name] = tuple(shape) + (1, 1) if len(shape) == 1 else tuple(shape)

    def apply_layer(self, layer, x):
        op, key = layer["op"], key_of(layer["name"])
        if op == "linear":
            return self.parts[key](torch.flatten(x[0], 1))
        if key in self.parts:
            return self.parts[key](x[0])
        if op == "relu":
            return F.relu(x[0])
        if op == "max_pool":
            return F.max_pool2d(x[0], pair(layer["kernel"]), pair(layer.get("stride", layer["kernel"])), pad(layer))
        if op == "avg_pool":
            return F.avg_pool2d(x[0], pair(layer["kernel"]), pair(layer.get("stride", layer["kernel"])), pad(layer),
                                count_include_pad=layer.get("count_pad", True))
        if op == "global_avg_pool":
            return F.adaptive_avg_pool2d(x[0], 1)
        if op == "lrn":
            return F.local_response_norm(x[0], layer["size"], layer["alpha"], layer["beta"], layer["k"])
        if op == "dropout":
            return F.dropout(x[0], layer["ratio"], self.training)
        if op == "add":
            return x[0] + x[1]
        if op == "concat":
            return torch.cat(x, 1)
        if op == "flatten":
            return torch.flatten(x[0], 1)
        if op == "softmax_cross_entropy":
            return torch.flatten(x[0], 1)
        sys.exit(f"against.py: no '{op}' here; add it to apply_layer")

    def forward(self, x):
        values = {"": x}
        for i, layer in enumerate(self.layers):
            values[layer["name"]] = self.apply_layer(layer, [values[n] for n in self.inputs(i)])
        return values[self.names[-1]]


def key_of(name):
    return name.replace(".", "_")


def pair(value):
    return tuple(value) if isinstance(value, list) else (value, value)


def pad(layer):
    value = layer.get("pad", 0)
    if isinstance(value, list) and len(value) == 4:
        if value[0] != value[2] or value[1] != value[3]:
            sys.exit("against.py: uneven padding is not built here")
        value = value[:2]
    return pair(value)


def timed(args, step):
    for _ in range(WARMUP):
        step()
    seconds = []
    for _ in range(args.rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(args.steps):
            step()
        end.record()
        torch.cuda.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3 / args.steps)
    return statistics.median(seconds)


def make_step(args, mode):
    torch.manual_seed(1)
    net = Network(args.model).cuda().to(memory_format=torch.channels_last).train()
    x = torch.randn(args.batch, *net.shapes[""], device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, net.shapes[net.names[-1]][0], (args.batch,), device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    run = torch.compile(net, mode=mode) if mode else net

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=args.precision == "bf16"):
            loss = F.cross_entropy(run(x).float(), labels)
        loss.backward()
        optimizer.step()

    return step


def graphed(step):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def attempt(args, mode, graph):
    gc.collect()  # a way that went before leaves nothing that would count
    if mode:
        torch.compiler.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    step = make_step(args, mode)
    if graph:
        step = graphed(step)
    seconds = timed(args, step)
    return seconds, torch.cuda.max_memory_allocated()


def rates(args):
    n, dtype = 8192, torch.bfloat16 if args.precision == "bf16" else torch.float32
    a, b = torch.randn(n, n, device="cuda", dtype=dtype), torch.randn(n, n, device="cuda", dtype=dtype)
    seconds = timed(args, lambda: torch.mm(a, b))
    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    copied = timed(args, lambda: target.copy_(source))
    return {"matmul_flops": 2 * n**3 / seconds, "copy_Bps": 2 * source.numel() / copied}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("batch", nargs="?", type=int)
    parser.add_argument("--precision", default="bf16", choices=["bf16", "tf32", "float"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ways", default="eager graph compile compile+graph", help="of " + ", ".join(WAYS))
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--describe", action="store_true", help="parameters and classes; needs no GPU")
    args = parser.parse_args()
    if args.describe:
        net = Network(args.model)
        print(json.dumps({"parameters": sum(p.numel() for p in net.parameters()),
                          "classes": net.shapes[net.names[-1]][0]}))
        return
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    if args.rates:
        print(json.dumps(rates(args)))
        return
    wanted = args.ways.split()
    if not wanted or not set(wanted) <= set(WAYS):
        sys.exit(f"against.py: --ways takes {', '.join(WAYS)}")
    ways, failed = {}, {}
    for done, name in enumerate(wanted, 1):
        try:
            ways[name] = attempt(args, *WAYS[name])
        except Exception as error:  # a way that does not work for a network does not count
            failed[name] = (str(error).splitlines() or [type(error).__name__])[0][:120]
        if not ways:
            continue
        best = min(ways, key=lambda name: ways[name][0])
        print(json.dumps({"torch": torch.__version__, "way": best, "step_s": ways[best][0],
                          "images_per_s": args.batch / ways[best][0], "peak_bytes": ways[best][1],
                          "ways": {name: value[0] for name, value in ways.items()}, "failed": failed,
                          "untimed": wanted[done:]}), flush=True)
    if not ways:
        sys.exit(f"against.py: no way works: {failed}")


main()
