#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-launch
# tests/tools/launch/test_launch.sh - ghp-launch keeps a training going: a worker that is killed, mpirun that is
# killed, a worker that hangs, at random steps: it continues, and ends with the losses and weights of an undisturbed
# run, to the bit with as many workers, to rounding (of double) with one fewer, so no sample is left out or seen
# twice. It stops in order, gives up with a reason, for example if no checkpoint is sound, and leaves no process, even
# if it is killed itself. GHP_SEED repeats the steps. In short tests executor/launcher/restart and executor/launcher/job stand
# for it.
set -u
. "$(dirname "$0")/../scratch.sh"
RANDOM=${GHP_SEED:-$$}
echo "GHP_SEED=${GHP_SEED:-$$}"
model=$GHP_SOURCE/models/lenet5.json steps=240
"$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model "$model" -o profile.json >out 2>&1 || exit 1
for n in 4 3; do
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers $n --batch 12 --strategy data -o $n.json >out 2>&1 ||
        { cat out >&2; exit 1; }
done

# What takes mpirun's place: each worker leaves its process number, in pid.RANK and with all others in pids.
cat >mpi.sh <<'SH'
#!/bin/sh
shift
workers=$1
shift
exec mpirun --oversubscribe --bind-to none -n "$workers" ./rank.sh "$@"
SH
cat >rank.sh <<'SH'
#!/bin/sh
echo $$ >>pids
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
SH
chmod +x mpi.sh rank.sh
options=(--steps $steps --numerics exact --precision double --backend reference --threads 1 --lr 0.02 --json)

# launch ARGS... -- ARGS...: in the background; its number in $job
launch() {
    "$GHP_BIN/ghp-launch" --mpirun ./mpi.sh --checkpoint kept --pause 0.1 "$@" "${options[@]}" --metrics metrics.jsonl \
        --checkpoint-every "${every:-20}" --watchdog 6 >out 2>err </dev/null &
    job=$!
}
value() { sed -n "s/^ *\"weights_hash\": \"\(.*\)\",*\$/\1/p" "$1"; }
curve() { sed 's/"images_per_s":[^,]*,//' "$1"; }
losses() { sed 's/.*"loss":\([^,]*\),.*/\1/' "$1"; }
says() { grep -qE -e "$1" err || fail "$2 does not say '$1', but: $(head -c 3000 err)"; }
# the last line is its own, whatever mpirun adds
last() { tail -n 1 err | grep -qxE -e "ghp-launch: $1" || fail "$2 ends with: $(tail -n 1 err)"; }
none_left() { for pid in $(cat pids); do ! alive "$pid" || return 1; done; }
gone() { ! alive "$1"; }
attempts() { [ "$(wc -l <pids)" -ge $((4 * $1)) ]; }

# ends CODE NAME: ghp-launch ends with this code, and leaves nobody
ends() {
    local got=0
    waits 120 gone $job || { fail "$2: does not end"; kill -9 $job; }
    wait $job || got=$?
    [ $got = "$1" ] || fail "$2: exit $got, not $1: $(tail -c 3000 err)"
    waits 10 none_left || fail "$2: processes are left"
    [ ! -e kept/heartbeat ] || [ "$1" = 137 ] || fail "$2: the heartbeat is left"
}
anew() { rm -rf kept metrics.jsonl pid.* && : >pids; }

mpirun --oversubscribe --bind-to none -n 4 "$GHP_BIN/ghp-run" 4.json "${options[@]}" --metrics whole.jsonl \
    >whole 2>err ||
    { fail "the undisturbed run: $(cat err)"; exit 1; }
curve whole.jsonl >whole.curve
[ -n "$(value whole)" ] || fail "no weights_hash"

# three failures one after the other, each at a random step some checkpoints after the last
anew
launch 4.json 3.json --
for failure in 1 2 3; do
    waits 60 attempts $failure || fail "attempt $failure does not start: $(tail -c 2000 err)"
    at=$((60 * failure - 30 + RANDOM % 30))
    waits 60 lines $at || fail "failure $failure: step $at is not reached: $(tail -c 2000 err)"
    case $failure in
    1) kill -9 "$(cat pid.$((RANDOM % 4)))" ;;
    2) kill -9 "$(ps -o ppid= -p "$(cat pid.0)" | tr -d ' ')" ;;
    3) kill -STOP "$(cat pid.2)" ;;
    esac
