#!/usr/bin/env bash
# ghp-test: timeout=300 label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_onnx.sh - ONNX through the tools: out of ghp and back with the same hash; inspected,
# profiled, planned and trained from ONNX; published networks by their published sizes; a trained network in another
# runtime. Two parts need what is not in this tree, and are left out, saying so, where it is not there: the networks of
# GHP_ONNX (by default shared/data/onnx next to the source tree), and MNIST (GHP_MNIST) with a python3 (GHP_PYTHON) that
# has onnxruntime and numpy, and for a further part torch and safetensors.
set -u
networks=${GHP_ONNX:-$GHP_SOURCE/../shared/data/onnx}
mnist=${GHP_MNIST:-$GHP_SOURCE/../shared/data/mnist}
python=${GHP_PYTHON:-python3}
. "$(dirname "$0")/../scratch.sh"

run() { # runs a command that must succeed
    "$@" >out 2>err </dev/null || {
        fail "$*"
        head -5 err >&2
        return 1
    }
}

hash_of() { "$GHP_BIN/ghp-inspect" "$1" | sed -n '1s/.*hash //p'; }

# ---- out and back ----
run "$GHP_BIN/ghp-inspect" "$GHP_SOURCE/models/lenet5.json" --export-onnx lenet5.onnx
[ "$(hash_of lenet5.onnx)" = "$(hash_of "$GHP_SOURCE/models/lenet5.json")" ] || fail "lenet5 came back another network"

# ---- from ONNX to a verified run ----
run "$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=2e-5 --model lenet5.onnx -o profile.json
mixed=(--profile profile.json --workers 2 --batch 16 --force 'conv*=data,fc*=out:2')
run "$GHP_BIN/ghp-plan" lenet5.onnx "${mixed[@]}" -o plan.json
run mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" plan.json --verify 2 --threads 1 --checkpoint trained
run "$GHP_BIN/ghp-inspect" plan.json --export-onnx plan.onnx
[ "$(hash_of plan.onnx)" = "$(hash_of lenet5.onnx)" ] || fail "the plan's network is another one"

# ---- first weights: of the file that was planned; the same by name; by a checkpoint; never drawn in their place
# ---- first_loss PLAN OPTION...: the loss of the first step
first_loss() {
    run ranks 2 run "$@" --threads 1 --steps 1 --lr 0.01 --numerics exact --metrics metrics.jsonl &&
        sed -n 's/.*"loss": *\([-+0-9.eE]*\).*/\1/p;1q' metrics.jsonl
    rm -f metrics.jsonl
}
run "$GHP_BIN/ghp-inspect" plan.json --export-onnx own.onnx --weights trained/checkpoint.safetensors
run "$GHP_BIN/ghp-plan" own.onnx "${mixed[@]}" -o own.json
drawn=$(first_loss plan.json)
own=$(first_loss own.json)
[ -n "$own" ] && [ "$own" != "$drawn" ] || fail "a file's own weights: first loss $own, drawn ones $drawn"
[ "$(first_loss plan.json --init own.onnx)" = "$own" ] || fail "--init FILE.onnx is not the file's weights"
[ "$(first_loss plan.json --init trained/checkpoint.safetensors)" = "$own" ] ||
    fail "the export has other weights than the checkpoint"
[ "$(first_loss own.json --init random)" = "$drawn" ] || fail "--init random does not draw"
run ranks 2 run own.json --threads 1 --steps 2 --checkpoint resumed
run ranks 2 run own.json --threads 1 --steps 3 --checkpoint resumed --resume
grep -qE 'first weights|drawn' err && fail "a resumed run speaks of first weights: $(cat err)"
mv own.onnx gone.onnx
denied 1 "own.onnx', the network of the plan, is not there" mpirun --oversubscribe --bind-to none -n 2 \
    "$GHP_BIN/ghp-run" own.json --threads 1 --steps 1
[ "$(first_loss own.json --init random)" = "$drawn" ] || fail "--init random does not draw for a file that is gone"
"$GHP_BIN/ghp-inspect" "$GHP_SOURCE/models/cd-dnn-512.json" --export-onnx other.onnx >out 2>err
ranks 2 run plan.json --threads 1 --steps 1 --init other.onnx && fail "weights of another network were taken"
grep -q "has no tensor 'conv1.weight'" err || fail "weights of another network: $(cat err)"

