#!/usr/bin/env bash
# ghp-test: timeout=360 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_outputs.sh - networks of two outputs, whose losses are summed by weights: with the same labels,
# with labels of each, of which some are ignored, of numbers and of pixels; with losses of different kinds, and of
# different numbers of places. Under
# plans of two and four workers they train like one worker and like PyTorch; evaluations have what
# docs/reference/several-outputs.md says; what does not fit is refused. The comparisons are left out where python3
# (GHP_PYTHON) has no torch and numpy.
set -u
. "$(dirname "$0")/../scratch.sh"
script=$GHP_SOURCE/tests/tools/learn/outputs_torch.py

run() { ranks "$1" run "${@:2}" --numerics exact; }
# planned WORKERS BATCH OPTION...: plan.json of model.json
planned() {
    analytic model.json profile.json
    "$GHP_BIN/ghp-plan" model.json --profile profile.json --workers "$1" --batch "$2" --no-break-even -o plan.json \
        "${@:3}" >out 2>err || { fail "$*: $(tail -1 err)"; return 1; }
}
network() { # network LOSS-KEYS: model.json
    printf '{"format": "ghp.model/1", "name": "two", "input": {"channels": 12}, "layers": [
  {"name": "fc1", "op": "linear", "features": 16}, {"name": "relu1", "op": "relu"},
  {"name": "fc3", "op": "linear", "features": 6}, {"name": "fc2", "op": "linear", "features": 6, "inputs": ["relu1"]},
  {"name": "outputs", "op": "concat", "inputs": ["fc2", "fc3"]},
  {"name": "loss", "op": %s, "output_weights": [1, 0.3]}]}\n' "$1" >model.json
}
boxes() { # boxes LOSSES: the same of six classes and four numbers, with a loss each
    network "\"losses\", \"losses\": [$1]"
    sed -i 's/, "output_weights": .1, 0.3.//; s/\("fc3", "op": "linear", "features": \)6/\14/' model.json
}
maps() { # the same of a class for each pixel
    echo '{"format": "ghp.model/1", "name": "maps", "input": {"channels": 2, "height": 6, "width": 6}, "layers": [
  {"name": "conv1", "op": "conv2d", "channels": 4, "kernel": 3, "pad": 1}, {"name": "relu1", "op": "relu"},
  {"name": "conv2", "op": "conv2d", "channels": 6, "kernel": 3, "pad": 1},
  {"name": "conv3", "op": "conv2d", "channels": 6, "kernel": 3, "pad": 1, "inputs": ["relu1"]},
  {"name": "outputs", "op": "concat", "inputs": ["conv2", "conv3"]},
  {"name": "pixels", "op": "view", "channels": 12, "height": 36, "sizes": [12, 36], "strides": [36, 1],
   "sequence": true},
  {"name": "loss", "op": "softmax_cross_entropy", "output_weights": [1, 0.3]}]}' >model.json
}

heads() { # of each pixel five classes, yes or no, and four numbers
    echo '{"format": "ghp.model/1", "name": "heads", "input": {"channels": 2, "height": 6, "width": 6}, "layers": [
  {"name": "conv1", "op": "conv2d", "channels": 4, "kernel": 3, "pad": 1}, {"name": "relu1", "op": "relu"},
  {"name": "conv2", "op": "conv2d", "channels": 6, "kernel": 3, "pad": 1},
  {"name": "conv3", "op": "conv2d", "channels": 4, "kernel": 3, "pad": 1, "inputs": ["relu1"]},
  {"name": "outputs", "op": "concat", "inputs": ["conv2", "conv3"]},
  {"name": "loss", "op": "losses", "losses": [{"op": "softmax_cross_entropy", "channels": 5},
   {"op": "binary_cross_entropy", "channels": 1, "weight": 0.5},
   {"op": "regression", "channels": 4, "weight": 0.3}]}]}' >model.json
}
places() { # a class for a sample and four numbers for each of its pixels
    echo '{"format": "ghp.model/1", "name": "places", "input": {"channels": 2, "height": 6, "width": 6}, "layers": [
  {"name": "conv1", "op": "conv2d", "channels": 4, "kernel": 3, "pad": 1}, {"name": "relu1", "op": "relu"},
  {"name": "conv2", "op": "conv2d", "channels": 4, "kernel": 3, "pad": 1},
  {"name": "row", "op": "view", "channels": 4, "height": 1, "width": 36, "sizes": [4, 36], "strides": [36, 1]},
  {"name": "pool", "op": "global_avg_pool", "inputs": ["relu1"]}, {"name": "fc1", "op": "linear", "features": 6},
  {"name": "fc1_padded", "op": "pad", "pad": [0, 0, 0, 35]},
  {"name": "outputs", "op": "concat", "inputs": ["fc1_padded", "row"]},
  {"name": "loss", "op": "losses", "losses": [{"op": "softmax_cross_entropy"}, {"op": "regression", "weight": 0.3}]}
  ]}' >model.json
}
of_classes='{"op": "softmax_cross_entropy", "smoothing": 0.1}'
of_boxes='{"op": "regression", "error": "smooth_l1", "delta": 0.5, "weight": 0.3}'

