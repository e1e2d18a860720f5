#!/usr/bin/env bash
# ghp-test: timeout=180 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/learn/test_push.sh - --sync sgp trains like one process that trains all replicas in turn, says --verify,
# which sees a left-out push; by overlap it is refused, but of one worker. The report says what was sent: all weights
# and 4 bytes a step. A resumed run has the bits of one that was not interrupted, and by another synchroniser is
# refused. What cannot be is refused. In short tests executor/mixing/mix_push stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

plan() { # plan WORKERS SYNC
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$1" --batch 12 --sync "$2" -o plan.json >out 2>err ||
        fail "$2: $(cat err)"
}

run() { ranks "$1" run plan.json --lr 0.01 "${@:2}"; } # run RANKS OPTIONS...

hash() { sed -n 's/^ *"weights_hash": "\(.*\)",*$/\1/p' run.json; }

"$GHP_BIN/ghp-profile" --analytic F=1e10,bandwidth=1e9,latency=1e-5 --model "$model" -o profile.json 2>/dev/null

plan 3 sgp
run 3 --verify 4 || fail "sgp is not what replicas make in turn: $(head -n 3 err) $(grep -i fail out)"
run 3 --verify 4 --inject-fault drop-reduction && fail "--verify does not see a left-out push"
plan 1 sgp-overlap:2
run 1 --verify 4 || fail "one worker by sgp-overlap is not SGD: $(head -n 3 err) $(grep -i fail out)"
plan 2 sgp-overlap:1
not_run 2 'messages come first' 2 --verify 4
not_run 1 'compare plans without' 2 plan.json --compare 4

for sync in sgp sgp-overlap:1; do
    rm -rf kept
    plan 3 $sync
    run 3 --numerics exact --steps 12 --checkpoint kept --checkpoint-every 6 --run run.json ||
        fail "$sync: $(head -n 3 err)"
    want=$(hash)
    [ "$(sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' run.json | head -n 1)" = $((12 * (4 * 61760 + 4))) ] ||
        fail "$sync: the run file does not say what was sent: $(grep -A5 mixing run.json)"
    rm -rf kept
    run 3 --numerics exact --steps 6 --checkpoint kept --run run.json || fail "$sync: $(head -n 3 err)"
    run 3 --numerics exact --steps 12 --checkpoint kept --resume --run run.json ||
        fail "$sync, resumed: $(head -n 3 err)"
    [ -n "$want" ] && [ "$(hash)" = "$want" ] || fail "$sync, resumed: other weights than an uninterrupted run"
done
plan 3 sgp
not_run 1 'is of a training with sgp-overlap:1 on 3 worker' 3 --lr 0.01 --steps 30 --checkpoint kept --resume

not_planned 2 'wants TAU steps, 1 to' 2 8 --sync sgp-overlap:0
not_planned 2 'takes no argument' 2 8 --sync sgp:2
not_planned 2 'there are none' 2 8 --sync sgp --servers 1
not_planned 2 'every layer by data' 2 8 --sync sgp --strategy model
not_planned 1 'clip' 2 8 --sync sgp --clip-norm 1
not_planned 1 'micro-batches' 2 8 --sync sgp --micro-batches 2
[ $failures -eq 0 ]
