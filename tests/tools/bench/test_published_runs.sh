#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp-published
# tests/tools/bench/test_published_runs.sh - published runs are predicted by their own plans, and their files are read
# with care: a row that ghp cannot say has its reason, and a file without a column is refused.
#
# published_runs.csv has rows of MLPerf 0.5, DLPerf and MosaicML, whose sources it names. The bars are the project's own
# for published runs: 10 % in the mean, 20 % at worst.
set -u
failures=0
cd "$GHP_SOURCE" || exit 1
rows=tests/tools/bench/published_runs.csv
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

out=$("$GHP_BIN/ghp-published" "$rows" 2>"$dir/err") || fail "does not run: $(cat "$dir/err")"
last=$(tail -n 1 <<<"$out")
read -r n said mean worst < <(sed -n 's/^rows \([0-9]*\) said \([0-9]*\) mean \([0-9.]*\) % worst \([0-9.]*\) % rank [-0-9.]*$/\1 \2 \3 \4/p' <<<"$last")
[ "${n:-0}" -eq 17 ] && [ "$said" -eq 12 ] || fail "not 17 rows and 12 said of: $last"
awk -v m="${mean:-99}" -v w="${worst:-99}" 'BEGIN { exit !(m <= 10 && w <= 20) }' || fail "misses its bars: $last"
sed 's/FULL_SHARD/HYBRID_SHARD/' "$rows" >"$dir/hybrid.csv"
"$GHP_BIN/ghp-published" "$dir/hybrid.csv" | grep -q "313 .*does not know how 'HYBRID_SHARD' shards" ||
    fail "no reason for rows sharded in a way that ghp does not know"

# a rate for each family, and none is shared: a family's smallest row is met
[ "$(grep -c '^ *[0-9].* rate$' <<<"$out")" -eq 5 ] || fail "not five rows gave a rate"

# plans matter: the same network on as many devices by tensor parallelism is slower, as measured
awk '$1 == 139 { data = $(NF - 1) } $1 == 147 { tensor = $(NF - 1) } END { exit !(tensor > 1.2 * data) }' <<<"$out" ||
    fail "tensor parallelism is not predicted to be slower"

# a pair of a DGX-1's GPUs has one NVLink: two groups of four are quicker, as measured
awk '$1 == 157 { fours = $(NF - 1) } $1 == 159 { pairs = $(NF - 1) } END { exit !(pairs > fours) }' <<<"$out" ||
    fail "tensor parallelism in pairs is not predicted to be slower than in fours"

# the range of all other families holds most rows: of three families it is wide enough or not by their own steps
read -r held of < <(sed -n 's/^# \([0-9]*\) of \([0-9]*\) rows ([0-9]* %) lie in the range of all other families$/\1 \2/p' <<<"$out")
[ "${of:-0}" -eq 17 ] && [ "$held" -ge 1 ] && [ "$held" -le 17 ] || fail "no range: $held of $of rows"

# quoted commas, another order of the columns and more of them; a missing column; a short row
sed '1s/^id,/extra,id,/; 2,$s/^/"a ""b"", c",/' "$rows" >"$dir/more.csv"
[ "$("$GHP_BIN/ghp-published" "$dir/more.csv" | tail -n 1)" = "$last" ] || fail "another column changes the result"
sed '1s/,tp,/,other,/' "$rows" >"$dir/less.csv"
"$GHP_BIN/ghp-published" "$dir/less.csv" >"$dir/out" 2>&1 && fail "takes a file without a column"
grep -q "no column 'tp'" "$dir/out" || fail "does not name the missing column: $(cat "$dir/out")"
{ cat "$rows" && echo '7,short'; } >"$dir/short.csv"
"$GHP_BIN/ghp-published" "$dir/short.csv" >"$dir/out" 2>&1 && fail "takes a row without fields"
grep -q 'short.csv:[0-9]* has 2 fields' "$dir/out" || fail "does not name the short row: $(cat "$dir/out")"

[ $failures -eq 0 ] && echo "$last"
[ $failures -eq 0 ]
