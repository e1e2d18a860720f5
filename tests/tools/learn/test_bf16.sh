#!/usr/bin/env bash
# ghp-test: timeout=600 label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_bf16.sh - bfloat16 on processors, through the tools: lenet5 is profiled, planned and trained by
# two workers; plans of every kind, stages, micro-batches and ghost batches among them, train like one worker; allocated
# is predicted memory; faults are caught; evaluation and checkpoints work. If oneDNN may not use the instructions the
# tools say so; if the processor has none the test is skipped.
set -u
. "$(dirname "$0")/../scratch.sh"
models=$GHP_SOURCE/models
launch() { mpirun --oversubscribe --bind-to none -n "$@" >out 2>err </dev/null; }
profile() { launch "$1" "$GHP_BIN/ghp-profile" --precision bf16 --model "$2" --workers "$1" --batch 16 --threads 1 \
    --bind none --budget 5 --sample 1e-3 -o "$3"; }

DNNL_MAX_CPU_ISA=AVX2 profile 1 "$models/lenet5.json" none.json && fail "bf16 without its instructions"
grep -q -- '--precision float' err || fail "no remedy: $(head -3 err)"
if ! profile 2 "$models/lenet5.json" two.json; then
    grep -q 'no bf16 kernels for this processor' err || { cat err >&2; exit 1; }
    echo "skipped: $(head -1 err)" >&2
    exit 77
fi

# measured, planned, trained
grep -q '"element_bytes": 2' two.json || fail "the profile is not bf16's"
"$GHP_BIN/ghp-plan" "$models/lenet5.json" --profile two.json --workers 2 --batch 16 -o two.plan.json >out 2>err ||
    fail "plan: $(head -3 err)"
launch 2 "$GHP_BIN/ghp-run" two.plan.json --threads 1 --bind none --steps 20 --json --checkpoint kept ||
    fail "run: $(head -3 err)"
grep -q 'onednn, bf16, numerics fast' err || fail "not trained in bf16: $(head -3 err)"
[ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] || fail "allocated is not predicted memory"

# verify NAME N OPTIONS...: plan NAME.plan.json trains like one worker, in the numerics of the options
verify() {
    launch "$2" "$GHP_BIN/ghp-run" "$1.plan.json" --verify 4 --lr 0.01 --json --threads 1 --bind none \
        --backend onednn --precision bf16 "${@:3}"
    local code=$?
    printf '%-24s %-30s e_w %-10s e_g %-10s of all %s\n' "$1" "${*:3}" "$(number max_relative_difference out)" \
        "$(number max_relative_gradient_difference out)" "$(number rms_relative_gradient_difference out)"
    [ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] || fail "$1: allocated is not predicted memory"
    return $code
}

# plan NAME MODEL N OPTIONS...
plan() {
    analytic "$2" law.json F=1e11,bandwidth=1e9,latency=2e-5
    "$GHP_BIN/ghp-plan" "$2" --profile law.json --workers "$3" --batch "${batch:-16}" "${@:4}" -o "$1.plan.json" \
        >out 2>err || fail "plan of $1: $(head -3 err)"
}

sed 's/"op": *"batch_norm"/&, "statistics": "local:2"/' "$models/small-resnet.json" >ghosts.json
verify two 2 || fail "the measured plan: $(head -3 err)"
networks=lenet5
full && networks="lenet5 small-resnet"
for model in $networks; do
    plan "$model-data" "$models/$model.json" 2 --strategy data
    plan "$model-out" "$models/$model.json" 2 --force '*=out:max'
    plan "$model-in" "$models/$model.json" 2 --force '*=in:max'
    for kind in data out in; do
        verify "$model-$kind" 2 || fail "$model-$kind: $(head -3 err)"
    done
    verify "$model-data" 2 --numerics fast || fail "$model-data, fast: $(head -3 err)"
    verify "$model-data" 2 --inject-fault drop-reduction && fail "$model: drop-reduction was not caught"
done
plan micro "$models/lenet5.json" 2 --micro-batches 4
verify micro 2 || fail "micro-batches: $(head -3 err)"
batch=48 plan stages ghosts.json 3 --stages 2,b.conv1:1 --micro-batches 2
verify stages 3 || fail "stages of ghost batches: $(head -3 err)"
# partial sums that cross stages: back from a first layer by output channels, and onwards from a last one by input
# channels
batch=48 plan staged-out "$models/lenet5.json" 3 --stages 1,fc1:2 --force 'fc1=out:2'
verify staged-out 3 || fail "a stage's first layer by output channels: $(head -3 err)"
batch=48 plan staged-in "$models/small-resnet.json" 3 --stages 2,a.bn2:1 --force 'a.conv2=in:2'
verify staged-in 3 || fail "a stage's last layer by input channels: $(head -3 err)"
plan staged-four "$models/lenet5.json" 4 --stages 2,fc1:2 --force 'fc1=out:2,conv*=data'
verify staged-four 4 || fail "partial sums of two workers to two others: $(head -3 err)"
[ $failures -eq 0 ]
