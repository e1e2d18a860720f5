#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/run/test_local_statistics.sh - batch norms over each worker's own samples ("statistics": "local") train
# on several workers as one worker does with ghost batches of as many samples, whose bits "local:S" gives too. Replicas
# hold the same running statistics; checkpoints and evaluations have them under any plan. In short tests
# core/model/statistics and executor/train/equality stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"

norms() { sed "s/\"op\": *\"batch_norm\"/&, \"statistics\": \"$1\"/" "$GHP_SOURCE/models/small-resnet.json" >"$2"; }
plan() { # plan FILE WORKERS OPTIONS...: of $model, which has a profile for any number of workers
    "$GHP_BIN/ghp-plan" "$PWD/$model.json" --profile "$model.$2.profile" --workers "$2" --batch 12 -o "$1" "${@:3}" \
        >out 2>err || fail "$model, $*: $(cat err)"
}
run() { # run WORKERS PLAN OPTIONS...
    ranks "$1" run "$2" --numerics exact --threads 1 --watchdog 600 "${@:3}" || fail "$*: $(head -n 3 err)"
}
verify() { # verify WORKERS OPTIONS...: what is planned like that is equal to one worker
    plan plan.json "$@"
    run "$1" plan.json --verify 3
    grep -q '^PASS' out || fail "$model, $*: $(tail -n 2 out)"
    grep -q 'replicas hold the same bits' out || fail "$model, $*: replicas differ"
}
# near A B: but for the order of sums in six steps, which e_w of --verify limits to 1e-5
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !((a - b) ^ 2 <= (1e-4 * b) ^ 2) }'; }
hash() { sed -n 's/^ *"weights_hash": "\(.*\)",*$/\1/p' out; }

norms local own.json
norms local:4 four.json
norms local:6 six.json
for model in own four six; do
    for workers in 1 2 3; do
        "$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --workers $workers --model $model.json \
            -o $model.$workers.profile >out 2>err || fail "$model: no profile: $(cat err)"
    done
done

model=own
verify 2 --strategy data
verify 3 --strategy data
verify 2 --strategy model
verify 2 --force bn1=full:2
verify 2 --force bn1=channel:2
verify 2 --strategy data --micro-batches 2
verify 3 --stages 2,b.conv1:1 --micro-batches 2
verify 2 --sync sharded
verify 2 --strategy data --lr-scaling adascale
plan plan.json 2 --sync asp --servers 1
run 3 plan.json --steps 2
denied 1 "'bn1' takes statistics of each worker's own samples, and by 'bsp' nobody adds them up" \
    "$GHP_BIN/ghp-plan" own.json --profile own.2.profile --workers 2 --batch 12 --sync bsp -o none.json
model=six
verify 2 # the search for break-even points meets batches that six samples do not divide
model=four
verify 3

# unequal shares train, but not as one worker can
model=own
plan plan.json 2 --set slow.worker=0 --set slow.factor=3
grep -q 'unequal shares' out || fail "a slow worker has as many samples"
run 2 plan.json --steps 2
not_run 1 "layer 'bn1' takes statistics of each worker's own samples.*--load-balance equal to verify" 2 --verify 2
plan plan.json 2 --set slow.worker=0 --set slow.factor=3 --load-balance equal
run 2 plan.json --verify 2

# the same bits as ghost batches; a training that continued from a checkpoint has them too
for workers in 2 3; do
    model=own
    plan own.plan $workers --strategy data
    run $workers own.plan --steps 6 --json --eval on --checkpoint own.$workers
    want=$(hash) loss=$(number test_loss out)
    { [ -n "$want" ] && [ -n "$loss" ]; } || fail "no hash or no test loss: $(cat out)"
    model=$([ $workers = 2 ] && echo six || echo four)
    plan ghosts.plan $workers --strategy data
    run $workers ghosts.plan --steps 6 --json --eval on
    [ "$(hash)" = "$want" ] || fail "$workers workers: other weights than by ghost batches"
    [ "$(number test_loss out)" = "$loss" ] || fail "$workers workers: another test loss than by ghost batches"
    plan alone.plan 1
    run 1 alone.plan --steps 6 --json --eval on
    near "$(number test_loss out)" "$loss" || fail "$workers workers: another test loss than one worker's"
    run $workers own.plan --steps 3 --checkpoint half.$workers
    run $workers own.plan --steps 6 --json --eval on --checkpoint half.$workers --resume
    [ "$(hash)" = "$want" ] || fail "$workers workers: other weights after a resume"
    [ "$(number test_loss out)" = "$loss" ] || fail "$workers workers: another test loss after a resume"
done

[ $failures -eq 0 ]