# ---- like one worker: outputs in parts, the same on all workers, in stages; pixels in parts ----
network '"softmax_cross_entropy", "smoothing": 0.1'
planned 4 8 --force 'fc1=out:2,relu1=channel:2,fc2=in:2,fc3=out:2,loss=full:2' && { run 4 plan.json --verify 2 ||
    fail "parts of outputs: $(tail -1 err)"; }
planned 2 8 --stages 1,fc2:1 --micro-batches 2 && { run 2 plan.json --verify 2 || fail "stages: $(tail -1 err)"; }
maps
planned 4 4 --force 'loss=position:2,*=data' && { run 4 plan.json --verify 2 || fail "pixels: $(tail -1 err)"; }
network '"hinge", "own_labels": true'
planned 3 6 && { run 3 plan.json --verify 2 || fail "labels of each: $(tail -1 err)"; }
boxes "$of_classes, $of_boxes"
planned 4 8 --force 'fc1=out:2,relu1=channel:2,fc2=in:2,fc3=out:2,loss=full:2' && { run 4 plan.json --verify 2 ||
    fail "classes and numbers: $(tail -1 err)"; }
planned 2 8 --stages 1,fc2:1 --micro-batches 2 && { run 2 plan.json --verify 2 ||
    fail "boxes in stages: $(tail -1 err)"; }
heads
planned 3 6 && { run 3 plan.json --verify 2 || fail "heads: $(tail -1 err)"; }
sed -i 's/{"name": "loss"/{"name": "pixels", "op": "view", "channels": 10, "height": 36, "sizes": [10, 36],\
   "strides": [36, 1], "sequence": true},\n  &/' model.json
planned 4 4 --force 'loss=position:2,*=data' && { run 4 plan.json --verify 2 ||
    fail "positions of heads: $(tail -1 err)"; }
places
planned 3 6 && { run 3 plan.json --verify 2 || fail "places: $(tail -1 err)"; }
"$GHP_BIN/ghp-inspect" model.json >out || fail "ghp-inspect of model.json"

# ---- what is refused ----
refused() { # refused TEXT LOSS-KEYS [SED]
    network "$2"
    sed -i "${3:-}" model.json
    denied 1 "$1" "$GHP_BIN/ghp-inspect" model.json
}
refused 'is not that many of equal width; join as many by one concat' '"hinge"' 's/"features": 6}/"features": 8}/'
refused 'is not that many of equal width' '"hinge"' 's/1, 0.3/1, 0.3, 0.3/'
refused 'give 2 to 16' '"hinge"' 's/1, 0.3/1/'
refused 'this is not a number from 0 to 1e\+06' '"hinge"' 's/1, 0.3/1, -1/'
refused 'has own_labels of several outputs, but no output_weights' '"hinge", "own_labels": true' 's/, "output_weights.*0.3]//'
mixed() { # mixed TEXT LOSSES
    boxes "$2"
    denied 1 "$1" "$GHP_BIN/ghp-inspect" model.json
}
mixed 'has outputs of 12 channels together' "{\"op\": \"hinge\", \"channels\": 8}, $of_boxes"
mixed 'does not say the channels of each output, .* add "channels" to each loss' "$of_classes, $of_boxes, $of_boxes"
mixed 'give 2 to 16' "$of_boxes"
mixed "unknown key 'delta'" "$of_classes, {\"op\": \"regression\", \"delta\": 2}"
mixed "unknown key 'output_weights'" "$of_boxes, {\"op\": \"hinge\", \"output_weights\": [1, 2]}"
mixed "unknown name 'losses'" "$of_boxes, {\"op\": \"losses\"}"

