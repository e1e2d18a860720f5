"""A trained network in other hands: its ONNX file in onnxruntime, its safetensors checkpoint in PyTorch.

usage: onnx_logits.py NETWORK.onnx MNIST_FOLDER [MODEL.json CHECKPOINT.safetensors]

Takes the last 256 MNIST test images. Prints the mean loss and the fraction of right answers in onnxruntime; with a model
and its checkpoint also the largest difference of any logit from PyTorch's, and the largest logit.
"""
import gzip
import json
import pathlib
import sys

import numpy
import onnxruntime

SAMPLES = 256


def idx(path, header):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), numpy.uint8)[header:]


def in_pytorch(model, checkpoint, pixels):
    """Logits of the network that bench/lab/ddp.py makes of a model, with the tensors of a checkpoint by their names."""
    import safetensors.torch
    import torch

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench" / "lab"))
    from ddp import Network

    network = Network(json.loads(pathlib.Path(model).read_text())).eval()
    wanted = network.state_dict()
    have = safetensors.torch.load_file(checkpoint)
    names = {name: name.removeprefix("layers.").replace("/", ".") for name in wanted}
    network.load_state_dict({name: have[names[name]] for name in wanted
                             if not name.endswith("num_batches_tracked")}, strict=False)
    with torch.no_grad():
        return network(torch.from_numpy(pixels)).numpy().astype(numpy.float64)


network, folder = sys.argv[1:3]
labels = idx(folder + "/t10k-labels-idx1-ubyte.gz", 8)[-SAMPLES:]
images = idx(folder + "/t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
train = images[:-SAMPLES].astype(numpy.float64)  # ghp trains on the part before, and norms pixels by it
pixels = ((images[-SAMPLES:] - train.mean()) / train.std()).astype(numpy.float32)
session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
logits = session.run(None, {session.get_inputs()[0].name: pixels})[0].astype(numpy.float64)
norm = numpy.log(numpy.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1)
print(numpy.mean(norm - logits[numpy.arange(SAMPLES), labels]), numpy.mean(logits.argmax(1) == labels))
if len(sys.argv) > 3:
    print(numpy.abs(logits - in_pytorch(*sys.argv[3:5], pixels)).max(), numpy.abs(logits).max())
