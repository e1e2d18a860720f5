"""PyTorch modules as networks of ghp, and weights that ghp trained back in them."""
import contextlib
import copy
import io
import json
import math
import os
import struct
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import tools

# of a module's gradients together: the file holds floats, such as hardsigmoid's 1/6, and the check computes in double
STEP_LIMIT = 1e-6
_CHECK_PROFILE = "F=1e11,bandwidth=1e9,latency=1e-5"
_BATCH = 8

PathLike = Union[str, "os.PathLike[str]"]


class Network:
    """A network that ghp's tools take.

    path      the file
    checked   the largest difference of a tensor's gradient from PyTorch's, relative to its module's gradients; None: it
              was not compared
    layers    what ghp read, a dictionary for each layer
    """

    def __init__(self, path: PathLike, checked: Optional[float] = None, folder: Any = None):
        self.path = Path(path)
        self.checked = checked
        self.layers: List[Dict[str, Any]] = json.loads(tools.run("ghp-inspect", [self.path, "--json"]))["layers"]
        self._folder = folder  # a temporary one lives as long as this

    def __repr__(self) -> str:
        return tools.run("ghp-inspect", [self.path])


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise tools.Error("a module needs PyTorch; install torch, onnx and onnxscript, or give the path of a "
                          "network") from None
    return torch


_ERRORS = {"MSELoss": "squared", "L1Loss": "absolute", "HuberLoss": "huber", "SmoothL1Loss": "smooth_l1"}


def _loss_layer(loss: Any, output_weights: Optional[Sequence[float]], own_labels: bool) -> Optional[Dict[str, Any]]:
    """The layer of ghp that a loss module is, or a list of them. None: the cross entropy, as it is read without."""
    if isinstance(loss, (list, tuple)):
        weights = [1.0] * len(loss) if output_weights is None else [float(w) for w in output_weights]
        if len(loss) < 2 or len(weights) != len(loss):
            raise tools.UsageError("there are %d losses and %d output_weights; give at least two losses, and as many "
                                   "weights" % (len(loss), len(weights)), 2)
        return {"op": "losses", "losses": [{**_loss_of(one), "weight": w} for one, w in zip(loss, weights)]}
    if output_weights is None and own_labels:
        raise tools.UsageError("own_labels is of several outputs; give output_weights too, one for each", 2)
    if output_weights is None:
        return None if loss is None else _loss_of(loss)
    plain = {"op": "softmax_cross_entropy", "smoothing": 0.0} if loss is None else _loss_of(loss)
    return {**plain, "output_weights": [float(w) for w in output_weights], "own_labels": own_labels}


def _loss_of(loss: Any) -> Dict[str, Any]:
    if isinstance(loss, dict):
        raise tools.UsageError("the losses are a dictionary; give a list, in the order in which the module returns its "
                               "tensors", 2)
    kind = type(loss).__name__
    plain = getattr(loss, "reduction", "mean") == "mean" and getattr(loss, "weight", None) is None
    if kind == "CrossEntropyLoss" and plain and loss.ignore_index < 0:
        return {"op": "softmax_cross_entropy", "smoothing": loss.label_smoothing}
    if kind == "BCEWithLogitsLoss" and plain and loss.pos_weight is None:
        return {"op": "binary_cross_entropy", "multi_label": True}
    if kind in _ERRORS and plain:
        delta = {"HuberLoss": "delta", "SmoothL1Loss": "beta"}.get(kind)
        if delta is None or getattr(loss, delta) > 0:
            return {"op": "regression", "error": _ERRORS[kind], **({"delta": getattr(loss, delta)} if delta else {})}
    raise tools.UsageError("the loss %r is not one that ghp trains; give nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss(), "
                           "nn.MSELoss(), nn.L1Loss(), nn.HuberLoss() or nn.SmoothL1Loss() with the mean as reduction, "
                           "without weights (those of classes are ghp-run's --class-weights), with a negative "
                           "ignore_index and a beta above 0" % (loss,), 2)


def _inputs(torch: Any, example: Any) -> Tuple[Any, ...]:
    inputs = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    for x in inputs:
        if not isinstance(x, torch.Tensor) or x.dim() < 2 or len(x) < 1:
            raise tools.UsageError("the example is not a tensor, or a tuple of tensors, with the batch as the first of "
                                   "its dimensions; give what the module is called with, such as torch.zeros(1, 8)", 2)
    # one sample would be taken for a constant by the exporter
    return tuple(torch.cat([x, x]) if len(x) == 1 else x for x in inputs)


