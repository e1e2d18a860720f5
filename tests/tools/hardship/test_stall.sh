#!/usr/bin/env bash
# ghp-test: timeout=400 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/hardship/test_stall.sh - a worker that stops (SIGSTOP), exits or is killed (signal 9) while the others
# start, read a checkpoint, compare their weights or end: the run ends within the watchdog's limit and some seconds, and
# says in which phase, and by which rank. A worker that works alone, as worker 0 does after --verify, is waited for
# longer than the limit, as long as it lives. In short tests executor/train/stop and executor/platform/failpoint stand
# for it.
#
# If weights mix, the rank that stopped is named by the server that others wait for, or by who wanted an exchange with it.
#
# With a parameter server: whichever of server and worker stops is named; a signal for the server is not for it, one for
# a worker ends all in order; a wrong number of ranks is refused; --verify passes while the server has nothing to do.
set -u
. "$(dirname "$0")/../scratch.sh"
limit=4 most=$((limit + 40)) # the launcher needs some seconds to end a job: once more than 16 next to another test
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
# plan WORKERS FILE ARGS...
plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$1" --batch ${batch:-12} -o "$2" "${@:3}" \
        >out 2>&1 || fail "planning $2 ${*:3}: $(cat out)"
}
plan 3 plan.json --strategy data

# What mpirun starts: leaves its process number, which the tool then takes over.
cat >rank.sh <<'SH'
#!/bin/sh
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
SH
chmod +x rank.sh

stopped() { [ -s pid.2 ] && [ "$(ps -o stat= -p "$(cat pid.2)" | cut -c1)" = T ]; }

ended() { ! alive "$1"; }

# launch ARGS...: a run of three in the background, its mpirun's number in $job
launch() {
    rm -f pid.*
    mpirun --oversubscribe --bind-to none -n 3 ./rank.sh "$GHP_BIN/ghp-run" "${plan:-plan.json}" \
        --steps "${steps:-2}" --watchdog $limit "$@" >out 2>err </dev/null &
    job=$!
}

workers_ended() {
    for pid in pid.0 pid.1 pid.2; do
        [ -s $pid ] && ! alive "$(cat $pid)" || return 1
    done
}
over() { ended $job || workers_ended; }

# finish NAME: the workers end by themselves, and the run with a failure. mpirun alone may hang (docs/how-to/restarts.md).
finish() {
    if waits $most over; then
        waits 5 ended $job || { echo "$1: mpirun outlives its workers" && kill -9 $job; }
        wait $job && fail "$1: exit 0"
    else
        fail "$1: still there after $most s"
    fi
    # shellcheck disable=SC2046
    kill -9 $(cat pid.*) $job 2>/dev/null # of a run that failed the test
    wait $job 2>/dev/null
}
says() { grep -qE -e "$2" err || fail "$1: does not say '$2', but: $(head -c 1500 err)"; }

# mpirun itself ends a run, and names who exited, where another had begun to start MPI before
for deed in stop exit; do
    [ $deed = stop ] && did=stopped others='' || did=exited others='|exited due to process rank 1 '
    launch --failpoint $deed@mpi:1:1
    finish "$deed before MPI"
    says "$deed before MPI" "^ghp-run: worker [02] waited $limit s .*starting MPI.*without rank\(s\) 1 $did;$others"
done

ranks 3 run plan.json --steps 1 --checkpoint begun || fail "no checkpoint: $(cat err)"

