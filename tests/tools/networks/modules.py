"""Small modules of the kinds that people bring, for exporters.py: {name: (maker, shape of a sample)}. Their outputs have
CLASSES classes; where these are of each pixel, the shape of a sample's labels comes third."""
import torch
import torchvision
from torch import nn
from torchvision.models import swin_transformer

CLASSES = 10


class Encoder(nn.Module):
    """nn.TransformerEncoder over a sequence; its first position, or the mean, is classified."""

    def __init__(self, causal=False, mean=False, **of):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **{"dropout": 0.0, **of})
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, CLASSES)
        self.causal, self.mean = causal, mean
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(8))

    def forward(self, x):
        y = self.encoder(x, mask=self.mask, is_causal=True) if self.causal else self.encoder(x)
        return self.head(y.mean(1) if self.mean else y[:, 0])


class Attention(nn.Module):
    """nn.MultiheadAttention with `of` said in the call."""

    def __init__(self, bias=True, batch_first=True, causal=False, **of):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=batch_first, bias=bias)
        self.head = nn.Linear(32, CLASSES)
        self.of, self.batch_first, self.causal = of, batch_first, causal
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(8))

    def forward(self, x):
        if not self.batch_first:
            x = x.transpose(0, 1)
        more = {"attn_mask": self.mask} if self.causal else {}
        y = self.attention(x, x, x, **self.of, **more)[0]
        return self.head(y.mean(1) if self.batch_first else y.transpose(0, 1).mean(1))


class Widths(nn.Module):
    """nn.MultiheadAttention whose keys and values have other widths than its queries."""

    def __init__(self):
        super().__init__()
        self.few = nn.Linear(32, 16)
        self.attention = nn.MultiheadAttention(32, 4, kdim=16, vdim=16, batch_first=True)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x):
        few = self.few(x)
        return self.head(self.attention(x, few, few, need_weights=False)[0].mean(1))


