#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi processors=2 needs=ghp-plan,ghp-profile,ghp-run,ghp-train
# tests/tools/plan/test_batch_norm.sh - --batch-norm gives all batch norms of a network other statistics, which the plan
# has and ghp-run trains by. For a network with statistics of the global batch the table has a row of data parallelism
# with local ones too, which is what that option plans. In short tests core/model/statistics stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/small-resnet.json
analytic "$model" law.json F=6e12,bandwidth=1.25e9,latency=20e-6
small=("$model" --profile law.json --workers 2 --batch 24 --no-break-even)
plan() { "$GHP_BIN/ghp-plan" "${small[@]}" "$@" >out 2>err || fail "$*: $(cat err)"; }
statistics() { # statistics FILE TEXT: all batch norms of a plan have these
    holds "$1" "{i.get('statistics', 'global') for i in o['model']['layers'] if i['op'] == 'batch_norm'} == {'$2'}" ||
        fail "$1: not '$2'"
}
step() { sed -n "s/^$1  *\([0-9.]*\) .*/\1/p" out; }

plan -o global.json --strategy data --sync allreduce
statistics global.json global
own=$(step 'data, local statistics')
[ -n "$own" ] || fail "no row with local statistics: $(cat out)"
[ "$own" != "$(step data)" ] || fail "statistics of the global batch cost nothing"
grep -q "^# faster: data parallelism whose batch norms take .* $own ms; plan with --batch-norm local" out ||
    fail "the faster row is not named: $(cat out)"
"$GHP_BIN/ghp-inspect" global.json --verify >/dev/null || fail "the plan does not verify"
plan -o local.json --strategy data --sync allreduce --batch-norm local
statistics local.json local
[ "$(step data)" = "$own" ] || fail "the row says $own, and the plan takes $(step data)"
grep -q "^# batch norms take the statistics of each worker's own samples" out || fail "the table does not say so"
grep -q 'local statistics\|^# faster' out && fail "a row of what the plan is itself"
plan -o six.json --batch-norm 6
statistics six.json local:6
grep -q '^# batch norms take the statistics of each 6 samples' out || fail "the table does not say so"

# what the network's file says is replaced, and given back
sed 's/"op": *"batch_norm"/&, "statistics": "local"/' "$model" >own.json
small[0]=own.json
plan -o as-given.json
statistics as-given.json local
plan -o again.json --batch-norm global
cmp -s <(grep '"model_hash"' again.json) <(grep '"model_hash"' global.json) || fail "another network than without"
small[0]=$model

# the plan's network is still that file's
ranks 2 run local.json --model "$model" --numerics exact --threads 1 --verify 2 || fail "ghp-run: $(cat err)"
grep -q '^PASS' out || fail "does not train like one worker: $(tail -n 2 out)"
denied 1 'was made for another model' mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" local.json \
    --model "$GHP_SOURCE/models/lenet5.json"

# ghp-train passes it on, to what measures too
"$GHP_BIN/ghp-train" "$model" --workers 2 --batch 8 --budget 2 --plan-only --folder trained --batch-norm local \
    >out 2>err || fail "ghp-train: $(cat err)"
statistics trained/plan.json local

# what cannot be
for wrong in 0 mine local:6 -2 99999999999; do
    denied 2 "cannot read '$wrong'; give local, global, or the number" "$GHP_BIN/ghp-plan" "${small[@]}" \
        --batch-norm="$wrong"
done
denied 3 "'bn1'.* statistics of each 5 samples do not fit workers of 12 samples" "$GHP_BIN/ghp-plan" "${small[@]}" \
    --batch-norm 5
denied 2 "'.*vgg16.json' has no batch norm; leave it out" "$GHP_BIN/ghp-plan" "$GHP_SOURCE/models/vgg16.json" \
    --profile law.json --workers 2 --batch 24 --batch-norm local
denied 1 'leave --batch-norm and .statistics. out' "$GHP_BIN/ghp-plan" "${small[@]}" --batch-norm local --sync bsp

[ $failures -eq 0 ]
