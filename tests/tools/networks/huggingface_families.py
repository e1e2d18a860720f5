"""Families of transformers through ghp's tools: small networks with random weights, made here, are trained by ghp on one
worker and on several, and come back as folders.

    huggingface_families.py FAMILY...   all of them unless some are named; without GHP_TEST_FULL=1 some, on two workers

For each family:
  * a step of gradient descent changes each tensor by PyTorch's gradient
  * the loss of every step of AdamW is PyTorch's, on one worker and on several, whose layers are divided by samples, and by
    channels, positions and vocabulary
  * --export-hf writes a folder that transformers loads, with the trained weights' loss, in one file and in several
"""
import json
import os
import re
import subprocess
import sys

import numpy
import safetensors.torch
import torch
import transformers

BIN = os.environ["GHP_BIN"]
POSITIONS, BATCH, STEPS, RATE, EPSILON = 32, 8, 10, 1e-3, 1e-4
RUN = ["--threads", "1", "--numerics", "exact", "--overwrite", "--metrics", "metrics"]
FULL = os.environ.get("GHP_TEST_FULL") == "1"
SMALL = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=3)
LLAMA_SPLIT = "*.?_proj=out:2,*.gate_proj=out:2,*.up_proj=out:2,*.mlp.act=channel:2,*.mlp.gated=channel:2,*.down_proj=in:2," \
              "*.?_rotary=channel:2,*.self_attn.heads=channel:2,*.o_proj=in:2,lm_head=out:2," \
              "loss=channel:2,embed_tokens=rows:2,*layernorm=position:2,*add_?=position:2,norm=position:2"
HEAD_NORMS = ",*.?_norm=channel:2"

