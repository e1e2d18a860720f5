#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,python3
# tests/tools/run/test_evaluate.sh - ghp-run --evaluate gives the loss of a training's own evaluation under any plan, and
# refuses what is of a training; --patience ends a training after evaluations that brought nothing. In short tests
# executor/train/evaluate stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
plan() { "$GHP_BIN/ghp-plan" "$model" --profile profile.json --batch 8 --no-break-even "$@" >out 2>&1 || fail "plan $*: $(cat out)"; }
plan --workers 1 -o plan.json
plan --workers 2 --strategy data -o two.json
plan --workers 2 --stages 1,fc1:1 -o stages.json

# ---- alone ----

numerics=(--numerics exact --threads 1)
ranks 1 run plan.json "${numerics[@]}" --steps 12 --lr 0.05 --eval on --checkpoint kept --metrics metrics || fail "training: $(cat err)"
cp kept/checkpoint.safetensors weights.safetensors
for way in "1 plan.json" "2 two.json" "2 stages.json"; do
    set -- $way
    ranks "$1" run "$2" "${numerics[@]}" --evaluate --data synthetic --init weights.safetensors --json --metrics "$2.metrics" || fail "$2: $(cat err)"
    python3 - "$2.metrics" <<'END' || fail "$2: not the training's loss"
import json, sys
then = [line for line in map(json.loads, open("metrics")) if "test_loss" in line][-1]
now, line = json.load(open("out")), json.loads(open(sys.argv[1]).read())
assert abs(now["loss"] - then["test_loss"]) < 1e-6 * then["test_loss"], (now, then)
assert (now["top1"], now["samples"], now["set"]) == (then["test_top1"], then["test_samples"], "test"), (now, then)
assert line["test_loss"] == now["loss"] and line["test_top1"] == now["top1"] and line["step"] == 0, (line, now)
END
done
ranks 1 run plan.json --evaluate --data synthetic --init weights.safetensors || fail "text: $(cat err)"
grep -qE '^loss [0-9.]+, accuracy [0-9.]+ on [0-9]+ test samples$' out || fail "text: $(cat out)"
cmp -s weights.safetensors kept/checkpoint.safetensors || fail "an evaluation writes weights"

# tokens without a test set: all samples, with the perplexity
printf '{"format": "ghp.model/1", "name": "tiny", "input": {"positions": 8, "vocabulary": 256}, "layers": [
    {"name": "embed", "op": "embedding", "channels": 8}, {"name": "head", "op": "linear", "features": 256},
    {"name": "loss", "op": "softmax_cross_entropy"}]}' >tiny.json
analytic tiny.json tiny.profile
"$GHP_BIN/ghp-plan" tiny.json --profile tiny.profile --workers 1 --batch 4 -o tiny.plan >out 2>&1 || fail "tiny: $(cat out)"
head -c 100 "$GHP_SOURCE/LICENSE" >text
ranks 1 run tiny.plan --evaluate --init random --data bytes:text --json || fail "tokens: $(cat err)"
holds out 'o["set"] == "all" and o["samples"] == 12 and abs(o["perplexity"] / 2.718281828459045 ** o["loss"] - 1) < 1e-9'

# hits, compared with those of the network written out; whole rows, and rows whose classes are divided
"$GHP_BIN/ghp-plan" tiny.json --profile tiny.profile --workers 2 --batch 4 \
    --force '*=data,head=out:2,loss=channel:2' -o divided.plan >out 2>&1 || fail "divided: $(cat out)"
ranks 1 run tiny.plan --steps 30 --lr 1 --data bytes:text --eval off --checkpoint tiny || fail "tiny: $(cat err)"
for way in "1 tiny.plan" "2 divided.plan"; do
    set -- $way
    ranks "$1" run "$2" --evaluate --init tiny/checkpoint.safetensors --data bytes:text --json --eval-metrics classes \
        --metrics "$2.metrics" || fail "$2: $(cat err)"
    python3 - "$2.metrics" <<'END' || fail "$2: other hits than the network's"
