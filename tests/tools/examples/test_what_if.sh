#!/usr/bin/env bash
# ghp-test: timeout=200 full=yes needs=ghp-plan,ghp-expect,ghp-inspect
# tests/tools/examples/test_what_if.sh - examples/what-if: clusters that are not here are planned for. In short tests
# tools/plan/expect stands for it.
set -u
. "$(dirname "$0")/example.sh"
example what-if
grep -q '^two nodes  *are faster than one' out || fail "it does not say when two nodes pay: $(head -n 30 out)"
grep -q '^# verdict: ' out || fail "it gives no verdict"
"$GHP_BIN/ghp-inspect" work/plan.json >shown 2>err || fail "the plan cannot be shown: $(cat err)"
[ $failures -eq 0 ]
