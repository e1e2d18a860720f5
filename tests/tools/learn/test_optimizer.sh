#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,python3
# tests/tools/learn/test_optimizer.sh - optimizers from the command line: the plan knows its optimizer and what memory
# it takes, the run takes it from there, clips and follows schedules, says what it refuses, and is resumed with all
# moments. Scales of batch norms that are fixed stay as they are, however weights are updated. In short tests
# executor/engine/worker/update stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

run() { ranks "$1" run "${@:2}"; }
plan() { "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$1" --batch 24 -o "${@:2}" >out 2>err; }
says() { grep -qe "$2" "$1" || { fail "$1 lacks '$2':"; head -20 "$1" >&2; }; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "${2:-out}"; }
refused() { # refused STATUS TEXT COMMAND...
    "${@:3}"
    [ $? = "$1" ] || fail "${*:3}: does not exit $1"
    says err "$2"
}

analytic "$model" profile.json

# ---- the plan: one more tensor of the weights' size than sgd, half of two on two workers that share the update ----
plan 2 sgd.json --strategy data --sync allreduce || fail "planning for sgd: $(cat err)"
plan 2 adamw.json --strategy data --sync allreduce --optimizer adamw || fail "planning for adamw: $(cat err)"
says out 'optimizer adamw'
grep -q '"optimizer"' sgd.json && fail "a plan for sgd names it"
plan 2 shards.json --strategy data --sync sharded --optimizer adamw || fail "planning a sharded update: $(cat err)"
peak() { value peak_bytes "$1" | head -1; }
state=$(($(peak adamw.json) - $(peak sgd.json)))
saved=$(($(peak adamw.json) - $(peak shards.json)))
weights=$((61706 * 4)) # lenet5's parameters
[ "$state" -ge "$weights" ] && [ "$state" -lt $((weights + 1024)) ] || fail "adamw takes $state bytes more than sgd"
[ "$saved" -gt $((weights * 99 / 100)) ] || fail "a sharded update saves $saved bytes"
"$GHP_BIN/ghp-inspect" adamw.json >out 2>err || fail "ghp-inspect: $(cat err)"
says out 'optimizer adamw'
"$GHP_BIN/ghp-inspect" adamw.json --verify >out 2>err || fail "ghp-inspect --verify: $(cat err)"
"$GHP_BIN/ghp-inspect" sgd.json adamw.json >out 2>err || fail "ghp-inspect of two plans: $(cat err)"
says out 'optimizer'

# ---- the run ----
# verified NAME STEPS: its plan trains like one worker, in the memory that was predicted
verified() {
    run 2 "$1.json" --verify "$2" --precision double --json || fail "$1: --verify exits $?: $(tail -1 err)"
    says out '"verified": true'
    [ "$(value peak_bytes)" = "$(value allocated_bytes)" ] || fail "$1: predicted and allocated bytes differ"
}
for p in adamw shards; do
    verified $p 4
done
# in float, where e_w's limit would let a layer pass that is never updated
run 2 adamw.json --verify 3 --json || fail "adamw in float: --verify exits $?: $(tail -1 err)"
says out '"verified": true'
refused 1 '' run 2 adamw.json --verify 3 --inject-fault skip-update --json
says out '"verdict": "defect"'
awk -v e="$(value max_relative_difference)" 'BEGIN { exit !(e > 0 && e < 1) }' || fail "e_w is beyond its limit"
plan 2 pass.json --optimizer adamw --strategy data --shard pass || fail "planning shards: $(cat err)"
plan 3 three.json --optimizer adamw --strategy data --shard step || fail "planning three shards: $(cat err)"
plan 3 other.json --optimizer adamw --strategy model || fail "planning for three: $(cat err)"
options=(--precision double --numerics exact --json --lr 0.002 --beta1 0.8 --beta2 0.99 --epsilon 1e-6
    --weight-decay 0.1)