# failpoint, phase that is said
for case in 'start|reading the plan' 'resume|reading a checkpoint' 'comparison|comparing replicas' 'end|ending'; do
    point=${case%|*} phase=${case#*|} resumes=()
    [ "$point" != resume ] || resumes=(--checkpoint begun --resume)
    launch --failpoint "stop@$point" "${resumes[@]}"
    finish "$point"
    says "$point" "^ghp-run: .* waited $limit s in '$phase': .*from rank\(s\) 2"
    launch --failpoint "stop@$point" "${resumes[@]}"
    waits 60 stopped || fail "$point: rank 2 does not stop"
    kill -9 "$(cat pid.2)"
    finish "$point and signal 9"
done

# the launcher is gone, too: each worker ends itself
launch --failpoint stop@comparison
waits 60 stopped || fail "rank 2 does not stop"
kill -9 $job
for rank in 0 1; do
    waits $most ended "$(cat pid.$rank)" || fail "without launcher rank $rank is still there after $most s"
done
kill -9 "$(cat pid.0)" "$(cat pid.1)" "$(cat pid.2)" 2>/dev/null
wait $job 2>/dev/null

# ranks 0 and 1 are workers, 2 is a server
plan 2 servers.json --sync bsp --servers 1
trains() { [ -s metrics.jsonl ] && [ "$(wc -l <metrics.jsonl)" -gt 5 ]; }
for rank in 2 1; do
    rm -f metrics.jsonl
    plan=servers.json steps=1000000 launch --metrics metrics.jsonl
    waits 60 trains || fail "servers: does not train: $(cat err)"
    kill -STOP "$(cat pid.$rank)"
    finish "rank $rank stopped"
    says "rank $rank stopped" "^ghp-run: .* waited .* (nothing arrived from|not taken by) (rank|worker)\(s\) $rank"
done
# weights mix: the server says which worker lets others wait by the clock; a worker, who does not answer it
for case in 'ssp:2|1|worker' 'ad-psgd|2|rank'; do
    sync=${case%%|*} rank=${case#*|}
    workers=3 who=${rank#*|} rank=${rank%|*}
    [ $sync = ad-psgd ] || workers=2
    plan $workers mixes.json --sync $sync
    rm -f metrics.jsonl
    plan=mixes.json steps=1000000 launch --metrics metrics.jsonl
    waits 60 trains || fail "$sync: does not train: $(cat err)"
    kill -STOP "$(cat pid.$rank)"
    finish "$sync, rank $rank stopped"
    says "$sync, rank $rank stopped" "^ghp-run: .* waited .* (nothing arrived from|not taken by) $who\(s\) $rank;"
done
rm -f metrics.jsonl
plan=servers.json steps=1000000 launch --metrics metrics.jsonl --checkpoint kept
waits 60 trains || fail "servers: does not train: $(cat err)"
kill -TERM "$(cat pid.2)"
sleep 1
ended $job && fail "a signal for the server ended the run: $(cat err)"
kill -TERM "$(cat pid.1)"
finish "signal for worker 1"
says "signal for worker 1" "SIGTERM at worker 1: ended after .* --resume continues"
ranks 2 run servers.json --steps 1 && fail "two ranks for two workers and a server"
says "two ranks" "2 worker\(s\) and 1 server\(s\), but 2 .* -n 3"
ranks 3 run servers.json --verify 3 || fail "servers: --verify exits $?: $(cat err)"

# a kernel that does not return is named, and SIGTERM ends the run then; one that stood still was not slow
plan 1 one.json
single() { "$GHP_BIN/ghp-run" one.json --steps 40 --watchdog 2 --checkpoint kept-alone --overwrite "$@" >out 2>err </dev/null & job=$!; }
single --failpoint hang@forward:30
named() { grep -q "^ghp-run: worker 0 has been in 'forward of [a-z0-9.]*' of step [0-9]* for 2 s" err; }
waits 20 named || fail "a kernel that hangs is not named: $(cat err)"
ended $job && fail "a kernel that may only be slow ends the run"
kill -TERM $job
waits 5 ended $job || fail "SIGTERM does not end a run with a kernel that hangs"
wait $job && fail "a kernel that hangs: exit 0"
says "SIGTERM" "^ghp-run: worker 0 is ended in 'forward of [a-z0-9.]*' of step [0-9]*, without a checkpoint"
single --failpoint stop@forward:30
standing() { [ "$(ps -o stat= -p $job | cut -c1)" = T ]; }
waits 20 standing || fail "the run does not stop"
sleep 4
kill -CONT $job
wait $job || fail "a run that stood still: exit $?: $(cat err)"
grep -q 'has been in' err && fail "a run that stood still counts as slow: $(cat err)"

# worker 0 trains alone for longer than the limit
model=$GHP_SOURCE/models/small-resnet.json batch=32 plan 2 alone.json --strategy data
begin=$SECONDS
ranks 2 run alone.json --verify 12 --backend reference --precision double --watchdog 2.5 ||
    fail "--verify exits $? after $((SECONDS - begin)) s: $(head -c 1500 err)"
echo "--verify took $((SECONDS - begin)) s"
exit $((failures > 0))
