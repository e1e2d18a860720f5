#!/usr/bin/env bash
# ghp-test: timeout=200 full=yes needs=libghp,ghp-train,ghp-profile,ghp-plan,ghp-run,ghp-inspect,pkg-config,cmake
# tests/tools/examples/test_library.sh - examples/library: a C program is built in both ways, and plans. In short tests
# planner/api/api stands for it.
set -u
. "$(dirname "$0")/example.sh"
example library
grep -q '^fc6  *in:4' out || fail "the plan is another one: $(head -n 5 out)"
grep -q 'a program built by CMake plans too' out || fail "CMake's program does not plan"
[ -s work/plan.json ] || fail "no plan is stored"
[ $failures -eq 0 ]
