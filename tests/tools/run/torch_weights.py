# tests/tools/run/torch_weights.py - the weights of ghp's checkpoints as PyTorch's tensors, for the tests beside it.
import json
import struct

import torch


def read_weights(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    types = {"F32": torch.float32, "F64": torch.float64}
    tensors = {}
    for name, about in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__" or name.startswith(("momentum.", "variance.")):
            continue
        first, end = about["data_offsets"]
        part = bytearray(data[8 + length + first : 8 + length + end])
        tensors[name] = torch.frombuffer(part, dtype=types[about["dtype"]]).reshape(about["shape"]).clone()
    return tensors
