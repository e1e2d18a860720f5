"""Mean loss and share of right answers of an exported network on the last 256 MNIST test images, by onnxruntime.

usage: onnx_loss.py NETWORK.onnx MNIST_FOLDER
"""
import gzip
import sys

import numpy
import onnxruntime

SAMPLES = 256


def idx(path, header):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), numpy.uint8)[header:]


network, folder = sys.argv[1:]
labels = idx(folder + "/t10k-labels-idx1-ubyte.gz", 8)[-SAMPLES:]
images = idx(folder + "/t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
train = images[:-SAMPLES].astype(numpy.float64)  # ghp trains on the part before, and norms pixels by it
pixels = ((images[-SAMPLES:] - train.mean()) / train.std()).astype(numpy.float32)
session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
logits = session.run(None, {session.get_inputs()[0].name: pixels})[0].astype(numpy.float64)
norm = numpy.log(numpy.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1)
print(numpy.mean(norm - logits[numpy.arange(SAMPLES), labels]), numpy.mean(logits.argmax(1) == labels))
