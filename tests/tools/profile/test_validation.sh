#!/usr/bin/env bash
# ghp-test: timeout=240 processors=2 full=yes needs=ghp-profile
# tests/tools/profile/test_validation.sh - ghp-profile --validate under mpirun: table and object, refusals, and no
# file is written. In short tests profiler/validate/validation stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
profile=$GHP_BIN/ghp-profile
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run=(mpirun --oversubscribe --bind-to none -n)

"${run[@]}" 2 "$profile" --model "$GHP_SOURCE/models/lenet5.json" --batch 16 --backend reference --sample 0.001 \
    -o p.json >out 2>err || fail "profiling: $(cat err)"
cp p.json before.json

"${run[@]}" 2 "$profile" --validate p.json --sample 0.001 >out 2>err || fail "trying: $(cat err)"
grep -q '^sizes  *all_reduce  *2  *1 ' out || fail "no row of a size in: $(cat out)"
grep -q '^groups  *all_reduce  *2  *1 ' out || fail "no row of a group in: $(cat out)"
[ "$(grep -c '1 MiB' out)" = 4 ] || fail "not four sums in: $(cat out)"

"${run[@]}" 2 "$profile" --validate p.json --sample 0.001 --json >out 2>err || fail "trying with --json: $(cat err)"
for text in '"way": "held-out"' '"not_measured": 0' '"mean_error": [0-9]' '"measured_s": [0-9]'; do
    grep -q "$text" out || fail "no $text in the object"
done
cmp p.json before.json || fail "trying changed the profile"
[ "$(ls)" = "$(printf 'before.json\ncache\nerr\nout\np.json')" ] || fail "files were left: $(ls)"

denied_once 1 "use mpirun -n 2" "${run[@]}" 3 "$profile" --validate p.json
denied_once 1 "no-such.json" "${run[@]}" 2 "$profile" --validate no-such.json
denied_once 2 "--output has no use with --validate" "${run[@]}" 2 "$profile" --validate p.json -o q.json
denied_once 2 "--validate has no use" "${run[@]}" 2 "$profile" --machine-only --validate p.json -o q.json

[ "$failures" = 0 ] || exit 1
