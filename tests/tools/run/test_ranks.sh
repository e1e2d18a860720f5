#!/usr/bin/env bash
# ghp-test: timeout=400 processors=1 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,python3
# tests/tools/run/test_ranks.sh - two ranks that are told different things do not train: before the first step one of
# them says what differs, between whom, with both values. What may differ (paths of equal files, who writes what,
# threads) does not count as a difference. Full runs take all ways, others every fourth and those that once hung or
# crashed. In short tests tools/hardship/bad_input stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
tokens=$GHP_SOURCE/models/gpt-nano.json

# plan FILE MODEL ARGS...: a plan for two workers by formulas
plan() {
    [ -e "$(basename "$2").profile" ] || analytic "$2" "$(basename "$2").profile"
    "$GHP_BIN/ghp-plan" "$2" --profile "$(basename "$2").profile" --workers 2 -o "$1" --strategy data "${@:3}" \
        >out 2>err || { cat err >&2 && exit 1; }
}
sed 's/"relu"/"gelu"/' "$model" >gelu.json
plan 8.json "$model" --batch 8
plan 16.json "$model" --batch 16
plan gelu8.json gelu.json --batch 8
plan clip.json "$model" --batch 8 --clip-norm 1
plan adamw.json "$model" --batch 8 --optimizer adamw
plan nano.json "$tokens" --batch 8
"$GHP_BIN/ghp-plan" "$model" --profile lenet5.json.profile --workers 2 --batch 8 --force 'fc*=out:2' --groups 1 \
    -o split.json >out 2>err || { cat err >&2 && exit 1; }
cp 8.json copy.json

python3 - <<'PYTHON' || exit 1
import os, struct, zlib

def idx(folder, train=80, test=80, reverse=False, shade=0):
    os.makedirs(folder)
    for name, n in ("train", train), ("t10k", test):
        pixels = bytearray((i * 7 + i // 784 * 31) % 251 for i in range(n * 784))
        if name == "train": pixels[784 * 40] = (pixels[784 * 40] + shade) % 256
        labels = bytes(i % 10 for i in range(n))
        if reverse and name == "train": labels = labels[::-1]
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">IIII", 0x803, n, 28, 28) + pixels)
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as f:
            f.write(struct.pack(">II", 0x801, n) + labels)