run 2 adamw.json --steps 8 "${options[@]}" || fail "the whole run"
whole=$(value final_loss)
# two workers with sharded parameters make a checkpoint, which three with other shards, and by model, take up
run 2 pass.json --steps 3 "${options[@]}" --checkpoint kept || fail "first part: $(tail -1 err)"
cp -r kept three
run 3 three.json --steps 8 "${options[@]}" --checkpoint three --resume || fail "three shards: $(tail -1 err)"
three=$(value final_loss)
awk -v a="$whole" -v b="$three" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-10 && d > -1e-10) }' ||
    fail "resumed loss over three shards $three, uninterrupted $whole"
run 3 other.json --steps 8 "${options[@]}" --checkpoint kept --resume || fail "second part: $(tail -1 err)"
awk -v a="$whole" -v b="$(value final_loss)" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-10 && d > -1e-10) }' ||
    fail "resumed loss $(value final_loss), uninterrupted $whole"

# ---- clipped: the plan knows that updates wait for the norm; the run may change the norm ----
plan 2 clipped.json --strategy data --optimizer adamw --clip-norm 0.5 || fail "planning to clip: $(cat err)"
says out 'clipped to the norm 0.5'
"$GHP_BIN/ghp-inspect" clipped.json --verify >out 2>err || fail "ghp-inspect --verify of a plan that clips: $(cat err)"
run 2 clipped.json --verify 3 --precision double || fail "clipped: --verify exits $?: $(tail -1 err)"
run 2 clipped.json --steps 4 --json --metrics metrics.jsonl || fail "clipped: exits $?: $(tail -1 err)"
[ "$(value peak_bytes)" = "$(value allocated_bytes)" ] || fail "clipped: predicted and allocated bytes differ"
[ "$(grep -c '"gradient_norm":[0-9.]*[1-9]' metrics.jsonl)" = 4 ] || fail "the metrics lack norms: $(cat metrics.jsonl)"
run 2 clipped.json --steps 1 --clip-norm 2 || fail "another norm is refused: $(tail -1 err)"

# ---- schedules ----
run 2 clipped.json --steps 6 --metrics rates.jsonl --lr 0.004 --lr-min 0.001 --lr-schedule wsd --warmup-steps 2 \
    --decay-steps 3 || fail "wsd exits $?: $(tail -1 err)"
rates=$(sed 's/.*"learning_rate":\([0-9.]*\).*/\1/' rates.jsonl | tr '\n' ' ')
[ "$rates" = "0.002 0.004 0.004 0.004 0.003 0.002 " ] || fail "wsd's rates are $rates"

# ---- gradients added up over micro-batches, without stages ----
plan 2 parts.json --force '*=data' --micro-batches 3 --optimizer adamw --clip-norm 0.5 ||
    fail "micro-batches: $(cat err)"
run 2 parts.json --verify 3 --precision double || fail "micro-batches: --verify exits $?: $(tail -1 err)"

# ---- learning rates that follow the batch ----
for scaling in linear lars lamb adascale lena; do
    of=sgd
    [ $scaling = lamb ] && of=adamw
    plan 2 $scaling.json --lr-scaling $scaling --optimizer $of || fail "$scaling: planning: $(cat err)"
    says out "learning rates by $scaling"
    "$GHP_BIN/ghp-inspect" $scaling.json --verify >out 2>err || fail "$scaling: ghp-inspect --verify: $(cat err)"
    verified $scaling 3
done
run 2 linear.json --steps 2 --metrics rates.jsonl --overwrite --lr 0.004 || fail "linear exits $?: $(tail -1 err)"
says rates.jsonl '"learning_rate":0.008'
options=(--precision double --numerics exact --json --lr 0.01 --lr-schedule exponential)
run 2 lena.json --steps 6 "${options[@]}" || fail "lena: the whole run"
whole=$(value final_loss)
run 2 lena.json --steps 6 "${options[@]}" --checkpoint gains --checkpoint-every 3 ||
    fail "lena: with checkpoints: $(tail -1 err)"
