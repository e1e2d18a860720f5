#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,taskset
# tests/tools/run/test_affinity.sh - a run that may use one of several processors, as in a container or by taskset: it
# takes one thread a worker, threads that outnumber the processor wait passively, and it says that workers share cores.
# In short tests executor/platform/affinity stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
unset OMP_WAIT_POLICY
model=$GHP_SOURCE/models/lenet5.json
allowed=$(taskset -cp $$ | sed 's/.*: //')
first=${allowed%%[-,]*}
if [ "$allowed" = "$first" ]; then
    echo "skipped: there is one processor to use" >&2
    exit 77
fi
analytic "$model" profile.json F=1e11,bandwidth=1e9,latency=2e-5
for n in 1 2; do
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers $n --batch 8 -o $n.json >out 2>err ||
        fail "plan: $(head -3 err)"
done

# a program that is to wait passively starts itself once more, and its OpenMP library shows its settings at each start
run() { OMP_DISPLAY_ENV=true "$@" --steps 2 --bind none >out 2>err </dev/null || fail "$*: $(head -3 err)"; }
says() { grep -qE -e "$1" err || fail "$2: $(grep -E 'thread|share' err | head -5)"; }
starts() {
    local n
    n=$(grep -c 'DISPLAY ENVIRONMENT BEGIN' err)
    [ "$n" = "$1" ] || fail "$2: $n starts, not $1"
}

run taskset -c "$first" "$GHP_BIN/ghp-run" 1.json
says ' 1 thread\(s\) a worker' "one processor has not one thread"
starts 1 "one thread on one processor"
run taskset -c "$first" "$GHP_BIN/ghp-run" 1.json --threads 2
starts 2 "two threads on one processor spin"
run taskset -c "$first" mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" 2.json --threads 1
starts 4 "two workers on one processor spin"
says 'workers share cores' "two workers on one processor do not say so"
for bound in none core; do # the launcher may give each worker a processor of its own: together they have two
    run mpirun --bind-to $bound -n 2 "$GHP_BIN/ghp-run" 2.json --threads 1
    starts 2 "two workers on several processors, bound to $bound, need not wait passively"
    says ' 1 thread\(s\) a worker' "two workers on several processors"
    grep -q 'workers share cores' err && fail "two workers on several processors, bound to $bound, share none"
done

# a plan that names processors does not lead out of those that the workers may use, be they mpirun's or a user's
"$GHP_BIN/ghp-profile" --machine-only -o machine.json >out 2>err || fail "machine: $(head -3 err)"
python3 - <<'PYTHON' || exit 1
import json
machine, profile = json.load(open("machine.json")), json.load(open("profile.json"))
for key in "packages", "cores", "threads", "pu_indices":
    profile["machine"][key] = machine[key]
json.dump(profile, open("here.json", "w"))
PYTHON
for n in 1 2; do
    "$GHP_BIN/ghp-plan" "$model" --profile here.json --workers $n --batch 8 -o bound$n.json >out 2>err ||
        fail "plan: $(head -3 err)"
done
bound() { "$@" --steps 2 --threads 1 >out 2>err </dev/null || fail "$*: $(head -3 err)"; }
rest=${allowed##*[-,]}
bound taskset -c "$rest" "$GHP_BIN/ghp-run" bound1.json
says 'not bound: processor [0-9]+ of the plan may not be used here' "a plan of all processors leaves taskset's"
bound taskset -c "$rest" mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" bound2.json
says 'not bound: processor [0-9]+ of the plan may not be used here' "a plan for two leaves taskset's under mpirun"
bound "$GHP_BIN/ghp-run" bound1.json
says ', bound to processor' "a plan of all processors is not bound where all may be used"
bound mpirun --bind-to core -n 2 "$GHP_BIN/ghp-run" bound2.json
says ', bound to processor' "what mpirun binds a worker to counts as a limit"

# OpenMP that gives a region fewer threads than it asks for: oneDNN would wait for the others for ever
small() { denied 1 "a worker has 2 threads, and OpenMP may give it fewer: ${1%=*} is '${1#*=}'; unset it" timeout 20 env "$@"; }
for variable in OMP_THREAD_LIMIT=1 OMP_DYNAMIC=true OMP_MAX_ACTIVE_LEVELS=0; do
    small $variable "$GHP_BIN/ghp-run" 1.json --steps 2 --threads 2
    small $variable "$GHP_BIN/ghp-profile" --model "$model" --workers 1 --batch 8 --budget 1 --threads 2 -o x.json
    env $variable timeout 20 "$GHP_BIN/ghp-run" 1.json --steps 2 --threads 1 >out 2>err || fail "$variable: one thread: $(head -3 err)"
done
env OMP_THREAD_LIMIT=2 timeout 20 "$GHP_BIN/ghp-run" 1.json --steps 2 --threads 2 >out 2>err ||
    fail "a limit of two threads: $(head -3 err)"
[ $failures -eq 0 ]