def _refuse_modes(torch: Any, module: Any) -> None:
    if not module.training:
        raise tools.UsageError("the module is in evaluation mode; call module.train() first", 2)
    for name, parameter in module.named_parameters():
        if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
            raise tools.UsageError("'%s' is in %s on %s; call module.float().cpu() first: a plan says in which numbers "
                                   "ghp trains" % (name, parameter.dtype, parameter.device.type), 2)
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and not part.training:
            raise tools.UsageError("'%s' is a batch norm in evaluation mode; call module.train(), and give "
                                   "freeze=['%s'] to ghp.plan to keep its statistics" % (name, name), 2)


def _write(torch: Any, module: Any, inputs: Tuple[Any, ...], loss: Optional[Dict[str, Any]], path: Path) -> None:
    batch = torch.export.Dim("batch", min=2, max=1 << 20)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(module, inputs, dynamo=True, optimize=False, verbose=False,
                                        dynamic_shapes=tuple({0: batch} for _ in inputs))
    except ImportError as missing:
        raise tools.Error("PyTorch's exporter needs '%s'; install onnx and onnxscript" % missing.name) from None
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:  # torch's own text says what to tell its developers
            cause = cause.__cause__
        raise tools.Error("PyTorch's exporter does not write this module, or not with this example: %s" %
                          (str(cause).strip().splitlines() or [type(cause).__name__])[0]) from error
    properties = program.model.metadata_props
    properties["ghp.parameters"] = json.dumps(
        [name for name, p in module.named_parameters(remove_duplicate=False) if p.requires_grad])
    properties["ghp.shared"] = json.dumps([name for name, names in _shared_names(module).items() if len(names) > 1])
    if loss is not None:
        properties["ghp.loss"] = json.dumps(loss)
    program.save(os.fspath(path), external_data=False)


def export(module: Any, example: Any, path: Optional[PathLike] = None, loss: Any = None,
           check: Optional[bool] = None, output_weights: Optional[Sequence[float]] = None,
           own_labels: bool = False) -> Network:
    """Writes a PyTorch module as a network that ghp plans and trains.

    Parameters keep their names and values. Those with requires_grad=False are not trained.

    module    an nn.Module in training mode, with parameters in float32 on the CPU
    example   what it is called with: a tensor [batch, ...], or a tuple of these
    path      the file, NAME.onnx; None: a temporary file that goes with the returned object
    loss      an nn.CrossEntropyLoss, nn.BCEWithLogitsLoss, nn.MSELoss, nn.L1Loss, nn.HuberLoss or nn.SmoothL1Loss; None:
              nn.CrossEntropyLoss(); a list of such: one for each tensor that the module returns, each with labels of its
              own
    check     whether ghp-run trains one step, with dropout off, and its gradients are compared with PyTorch's in
              double; None: if ghp-run and mpirun are installed
    output_weights   of a module that returns a tuple or a dictionary of tensors: what the loss of each counts in their
              sum, the main one first; None with several losses: 1. With one loss all have as many classes or numbers
    own_labels       whether each output of one loss has labels of its own; else all have the same

    Raises Error if the module cannot be exported or read, or if a gradient differs by more than STEP_LIMIT of its
    module's gradients; UsageError if the module's mode, the example or the loss cannot be meant.
    """
    torch = _torch()
    layer, inputs = _loss_layer(loss, output_weights, own_labels), _inputs(torch, example)
    _refuse_modes(torch, module)
    if {name for name, _ in module.named_parameters()} <= {"weight", "bias"}:
        raise tools.UsageError("the module is one layer, whose parameters have no layer's name; give "
                               "torch.nn.Sequential(module)", 2)
    folder = None if path is not None else tempfile.TemporaryDirectory(prefix="ghp-")
    target = Path(path) if path is not None else Path(folder.name) / "network.onnx"
    if target.suffix != ".onnx":
        raise tools.UsageError("'%s' does not end in .onnx; give such a path" % target, 2)
    _write(torch, module, inputs, layer, target)
    network = Network(target, folder=folder)
    can = tools.find("ghp-run") is not None and tools.find("mpirun") is not None
    if check and not can:
        raise tools.Error("the check needs ghp-run and mpirun; set GHP_BIN to ghp's build/bin, or give check=False")
    if check or (check is None and can):
        network.checked = _check(torch, module, inputs, layer)
    return network


# ---- one step of both ----


