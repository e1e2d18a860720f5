"""Low-rank adaptation of a small llama by ghp and by PyTorch, for test_lora.sh.

  * the network begins as it was; the loss of every step of AdamW is PyTorch's, on one worker and on several
  * --export-peft writes an adapter that PEFT reads, and with its loss; --export-hf writes the merged network
  * --init reads it again, and an adapter that PEFT wrote
  * what cannot be done is refused
"""
import json
import os
import re
import subprocess

import safetensors.torch
import torch
import transformers

try:
    import peft
except ImportError:
    peft = None

BIN = os.environ["GHP_BIN"]
FULL = os.environ.get("GHP_TEST_FULL") == "1"
POSITIONS, BATCH, STEPS, RATE, EPSILON = 32, 8, 15, 1e-2, 1e-4
RANK, ALPHA = 4, 12
RUN = ["--data", "bytes:text", "--shuffle", "off", "--threads", "1", "--numerics", "exact", "--overwrite", "--seed", "7",
       "--metrics", "metrics"]
LORA = ["--lora", f"{RANK}:{ALPHA}"]
SPLIT = "*.?_proj=out:2,*.gate_proj=out:2,*.up_proj=out:2,*.mlp.act=channel:2,*.mlp.gated=channel:2,*.down_proj=in:2," \
        "*.lora_A=in:2,*.q_proj.lora_B=out:2,*.q_proj.lora_add=channel:2,*.lora_scale=channel:2," \
        "*.?_rotary=channel:2,*.self_attn.heads=channel:2,*.o_proj=in:2"


def run(name, *args, ranks=0):
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks else []
    return subprocess.run([*launch, f"{BIN}/{name}", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def tool(name, *args, ranks=0):
    done = run(name, *args, ranks=ranks)
    assert done.returncode == 0, (name, args, done.stdout[-1000:], done.stderr[-2000:])
    return done


def refused(code, text, name, *args):
    done = run(name, *args)
    assert done.returncode == code and re.search(text, done.stderr), (text, done.returncode, done.stderr)


class Adapted(torch.nn.Module):
    """A linear layer that stays, and B A x times alpha / rank."""

    def __init__(self, base, a, b):
        super().__init__()
        self.base, self.a, self.b = base, torch.nn.Parameter(a), torch.nn.Parameter(b)

    def forward(self, x):
        return self.base(x) + ALPHA / RANK * (x @ self.a.T @ self.b.T)


def base():
    return transformers.AutoModelForCausalLM.from_pretrained("llama", attn_implementation="eager", dtype="float32").eval()


def with_adapter(folder):
    """The network with the folder's matrices, and those alone to be trained."""
    network = base()
    if peft:
        return peft.PeftModel.from_pretrained(network, folder, is_trainable=True)
    network.requires_grad_(False)
    config, tensors = json.load(open(f"{folder}/adapter_config.json")), safetensors.torch.load_file(f"{folder}/adapter_model.safetensors")
    assert config["r"] == RANK and config["lora_alpha"] == ALPHA and config["peft_type"] == "LORA", config
    for module in config["target_modules"]:
        parent, _, child = module.rpartition(".")
        a, b = (tensors.pop(f"base_model.model.{module}.lora_{part}.weight") for part in "AB")
        setattr(network.get_submodule(parent), child, Adapted(network.get_submodule(module), a, b))
    assert not tensors, tensors.keys()
    return network


def loss_of(network):
    tokens = torch.tensor(list(open("text", "rb").read()))
    n = (len(tokens) - 1) // POSITIONS
    logits = network(tokens[:-1].view(n, POSITIONS)).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[1:].flatten())


def train(network):
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=RATE, weight_decay=0.1,
                                  betas=(0.9, 0.95), eps=EPSILON)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        losses.append(loss_of(network))
        losses[-1].backward()
        optimizer.step()
    return [loss.item() for loss in losses] + [loss_of(network).item()]


def close(what, ours, theirs):
    """A float has 6e-8, and each loss is the mean of 256 sums over thousands of products."""
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
    assert worst <= 1e-6, (what, worst, ours, theirs)
    return worst


def plan(name, workers, *options):
    tool("ghp-plan", f"llama@{POSITIONS}", "--profile", "llama.profile", "--workers", str(workers), "--batch", str(BATCH),
         "--optimizer", "adamw", "--no-break-even", "-o", name, *options)


def trained(name, steps, rate, ranks, *options):
    """The losses of the steps; the checkpoint is NAME.checkpoint."""
    tool("ghp-run", name, "--steps", str(steps), "--lr", str(rate), "--weight-decay", "0.1", "--beta2", "0.95",
         "--epsilon", str(EPSILON), "--checkpoint", f"{name}.checkpoint", *RUN, *options, ranks=ranks)
    return [json.loads(line)["loss"] for line in open("metrics")][:steps]


def written(name, option, folder):
    tool("ghp-inspect", name, option, folder, "--weights", f"{name}.checkpoint/checkpoint.safetensors")
    return folder


def check_first():
    """The network begins as it was: B is zero, and A uniform as PyTorch has it."""
    plan("first", 1, *LORA)
    close("first", trained("first", 1, 0, 1), [loss_of(base()).item()])
    tensors = safetensors.torch.load_file(written("first", "--export-peft", "first.adapter") + "/adapter_model.safetensors")
    assert len(tensors) == 8, tensors.keys()
    for name, value in tensors.items():
        if "lora_B" in name:
            assert not value.any(), name
        else:
            bound = value.shape[1]**-0.5
            assert 0.9 * bound < value.abs().max() <= bound and abs(value.mean()) < 0.2 * bound, name


