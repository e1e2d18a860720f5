#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,python3
# tests/tools/data/test_folder.sh - the same images as a folder of PNG files, as NumPy's arrays and as CIFAR's records
# give the same losses, bit for bit; two workers train on a folder's random parts as one; samples are made during the
# steps; and 20 damaged files are named and skipped, by one worker as by two, or end the run; a profile measures their
# loading. In short tests executor/data/folder and executor/data/image/image stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"

python3 - <<'PYTHON' || exit 1
import os, random, struct, zlib
random.seed(4)
SIDE, N, CLASSES = 32, 160, 10
def png(path, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[y * 3 * SIDE:(y + 1) * 3 * SIDE] for y in range(SIDE))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
def npy(path, descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data)
os.mkdir("arrays")
os.mkdir("cifar")
images, labels, records = [], [], []
for i in range(N):                       # class by class: the order of a folder
    label = i * CLASSES // N
    last = bytes(min(255, (x * (label + 1) + y * 3 + c * 40 + random.randrange(40)) % 256)
                 for y in range(SIDE) for x in range(SIDE) for c in range(3))
    os.makedirs(f"folder/{label}", exist_ok=True)
    png(f"folder/{label}/{i:03d}.png", last)
    images.append(last)
    labels.append(label)
    records.append(bytes([label]) + b"".join(last[c::3] for c in range(3)))
npy("arrays/images.npy", "|u1", (N, SIDE, SIDE, 3), b"".join(images))
npy("arrays/labels.npy", "<i8", (N,), struct.pack(f"<{N}q", *labels))
os.mkdir("first")
npy("first/images.npy", "|u1", (N, 3, SIDE, SIDE), b"".join(r[1:] for r in records))
npy("first/labels.npy", "|u1", (N, 1), bytes(labels))
open("cifar/data_batch_1.bin", "wb").write(b"".join(records))
PYTHON

