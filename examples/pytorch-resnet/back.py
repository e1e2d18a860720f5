"""Loads what ghp trained into the module, and counts its right answers."""
import ghp
import numpy
import torch
from resnet import ResNet

module = ResNet()
print("not in the checkpoint:", len(ghp.load(module, "trained")), "counters of batches")
images, labels = numpy.load("stripes/test-images.npy"), numpy.load("stripes/test-labels.npy")
with torch.no_grad():
    answers = module.eval()(torch.tensor(images)).argmax(1)
print("right in PyTorch: %.3f" % (answers.numpy() == labels).mean())