idx("set"); idx("same"); idx("other", shade=9); idx("reversed", reverse=True); idx("fewer", test=72); idx("more", train=96)
for name, shift in ("a", 0), ("b", 1):
    open(name + ".txt", "wb").write(bytes((i * 13 + shift) % 250 for i in range(4000)))
    os.makedirs(name)
    for c in "xy":
        os.makedirs(f"{name}/{c}")
        for i in range(6):
            pnm = bytes((i * 40 + p * 3 + ord(c)) % 256 for p in range(784))
            def chunk(kind, body): return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
            rows = b"".join(b"\0" + pnm[r * 28:r * 28 + 28] for r in range(28))
            open(f"{name}/{c}/{i + (shift if c == 'y' else 0)}.png", "wb").write(
                b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PYTHON
for seed in 1 2; do
    ranks 2 run 8.json --steps 1 --seed $seed --threads 1 --checkpoint kept$seed || { cat err >&2 && exit 1; }
    cp kept$seed/checkpoint.safetensors $seed.safetensors
    mkdir host$seed && cp 1.safetensors host$seed/
done

# pair: both ranks of one MPI start; $a and $b are words of ghp-run, $ea and $eb of env
pair() {
    timeout 60 mpirun --oversubscribe --bind-to none -n 1 env ${ea:-A=1} "${bin_a:-$GHP_BIN/ghp-run}" $a --threads 1 \
        --metrics a.jsonl : -n 1 env ${eb:-A=1} "${bin_b:-$GHP_BIN/ghp-run}" $b --threads 1 --metrics b.jsonl \
        >out 2>err </dev/null
}

ways=0 tried=0 slowest=0 always=
# differs TEXT A B: told A and B, the ranks say TEXT once, exit with 1 or 2, and have trained no step
differs() {
    local a=$2 b=$3 code=0 start=$EPOCHREALTIME took
    ways=$((ways + 1))
    full || [ "$always" = 1 ] || [ $((ways % 4)) = 1 ] || return 0
    tried=$((tried + 1))
    rm -f a.jsonl b.jsonl
    pair || code=$?
    took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    slowest=$(larger "$slowest" "$took")
    { [ $code = 1 ] || [ $code = 2 ]; } || fail "$a | $b: exit $code: $(head -5 err)"
    [ "$(grep -cE "^ghp-run: workers 0 and 1 do not train the same: .*$1.*; (start|give|install) " err)" = 1 ] ||
        fail "$a | $b: does not say once '$1', but: $(grep -v '^-' err | head -5)"
    [ ! -s a.jsonl ] && [ ! -s b.jsonl ] || fail "$a | $b: trains a step"
}
option() { differs "$1 is $2 on worker 0 and $3 on worker 1" "8.json --steps 2 ${4:-$1 $2}" "8.json --steps 2 ${5:-$1 $3}"; }

# ---- options ----
option --lr 0.1 0.2
option --momentum 0.5 0.9
option --weight-decay 0.1 'not given' '' ' '
option --seed 1 2
option --lr-schedule constant cosine ' '
option --lr-min 0.001 0 '' ' '
option --warmup-steps 1 2
option --step-at 'not given' 0.2,0.4 ' ' '--step-at 0.2,0.4'
differs '--steps is 2 on worker 0 and 3 on worker 1' '8.json --steps 2' '8.json --steps 3'
differs '--steps is 2 on worker 0 and not given on worker 1, --epochs is not given on worker 0 and 1' \
    '8.json --steps 2' '8.json --epochs 1'
option --numerics exact fast
option --backend onednn reference
option --precision plan bf16 ' '
option --overlap on off ' '
option --eval auto on ' '
option --guard auto off ' '
option --shuffle epoch once
option --ignore-label 3 'not given' '' ' '
option --train-fraction 0.5 0.6
option --skip-damaged 0 2 ' '
option --normalise none unit
option --labels given parity ' '
option --emulate step=1ms 'not given' '' ' '
differs '--verify is not given on worker 0 and 2 on worker 1' '8.json' '8.json --verify 2'
option --inject-fault none skip-update ' '
always=1
option --checkpoint given 'not given' '--checkpoint here' ' '
differs '--checkpoint-every is 0 on worker 0 and 1 on worker 1' '8.json --steps 2 --checkpoint here' \
    '8.json --steps 2 --checkpoint here --checkpoint-every 1'
differs '--resume is false on worker 0 and true on worker 1' '8.json --steps 2 --checkpoint kept1' \
    '8.json --steps 2 --checkpoint kept1 --resume'
differs '--help or --version is given on worker 0 and not given on worker 1' '8.json --help' '8.json'
always=
differs '--async-checkpoint is on on worker 0 and off on worker 1' '8.json --steps 2 --checkpoint here' \
    '8.json --steps 2 --checkpoint here --async-checkpoint off'
differs 'the number of files is 2 on worker 0 and 1 on worker 1, --compare is 2 on worker 0 and not given on worker 1' \
    '8.json copy.json --compare 2 --steps 2' '8.json --steps 2'

# ---- environment and build ----
ea=ONEDNN_DEFAULT_FPMATH_MODE=BF16 differs 'ONEDNN_DEFAULT_FPMATH_MODE is BF16 on worker 0 and not given' \
    '8.json --steps 2' '8.json --steps 2'
sources=$("$GHP_BIN/ghp-run" --version | sed -n 's/^sources //p')
sed "s/$sources/0123456789abcdef/" "$GHP_BIN/ghp-run" >other-build && chmod +x other-build
always=1 bin_b=$PWD/other-build differs "sources is $sources on worker 0 and 0123456789abcdef on worker 1" \
    '8.json --steps 2' '8.json --steps 2'

# ---- plans ----
always=1 differs "the plan's global batch is 8 on worker 0 and 16 on worker 1" '8.json --steps 2' '16.json --steps 2'
differs "the plan's model of worker 0 and of worker 1 differ \('lenet5' on both\)" '8.json --steps 2' \
    'gelu8.json --steps 2'
differs 'the plan is 8.json on worker 0 and adamw.json on worker 1' '8.json --steps 2' 'adamw.json --steps 2'
differs 'the plan is 8.json on worker 0 and clip.json on worker 1' '8.json --steps 2' 'clip.json --steps 2'
differs 'the plan is 8.json on worker 0 and split.json on worker 1' '8.json --steps 2' 'split.json --steps 2'

# ---- data ----
data() { differs "$1" "${4:-8}.json --steps 2 --data $2" "${4:-8}.json --steps 2 --data $3"; }
data 'the kind of --data is synthetic on worker 0 and idx on worker 1' synthetic idx:set
data 'the training samples of worker 0 and of worker 1 differ' idx:set idx:other
always=1 data 'the training labels of worker 0 and of worker 1 differ' idx:set idx:reversed
always=1 data 'the number of test samples is 80 on worker 0 and 72 on worker 1' idx:set idx:fewer
data 'the number of training samples is 80 on worker 0 and 96 on worker 1' idx:set idx:more
data 'the names of training images of worker 0 and of worker 1 differ' folder:a folder:b
data 'the training samples of worker 0 and of worker 1 differ' bytes:a.txt bytes:b.txt nano

# ---- first weights ----
init() { differs "$1" "8.json --steps 2 --init $2" "8.json --steps 2 --init $3"; }
init 'their seed is 1 on worker 0 and 2 on worker 1' random random:2
init 'the kind of first weights is random on worker 0 and FILE.safetensors on worker 1' random 1.safetensors
always=1 init 'the first weights of worker 0 and of worker 1 differ' 1.safetensors 2.safetensors

# ---- checkpoints: other weights of the same step, another step, another file without a checksum ----
kept() { ranks 2 run 8.json --steps "$2" --lr "$3" --threads 1 --checkpoint "$1" || { cat err >&2 && exit 1; }; }
kept later 2 0
kept trained 1 0.5
bare() { # FOLDER: its checkpoint without what names its content
    python3 - "$1" <<'PYTHON'
import json, struct, sys
path = sys.argv[1] + "/checkpoint.safetensors"
content = open(path, "rb").read()
n, = struct.unpack("<Q", content[:8])
header = json.loads(content[8:8 + n])
for key in "xxh3", "checksum": del header["__metadata__"][key]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(path, "wb").write(struct.pack("<Q", len(text)) + text + content[8 + n:])
PYTHON
}
resume() { differs "$1" "8.json --steps 3 --resume --checkpoint $2" "8.json --steps 3 --resume --checkpoint $3"; }
always=1 resume 'the checkpoint of worker 0 and of worker 1 differ' kept1 trained
always=1 resume "the checkpoint's step is 1 on worker 0 and 2 on worker 1" kept1 later
cp -r kept1 bare && cp -r trained bare2 && bare bare && bare bare2
resume 'the checkpoint of worker 0 and of worker 1 differ' bare bare2

# ---- a parameter server, which is the last rank ----
served() { # TEXT WORKER WORKER SERVER: the options of each
    local code=0
    rm -f a.jsonl
    timeout 60 mpirun --oversubscribe --bind-to none -n 1 "$GHP_BIN/ghp-run" $2 --threads 1 --metrics a.jsonl : \
        -n 1 "$GHP_BIN/ghp-run" $3 --threads 1 : -n 1 "$GHP_BIN/ghp-run" $4 --threads 1 >out 2>err </dev/null || code=$?
    [ $code = 1 ] || [ $code = 2 ] || fail "$2 | $3 | $4: exit $code: $(head -5 err)"
    [ "$(grep -cE "^ghp-run: workers 0 and [12] do not train the same: $1" err)" = 1 ] ||
        fail "$2 | $3 | $4: does not say once '$1', but: $(grep -v '^-' err | head -5)"
    [ ! -s a.jsonl ] || fail "$2 | $3 | $4: trains a step"
}
plan ps.json "$model" --batch 8 --sync bsp --servers 1
plan ps-clip.json "$model" --batch 8 --sync bsp --servers 1 --bucket-cap 1MiB
same="ps.json --steps 2 --data idx:set"
served '--lr is .* on worker 0 and 0.2 on worker 2' "$same" "$same" "$same --lr 0.2"
if full; then
    served 'the plan is ps.json on worker 0 and ps-clip.json on worker 2' "$same" "$same" "ps-clip.json ${same#* }"
    served 'the training labels of worker 0 and of worker 1 differ' "$same" "${same/set/reversed}" "$same"
    served '--backend is onednn on worker 0 and reference on worker 2' "$same --backend onednn" \
        "$same --backend onednn" "$same --backend reference"
    served 'the first weights of worker 0 and of worker 1 differ' "$same --init 1.safetensors" \
        "$same --init 2.safetensors" "$same --init 1.safetensors"
fi

# ---- ghp-profile ----
# measured TEXT A B: told A and B, the ranks say TEXT once, and measure nothing
measured() {
    local code=0 usual="--batch 8 --budget 5 -o p.json"
    timeout 60 mpirun --oversubscribe --bind-to none -n 1 "$GHP_BIN/ghp-profile" $usual $2 : -n 1 env ${eb:-A=1} \
        "${bin_b:-$GHP_BIN/ghp-profile}" $usual $3 >out 2>err </dev/null || code=$?
    [ $code = 1 ] || [ $code = 2 ] || fail "ghp-profile $2 | $3: exit $code: $(head -5 err)"
    [ "$(grep -cE "^ghp-profile: workers 0 and 1 do not measure the same: .*$1" err)" = 1 ] ||
        fail "ghp-profile $2 | $3: does not say once '$1', but: $(grep -v '^-' err | head -5)"
    [ ! -e p.json ] || fail "ghp-profile $2 | $3: writes a profile"
}
measured "the model of worker 0 and of worker 1 differ \('lenet5' on both\)" "--model $model" '--model gelu.json'
measured '--numerics is fast on worker 0 and exact on worker 1' "--model $model" "--model $model --numerics exact"
if full; then
    measured '--backend is onednn on worker 0 and reference on worker 1' "--model $model" \
        "--model $model --backend reference"
    measured 'the number of models is 1 on worker 0 and 2 on worker 1' "--model $model" "--model $model --model gelu.json"
    measured '--wanted is given on worker 0 and not given on worker 1' "--model $model --wanted data" "--model $model"
    eb=ONEDNN_DEFAULT_FPMATH_MODE=BF16 measured 'ONEDNN_DEFAULT_FPMATH_MODE is not given on worker 0' \
        "--model $model" "--model $model"
    sed "s/$sources/0123456789abcdef/" "$GHP_BIN/ghp-profile" >other-profile && chmod +x other-profile
    bin_b=$PWD/other-profile measured "sources is $sources on worker 0 and 0123456789abcdef on worker 1" \
        "--model $model" "--model $model"
    cp "$model" elsewhere.json
    timeout 60 mpirun --oversubscribe --bind-to none -n 1 "$GHP_BIN/ghp-profile" --model "$model" --batch 8 --budget 1 \
        --cache none -o p.json : -n 1 "$GHP_BIN/ghp-profile" --model elsewhere.json --batch 8 --budget 1 --cache other \
        -o q.json --progress none --json >out 2>err </dev/null && [ -s p.json ] && [ ! -e q.json ] ||
        fail "what may differ does for ghp-profile: $(cat err)"
fi

[ $ways -ge 40 ] || fail "only $ways ways to differ"

# ---- what may differ ----
# trains A B: told A and B, the ranks train
trains() {
    local a=$1 b=$2
    rm -f a.jsonl b.jsonl
    pair || fail "$a | $b: $(grep "^ghp-run" err)"
}
trains '8.json --steps 2 --data idx:set --init host1/1.safetensors --progress none' \
    './copy.json --steps 2 --data idx:same --init host2/1.safetensors --bind none --watchdog 50 --model '"$model"
[ "$(wc -l <a.jsonl)" = 3 ] || fail "not two steps and an evaluation: $(cat a.jsonl)"
[ ! -e b.jsonl ] || fail "worker 1 writes metrics"
trains '8.json --steps 2 --checkpoint new --run r.json --json' '8.json --steps 2 --checkpoint ./new'
echo "$tried of $ways ways, $slowest s at most"
exit $((failures > 0))
