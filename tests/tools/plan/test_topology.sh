#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-profile
# tests/tools/plan/test_topology.sh - the machine decides the groups: on 4 nodes of 4 cores they lie inside nodes, and
# another node size, or links the other way round, give another plan. In short tests core/cost/machine stands for it.
set -eu
scratch=$(mktemp -d) && cd "$scratch" || exit 1
trap 'rm -rf "$scratch"' EXIT
model=$GHP_SOURCE/models/vgg16.json

# machine FILE NODES CORES INTRA_Bps INTER_Bps
machine() {
    "$GHP_BIN/ghp-profile" --machine-only --hwloc "package:1 core:$3 pu:1" --nodes "$2" --intra-bandwidth "$4" \
        --inter-bandwidth "$5" --intra-latency 5e-6 --inter-latency 2e-5 -o "$1" >/dev/null 2>&1
}
# plan NAME MACHINE: prints "G K" and how many layers have each split, as ghp-plan says it.
plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile law.json --machine "$2" --workers 16 --batch 12288 -o "$1" 2>&1 |
        sed -n 's/^# \([0-9]*\) groups* of \([0-9]*\): /\1 \2 /p'
}
"$GHP_BIN/ghp-profile" --analytic F=1e13,bandwidth=1.25e9,latency=2e-5 --model "$model" -o law.json >/dev/null 2>&1
machine nodes4x4.json 4 4 4e10 1e8
machine nodes8x2.json 8 2 4e10 1e8
machine exchanged.json 4 4 2e8 4e10
a=$(plan a.json nodes4x4.json)
b=$(plan b.json nodes8x2.json)
c=$(plan c.json exchanged.json)
echo "4 nodes x 4 cores: G K splits = $a"
echo "8 nodes x 2 cores:              $b"
echo "4 x 4, links exchanged:         $c"
set -- $a
[ "$2" -gt 1 ] && [ "$2" -le 4 ] || { echo "FAILED: groups of $2 workers do not lie inside nodes of 4 cores"; exit 1; }
[ "$a" != "$b" ] || { echo "FAILED: halving the node did not change the plan"; exit 1; }
[ "$a" != "$c" ] || { echo "FAILED: exchanging the links did not change the plan"; exit 1; }
