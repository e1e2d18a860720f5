"""bench/cpu/torch_networks.py - networks that people bring, as PyTorch modules: by torchvision, by timm, and a U-Net.

A name is PACKAGE.NETWORK, such as torchvision.efficientnet_b0, or unet.128 for a U-Net on images of 128 x 128 pixels.
Each takes images of the size it is made for, of three channels. torchvision.vit_s_16, which torchvision does not name, is
its vision transformer in the sizes of ViT-S/16.
"""
import torch
from torch import nn

PACKAGES = ("torchvision", "timm", "unet")


class UNet(nn.Module):
    """Four scales below the first, two convolutions each, from 32 channels up to 512; a class for each pixel."""

    def __init__(self, classes=21, width=32, scales=4):
        super().__init__()
        widths = [width << k for k in range(scales + 1)]
        self.down = nn.ModuleList(self.pair(3 if k == 0 else widths[k - 1], widths[k]) for k in range(scales + 1))
        self.up = nn.ModuleList(nn.ConvTranspose2d(widths[k + 1], widths[k], 2, 2) for k in range(scales))
        self.join = nn.ModuleList(self.pair(2 * widths[k], widths[k]) for k in range(scales))
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(width, classes, 1)

    @staticmethod
    def pair(channels, out):
        return nn.Sequential(nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                             nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())

    def forward(self, x):
        fine = [self.down[0](x)]
        for down in self.down[1:]:
            fine.append(down(self.pool(fine[-1])))
        x = fine.pop()
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(torch.cat([fine.pop(), up(x)], 1))
        return self.head(x)


class Brought(nn.Module):
    """A network by its name, with what bench/lab/ddp.py's Trainer asks of one."""

    vocabulary, owners = None, {}

    def __init__(self, name):
        super().__init__()
        package, _, network = name.partition(".")
        if package == "torchvision":
            import torchvision
            self.module, pixels = (torchvision.models.VisionTransformer(224, 16, 12, 6, 384, 1536) if network == "vit_s_16"
                                   else torchvision.models.get_model(network, weights=None)), 224
        elif package == "timm":
            import timm
            self.module = timm.create_model(network)
            pixels = self.module.default_cfg["input_size"][-1]
        else:
            self.module, pixels = UNet(), int(network)
        self.shape = (3, pixels, pixels)
        self.module.eval()  # training statistics need more than these two samples
        with torch.no_grad():
            out = self.module(torch.zeros(2, *self.shape))
        self.module.train()
        self.classes, self.places = out.shape[1], tuple(out.shape[2:])

    def forward(self, x):
        return self.module(x)
