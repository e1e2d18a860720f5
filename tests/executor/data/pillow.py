# tests/executor/data/pillow.py - tests/executor/data/image/test_pillow.c's samples compared with Pillow's.
#
# usage: pillow.py LIST
#
# In pictures that are decoded whole, no byte differs by more than a level: ghp rounds once, Pillow after columns and
# after rows. For reduced JPEGs Pillow's own reduced decoder (draft) is asked for the same reduction: again a level.
# Compared with Pillow's full decoding these differ by what the other low-pass filter does: at most 3 levels in the mean
# of a sample. The normalised numbers differ by no more than the bytes do, over 255 and the least deviation.
import sys

try:
    import numpy
    from PIL import Image
except ImportError:
    sys.exit(77)

MEAN, DEVIATION = numpy.array([0.485, 0.456, 0.406]), numpy.array([0.229, 0.224, 0.225])
worst = {"whole": 0, "draft": 0}
mean_of_reduced = 0
samples = {"whole": 0, "draft": 0}


def sample(image, box, seen, size, mirrored, scale):
    """As torchvision does: a part is cut out, then resized; where all may be looked at, only resized."""
    x, y, end_x, end_y = seen
    whole = (0, 0) == (x, y) and (end_x, end_y) == tuple(image_size)
    if not whole:
        if scale > 1:
            return None
        image = image.crop(seen)
        box = (box[0] - x, box[1] - y, box[2] - x, box[3] - y)
    box = tuple(min(max(b / scale, 0), limit) for b, limit in zip(box, image.size * 2))
    image = image.resize(size, Image.BILINEAR, box=box)
    return image.transpose(Image.FLIP_LEFT_RIGHT) if mirrored else image


def difference(a, b):
    return numpy.abs(a.astype(int) - b.astype(int))


for line in open(sys.argv[1]):
    words = line.split()
    path, channels, reduction = words[0], int(words[1]), int(words[2])
    box, seen = tuple(map(float, words[3:7])), tuple(map(int, words[7:11]))
    mirrored, size, name = words[11] == "1", (int(words[12]), int(words[13])), words[14]
    ours = numpy.fromfile(name, numpy.uint8).reshape(size[1], size[0], channels)
    image_size = Image.open(path).size
    mode = "L" if channels == 1 else "RGB"

    full = sample(Image.open(path).convert(mode), box, seen, size, mirrored, 1)
    theirs = numpy.asarray(full).reshape(ours.shape)
    if reduction == 1:
        worst["whole"] = max(worst["whole"], difference(ours, theirs).max())
        samples["whole"] += 1
        # the same numbers as ToTensor and Normalize make
        if channels == 3:
            a, b = ((x / 255 - MEAN) / DEVIATION for x in (ours, theirs))
            assert numpy.abs(a - b).max() <= 1 / 255 / DEVIATION.min() + 1e-12
    else:
        mean_of_reduced = max(mean_of_reduced, difference(ours, theirs).mean())
        image = Image.open(path)
        image.draft(image.mode, (image_size[0] // reduction, image_size[1] // reduction))
        drafted = sample(image.convert(mode), box, seen, size, mirrored, reduction)
        if drafted is not None:
            worst["draft"] = max(worst["draft"], difference(ours, numpy.asarray(drafted)).max())
            samples["draft"] += 1

print(f"greatest difference from Pillow: {worst['whole']} level(s) over {samples['whole']} samples, reduced "
      f"{worst['draft']} over {samples['draft']}, mean of reduced beside whole {mean_of_reduced:.2f}")
if not (samples["whole"] and samples["draft"]):
    sys.exit("no sample of each kind")
if worst["whole"] > 1 or worst["draft"] > 1 or mean_of_reduced > 3:
    sys.exit("too far from Pillow")
