#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp-profile,ghp-plan,ghp-run
# tests/tools/run/test_cuda.sh - where there is no GPU, or no build for one, the tools start, say what is missing and
# what to do, and exit 1; a plan for GPUs is not trained by processors unless that is asked for.
set -u
. "$(dirname "$0")/../scratch.sh"
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then
    echo "skipped: this machine has a GPU" >&2
    exit 77
fi
model=$GHP_SOURCE/models/lenet5.json

expect() { # CODE PATTERN COMMAND...
    "${@:3}" >out 2>err </dev/null
    local code=$?
    [ $code = "$1" ] || fail "${*:3}: exit $code, not $1: $(head -1 err)"
    grep -Eq -- "$2" err || fail "${*:3}: no remedy ($2): $(head -2 err)"
}

expect 1 'use (--backend )?onednn' "$GHP_BIN/ghp-profile" --backend cuda --model "$model" --batch 8 -o p.json
[ ! -e p.json ] || fail "a profile was written"
analytic "$model" p.json F=1e12,bandwidth=1e10,latency=1e-5
"$GHP_BIN/ghp-plan" "$model" --profile p.json --workers 1 --batch 8 -o plan.json >out 2>err || fail "$(cat err)"
expect 1 'use (--backend )?onednn' "$GHP_BIN/ghp-run" plan.json --backend cuda --steps 1
expect 2 'backend' "$GHP_BIN/ghp-run" plan.json --backend onednn --precision tf32 --steps 1
expect 2 'cuda' "$GHP_BIN/ghp-run" plan.json --backend onednn --transport nccl --steps 1
sed 's/"backend": "analytic"/"backend": "cuda"/' p.json >cuda.json
"$GHP_BIN/ghp-plan" "$model" --profile cuda.json --workers 1 --batch 8 -o cuda.plan.json >out 2>err || fail "$(cat err)"
expect 1 'use (--backend )?onednn' "$GHP_BIN/ghp-run" cuda.plan.json --steps 1
"$GHP_BIN/ghp-run" cuda.plan.json --steps 1 --backend onednn >out 2>err || fail "asked for processors: $(head -1 err)"
[ $failures -eq 0 ]
