# tests/executor/data/augment.py LIST - changed pixels of test_augment.c compared with torchvision's functions on the
# same numbers, in float as ghp computes: a level is 1/255, and ghp rounds to the nearest one, so half a level and what
# float rounds are all that may differ. RandAugment's operations are torchvision's on bytes: colours may differ by one
# level, where float rounds otherwise before it is cut; a pixel that is moved may come from a place that a slope or an
# angle 1e-5 of its size away gives; all else is the same.
import sys

try:
    import numpy
    import torch
    from torchvision.transforms import InterpolationMode, autoaugment, functional
except ImportError:
    sys.exit(77)

FILL = torch.tensor([124, 116, 104]) / 255
COLOURS = (functional.adjust_brightness, functional.adjust_contrast,
           functional.adjust_saturation, functional.adjust_hue)
OPERATIONS = ("Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
              "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize")


def rand(picture, after, name, by):
    """Levels between torchvision's result and the one after, less those that may be."""
    changes = name in OPERATIONS[6:10]
    wobbles = (1, 1 - 1e-5, 1 + 1e-5) if name in ("ShearX", "ShearY", "Rotate") else (1,)
    off = [(autoaugment._apply_op(picture, name, by * wobble - changes, InterpolationMode.NEAREST, None).int()
            - after.int()).abs() for wobble in wobbles]
    return torch.stack(off).amin(0).max().item() - (changes or name == "AutoContrast")


worst = rand_worst = n = 0
operations = set()
for line in open(sys.argv[1]):
    before, after, *numbers = line.split()
    channels, width, height, vflipped, gray = map(int, numbers[:5])
    shape = height, width, channels
    read = lambda path: torch.from_numpy(numpy.fromfile(path, "uint8").reshape(shape)).permute(2, 0, 1)
    if len(numbers) > 17:
        name = OPERATIONS[int(numbers[17])]
        operations.add(name)
        rand_worst = max(rand_worst, rand(read(before), read(after), name, float(numbers[18])))
        continue
    picture = read(before) / 255
    if vflipped:
        picture = functional.vflip(picture)
    for colour, by in zip(map(int, numbers[5:13:2]), map(float, numbers[6:13:2])):
        if by != (0 if colour == 3 else 1):
            picture = COLOURS[colour](picture, by)
    if gray and channels == 3:
        picture = functional.rgb_to_grayscale(picture, 3)
    left, top, right, bottom = map(int, numbers[13:17])
    picture = functional.erase(picture, top, left, bottom - top, right - left, FILL[:channels, None, None])
    worst = max(worst, (255 * picture - read(after)).abs().max().item())
    n += 1
print(f"{n} samples, at most {worst:.4f} levels from torchvision's")
assert n > 0 and worst <= 0.5 + 1e-3, worst
print(f"{len(operations)} operations of RandAugment, at most {rand_worst:.0f} levels more off than they may be")
assert rand_worst <= 0, rand_worst