done
ends 0 'three failures'
says '4 workers failed after [0-9]+ steps, with a checkpoint of [0-9]+: .*rank [0-3] .*signal 9' 'a killed worker'
says 'with a checkpoint of [0-9]+: mpi.sh ended by signal 9' 'a killed launcher'
says 'with a checkpoint of [0-9]+: worker [0-9] waited 6 s in .*rank\(s\) .*2' 'a worker that hangs'
[ "$(grep -c "4 workers continue with '4.json' from step" err)" = 3 ] || fail "not three restarts: $(grep ghp-launch err)"
[ "$(value out)" = "$(value whole)" ] || fail "other weights than undisturbed"
curve metrics.jsonl | cmp -s - whole.curve || fail "other losses than undisturbed: a sample was left out or seen twice"

"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 4 --batch 12 --strategy data --elastic 1 -o set.json \
    >out 2>&1 || fail "--elastic: $(cat out)"
# one worker fewer from then on, by a file of plans. Sums of another order leave differences of some 1e-13 in double;
# 1e-10 leaves room.
anew
echo 4 >left
launch set.json --workers-left 'cat left' --
waits 60 lines $((30 + RANDOM % 60)) || fail "the run of four does not train: $(cat err)"
echo 3 >left
kill -9 "$(cat pid.3)"
ends 0 'a lost worker'
says "3 workers continue with 'set.json' from step [1-9]" 'a lost worker'
losses metrics.jsonl | paste - <(losses whole.jsonl) | awk -v steps=$steps '
    { d = $1 - $2; if (!(d <= 1e-10 && d >= -1e-10)) bad = 1; n++ } END { exit bad || n != steps }' ||
    fail "with one worker fewer: other losses than undisturbed"

# a lost worker comes back: from a file of plans, down to three and up to four again, in order
if full; then
    anew
    sed -i '0,/"predicted_step_s": [-+0-9.e]*/s//"predicted_step_s": 1e-9/' set.json # so that four pay off at once
    echo 4 >left
    steps=900 options=(--steps 900 "${options[@]:2}")
    launch set.json --workers-left 'cat left' --ask-every 0.2 --
    waits 60 lines 25 || fail "the run of a set does not train: $(cat err)"
    echo 3 >left
    kill -9 "$(cat pid.3)"
    waits 60 grep -q "3 workers continue with 'set.json'" err || fail "three do not go on: $(cat err)"
    n=$(wc -l <metrics.jsonl)
    waits 60 lines $((n + 40)) || fail "three do not train: $(cat err)"
    echo 4 >left
    ends 0 'a worker that comes back'
    says '4 workers answer, 3 train' 'a worker that comes back'
    says "4 workers continue with 'set.json' from step [1-9]" 'a worker that comes back'
    [ "$(wc -l <metrics.jsonl)" = 900 ] || fail "a worker that comes back: $(wc -l <metrics.jsonl) steps in the metrics"
    steps=240 options=(--steps 240 "${options[@]:2}")
fi

# stops in order, continues
anew
launch 4.json --
waits 60 lines 30 || fail "does not train: $(cat err)"
kill -TERM $job
ends 4 'a stop'
says 'ended after [0-9]+ of' 'a stop'
last 'ended by a signal; --resume continues from step [1-9][0-9]*' 'a stop'
launch 4.json --resume --
ends 0 'going on'
[ "$(value out)" = "$(value whole)" ] || fail "stopped and gone on: other weights than undisturbed"

# mpirun that says nothing of a worker's end but its exit code, as one whose worker dies while MPI starts may do
anew
printf '#!/bin/sh\nexit 137\n' >silent.sh
chmod +x silent.sh
"$GHP_BIN/ghp-launch" 4.json --mpirun ./silent.sh --checkpoint kept --pause 0.1 --restarts 1 -- "${options[@]}" \
    >out 2>err && fail "a run that never starts ends well"
