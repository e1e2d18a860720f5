"""Networks of torchvision as PyTorch's exporters write them, read and trained by ghp.

    exporters.py CASE...     NETWORK.EXPORTER.OPSET[.BITS]: EXPORTER is traced (dynamo=False) or dynamo, BITS 32, 64 or
                             both; one line each of the table in docs/results/exactness.md. Exits 1 where a gradient is
                             further off than LIMITS, or a network is refused.
    exporters.py read CASE...    whether they are read alone
    exporters.py survey FILE [K/N]
                             torchvision's networks that classify or segment, but for the largest, modules.py's,
                             HUGGING_FACE's and, where timm is installed, TIMM's, by both exporters: gradients in double
                             of those of up to COMPARED parameters, and whether the others are read. What FILE has is
                             not done again, and the rest is added to it, a line each: case, tab, outcome, error. Then
                             it prints the table of docs/results/networks.md. K/N: the Kth of N parts of the work.

The tools are in GHP_BIN. Weights and biases of all
modules are drawn, norms' around one and zero. Samples are noise in NumPy arrays. The gradients are the momentum that
SGD keeps after one step.

A network is exported as torchvision makes it. Masks of two programs differ, so its layers, dropouts with their shares
among them, are what is compared; gradients are those of the same network without dropout.
"""
import collections
import contextlib
import copy
import importlib.util
import io
import json
import os
import subprocess
import sys
import warnings

import numpy
import torch
import torchvision

import modules

sys.path.insert(0, os.path.join(sys.path[0], "..", "learn"))
from torch_weights import find, read_tensors

LIMITS = {32: 2e-5, 64: 1e-10}
# pixels, samples: of as many as the network takes, and as make norms and the first kernels sound
SIZES = {"vgg11": (224, 1), "vgg16": (224, 1), "inception_v3": (80, 4)}
LARGE, LARGE_KINDS = (224, 2), ("alexnet", "maxvit", "vgg", "vit")
USUAL = (64, 4)
MORE = {"googlenet": {"aux_logits": False, "init_weights": False},
        "inception_v3": {"aux_logits": False, "init_weights": False}}
SURVEYED = [("traced", 17), ("dynamo", 20)]
MOST, COMPARED = 200_000_000, 30_000_000  # parameters of networks that are surveyed, of those whose gradients are
BIN = os.environ.get("GHP_BIN", "build/bin")
# image classifiers of transformers, as small as their configurations say with SMALL, called hf_NAME
HUGGING_FACE = ["beit", "bit", "convnext", "convnextv2", "cvt", "data2vec-vision", "dinov2", "dinov2_with_registers",
                "efficientnet", "focalnet", "hiera", "ijepa", "levit", "mobilenet_v1", "mobilenet_v2", "mobilevit",
                "mobilevitv2", "poolformer", "pvt", "pvt_v2", "regnet", "resnet", "segformer", "siglip", "swiftformer",
                "swin", "swinv2", "vit", "vit_msn"]
