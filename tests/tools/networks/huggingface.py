"""Networks of transformers, made and trained for comparison with ghp's.

    huggingface.py make                         folders gpt-nano, gpt-tied, llama-nano, llama-tied: random weights
    huggingface.py make-gpt2                    a folder gpt2, the smallest GPT-2 with random weights; gpt2.ids, 65 ids
    huggingface.py train FOLDER TEXT STEPS      the loss of each step on all windows of TEXT, and the one after them
    huggingface.py loss FOLDER TEXT             the loss alone
    huggingface.py export FOLDER HOW OPSET     the same network as FOLDER.onnx, by torch's exporter 'traced' or 'dynamo'
    huggingface.py logits FOLDER FILE.onnx TEXT the largest difference of the logits of TEXT's windows, here and in
                                                onnxruntime, relative to the largest
    huggingface.py generate FOLDER OTHER        whether OTHER generates what FOLDER is told to, over its whole context
    huggingface.py back FOLDER CHECKPOINT TEXT  whether the tensors of ghp's CHECKPOINT are those of FOLDER as they are; the
                                                loss of TEXT with them
    huggingface.py differ FOLDER OTHER          the largest difference of any weight, relative to its tensor's

A text is bytes, or, named *.ids, numbers of 16 bits; its windows are as ghp's: inputs, and the token after each.
Training is SGD with momentum on all windows at once, so that their order does not count.
"""
import array
import random
import sys

import safetensors.torch
import torch
import transformers

RATE, MOMENTUM = 0.1, 0.9


def make_one(family, tied):
    torch.manual_seed(5)
    if family == "gpt":
        config = transformers.GPT2Config(
            vocab_size=256, n_positions=64, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0,
            tie_word_embeddings=tied, bos_token_id=1, eos_token_id=2, pad_token_id=3)
        network = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            vocab_size=256, max_position_embeddings=64, hidden_size=32, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=tied, bos_token_id=1, eos_token_id=2,
            pad_token_id=3)
        network = transformers.LlamaForCausalLM(config)
    for parameter in network.parameters():  # norms and biases too: what is one or zero hides mistakes
        parameter.data += 0.05 * torch.randn_like(parameter)
    network.generation_config.update(do_sample=True, top_k=7, max_new_tokens=9)
    network.save_pretrained(family + ("-tied" if tied else "-nano"))


def make():
    for family in "gpt", "llama":
        make_one(family, False)
        make_one(family, True)


def make_gpt2():
    torch.manual_seed(5)
    config = transformers.GPT2Config(attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
    transformers.GPT2LMHeadModel(config).save_pretrained("gpt2")
    draw = random.Random(5)
    with open("gpt2.ids", "wb") as file:
        array.array("H", [draw.randrange(50257) for _ in range(65)]).tofile(file)


def windows(text, positions):
    content = open(text, "rb").read()
    tokens = torch.tensor(list(array.array("H", content) if text.endswith(".ids") else content))
    n = (len(tokens) - 1) // positions
    return (tokens[:n * positions].view(n, positions), tokens[1:n * positions + 1].view(n, positions))


def print_loss(network, text):
    inputs, labels = windows(text, 64)
    with torch.no_grad():
        logits = network.eval()(inputs).logits
    print("%.9g" % torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).item())


