#!/usr/bin/env bash
# ghp-test: timeout=240 processors=2 full=yes needs=ghp-profile
# tests/tools/profile/test_profile_measured.sh - ghp-profile under mpirun: a profile of lenet5 by two ranks, continued,
# refused, interrupted; by one process without mpirun too. In short tests profiler/run/run and profiler/run/cache stand
# for it.
set -u
. "$(dirname "$0")/../scratch.sh"
profile=$GHP_BIN/ghp-profile
model=$GHP_SOURCE/models/lenet5.json
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run=(mpirun --oversubscribe --bind-to none -n)
quick=(--model "$model" --workers 2 --batch 16 --backend reference --sample 0.001)

# count KEY: the number after the first "KEY": in the last --json
count() {
    grep -m1 "\"$1\": [0-9]" out | tr -dc 0-9
}

"${run[@]}" 2 "$profile" "${quick[@]}" --json -o p.json >out 2>err || fail "profiling: $(cat err)"
measured=$(count measured)
[ "${measured:-0}" -gt 50 ] || fail "only '$measured' operations measured"
for text in '"workers": 2' '"backend": "reference"' '"op": "all_reduce"' '"source": "measured"'; do
    grep -q "$text" p.json || fail "no $text in the profile"
done

# again: nothing is measured twice
"${run[@]}" 2 "$profile" "${quick[@]}" --json -o p.json >out 2>err || fail "continuing: $(cat err)"
[ "$(count measured)" = 0 ] || fail "measured $(count measured) again"
[ "$(count kept)" = "$measured" ] || fail "kept $(count kept) of $measured"

# what was measured is kept for other files; a damaged file of them is named; without them all is measured
"${run[@]}" 2 "$profile" "${quick[@]}" --json -o other.json >out 2>err || fail "another file: $(cat err)"
[ "$(count measured)" = "$(grep -c '"algorithm": "fused"' other.json)" ] || fail "measured $(count measured) kept ones"
kept=("$XDG_CACHE_HOME"/ghp/*.json)
head -c 1000 "${kept[0]}" >damaged && mv damaged "${kept[0]}"
"${run[@]}" 2 "$profile" "${quick[@]}" --json -o other.json >out 2>err || fail "a damaged file: $(cat err)"
grep -q "damaged and are made again: ${kept[0]}" err || fail "no word of the damaged file: $(cat err)"
"${run[@]}" 2 "$profile" "${quick[@]}" --budget 1 --cache none --json -o third.json >out 2>err ||
    fail "none: $(cat err)"
[ "$(count measured)" -gt 0 ] || fail "nothing measured without kept measurements"

# another batch is added to what is there
"${run[@]}" 2 "$profile" "${quick[@]}" --batch 24 --json -o p.json >out 2>err && fail "two --batch accepted"
"${run[@]}" 2 "$profile" --model "$model" --workers 2 --batch 24 --backend reference --sample 0.001 -o p.json >out \
    2>err || fail "adding: $(cat err)"
grep -q '"key": "conv2d n12 ' p.json || fail "batch 24 is not there"
grep -q '"key": "conv2d n8 ' p.json || fail "batch 16 is gone"

# otherwise measured: refused, and the file stays
cp p.json before.json
denied_once 1 "precision float, not double" "${run[@]}" 2 "$profile" "${quick[@]}" --precision double -o p.json
denied_once 1 "ranks 2, not 1" "$profile" "${quick[@]}" -o p.json
denied_once 1 "use mpirun -n 2" "${run[@]}" 3 "$profile" "${quick[@]}" -o q.json
denied_once 1 "multiple of" "${run[@]}" 2 "$profile" --model "$model" --workers 3 --batch 16 -o q.json
denied_once 1 "no-such.json" "${run[@]}" 2 "$profile" --model no-such.json --batch 16 -o q.json
denied_once 1 "create its folder first" "${run[@]}" 2 "$profile" "${quick[@]}" -o no/such/q.json
denied_once 2 "unknown option" "${run[@]}" 2 "$profile" "${quick[@]}" --no-such-option -o q.json
cmp p.json before.json || fail "a refusal changed the profile"
[ -e q.json ] && fail "a refusal left a file"

# one process, no mpirun, hardly any time: laws for the rest
"$profile" --model "$model" --batch 16 --backend reference --budget 1 --sample 0.05 --json -o one.json >out 2>err ||
    fail "alone: $(cat err)"
grep -q '"source": "analytic"\|"source": "interpolated"' one.json || fail "no laws in a profile of one second"

[ "$failures" = 0 ] || exit 1
