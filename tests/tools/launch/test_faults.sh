#!/usr/bin/env bash
# ghp-test: timeout=170 processors=2 full=yes label=script needs=ghp-plan,ghp-run,ghp-profile,ghp-launch,python3
# tests/tools/launch/test_faults.sh - a sample of bench/recovery/faults: each fault at some of the moments, drawn by
# chance, and some kills at any time. No run hangs, loses or repeats a sample, or leaves anything. GHP_SEED
# repeats a draw. What proves single faults fast is tests/tools/launch/test_launch.sh and
# tests/tools/hardship/test_stall.sh.
set -u
. "$(dirname "$0")/../scratch.sh"
seed=${GHP_SEED:-$$}
echo "GHP_SEED=$seed"
"$GHP_SOURCE/bench/recovery/faults" --seed "$seed" --sample 15 --budget 40 --jobs 3 grid >out 2>err ||
    fail "the grid: $(cat out err)"
cat out
"$GHP_SOURCE/bench/recovery/faults" --seed "$seed" --random 3 --budget 10 --jobs 2 kills >out 2>err ||
    fail "kills: $(cat out err)"
cat out
[ "$(wc -l <grid/runs.jsonl)" -gt 0 ] || fail "no run was made"
# a table says what is wrong: a run with other weights is lost
sed -i '1s/"lost": false/"lost": true/' grid/runs.jsonl
"$GHP_SOURCE/bench/recovery/faults" --seed "$seed" --table grid >out 2>err && fail "a lost run is not told: $(cat out)"
exit $((failures > 0))
