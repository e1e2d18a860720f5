#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_freeze.sh - fine-tuning: parameters that stay, learning rates and weight decay of some alone.
# Under other plans the same as on one worker; time and memory are less than of a full training. The full cases: under
# optimizer shards and servers too; a resnet18 from its weights with a new head trains as PyTorch's does (skipped where
# python3 (GHP_PYTHON) has no torchvision). In short tests core/model/freeze and core/program/fixed stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
script=$GHP_SOURCE/tests/tools/learn/freeze_torch.py
model=$GHP_SOURCE/models/small-resnet.json
double=(--precision double --backend reference --eval off)

analytic "$model" profile.json
plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$1" --batch 8 --no-break-even "${@:3}" -o "$2" \
        >out 2>err || fail "$*: $(tail -1 err)"
}

# ---- what a plan says of it ----

plan 1 full.json --optimizer adamw
plan 1 frozen.json --optimizer adamw --freeze '*' --freeze-except 'fc*'
holds frozen.json '"frozen_batch_norm" in str(o) and "\"batch_norm" not in json.dumps(o)'
"$GHP_BIN/ghp-inspect" frozen.json | grep -q "^# not trained: .*; 'fc1' is the first layer that is trained" ||
    fail "ghp-inspect does not say what is frozen: $("$GHP_BIN/ghp-inspect" frozen.json | head -5)"
"$GHP_BIN/ghp-inspect" full.json | grep -q "^# not trained" && fail "ghp-inspect calls something frozen that is trained"
for key in predicted_step_s peak_bytes; do
    awk -v a="$(number $key frozen.json)" -v b="$(number $key full.json)" 'BEGIN { exit !(a > 0 && a < 0.6 * b) }' ||
        fail "frozen up to its head: $key $(number $key frozen.json), of a full training $(number $key full.json)"
done
# requires_grad=False of batch norms alone: as PyTorch in train mode, unless --freeze names them
sed -E 's/("op": *"batch_norm")/\1, "fixed": true/' "$model" >fixed.json
learned=$model model=$PWD/fixed.json
plan 1 still.json
holds still.json '"frozen_batch_norm" not in json.dumps(o)'
grep -q "batch norm 'bn1' and 5 more keep scale and shift, and their running .*--freeze 'bn1'" err ||
    fail "nothing is said of running statistics that change: $(cat err)"
sed -E '0,/("op": *"batch_norm")/s//\1, "fixed": true/' "$learned" >one.json
model=$PWD/one.json plan 1 one.plan
grep -q "batch norm 'bn1' keeps scale and shift, and its running .* the batch norm: --freeze 'bn1'" err ||
    fail "one batch norm is not spoken of alone: $(cat err)"
plan 1 fixed.plan --freeze '*' --freeze-except 'fc*'
holds fixed.plan '"\"batch_norm" not in json.dumps(o)'
grep -q "statistics change" err && fail "statistics that stay are said to change"
model=$learned
not_planned 1 "names no parameter of the network" 1 8 --freeze 'norm.*'
not_planned 1 "nothing to train" 1 8 --freeze '*'
not_planned 1 "without 'bn1.bias'" 1 8 --freeze bn1.weight
not_planned 2 "add --freeze" 1 8 --freeze-except 'fc*'

# ---- any plan trains as one worker; what is frozen stays as it was ----

groups=(--lr-scale 'b.*=0.1' --weight-decay 0.1 --weight-decay-except '*.bias')
freeze=(--freeze conv1 --freeze bn1 --freeze 'a.*' --freeze b.bn2 --freeze fc1.bias)
trains() { # WORKERS[+SERVERS] PLAN-OPTION...: --verify of three steps
    plan "${1%+*}" plan.json "${freeze[@]}" "${@:2}"
    ranks $(($1)) run plan.json --data synthetic --verify 3 "${groups[@]}" "${double[@]}" ||
        fail "$*: $(tail -3 err)"
}
trains 2 --strategy data
trains 2 --force 'b.conv*=out:2,fc1=out:2,fc2=in:2'
trains 2 --stages 1,b.conv2:1 --freeze-except b.bn2 --freeze b.bn1
full && trains 4 --strategy data --sync sharded --optimizer adamw
full && trains 2+1 --strategy data --sync bsp --servers 1
for scaling in linear lars adascale lena; do full && trains 2 --strategy data --freeze 'b.*bn*' --lr-scaling $scaling; done
full && trains 2 --strategy data --lr-scaling lamb --optimizer adamw
plan 1 plan.json "${freeze[@]}"
ranks 1 run plan.json --data synthetic --steps 3 "${groups[@]}" --checkpoint kept "${double[@]}" || fail "one: $(tail -1 err)"
ranks 1 run plan.json --data synthetic --steps 1 --lr 0 --checkpoint first "${double[@]}" || fail "first: $(tail -1 err)"
python3 - <<'PYTHON' || fail "something frozen moved, or something else did not"
import json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}