def _outputs(output: Any, layer: Optional[Dict[str, Any]]) -> List[Any]:
    """Those that are trained."""
    several = list(output.values() if isinstance(output, dict) else output) if \
        isinstance(output, (dict, list, tuple)) else [output]
    if len(several) > 1 and (layer is None or not ("output_weights" in layer or "losses" in layer)):
        raise tools.UsageError("the module returns %d tensors; give output_weights, a number for each, or a list of "
                               "losses, or return one alone" % len(several), 2)
    return several


def _each(layer: Optional[Dict[str, Any]], outputs: List[Any]) -> List[Optional[Dict[str, Any]]]:
    """The loss of each output."""
    return layer["losses"] if layer is not None and "losses" in layer else [layer] * len(outputs)


def _all_labels(torch: Any, outputs: List[Any], layer: Optional[Dict[str, Any]], draw: Any) -> List[Any]:
    """Of each output; the same ones several times, if they share them."""
    if layer is not None and (layer.get("own_labels") or "losses" in layer):
        return [_labels(torch, output, one, draw) for output, one in zip(outputs, _each(layer, outputs))]
    return [_labels(torch, outputs[0], layer, draw)] * len(outputs)


def _places(output: Any) -> Tuple[int, ...]:
    """The axes of an output's positions or pixels; a vector has none."""
    return tuple(output.shape[2:]) if output.dim() == 4 else tuple(output.shape[1:2]) if output.dim() == 3 else ()


def _label_rows(torch: Any, labels: List[Any], outputs: List[Any]) -> Any:
    """Of outputs whose places differ: [batch, labels, places], in which an output's own places come first, and the
    others are NaN."""
    rows = []
    for t, y in zip(labels, outputs):
        row = t if y.dim() != 3 or t.dim() == 2 else t.transpose(1, 2)
        rows.append(row.float().reshape(len(t), -1, math.prod(_places(y))))
    most = max(row.shape[2] for row in rows)
    pad = torch.nn.functional.pad
    return torch.cat([pad(row, (0, most - row.shape[2]), value=math.nan) for row in rows], 1)


def _label_array(torch: Any, labels: List[Any], outputs: List[Any], layer: Optional[Dict[str, Any]]) -> Any:
    """What a file has: of own labels those of all outputs, place by place; of several losses as numbers."""
    labels = [t.unsqueeze(1) if y.dim() == 1 else t for t, y in zip(labels, outputs)]  # one number, squeezed
    outputs = [y.unsqueeze(1) if y.dim() == 1 else y for y in outputs]
    if layer is not None and "losses" in layer:
        if len({_places(y) for y in outputs}) > 1:
            return _label_rows(torch, labels, outputs)
        axis = 1 if outputs[0].dim() == 4 else -1
        return torch.cat([(t if t.dim() == y.dim() else t.unsqueeze(axis)).float() for t, y in zip(labels, outputs)],
                         axis)
    if layer is None or not layer.get("own_labels"):
        return labels[0].flatten(1) if labels[0].dim() > 4 else labels[0]
    if labels[0].dim() == outputs[0].dim():  # one for each number: next to each other as the outputs are
        return torch.cat(labels, -1 if labels[0].dim() == 3 else 1)
    return torch.stack(labels, -1).flatten(1)


def _labels(torch: Any, output: Any, layer: Optional[Dict[str, Any]], draw: Any) -> Any:
    if layer is not None and layer["op"] == "binary_cross_entropy":
        return torch.randint(0, 2, tuple(output.shape), generator=draw)
    if layer is not None and layer["op"] == "regression":
        return torch.randn(output.shape, generator=draw, dtype=torch.float32)
    if output.dim() == 4:  # [n, classes, h, w]: a class for each pixel
        return torch.randint(0, output.shape[1], (output.shape[0], *output.shape[2:]), generator=draw)
    return torch.randint(0, output.shape[-1], tuple(output.shape[:-1]), generator=draw)


def _loss(torch: Any, output: Any, labels: Any, layer: Optional[Dict[str, Any]]) -> Any:
    ask = torch.nn.functional
    if layer is not None and layer["op"] == "binary_cross_entropy":
        return ask.binary_cross_entropy_with_logits(output, labels.double())
    if layer is not None and layer["op"] == "regression":
        error = {"squared": ask.mse_loss, "absolute": ask.l1_loss, "huber": ask.huber_loss,
                 "smooth_l1": ask.smooth_l1_loss}[layer["error"]]
        delta = {"huber": "delta", "smooth_l1": "beta"}.get(layer["error"])
        return error(output, labels.double(), **({delta: layer["delta"]} if delta else {}))
    if output.dim() == 3:
        output, labels = output.flatten(0, 1), labels.flatten()
    return ask.cross_entropy(output, labels, label_smoothing=layer["smoothing"] if layer else 0.0)


