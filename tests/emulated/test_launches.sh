#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=emulated
# tests/emulated/test_launches.sh - what a step of GPT-2 launches: kernels, copies and timed events of its graphs,
# printed, and no more than they were; each kernel and each call of cuBLASLt with how often; and the bytes of its
# instructions, one by one and as kernels do them together. One step of 16 has its instructions timed. q, k and v run at
# once, and k and v of grouped heads, to the bits of single products. A batch norm's forward pass is two kernels, as the
# convolution before it makes its sums. In full: of GPT-2 124M, and of resnet50.
#
# Kernels are counted on an emulated GPU, where convolutions and attention take ghp's own: an attention one forward and
# three backward. Products are called as cuda/linear.c calls cuBLASLt. In short tests emulated/graphs stands for it.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
export GHP_EMULATED=eager

# counted NETWORK STEPS: of a plan of one worker, by graphs; sets graphs, kernels, copies, events
counted() {
    local network=$1 steps=$2
    analytic "$network" profile.json
    "$GHP_BIN/ghp-plan" "$network" --profile profile.json --workers 1 --batch 8 --optimizer adamw --clip-norm 1 \
        -o plan.json >out 2>&1 || fail "planning: $(cat out)"
    rm -f count
    GHP_EMULATED_COUNT=$PWD/count mpirun --oversubscribe --bind-to none -n 1 "$GHP_EMULATED_BIN/ghp-run" plan.json \
        --backend cuda --precision bf16 --steps "$steps" --run run.json >out 2>err </dev/null || fail "$network: $(tail -3 err)"
    read -r _ graphs _ kernels _ copies _ events <count
    echo "$network, $graphs steps: $kernels kernels, $copies copies, $events events; of each step:"
    sed 1d count | awk -v steps="$graphs" '{ n = $1 / steps; $1 = ""; printf "%5g %s\n", n, $0 }' | sort -rn | tee step
    grep -q convert step && fail "weights are cast: $(grep convert step)"
    "$GHP_EMULATED_BIN/ghp-gpu-floors" plan.json run.json 1e14 1e12 >out 2>err || fail "bytes: $(cat err)"
    sed -n 's/.*bytes of a step: \([0-9.]*\) MB one by one, \([0-9.]*\) MB as.*/\1 \2/p' out >bytes
    read -r alone together <bytes
    echo "bytes of a step: $alone MB one by one, $together MB as kernels do them together"
    awk -v a="$alone" -v t="$together" 'BEGIN { exit !(t > 0 && t < 0.95 * a) }' || fail "nothing is saved: $(cat out)"
}

# of a step
most() { # WHAT COUNT STEPS MOST
    [ "$2" -le $(($3 * $4)) ] || fail "$2 $1 in $3 steps, more than $4 a step"
}

# at_once BATCHES PRODUCTS: that is how many batches the step has, of how many products each. Without them its plan trains
# to the same weights.
at_once() {
    local n
    n=$(awk -v t=", $2 at once" 'index($0, t) { n += $1 } END { print n + 0 }' step)
    [ "$n" -eq "$1" ] || fail "$n batches of $2 products, not $1: $(grep cublasLt step)"
    weights >once
    GHP_EMULATED_SINGLE=1 weights >single
    grep -q hash once || fail "no hash of weights: $(cat once err)"
    cmp once single || fail "at once: $(cat once), one by one: $(cat single)"
}

weights() {
    mpirun --oversubscribe --bind-to none -n 1 "$GHP_EMULATED_BIN/ghp-run" plan.json --backend cuda --precision bf16 \
        --steps 4 --json 2>err </dev/null | grep '"weights_hash"'
}

counted "$GHP_SOURCE/models/llama-nano.json" 3
at_once 8 2
counted "$GHP_SOURCE/models/gpt-nano.json" 33
at_once 4 3
[ "$graphs" -ge 32 ] || fail "$graphs graphs of 33 steps"
most kernels "$kernels" "$graphs" 109
most events "$events" "$graphs" 7
counted "$GHP_SOURCE/models/small-resnet.json" 3
norms=$(awk '$2 == "given_norm_kernel" { print $1 }' step)
[ "$norms" = 6 ] || fail "$norms batch norms of given sums, not 6: $(grep norm step)"
if full; then
    analytic gpt2-124m@1024 profile.json
    "$GHP_BIN/ghp-plan" gpt2-124m@1024 --profile profile.json --workers 1 --batch 8 -o plan.json >out 2>&1 ||
        fail "planning: $(cat out)"
    # with the padded vocabulary that profiles of this backend give networks
    python3 -c "import json; net = json.load(open('plan.json'))['model']
json.dump({**net, 'vocabulary_multiple': 64}, open('gpt2-124m.json', 'w'))" || fail "no network in the plan"
    counted "$PWD/gpt2-124m.json" 19
    grep -q ' 1  cublasLtMatmul tn 50304x8192x768 bf16 to bf16$' step || fail "the vocabulary is not padded"
    most kernels "$kernels" "$graphs" 555
    most events "$events" "$graphs" 47
    counted "$GHP_SOURCE/models/resnet50.json" 3
    most kernels "$kernels" "$graphs" 566
fi
[ $failures -eq 0 ]
