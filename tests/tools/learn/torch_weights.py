# tests/tools/learn/torch_weights.py - what ghp's checkpoints and other safetensors files hold as PyTorch's tensors, for
# the tests that compare with PyTorch.
import json
import struct

import torch

TYPES = {"F32": torch.float32, "F64": torch.float64}


def read_tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, about in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        first, end = about["data_offsets"]
        part = bytearray(data[8 + length + first : 8 + length + end])
        tensors[name] = torch.frombuffer(part, dtype=TYPES[about["dtype"]]).reshape(about["shape"]).clone()
    return tensors


def read_weights(path):
    return {name: x for name, x in read_tensors(path).items() if not name.startswith(("momentum.", "variance."))}


def find(tensors, name):
    """A module's tensor: under its name, as the weight or bias of a layer that is called so, or in parts that an
    attention reads: queries, keys and values, or the last two; of each head by itself if the parts have the number of
    heads in their names. Keys without a bias, whose module takes zeros in its place, have zeros."""
    for end in "", ".weight", ".bias":
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
            parts = [tensors["%s.%s%d.%s" % (base, part, heads, kind)].unflatten(0, (heads, -1)) for part in "qkv"]
            return torch.cat(parts, 1).flatten(0, 1)
    parts = ["%s.%s.%s" % (base, part, kind) for part in "qkv"]
    parts = parts if parts[0] in tensors else parts[1:]
    if kind == "bias" and len(parts) == 3 and parts[1] not in tensors:
        return torch.cat([tensors[parts[0]], torch.zeros_like(tensors[parts[0]]), tensors[parts[2]]])
    return torch.cat([tensors[part] for part in parts])
