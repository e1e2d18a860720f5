#!/usr/bin/env bash
# ghp-test: timeout=400 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_optimizer_torch.sh - ten steps of lenet5 by PyTorch's SGD, AdamW and clip_grad_norm_, and by
# Lion's formula on PyTorch's tensors, compared with ghp-run's on one worker and on four, by data, other splits, shards of the update, two stages and micro-batches.
# Skipped where python3 (GHP_PYTHON) has no torch. In short tests tools/examples/pytorch_resnet stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
script=$GHP_SOURCE/tests/tools/learn/optimizer_torch.py
model=$GHP_SOURCE/models/lenet5.json

warm_python torch || {
    echo "skipped: '${GHP_PYTHON:-python3}' has no torch; set GHP_PYTHON to one that has"
    exit 77
}
run() { ranks "$1" run "${@:2}" --data idx:data --eval off; }

warm "$script" data data || exit 1
analytic "$model" profile.json

# trained WORKERS OPTIMIZER CLIP BITS PLAN-OPTION...: by ghp, then by PyTorch from the same weights
trained() {
    local workers=$1 optimizer=$2 clip=$3 bits=$4 rate=0.002 numbers=(--precision float --backend onednn) clips=()
    shift 4
    [ "$bits" = 64 ] && numbers=(--precision double --backend reference)
    [ "$bits" = 32 ] && rate=0.0005 # where a gradient is near zero, rounding moves a weight by a part of the rate
    [ "$clip" = 0 ] || clips=(--clip-norm "$clip")
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$workers" --batch 16 --no-break-even \
        --optimizer "$optimizer" "${clips[@]}" "$@" -o plan.json >out 2>err || { fail "$*: $(tail -1 err)"; return; }
    run "$workers" plan.json --steps 1 --lr 0 --checkpoint first "${numbers[@]}" ||
        { fail "$*: $(tail -1 err)"; return; }
    run "$workers" plan.json --steps 10 --lr $rate --weight-decay 0.1 --init first/checkpoint.safetensors \
        --checkpoint last --numerics exact "${numbers[@]}" || { fail "$*: $(tail -1 err)"; return; }
    warm "$script" check first/checkpoint.safetensors last/checkpoint.safetensors \
        "$optimizer" 10 $rate 0.1 "$clip" "$bits" || fail "$workers workers, $*: is not PyTorch's"
    rm -rf first last
}

for optimizer in sgd adamw lion; do
    trained 1 $optimizer 0 64
    trained 4 $optimizer 0 64 --strategy data
    trained 4 $optimizer 1.5 64 --force 'conv1=out:2,conv2=in:2,fc1=out:4,fc2=in:4,fc3=data'
    full || continue
    trained 4 $optimizer 1.5 64 --strategy data --sync sharded
done
trained 4 adamw 1.5 64 --stages 2,fc1:2 --micro-batches 2
trained 4 adamw 1.5 64 --sync sharded --force 'conv*=data,fc*=out:2'
trained 4 adamw 1.5 32 --strategy data --sync sharded
full && trained 1 adamw 1.5 32

[ "$failures" = 0 ] && echo "optimizers are PyTorch's"
exit $((failures > 0))