def check_training():
    theirs = train(with_adapter("first.adapter"))
    assert theirs[0] - theirs[-1] > 0.05, theirs  # something is learned
    ways = [(1, []), (2, ["--force", SPLIT])]
    if FULL:
        ways += [(4, ["--force", SPLIT]), (2, ["--stages", "1,layers.1.input_layernorm:1"]), (4, [])]
    worst = 0
    for workers, options in ways:
        plan("lora.plan", workers, *LORA, *options)
        worst = max(worst, close((workers, options), trained("lora.plan", STEPS, RATE, workers), theirs[:-1]))
    close("adapter", [loss_of(with_adapter(written("lora.plan", "--export-peft", "adapter"))).item()], theirs[-1:])
    written("lora.plan", "--export-hf", "merged")
    merged = transformers.AutoModelForCausalLM.from_pretrained("merged", dtype="float32")
    close("merged", [loss_of(merged).item()], theirs[-1:])
    print(f"losses differ by {worst:.1e} of them")


def evaluated(name, init):
    """The loss of the weights of `init` on the text."""
    done = tool("ghp-run", name, "--evaluate", "--init", init, "--data", "bytes:text", "--threads", "1", "--numerics", "exact",
                "--json", ranks=1)
    return json.loads(done.stdout)["loss"]


def check_read():
    """An adapter is read again with the network that its config names: ghp's own, and one that PEFT wrote."""
    plan("lora.plan", 1, *LORA)
    network = with_adapter("adapter")
    close("read", [evaluated("lora.plan", "adapter")], [loss_of(network).item()])
    if peft:
        train(network)
        network.save_pretrained("theirs")
        close("PEFT's", [evaluated("lora.plan", "theirs")], [loss_of(network).item()])
    plan("other.plan", 1, "--lora", f"{RANK}")
    refused(1, f"plan with --lora {RANK}:{ALPHA}", "ghp-run", "other.plan", "--evaluate", "--init", "adapter", "--data",
            "bytes:text")
    refused(1, f"plan it with --lora {RANK}:{ALPHA}", "ghp-run", "full.plan", "--evaluate", "--init", "adapter", "--data",
            "bytes:text")


def check_fixed():
    """All but the matrices stays, bit by bit, and nothing is kept for its updates."""
    before = safetensors.torch.load_file("first.checkpoint/checkpoint.safetensors")
    after = safetensors.torch.load_file("lora.plan.checkpoint/checkpoint.safetensors")
    assert before.keys() == after.keys()
    for name in before:
        assert name == "step" or ("lora_" in name) != torch.equal(before[name], after[name]), name
    moments = [name for name in after if re.match("(momentum|variance|second)", name)]
    assert moments and all("lora_" in name for name in moments), after.keys()
    plan("full.plan", 1)
    for key in "peak_bytes", "predicted_step_s":
        ours, full = (float(re.search(f'"{key}": ([-+.e0-9]+)', open(name).read()).group(1)) for name in ("first", "full.plan"))
        assert 0 < ours < 0.8 * full, (key, ours, full)


def check_frozen():
    """A network of which some parameters were frozen is its folder's again."""
    plan("frozen.plan", 1, "--freeze", "layers.0")
    trained("frozen.plan", 1, RATE, 1)
    written("frozen.plan", "--export-hf", "frozen")
    config = json.load(open("frozen/config.json"))
    assert config["pad_token_id"] == 3, config  # of the folder alone


def check_refusals():
    refused(1, "names no linear layer .* such as 'layers.0.self_attn.q_proj'", "ghp-plan", "llama", "--profile",
            "llama.profile", "--workers", "1", "--batch", "8", "--lora", "4", "--lora-targets", "q_prof")
    refused(2, "write RANK or RANK:ALPHA", "ghp-plan", "llama", "--profile", "llama.profile", "--workers", "1", "--batch",
            "8", "--lora", "4:")
    refused(2, "add --lora RANK", "ghp-plan", "llama", "--profile", "llama.profile", "--workers", "1", "--batch", "8",
            "--lora-targets", "q_proj")
    checkpoint = ["--weights", "lora.plan.checkpoint/checkpoint.safetensors"]
    refused(1, "has no low-rank matrices; plan it with --lora", "ghp-inspect", "full.plan", "--export-peft", "x", *checkpoint)
    refused(2, "give one of them that", "ghp-inspect", "lora.plan", "--export-peft", "x", "--export-hf", "y", *checkpoint)
    plan("head.plan", 1, *LORA, "--freeze-except", "norm.*")
    refused(1, "'norm.weight' is trained too", "ghp-inspect", "head.plan", "--export-peft", "x", *checkpoint)


torch.manual_seed(3)
with open("text", "wb") as text:
    text.write(bytes(torch.randint(4, 64, (POSITIONS * BATCH + 1,)).tolist()))
network = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=3))
network.save_pretrained("llama")
tool("ghp-profile", "--analytic", "F=1e10,bandwidth=1e8,latency=1e-6", "--model", f"llama@{POSITIONS}", *LORA, "-o",
     "llama.profile")
check_first()
check_training()
check_fixed()
check_read()
check_frozen()
check_refusals()
