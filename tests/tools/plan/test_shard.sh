#!/usr/bin/env bash
# ghp-test: timeout=60 label=script needs=ghp-plan,ghp-inspect
# tests/tools/plan/test_shard.sh - what --shard plans has the kinds that it names, and is sound for ghp-inspect. What cannot
# be sharded is refused by name, and what the message says instead plans.
set -u
. "$(dirname "$0")/../scratch.sh"
lenet=$GHP_SOURCE/models/lenet5.json
small=$GHP_SOURCE/models/small-resnet.json
tied=$GHP_SOURCE/tests/executor/tied.json
plan() { "$GHP_BIN/ghp-plan" "$@" --machine h100-sxm-8 --batch 8 --no-break-even --time-limit 1 -o plan.json >out 2>err; }
plans() { plan "$@" || fail "$*: $(cat err)"; }
refuses() { # refuses TEXT ARGUMENT...
    local text=$1
    shift
    plan "$@" && fail "$*: planned"
    grep -qF "$text" err || fail "$*: no '$text' in: $(cat err)"
}
kinds() { # kinds KIND...: of the layers that are sharded
    holds plan.json "{i.get('shard') for i in o['splits']} - {None} == set('$*'.split())" || fail "not '$*'"
}

for kind in gradients step pass; do
    plans "$lenet" --workers 2 --shard $kind --strategy data # else a plan without replicas may be the fastest
    kinds $kind
    "$GHP_BIN/ghp-inspect" plan.json --verify >/dev/null || fail "$kind: not sound"
done
plans "$lenet" --workers 2 --shard fsdp --strategy data # other libraries' words
kinds pass
plans "$lenet" --workers 2 --shard zero2 --strategy data
kinds gradients
plans "$lenet" --workers 2 --shard pass --strategy model
kinds
grep -q '^# not sharded: .*; --strategy data shards them$' out || fail "it is not said that nothing is sharded: $(cat out)"
plans "$lenet" --workers 2 --shard none
kinds
grep -q 'sharded (' out && fail "a row of what was not asked for: $(cat out)"

# next to data parallelism stands what FSDP does with every module, and each row says what it shards
plans "$lenet" --workers 2 --shard auto
grep -q '^data, parameters sharded (FSDP)' out || fail "no row of FSDP: $(cat out)"
"$GHP_BIN/ghp-inspect" plan.json >shown || fail "not shown"
grep -q 'data, parameters sharded (FSDP)' shown || fail "FSDP is not shown: $(cat shown)"
plans "$lenet" --workers 2 --shard gradients --force '*=data'
grep -q '^data, gradients sharded (ZeRO-2)' out || fail "no row of ZeRO-2: $(cat out)"

plans "$lenet" --workers 2 --strategy data --shard gradients
[ "$(grep -c '^data, gradients sharded (ZeRO-2)' out)" = 1 ] || fail "the plan's own row does not say its shards: $(cat out)"

# no parameters; frozen; batch norm; no two workers with the same; not offered
one=("$lenet" --workers 2 --shard auto)
refuses "'relu1' has no parameters to shard by 'pass'; leave its \"shard\" or '+pass' out" \
    "${one[@]}" --force 'relu1=data+pass'
plans "${one[@]}" --force 'relu1=data'
refuses "'fc1' is frozen" "${one[@]}" --freeze fc1 --force 'fc1=data+step'
plans "${one[@]}" --freeze fc1 --force 'fc1=data'
refuses "'bn1' takes statistics of a batch" "$small" --workers 2 --shard auto --force 'bn1=data+pass'
plans "$small" --workers 2 --shard auto --force 'bn1=data'
refuses "no two workers hold the same parameters of layer 'fc1'" "${one[@]}" --force 'fc1=out:2+pass'
plans "${one[@]}" --force 'fc1=data+pass'
plans "${one[@]}" --force 'fc1=out:2'
refuses '4 workers are not groups of 3 to shard parameters within; use --shard-within 2' "$lenet" --workers 4 --shard pass --shard-within 3
refuses 'add --shard auto, or --sync sharded' "$lenet" --workers 4 --shard-within 2
refuses 'give --sync allreduce, and leave --shard out' "$lenet" --workers 2 --reduce-precision bf16 --shard pass
refuses 'give --sync allreduce, and leave --shard out' "$lenet" --workers 2 --reduce-precision bf16 --sync bsp
plans "$lenet" --workers 2 --reduce-precision bf16 --sync allreduce
refuses "give --shard pass or auto" "$lenet" --workers 2 --force 'fc1=data+pass'
plans "$lenet" --workers 2 --force 'fc1=data+pass' --shard pass

# parameters that two stages share; a schedule that defers weight gradients; other synchronisers
two=("$tied" --workers 4 --micro-batches 2 --shard auto --force 'embed=data+pass,out=data+pass')
refuses "'embed' shares its parameters with another stage" "${two[@]}" --stages 2,out:2
plans "${two[@]}" # both in one stage
chunks=("$tied" --workers 4 --micro-batches 2 --shard auto)
refuses "two chunks of a stage have the parameters of layer 'embed'" "${chunks[@]}" --stages 2,up:2,norm,loss \
    --force 'embed=data+pass,out=data+pass'
plans "${chunks[@]}" --stages 2,up:2,norm,loss --force 'embed=data+step,out=data+step'
staged=("$lenet" --workers 4 --stages 2,fc1:2 --micro-batches 2 --force 'fc1=data+pass')
refuses "use --pipeline-schedule 1f1b, or --shard none" "${staged[@]}" --shard pass --pipeline-schedule zb-h1
plans "${staged[@]}" --shard pass --pipeline-schedule 1f1b
"$GHP_BIN/ghp-inspect" plan.json --verify >/dev/null || fail "stages with shards: not sound"

# another solver's optimum of the program with shardings holds against the certificate
plans "$lenet" --workers 2 --shard auto --write-mps plan.mps
"$GHP_BIN/ghp-inspect" plan.json --verify >/dev/null || fail "auto: not sound"
if command -v glpsol >/dev/null; then
    "$GHP_BIN/ghp-inspect" plan.json --check-with glpk --solver-limit 5 >said 2>&1
    case $? in 0 | 3) ;; *) fail "--check-with: $(cat said)" ;; esac # 3: constraints alone prove less
fi
for sync in bsp local:4; do
    refuses "use --shard none, or --sync allreduce or sharded" "$lenet" --workers 2 --shard pass --sync $sync
    plans "$lenet" --workers 2 --shard none --sync $sync
done
for sync in allreduce sharded; do
    plans "$lenet" --workers 2 --shard pass --sync $sync --strategy data
    kinds pass
done
[ $failures -eq 0 ]