model=model.json
cat >$model <<'JSON'
{"format": "ghp.model/1", "name": "small", "input": {"channels": 3, "height": 32, "width": 32},
 "layers": [
  {"name": "conv1", "op": "conv2d", "channels": 16, "kernel": 3, "stride": 2},
  {"name": "relu1", "op": "relu"},
  {"name": "conv2", "op": "conv2d", "channels": 16, "kernel": 3},
  {"name": "relu2", "op": "relu"},
  {"name": "flatten", "op": "flatten"},
  {"name": "fc", "op": "linear", "features": 10},
  {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
analytic "$model" profile.json F=1e11,bandwidth=1e9,latency=2e-5
sed -i '1s/{/{"prefetch": true,/' profile.json # as in measured ones: a part of memory for the next samples
for n in 1 2; do
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers $n --batch 16 -o $n.json >out 2>&1 ||
        fail "plan: $(cat out)"
done

train() { ranks "$1" run "$1.json" --threads 1 --numerics exact "${@:2}"; } # WORKERS OPTIONS...
losses() { sed -n 's/.*"loss": *\([^,}]*\).*/\1/p' "$1"; }

for source in folder:folder npy:arrays npy:first npy:arrays/images.npy,first/labels.npy cifar10:cifar; do
    train 1 --data "$source" --augment none --normalise imagenet --steps 12 --metrics metrics ||
        fail "$source: $(cat err)"
    losses metrics >"losses"
    [ "$(wc -l <losses)" = 12 ] || fail "$source: no 12 losses: $(cat metrics)"
    [ -e expected ] || cp losses expected
    cmp -s losses expected || fail "$source: other losses than the folder's: $(paste losses expected | head -2)"
    rm metrics
done

# random parts: other losses than without, the same ones again, and two workers as one; steps last so long that the next
# one's samples are made meanwhile on busy cores, too
train 1 --data folder:folder --steps 12 --metrics metrics --run run.json --emulate step=100ms ||
    fail "augmented: $(cat err)"
losses metrics >first_losses
cmp -s first_losses expected && fail "augmentation changes nothing"
grep -q 'input: loading took [0-9.]* ms of a step (predicted' out || fail "no time of loading: $(cat out)"
[ "$(number samples_prefetched run.json)" -gt 0 ] ||
    fail "no sample was made beside the steps: $(grep samples run.json)"
rm metrics
train 1 --data folder:folder --steps 12 --metrics metrics || fail "again: $(cat err)"
losses metrics | cmp -s - first_losses || fail "augmentation does not repeat"
train 2 --data folder:folder --augment randaugment=2:9,mixup=0.4,cutmix=1 --verify 12 || fail "two workers: $(tail -3 out) $(cat err)"

# evaluation on a part of each class
train 1 --data folder:folder --train-fraction 0.75 --steps 3 --run run.json || fail "cut: $(cat err)"
grep -q 'over all 40 samples' out || fail "not 40 test samples: $(cat out)"

if full; then
    # a profile knows whose samples were loaded, and neither another run nor what is kept takes their rate for others'
    profile() { # profile FILE OPTIONS...
        ranks 1 profile --model "$model" --batch 16 --budget 2 --wanted data -o "$@"
    }
    profile files.json --data folder:folder || fail "a profile of files: $(cat err)"
    grep -q '^ *"data": "folder:folder"' files.json || fail "the profile does not name the data"
    profile others.json || fail "a profile of generated samples: $(cat err)"
    grep -q '"data"' others.json && fail "what was kept names the data"
    profile files.json || fail "a profile that goes on: $(cat err)"
    grep -q '"data"' files.json && fail "the profile names data that nobody asks for"
    profile none.json --data folder:nowhere && fail "a folder that is not there was loaded"
    grep -q "nowhere" err || fail "a folder that is not there: $(cat err)"
fi

# 20 damaged files, of which every worker meets some in its two epochs
python3 - <<'PYTHON'
import glob, os
for i, path in enumerate(sorted(glob.glob("folder/*/*.png"))[::8]):
    data = open(path, "rb").read()
    ways = [b"", data[:len(data) // 2], b"GIF89a" + data, data[:100] + bytes([data[100] ^ 1]) + data[101:]]
    open(path, "wb").write(ways[i % 4])
PYTHON
train 1 --data folder:folder --steps 20 && fail "damaged files were taken"
grep -q "folder/[0-9]/[0-9]*.png' is .*or give --skip-damaged N" err || fail "no name of a damaged file: $(cat err)"
train 1 --data folder:folder --skip-damaged 19 --steps 20 && fail "more damaged files than allowed"
grep -q "19 others were skipped" err || fail "not counted: $(cat err)"
train 1 --data folder:folder --skip-damaged 20 --steps 20 --metrics metrics.1 --run run.json ||
    fail "skipping: $(cat err)"
[ "$(grep -o "folder/[0-9]/[0-9]*.png" err | sort -u | wc -l)" = 20 ] || fail "not 20 files are named: $(cat err)"
[ "$(grep -c "warning: .*folder/" err)" = 20 ] || fail "files are named more than once: $(cat err)"
[ "$(number files_skipped run.json)" = 20 ] || fail "files_skipped: $(grep files_skipped run.json)"
train 2 --data folder:folder --skip-damaged 20 --verify 20 ||
    fail "skipping with two workers: $(tail -3 out) $(cat err)"

# options of other sources, and data of other shapes
mkdir empty
for bad in 'cifar10:cifar --augment crop-flip|is for folder' 'cifar10:cifar --skip-damaged 1|is for folder' \
    'cifar10:cifar --augment mixup=0.2,flip=0.5|all keys but mixup and cutmix' 'synthetic --normalise none|has none' 'folder:folder --normalise train|not of folders|which are counted' \
    'folder:folder --normalise dark|such as 0.5:0.25' 'folder:empty|no folders of classes' 'folder:nowhere|nowhere' \
    'npy:empty|no data in' 'npy:nowhere|nowhere' 'cifar100:cifar|no data in'; do
    # shellcheck disable=SC2086
    train 1 --data ${bad%%|*} --steps 1 && fail "${bad%%|*} was taken"
    grep -qE "${bad#*|}" err || fail "${bad%%|*}: $(cat err)"
done
[ $failures -eq 0 ]
