#!/usr/bin/env bash
# ghp-test: timeout=600 processors=2 label=mpi full=yes needs=ghp,ghp-train,ghp-profile,ghp-launch,ghp-expect,python3
# tests/tools/together/test_pages.sh - the commands of README, tutorial 1, the how-to pages and the reference run as a
# reader types them, each in three steps, with files as its page describes them. Those that other tests run are named
# below. A page with commands that is named nowhere fails. In short tests together/mistakes and together/options_named
# stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
PATH=$GHP_BIN:$PATH
ran=0 others=0

# pages that other tests run whole: networks/from_pytorch, together/tutorial, plan/why; gpu wants GPUs
whole=' gpu from-pytorch weights-back fine-tuning torch-plans 2-your-network 3-four-machines 4-why-this-plan '
# Commands that run elsewhere: CI builds and installs; bench/slurm, bench/lab, plan/check_with. The last two: no
# end, and a plan that is found in time only if the machine is quiet.
elsewhere='^\./(demo|check)|^apt-get |^pip |^python3 -m venv|^cmake |cpack|^srun |^salloc |^bench/lab/'
elsewhere+='|--check-with|^tail -f|gpt2-774m'

# The world of the pages: images of three classes as a folder and as arrays, texts, tokens, networks and a profile.
mkdir world && cd world || exit 1
python3 - <<'PYTHON' || exit 1
import os, random, struct, zlib
random.seed(4)
SIDE, N = 8, 300
def png(path, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    data = b"".join(b"\0" + rows[y * 3 * SIDE:(y + 1) * 3 * SIDE] for y in range(SIDE))
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunks)
def npy(path, descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data)
labels = [i % 3 for i in range(N)]
images = [bytes(min(255, 60 * label + random.randrange(90)) for _ in range(3 * SIDE * SIDE)) for label in labels]
for i, (image, label) in enumerate(zip(images, labels)):
    for folder in "images", "train", "shared/images":
        os.makedirs(f"{folder}/{label}", exist_ok=True)
        png(f"{folder}/{label}/{i:02d}.png", image)
for folder, sets in ("rows", [""]), ("digits", ["train-", "test-"]):
    os.mkdir(folder)
    for name in sets:
        npy(f"{folder}/{name}images.npy", "|u1", (N, SIDE, SIDE, 3), b"".join(images))
        npy(f"{folder}/{name}labels.npy", "<i8", (N,), struct.pack(f"<{N}q", *labels))
tokens = [random.randrange(256) for _ in range(16384)]
npy("train.npy", "<u2", (len(tokens),), struct.pack(f"<{len(tokens)}H", *tokens))
for name in "train-1", "train-2", "val":
    open(name + ".bin", "wb").write(struct.pack(f"<{len(tokens)}H", *tokens))
