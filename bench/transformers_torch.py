"""bench/transformers_torch.py - training steps of a GPT-2-like network by PyTorch in one process; prints one JSON line.

As PyTorch's users write it: one linear layer for queries, keys and values, scaled_dot_product_attention, AdamW with its
loop over elements fused, gradients set to none; with --compile the network and the loss go through torch.compile.
Weights and tokens are random.  The time is the median of the steps after the first, which
compiles.
"""
import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, s, width = x.shape
        q, k, v = (t.view(n, s, self.heads, -1).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(width, dim=2))
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(heads.transpose(1, 2).reshape(n, s, width))
        return x + self.c_out(functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Network(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(args.vocabulary, args.width), nn.Embedding(args.positions, args.width)
        self.blocks = nn.ModuleList(Block(args.width, args.heads) for _ in range(args.blocks))
        self.ln_f = nn.LayerNorm(args.width)
        self.lm_head = nn.Linear(args.width, args.vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        if args.tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, tokens, labels):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("blocks", "heads", "width", "vocabulary", "positions", "batch"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--precision", choices=("float", "bf16"), default="float")
    return parser.parse_args()


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    network = Network(args)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    tokens = torch.randint(args.vocabulary, (args.batch, args.positions + 1))
    tokens, labels = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    run = torch.compile(network) if args.compile else network
    bf16 = args.precision == "bf16"

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = run(tokens, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    step()
    seconds = []
    while len(seconds) < 2 or sum(seconds) < args.seconds:
        began = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"torch": torch.__version__, "step_s": statistics.median(seconds), "steps": len(seconds),
                      "weights": sum(p.numel() for p in network.parameters()), "loss": loss}))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, RuntimeError) as problem:
        sys.exit(f"transformers_torch: {type(problem).__name__}: {problem}")
