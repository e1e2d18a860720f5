#!/usr/bin/env bash
# ghp-test: timeout=240 needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/hardship/test_bad_input.sh - bad input of every kind: the exit code, a message that names the remedy,
# nothing half-written.
set -u
. "$(dirname "$0")/../scratch.sh"
models=$GHP_SOURCE/models

# refused CODE 'TEXT' COMMAND...: exits with CODE, says TEXT on stderr, prints nothing on stdout
refused() {
    local code=$1 text=$2
    shift 2
    "$@" >out 2>err </dev/null
    local got=$?
    if [ "$got" != "$code" ] || ! grep -qe "$text" err; then
        echo "FAILED: $* : exit $got (expected $code), said:" >&2
        head -5 err >&2
        echo "  expected to read: $text" >&2
        failures=$((failures + 1))
    elif [ -s out ]; then
        echo "FAILED: $* : chatter on stdout" >&2
        failures=$((failures + 1))
    fi
}

# untouched FILE...: was not made
untouched() {
    for f in "$@" "$(dirname "$1")"/*.tmp* "$(dirname "$1")"/.*.tmp*; do
        if [ -e "$f" ]; then
            echo "FAILED: $f was left behind" >&2
            failures=$((failures + 1))
        fi
    done
}

run() { mpirun --oversubscribe --bind-to none -n "$1" "$GHP_BIN/ghp-run" "${@:2}"; }

law=F=1e12,bandwidth=1e9,latency=1e-5
analytic "$models/lenet5.json" lenet5.profile.json $law
analytic "$models/lenet5.json" other.profile.json $law,memory_bandwidth=1e10

plan() { "$GHP_BIN/ghp-plan" "$@"; }
profile=(--profile lenet5.profile.json)
plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 -o plan.json >/dev/null 2>&1 || exit 1

# files that are not JSON, cut off, of another kind, with unknown keys
echo 'not json' >text.json
head -c 200 "$models/lenet5.json" >cut.json
head -c 300 lenet5.profile.json >cut.profile.json
head -c 3000 plan.json >cut.plan.json
sed 's/"kernel": *5/"kernal": 5/' "$models/lenet5.json" >unknown.json
refused 1 'text.json:1' plan text.json "${profile[@]}" --workers 2 --batch 8 -o no.json
refused 1 'cut.json:[0-9]' plan cut.json "${profile[@]}" --workers 2 --batch 8 -o no.json
refused 1 "unknown.json:[0-9]*:[0-9]*: .*unknown key 'kernal'" \
    plan unknown.json "${profile[@]}" --workers 2 --batch 8 -o no.json
refused 1 'cut.profile.json:[0-9]' \
    plan "$models/lenet5.json" --profile cut.profile.json --workers 2 --batch 8 -o no.json
refused 1 'ghp.profile' plan "$models/lenet5.json" --profile plan.json --workers 2 --batch 8 -o no.json
refused 1 'cut.plan.json:[0-9]' run 2 cut.plan.json --steps 1
refused 1 'text.json:1' run 2 text.json --steps 1
refused 1 'cut.plan.json:[0-9]' "$GHP_BIN/ghp-inspect" cut.plan.json
refused 1 'nowhere.json' "$GHP_BIN/ghp-inspect" nowhere.json
untouched no.json

# a shape chain that does not close
cat >shapes.json <<'JSON'
{"format": "ghp.model/1", "name": "shapes", "input": {"channels": 1, "height": 8, "width": 8},
 "layers": [
  {"name": "conv1", "op": "conv2d", "channels": 4, "kernel": 9},
  {"name": "flatten", "op": "flatten"},
  {"name": "fc", "op": "linear", "features": 10},
  {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
refused 1 'shapes.json:3:' plan shapes.json "${profile[@]}" --workers 2 --batch 8 -o no.json

# batches and workers that do not go together
refused 1 'multiple of 3' plan "$models/lenet5.json" "${profile[@]}" --workers 3 --batch 8 -o no.json
refused 2 'workers' plan "$models/lenet5.json" "${profile[@]}" --workers 0 --batch 8 -o no.json
refused 2 'workers' plan "$models/lenet5.json" "${profile[@]}" --workers two --batch 8 -o no.json
refused 2 'strategy' plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 --strategy fastest -o no.json
refused 2 'batch' plan "$models/lenet5.json" "${profile[@]}" --workers 2
refused 2 'unknown option' plan "$models/lenet5.json" "${profile[@]}" --worker-count 2 --batch 8
refused 3 "layer 'conv1' has no split over 4; use a batch of 4, or 1 worker$" plan "$models/lenet5.json" "${profile[@]}" \
    --workers 4 --batch 1 -o no.json
refused 1 'use 3 micro-batches, or a batch of 16' plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 12 \
    --micro-batches 4 -o no.json
untouched no.json

# memory: exit 3, and the least that would do
refused 3 'least' plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 --memory 100KiB -o no.json
# what recomputed layers need at least is not proven
refused 3 'the least found' plan "$models/lenet5.json" "${profile[@]}" --workers 4 --batch 16 --strategy data \
    --memory 400KiB -o no.json
refused 2 'memory' plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 --memory plenty -o no.json
untouched no.json

# a plan for another number of workers, another model, another profile
refused 1 'mpirun -n 2' run 1 plan.json --steps 1
refused 1 'mpirun -n 2' run 4 plan.json --steps 1
for what in pass gradients; do
    plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 --strategy data --shard $what -o $what.json >out 2>&1 ||
        fail "--shard $what: $(cat out)"
done
refused 1 '--sync allreduce and --shard none or gradients' run 2 pass.json --steps 1 --ema 0.9
run 2 gradients.json --steps 1 --ema 0.9 >out 2>&1 || fail "--ema of gradients sharded: $(tail -n 3 out)"
refused 1 'another profile' "$GHP_BIN/ghp-inspect" plan.json --verify --profile other.profile.json
refused 1 'another model' run 2 plan.json --steps 1 --model "$models/small-resnet.json"

# synchronisers: unknown ones, arguments, more servers than workers, a training that continues with another one
sync() { plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 --strategy data -o "$@"; }
refused 2 "'fastest'" sync no.json --sync fastest
refused 2 'ssp' sync no.json --sync ssp
refused 2 'easgd' sync no.json --sync easgd:0
refused 2 'more than the 2 worker' sync no.json --sync bsp --servers 3
refused 2 'more than the 2 worker' sync no.json --sync easgd:2 --servers 3
refused 2 'servers' sync no.json --sync allreduce --servers 1
refused 2 'wants at least 2 workers' plan "$models/lenet5.json" "${profile[@]}" --workers 1 --batch 8 --sync ad-psgd \
    -o no.json
refused 1 'more than the 2 worker' sync no.json --sync lsgd:4,2
refused 1 'fill no grid' sync no.json --sync dgd:torus
refused 1 'is not connected: no edges lead from worker 0 to worker 2' plan "$models/lenet5.json" "${profile[@]}" \
    --workers 4 --batch 8 --sync dgd:0-1,2-3 -o no.json
untouched no.json
sync local.json --sync local:2 >/dev/null 2>&1 || exit 1
sync easgd.json --sync easgd:2 >/dev/null 2>&1 || exit 1
run 2 local.json --steps 2 --checkpoint averaged >/dev/null 2>&1 </dev/null || exit 1
other='is of a training with local:2 on 2 worker(s), .*plan with the same'
refused 1 "$other" run 2 plan.json --steps 4 --checkpoint averaged --resume
refused 1 "$other" run 3 easgd.json --steps 4 --checkpoint averaged --resume
refused 1 '2 worker(s) and 1 server(s), but 2 rank(s) were started; start it with mpirun -n 3' \
    run 2 easgd.json --steps 1
refused 1 'plan with --batch 2' run 2 plan.json --steps 1 --sampler srg
refused 2 'leave one of them out' run 2 plan.json --steps 1 --sampler srg --shuffle once

# data
mkdir -p data broken
refused 1 'idx' run 2 plan.json --steps 1 --data idx:data
refused 1 'nowhere' run 2 plan.json --steps 1 --data idx:nowhere
printf '\0\0\010\003\0\0\0\012\0\0\0\034\0\0\0\034short' >broken/t10k-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\012\0\1\2\3\4\5\6\7\010\011' >broken/t10k-labels-idx1-ubyte
refused 1 't10k-images-idx3-ubyte' run 2 plan.json --steps 1 --data idx:broken --train-fraction 0.8
refused 1 'data_batch_1.bin' run 2 plan.json --steps 1 --data cifar10:data
refused 2 'data' run 2 plan.json --steps 1 --data tape:data

if full; then
    # transformers
    nano=$models/gpt-nano.json
    analytic "$nano" nano.profile.json $law
    plan "$nano" --profile nano.profile.json --workers 1 --batch 2 -o nano.json >/dev/null 2>&1 || exit 1
    head -c 1000 "$models/lenet5.json" >text
    run 1 nano.json --steps 1 --data bytes:text --checkpoint nano >/dev/null 2>&1 </dev/null &&
        "$GHP_BIN/ghp-inspect" nano.json --export-hf folder --weights nano/checkpoint.safetensors >/dev/null 2>&1 || exit 1
    python3 - <<'PYTHON'
import struct
ids = struct.pack("<200H", *range(200))
def shard(magic, version, tokens): return struct.pack("<256i", magic, version, tokens, *[0] * 253) + ids
open("large", "wb").write(ids + struct.pack("<H", 256))
open("cut", "wb").write(shard(20240520, 1, 1000))
open("magic", "wb").write(shard(20240326, 3, 200))
PYTHON
    refused 1 "'large' has the id 256 at byte 400 (token 200)" run 1 nano.json --steps 1 --data tokens:large
    refused 1 "'cut' is cut short: it has 1424 of the 3024 bytes" run 1 nano.json --steps 1 --data tokens:cut
    refused 1 "'magic' begins with 20240326, version 3: no tokens" run 1 nano.json --steps 1 --data tokens:magic
    refused 1 "context has 64; ask for at most" plan folder@65 --profile nano.profile.json --workers 1 --batch 2 -o no.json
    refused 1 "cannot make 5 heads of 32 channels" plan <(sed 's/"heads": 4/"heads": 5/' "$nano") \
        --profile nano.profile.json --workers 1 --batch 2 -o no.json
    refused 2 "'h.0.attn.heads' cannot take split 'channel:8'; use one of .*channel:4" plan "$nano" \
        --profile nano.profile.json --workers 8 --batch 8 --force '*.heads=channel:8' -o no.json
    LC_ALL=C sed -i 's/h.1.mlp.c_fc.bias/h.1.mlp.c_fc.bios/' folder/model.safetensors
    refused 1 "has no tensor 'transformer.h.1.mlp.c_fc.bias'" run 1 nano.json --steps 1 --data bytes:text --init folder
    untouched no.json
fi

# folders that cannot be written (root may write anywhere, so the folder is a file)
touch occupied
refused 1 'occupied' plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 -o occupied/plan.json
refused 1 'occupied' run 2 plan.json --steps 1 --metrics occupied/metrics.jsonl
refused 1 'occupied' run 2 plan.json --steps 1 --checkpoint occupied/here
refused 1 'occupied' "$GHP_BIN/ghp-profile" --analytic $law --model "$models/lenet5.json" -o occupied/profile.json
if [ "$(id -u)" != 0 ]; then
    mkdir locked && chmod 500 locked
    refused 1 'locked' plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 -o locked/plan.json
fi

# outputs that would destroy an input, or a file of another kind: nothing is touched
cp "$models/lenet5.json" model.json
"$GHP_BIN/ghp-inspect" model.json --export-onnx model.onnx >/dev/null 2>&1 || exit 1
"$GHP_BIN/ghp-profile" --machine-only -o machine.json >/dev/null 2>&1 || exit 1
mkdir -p kept
cp model.json model.onnx plan.json lenet5.profile.json machine.json kept
refused 2 'over the input' plan model.json "${profile[@]}" --workers 2 --batch 8 -o model.json
refused 2 'same file' plan model.json "${profile[@]}" --workers 2 --batch 8 -o lenet5.profile.json
refused 2 'another kind' plan "$models/lenet5.json" "${profile[@]}" --workers 2 --batch 8 -o machine.json
refused 2 'another kind' "$GHP_BIN/ghp-profile" --machine-only -o lenet5.profile.json
refused 2 'another kind' "$GHP_BIN/ghp-profile" --analytic $law --model "$models/lenet5.json" -o machine.json
refused 2 'over the input' run 2 plan.json --steps 1 --run plan.json
refused 2 'over the input' run 2 plan.json --steps 1 --metrics plan.json
refused 2 'another kind' run 2 plan.json --steps 1 --metrics model.json
refused 2 'same file' run 2 plan.json --steps 1 --metrics new.json --run new.json
for option in --html --trace --dot; do
    refused 2 'over the input' "$GHP_BIN/ghp-inspect" plan.json $option plan.json
    refused 2 'another kind' "$GHP_BIN/ghp-inspect" plan.json $option model.json
done
refused 2 'over the input' "$GHP_BIN/ghp-inspect" model.onnx --export-onnx model.onnx
refused 2 'over the input' "$GHP_BIN/ghp-inspect" kept --export-hf kept
for file in kept/*; do
    cmp "$file" "$(basename "$file")" || failures=$((failures + 1))
done
untouched new.json

# resuming what is not there
mkdir -p empty
refused 1 'checkpoint' run 2 plan.json --steps 1 --checkpoint empty --resume

# profiles
refused 2 'analytic' "$GHP_BIN/ghp-profile" --analytic F=fast --model "$models/lenet5.json" -o no.json
refused 1 'XML file' "$GHP_BIN/ghp-profile" --machine-only --hwloc 'cores:many' -o no.json
untouched no.json

# printable CODE COMMAND...: exits with CODE, and no control character reaches the terminal
printable() {
    local code=$1 got=0
    shift
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$code" ] || fail "$(printf '%q ' "$@"): exit $got, not $code: $(head -5 err | cat -v)"
    cat out err | tr -d '\n' | LC_ALL=C grep -q '[[:cntrl:]]' &&
        fail "$(printf '%q ' "$@"): prints control characters:" \
            "$(cat out err | LC_ALL=C grep -a '[[:cntrl:]]' | head -2 | cat -v)"
}

if full; then
    # control characters in files and in their names: in a model's name every other file has it, too
    odd=$(printf 'odd\033[2J')
    sed 's/"name": "lenet5"/"name": "odd\\u001b[2J"/' "$models/lenet5.json" >"$odd.json"
    printable 0 "$GHP_BIN/ghp-profile" --analytic $law --model "$odd.json" -o "$odd.profile"
    printable 0 plan "$odd.json" --profile "$odd.profile" --workers 2 --batch 8 -o "$odd.plan"
    printable 3 plan "$odd.json" --profile "$odd.profile" --workers 2 --batch 8 --memory 100KiB -o "$odd.none"
    printable 0 run 2 "$odd.plan" --steps 2 --threads 1 --run "$odd.run" --checkpoint "$odd.kept"
    printable 1 run 2 "$odd.plan" --steps 2 --data "tokens:$odd"
    printable 2 run 2 "$odd.plan" --steps 2 --data "$odd"
    for file in "$odd.json" "$odd.profile" "$odd.plan" "$odd.run" "$odd.kept/checkpoint.safetensors"; do
        printable 0 "$GHP_BIN/ghp-inspect" "$file"
    done
    printable 0 "$GHP_BIN/ghp-inspect" "$odd.plan" --explain
    printable 0 "$GHP_BIN/ghp-inspect" "$odd.plan" --html "$odd.html"
    printable 1 "$GHP_BIN/ghp-inspect" "$odd"
    printable 1 "$GHP_BIN/ghp-launch" "$odd" --checkpoint kept
    printable 1 "$GHP_BIN/ghp-launch" "$odd.plan" --checkpoint launched --restarts 0 -- --data "tokens:$odd"
    printable 1 "$GHP_BIN/ghp-train" "$odd" --workers 1 --batch 8
    printable 127 "$GHP_BIN/ghp-train" "$GHP_SOURCE/models/lenet5.json" --workers 1 --batch 8 --mpirun "$odd"
    printable 2 "$GHP_BIN/ghp" "$odd"
fi

[ "$failures" = 0 ] && echo "all bad input was refused as it should be"
exit $((failures > 0))