"$GHP_BIN/ghp-inspect" gains >out 2>err || fail "lena: ghp-inspect: $(cat err)"
says out "this optimizer and --lr-scaling lena"
mv gains/checkpoint.previous.safetensors gains/checkpoint.safetensors
run 2 lena.json --steps 6 "${options[@]}" --checkpoint gains --resume || fail "lena: second part: $(tail -1 err)"
[ "$(value final_loss)" = "$whole" ] || fail "lena: resumed loss $(value final_loss), uninterrupted $whole"
refused 1 "by --lr-scaling lena" run 2 sgd.json --steps 9 --checkpoint gains --resume
refused 1 "defined for the optimizer adamw" plan 2 none.json --lr-scaling lamb
refused 2 "lr-scaling" plan 2 none.json --lr-scaling lenna
refused 1 "clip-norm" plan 2 none.json --lr-scaling lars --clip-norm 1
refused 1 "no worker has the sum" plan 2 none.json --lr-scaling lena --sync local:4

# ---- batch norms that are fixed: weight decay does not reach them, nor do servers or shards of the update ----
model=fixed.json
sed 's/"op": "batch_norm"/&, "fixed": true/' "$GHP_SOURCE/models/small-resnet.json" >$model
analytic "$model" profile.json
for way in "2 sharded" "2 allreduce" "3 bsp --servers 1" "3 easgd:2 --servers 1"; do
    # shellcheck disable=SC2086
    plan 2 norms.json --strategy data --sync ${way#* } || { fail "fixed, $way: $(tail -1 err)"; continue; }
    run "${way%% *}" norms.json --steps 3 --eval off --weight-decay 0.1 --checkpoint norms ||
        { fail "fixed, $way: $(tail -1 err)"; continue; }
    python3 - <<'PYTHON' || fail "fixed, $way: norms were trained"
import json, struct, sys
data = open("norms/checkpoint.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
seen = 0
for name, about in json.loads(data[8:8 + n]).items():
    if "bn" not in name or name.startswith(("momentum.", "replica.")) or not name.endswith((".weight", ".bias")):
        continue
    first, end = about["data_offsets"]
    values = struct.unpack("<%df" % ((end - first) // 4), data[8 + n + first:8 + n + end])
    seen += 1
    if set(values) != {1.0 if name.endswith(".weight") else 0.0}:
        sys.exit(f"{name} is {values[:3]}")
sys.exit(seen < 2 * open("fixed.json").read().count('"fixed"'))
PYTHON
    rm -rf norms
done

# ---- refusals ----
refused 2 "plan with ghp-plan --clip-norm 0.5" run 2 adamw.json --steps 1 --clip-norm 0.5
refused 2 "clip-norm" plan 2 none.json --clip-norm 0
refused 2 "give --decay-steps" run 2 adamw.json --steps 4 --lr-schedule wsd
refused 2 "use at most 3" run 2 adamw.json --steps 4 --lr-schedule wsd --warmup-steps 1 --decay-steps 4
refused 2 "lr-min is for schedules that decay" run 2 adamw.json --steps 4 --lr-min 0.0001
refused 2 "plan with ghp-plan --optimizer sgd" run 2 adamw.json --steps 1 --optimizer sgd
refused 2 "is of the optimizer sgd" run 2 adamw.json --steps 1 --momentum 0.5
refused 2 "is of the optimizer adamw" run 2 sgd.json --steps 1 --beta2 0.5
refused 2 "beta1" run 2 adamw.json --steps 1 --beta1 1
refused 2 "optimizer" plan 2 none.json --optimizer adagrad
refused 1 "by the optimizer 'adamw'" run 2 sgd.json --steps 9 --checkpoint kept --resume
run 2 adamw.json --steps 1 --optimizer adamw || fail "the plan's own optimizer is refused: $(tail -1 err)"
run 2 sgd.json --steps 1 --init kept/checkpoint.safetensors || fail "weights of another optimizer's run: $(tail -1 err)"
sed 's/"optimizer": "adamw"/"optimizer": "adagrad"/' adamw.json >bad.json
refused 1 "optimizer" run 2 bad.json --steps 1

[ "$failures" = 0 ] && echo "optimizers are what plans and runs say"
exit $((failures > 0))
