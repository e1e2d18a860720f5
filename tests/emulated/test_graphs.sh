#!/usr/bin/env bash
# ghp-test: timeout=300 label=emulated
# tests/emulated/test_graphs.sh - steps of several micro-batches are recorded as graphs and played, by one worker and by
# two over NCCL, with layers recomputed or parameters sharded too. They train to the loss that a processor reaches by
# the same plan, of samples with two labels. Weights that are gathered in bf16 are those that products would have
# rounded, and sums over MPI have the same bits. Workers on MIG instances go by MPI.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
cat >small.json <<'JSON'
{"format": "ghp.model/1", "name": "small", "input": {"channels": 1, "height": 4, "width": 4},
 "layers": [{"name": "conv", "op": "conv2d", "channels": 8, "kernel": 3, "pad": 1}, {"name": "relu0", "op": "relu"},
            {"name": "conv1", "op": "conv2d", "channels": 8, "kernel": 1}, {"name": "act", "op": "gelu"},
            {"name": "norm", "op": "layer_norm"}, {"name": "gate", "op": "silu"},
            {"name": "flat", "op": "flatten"}, {"name": "fc1", "op": "linear", "features": 6},
            {"name": "relu", "op": "relu"}, {"name": "fc2", "op": "linear", "features": 4},
            {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
analytic small.json profile.json
sed 's/"features": 6/"features": 300/' small.json >wide.json # gathered weights are widened in parts
"$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model wide.json --precision bf16 -o bf16.json \
    >out 2>&1 || fail "no profile in bf16: $(cat out)"
steps=5

# on WORKERS OPTION...: the plan's run on the emulated GPU
on() {
    GHP_EMULATED_GPUS=$1 mpirun --oversubscribe --bind-to none -n "$1" "$GHP_EMULATED_BIN/ghp-run" plan.json \
        --backend cuda --steps $steps --augment mixup=1 "${@:2}" >out 2>err </dev/null || fail "$what: $(cat err)"
}

# loss: of the last step
loss() { sed -n 's/.*; loss .* -> \([0-9.]*\)$/\1/p' out; }

# same WORKERS WHAT OPTIONS...: all steps but the first are played, and the loss is a processor's
same() {
    local got graphs
    what="$1 workers, $2"
    "$GHP_BIN/ghp-plan" small.json --profile profile.json --workers "$1" --batch 8 -o plan.json "${@:3}" >out 2>&1 ||
        fail "$what: $(cat out)"
    if [ "$1" -eq 1 ]; then
        rm -f count
        GHP_EMULATED_COUNT=$PWD/count on 1
        read -r _ graphs _ <count
        [ "$graphs" -eq $((steps - 1)) ] || fail "$what: $graphs graphs of $steps steps"
    else # one that cannot record shows that both would
        GHP_EMULATED_CAPTURE=1 on "$1"
        grep -q 'enqueued one by one' err || fail "$what: nothing is recorded"
    fi
    on "$1" # streams as late as they may be
    got=$(loss)
    ranks "$1" run plan.json --steps $steps --augment mixup=1 || fail "$what, on a processor: $(cat err)"
    [ -n "$got" ] && [ "$got" = "$(loss)" ] || fail "$what: loss $got, on a processor $(loss)"
}

# gathered WORKERS SHARDED: weights that are gathered in bf16 train to the bits of whole ones, and so do sums over MPI
gathered() {
    local whole shard steps=2
    for shard in none "$2"; do
        what="$1 workers in bf16, $shard"
        "$GHP_BIN/ghp-plan" wide.json --profile bf16.json --workers "$1" --batch 8 -o plan.json --strategy data \
            --sync allreduce --shard "$shard" >out 2>&1 || fail "$what: $(cat out)"
        on "$1" --json
        [ "$shard" = none ] && whole=$(grep '"weights_hash"' out)
    done
    [ -n "$whole" ] && [ "$whole" = "$(grep '"weights_hash"' out)" ] || fail "$what: other bits than of whole weights"
    on "$1" --json --transport mpi
    [ "$whole" = "$(grep '"weights_hash"' out)" ] || fail "$what: other bits over MPI"
}

same 1 micro-batches --micro-batches 2
same 1 "layers recomputed" --micro-batches 2 --memory 24704
grep -q '"recompute"' plan.json || fail "$what: nothing is"
same 2 "sharded for each pass" --micro-batches 2 --shard pass --strategy data
# two instances of one GPU: NCCL would call it a duplicate
what="MIG instances"
GHP_EMULATED_MIG=1 GHP_EMULATED_CAPTURE=1 on 2
grep -q 'enqueued one by one' err && fail "MIG instances use NCCL"
GHP_EMULATED_MIG=1 GHP_EMULATED_GPUS=2 mpirun --oversubscribe --bind-to none -n 2 "$GHP_EMULATED_BIN/ghp-run" plan.json \
    --backend cuda --transport nccl --steps 1 >out 2>err </dev/null && fail "NCCL takes MIG instances"
grep -q 'some workers have a MIG instance; use --transport mpi' err || fail "MIG: $(cat err)"
gathered 4 step
if full; then
    same 4 "sharded for each pass" --micro-batches 2 --shard pass --strategy data
    same 4 "sharded within pairs" --shard step --shard-within 2 --strategy data
    same 2 "gradients sharded" --micro-batches 2 --shard gradients --strategy data
    gathered 2 pass
    same 1 "four micro-batches" --micro-batches 4 --optimizer adamw --clip-norm 1
    same 2 "gradients in bfloat16" --reduce-precision bf16 --strategy data
    same 2 sharded --micro-batches 2 --sync sharded --strategy data
fi
[ $failures -eq 0 ]
