#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp-profile,ghp-plan,ghp-inspect
# tests/tools/plan/test_plans.sh - the plans in plans/ are what the tools make today, bit by bit but for the seconds of
# the search, and each of them stands up to ghp-inspect --verify.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ln -s "$GHP_SOURCE/models" models
mkdir plans
failures=0

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# a file without the seconds of the search
stable() {
    sed 's/"search_s": [-+0-9.eE]*/"search_s": 0/' "$1"
}

"$GHP_SOURCE/plans/make.sh" "$GHP_BIN" || fail "plans/make.sh"
n=0
for made in plans/*.json; do
    kept=$GHP_SOURCE/$made
    n=$((n + 1))
    if [ ! -e "$kept" ]; then
        fail "$made is not in the source tree; run plans/make.sh"
    elif ! diff <(stable "$kept") <(stable "$made") >difference; then
        fail "$made differs from the source tree's; run plans/make.sh if that is right:"
        head -10 difference >&2
    fi
done
[ "$n" = 5 ] || fail "$n files made, not 5"
[ "$(ls "$GHP_SOURCE"/plans/*.json | wc -l)" = 5 ] || fail "plans/ has files that plans/make.sh does not make"
for plan in plans/*.plan.json; do
    "$GHP_BIN/ghp-inspect" "$plan" --verify >out 2>&1 || fail "--verify $plan: $(cat out)"
done

# the order that the time model promises: ghp <= owt <= data
step() {
    sed -n 's/.*"predicted_step_s": *\([0-9.e+-]*\).*/\1/p' "plans/vgg16-16-$1.plan.json" | head -n 1
}
awk -v g="$(step ghp)" -v o="$(step owt)" -v d="$(step data)" 'BEGIN { exit !(g > 0 && g <= o && o <= d) }' ||
    fail "ghp $(step ghp), owt $(step owt), data $(step data)"

[ "$failures" = 0 ] || exit 1