def loss(folder, text):
    print_loss(transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager"), text)


def back(folder, checkpoint, text):
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    prefix = network.base_model_prefix + "."
    state, trained = network.state_dict(), safetensors.torch.load_file(checkpoint)
    for name in [name for name in trained if ".attn.q." in name]: # c_attn has its outputs in three parts
        parts = [trained.pop(name.replace(".q.", part)) for part in (".q.", ".k.", ".v.")]
        trained[name.replace(".q.", ".c_attn.")] = torch.cat(parts, -1)
    trained = {name if name in state else prefix + name: value for name, value in trained.items()
               if not name.startswith("momentum.")}
    trained.update((name, state[name]) for name in state if name == "lm_head.weight" and name not in trained) # tied
    for name, value in state.items():
        if name.endswith("wpe.weight"): # rows beyond the samples' positions are in the folder alone
            trained[name] = torch.cat([trained[name], value[len(trained[name]):]])
        assert torch.equal(trained[name], value), name
    network.load_state_dict(trained, strict=True)
    print_loss(network, text)


def train(folder, text, steps):
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    network.eval()
    inputs, labels = windows(text, 64)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)
    for step in range(int(steps) + 1):
        optimizer.zero_grad()
        logits = network(inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        print("%.9g" % loss.item())
        if step < int(steps):
            loss.backward()
            optimizer.step()
    network.save_pretrained(folder + ".trained")


class Logits(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, input_ids):
        # a mask that is given keeps the tracing exporter from operators that it does not have
        mask = torch.ones_like(input_ids)
        return self.network(input_ids, attention_mask=mask, use_cache=False).logits


def export(folder, how, opset):
    attention = "eager" if how == "traced" else "sdpa"
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation=attention)
    ids = torch.zeros(2, 64, dtype=torch.int64)
    axes = {"input_ids": {0: "batch", 1: "positions"}}
    shared = {"input_names": ["input_ids"], "output_names": ["logits"], "opset_version": int(opset)}
    if how == "traced":
        torch.onnx.export(Logits(network).eval(), (ids,), folder + ".onnx", dynamo=False, dynamic_axes=axes, **shared)
    else:
        sizes = {"input_ids": {0: torch.export.Dim("batch", min=2, max=64)}}
        torch.onnx.export(Logits(network).eval(), (ids,), dynamo=True, dynamic_shapes=sizes, verbose=False,
                          **shared).save(folder + ".onnx", external_data=False)


def logits(folder, file, text):
    import onnxruntime  # which the others do without

    inputs, _ = windows(text, 64)
    network = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        theirs = network(inputs).logits
    session = onnxruntime.InferenceSession(file)
    ours = torch.from_numpy(session.run(None, {session.get_inputs()[0].name: inputs.numpy()})[0])
    print("%.3g" % ((ours - theirs).abs().max() / theirs.abs().max()).item())


def generate(folder, other):
    origin, network = (transformers.AutoModelForCausalLM.from_pretrained(name) for name in (folder, other))
    for name in "bos_token_id", "eos_token_id", "pad_token_id", "do_sample", "top_k", "max_new_tokens":
        theirs, ours = getattr(origin.generation_config, name), getattr(network.generation_config, name)
        assert theirs == ours and theirs is not None, (name, theirs, ours)
    for name in "bos_token_id", "eos_token_id", "pad_token_id", "max_position_embeddings", "initializer_range":
        theirs, ours = getattr(origin.config, name), getattr(network.config, name)
        assert theirs == ours and theirs is not None, (name, theirs, ours)
    context = network.config.max_position_embeddings
    text = network.generate(torch.full((2, context - 4), 5), max_new_tokens=4, eos_token_id=[])
    assert text.shape == (2, context), text.shape
    table = getattr(network.base_model, "wpe", None)
    if table is not None:  # positions that no sample of 32 had
        assert torch.equal(table.weight[32:], origin.base_model.wpe.weight[32:])
        assert not torch.equal(table.weight[:32], origin.base_model.wpe.weight[:32])


def differ(folder, other):
    theirs = transformers.AutoModelForCausalLM.from_pretrained(other).state_dict()
    worst = 0
    for name, value in transformers.AutoModelForCausalLM.from_pretrained(folder).state_dict().items():
        value = value[:len(theirs[name])]  # a table of positions may be shorter than the context
        worst = max(worst, ((value - theirs[name]).abs().max() / value.abs().max()).item())
    print("%.3g" % worst)


COMMANDS = {"make": make, "make-gpt2": make_gpt2, "train": train, "loss": loss, "export": export, "logits": logits, "back": back,
            "generate": generate, "differ": differ}
COMMANDS[sys.argv[1]](*sys.argv[2:])