class Joined(nn.Module):
    """Attention by one layer for queries, keys and values. They come apart as GPTs have it, on the last axis, or as timm
    has it, on an axis before the samples, or in each head by itself."""

    def __init__(self, way):
        super().__init__()
        self.qkv, self.proj, self.head = nn.Linear(32, 96), nn.Linear(32, 32), nn.Linear(32, CLASSES)
        self.way = way

    def forward(self, x):
        n, positions, channels = x.shape
        if self.way == "unbound":
            q, k, v = self.qkv(x).reshape(n, positions, 3, 4, channels // 4).permute(2, 0, 3, 1, 4).unbind(0)
        elif self.way == "heads":
            q, k, v = self.qkv(x).reshape(n, positions, 4, 3 * channels // 4).transpose(1, 2).chunk(3, -1)
        else:
            q, k, v = (part.reshape(n, positions, 4, channels // 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.head(self.proj(y.transpose(1, 2).reshape(n, positions, channels)).mean(1))


def vit():
    net = torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=CLASSES)
    nn.init.normal_(net.heads.head.weight, std=0.2)  # zeros at first: no gradient would come through
    return net


def swin(**of):
    return torchvision.models.SwinTransformer([2, 2], 8, [2, 2], [2, 4], [4, 4], num_classes=CLASSES,
                                              stochastic_depth_prob=0.0, **of)


def swin_v2():
    """The scale of one head in each block is clipped."""
    net = swin(block=swin_transformer.SwinTransformerBlockV2, downsample_layer=swin_transformer.PatchMergingV2)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith("logit_scale"):
                parameter[0] += 3
    return net


def maxvit():
    return torchvision.models.MaxVit((32, 32), 8, 4, [8], [1], 4, 0.0, num_classes=CLASSES)


class Pixels(nn.Module):
    """A class for each pixel, from two scales."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=2, dilation=2)
        self.norm, self.head = nn.BatchNorm2d(12), nn.Conv2d(12, CLASSES, 1)

    def forward(self, x):
        x = torch.relu(self.one(x))
        return self.head(self.norm(torch.cat([x, torch.relu(self.two(x))], 1)))


class Scales(nn.Module):
    """What U-Nets and generators are made of: a coarse path, repeated or shuffled to the pixels of a fine one."""

    def __init__(self, up, channels, norm):
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norm, self.pool, self.up = norm(8), nn.MaxPool2d(2), up
        self.head = nn.Conv2d(8 + channels, CLASSES, 1)

    def forward(self, x):
        x = torch.relu(self.norm(self.fine(x)))
        return self.head(torch.cat([x, self.up(torch.relu(self.coarse(self.pool(x))))], 1))


class UNet(nn.Module):
    """Three scales below the first; each comes up in another of the ways that U-Nets have."""

    def __init__(self):
        super().__init__()
        widths = (4, 6, 8, 10)
        self.down = nn.ModuleList([self.convolutions(3 if k == 0 else widths[k - 1], widths[k]) for k in range(4)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(6, 6, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear"),
                                 nn.Upsample(size=4, mode="bilinear", align_corners=True)])
        self.join = nn.ModuleList([self.convolutions(widths[k] + widths[k + 1], widths[k]) for k in range(3)])
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(4, CLASSES, 1)

    @staticmethod
    def convolutions(channels, out):
        return nn.Sequential(nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU())

    def forward(self, x):
        fine = [self.down[0](x)]
        for down in self.down[1:]:
            fine.append(down(self.pool(fine[-1])))
        x = fine.pop()
        for join, up in zip(reversed(self.join), reversed(self.up)):
            x = join(torch.cat([fine.pop(), up(x)], 1))
        return self.head(x)


class Functions(nn.Module):
    """Activations and functions of each element, some of slopes that are trained, each on channels of its own."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 30, 3, padding=1)
        self.plain = nn.ModuleList([nn.Mish(), nn.Softplus(), nn.Softplus(2.0), nn.SELU(), nn.CELU(0.5),
                                    nn.Softsign(), nn.LogSigmoid(), nn.PReLU(), nn.PReLU(2)])
        self.head = nn.Linear(30, CLASSES)

    def forward(self, x):
        parts = self.one(x).chunk(15, 1)
        y = [module(part) for module, part in zip(self.plain, parts)]
        a, b, c, d, e, f = parts[9:]
        y += [a ** 3 - b.abs(), (b * b + 1).sqrt(), c.exp() * c.sin(), torch.log(d * d + 1), e / (e * e + 1),
              2 / (f.cos() + 3)]
        return self.head(torch.cat(y, 1).mean((2, 3)))


class Gated(nn.Module):
    """Channels and pixels weighed by a softmax inside the network."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1), nn.Linear(8, CLASSES)

    def forward(self, x):
        x = self.one(x)
        x = x * self.two(x).softmax(1)
        return self.head((x * x.softmax(2)).sum((2, 3)) - x.log_softmax(1).mean((2, 3)))


class Tables(nn.Module):
    """Trained tensors of any of a sample's axes, added and multiplied, and rows of a table that constant ids name."""

    def __init__(self):
        super().__init__()
        self.one, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, CLASSES)
        self.places, self.slopes = nn.Parameter(torch.randn(1, 4, 12, 12)), nn.Parameter(torch.randn(12, 12))
        self.columns, self.below = nn.Parameter(torch.randn(12)), nn.Parameter(torch.randn(4, 12, 1))
        self.types = nn.Embedding(3, 12)
        self.register_buffer("ids", torch.zeros(12, dtype=torch.long))

    def forward(self, x):
        x = self.one(x) + self.places
        x = torch.sin(x * self.slopes - self.below + self.types(self.ids)) * self.columns + x * self.slopes.t()
        return self.head((self.below - x * x).mean((2, 3)))


class Lengths(nn.Module):
    """Norms of features, of zeros too, and the larger and the smaller of two tensors."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Conv2d(3, 8, 3), nn.Conv2d(3, 8, 3), nn.Linear(16, CLASSES)

    def forward(self, x):
        x, y = self.one(x), self.two(x)
        g = torch.norm(x, p=2, dim=(2, 3), keepdim=True)
        x = x * (g / (g.mean(1, keepdim=True) + 1e-6))
        x = nn.functional.normalize(x, dim=1) + nn.functional.normalize(torch.relu(y - 1e4), dim=1)
        x = torch.maximum(x, y) - torch.minimum(x, 2 * y)
        return self.head(torch.cat([torch.norm(x, p=1, dim=(2, 3)), x.amin((2, 3))], 1))


class Registers(nn.Module):
    """timm's attention on patches of a picture, without a class token, then with one and two register tokens."""

    def __init__(self):
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 32, 4, 4), nn.Linear(32, CLASSES)
        self.places, self.slope = nn.Parameter(torch.randn(1, 9, 32)), nn.Parameter(torch.randn(32))
        self.token, self.registers = nn.Parameter(torch.randn(1, 1, 32)), nn.Parameter(torch.randn(1, 2, 32))
        self.qkv, self.later = nn.Linear(32, 96), nn.Linear(32, 96)

    @staticmethod
    def attend(qkv, x):
        n, positions, channels = x.shape
        q, k, v = qkv(x).reshape(n, positions, 3, 4, channels // 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return y.transpose(1, 2).reshape(n, positions, channels)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        x = x + self.slope * self.attend(self.qkv, x)
        x = torch.cat([self.token.expand(len(x), -1, -1), self.registers.expand(len(x), -1, -1), x], 1)
        return self.head(self.attend(self.later, x)[:, 0])


class Looks(nn.Module):
    """Attention to another sequence: of windows to themselves without a table, of patches to fewer ones of a coarser
    scale, by products of their own and by nn.MultiheadAttention, of learned queries to all patches."""

    def __init__(self):
        super().__init__()
        self.patches, self.coarse = nn.Conv2d(3, 8, 2, 2), nn.Conv2d(8, 8, 2, 2)
        self.within, self.q, self.kv = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 16)
        self.queries, self.probe = nn.Parameter(torch.randn(1, 2, 8)), nn.Parameter(torch.randn(1, 1, 8))
        self.first, self.last, self.other = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.look = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(24, CLASSES)

    @staticmethod
    def heads(x, parts=1):
        if parts == 1:
            return x.reshape(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
        return x.reshape(x.shape[0], x.shape[1], parts, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)

    def windows(self, x):
        n = x.shape[0]
        x = x.reshape(n, 8, 2, 3, 2, 3).permute(0, 2, 4, 3, 5, 1).reshape(-1, 9, 8)
        q, k, v = self.heads(self.within(x), 3)
        x = ((q @ k.transpose(-2, -1)) * 0.5).softmax(-1) @ v
        x = x.transpose(1, 2).reshape(-1, 9, 8)
        return x.reshape(n, 2, 2, 3, 3, 8).permute(0, 5, 1, 3, 2, 4).reshape(n, 8, 6, 6)

    def forward(self, x):
        x = self.patches(x)
        x = x + self.windows(x)
        few, x = self.coarse(x).flatten(2).transpose(1, 2), x.flatten(2).transpose(1, 2)
        q, (k, v) = self.heads(self.q(x)), self.heads(self.kv(few), 2)
        x = x + nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + self.look(x, few, few, need_weights=False)[0]
        q = self.heads(self.other(self.queries.expand(x.shape[0], -1, -1)))
        y = nn.functional.scaled_dot_product_attention(q, self.heads(x), self.heads(self.last(x)))
        q, k = self.heads(self.first(self.probe.repeat(x.shape[0], 1, 1))), self.heads(x)
        z = torch.einsum("bhij,bhjd->bhid", torch.einsum("bhid,bhjd->bhij", q, k).softmax(-1),
                         self.heads(self.last(x)))
        return self.head(torch.cat([y.transpose(1, 2).flatten(1), z.flatten(1)], 1))


class Products(nn.Module):
    """Products of two tensors that are no attention's: without a softmax, by turned weights, of channels, with a matrix
    in front, and by letters."""

    def __init__(self):
        super().__init__()
        self.patches, self.qkv, self.alone = nn.Conv2d(3, 8, 2, 2), nn.Linear(8, 24), nn.Linear(8, 1)
        self.mix, self.letters = nn.Parameter(torch.randn(5, 36)), nn.Parameter(torch.randn(2, 8, 3))
        self.register_buffer("near", torch.rand(36, 36).softmax(-1))
        self.head = nn.Linear(3 * 8 + 64 + 5 * 8 + 2 * 3, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(x).chunk(3, -1)
        long = (nn.functional.elu(q) + 1) @ ((nn.functional.elu(k) + 1).transpose(1, 2) @ v) / 32
        turned = torch.bmm(v.transpose(1, 2), torch.bmm(q, k.transpose(1, 2)).softmax(-1).transpose(1, 2))
        pooled = torch.bmm(self.alone(x).softmax(1).transpose(1, 2), torch.tanh(self.near @ x))
        letters = torch.einsum("bnc,hcd->bhnd", x, self.letters)
        of_channels = x.transpose(1, 2) @ x / 32
        return self.head(torch.cat([long.mean(1), turned.mean(2), pooled.flatten(1), of_channels.flatten(1),
                                    (self.mix @ x).flatten(1), letters.mean(2).flatten(1)], 1))


class Computed(nn.Module):
    """Functions of parameters: rows of unit length, a scale under an exponential, squares, a divisor, what is subtracted
    and what one is added to. Their names say that they are parameters. And patches that overlap."""

    def __init__(self):
        super().__init__()
        self.one, self.patches, self.head = nn.Linear(12, 8), nn.Linear(4, 2), nn.Linear(16, CLASSES)
        self.rows, self.scale, self.gain = nn.Embedding(6, 8), nn.Linear(1, 1), nn.LayerNorm(8)
        self.factors, self.centres, self.slopes = nn.Linear(3, 8), nn.Linear(8, 5), nn.LayerNorm(5)

    def forward(self, x):
        y = torch.tanh(self.one(x)) * (1 + self.gain.weight)
        units = nn.functional.normalize(y) @ nn.functional.normalize(self.rows.weight).t() * self.scale.weight.exp()
        squares = y ** 2 @ self.factors.weight ** 2
        near = torch.exp(-self.slopes.weight * ((y.unsqueeze(1) - self.centres.weight) ** 2).sum(-1))
        return self.head(torch.cat([units, squares / self.slopes.weight[:3], near - self.slopes.bias,
                                    self.patches(x.unfold(1, 4, 2)).mean(1)], 1))


class Again(nn.Module):
    """Modules that are called again: a trunk on two halves of the picture, and a block at three depths."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.block = nn.ModuleDict({"norm": nn.LayerNorm(8), "up": nn.Linear(8, 16),
                                    "down": nn.Linear(16, 8, bias=False)})
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = (self.trunk(x[:, :, :, :6]) - self.trunk(x[:, :, :, 6:])).abs().mean((2, 3))
        for _ in range(3):
            x = x + self.block["down"](torch.tanh(self.block["up"](self.block["norm"](x))))
        return self.head(x)


SEQUENCE, IMAGE, SMALL = (8, 32), (3, 32, 32), (3, 12, 12)
MODULES = {
    "vit": (vit, IMAGE),
    "encoder": (Encoder, SEQUENCE),
    "encoder_before": (lambda: Encoder(mean=True, norm_first=True, activation="gelu"), SEQUENCE),
    "encoder_causal": (lambda: Encoder(causal=True), SEQUENCE),
    "attention": (lambda: Attention(need_weights=False), SEQUENCE),
    "attention_weights": (Attention, SEQUENCE),
    "attention_last": (lambda: Attention(batch_first=False, need_weights=False), SEQUENCE),
    "attention_causal": (lambda: Attention(causal=True, need_weights=False), SEQUENCE),
    "attention_joined": (lambda: Joined("joined"), SEQUENCE),
    "attention_unbound": (lambda: Joined("unbound"), SEQUENCE),
    "attention_heads": (lambda: Joined("heads"), SEQUENCE),
    "swin": (swin, IMAGE),
    "swin_v2": (swin_v2, IMAGE),
    "maxvit": (maxvit, IMAGE),
    "again": (Again, SMALL),
    "looks": (Looks, SMALL),
    "registers": (Registers, SMALL),
    "functions": (Functions, SMALL),
    "lengths": (Lengths, SMALL),
    "products": (Products, SMALL),
    "computed": (Computed, (12,)),
    "pixels": (Pixels, IMAGE, (32, 32)),
    "nearest": (lambda: Scales(nn.Upsample(scale_factor=2), 16, lambda c: nn.GroupNorm(2, c)), SMALL, (12, 12)),
    "shuffled": (lambda: Scales(nn.PixelShuffle(2), 4, lambda c: nn.InstanceNorm2d(c, affine=True)), SMALL, (12, 12)),
    "instances": (lambda: Scales(nn.Upsample(scale_factor=2), 16, nn.InstanceNorm2d), SMALL, (12, 12)),
    "overlapping": (lambda: Scales(nn.ConvTranspose2d(16, 8, 3, 2, padding=1, output_padding=1), 8, nn.BatchNorm2d),
                    SMALL, (12, 12)),
    "unet": (UNet, (3, 16, 16), (16, 16)),
    "lrn": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.LocalResponseNorm(5, 0.1), nn.Flatten(), nn.Linear(800, CLASSES)),
            SMALL),
    "gated": (Gated, SMALL),
    "tables": (Tables, SMALL),
    "adaptive": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.AdaptiveAvgPool2d((5, 3)), nn.Flatten(),
                                       nn.Linear(120, CLASSES)), (3, 12, 10)),
    "attention_dropout": (lambda: Encoder(dropout=0.25), SEQUENCE),
    "channel_dropout": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout2d(0.25), nn.ReLU(), nn.Flatten(2),
                                              nn.Dropout1d(0.125), nn.Flatten(), nn.Linear(800, CLASSES)), SMALL),
    "transposed_groups": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 12, 3, 2, 1, groups=4),
                                                nn.ReLU(), nn.ConvTranspose2d(12, CLASSES, 2)), SMALL, (20, 20)),
    "attention_widths": (Widths, SEQUENCE),
    "attention_no_bias": (lambda: Attention(bias=False), SEQUENCE),
}