# ---- refusals ----
head -c 300 lenet5.onnx >cut.onnx
"$GHP_BIN/ghp-inspect" cut.onnx >out 2>err && fail "a cut file was taken"
grep -q "cut.onnx: this is not an ONNX model, or it is damaged" err || fail "a cut file: $(cat err)"
"$GHP_BIN/ghp-inspect" lenet5.onnx --weights x >out 2>err
[ $? -eq 2 ] || fail "--weights alone is no bad usage"
printf '\010\000\000\000\000\000\000\000{}      ' >empty.safetensors
"$GHP_BIN/ghp-inspect" lenet5.onnx --export-onnx x.onnx --weights empty.safetensors >out 2>err &&
    fail "weights from nowhere"
grep -q "no tensor 'conv1.weight'" err || fail "a checkpoint without tensors: $(cat err)"
[ ! -e x.onnx ] || fail "half an export was left behind"

# ---- published sizes (docs/reference/onnx.md names the sources) ----
published() { # FILE PARAMETERS LEAST_MFLOP MOST_MFLOP
    [ -r "$networks/$1" ] || {
        echo "left out: $1 is not in '$networks'" >&2
        return
    }
    run "$GHP_BIN/ghp-inspect" "$networks/$1" --json || return
    awk -v w="$(number weights out)" -v f="$(number forward_flops out)" -v W="$2" -v l="$3" -v m="$4" \
        'BEGIN { exit !(w == W && f >= l * 1e6 && f <= m * 1e6) }' ||
        fail "$1: $(number weights out) parameters, $(number forward_flops out) operations"
}
published light_bvlc_alexnet.onnx 60965224 1300 1460
published light_squeezenet.onnx 1235496 690 720
published light_vgg19.onnx 143667240 39200 39300
published light_resnet50.onnx 25557032 7700 8300

# ---- a trained network in another runtime ----
if [ -r "$mnist/t10k-images-idx3-ubyte.gz" ] && "$python" -c 'import numpy, onnxruntime' 2>/dev/null; then
    run "$GHP_BIN/ghp-plan" lenet5.onnx --profile profile.json --workers 1 --batch 64 -o 1.json
    run mpirun -n 1 "$GHP_BIN/ghp-run" 1.json --data "idx:$mnist" --train-fraction 0.9744 --epochs 1 --lr 0.02 \
        --threads 1 --checkpoint mnist --json && cp out run.json
    run "$GHP_BIN/ghp-inspect" 1.json --export-onnx mnist.onnx --weights mnist/checkpoint.safetensors
    other=()
    if "$python" -c 'import torch, safetensors' 2>/dev/null; then
        other=("$GHP_SOURCE/models/lenet5.json" mnist/checkpoint.safetensors)
    else
        echo "left out: torch and safetensors of '$python' are not there" >&2
    fi
    "$python" "$GHP_SOURCE/tests/tools/networks/onnx_logits.py" mnist.onnx "$mnist" "${other[@]}" >other ||
        fail "the other runtimes"
    # float sums in another order over 256 samples of 10 logits
    ours=$(for key in test_samples test_loss test_accuracy; do number $key run.json; done)
    echo $ours "$(sed -n 1p other)" |
        awk '{ d = $2 - $4; if (d < 0) d = -d
               printf "%d samples: loss %.7f here, %.7f there; right %.4f and %.4f\n", $1, $2, $4, $3, $5
               exit !($1 == 256 && d <= 1e-5 && $3 == $5) }' || fail "another runtime has other results"
    # 1e-5 of the largest logit: a float has 6e-8, and each logit sums some hundred products twice
    [ ${#other[@]} -eq 0 ] || sed -n 2p other |
        awk '{ printf "logits of two runtimes: %.2g apart, the largest is %.3g\n", $1, $2
               exit !(NF == 2 && $1 <= 1e-5 * ($2 > 1 ? $2 : 1)) }' || fail "PyTorch has other logits than onnxruntime"
else
    echo "left out: MNIST in '$mnist', or onnxruntime and numpy of '$python', are not there" >&2
fi
[ $failures -eq 0 ]
