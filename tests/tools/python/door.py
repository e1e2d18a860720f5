# tests/tools/python/door.py - the Python package `ghp` with PyTorch, for test_python.sh.
#
# Modules are exported and checked by one step, as they are and where the file would not train as the module does;
# weights that ghp-run trained come back; what cannot be meant is refused with its remedy, and changes nothing.
import copy
import pathlib
import subprocess
import warnings

import torch
from torch import nn

import ghp
from ghp import networks, tools


def refused(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), "%r is not in %r" % (text, str(error))
        return
    raise AssertionError("%s is not refused" % text)


class Heads(nn.Module):
    """Several labels of a sample, and an attention whose parameters have names of their own."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)
        self.out = nn.Linear(16, 6)

    def forward(self, x):
        return self.out(self.attention(x, x, x, need_weights=False)[0].mean(1))


class Words(nn.Module):
    """A label for a sentence of token ids."""

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.out = nn.Embedding(20, 8), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.norm(self.table(x)).mean(1))


class Tokens(nn.Module):
    """A language model: token ids, a head tied to the embedding, one layer for queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(12, 8), nn.Linear(8, 24), nn.Linear(8, 12, bias=False)
        self.embed.weight = self.head.weight

    def forward(self, ids):
        x = self.embed(ids)
        q, k, v = (part.reshape(*x.shape[:2], 2, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + y.transpose(1, 2).reshape(x.shape))


class Auxiliary(nn.Module):
    """Two outputs, of classes for each sample, or for each pixel, by names."""

    def __init__(self, classes=(5, 5), maps=False):
        super().__init__()
        self.stem, self.maps = nn.Conv2d(3, 8, 3, padding=1), maps
        self.out, self.aux = nn.Conv2d(8, classes[0], 1), nn.Conv2d(8, classes[1], 1)

    def forward(self, x):
        x = self.stem(x).relu()
        if self.maps:
            return {"out": self.out(x), "aux": self.aux(x)}
        return self.out(x).mean((2, 3)), self.aux(x).mean((2, 3))


class Prices(nn.Module):
    """One number without an axis of its own, and three."""

    def __init__(self):
        super().__init__()
        self.price, self.costs = nn.Linear(8, 1), nn.Linear(8, 3)

    def forward(self, x):
        return {"price": self.price(x).squeeze(-1), "costs": self.costs(x)}


class Anchors(nn.Module):
    """Classes and boxes of two anchors at each pixel, in lists of anchors."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.classes, self.boxes = nn.Conv2d(8, 2 * 5, 1), nn.Conv2d(8, 2 * 4, 1)

    def forward(self, x):
        x = self.stem(x).relu()
        classes, boxes = (head(x).permute(0, 2, 3, 1) for head in (self.classes, self.boxes))
        return {"classes": classes.reshape(x.shape[0], -1, 5), "boxes": boxes.reshape(x.shape[0], -1, 4)}


class Places(nn.Module):
    """A class for the picture, numbers for each pixel, and classes for each of a coarser map, in a list."""

    def __init__(self):
        super().__init__()
        self.stem, self.fine, self.coarse = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 2, 1), nn.Conv2d(8, 4, 2, 2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x).relu()
        return self.head(x.mean((2, 3))), self.fine(x), self.coarse(x).flatten(2).transpose(1, 2)


def pixels():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.3),
                         nn.Conv2d(8, 5, 1))


torch.manual_seed(0)
torch.set_num_threads(1)
warnings.simplefilter("ignore")

# ---- modules as networks ----

net, example = pixels(), torch.zeros(1, 3, 8, 8)
network = ghp.export(net, example, loss=nn.CrossEntropyLoss(label_smoothing=0.1))
assert network.checked < 1e-10, network.checked
assert [layer["op"] for layer in network.layers].count("dropout") == 1
assert ghp.__version__.replace(".", "").isdigit(), ghp.__version__
assert ghp.export(Heads(), torch.zeros(2, 4, 16), loss=nn.BCEWithLogitsLoss()).checked < 1e-10
assert ghp.export(Heads(), torch.zeros(2, 4, 16), loss=nn.HuberLoss(delta=0.5)).checked < 1e-6  # a float label
assert ghp.export(pixels(), example, loss=nn.MSELoss()).checked < 1e-6
assert ghp.export(Words(), torch.zeros(2, 6, dtype=torch.long)).checked < 1e-10
assert ghp.export(Tokens(), torch.zeros(2, 4, dtype=torch.long)).checked < 1e-10
for of, own, loss in ((Auxiliary(), False, nn.CrossEntropyLoss(label_smoothing=0.1)), (Auxiliary(), True, None),
                      (Auxiliary((5, 3)), True, None), (Auxiliary(), True, nn.BCEWithLogitsLoss()),
                      (Auxiliary(), False, nn.BCEWithLogitsLoss()), (Auxiliary(maps=True), False, None),
                      (Auxiliary(maps=True), True, None)):
    assert ghp.export(of, example, loss=loss, output_weights=[1, 0.3], own_labels=own).checked < 1e-10, (of, own, loss)
for own in False, True:
    assert ghp.export(Auxiliary(maps=True), example, loss=nn.L1Loss(), output_weights=[1, 3], own_labels=own).checked < 1e-6
both = [nn.CrossEntropyLoss(label_smoothing=0.1), nn.SmoothL1Loss(beta=0.5)]
for of in Auxiliary((5, 4)), Auxiliary((5, 4), maps=True), Anchors():
    assert ghp.export(of, example, loss=both, output_weights=[1, 0.3]).checked < 1e-6, of
assert ghp.export(Places(), example, loss=[nn.CrossEntropyLoss(), nn.L1Loss(), nn.CrossEntropyLoss()],
                  output_weights=[1, 0.3, 2]).checked < 1e-6
refused(ghp.Error, "give each its own loss", ghp.export, Places(), example, output_weights=[1, 1, 1])
assert ghp.export(Prices(), torch.zeros(1, 8), loss=[nn.MSELoss(), nn.SmoothL1Loss()]).checked < 1e-6
assert ghp.export(Auxiliary((3, 4)), example, loss=[nn.BCEWithLogitsLoss(), nn.CrossEntropyLoss()]).checked < 1e-10
refused(ghp.Error, "the metadata 'ghp.loss' has losses of 3", ghp.export, Auxiliary(), example,
        loss=both + [nn.MSELoss()])
refused(ghp.UsageError, "there are 2 losses and 1 output_weights", ghp.export, Auxiliary(), example, loss=both,
        output_weights=[1])
refused(ghp.Error, "there are 2 outputs, and the metadata 'ghp.loss' has output_weights of 3", ghp.export, Auxiliary(),
        example, output_weights=[1, 1, 1])
refused(ghp.UsageError, "the module returns 2 tensors; give output_weights", ghp.export, Auxiliary(), example)
refused(ghp.UsageError, "give a list, in the order", ghp.export, Prices(), torch.zeros(1, 8), loss={"price": nn.MSELoss()})
refused(ghp.UsageError, "give output_weights too", ghp.export, Auxiliary(), example, own_labels=True)
frozen = pixels()
frozen[0].weight.requires_grad_(False)
exported = ghp.export(frozen, example)
assert exported.checked < 1e-10 and "# not trained: 216 of 277 weights" in repr(exported), repr(exported)

# another network's step is not taken for the module's
gradients = networks._gradients
networks._gradients = lambda torch, module, *rest: gradients(torch, pixels(), *rest)
refused(ghp.Error, "from PyTorch's", ghp.export, net, example)
networks._gradients = gradients

refused(ghp.UsageError, "give torch.nn.Sequential(module)", ghp.export, nn.Linear(8, 1), torch.zeros(2, 8),
        loss=nn.MSELoss())
refused(ghp.UsageError, "call module.train()", ghp.export, pixels().eval(), example)
partly = pixels()
partly[1].eval()
refused(ghp.UsageError, "'1' is a batch norm in evaluation mode", ghp.export, partly, example)
refused(ghp.UsageError, "is not one that ghp trains", ghp.export, net, example, loss=nn.MSELoss(reduction="sum"))
refused(ghp.UsageError, "with the batch as the first of its dimensions", ghp.export, net, "example")
refused(ghp.UsageError, "call module.float().cpu() first", ghp.export, pixels().double(), example)
refused(ghp.UsageError, "does not end in .onnx", ghp.export, net, example, "net.pt")
refused(ghp.UsageError, "an example of its input", ghp.expect, net, machine="h100-sxm-8", batch=8)
refused(ghp.Error, "cannot read 'nowhere.json'", ghp.plan, "nowhere.json", machine="h100-sxm-8", workers=2, batch=8)
refused(ghp.UsageError, "unknown option 'nosuch'", ghp.expect, network, machine="h100-sxm-8", batch=8, nosuch=1)
refused(ghp.NoPlanError, "give memory", ghp.plan, network, machine="h100-sxm-8", workers=2, batch=8, memory="1KiB")

# ---- a plan, its training, and the weights back ----

plan = ghp.plan(network, machine="epyc-7763-2", workers=2, batch=8, path="plan.json", force="0=out:2")
assert plan.data["splits"][1]["split"] == "out" and plan.step_s > 0 and set(plan.baselines) >= {"data", "model"}
assert "predicted" in repr(plan) and "out:2" in plan.explain("0")
assert "<iframe" in plan._repr_html_()
subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", tools.find("ghp-run"), "plan.json",
                "--data", "synthetic", "--steps", "3", "--checkpoint", "trained", "--run", "run.json", "--progress", "none"],
               check=True, capture_output=True, stdin=subprocess.DEVNULL)
before = copy.deepcopy(net.state_dict())
assert ghp.load(net, "trained") == ["1.num_batches_tracked"]
after = net.state_dict()
assert not torch.equal(before["0.weight"], after["0.weight"]) and not torch.equal(before["1.running_mean"],
                                                                                  after["1.running_mean"])
assert "3" in repr(ghp.Run("run.json")) and "<iframe" in ghp.Run("run.json")._repr_html_()
for wrong, text in (Heads(), "has no 'attention."), (nn.Sequential(nn.Conv2d(3, 9, 3)), "values of '0.weight'"):
    kept = copy.deepcopy(wrong.state_dict())
    refused(ghp.Error, text, ghp.load, wrong, "trained")
    assert all(torch.equal(kept[name], tensor) for name, tensor in wrong.state_dict().items())

# a tied parameter has one name in a checkpoint, whichever it is
tied, read = Tokens(), networks._read_tensors
stored = {name: torch.ones_like(x) for name, x in tied.state_dict().items() if name != "embed.weight"}
networks._read_tensors = lambda torch, path: stored
assert ghp.load(tied, "tied.safetensors") == [] and tied.embed.weight.eq(1).all()
networks._read_tensors = read
pathlib.Path("torn.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
refused(ghp.Error, "cannot read 'torn.safetensors' as safetensors", ghp.load, net, "torn.safetensors")
refused(ghp.Error, "cannot read 'nowhere", ghp.load, net, "nowhere")
