"""GPT-2 and llama by PyTorch's own operations, for test_transformer_torch.sh.

    transformer_torch.py make NETWORK...    a folder each, of random weights as transformers writes them, and a text
    transformer_torch.py compare            every folder of runs/, NETWORK.POSITIONS.BITS.IGNORED.PLAN: what ghp trained
                                            there, compared with PyTorch; exits 1 if one is further off than LIMITS

    transformer_torch.py prose RUN          a folder of network/, run.json of ghp-run and the text: the same steps
                                            by PyTorch, of the same windows in the same order; exits 1 where the
                                            losses of the windows that test are further apart than 0.01

IGNORED is a label that does not count, or "none".
"""
import glob
import json
import math
import os
import random
import struct
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(sys.path[0], "..", "learn"))
from torch_weights import read_tensors

BLOCKS, WIDTH, HEADS, CONTEXT, WINDOWS = 2, 32, 4, 64, 8
INNER = {"gpt2": 128, "llama": 96}
NETWORKS = {"gpt": ("gpt2", False, 256), "gpt-tied": ("gpt2", True, 256), "gpt-odd": ("gpt2", True, 257),
            "llama": ("llama", False, 256), "llama-tied": ("llama", True, 256)}
KEYS = {"gpt2": 32, "llama": 16}  # channels of keys and of values
STEPS, RATE, DECAY, BETAS, CLIP = 10, 0.003, 0.1, (0.9, 0.95), 0.5
# of a loss, of a norm of all gradients, and of each gradient's tensor in Euclidean norm
LIMITS = {"32": 1e-5, "64": 1e-10}


# ---- files ----

def write_tensors(path, tensors):
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + 4 * tensor.numel()]}
        at += 4 * tensor.numel()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(struct.pack("<%df" % tensor.numel(), *tensor.flatten().tolist()))


def shapes(family, tied, vocabulary):
    inner, keys = INNER[family], KEYS[family]
    if family == "gpt2":
        block = {"ln_1.weight": [WIDTH], "ln_1.bias": [WIDTH], "attn.c_attn.weight": [WIDTH, 3 * WIDTH],
                 "attn.c_attn.bias": [3 * WIDTH], "attn.c_proj.weight": [WIDTH, WIDTH], "attn.c_proj.bias": [WIDTH],
                 "ln_2.weight": [WIDTH], "ln_2.bias": [WIDTH], "mlp.c_fc.weight": [WIDTH, inner],
                 "mlp.c_fc.bias": [inner], "mlp.c_proj.weight": [inner, WIDTH], "mlp.c_proj.bias": [WIDTH]}
        begin, blocks = {"wte.weight": [vocabulary, WIDTH], "wpe.weight": [CONTEXT, WIDTH]}, "h"
        end = {"ln_f.weight": [WIDTH], "ln_f.bias": [WIDTH]}
    else:
        block = {"input_layernorm.weight": [WIDTH], "self_attn.q_proj.weight": [WIDTH, WIDTH],
                 "self_attn.k_proj.weight": [keys, WIDTH], "self_attn.v_proj.weight": [keys, WIDTH],
                 "self_attn.o_proj.weight": [WIDTH, WIDTH], "post_attention_layernorm.weight": [WIDTH],
                 "mlp.gate_proj.weight": [inner, WIDTH], "mlp.up_proj.weight": [inner, WIDTH],
                 "mlp.down_proj.weight": [WIDTH, inner]}
        begin, blocks, end = {"embed_tokens.weight": [vocabulary, WIDTH]}, "layers", {"norm.weight": [WIDTH]}
    prefix = {"gpt2": "transformer.", "llama": "model."}[family]
    own = dict(begin)
    for i in range(BLOCKS):
        own.update(("%s.%d.%s" % (blocks, i, name), shape) for name, shape in block.items())
    own.update(end)
    named = {prefix + name: shape for name, shape in own.items()}
    return named if tied else {**named, "lm_head.weight": [vocabulary, WIDTH]}


