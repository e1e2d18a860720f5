"""bench/cpu/torch_steps.py - steps of a ghp.model/1 network by PyTorch in one process; prints one JSON line.

The network, optimizer and data are those of bench/lab/ddp.py.  Seconds are given twice: by the wall clock, and of the
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


def timed(trainer, steps, threads):
    wall, cpu = [], []
    for _ in range(steps):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        trainer.steps(1)
        wall.append(time.perf_counter() - wall_s)
        cpu.append((time.process_time() - cpu_s) / threads)
    return statistics.median(wall), statistics.median(cpu)


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--format", choices=ddp.FORMATS, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with open(args.model, encoding="utf-8") as file:
        model = json.load(file)
    torch.manual_seed(1)
    network = ddp.Network(model).to(memory_format=ddp.FORMATS[args.format])
    trainer = ddp.Trainer(network, network.shape, network.classes, args.batch, ddp.FORMATS[args.format])
    trainer.steps(2)
    wall_s, cpu_s = timed(trainer, args.steps, args.threads)
    rss = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"torch": torch.__version__, "format": args.format, "wall_s": wall_s, "cpu_s": cpu_s,
                      "peak_resident_bytes": rss, "matrix_flops_per_s": ddp.matrix_flops(),
                      "weights": sum(p.numel() for p in network.parameters()), "loss": trainer.loss.item()}))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        sys.exit(f"torch_steps: {type(problem).__name__}: {problem}")