import json, struct, sys
data = open("tiny/checkpoint.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
def tensor(name):
    first, end = head[name]["data_offsets"]
    return struct.unpack("<%df" % ((end - first) // 4), data[8 + n + first:8 + n + end])
table, weight, bias = tensor("embed.weight"), tensor("head.weight"), tensor("head.bias")
text, seen = open("text", "rb").read(), {}
for at in range(12 * 8):
    x = table[text[at] * 8:text[at] * 8 + 8]
    y = [b + sum(w * v for w, v in zip(weight[i * 8:i * 8 + 8], x)) for i, b in enumerate(bias)]
    label = text[at + 1]
    ahead = sum(v > y[label] for v in y)
    of = seen.setdefault(label, [0, 0, 0])
    for i, hit in enumerate((True, ahead < 1, ahead < 5)):
        of[i] += hit
o, line = json.load(open("out")), json.loads(open(sys.argv[1]).read())
every = [sum(of[i] for of in seen.values()) for i in range(3)]
assert every[0] == 96 and every[1] < every[2] < 96, every
assert abs(o["top5"] - every[2] / 96) < 1e-9 and abs(o["top1"] - every[1] / 96) < 1e-9, (o["top5"], every)
for c in range(256):
    of = seen.get(c, [0, 0, 0])
    assert o["class_labels"][c] == of[0], c
    for key, hits in (("class_top1", of[1]), ("class_top5", of[2])):
        assert o[key][c] is None if of[0] == 0 else abs(o[key][c] - hits / of[0]) < 1e-9, (key, c, o[key][c], of)
assert line["test_top5"] == o["top5"] and line["test_class_top1"] == o["class_top1"], line
END
done
ranks 1 run plan.json --evaluate --data synthetic --init weights.safetensors --eval-metrics classes || fail "classes: $(cat err)"
grep -qE '^loss [0-9.]+, accuracy [0-9.]+, top-5 [0-9.]+ on' out && grep -qE '^ +9 +[0-9]+ +[0-9.]+ +[0-9.]+$' out ||
    fail "classes: $(cat out)"

not_run 1 'no weights to evaluate.*give --init FILE' 1 --evaluate --data synthetic
not_run 2 'needs the samples to evaluate; give the --data of the training, or --data synthetic' 1 --evaluate --init random
not_run 2 '--evaluate trains nothing, and --lr is of a training' 1 --evaluate --data synthetic --init weights.safetensors --lr 0.1
not_run 2 '--evaluate trains nothing, and --steps is' 1 --evaluate --data synthetic --init weights.safetensors --steps 3
not_run 2 'give --init kept/checkpoint.safetensors in place of' 1 --evaluate --checkpoint kept --resume

# ---- early stopping: with a rate of 0 nothing ever becomes better ----

for way in "1 plan.json" "2 stages.json"; do
    set -- $way
    ranks "$1" run "$2" --steps 40 --lr 0 --eval-every 2 --patience 3 --checkpoint early --overwrite --metrics early.metrics ||
        fail "patience: $(cat err)"
    grep -q "ended early, after 8 of 40 steps: no evaluation since step 2 had a test loss below" err || fail "patience: $(cat err)"
    [ "$(grep -c test_loss early.metrics)" = 4 ] || fail "patience: $(grep test_loss early.metrics)"
    "$GHP_BIN/ghp-inspect" early >out 2>err; grep -qE '\b8\b' out || fail "no checkpoint of the early end: $(cat out)"
done
# the same of workers that wait for nobody
plan --workers 2 --strategy data --sync asp --servers 1 -o asp.json
ranks 3 run asp.json --steps 40 --lr 0 --eval-every 4 --patience 2 --checkpoint early --overwrite || fail "asp: $(cat err)"
grep -qE "ended early, after [0-9]+ of 40 steps: no evaluation since step [0-9]+ had" err || fail "asp: $(cat err)"
ranks 1 run plan.json --steps 12 --lr 0.01 --eval-every 2 --patience 3 || fail "patience: $(cat err)"
grep -q 'ended early' err && fail "a training that becomes better ends early: $(cat err)"
not_run 1 'goes by the test loss, and nothing is evaluated; give --eval on' 1 --patience 2 --eval off
[ $failures -eq 0 ]
