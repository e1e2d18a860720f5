"""bench/cpu/torch_steps.py - steps of a network by PyTorch in one process; prints one JSON line.

Optimizer and data are those of bench/lab/ddp.py, and so is a ghp.model/1 network; others are those of
bench/cpu/torch_networks.py, which --export writes for ghp, too. Seconds are given twice: by the wall clock, and of the
process itself over its threads, which says what the work costs on a machine that others use at the same time.
"""
import argparse
import json
import pathlib
import resource
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lab"))
import torch  # noqa: E402

import ddp  # noqa: E402
import torch_networks  # noqa: E402


def timed(trainer, steps, threads):
    wall, cpu = [], []
    for _ in range(steps):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        trainer.steps(1)
        wall.append(time.perf_counter() - wall_s)
        cpu.append((time.process_time() - cpu_s) / threads)
    return statistics.median(wall), statistics.median(cpu)


def make(name):
    if name.partition(".")[0] in torch_networks.PACKAGES:
        return torch_networks.Brought(name)
    with open(name, encoding="utf-8") as file:
        return ddp.Network(json.load(file))


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True, help="a file of ghp.model/1, or a name of torch_networks")
    parser.add_argument("--export", help="write the network into this ONNX file, and end")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--format", choices=ddp.FORMATS, default="contiguous")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    network = make(args.model)
    if args.export:
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
        import ghp
        ghp.export(network.module, torch.randn(2, *network.shape), args.export, check=False)
        return
    network = network.to(memory_format=ddp.FORMATS[args.format])
    trainer = ddp.Trainer(torch.compile(network) if args.compile else network, network, args.batch,
                          ddp.FORMATS[args.format], "float")
    trainer.steps(2)
    wall_s, cpu_s = timed(trainer, args.steps, args.threads)
    rss = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"torch": torch.__version__, "format": args.format, "compiled": args.compile, "wall_s": wall_s, "cpu_s": cpu_s,
                      "peak_resident_bytes": rss, "matrix_flops_per_s": ddp.matrix_flops(),
                      "weights": sum(p.numel() for p in network.parameters()), "loss": trainer.loss.item()}))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        sys.exit(f"torch_steps: {type(problem).__name__}: {problem}")