def config(family, tied, vocabulary):
    if family == "gpt2":
        return {"model_type": "gpt2", "vocab_size": vocabulary, "n_positions": CONTEXT, "n_embd": WIDTH,
                "n_layer": BLOCKS, "n_head": HEADS, "activation_function": "gelu_new", "attn_pdrop": 0.0,
                "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": tied}
    return {"model_type": "llama", "vocab_size": vocabulary, "max_position_embeddings": CONTEXT, "hidden_size": WIDTH,
            "intermediate_size": INNER[family], "num_hidden_layers": BLOCKS, "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS * KEYS[family] // WIDTH, "hidden_act": "silu", "tie_word_embeddings": tied}


def make(network):
    """Weights so large that attention looks somewhere, and norms and biases that are not one and zero."""
    family, *rest = NETWORKS[network]
    draw = torch.Generator().manual_seed(5)
    tensors = {}
    for name, shape in shapes(family, *rest).items():
        value = torch.randn(shape, generator=draw)
        norm = len(shape) == 1 and name.endswith(".weight")
        tensors[name] = 1 + 0.1 * value if norm else (0.3 if len(shape) == 2 else 0.1) * value
    os.makedirs(network)
    write_tensors(network + "/model.safetensors", tensors)
    with open(network + "/config.json", "w") as file:
        json.dump(config(family, *rest), file)


def make_text():
    draw = random.Random(7)
    with open("text", "wb") as file:
        file.write(bytes((37 * (i // 3) + draw.randrange(9)) % 256 for i in range(WINDOWS * CONTEXT + 1)))


def windows(positions):
    """Of the text's first bytes: as many as a batch has."""
    with open("text", "rb") as file:
        ids = torch.tensor(list(file.read())[:WINDOWS * positions + 1])
    return ids[:-1].view(WINDOWS, positions), ids[1:].view(WINDOWS, positions)


# ---- the networks ----

def heads_of(x, n):
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def attention(q, k, v):
    later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    y = scores.masked_fill(later, -math.inf).softmax(3) @ v
    return y.transpose(1, 2).flatten(2)


def gpt2(w, ids):
    def norm(name, x):
        return F.layer_norm(x, [WIDTH], w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][:ids.shape[1]]
    for i in range(BLOCKS):
        h = "transformer.h.%d." % i
        q, k, v = linear(h + "attn.c_attn", norm(h + "ln_1", x)).split(WIDTH, 2)
        x = x + linear(h + "attn.c_proj", attention(heads_of(q, HEADS), heads_of(k, HEADS), heads_of(v, HEADS)))
        inner = F.gelu(linear(h + "mlp.c_fc", norm(h + "ln_2", x)), approximate="tanh")
        x = x + linear(h + "mlp.c_proj", inner)
    return norm("transformer.ln_f", x) @ w.get("lm_head.weight", w["transformer.wte.weight"]).t()


def rotary(x):
    size = x.shape[3]
    position, pair = torch.arange(x.shape[2], dtype=x.dtype), torch.arange(0, size, 2, dtype=x.dtype)
    turns = position[:, None] * 10000 ** (-pair / size)
    a, b = x[..., :size // 2], x[..., size // 2:]
    return torch.cat([a * turns.cos() - b * turns.sin(), b * turns.cos() + a * turns.sin()], 3)


def llama(w, ids):
    def norm(name, x):
        return x * (x.square().mean(2, keepdim=True) + 1e-6).rsqrt() * w[name + ".weight"]

    x = w["model.embed_tokens.weight"][ids]
    kv_heads = HEADS * KEYS["llama"] // WIDTH
    for i in range(BLOCKS):
        h = "model.layers.%d." % i
        y = norm(h + "input_layernorm", x)
        q, k, v = (F.linear(y, w[h + "self_attn.%s_proj.weight" % part]) for part in "qkv")
        k, v = (heads_of(part, kv_heads).repeat_interleave(HEADS // kv_heads, 1) for part in (k, v))
        y = attention(rotary(heads_of(q, HEADS)), rotary(k), v)
        x = x + F.linear(y, w[h + "self_attn.o_proj.weight"])
        y = norm(h + "post_attention_layernorm", x)
        gate, up = (F.linear(y, w[h + "mlp.%s_proj.weight" % part]) for part in ("gate", "up"))
        x = x + F.linear(F.silu(gate) * up, w[h + "mlp.down_proj.weight"])
    return norm("model.norm", x) @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).t()


# ---- PyTorch's training ----

def adamw(w):
    matrices, others = [p for p in w.values() if p.dim() >= 2], [p for p in w.values() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0}]
    return torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=1e-8)


class Reference:
    """The first step's gradients, and STEPS steps of AdamW, clipped, over all windows at once."""

    def __init__(self, network, positions, bits, ignored):
        family = NETWORKS[network][0]
        self.forward = {"gpt2": gpt2, "llama": llama}[family]
        kind = {"32": torch.float32, "64": torch.float64}[bits]
        self.w = {name: value.to(kind).requires_grad_()
                  for name, value in read_tensors(network + "/model.safetensors").items()}
        self.ids, self.labels = windows(int(positions))
        self.ignored = -100 if ignored == "none" else int(ignored)
        self.losses, self.norms = [], []
        self.train()

    def train(self):
        optimizer = adamw(self.w)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = F.cross_entropy(self.forward(self.w, self.ids).flatten(0, 1), self.labels.flatten(),
                                   ignore_index=self.ignored)
            loss.backward()
            if step == 0:
                self.gradients = {name: p.grad.clone() for name, p in self.w.items()}
            self.losses.append(loss.item())
            self.norms.append(torch.nn.utils.clip_grad_norm_(self.w.values(), CLIP).item())
            optimizer.step()


def as_ghp(tensors):
    """Tensors by the names in ghp's checkpoints: those of queries, keys and values are apart there."""
    ours = {}
    for name, value in tensors.items():
        name = name.removeprefix("transformer.").removeprefix("model.")
        if "c_attn" in name:
            for part, cut in zip("qkv", value.split(WIDTH, -1)):
                ours[name.replace("c_attn", part)] = cut
        else:
            ours[name] = value
    return ours


# ---- comparing ----

def off(a, b):
    return abs(a - b) / abs(b)


def gradients_off(reference, path):
    """The worst |g - g_ref| / |g_ref| of a tensor, and its name. The gradient of a key's bias is zero but for rounding:
    it adds the same to all scores of a query. It is compared relative to that of its weight."""
    theirs, worst, which = as_ghp(reference.gradients), 0.0, "none"
    tensors = read_tensors(path)
    ours = {name.removeprefix("momentum."): value for name, value in tensors.items() if name.startswith("momentum.")}
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    for name, value in theirs.items():
        if name == "wpe.weight":  # rows after the sample's positions are not there
            value = value[:len(ours[name])]
        size = theirs[name.replace(".bias", ".weight")] if name.endswith("attn.k.bias") else value
        far = ((ours[name] - value).double().norm() / size.double().norm()).item()
        if not far <= worst:
            worst, which = far, name
    return worst, which


def metrics(path):
    with open(path) as file:
        steps = [line for line in map(json.loads, file) if "loss" in line]
    return [step["loss"] for step in steps], [step["gradient_norm"] for step in steps]


def compare():
    references, failures = {}, 0
    for run in sorted(glob.glob("runs/*")):
        *key, plan = os.path.basename(run).split(".")
        key = tuple(key)
        if key not in references:
            references[key] = Reference(*key)
        reference, limit = references[key], LIMITS[key[2]]
        gradient, tensor = gradients_off(reference, run + "/first/checkpoint.safetensors")
        losses, norms = metrics(run + "/metrics")
        loss = max(map(off, losses, reference.losses))
        # in float AdamW moves a weight whose gradient is nearly zero as rounding says, which later norms show
        norm = max(map(off, norms[:1] if key[2] == "32" else norms, reference.norms))
        clipped = sum(norm > CLIP for norm in reference.norms)
        good = max(gradient, loss, norm) <= limit and len(losses) == STEPS and clipped >= STEPS // 2
        failures += not good
        print("%-10s %s positions, %s bits, label %4s ignored, %-11s losses off by %.1e, norms %.1e, gradients %.1e"
              % (*key, plan + ":", loss, norm, gradient), end="\n" if good else "   FAILED: %s\n" % tensor)
    return failures == 0 and len(references) > 0


# ---- a longer training ----

def philox(counter, key):
    """Philox 4x32-10 (Salmon and others, 2011): four words of 32 bits from four, by a key of two."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def order(n, seed, epoch):
    """An epoch's samples as executor/data/order.c shuffles them: from the last place down."""
    key = (seed + 2 * 0x9E3779B97F4A7C15) & (2 ** 64 - 1)
    samples = list(range(n))
    for place in range(n - 1, 0, -1):
        r = philox((place, 0, epoch, 0x73687566), (key & 0xFFFFFFFF, key >> 32))
        other = (r[1] << 32 | r[0]) % (place + 1)
        samples[place], samples[other] = samples[other], samples[place]
    return samples


def prose(folder):
    with open(folder + "/run.json") as file:
        run = json.load(file)
    with open(folder + "/text", "rb") as file:
        text = torch.tensor(list(file.read()))
    n = (len(text) - 1) // CONTEXT
    ids, labels = text[:n * CONTEXT].view(n, CONTEXT), text[1:n * CONTEXT + 1].view(n, CONTEXT)
    train = n - run["test_samples"]
    batch, losses = run["global_batch"], []
    w = {name: value.requires_grad_() for name, value in read_tensors(folder + "/network/model.safetensors").items()}
    optimizer, steps = adamw(w), train // batch
    for step in range(run["steps"]):
        if step % steps == 0:
            shuffled = order(train, run["seed"], step // steps)
        at = shuffled[step % steps * batch:(step % steps + 1) * batch]
        optimizer.zero_grad()
        loss = F.cross_entropy(gpt2(w, ids[at]).flatten(0, 1), labels[at].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        test = F.cross_entropy(gpt2(w, ids[train:]).flatten(0, 1), labels[train:].flatten()).item()
    apart = [max(map(abs, map(off, run["losses"][i:i + 100], losses[i:i + 100]))) for i in range(0, len(losses), 100)]
    print("%d training windows, %d that test; %d steps of %d, first loss %.6f here, %.6f by PyTorch"
          % (train, n - train, len(losses), batch, run["losses"][0], losses[0]))
    print("losses of steps off by at most, in each 100 steps: " + " ".join("%.1e" % a for a in apart))
    print("validation loss %.6f here, %.6f by PyTorch" % (run["test_loss"], test))
    return abs(run["test_loss"] - test) <= 0.01 and len(losses) == len(run["losses"]) == run["steps"]


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "make":
        make_text()
        for network in sys.argv[2:]:
            make(network)
        return True
    return prose(sys.argv[2]) if sys.argv[1] == "prose" else compare()


sys.exit(0 if main() else 1)
