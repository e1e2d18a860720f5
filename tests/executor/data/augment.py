# tests/executor/data/augment.py LIST - changed pixels of test_augment.c compared with torchvision's functions on the
# same numbers, in float as ghp computes: a level is 1/255, and ghp rounds to the nearest one, so half a level and what
# float rounds are all that may differ.
import sys

try:
    import numpy
    import torch
    from torchvision.transforms import functional
except ImportError:
    sys.exit(77)

FILL = torch.tensor([124, 116, 104]) / 255
COLOURS = (functional.adjust_brightness, functional.adjust_contrast,
           functional.adjust_saturation, functional.adjust_hue)
worst = n = 0
for line in open(sys.argv[1]):
    before, after, *numbers = line.split()
    channels, width, height, vflipped, gray = map(int, numbers[:5])
    shape = height, width, channels
    read = lambda path: torch.from_numpy(numpy.fromfile(path, "uint8").reshape(shape)).permute(2, 0, 1)
    picture = read(before) / 255
    if vflipped:
        picture = functional.vflip(picture)
    for colour, by in zip(map(int, numbers[5:13:2]), map(float, numbers[6:13:2])):
        if by != (0 if colour == 3 else 1):
            picture = COLOURS[colour](picture, by)
    if gray and channels == 3:
        picture = functional.rgb_to_grayscale(picture, 3)
    left, top, right, bottom = map(int, numbers[13:])
    picture = functional.erase(picture, top, left, bottom - top, right - left, FILL[:channels, None, None])
    worst = max(worst, (255 * picture - read(after)).abs().max().item())
    n += 1
print(f"{n} samples, at most {worst:.4f} levels from torchvision's")
assert n > 0 and worst <= 0.5 + 1e-3, worst
