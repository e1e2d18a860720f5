#!/usr/bin/env bash
# ghp-test: timeout=120 label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-launch,ghp-train
# tests/tools/launch/test_commands.sh - the commands that ghp-launch and ghp-train are given: all words of --mpirun are
# passed on; a program that cannot be run is named; --workers-left that never returns is ended, and does not keep
# ghp-launch from ending by a signal; a training that diverges is not tried again. What a killed ghp-launch leaves in
# TMPDIR goes with the next one.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 --strategy data -o plan.json >out 2>&1 ||
    { cat out >&2; exit 1; }
mkdir tmp
export TMPDIR=$PWD/tmp
launch=("$GHP_BIN/ghp-launch" plan.json --checkpoint kept --pause 0.1)

# as many words as one likes
printf '#!/bin/sh\necho "$300 $#" >words\nexit 2\n' | sed 's/\$300/${300}/' >words.sh
chmod +x words.sh
denied 2 'ghp-run refuses' "${launch[@]}" --mpirun "./words.sh $(seq -s ' ' 1 300)" -- --steps 2
read -r last n <words
[ "$last" = 300 ] && [ "$n" -gt 305 ] || fail "ghp-launch: of 300 words and more $n come, the 300th is '$last'"
denied 2 'ghp-profile ended with exit code 2' "$GHP_BIN/ghp-train" "$model" --workers 2 --batch 8 --mpirun \
    "./words.sh $(seq -s ' ' 1 300)"
read -r last n <words
[ "$last" = 300 ] && [ "$n" -gt 305 ] || fail "ghp-train: of 300 words and more $n come, the 300th is '$last'"

# a program that is not there
"${launch[@]}" --restarts 0 --mpirun 'mpirun --oversubscribe --bind-to none no-such-program' >out 2>err </dev/null
[ $? = 1 ] || fail "a program that is not there: not exit 1: $(cat err)"
grep -q "gave up: .*mpirun cannot run 'no-such-program' on a host" err || fail "a program that is not there: $(cat err)"

# a host that cannot be reached: a command that tries the hosts
printf '#!/bin/sh\necho "ssh: connect to host node8 port 22: Connection refused" >&2\nexit 1\n' >unreached
chmod +x unreached
"${launch[@]}" --restarts 0 --mpirun './unreached --hostfile hosts' >out 2>err </dev/null
grep -q "'node8' does not let ssh in; .*; try the hosts by './unreached --hostfile hosts -n [0-9] hostname'" err ||
    fail "a host that cannot be reached: $(cat err)"
"$GHP_BIN/ghp-train" "$model" --workers 2 --batch 8 --mpirun './unreached --hostfile hosts' >out 2>err </dev/null
tail -n 2 err | head -n 1 | grep -q "try the hosts by './unreached --hostfile hosts -n 2 hostname'" ||
    fail "ghp-train with a host that cannot be reached: $(cat err)"

# an answer that never comes: ended by the limit, and by a signal; a lost terminal does not end it under nohup
by=(--mpirun 'mpirun --oversubscribe --bind-to none')
failing=("${by[@]}" --workers-left 'sleep 1000')
denied 1 "warning: --workers-left 'sleep 1000' has not answered for 0.3 s and was ended" \
    "${launch[@]}" "${failing[@]}" --ask-limit 0.3 --restarts 1 -- --data idx:nowhere
grep -q 'gave up: 2 failures in a row' err || fail "a late answer: $(cat err)"
trap '' HUP
"${launch[@]}" "${failing[@]}" --restarts 9 -- --data idx:nowhere >out 2>err </dev/null &
job=$!
trap - HUP
waits 60 grep -q 'workers failed after' err || fail "does not fail: $(cat err)"
gone() { ! alive $job; }
kill -HUP $job
waits 1 gone && fail "SIGHUP ends it under nohup: $(tail -n 2 err)"
kill -TERM $job
waits 20 gone || { fail "SIGTERM does not end it"; kill -9 $job; }
wait $job
[ $? = 4 ] || fail "SIGTERM while it asks: not exit 4: $(cat err)"

# a divergence comes again: it is not tried again
"${launch[@]}" "${by[@]}" -- --steps 100 --lr 1e6 --momentum 0 >out 2>err </dev/null
[ $? != 0 ] || fail "a training that diverges ends well: $(cat err)"
again='ghp-launch: gave up, as a restart would end the same: .*(diverged|not finite).*; then start it again'
tail -n 1 err | grep -qE "$again" ||
    fail "a training that diverges ends with: $(tail -n 2 err)"
grep -q 'workers continue with' err && fail "a training that diverges is tried again: $(cat err)"

# the folder of one that was killed
[ -z "$(ls tmp)" ] || fail "left in TMPDIR: $(ls tmp)"
printf '#!/bin/sh\nsleep 1000\n' >endless.sh
chmod +x endless.sh
"${launch[@]}" --mpirun ./endless.sh >out 2>err </dev/null &
job=$!
made() { [ -n "$(ls tmp)" ]; }
waits 20 made || fail "no folder: $(cat err)"
kill -9 $job
wait $job 2>/dev/null
denied 2 'ghp-run refuses' "${launch[@]}" --mpirun ./words.sh
[ -z "$(ls tmp)" ] || fail "left in TMPDIR: $(ls tmp)"
exit $((failures > 0))
