"""Networks of transformers, made and trained beside ghp's.

    huggingface.py make                         folders gpt-nano, gpt-tied, llama-nano, llama-tied: random weights
    huggingface.py train FOLDER TEXT STEPS      the loss of each step on all windows of TEXT, and the one behind them
    huggingface.py differ FOLDER OTHER          the largest difference of any weight, relative to its tensor's

A text is bytes; its windows are as ghp's: inputs, and the byte behind each. Training is SGD
with momentum on all windows at once, so that their order does not count.
"""
import sys

import torch
import transformers

RATE, MOMENTUM = 0.1, 0.9


def make_one(family, tied):
    torch.manual_seed(5)
    if family == "gpt":
        config = transformers.GPT2Config(
            vocab_size=256, n_positions=64, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0,
            tie_word_embeddings=tied, bos_token_id=None, eos_token_id=None)
        network = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            vocab_size=256, max_position_embeddings=64, hidden_size=32, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=tied)
        network = transformers.LlamaForCausalLM(config)
    for parameter in network.parameters():  # norms and biases too: what is one or zero hides mistakes
        parameter.data += 0.05 * torch.randn_like(parameter)
    network.save_pretrained(family + ("-tied" if tied else "-nano"))


def make():
    for family in "gpt", "llama":
        make_one(family, False)
        make_one(family, True)


def windows(text, positions):
    tokens = torch.tensor(list(open(text, "rb").read()))
    n = (len(tokens) - 1) // positions
    return (tokens[:n * positions].view(n, positions), tokens[1:n * positions + 1].view(n, positions))


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


def differ(folder, other):
    theirs = transformers.AutoModelForCausalLM.from_pretrained(other).state_dict()
    worst = 0
    for name, value in transformers.AutoModelForCausalLM.from_pretrained(folder).state_dict().items():
        worst = max(worst, ((value - theirs[name]).abs().max() / value.abs().max()).item())
    print("%.3g" % worst)


{"make": make, "train": train, "differ": differ}[sys.argv[1]](*sys.argv[2:])
