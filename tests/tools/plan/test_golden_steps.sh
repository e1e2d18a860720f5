#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp-plan,ghp-profile,ghp-expect
# tests/tools/plan/test_golden_steps.sh - predicted steps are those of golden_steps.txt, so no change of the time model
# goes unseen: each step that changed is printed with its change.
set -u
. "$(dirname "$0")/../scratch.sh"
GHP_BIN=$(cd "$GHP_BIN" && pwd) GHP_SOURCE=$(cd "$GHP_SOURCE" && pwd)

bash "$GHP_SOURCE/tests/tools/plan/golden_steps.sh" >out 2>err || {
    cat out err >&2
    fail "predicted steps changed; if that is meant, keep them: GHP_BIN=build/bin GHP_SOURCE=. \
tests/tools/plan/golden_steps.sh --write"
}
rows=$(grep -vc '^#' "$GHP_SOURCE/tests/tools/plan/golden_steps.txt")
[ "$rows" -ge 90 ] || fail "$rows rows, not 90"
grep -qx "0 of $rows predicted steps changed" out || fail "it says: $(cat out)"
[ $failures -eq 0 ]
