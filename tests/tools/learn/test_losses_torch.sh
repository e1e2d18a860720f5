#!/usr/bin/env bash
# ghp-test: timeout=240 needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_losses_torch.sh - ten steps with label smoothing and with binary cross-entropy, of one label
# and of several, and of samples that are blended of two, on two workers, compared with PyTorch's
# cross_entropy(label_smoothing) and binary_cross_entropy_with_logits. Classes that are divided have the smoothed loss of one worker; labels that
# do not fit are refused. The comparisons are left out where python3 (GHP_PYTHON) has no torch and numpy.
set -u
. "$(dirname "$0")/../scratch.sh"
script=$GHP_SOURCE/tests/tools/learn/losses_torch.py

run() { ranks "$1" run "${@:2}" --numerics exact; }
# planned MODEL WORKERS BATCH OPTION...: plan.json
planned() {
    analytic "$1" profile.json
    "$GHP_BIN/ghp-plan" "$1" --profile profile.json --workers "$2" --batch "$3" --no-break-even -o plan.json "${@:4}" \
        >out 2>err || { fail "$*: $(tail -1 err)"; return 1; }
}

# ---- classes that are divided ----
sed 's/"op": *"softmax_cross_entropy"/&, "smoothing": 0.1/' "$GHP_SOURCE/models/gpt-nano.json" >smoothed.json
planned smoothed.json 2 2 --force lm_head=out:2,loss=channel:2 && { run 2 plan.json --verify 1 ||
    fail "divided classes: $(tail -1 err)"; }

# the same, and whole rows, with weights of the classes: 256 of them, from 0.5 to 2
weights=$(awk 'BEGIN { for (i = 0; i < 256; i++) printf "%s%g", i ? "," : "", 0.5 + i % 4 * 0.5 }')
for force in lm_head=out:2,loss=channel:2 loss=data; do
    planned "$GHP_SOURCE/models/gpt-nano.json" 2 2 --force $force && { run 2 plan.json --verify 2 \
        --class-weights "$weights" || fail "weights of classes, $force: $(tail -1 err)"; }
done

# ---- compared with PyTorch ----
network() { # network OUTPUTS LOSS-KEYS: model.json
    printf '{"format": "ghp.model/1", "name": "small", "input": {"channels": 12}, "layers": [
  {"name": "fc1", "op": "linear", "features": 16}, {"name": "relu1", "op": "relu"},
  {"name": "fc2", "op": "linear", "features": %s}, {"name": "loss", "op": %s}]}\n' "$1" "$2" >model.json
}
if ! warm_python torch numpy; then
    echo "left out: '${GHP_PYTHON:-python3}' lacks torch or numpy; set GHP_PYTHON to one that has them" >&2
    [ $failures -eq 0 ] && exit 77
    exit 1
fi
checks=()
# trained LOSS LABELS OUTPUTS LOSS-KEYS BITS...: by two workers, as BITS say
trained() {
    local bits
    rm -rf data
    warm "$script" data data "$2" || { fail "no data"; return; }
    network "$3" "$4"
    planned model.json 2 16 --strategy data || return
    for bits in "${@:5}"; do
        local numbers=(--precision float --backend onednn) to=$1.$bits
        [ "$bits" = 64 ] && numbers=(--precision double --backend reference)
        [ "$1" = weighted ] && numbers+=(--class-weights 1,0.25,3,2,0.5)
        [ "$1" = blended ] && numbers+=(--augment mixup=0.4)
        run 2 plan.json --data npy:data --eval off --steps 1 --lr 0 --checkpoint "$to.first" "${numbers[@]}" &&
            run 2 plan.json --data npy:data --eval off --steps 10 --lr 0.2 --momentum 0.9 --weight-decay 0 \
                --init "$to.first/checkpoint.safetensors" --checkpoint "$to.last" --metrics "$to.metrics" \
                "${numbers[@]}" || { fail "$to: $(tail -1 err)"; continue; }
        checks+=("$to.first/checkpoint.safetensors" "$to.last/checkpoint.safetensors" "$to.metrics" "$1" "$bits")
    done
}
trained smoothed 5 5 '"softmax_cross_entropy", "smoothing": 0.1' 64 32
trained weighted 5 5 '"softmax_cross_entropy"' 64 32
trained blended 5 5 '"softmax_cross_entropy", "smoothing": 0.1' 64
trained binary 5 5 '"binary_cross_entropy"' 64
trained one 2 1 '"binary_cross_entropy"' 64
trained multi 0 5 '"binary_cross_entropy", "multi_label": true' 64 32
warm "$script" check "${checks[@]}" || fail "losses are not PyTorch's"

# ---- labels that do not fit: five of each sample where one is wanted, and one where five are ----
network 5 '"softmax_cross_entropy"'
planned model.json 1 16 && run 1 plan.json --data npy:data --steps 1 && fail "five labels were taken for one"
grep -q "labels.npy' holds no labels: they are integers, one for each sample" err || fail "five labels: $(cat err)"
not_run 2 "has 2 numbers, and 'small' has 5 classes; give one for each" 1 --class-weights 1,2
not_run 2 'weights samples by one label' 1 --class-weights 1,2,3,4,5 --augment mixup=1
not_run 2 'takes numbers above 0 with commas between' 1 --class-weights 1,2,0,4,5
warm "$script" data data 5
network 5 '"binary_cross_entropy"'
planned model.json 1 16
not_run 1 "are for softmax_cross_entropy of one label a sample, and the loss 'loss' is another" 1 --augment cutmix=1
network 5 '"binary_cross_entropy", "multi_label": true'
planned model.json 1 16 && run 1 plan.json --data npy:data --steps 1 && fail "one label was taken for five"
grep -q "takes 5 integers of each sample; save them as an array of N,5 int64" err || fail "one label: $(cat err)"
not_run 1 "is for softmax_cross_entropy without smoothing, and the loss 'loss' is another" 1 --class-weights 1,2,3,4,5
[ $failures -eq 0 ]
