#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,mpirun
# tests/tools/profile/test_threads.sh - a profile that was measured with another number of threads than the plan's
# workers have: the plan runs, in at least the memory that was planned, and both numbers are said with what to do. In
# short tests executor/platform/task_thread stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
profile() { # ARGS...
    ranks 1 profile --model "$model" --workers 2 --batch 16 --budget 2 "$@" -o profile.json ||
        fail "profile $*: $(head -3 err)"
}
plan() { # FILE ARGS...
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 16 "${@:2}" -o "$1" >out 2>err ||
        fail "plan $1: $(head -3 err)"
}
said='measured with 2 threads a worker'

profile --threads 2
holds profile.json 'o["threads"] == 2'
"$GHP_BIN/ghp-inspect" profile.json >out 2>err || fail "inspect: $(head -3 err)"
grep -q '2 threads' out || fail "ghp-inspect does not say the threads: $(head -5 out)"
cp profile.json two-threads.json
plan two.json
# one rank has measured no collective for two workers
grep -q '^# assumed: [0-9.]* GB/s between workers, as no collective was measured' out || fail "links are not said to be assumed: $(cat out)"
grep -qE '^# what binds: .*assumed' out || fail "what binds is not said to be assumed: $(grep binds out)"
ranks 2 run two.json --steps 2 --threads 1 || fail "another number of threads is refused: $(head -3 err)"
grep -qE "$said.* have 1: .*--threads 1" err || fail "the numbers of threads are not said: $(cat err)"
ranks 2 run two.json --steps 2 --threads 2 || fail "the same number of threads: $(head -3 err)"
grep -q "$said" err && fail "equal numbers of threads are said: $(cat err)"

ranks 2 run two.json --dry-run --threads 64
grep -qE 'a worker has 64 threads on [0-9]+ core.*; give --threads [0-9]+$' err || fail "threads that take turns are not said: $(cat err)"

# a kernel that asks for more than was profiled takes it, unless that oversteps the plan's limit of memory
change() { # EXPRESSION: of each entry e of the profile
    python3 -c "
import json
o = json.load(open('profile.json'))
for e in o['operations']: e['scratch_bytes'] = $1
json.dump(o, open('profile.json', 'w'))"
}
change '0'
plan less.json
ranks 2 run less.json --steps 2 --threads 2 || fail "less scratch was profiled: $(head -3 err)"
grep -q 'not equal: kernels here take other scratch than was profiled' out || fail "less scratch: not said: $(grep memory out)"
bytes=$(python3 -c "import json; print(json.load(open('less.json'))['predicted']['peak_bytes'])")
plan limited.json --memory "$bytes"
denied 1 'its limit is .*measured with 2 threads a worker, and these have 1; plan with a larger --memory' \
    mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" limited.json --steps 2 --threads 1
cp two-threads.json profile.json
change 'e["scratch_bytes"] + 4096'
plan more.json
ranks 2 run more.json --steps 2 --threads 2 || fail "more scratch was profiled: $(head -3 err)"
grep -q 'equal to the byte' out || fail "the planned memory is not taken: $(grep memory out)"

# a profile's threads are those that a worker of the plan has, whatever number of ranks measures
denied 1 "it was measured with threads a rank 2, not 1; remove it, or give another -o or --fresh" mpirun --oversubscribe \
    --bind-to none -n 1 "$GHP_BIN/ghp-profile" --model "$model" --workers 2 --batch 16 --budget 1 --threads 1 -o two-threads.json
rm profile.json
profile
holds profile.json "o['threads'] == max(1, o['machine']['cores'] // 2) or o['threads'] == 1"
[ $failures -eq 0 ]
