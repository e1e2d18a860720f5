"""digits.py FOLDER - draws digits in the files and the format of MNIST: 28 x 28 bytes, moved, slanted and noisy."""
import pathlib
import random
import struct
import sys

SHAPES = """
01110 00100 01110 11111 00010 11111 00110 11111 01110 01110
10001 01100 10001 00010 00110 10000 01000 00001 10001 10001
10011 00100 00001 00100 01010 11110 10000 00010 10001 10001
10101 00100 00010 00010 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100
"""
ROWS = [line.split() for line in SHAPES.split("\n") if line]


def draw(digit, chance):
    """784 bytes of one digit."""
    left, top = chance.randrange(3, 9), chance.randrange(1, 7)
    size, slant = chance.choice((2.6, 3.0, 3.4)), chance.uniform(-0.25, 0.25)
    pixels = bytearray()
    for y in range(28):
        row = int((y - top) / size) if y >= top else 7
        for x in range(28):
            along = x - left + slant * (y - 14)
            column = int(along / size) if along >= 0 else 5
            ink = row < 7 and column < 5 and ROWS[row][digit][column] == "1"
            pixels.append(int((200 if ink else 20) + 55 * chance.random()) if chance.random() > 0.05 else 128)
    return pixels


def write(folder, name, images, seed):
    chance = random.Random(seed)
    labels = [chance.randrange(10) for _ in range(images)]
    with open(folder / f"{name}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">II", 0x801, images) + bytes(labels))
    with open(folder / f"{name}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, images, 28, 28))
        for label in labels:
            file.write(draw(label, chance))


target = pathlib.Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
write(target, "train", 2000, 1)
write(target, "t10k", 500, 2)