first, last = tensors("first/checkpoint.safetensors"), tensors("kept/checkpoint.safetensors")
frozen = lambda name: name.startswith(("conv1.", "bn1.", "a.", "b.bn2.")) or name == "fc1.bias"
for name in sorted(last):
    if name.startswith("momentum."):
        if frozen(name[9:]):
            sys.exit("there is a " + name)
    elif (first[name] == last[name]) != frozen(name):
        sys.exit(name)
PYTHON

# ---- continued with more, or fewer, of them frozen ----

plan 1 more.json "${freeze[@]}" --freeze b.bn1
ranks 1 run more.json --data synthetic --steps 4 --checkpoint kept --resume "${double[@]}" || fail "more frozen: $(tail -1 err)"
plan 1 fewer.json
ranks 1 run fewer.json --data synthetic --steps 5 --checkpoint kept --resume "${double[@]}" && fail "fewer frozen: it went on"
grep -q "was frozen in that training; plan with the --freeze of that training, or start from .* with --init" err ||
    fail "fewer frozen: $(tail -1 err)"
ranks 1 run fewer.json --data synthetic --steps 1 --init kept/checkpoint.safetensors "${double[@]}" || fail "its remedy: $(tail -1 err)"

# ---- as PyTorch does ----

full || { [ "$failures" = 0 ] && echo "frozen parameters stay, and the others train"; exit $((failures > 0)); }
warm_python torch torchvision safetensors || {
    echo "skipped what compares with PyTorch: '${GHP_PYTHON:-python3}' has no torchvision; set GHP_PYTHON to one that has"
    exit $((failures > 0))
}
python3 - "$GHP_SOURCE/models/resnet18.json" <<'PYTHON'
import json, sys

text = open(sys.argv[1]).read().replace("stage4", "layer4").replace("stage3", "layer3").replace("stage2", "layer2")
net = json.loads(text.replace("stage1", "layer1").replace("short_bn", "downsample.1").replace("short", "downsample.0"))
net["input"].update(height=64, width=64)
for layer in net["layers"]:
    if layer["name"] == "fc":
        layer["features"] = 10
json.dump(net, open("net.json", "w"))
for layer in net["layers"]: # as a module with requires_grad=False below layer4 is exported
    if layer["name"].startswith(("conv1", "bn1", "layer1", "layer2", "layer3")) and ("norm" in layer["op"] or "conv" in layer["op"]):
        layer["fixed"] = True
json.dump(net, open("fixed.json", "w"))
PYTHON
model=net.json
warm "$script" data || exit 1
analytic "$model" profile.json
init=(--data npy:. --normalise none --eval off --init base.safetensors --init-except 'fc.*')

# as_torch STEPS FROZEN EVALUATED SCALED PLAN-OPTION... -- RUN-OPTION...
as_torch() {
    local steps=$1 frozen=$2 evaluated=$3 scaled=$4 options=()
    shift 4
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 4 --no-break-even "${options[@]}" \
        -o plan.json >out 2>err || { fail "${options[*]}: $(tail -1 err)"; return; }
    rm -rf first last metrics.jsonl
    ranks 1 run plan.json "${init[@]}" --steps 1 --lr 0 --checkpoint first || { fail "first: $(tail -1 err)"; return; }
    ranks 1 run plan.json "${init[@]}" --steps "$steps" --lr 0.001 --weight-decay 0.01 --metrics metrics.jsonl \
        --checkpoint last "$@" || { fail "$*: $(tail -1 err)"; return; }
    warm "$script" check {first,last}/checkpoint.safetensors metrics.jsonl "$steps" 0.001 0.01 "$frozen" "$evaluated" \
        "$scaled" || fail "${options[*]} $*: is not PyTorch's"
}
below=conv1.,bn1.,layer1.,layer2.,layer3.
frozen=(--freeze conv1 --freeze bn1 --freeze layer1 --freeze layer2 --freeze layer3)
as_torch 20 conv1.,bn1.,layer1.,layer2. conv1.,bn1.,layer1.,layer2. layer3. \
    --freeze conv1 --freeze bn1 --freeze 'layer[12]*' -- --lr-scale layer3=0.1
as_torch 20 "" "" $below -- --lr-scale 'conv1=.1' --lr-scale bn1=0.1 --lr-scale 'layer[123]*=.1'
model=fixed.json # requires_grad=False alone, and with evaluation mode
as_torch 20 $below layer2. "" --freeze layer2 --
as_torch 20 $below $below "" "${frozen[@]}" --

[ "$failures" = 0 ] && echo "frozen parameters stay, and the others train as PyTorch's"
exit $((failures > 0))
