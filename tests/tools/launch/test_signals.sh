#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/launch/test_signals.sh - a signal ends a run in order: to one worker or to mpirun, while it trains or
# evaluates. All workers end after the same step, with a checkpoint and exit code 4, and the resumed run has the weights
# of an undisturbed one. A second SIGINT ends a worker at once. No thread that computes takes a signal. In short tests
# executor/train/stop stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
"$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model "$model" -o profile.json >out 2>&1 &&
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 3 --batch 12 --strategy data -o plan.json >out 2>&1 ||
    { cat out >&2; exit 1; }

cat >rank.sh <<'SH'
#!/bin/sh
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
SH
chmod +x rank.sh

# launch STEPS ARGS...: a run of three in the background, its mpirun's number in $job
launch() {
    rm -f pid.*
    mpirun --oversubscribe --bind-to none -n 3 ./rank.sh "$GHP_BIN/ghp-run" plan.json --steps "$1" --numerics exact \
        --threads 1 --json --checkpoint kept --watchdog 600 "${@:2}" >out 2>err </dev/null &
    job=$!
}
hash() { sed -n 's/^ *"weights_hash": "\(.*\)",*$/\1/p' out; }
said() { sed -n "s/.*ended after \([0-9]*\) of.*/\1/p" err; }

ended() { ! kill -0 "$1" 2>/dev/null; }

# ends CODE NAME: the run ends with this code
ends() {
    local got=0
    waits 60 ended $job || { fail "$2: does not end"; kill -9 $(cat pid.*); }
    wait $job || got=$?
    [ $got = "$1" ] || fail "$2: exit $got, not $1: $(head -c 2000 err)"
}

# takers PROCESS: how many of its threads take SIGTERM, SIGINT or SIGUSR1
takers() {
    local n=0 status
    for status in "/proc/$1/task/"*/status; do
        (((16#$(sed -n 's/^SigBlk:[^0-9a-f]*//p' "$status") & 0x4202) == 0x4202)) || n=$((n + 1))
    done
    echo $n
}

for case in 'TERM 1' 'INT 0' 'USR1 2' 'USR1 mpirun'; do
    signal=${case% *} to=${case#* }
    rm -rf kept metrics.jsonl
    launch 100000000 --metrics metrics.jsonl
    waits 60 lines 20 || fail "$case: does not train"
    [ "$(takers "$(cat pid.0)")" = 1 ] || fail "$case: $(takers "$(cat pid.0)") threads take signals"
    if [ "$to" = mpirun ]; then kill -$signal $job; else kill -$signal "$(cat pid.$to)"; fi
    ends 4 "$case"
    [ "$to" = mpirun ] || grep -q "ghp-run: SIG$signal at worker $to: ended after .*--resume continues" err ||
        fail "$case: says $(head -c 1000 err)"
    steps=$(said)
    [ "$(wc -l <metrics.jsonl)" = "$steps" ] || fail "$case: $(wc -l <metrics.jsonl) lines of metrics, $steps steps"
done

# the last one continues for 20 steps
launch $((steps + 20)) --metrics metrics.jsonl --resume
ends 0 'resuming'
resumed=$(hash)
rm -rf kept
launch $((steps + 20))
ends 0 'undisturbed'
[ -n "$resumed" ] && [ "$resumed" = "$(hash)" ] || fail "stopped and resumed: other weights than undisturbed"

# in an evaluation, which takes most of this run: it is left out, and the run ends all the same
rm -rf kept metrics.jsonl
launch 2 --metrics metrics.jsonl --eval on --backend reference
waits 60 lines 2 || fail "evaluation: does not train"
kill -TERM "$(cat pid.1)"
ends 4 'evaluation'
! grep -q test_loss metrics.jsonl || fail "the evaluation was over before the signal"
[ -e kept/checkpoint.safetensors ] || fail "evaluation: no checkpoint"
# the resumed run has no step left, and makes the evaluation; once
launch 2 --metrics metrics.jsonl --eval on --resume
ends 0 'the evaluation is made up for'
grep -q 'the last evaluation is left' err && grep -q 'test loss' err || fail "evaluation: says $(head -c 1000 err)"
launch 2 --metrics metrics.jsonl --eval on --resume
ends 0 'nothing is left'
grep -q 'nothing is left to train' err || fail "evaluation, twice: says $(head -c 1000 err)"
[ "$(grep -c test_loss metrics.jsonl)" = 1 ] || fail "evaluation: $(grep -c test_loss metrics.jsonl) lines"

# twice to a worker that is stopped meanwhile: it ends by the second, without a checkpoint
rm -rf kept metrics.jsonl
launch 100000000 --metrics metrics.jsonl
waits 60 lines 20 || fail "twice: does not train"
victim=$(cat pid.1)
kill -STOP "$(cat pid.2)" # now nobody comes to the next boundary
kill -INT "$victim"
sleep 0.2
kill -INT "$victim"
waits 20 ended "$victim" || fail "a second signal does not end the worker"
kill -CONT "$(cat pid.2)" 2>/dev/null
waits 60 ended $job || fail "twice: the run does not end"
wait $job && fail "twice: exit 0"
[ ! -e kept/checkpoint.safetensors ] || fail "twice: a checkpoint"
exit $((failures > 0))