# ---- compared with PyTorch ----
if ! warm_python torch numpy; then
    echo "left out: '${GHP_PYTHON:-python3}' lacks torch or numpy; set GHP_PYTHON to one that has them" >&2
    [ $failures -eq 0 ] && exit 77
    exit 1
fi
checks=()
# trained KIND WORKERS BITS OPTION...: of ghp-plan
trained() {
    local numbers=(--precision float --backend onednn) to=$1.$2.$3
    [ "$3" = 64 ] && numbers=(--precision double --backend reference)
    case $1 in
    classes) numbers+=(--class-weights 1,0.25,3,2,0.5,1) ;;
    own) numbers+=(--ignore-label 255) ;;
    maps | heads | places) numbers+=(--normalise none) ;;
    esac
    rm -rf data
    warm "$script" data data "$1" || { fail "no data"; return; }
    planned "$2" 16 "${@:4}" || return
    run "$2" plan.json --data npy:data --eval off --steps 1 --lr 0 --checkpoint "$to.first" "${numbers[@]}" &&
        run "$2" plan.json --data npy:data --eval off --steps 10 --lr 0.2 --momentum 0.9 --weight-decay 0 \
            --init "$to.first/checkpoint.safetensors" --checkpoint "$to.last" --metrics "$to.metrics" \
            "${numbers[@]}" || { fail "$to: $(tail -1 err)"; return; }
    checks+=("$to.first/checkpoint.safetensors" "$to.last/checkpoint.safetensors" "$to.metrics" "$1" "$3")
}
evaluated() { # evaluated KIND OPTION...
    run 1 plan.json --data npy:data --evaluate --json --init "$1.2.32.last/checkpoint.safetensors" "${@:2}" ||
        fail "evaluation of $1: $(tail -1 err)"
    cp out "$1.evaluated"
    checks+=("$1.2.32.first/checkpoint.safetensors" "$1.2.32.last/checkpoint.safetensors" "$1.evaluated" "$1" evaluated)
}
network '"softmax_cross_entropy"'
trained classes 1 64
trained classes 4 64 --force 'fc1=out:2,relu1=channel:2,fc2=in:2,fc3=out:2'
trained classes 2 32 --strategy data
planned 1 16 && evaluated classes --eval-metrics top5
network '"softmax_cross_entropy", "own_labels": true'
trained own 4 64 --strategy data
trained own 2 32 --stages 1,fc2:1 --micro-batches 2
planned 1 16 && evaluated own --ignore-label 255 --eval-metrics top5
not_run 1 'is for one label, and each output of the loss' 1 --class-weights 1,2,3,4,5,6
network '"binary_cross_entropy", "multi_label": true, "own_labels": true'
trained multi 2 64 --strategy data
network '"regression", "error": "huber", "delta": 0.5'
trained numbers 4 64 --force 'fc1=out:2,relu1=channel:2,fc2=in:2,fc3=in:2'
trained numbers 2 32 --strategy data
maps
trained maps 4 64 --micro-batches 2 --force 'conv1=out:2,conv2=in:2'
boxes "$of_classes, $of_boxes"
trained boxes 1 64
trained boxes 4 64 --force 'fc1=out:2,relu1=channel:2,fc2=in:2,fc3=in:2'
trained boxes 2 32 --stages 1,fc2:1 --micro-batches 2
planned 1 16 && evaluated boxes --eval-metrics outputs
not_run 2 'save labels that are to be ignored as NaN' 1 --data npy:data --ignore-label 3
not_run 1 'mixup and cutmix are for one label a sample' 1 --data npy:data --augment mixup=0.2
heads
trained heads 2 64 --strategy data
trained heads 4 64 --micro-batches 2 --force 'conv1=out:2,conv2=in:2'
trained heads 2 32 --strategy data
places
trained places 1 64
trained places 4 64 --micro-batches 2 --force 'conv1=out:2,conv2=in:2'
trained places 2 32 --stages 1,row:1 --micro-batches 2
"${GHP_PYTHON:-python3}" -c '
import numpy
y = numpy.load("data/labels.npy")
y[2, 0, 7] = 1
numpy.save("data/labels.npy", y)'
not_run 1 'has 1 as label 0 of sample 2 at place 7, but output 0 has 1; save NaN' 2 --data npy:data
warm "$script" check "${checks[@]}" || fail "outputs are not PyTorch's"
[ $failures -eq 0 ]
