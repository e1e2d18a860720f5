#!/bin/bash
# bench/planner.sh - seconds that ghp-plan takes, by a law of round numbers, and the gap it leaves.
#
# usage, from the source tree's root: bench/planner.sh
# Environment: GHP_BIN folder of the tools [build/bin].
set -u
bin=${GHP_BIN:-build/bin}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# number KEY: the first number behind "KEY" in the last plan's --json
number() {
    sed -n "s/^ *\"$1\": *\([-+0-9.eE]*\),*\$/\1/p" "$work/plan.txt" | head -n 1
}

"$bin/ghp-profile" --analytic F=6e12,bandwidth=1.25e9,latency=20e-6 -o "$work/law.json" >/dev/null || exit 1
row='%-14s %7s %10s %8s %8s %8s'
# shellcheck disable=SC2059
printf "$row\n$row\n" network workers step gap search plans "" "" ms % s ""
for case in vgg16:16:1024 vgg16:64:4096 vgg-a:128:512 overfeat-fast:64:256 resnet18:64:4096 resnet50:64:4096; do
    IFS=: read -r network workers batch <<<"$case"
    "$bin/ghp-plan" "models/$network.json" --profile "$work/law.json" --workers "$workers" --batch "$batch" --json \
        >"$work/plan.txt" || exit 1
    # shellcheck disable=SC2059
    printf "$row\n" "$network" "$workers" "$(awk -v s="$(number predicted_step_s)" 'BEGIN { printf "%.2f", 1e3 * s }')" \
        "$(awk -v g="$(number gap)" 'BEGIN { printf "%.3f", 100 * g }')" \
        "$(awk -v s="$(number seconds)" 'BEGIN { printf "%.2f", s }')" "$(number plans)"
done