says 'a worker was ended by signal 9 \(Killed\); silent.sh does not say which' 'a silent launcher'

# killed itself: mpirun ends, and the workers with it
anew
launch 4.json --
waits 60 lines 30 || fail "does not train: $(cat err)"
kill -9 $job
ends 137 'killed itself'

# The only checkpoint is damaged: the training begins from scratch, and says so. If both are, no restart helps: it gives
# up at once, with the remedy. So it does if the training was to continue.
checkpoint=kept/checkpoint.safetensors
damage() { for file; do printf 'x' | dd of="$file" bs=1 seek=2000 conv=notrunc status=none; done; }
for which in only both resumed; do
    anew
    [ $which = only ] && every=120 file=checkpoint || every=60 file=checkpoint.previous
    launch 4.json --
    waits 60 test -e kept/$file.safetensors || fail "$which: no checkpoint: $(cat err)"
    kill -STOP "$(cat pid.0)"
    damage kept/checkpoint*.safetensors
    if [ $which = resumed ]; then
        # shellcheck disable=SC2046
        kill -9 $(cat pid.?) $job
        waits 30 none_left || fail "$which: processes are left"
        rm -f kept/checkpoint.previous.safetensors
        launch 4.json --resume --
    else
        kill -9 "$(cat pid.0)"
    fi
    if [ $which = only ]; then
        ends 0 $which
        says "warning: the only checkpoint is damaged, and is '$checkpoint.damaged' now: the training begins again" \
            $which
        [ -e kept/checkpoint.safetensors.damaged ] || fail "$which: the damaged file is gone"
        [ "$(value out)" = "$(value whole)" ] || fail "$which: other weights than undisturbed"
        continue
    fi
    ends 1 $which
    last "gave up: no checkpoint in 'kept' is sound.*'kept/checkpoint.*safetensors' is damaged.*; put a copy of one\
 there as '$checkpoint' and continue with --resume, or begin again with --overwrite" $which
    [ "$(grep -c 'workers continue with' err)" -le 1 ] || fail "$which: was tried again"
done
unset every

# gives up
anew
launch 4.json 3.json --restarts 2 -- --data idx:nowhere
ends 1 'data that is not there'
says "ghp-launch: gave up: 3 failures in a row without a newer checkpoint, the last: .*nowhere" 'giving up'
says "3 workers continue with '3.json' from step 0" 'a second failure'
launch 4.json --restarts 5 --workers-left 'echo 2' -- --data idx:nowhere
ends 1 'too few workers'
says 'gave up: 2 workers are left, and the smallest plan is for 4' 'too few workers'
"$GHP_BIN/ghp-launch" 4.json --mpirun ./nosuch --checkpoint kept -- "${options[@]}" >out 2>err && fail 'no launcher: it trains'
last "gave up, as trying again would end the same: cannot run './nosuch': .*; name another one with --mpirun; then \
start it again, as it has no checkpoint yet" 'a launcher that is not there'
mkdir -p empty
denied 1 "no checkpoint in 'empty'; name another folder with --checkpoint, or leave --resume out" "$GHP_BIN/ghp-launch" 4.json --resume \
    --checkpoint empty -- "${options[@]}"
launch 4.json -- --nonsense
ends 2 'an option that ghp-run has not'
last "ghp-run refuses its options: unknown option '--nonsense'.*" 'an option that ghp-run has not'
denied 2 'no plan' "$GHP_BIN/ghp-launch" --checkpoint kept
denied 2 'give --checkpoint DIR' "$GHP_BIN/ghp-launch" 4.json
denied 2 'cannot follow .--.' "$GHP_BIN/ghp-launch" 4.json --checkpoint kept -- --resume
denied 1 'from the most workers' "$GHP_BIN/ghp-launch" 3.json 4.json --checkpoint kept
denied 1 'nosuch' "$GHP_BIN/ghp-launch" nosuch.json --checkpoint kept
exit $((failures > 0))