SMALL = {"image_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
         "patch_size": 8, "window_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4]}
SMALL_OF = {"swin": ("embed_dim", "depths", "num_heads", "window_size"),
            "swinv2": ("embed_dim", "depths", "num_heads", "window_size"),
            "vit": tuple(SMALL)[1:6]}
# timm's networks, called timm_NAME, each of another family: pixels, and what is made small
SIZED, SHORT = {"img_size": 64}, {"img_size": 64, "depth": 2}
THIN, WINDOWED = {**SHORT, "embed_dim": 64, "num_heads": 2}, {**SIZED, "window_size": 4}
TIMM = {"vit_tiny_patch16_224": SHORT, "vit_relpos_small_patch16_224": SHORT, "deit_tiny_distilled_patch16_224": SHORT,
        "deit3_small_patch16_224": SHORT, "beit_base_patch16_224": THIN, "beitv2_base_patch16_224": THIN,
        "cait_xxs24_224": SHORT, "coat_lite_tiny": SIZED, "convit_tiny": SHORT,
        "convmixer_768_32": {}, "convnext_atto": {}, "convnextv2_atto": {},
        "crossvit_tiny_240": {"pixels": 240}, "cspresnet50": {}, "davit_tiny": {}, "dla46_c": {}, "dpn48b": {},
        "edgenext_xx_small": {}, "efficientvit_b0": {}, "eva02_tiny_patch14_224": THIN, "fastvit_t8": {},
        "fbnetc_100": {}, "focalnet_tiny_srf": {}, "gcresnet33ts": {}, "ghostnet_050": {}, "hardcorenas_a": {},
        "hiera_tiny_224": SIZED, "hrnet_w18_small": {}, "inception_next_tiny": {}, "lcnet_035": {},
        "mixer_s32_224": SIZED, "resmlp_12_224": SIZED, "gmlp_ti16_224": SIZED, "gmixer_12_224": SIZED,
        "mobilenetv4_conv_small_035": {}, "mobileone_s0": {}, "mobilevit_xxs": {}, "mobilevitv2_050": {},
        "nest_tiny": SIZED, "nf_resnet26": {}, "pit_ti_224": SIZED, "poolformer_s12": {}, "caformer_s18": {},
        "pvt_v2_b0": {}, "regnetz_005": {}, "repghostnet_050": {}, "repvgg_a0": {}, "repvit_m0_9": {},
        "res2net50_14w_8s": {}, "resnest14d": {}, "resnetv2_18": {}, "resnetblur18": {}, "rexnet_100": {},
        "selecsls42": {}, "skresnet18": {}, "seresnet18": {}, "ecaresnet26t": {}, "eca_nfnet_l0": {},
        "swin_s3_tiny_224": WINDOWED, "swinv2_cr_tiny_ns_224": WINDOWED, "tf_efficientnetv2_b0": {}, "tf_mixnet_s": {},
        "tiny_vit_5m_224": {}, "tresnet_m": {}, "twins_svt_small": {}, "visformer_tiny": SIZED, "volo_d1_224": SIZED,
        "ese_vovnet19b_slim_dw": {}, "xception41": {}, "xcit_nano_12_p16_224": {}, "botnet26t_256": {},
        "halonet26t": {}, "lambda_resnet26rpt_256": {}, "starnet_s1": {}, "mambaout_femto": {}, "fasternet_t0": {},
        "vit_base_patch16_siglip_224": THIN, "vit_small_patch14_reg4_dinov2": THIN, "samvit_base_patch16_224": THIN,
        "cs3darknet_s": {}, "semnasnet_050": {}, "mobilenetv1_100": {}, "gernet_s": {}, "resnet50_gn": {}}
CLASSES = {"hf": 5, "timm": 10}


class Out(torch.nn.Module):
    """A segmentation network of torchvision, whose outputs are in a dictionary."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of(x)["out"]


class Logits(torch.nn.Module):
    """An image classifier of transformers."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of(pixel_values=x, return_dict=True).logits


def segments(network):
    return network in torchvision.models.list_models(torchvision.models.segmentation)


def hugging_face(name):
    import transformers

    config = transformers.AutoConfig.for_model(name)
    keys = SMALL_OF.get(name, SMALL_OF["vit"] if isinstance(getattr(config, "num_hidden_layers", None), int) and
                        isinstance(getattr(config, "hidden_size", None), int) and hasattr(config, "intermediate_size")
                        else ())
    for key in ("image_size", *keys):
        if hasattr(config, key):
            setattr(config, key, SMALL[key])
    config.num_labels = CLASSES["hf"]
    return Logits(transformers.AutoModelForImageClassification.from_config(config)).train()


def of_torchvision(network):
    more = {"weights_backbone": None, "num_classes": 5} if segments(network) else MORE.get(network, {})
    net = torchvision.models.get_model(network, weights=None, **more).train()
    return Out(net) if segments(network) else net


def pixels_of(network):
    """How high and wide images are, and how many of them."""
    if network.startswith("timm_"):
        return (TIMM[network[5:]].get("pixels", 56 if "patch14" in network else 64), 4)
    return SIZES.get(network, LARGE if network.startswith(LARGE_KINDS) else USUAL)


def of_timm(name):
    import timm

    more = {key: 56 if key == "img_size" and "patch14" in name else value
            for key, value in TIMM[name].items() if key != "pixels"}
    net = timm.create_model(name, pretrained=False, num_classes=CLASSES["timm"], **more).train()
    if hasattr(net, "drop_rate"):
        net.drop_rate = 0.0  # what some drop without a module
    return net


def make(network):
    torch.manual_seed(5)
    if network in modules.MODULES:
        net = modules.MODULES[network][0]().train()
    elif network.startswith("hf_"):
        net = hugging_face(network[3:])
    elif network.startswith("timm_"):
        net = of_timm(network[5:])
    else:
        net = of_torchvision(network)
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter += 0.05 * torch.randn_like(parameter)
            elif parameter.min() == parameter.max():  # tables of positions, which ghp tells apart by their numbers
                parameter += 0.02 * torch.randn_like(parameter)
    return net


def dropouts(net, shape):
    """The modules that drop something in a forward pass, each with its share's name, as often as they are called:
    torchvision makes some that it never calls, and calls some twice."""
    twin, calls = copy.deepcopy(net), collections.Counter()
    for module in twin.modules():
        module.register_forward_hook(lambda module, *_: calls.update([module]))
    with torch.no_grad():
        twin(torch.zeros(2, *shape))
    kinds = ((torch.nn.modules.dropout._DropoutNd, "p"), (torchvision.ops.StochasticDepth, "p"),
             (torch.nn.MultiheadAttention, "dropout"))
    called = [mine for mine, other in zip(net.modules(), twin.modules()) for _ in range(calls[other])]
    return [(mine, name) for mine in called
            for kind, name in kinds if isinstance(mine, kind) and getattr(mine, name) > 0] + \
        [(mine, "drop_prob") for mine in called if type(mine).__name__.endswith("DropPath") and mine.drop_prob]


def share_of(layer):
    """What a layer drops: a dropout, or an attention of its weights."""
    drops = layer["op"] == "dropout" or layer["op"] == "attention" and layer["window"].startswith("dropout ")
    return float(layer["window"].split()[-1]) if drops else 0


def check_dropouts(shares, layers, without):
    """Whether ghp read the shares that the modules drop, and nothing else of the network but its views, which put a
    dropout's input in order, is another for them."""
    read = [share_of(layer) for layer in layers if share_of(layer) > 0]
    others = [[(layer["op"], "" if share_of(layer) else layer["window"], layer["out"])
               for layer in some if layer["op"] not in ("dropout", "view")] for some in (layers, without)]
    near = len(read) == len(shares) and all(abs(a - b) < 1e-6 for a, b in zip(sorted(read), sorted(shares)))
    if near and others[0] == others[1]:
        return True
    print("the modules drop %s, ghp %s of %d and %d other layers" % (shares, read, *map(len, others)), file=sys.stderr)
    return False


def export(net, shape, samples, exporter, opset):
    x = torch.zeros(max(samples, 2), *shape)
    if exporter == "traced":
        torch.onnx.export(net, (x,), "net.onnx", dynamo=False, opset_version=opset, input_names=["x"],
                          do_constant_folding=False, dynamic_axes={"x": {0: "batch"}},
                          training=torch.onnx.TrainingMode.TRAINING)
    else:
        batch = ({0: torch.export.Dim("batch", min=2, max=1024)},)
        torch.onnx.export(net, (x,), dynamo=True, opset_version=opset, dynamic_shapes=batch, optimize=False,
                          verbose=False).save("net.onnx", external_data=False)


def make_samples(shape, samples, classes, of=()):
    draw = torch.Generator().manual_seed(7)
    x = torch.randn(samples, *shape, generator=draw, dtype=torch.float32)
    labels = torch.randint(0, classes, (samples, *of), generator=draw)
    os.makedirs("data", exist_ok=True)
    numpy.save("data/images.npy", x.numpy())
    numpy.save("data/labels.npy", labels.numpy())
    return x, labels


def theirs(net, x, labels, bits, change=0.0):
    """The gradients and running statistics of one step, samples changed by `change` of themselves. The derivative of
    PyTorch's hardsigmoid is the float nearest to 1/6 in double too, so it is computed here by what it is made of. The
    scales of attentions are those of the file, which are floats."""
    net = copy.deepcopy(net).to({32: torch.float32, 64: torch.float64}[bits])
    for module in net.modules():
        if isinstance(module, torch.nn.Hardsigmoid):
            module.forward = lambda y: torch.nn.functional.relu6(y + 3) / 6
        if type(getattr(module, "scale", None)) is float:
            module.scale = float(numpy.float32(module.scale))
    x = x.to(next(net.parameters()).dtype)
    if change > 0:
        x = x * (1 + change * torch.randn(x.shape, generator=torch.Generator().manual_seed(9), dtype=x.dtype))
    torch.nn.functional.cross_entropy(net(x), labels).backward()
    tensors = {"momentum." + name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    tensors.update((name, b) for name, b in net.named_buffers() if "running_" in name and b.dim() > 0)
    return {name: tensor.double() for name, tensor in tensors.items()}


class Refused(Exception):
    """What a tool said when it failed."""


def tool(name, *arguments, ranks=0):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 0 else []
    done = subprocess.run(command + [os.path.join(BIN, name), *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Refused("%s: %s" % (name, done.stderr.strip()))
    return done.stdout, done.stderr


def ours(samples, bits):
    by = ["--precision", "double", "--backend", "reference"] if bits == 64 else ["--backend", "onednn"]
    tool("ghp-profile", "--analytic", "F=1e11,bandwidth=1e9,latency=1e-5", "--model", "net.onnx", "-o", "profile")
    tool("ghp-plan", "net.onnx", "--profile", "profile", "--workers", 1, "--batch", samples, "--no-break-even",
         "-o", "plan")
    tool("ghp-run", "plan", "--data", "npy:data", "--steps", 1, "--lr", 0, "--momentum", 0.9, "--checkpoint", "first",
         "--overwrite", "--eval", "off", "--numerics", "exact", *by, ranks=1)
    return read_tensors("first/checkpoint.safetensors")


def worst(got, wanted):
    """The largest |g - g_ref| of a tensor, and its name: relative to all gradients of its module, since that of a bias
    before a norm is rounding alone; running statistics to their own size."""
    size, most, which = {}, 0.0, "none"
    for name, tensor in wanted.items():
        of = name.rpartition(".")[0] if name.startswith("momentum.") else name
        size[of] = size.get(of, 0) + tensor.square().sum().item()
    for name, tensor in wanted.items():
        of = name.rpartition(".")[0] if name.startswith("momentum.") else name
        off = (find(got, name).double().flatten() - tensor.flatten()).square().sum().item()
        off = (off / (size[of] or 1)) ** 0.5
        if not off <= most:
            most, which = off, name
    return most, which


def read(net, shape, samples, exporter, opset):
    """The layers of an exported network, and what else ghp says of it."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        export(net, shape, samples, exporter, opset)
    layers, said = tool("ghp-inspect", "net.onnx", "--json")
    return json.loads(layers)["layers"], said


def line_of(error):
    lines = str(error).strip().splitlines()
    return lines[0][:160] if lines else type(error).__name__


def check(case, read_only):
    """Whether a case is as it should be, what became of it, and how far its gradients are off in double."""
    network, exporter, opset, *bits = case.split(".")
    pixels, samples = pixels_of(network)
    shape = modules.MODULES[network][1] if network in modules.MODULES else (3, pixels, pixels)
    row = "| %s | %s | %s | " % (network, exporter, opset)
    try:
        net = make(network)
        dropped = dropouts(net, shape)
    except Exception as error:
        if not network.startswith(("hf_", "timm_")):
            raise
        print(row + "not made: %s | | | |" % line_of(error), flush=True)
        return True, "not made by its own library", ""
    shares = [getattr(*each) for each in dropped]
    try:
        layers, said = read(net, shape, samples, exporter, int(opset))
        for module, name in dropped:
            setattr(module, name, 0.0)
        good = check_dropouts(
            shares, layers, read(net, shape, samples, exporter, int(opset))[0] if shares else layers)
    except Refused as error:
        reason = str(error).split("net.onnx: ")[-1].split("; ")[0]
        print(row + "no: %s | | | |" % reason, flush=True)
        return False, "refused: " + (reason.partition(") ")[2] or reason), ""
    except Exception as error:  # the exporter's own refusal
        print(row + "not written: %s | | | |" % line_of(error), flush=True)
        return True, "not written by PyTorch's exporter", ""
    if said != "":
        print(said, file=sys.stderr)
    cells = {}
    labels_of = (modules.CLASSES, *modules.MODULES[network][2:]) if network in modules.MODULES else \
        (5, (pixels, pixels)) if segments(network) else (CLASSES.get(network.partition("_")[0], 256),)
    x, labels = make_samples(shape, samples, *labels_of)
    for n in () if read_only else [int(b) for b in bits] or [64, 32]:
        reference, limit = theirs(net, x, labels, n), LIMITS[n]
        most, which = worst(ours(samples, n), reference)
        if n == 64 and most > limit:
            # deep networks with norms of few samples amplify rounding: theirs differ by as much if samples are changed
            # by a few roundings of a double, and nobody's gradients are better than that
            limit = max(limit, 4 * worst(theirs(net, x, labels, n, 1e-15), reference)[0])
        if n == 32:
            own, _ = worst(reference, theirs(net, x, labels, 64))
            # a decision of a ReLU or max pool within rounding changes gradients by far more: there float shows nothing
            limit = limit + own if own <= limit else float("inf")
            cells["own"] = "%.1e" % own
        cells[n] = "%.1e" % most + ("" if most <= limit else " (%s)" % which)
        good = good and most <= limit
    print(row + "yes | %s |" % " | ".join(cells.get(key, "") for key in (64, 32, "own")), flush=True)
    return good, "read" if good else "read, and not alike", cells.get(64, "")


def parameters_of(network):
    known = network in torchvision.models.list_models()
    return next(iter(torchvision.models.get_model_weights(network))).meta["num_params"] if known else 0


def surveyed():
    """Cases, the small networks first, those whose gradients are compared with their bits."""
    others = [*modules.MODULES, *("hf_" + name for name in HUGGING_FACE)]
    if importlib.util.find_spec("timm"):
        others += ["timm_" + name for name in TIMM]
    names = [name for kind in (torchvision.models, torchvision.models.segmentation)
             for name in torchvision.models.list_models(kind)]
    networks = others + sorted((name for name in names if parameters_of(name) <= MOST), key=parameters_of)
    return ["%s.%s.%d%s" % (network, *by, ".64" if parameters_of(network) <= COMPARED else "")
            for network in networks for by in SURVEYED]


def done_of(results):
    """What became of each case, and how far its gradients are off."""
    if not os.path.exists(results):
        return {}
    with open(results) as file:
        return {case: rest for case, *rest in (line.rstrip("\n").split("\t") for line in file)}


def survey(results, part, parts):
    cases = surveyed()
    for case in cases[part::parts]:
        if case in done_of(results):
            continue
        try:
            _, outcome, off = check(case, case.count(".") == 2)
        except Exception as error:
            outcome, off = "failed: " + " ".join(str(error).split()), ""
        with open(results, "a") as file:
            file.write("%s\t%s\t%s\n" % (case, " ".join(outcome.split()), off))
    done = done_of(results)
    print("\n| network | dynamo=False | dynamo=True |\n|---|---|---|")
    for pair in zip(cases[::2], cases[1::2]):
        cells = [(off or outcome) for outcome, off in (done.get(case, ["not tried", ""]) for case in pair)]
        print("| %s | %s | %s |" % (pair[0].split(".")[0], *cells))
    print()
    for outcome, n in collections.Counter(done[case][0] for case in cases if case in done).most_common():
        print("%d of %d: %s" % (n, len(cases), outcome))
    return True


def main():
    torch.set_num_threads(1)
    read_only = sys.argv[1] == "read"
    cases = sys.argv[2 if read_only else 1:]
    if cases[0] == "survey":
        part, parts = map(int, (cases[2] if len(cases) > 2 else "1/1").split("/"))
        return survey(cases[1], part - 1, parts)
    print("| network | exporter | opset | read | double | float | PyTorch's own |")
    print("|---|---|---|---|---|---|---|", flush=True)
    return all([check(case, read_only)[0] for case in cases])


sys.exit(0 if main() else 1)