def _gradients(torch: Any, module: Any, inputs: Tuple[Any, ...], labels: List[Any],
               layer: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    twin = copy.deepcopy(module).double()
    outputs = _outputs(twin(*(x.double() if x.is_floating_point() else x for x in inputs)), layer)
    each = _each(layer, outputs)
    weights = layer["output_weights"] if layer is not None and "output_weights" in layer else \
        [one.get("weight", 1.0) if one is not None else 1.0 for one in each]
    sum(w * _loss(torch, y, t, one) for w, y, t, one in zip(weights, outputs, labels, each)).backward()
    return {name: p.grad for name, p in twin.named_parameters() if p.grad is not None}


def _check(torch: Any, module: Any, inputs: Tuple[Any, ...], layer: Optional[Dict[str, Any]]) -> float:
    numpy = __import__("numpy")
    plain = copy.deepcopy(module)
    for part in plain.modules():  # two programs draw different masks
        drops = "Drop" in type(part).__name__ or "StochasticDepth" in type(part).__name__
        for rate, value in list(vars(part).items()):  # an attention has a rate of its own: `dropout`
            if isinstance(value, float) and ("drop" in rate or (drops and rate == "p")):
                setattr(part, rate, 0.0)
    draw = torch.Generator().manual_seed(1)
    if len(inputs) != 1:
        raise tools.Error("a module of several inputs cannot be checked; give check=False")
    x = inputs[0][[i % len(inputs[0]) for i in range(_BATCH)]]
    if x.is_floating_point():
        x = torch.randn(x.shape, generator=draw, dtype=torch.float32)
    with torch.no_grad():
        outputs = _outputs(copy.deepcopy(plain)(x), layer)
        labels = _all_labels(torch, outputs, layer, draw)
    with tempfile.TemporaryDirectory(prefix="ghp-") as folder:
        at = Path(folder)
        _write(torch, plain, inputs, layer, at / "net.onnx")
        (at / "data").mkdir()
        numpy.save(at / "data" / "images.npy", x.numpy())
        numpy.save(at / "data" / "labels.npy", _label_array(torch, labels, outputs, layer).numpy())
        as_they_are = ["--normalise", "none"] if x.is_floating_point() else []  # token ids always are
        mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "1"]
        tools.run("ghp-profile", ["--analytic", _CHECK_PROFILE, "--model", at / "net.onnx", "-o", at / "profile"])
        tools.run("ghp-plan", [at / "net.onnx", "--profile", at / "profile", "--workers", 1, "--batch", _BATCH,
                               "--no-break-even", "-o", at / "plan"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tools.run("ghp-run", [at / "plan", "--data", "npy:%s" % (at / "data"), *as_they_are, "--steps", 1,
                                  "--lr", 0, "--momentum", 0.9, "--checkpoint", at / "first", "--eval", "off",
                                  "--precision", "double", "--backend", "reference", "--progress", "none"],
                      before=mpirun)
        got = _read_tensors(torch, at / "first" / "checkpoint.safetensors")
    return _worst(torch, got, _gradients(torch, plain, (x,), labels, layer), _shared_names(plain))


def _worst(torch: Any, got: Dict[str, Any], wanted: Dict[str, Any], shared: Dict[str, List[str]]) -> float:
    """A bias before a norm has a gradient of rounding alone, so sizes are those of a module's gradients together."""
    size: Dict[str, float] = {}
    for name, tensor in wanted.items():
        size[name.rpartition(".")[0]] = size.get(name.rpartition(".")[0], 0.0) + tensor.square().sum().item()
    most = 0.0
    for name, tensor in wanted.items():
        mine = _find_any(torch, got, ["momentum." + same for same in shared[name]])
        if mine is None:
            raise tools.Error("ghp does not train '%s', which the module does; please report this module" % name)
        scale = size[name.rpartition(".")[0]]
        off = (mine.double().flatten() - tensor.flatten()).square().sum().item()
        off = (off / scale) ** 0.5 if scale > 0 else off
        if not off <= STEP_LIMIT:
            raise tools.Error("the gradient of '%s' is %.1e from PyTorch's, relative to its module's; ghp would not "
                              "train this module as PyTorch does" % (name, off))
        most = max(most, off)
    return most


# ---- weights ----


def _read_tensors(torch: Any, path: Path) -> Dict[str, Any]:
    """The tensors of a safetensors file, by name."""
    kinds = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16,
             "I64": torch.int64}
    try:
        data = path.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        head = json.loads(data[8:8 + length])
    except (OSError, ValueError, struct.error) as error:
        raise tools.Error("cannot read '%s' as safetensors: %s" % (path, error)) from None
    tensors = {}
    for name, about in head.items():
        if name == "__metadata__" or about["dtype"] not in kinds:
            continue
        begin, end = about["data_offsets"]
        flat = torch.frombuffer(bytearray(data[8 + length + begin:8 + length + end]), dtype=kinds[about["dtype"]]) \
            if end > begin else torch.empty(0, dtype=kinds[about["dtype"]])
        tensors[name] = flat.reshape(about["shape"])
    return tensors


def _find(torch: Any, tensors: Dict[str, Any], name: str) -> Any:
    """A module's tensor: under its name, as the weight or bias of a layer that is called so, or in the parts that ghp
    makes of one layer for queries, keys and values, as nn.MultiheadAttention's is, or of one for the last two. They are
    of each head by itself if the parts have the number of heads in their names. Keys without a bias, in whose place the
    module takes zeros, have zeros. None: there is none."""
    for end in ("", ".weight", ".bias"):
        if name + end in tensors:
            return tensors[name + end]
    base, _, kind = name.rpartition(".")
    own = ["%s.%s_proj_weight.bias" % (base, part) for part in "qkv"]  # keys and values of other widths
    if kind == "in_proj_bias" and all(part in tensors for part in own):
        return torch.cat([tensors[part] for part in own])
    if kind.startswith("in_proj_"):
        base, kind = base + ".in_proj_weight", kind[len("in_proj_"):]
    for heads in range(2, 257):
        if "%s.q%d.%s" % (base, heads, kind) in tensors:
            by_head = [tensors["%s.%s%d.%s" % (base, part, heads, kind)].unflatten(0, (heads, -1)) for part in "qkv"]
            return torch.cat(by_head, 1).flatten(0, 1)
    made = "qkv" if "%s.q.%s" % (base, kind) in tensors else "kv"
    parts = ["%s.%s.%s" % (base, part, kind) for part in made]
    if made == "qkv" and kind == "bias" and parts[1] not in tensors and parts[2] in tensors:
        return torch.cat([tensors[parts[0]], torch.zeros_like(tensors[parts[0]]), tensors[parts[2]]])
    return torch.cat([tensors[part] for part in parts]) if all(part in tensors for part in parts) else None


def _find_any(torch: Any, tensors: Dict[str, Any], names: List[str]) -> Any:
    """The tensor of the first of these names that has one. None: none has."""
    return next((found for found in (_find(torch, tensors, name) for name in names) if found is not None), None)


def _shared_names(module: Any) -> Dict[str, List[str]]:
    """All names of each parameter, itself first: a tied one has several, and a checkpoint has one of them."""
    same: Dict[int, List[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        same.setdefault(id(parameter), []).append(name)
    return {name: [name] + [other for other in names if other != name] for names in same.values() for name in names}


def load(module: Any, checkpoint: PathLike) -> List[str]:
    """Puts the weights and statistics of a checkpoint into a module, in place.

    checkpoint   the folder that ghp-run --checkpoint wrote, or a safetensors file

    Returns the names of the module's buffers that the checkpoint does not have, such as num_batches_tracked. Raises
    Error if a parameter is missing, or has another number of values; then the module is as it was.
    """
    torch = _torch()
    path = Path(checkpoint)
    tensors = _read_tensors(torch, path / "checkpoint.safetensors" if path.is_dir() else path)
    shared = _shared_names(module)
    state, missing = module.state_dict(), []
    for name, value in state.items():
        found = _find_any(torch, tensors, shared.get(name, [name]))
        if found is None and name in shared:
            raise tools.Error("'%s' has no '%s'; give a checkpoint of this module's network" % (checkpoint, name))
        if found is None:
            missing.append(name)
        elif found.numel() != value.numel():
            raise tools.Error("'%s' has %d values of '%s', the module %d; give a checkpoint of this module's network" %
                              (checkpoint, found.numel(), name, value.numel()))
        else:
            state[name] = found.reshape(value.shape).to(value.dtype)
    module.load_state_dict(state)
    return missing
