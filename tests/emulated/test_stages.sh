#!/usr/bin/env bash
# ghp-test: timeout=600 label=emulated
# tests/emulated/test_stages.sh - plans with stages over NCCL: by each schedule, with micro-batches and recomputed layers,
# workers that split layers and two tensors that cross a boundary in another order than they are made. Steps are
# recorded as graphs where all can, and train to the same bits as enqueued ones, and as messages through host memory, and
# to the loss of one worker on a processor.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
# c reads b before d reads a: over the cut before c they cross
cat >small.json <<'JSON'
{"format": "ghp.model/1", "name": "small", "input": {"channels": 2, "height": 4, "width": 4},
 "layers": [{"name": "a", "op": "conv2d", "channels": 8, "kernel": 3, "pad": 1}, {"name": "relu", "op": "relu"},
            {"name": "b", "op": "conv2d", "channels": 8, "kernel": 1}, {"name": "act", "op": "gelu"},
            {"name": "c", "op": "conv2d", "channels": 8, "kernel": 1, "inputs": ["act"]},
            {"name": "d", "op": "add", "inputs": ["c", "relu"]},
            {"name": "e", "op": "conv2d", "channels": 4, "kernel": 3, "pad": 1}, {"name": "silu", "op": "silu"},
            {"name": "flat", "op": "flatten"}, {"name": "fc1", "op": "linear", "features": 8},
            {"name": "silu1", "op": "silu"}, {"name": "fc2", "op": "linear", "features": 4},
            {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
analytic small.json profile.json
steps=5

# on WORKERS OPTION...: the plan's run on the emulated GPU, its streams as late as they may be
on() {
    GHP_EMULATED_GPUS=$1 mpirun --oversubscribe --bind-to none -n "$1" "$GHP_EMULATED_BIN/ghp-run" plan.json \
        --backend cuda --steps $steps --watchdog 60 --json "${@:2}" >out 2>err </dev/null || fail "$what: $(cat err)"
}

weights() { grep '"weights_hash"' out; }

# same WORKERS WHAT OPTIONS...
same() {
    local recorded enqueued host loss
    what="$1 workers, $2"
    "$GHP_BIN/ghp-plan" small.json --profile profile.json --workers "$1" --batch 16 -o plan.json "${@:3}" >out 2>&1 ||
        fail "$what: $(cat out)"
    [[ $2 != *recomputed* ]] || grep -q '"recompute"' plan.json || fail "$what: nothing is"
    on "$1"
    recorded=$(weights) loss=$(number final_loss out)
    grep -q 'enqueued one by one' err && fail "$what: steps are not recorded: $(cat err)"
    grep -q 'tensors go by nccl' err || fail "$what: NCCL does not carry"
    GHP_EMULATED_CAPTURE=$(($1 - 1)) on "$1" # one that cannot record shows that all would
    enqueued=$(weights)
    grep -q 'enqueued one by one' err || fail "$what: nothing is recorded"
    on "$1" --transport mpi
    host=$(weights)
    [ -n "$recorded" ] && [ "$recorded" = "$enqueued" ] || fail "$what: enqueued steps have other weights"
    [ "$recorded" = "$host" ] || fail "$what: messages through host memory have other weights"
    ranks "$1" run plan.json --steps $steps --json || fail "$what, on a processor: $(cat err)"
    # the same but for rounding
    awk -v a="$loss" -v b="$(number final_loss out)" 'BEGIN { exit !(a > 0 && a - b < 1e-6 && b - a < 1e-6) }' ||
        fail "$what: loss $loss, on a processor $(number final_loss out)"
}

same 2 "two stages" --stages 1,c:1 --micro-batches 4
same 2 interleaved --stages 1,b:1,c,fc1 --micro-batches 4 --pipeline-schedule interleaved
same 2 "layers recomputed" --stages 1,c:1 --micro-batches 4 --memory 24064
same 4 "weight gradients deferred, partial sums" --stages 2,c:2 --micro-batches 2 --pipeline-schedule zb-h1 \
    --force '*=in:max'
if full; then
    same 4 "parts of the outputs" --stages 2,c:2 --micro-batches 4 --pipeline-schedule fill-drain --force '*=out:max'
    same 4 "stages without micro-batches" --stages 2,c:2
    same 4 interleaved --stages 2,b:2,c,fc1 --micro-batches 4 --pipeline-schedule interleaved
    same 4 "four stages" --stages 1,b:1,c:1,fc1:1 --micro-batches 4
    same 4 "two groups" --stages 1,c:1 --micro-batches 2
fi
[ $failures -eq 0 ]