ids = [random.randrange(5, 100) for _ in range(64 * 16)]
npy("ids.npy", "<i8", (64, 16), struct.pack(f"<{len(ids)}q", *ids))
npy("labels.npy", "<i8", (64, 16), struct.pack(f"<{len(ids)}q", *[id if random.random() < .3 else -100 for id in ids]))
PYTHON
cat >net.json <<'JSON'
{"format": "ghp.model/1", "name": "net", "input": {"channels": 3, "height": 8, "width": 8},
 "layers": [
  {"name": "conv", "op": "conv2d", "channels": 16, "kernel": 3},
  {"name": "relu", "op": "relu"},
  {"name": "flatten", "op": "flatten"},
  {"name": "fc", "op": "linear", "features": 3},
  {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
mkdir bert
cat >bert/config.json <<'JSON'
{"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 100, "hidden_size": 16,
 "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 16}
JSON
ln -s "$GHP_SOURCE/models" models
cat "$GHP_SOURCE"/docs/how-to/*.md >book.txt
printf 'localhost slots=16\n' >hosts
# made COMMAND...: of what a page takes as given
made() { "$@" >"$scratch/out" 2>&1 </dev/null || { echo "$*: $(tail -n 3 "$scratch/out")" >&2 && exit 1; }; }
made ghp-profile --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model net.json -o profile.json
for n in 2 4 8 16; do
    made ghp-plan net.json --profile profile.json --workers $n --batch 48 -o $n.json
done
cp 4.json plan.json
made ghp-plan net.json --profile profile.json --workers 4 --batch 12 --elastic 2 -o plans.json
made ghp-inspect plan.json --export-onnx net.onnx
cd ..

# analyse NETWORK FILE: a profile by formulas
analyse() { made ghp-profile --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model "$1" -o "$2"; }

# commands FILE: of its sh blocks, one a line
commands() {
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$1" | sed -e ':a' -e '/\\$/{N; s/\\\n */ /; ta' -e '}'
}

# short: a command without its comment, in three steps
short() {
    sed -E 's/ +# .*//; s#build/bin/##g; s#/shared/#shared/#g; s/--(epochs|steps) [0-9]+/--steps 3/g
        /ghp-(run|launch) |ghp-train/{/--steps|--evaluate|--dry-run/!s/$/ --steps 3/}
        s/ghp-plan /ghp-plan --time-limit 3 /; s/ghp-train /ghp-train --budget 1 /
        /ghp-profile/{/--analytic|--budget/!s/$/ --budget 1/}'
}

# page [SED]: runs the commands of $name; SED puts files of the world in the place of the page's words. plan.json is for
# as many workers as the command starts.
page() {
    local line n
    while IFS= read -r line; do
        grep -qE -e "$elsewhere" <<<"$line" && others=$((others + 1)) && continue
        line=$(short <<<"$line" | sed -E "${1:-}")
        ran=$((ran + 1))
        n=$(sed -nE 's/.*mpirun .*-n ([0-9]+) ghp-run plan\.json.*/\1/p' <<<"$line")
        [ "${n:-$(number workers plan.json)}" = "$(number workers plan.json)" ] || cp "$n.json" plan.json
        [[ $line != *ghp-profile*" -o profile.json"* ]] || rm -f profile.json # the world's was not measured
        timeout 120 bash -c "$line" >"$scratch/out" 2>"$scratch/err" </dev/null ||
            fail "$name: $line: exit $?: $(tail -n 3 "$scratch/err")"
    done < <(commands "$GHP_SOURCE/$name")
}

cd "$GHP_SOURCE" || exit 1
pages=$(grep -l '^```sh$' README.md docs/tutorial/*.md docs/how-to/*.md docs/reference/*.md)
for name in $pages; do
    title=$(basename "$name" .md)
    case $whole in *" $title "*) continue ;; esac
    cd "$scratch" && rm -rf page && cp -R world page && cd page || exit 1
    case $title in
    containers | data | installation | lab | onnx | python | rates | samples | slow-links | tools)
        page ;;
    README) page '/ghp-train/s/--workers 16/--workers 2/' ;; # the one with a host file
    1-first-run)
        mkdir -p build/demo
        analyse models/alexnet-96.json build/demo/profile.json
        made ghp-plan models/alexnet-96.json --profile build/demo/profile.json --workers 2 --batch 64 \
            -o build/demo/ghp.plan.json
        page ;;
    changing-machine)
        page "s/\bMODEL\b/net.json/; s/\bPROFILE\b/profile.json/; s/\bDIR\b/\$(mktemp -d)/; s/'COMMAND'/'echo 4'/" ;;
    clusters) page 's/slots=4/slots=16/; s/node1 node2 node3 node4/localhost/' ;;
    expect)
        page 's/NETWORK/gpt2-124m/; s/MACHINE/a100-sxm-40-8/; s/LINK/eth-100/; s/--nodes H/--nodes 2/
            s/--batch B/--batch 128/' ;;
    huggingface)
        analyse models/gpt-nano.json nano.profile
        made ghp-plan models/gpt-nano.json --profile nano.profile --workers 1 --batch 4 -o nano.plan
        made ghp-run nano.plan --data bytes:book.txt --steps 1 --checkpoint nano
        made ghp-inspect nano.plan --export-hf FOLDER --weights nano/checkpoint.safetensors
        analyse bert bert.profile
        made ghp-plan bert --profile bert.profile --workers 2 --batch 8 -o plan.json
        page 's#PLAN --export-hf FOLDER --weights CHECKPOINT#nano.plan --export-hf new --weights nano/*.safetensors#' ;;
    progress)
        made mpirun -n 2 ghp-run 2.json --data npy:digits --steps 1 --checkpoint trained
        page ;;
    recovery) page '/best:3/s/DIR/best/; s#DIR/(.*)step-[0-9]+#best/\1step-3#' ;;
    report) made mpirun -n 4 ghp-run plan.json --steps 3 --run run.json && page ;;
    restarts) page 's/MODEL/net.json/; s/PROFILE/profile.json/; s/DIR/kept/' ;;
    synchronisers)
        page 's/\bMODEL\b/net.json/; s/\bPROFILE\b/profile.json/; s/--workers N/--workers 4/; s/--batch B/--batch 8/' ;;
    tokens)
        analyse models/gpt-nano.json nano.profile
        made ghp-plan models/gpt-nano.json --profile nano.profile --workers 4 --batch 16 -o plan.json
        page ;;
    transformers) page 's/bytes:FILE/bytes:book.txt/' ;;
    *) fail "$name has commands: say here with which files they run" ;;
    esac
done
echo "$ran commands run, $others elsewhere"
[ $failures -eq 0 ]
