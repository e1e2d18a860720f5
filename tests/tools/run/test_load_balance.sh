#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/run/test_load_balance.sh - what the planner chooses for slow workers and for little memory, through the
# tools: a worker that is slowed in thought gets fewer samples, and with them trains like one worker; in less memory
# than all layers need some are made again, in just the bytes that were predicted; both plans hold, are shown and
# explained, and can be refused. In short tests planner/pipeline/load_balance stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile ${profile:-profile.json} "$@" -o plan.json >out 2>err ||
        fail "plan $*: $(head -n 2 err)"
}

# trains NAME WORKERS: ten steps in double equal one worker's, in the memory that was predicted
trains() {
    ranks "$2" run plan.json --verify 10 --lr 0.01 --json --watchdog 200 --backend reference --precision double ||
        fail "$1 does not train like one worker: $(head -n 3 err)"
    [ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] || fail "$1: allocated is not predicted memory"
    echo "$1: e_w $(number max_relative_difference out), e_g $(number max_relative_gradient_difference out)"
}

# sound NAME: the plan holds, and can be shown
sound() {
    local inspect=("$GHP_BIN/ghp-inspect" plan.json)
    "${inspect[@]}" --verify --profile profile.json >out 2>err || fail "$1 is not sound: $(head -n 2 err)"
    "${inspect[@]}" --explain >out 2>err || fail "$1 cannot be explained: $(head -n 2 err)"
    "${inspect[@]}" --html page.html --trace trace.json >out 2>err || fail "$1 cannot be drawn: $(head -n 2 err)"
    "${inspect[@]}" >out 2>err || fail "$1 cannot be shown: $(head -n 2 err)"
}

analytic "$model" profile.json F=1e10,bandwidth=1e11,latency=1e-7

# a slow worker
slow=(--workers 3 --batch 60 --set slow.worker=1 --set slow.factor=2)
plan "${slow[@]}" --load-balance equal
grep -q '"samples_per_worker"' plan.json && fail "equal shares are listed"
grep -q 'shares are equal, though workers are up to 2 times as fast' out || fail "it is not said that workers differ"
equal=$(number predicted_step_s plan.json)
plan "${slow[@]}"
grep -q '24 on worker 0 (speed 2), 12 on worker 1 (speed 1), 24 on worker 2 (speed 2)' out ||
    fail "not the shares: $(grep samples out)"
awk -v a="$(number predicted_step_s plan.json)" -v b="$equal" 'BEGIN { exit !(a * 1.3 < b) }' ||
    fail "unequal shares gain too little"
sound "the uneven plan"
grep -q '24 on worker 0' out || fail "the shares are not shown"
trains "the uneven plan" 3
plan --workers 3 --batch 60
grep -q '"samples_per_worker"' plan.json && fail "workers that are alike have shares of their own"

# a profile that has speeds, and one that cannot be
sed 's/^\( *\)"rates"/\1"worker_speed": [1, 2.0],\n&/' profile.json >speeds.json
"$GHP_BIN/ghp-inspect" speeds.json >out 2>err || fail "a profile with speeds cannot be shown: $(head -n 2 err)"
profile=speeds.json plan --workers 2 --batch 60
grep -q '20 on worker 0 (speed 1), 40 on worker 1 (speed 2)' out || fail "not the shares: $(grep samples out)"
sed 's/"worker_speed": \[1, 2.0\]/"worker_speed": [2, 3]/' speeds.json >wrong.json
"$GHP_BIN/ghp-inspect" wrong.json >out 2>err && fail "speeds without a slowest worker are read"
grep -q 'divide all by 2' err || fail "it is not said what would do: $(cat err)"

# little memory: one worker has no other way; six equal layers in a row
{
    printf '{"format": "ghp.model/1", "name": "chain", "input": {"channels": 3, "height": 12, "width": 12}, "layers": ['
    for i in 1 2 3 4 5 6; do
        printf '{"name": "c%d", "op": "conv2d", "channels": 8, "kernel": 3, "pad": 1},' $i
        printf '{"name": "r%d", "op": "relu"},' $i
    done
    printf '{"name": "f", "op": "flatten"}, {"name": "l", "op": "linear", "features": 10}, '
    printf '{"name": "loss", "op": "softmax_cross_entropy"}]}\n'
} >chain.json
model=chain.json
analytic chain.json profile.json F=1e11,bandwidth=1e9,latency=2e-5
plan --workers 1 --batch 64
bytes=$(number peak_bytes plan.json)
limit=$((bytes * 8 / 10))
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 64 --memory $limit --recompute never >out 2>err
[ $? = 3 ] || fail "less memory than all layers need is not refused"
grep -q "give --memory $bytes" err || fail "the least memory is not named: $(cat err)"
plan --workers 1 --batch 64 --memory $limit
grep -q '"recompute": \[' plan.json || fail "no layer is made again"
[ "$(number peak_bytes plan.json)" -le $limit ] || fail "the plan does not fit"
sound "the plan in little memory"
trains "the plan in little memory" 1
[ $failures -eq 0 ]
