"""bench/gpu/against.py FILE BATCH - PyTorch's training step of a network of ghp's on one GPU, in JSON lines.

FILE is a description of ghp's (models/*.json) or a plan, which has one. A network of images is built from it layer by
layer, so that both sides train the same thing: channels_last, bf16 autocast over float weights, cudnn.benchmark,
synthetic samples that already lie on the GPU. A network like GPT-2 is bench/transformers_torch.py's of the same sizes,
as PyTorch's users write it. The optimizer is fused: SGD with momentum and weight decay, or AdamW. Each way of running
it (eager, CUDA graph, torch.compile, its max-autotune, these with a graph) is timed; the fastest counts. A line is printed after each way,
with the fastest so far: the last one counts, even if the time was up before all were timed ("untimed"). Times are
CUDA events around --steps steps, the median of --rounds; memory is the allocator's peak. `--rates` prints the matmul
and copy rates that floors are taken from instead.
"""
import argparse
import gc
import json
import os
import statistics
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import transformers_torch

WARMUP = 15
# how torch.compile is called, if at all; whether a CUDA graph plays the step
WAYS = {"eager": (None, False), "graph": (None, True), "compile": ("default", False), "compile+graph": ("default", True),
        "autotune": ("max-autotune-no-cudagraphs", False), "autotune+graph": ("max-autotune-no-cudagraphs", True)}


# what a network like GPT-2 consists of, biases apart
GPT2_LAYERS = {"embedding", "position_embedding", "layer_norm", "linear", "attention", "add", "gelu", "dropout",
               "softmax_cross_entropy"}


def description_of(path):
    with open(path) as file:
        read = json.load(file)
    return read["model"] if read["format"].startswith("ghp.plan") else read


def is_of_tokens(model):
    return "vocabulary" in model["input"]


def gpt2_of(model):
    """A network like GPT-2 with the sizes of the description; another one is refused."""
    layers = model["layers"]
    ops = [layer["op"] for layer in layers]
    strange = sorted(set(ops) - GPT2_LAYERS)
    if strange or "position_embedding" not in ops:
        sys.exit(f"against.py: '{model['name']}' is not like GPT-2 ({', '.join(strange) or 'no position_embedding'}); "
                 "run ghp alone by WAYS=")
    if any(layer.get("ratio", 0) > 0 for layer in layers):
        sys.exit(f"against.py: '{model['name']}' drops elements, and the network here does not; leave dropout out")
    first = {op: layers[ops.index(op)] for op in ("embedding", "attention")}
    sizes = argparse.Namespace(vocabulary=model["input"]["vocabulary"], positions=model["input"]["positions"],
                               width=first["embedding"]["channels"], heads=first["attention"]["heads"],
                               blocks=ops.count("attention"), tied=any("tied" in layer for layer in layers))
    return transformers_torch.Network(sizes)


class Network(nn.Module):
    """A model of ghp's: one module a layer with weights, the rest by function."""

    def __init__(self, model):
        super().__init__()
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


def optimizer_of(args, net):
    """One whose steps a CUDA graph can record."""
    if args.optimizer == "adamw":
        return torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, fused=True,
                                 capturable=args.device == "cuda")
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)


def make_loss(args, mode):
    """The network, and a function that gives the loss of one batch."""
    model = description_of(args.model)
    if is_of_tokens(model):
        net = gpt2_of(model).to(args.device).train()
        tokens = torch.randint(model["input"]["vocabulary"], (args.batch, model["input"]["positions"] + 1),
                               device=args.device)
        x, labels = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        run = torch.compile(net, mode=mode) if mode else net
        return net, lambda: run(x, labels)
    net = Network(model).to(args.device).to(memory_format=torch.channels_last).train()
    x = torch.randn(args.batch, *net.shapes[""], device=args.device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, net.shapes[net.names[-1]][0], (args.batch,), device=args.device)
    run = torch.compile(net, mode=mode) if mode else net
    return net, lambda: F.cross_entropy(run(x).float(), labels)


def make_step(args, mode):
    torch.manual_seed(1)
    net, loss_of = make_loss(args, mode)
    optimizer = optimizer_of(args, net)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = loss_of()
        loss.backward()
        if args.clip_norm > 0:
            nn.utils.clip_grad_norm_(net.parameters(), args.clip_norm, foreach=True)
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
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adamw"])
    parser.add_argument("--clip-norm", type=float, default=0, help="of all gradients together; 0: none")
    parser.add_argument("--try", dest="tries", action="store_true", help="one eager step on the processor, untimed")
    args = parser.parse_args()
    args.device = "cpu" if args.tries else "cuda"
    if args.describe:
        model = description_of(args.model)
        net = gpt2_of(model) if is_of_tokens(model) else Network(model)
        tokens = is_of_tokens(model)
        classes = model["input"]["vocabulary"] if tokens else net.shapes[net.names[-1]][0]
        print(json.dumps({"parameters": sum(p.numel() for p in net.parameters()), "classes": classes}))
        return
    if args.tries:
        make_step(args, None)()
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
        print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "way": best,
                          "step_s": ways[best][0], "images_per_s": args.batch / ways[best][0], "peak_bytes": ways[best][1],
                          "ways": {name: value[0] for name, value in ways.items()}, "failed": failed,
                          "untimed": wanted[done:]}), flush=True)
    if not ways:
        sys.exit(f"against.py: no way works: {failed}")


main()
