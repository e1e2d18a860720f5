#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_losses_torch.sh - ten steps with label smoothing, with binary cross-entropy, of one label and
# of several, of samples that are blended of two, and with regression, of vectors and of images, on two and four
# workers, compared with PyTorch's cross_entropy(label_smoothing), binary_cross_entropy_with_logits, mse_loss and
# huber_loss. Classes that are divided have the smoothed loss of one worker, and so have numbers; labels that do not fit
# are refused. The comparisons are left out where python3 (GHP_PYTHON) has no torch and numpy. In short
# tests executor/backend/reference stands for it.
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

# ---- numbers as labels: of each position, in parts of the batch, in stages ----
sed 's/"op": *"softmax_cross_entropy"/"op": "regression", "error": "smooth_l1", "delta": 0.5/' \
    "$GHP_SOURCE/models/gpt-nano.json" >numbers.json
planned numbers.json 4 4 --force 'loss=position:2,*=data' && { run 4 plan.json --verify 2 ||
    fail "positions with numbers: $(tail -1 err)"; }
grep -q 'numbers as labels' <("$GHP_BIN/ghp-inspect" numbers.json) || fail "ghp-inspect of numbers.json"
planned numbers.json 2 4 --stages 1,lm_head:1 --micro-batches 2 && { run 2 plan.json --verify 2 ||
    fail "stages with numbers: $(tail -1 err)"; }

# ---- compared with PyTorch ----
network() { # network OUTPUTS LOSS-KEYS: model.json
    printf '{"format": "ghp.model/1", "name": "small", "input": {"channels": 12}, "layers": [
  {"name": "fc1", "op": "linear", "features": 16}, {"name": "relu1", "op": "relu"},
  {"name": "fc2", "op": "linear", "features": %s}, {"name": "loss", "op": %s}]}\n' "$1" "$2" >model.json
}
maps() { # an image of three channels from one of two: model.json
    echo '{"format": "ghp.model/1", "name": "maps", "input": {"channels": 2, "height": 6, "width": 6}, "layers": [
  {"name": "conv1", "op": "conv2d", "channels": 4, "kernel": 3, "pad": 1}, {"name": "relu1", "op": "relu"},
  {"name": "conv2", "op": "conv2d", "channels": 3, "kernel": 3, "pad": 1},
  {"name": "loss", "op": "regression", "error": "huber", "delta": 0.5}]}' >model.json
}
if ! warm_python torch numpy; then
    echo "left out: '${GHP_PYTHON:-python3}' lacks torch or numpy; set GHP_PYTHON to one that has them" >&2
    [ $failures -eq 0 ] && exit 77
    exit 1
fi
checks=()
# trained LOSS LABELS OUTPUTS LOSS-KEYS BITS...: by two workers, as BITS say; of maps by four
trained() {
    local bits workers=2 by=(--strategy data)
    rm -rf data
    warm "$script" data data "$2" || { fail "no data"; return; }
    network "$3" "$4"
    [ "$1" = maps ] && maps && workers=4 && by=(--micro-batches 2 --force 'conv1=out:2,conv2=in:2')
    planned model.json $workers 16 "${by[@]}" || return
    for bits in "${@:5}"; do
        local numbers=(--precision float --backend onednn) to=$1.$bits
        [ "$bits" = 64 ] && numbers=(--precision double --backend reference)
        [ "$1" = weighted ] && numbers+=(--class-weights 1,0.25,3,2,0.5)
        [ "$1" = blended ] && numbers+=(--augment mixup=0.4)
        [ "$1" = maps ] && numbers+=(--normalise none)
        run $workers plan.json --data npy:data --eval off --steps 1 --lr 0 --checkpoint "$to.first" "${numbers[@]}" &&
            run $workers plan.json --data npy:data --eval off --steps 10 --lr 0.2 --momentum 0.9 --weight-decay 0 \
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
trained maps maps 0 '""' 64
trained squared numbers 5 '"regression"' 64 32
run 2 plan.json --data npy:data --evaluate --json --init squared.32.last/checkpoint.safetensors || fail "$(tail -1 err)"
cp out squared.json
checks+=(squared.32.first/checkpoint.safetensors squared.32.last/checkpoint.safetensors squared.json evaluated 32)

# ---- a moving average of the weights: the formula, in two parts, the second with a sharded update, in evaluations ----
averaged() { # averaged FOLDER STEPS OPTION...
    run 2 plan.json --data npy:data --eval off --steps "$2" --lr 0.2 --momentum 0.9 --weight-decay 0 --ema 0.9 \
        --precision double --backend reference --checkpoint "$1" "${@:3}" || fail "$*: $(tail -1 err)"
}
first=squared.64.first/checkpoint.safetensors
averaged ema 10 --init $first --metrics ema.metrics
averaged parts 4 --init $first
planned model.json 2 16 --strategy data --sync sharded
averaged parts 10 --resume
cmp -s ema/checkpoint.safetensors parts/checkpoint.safetensors || fail "a training in two parts has other averages"
checks+=($first ema/checkpoint.safetensors ema.metrics averaged 64)
not_run 1 'is of a training with --ema 0.9.*; resume with it' 2 --data npy:data --steps 20 --checkpoint ema --resume \
    --precision double
not_run 2 '--verify trains several; leave one of them out' 2 --ema 0.9 --verify 1
run 2 plan.json --steps 3 --lr 0.1 --ema 0.5 --eval on --checkpoint evaluated --metrics evaluated.metrics &&
    run 2 plan.json --evaluate --data synthetic --json --init evaluated/checkpoint.safetensors || fail "evaluation: $(tail -1 err)"
loss=$(grep -o '"test_loss":[^,]*' evaluated.metrics | tail -n 1)
[ -n "$loss" ] && [ "$(number loss out)" = "${loss#*:}" ] || fail "evaluated: $loss, then $(number loss out)"
warm "$script" check "${checks[@]}" || fail "losses are not PyTorch's"

# ---- labels that do not fit: numbers of another shape, and five of each sample for one, and one for five ----
not_run 1 'leave --eval-metrics out' 2 --data npy:data --evaluate --eval-metrics top5
network 4 '"regression"'
planned model.json 1 16
not_run 1 "labels.npy' has the shape \(16,5\), but .* save labels as an array of N,4 float32" 1 --data npy:data
warm "$script" data data 0
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