# name: the config's class, what differs from SMALL (None: the key is left out), and how several workers divide it
CASES = {
    "llama": ("Llama", dict(num_key_value_heads=2, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
              LLAMA_SPLIT),
    "mistral": ("Mistral", dict(num_key_value_heads=2, head_dim=16, sliding_window=7), LLAMA_SPLIT),
    "qwen2": ("Qwen2", dict(num_key_value_heads=2, tie_word_embeddings=True, use_sliding_window=True, sliding_window=9,
                            max_window_layers=1), LLAMA_SPLIT),
    "qwen3": ("Qwen3", dict(num_key_value_heads=2, head_dim=16), LLAMA_SPLIT + HEAD_NORMS),
    "gemma": ("Gemma", dict(num_key_value_heads=2, head_dim=16, hidden_act="gelu"), LLAMA_SPLIT),
    "gemma2": ("Gemma2", dict(num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=24, sliding_window=11,
                              attn_logit_softcapping=0.5, final_logit_softcapping=2.0),
               LLAMA_SPLIT + ",embed_scale=position:2,cap.*=channel:2"),
    "olmo2": ("Olmo2", dict(num_key_value_heads=2), LLAMA_SPLIT),
    "phi3": ("Phi3", dict(num_key_value_heads=2, partial_rotary_factor=0.75), LLAMA_SPLIT),
    "llama3": ("Llama", dict(num_key_value_heads=2, rope_parameters={
        "rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16}), LLAMA_SPLIT),
    "linear": ("Llama", dict(num_key_value_heads=2, rope_parameters={
        "rope_type": "linear", "rope_theta": 100.0, "factor": 4.0}), LLAMA_SPLIT),
    "yarn": ("Qwen2", dict(num_key_value_heads=2, rope_parameters={
        "rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "beta_fast": 3.0, "beta_slow": 0.3,
        "original_max_position_embeddings": 16}), LLAMA_SPLIT),
    "gpt_neox": ("GPTNeoX", dict(rope_parameters={"rope_type": "default", "rope_theta": 100.0,
                                                  "partial_rotary_factor": 0.5}),
                 "*.attention.?=out:2,*.?_rotary=channel:2,*.attention.heads=channel:2,*.dense=in:2,"
                 "*.dense_h_to_4h=out:2,*.mlp.act=channel:2,*.dense_4h_to_h=in:2,embed_in=rows:2,loss=channel:2,"
                 "*layernorm=position:2,*add_?=position:2"),
    "opt": ("OPT", dict(intermediate_size=None, ffn_dim=48, word_embed_proj_dim=32, dropout=0),
            "*.?_proj=out:2,*.self_attn.heads=channel:2,*.out_proj=in:2,*.fc1=out:2,*.act=channel:2,*.fc2=in:2,"
            "embed_tokens=rows:2,loss=channel:2,*layer_norm=position:2,*add_?=position:2"),
    "vit": ("ViT", dict(vocab_size=None, max_position_embeddings=None, image_size=16, patch_size=4, num_channels=3, num_labels=5),
            "*.query=out:2,*.key=out:2,*.value=out:2,*.attention.heads=channel:2,*.attention.output.dense=in:2,"
            "*.intermediate.dense=out:2,*.intermediate.act=channel:2,encoder.layer.?.output.dense=in:2"),
}
ENCODER_SPLIT = "*.query=out:2,*.key=out:2,*.value=out:2,*.attention.heads=channel:2,*.attention.output.dense=in:2," \
                "*.intermediate.dense=out:2,*.act=channel:2,encoder.layer.?.output.dense=in:2," \
                "embeddings.word_embeddings=rows:2,*LayerNorm=position:2,*add_?=position:2"
DISTIL_SPLIT = "*.?_lin=out:2,*.heads=channel:2,*.out_lin=in:2,*.lin1=out:2,*.act=channel:2,*.lin2=in:2," \
               "embeddings.word_embeddings=rows:2,*layer_norm=position:2,*add_?=position:2"
DISTILBERT = dict(hidden_size=None, intermediate_size=None, num_hidden_layers=None, num_attention_heads=None, dim=32,
                  hidden_dim=48, n_layers=2, n_heads=4, dropout=0, attention_dropout=0)
DRY = dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
CASES |= {
    "bert": ("Bert", DRY, ENCODER_SPLIT + ",cls.predictions.decoder=out:2,cls.*.decoder.bias=channel:2,loss=channel:2"),
    "bert_labels": ("Bert", dict(DRY, num_labels=5), ENCODER_SPLIT + ",pooler.dense=out:2,pooler.activation=channel:2"),
    "roberta": ("Roberta", dict(DRY, type_vocab_size=1, layer_norm_eps=1e-5), ENCODER_SPLIT + ",lm_head.decoder=out:2,loss=channel:2"),
    "roberta_labels": ("Roberta", dict(DRY, num_labels=3), ENCODER_SPLIT + ",classifier.dense=out:2"),
    "distilbert": ("DistilBert", dict(DISTILBERT, activation="relu"), DISTIL_SPLIT + ",vocab_projector=out:2,loss=channel:2"),
    "distilbert_labels": ("DistilBert", dict(DISTILBERT, seq_classif_dropout=0, num_labels=4), DISTIL_SPLIT + ",pre_classifier=out:2"),
}
FAST = ["llama", "qwen3", "gemma2", "vit", "bert", "roberta_labels"]  # of the cases without GHP_TEST_FULL: what only these have


def sized(name):
    """The path of its network for samples of the text, or of the images."""
    return name if name == "vit" else f"{name}@{POSITIONS}"


def data_of(name):
    data = "npy:images" if name == "vit" else "bytes:text"
    if is_encoder(name):
        data = f"npy:words/ids.npy,words/{'labels' if name.endswith('_labels') else 'masked'}.npy"
    return ["--data", data, "--ignore-label", "-100", "--shuffle", "off", *RUN]


def is_encoder(name):
    return re.match("(distil|ro)?bert", name) is not None


def tool(name, *args, ranks=0):
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks else []
    done = subprocess.run([*launch, f"{BIN}/{name}", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, (name, args, done.stderr[-2000:])
    return done


def refused(text, name, *args):
    done = subprocess.run([f"{BIN}/{name}", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode in (1, 2) and re.search(text, done.stderr), (text, done.returncode, done.stderr)


def make(name):
    torch.manual_seed(5)
    family, keys, _ = CASES[name]
    config = getattr(transformers, family + "Config")(
        **{key: value for key, value in {**SMALL, **keys}.items() if value is not None})
    network = kind_of(name).from_config(config)
    for parameter in network.parameters():  # norms and biases too: what is one or zero hides mistakes
        parameter.data += 0.05 * torch.randn_like(parameter)
    network.save_pretrained(name)


def kind_of(name):
    if "_labels" in name:
        return transformers.AutoModelForSequenceClassification
    if is_encoder(name):
        return transformers.AutoModelForMaskedLM
    return transformers.AutoModelForImageClassification if name.startswith("vit") else transformers.AutoModelForCausalLM


def open_network(folder):
    return kind_of(folder).from_pretrained(folder, attn_implementation="eager", dtype="float32").eval()


def loss_of(network):
    if network.config.model_type == "vit":
        logits = network(torch.tensor(numpy.load("images/images.npy")).to(network.dtype)).logits
        return torch.nn.functional.cross_entropy(logits, torch.tensor(numpy.load("images/labels.npy")))
    if is_encoder(network.config.model_type):
        labels = "masked" if network.config.architectures[0].endswith("MaskedLM") else "labels"
        words = torch.tensor(numpy.load("words/ids.npy"))
        logits = network(words, attention_mask=words != SMALL["pad_token_id"]).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, -2), torch.tensor(numpy.load(f"words/{labels}.npy")).flatten())
    tokens = torch.tensor(list(open("text", "rb").read()))
    n = (len(tokens) - 1) // POSITIONS
    logits = network(tokens[:-1].view(n, POSITIONS)).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[1:].flatten())


def train(network):
    named = [(p.dim() > 1 and "token_type" not in name, p) for name, p in network.named_parameters()]  # a bias in ghp
    decayed, others = ([p for matrix, p in named if matrix == which] for which in (True, False))
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}],
                                  lr=RATE, betas=(0.9, 0.95), eps=EPSILON)
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


def trained(name, workers, *options):
    """The losses of ghp's steps, and of the weights after them; the checkpoint is NAME.checkpoint."""
    tool("ghp-plan", sized(name), "--profile", f"{name}.profile", "--workers", str(workers), "--batch",
         str(BATCH), "--optimizer", "adamw", "--no-break-even", "-o", f"{name}.plan", *options)
    tool("ghp-run", f"{name}.plan", "--steps", str(STEPS), "--lr", str(RATE), "--weight-decay", "0.1", "--beta2", "0.95",
         "--epsilon", str(EPSILON), "--checkpoint", f"{name}.checkpoint", *data_of(name), ranks=workers)
    return [json.loads(line)["loss"] for line in open("metrics")][:STEPS]


def written(name, *options):
    tool("ghp-inspect", f"{name}.plan", "--export-hf", f"{name}.ours", "--weights",
         f"{name}.checkpoint/checkpoint.safetensors", *options)
    return loss_of(open_network(f"{name}.ours")).item()


def check_refusals():
    """What a family cannot be trained with is said by name."""
    for family, key, value, text in (("qwen2", "rope_scaling", {"rope_type": "dynamic", "factor": 2.0}, "rope_type"),
                                     ("opt", "do_layer_norm_before", False, "do_layer_norm_before.*takes true alone"),
                                     ("opt", "word_embed_proj_dim", 16, "word_embed_proj_dim.*takes 32 alone"),
                                     ("olmo2", "clip_qkv", 8.0, "clip_qkv.*does not know this key of a olmo2"),
                                     ("bert", "architectures", ["BertForPreTraining"],
                                      "says BertForPreTraining.*trains BertForMaskedLM and BertForSequenceClassification"),
                                     ("roberta", "max_position_embeddings", 4, "4 positions are too few.*pad_token_id 3"),
                                     ("roberta_labels", "problem_type", "regression", "problem_type.*takes \"single_label"),
                                     ("distilbert", "sinusoidal_pos_embds", True, "sinusoidal_pos_embds.*takes false alone"),
                                     ("vit", "image_size", 3, "patches of 4 pixels do not fit images of 3"),
                                     ("phi3", "hidden_act", "quick_gelu", "hidden_act.*unknown name 'quick_gelu'")):
        make(family)
        config = json.load(open(family + "/config.json"))
        config.pop("rope_parameters", None)
        json.dump({**config, key: value}, open(family + "/config.json", "w"))
        refused(text, "ghp-inspect", family if family == "vit" else f"{family}@16")
    print("refusals: as they should be")


def check_older():
    """Weights of older files: other names of norms, and other parts of a bert's pretraining."""
    make("bert")
    tensors = safetensors.torch.load_file("bert/model.safetensors")
    expected = loss_of(open_network("bert")).item()
    renamed = {key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
               for key, value in tensors.items()}
    assert renamed.keys() != tensors.keys()
    more = {"bert.embeddings.position_ids": torch.arange(64), "bert.pooler.dense.weight": torch.ones(32, 32),
            "bert.pooler.dense.bias": torch.ones(32), "cls.seq_relationship.weight": torch.ones(2, 32),
            "cls.seq_relationship.bias": torch.ones(2)}
    safetensors.torch.save_file({**renamed, **more}, "bert/model.safetensors")
    tool("ghp-profile", "--analytic", "F=1e10,bandwidth=1e8,latency=1e-6", "--model", "bert@32", "-o", "bert.profile")
    tool("ghp-plan", "bert@32", "--profile", "bert.profile", "--workers", "1", "--batch", str(BATCH), "-o", "bert.plan")
    done = tool("ghp-run", "bert.plan", "--evaluate", "--json", *data_of("bert")[:-2], ranks=1)
    close("older", [json.loads(done.stdout)["loss"]], [expected])
    print("older files: read")


def check_dropout():
    """Dropout of the config is trained with, alike on any number of workers, and comes back with the folder."""
    CASES["dropped"] = ("OPT", {**CASES["opt"][1], "dropout": 0.1, "attention_dropout": 0.2}, CASES["opt"][2])
    make("dropped")
    network = open_network("dropped")
    tool("ghp-profile", "--analytic", "F=1e10,bandwidth=1e8,latency=1e-6", "--model", "dropped@32", "-o",
         "dropped.profile")
    one, two = trained("dropped", 1), trained("dropped", 2, "--force", CASES["opt"][2])
    close("dropout", two, one)
    with torch.no_grad():
        assert 1e-4 < abs(one[0] - loss_of(network).item()) < 0.2, (one, loss_of(network))
    written("dropped")
    config = json.load(open("dropped.ours/config.json"))
    assert config["dropout"] == 0.1 and config["attention_dropout"] == 0.2, config
    plan = json.load(open("dropped.plan"))
    dropped = [layer for layer in plan["model"]["layers"] if layer["op"] == "dropout"]
    assert len(dropped) == 4 and all(layer["ratio"] == 0.1 for layer in dropped), dropped
    heads = [layer for layer in plan["model"]["layers"] if layer["op"] == "attention"]
    assert len(heads) == 2 and all(layer["dropout"] == 0.2 for layer in heads), heads
    print("dropout: trained with")


def check_gradients(name):
    """A float has 6e-8, and a gradient is a sum over 256 positions; weights 1000 times a gradient away hide none of it. Keys'
    biases have no gradient, since a softmax does not see them: there is rounding alone, of the other gradients' size."""
    network = open_network(name).double()
    loss_of(network).backward()
    tool("ghp-plan", sized(name), "--profile", f"{name}.profile", "--workers", "1", "--batch", str(BATCH),
         "--no-break-even", "-o", f"{name}.plan")
    tool("ghp-run", f"{name}.plan", "--steps", "1", "--lr", "1000", "--momentum", "0", "--weight-decay", "0", "--checkpoint",
         f"{name}.checkpoint", *data_of(name), ranks=1)
    written(name)
    stepped = dict(open_network(f"{name}.ours").named_parameters())
    rounding = max(parameter.grad.abs().max() for parameter in network.parameters()) / 30
    for key, parameter in network.named_parameters():
        ours = (parameter.data - stepped[key].data.double()) / 1000
        wrong = (ours - parameter.grad).abs().max() / max(parameter.grad.abs().max(), rounding)
        assert wrong < 1e-5, (name, key, wrong)


def check(name):
    make(name)
    theirs = train(open_network(name))
    tool("ghp-profile", "--analytic", "F=1e10,bandwidth=1e8,latency=1e-6", "--model", sized(name), "-o",
         f"{name}.profile")
    check_gradients(name)
    split = CASES[name][2]
    ways = [(4 if FULL else 2, ["--force", split])]
    if FULL and name in FAST:  # what the others have is of their layers alone
        ways += [(1, []), (4, ["--strategy", "data"])]
    worst = 0
    for workers, options in ways:
        ours = trained(name, workers, *options)
        worst = max(worst, close((name, workers, options), ours, theirs[:-1]))
    close((name, "written"), [written(name)], theirs[-1:])
    close((name, "in parts"), [written(name, "--max-shard-size", "8kB")], theirs[-1:])
    files = sorted(file for file in os.listdir(f"{name}.ours") if "safetensors" in file)
    assert len(files) > 3 and files[0] == f"model-00001-of-{len(files) - 1:05d}.safetensors", files
    print(f"{name}: losses differ by {worst:.1e} of them")


def check_files():
    """Folders in several files, as transformers writes and reads them, and in half precisions."""
    make("llama")
    network = open_network("llama")
    tool("ghp-profile", "--analytic", "F=1e10,bandwidth=1e8,latency=1e-6", "--model", f"llama@{POSITIONS}", "-o",
         "llama.profile")
    for dtype in torch.float32, torch.bfloat16, torch.float16:
        name = "llama." + str(dtype)[6:]
        os.symlink("llama.profile", name + ".profile")
        network.to(dtype).save_pretrained(name, max_shard_size="10KB")
        assert not os.path.exists(name + "/model.safetensors") and os.path.exists(name + "/model.safetensors.index.json")
        close(name, trained(name, 1)[:1], [loss_of(open_network(name)).item()])
        network = open_network("llama")
    # ghp's parts are those of transformers
    name = "llama.float32"
    tool("ghp-run", name + ".plan", "--data", "bytes:text", "--steps", "1", "--lr", "0", "--threads", "1", "--overwrite",
         "--checkpoint", name + ".checkpoint", ranks=1)
    close("parts", [written(name, "--max-shard-size", "10kB")], [loss_of(network).item()])
    index = [json.load(open(f"{folder}/model.safetensors.index.json")) for folder in (name, name + ".ours")]
    assert index[0]["metadata"] == index[1]["metadata"], index
    assert sorted(index[0]["weight_map"]) == sorted(index[1]["weight_map"])
    for file in set(index[1]["weight_map"].values()):
        tensors = safetensors.torch.load_file(f"{name}.ours/{file}")
        assert len(tensors) == 1 or sum(value.nbytes for value in tensors.values()) <= 10000, file
        assert all(torch.equal(value, network.state_dict()[key]) for key, value in tensors.items()), file
    # then one file again: what was there before is gone
    close("one file", [written(name)], [loss_of(network).item()])
    files = [file for file in os.listdir(name + ".ours") if "safetensors" in file]
    assert files == ["model.safetensors"], files
    refused("--max-shard-size goes with --export-hf", "ghp-inspect", "llama", "--max-shard-size", "1GB")
    print("files: in parts, float32, bfloat16 and float16")


torch.manual_seed(3)
with open("text", "wb") as text:  # without the token of padding, whose row of the table transformers does not train
    text.write(bytes(torch.randint(4, 64, (POSITIONS * BATCH + 1,)).tolist()))
os.mkdir("images")
numpy.save("images/images.npy", torch.randn(BATCH, 3, 16, 16).numpy())
numpy.save("images/labels.npy", torch.randint(5, (BATCH,)).numpy())
os.mkdir("words")
words = torch.randint(4, 64, (BATCH, POSITIONS))
for sample in range(BATCH):  # padded, as sentences are
    words[sample, POSITIONS - 3 * sample:] = SMALL["pad_token_id"]
numpy.save("words/ids.npy", words.numpy())
numpy.save("words/labels.npy", torch.randint(3, (BATCH,)).numpy())
numpy.save("words/masked.npy", torch.where((torch.rand(words.shape) < 0.3) & (words != SMALL["pad_token_id"]), words, -100).numpy())
OTHERS = {"older": torch.no_grad()(check_older), "files": torch.no_grad()(check_files), "refusals": check_refusals, "dropout": check_dropout}
for name in sys.argv[1:] or [*OTHERS, *(CASES if FULL else FAST)]:
    OTHERS[name]() if name in OTHERS else check(name)
