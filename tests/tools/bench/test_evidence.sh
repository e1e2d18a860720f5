#!/usr/bin/env bash
# ghp-test: timeout=500 processors=2 full=yes needs=ghp-counted,ghp-run,ghp-profile,ghp-plan,mpirun,python3
# tests/tools/bench/test_evidence.sh - what steps do beyond the plan's instructions, as bench/cpu/evidence counts it:
# ghp itself allocates nothing in a step, alone or with others, and locks only to hand reductions to their stream; the
# counter counts.
set -u
. "$(dirname "$0")/../scratch.sh"
evidence() { env -C "$GHP_SOURCE" GHP_BIN="$GHP_BIN" GHP_BENCH="$here/kept" "$GHP_SOURCE/bench/cpu/evidence" "$@"; }
here=$PWD

denied 2 "neither a plan nor a network" evidence nobody:8
denied 2 "neither a plan nor a network" evidence lenet5
mkdir bare
denied 3 "without sanitizers" env -C "$GHP_SOURCE" GHP_BIN="$PWD/bare" "$GHP_SOURCE/bench/cpu/evidence" lenet5:8

evidence --budget 2 --steps 3 --json lenet5:8 >one.json || fail "no evidence of one worker"
evidence --budget 2 --steps 3 --workers 2 --json lenet5:8 >two.json || fail "no evidence of two"
python3 - <<'EOF' || fail "steps do what no plan lists"
import json
for path, workers in ("one.json", 1), ("two.json", 2):
    row, = json.load(open(path))["rows"]
    plan = row["listed"]
    own = {c["kind"]: c["calls"] for c in row["calls"] if c["object"].startswith("ghp-run")}
    others = {c["object"] for c in row["calls"] if c["kind"] == "allocation"}
    assert row["workers"] == workers and plan["memory_equal"], row
    assert "allocation" not in own, own
    assert others, "oneDNN's tables are not counted: is anything?"
    beside = plan["reductions"] + plan["transfers"]
    assert (beside > 0) == (workers > 1), plan
    # a job is posted, taken and finished, and each instruction that waits for one looks once, all under one lock
    assert own.get("lock", 0) <= 3 * beside + plan["instructions"], own
    assert workers > 1 or "lock" not in own, own
    assert (plan["samples_loaded"] > 0) == (workers > 1), plan
    assert own.get("post", 0) <= 1 and (workers > 1 or "post" not in own), own
    assert row["primitives"]["times"] > 5, row["primitives"] # their seconds, a difference of runs, are of few steps here
EOF
evidence --steps 2 "$PWD/kept/lenet5-b8-w1-t1.plan.json" >out || fail "no evidence of a plan"
grep -q '^ghp-run *allocation *0\.0' out || fail "no word of ghp's own allocations: $(cat out)"
grep -q ' format changes of ' out || fail "no word of format changes: $(cat out)"
[ $failures -eq 0 ]
