#!/usr/bin/env bash
# ghp-test: timeout=120 label=mpi needs=ghp-plan,ghp-run,ghp-profile,taskset
# tests/tools/run/test_affinity.sh - a run that may use one of several processors, as in a container or by taskset: it
# takes one thread a worker, threads that outnumber the processor wait passively, and it says that workers share cores.
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
[ $failures -eq 0 ]
