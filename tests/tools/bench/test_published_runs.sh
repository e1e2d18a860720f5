#!/usr/bin/env bash
# ghp-test: timeout=60 full=yes needs=ghp-published
# tests/tools/bench/test_published_runs.sh - published runs are predicted by their own plans, and their files are read
# with care: a row that ghp cannot say has its reason, and a file without a column is refused. In short tests
# tools/plan/golden_steps stands for it.
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

# rows as other publications write them: what cannot be predicted has its reason, and stops no other row
row=$(grep '^176,' "$rows")
odd() { sed "s/^176,DLPerf v1.0/$1,family $1/; $2" <<<"$row"; }
{
    printf '\xef\xbb\xbf' && head -n 1 "$rows" # as spreadsheets write UTF-8
    odd 1001 's/V100-SXM2-16GB, 8 a node/A30, 8 a node/'
    odd 1002 's/V100-SXM2-16GB/8xL4/; s/resnet50-v1.5/ResNet-50/'
    odd 1003 's/resnet50-v1.5 ImageNet/GPT-2 124M/; s/,224,/,1024,/'
    odd 1004 's/"V100-SXM2-16GB, 8 a node",1,/A100,,/; s/1024,128,224,8,/1024,64,224,16,/; s/,8,1,1,/,16,1,1,/'
    odd 1005 's/V100-SXM2-16GB/H100 NVL/'
    odd 1006 's/V100-SXM2-16GB/A10G/'
    odd 1007 's/,1024,128,/,1.5k,128,/'
    odd 1008 's/0.32712/327 ms/'
    odd 1009 's/0.32712/1e-9/'
    odd 1010 's/,8,1,1,/,4,1,1,/'
    odd 1011 's/,224,/,299,/'
    odd 1012 's/,fp32,/,,/'
    odd 1013 's/"V100-SXM2-16GB, 8 a node",1,/H100,1,/; s/1024,128,224,8,/128000,128,224,1000,/; s/,8,1,1,/,1000,1,1,/'
    odd 1014 's/"V100-SXM2-16GB, 8 a node",1,/A100,2,/; s/IB 100 Gb/Ethernet/; s/1024,128,224,8,/1024,64,224,16,/; s/,8,1,1,/,16,1,1,/'
    odd 1015 's/"V100-SXM2-16GB, 8 a node",1,/"V100-SXM2-16GB, 8 a node",3,/'
    odd 1017 's/V100-SXM2-16GB/V100-PCIE-16GB/'
    odd 1018 's/resnet50-v1.5 ImageNet/Llama 2 70B LoRA/; s/,224,/,4096,/'
    odd 1019 's/,fp32,/,FP8 and BF16,/; s/V100-SXM2-16GB/H100/'
    odd 1020 's/,fp32,/,bf16,/'
    odd 1021 's/,fp32,/,"mixed, fp16 with fp32 weights",/; s/0.32712/0.09/'
    odd 1022 's/,fp32,/,fp16,/; s/0.32712/0.09/'
    odd 1023 's/,1024,128,224,8,/,1024,128,224,8000000000,/; s/,8,1,1,/,,,,/'
    odd 1016 's/family 1016/family 1001/; s/V100-SXM2-16GB, 8 a node/A10, 8 a node/' # another machine has its own rate
} >"$dir/odd.csv"
(cd "$dir" && "$GHP_SOURCE/bench/published" odd.csv) >"$dir/out" 2>&1 || fail "odd rows: $(tail -n 1 "$dir/out")"
for id in 1001 1002 1003 1004 1016 1021 1022; do
    grep -q "^ *$id .* rate$" "$dir/out" || fail "row $id gives no rate: $(grep " *$id " "$dir/out")"
done
for reason in '1005 .*no named machine' '1006 .*no named machine' '1007 .*no batch' '1008 .*no seconds' \
    '1009 .*no rate of computing' '1010 .*do not make 8 devices' '1011 .*of 224 pixels' '1012 .*no precision' \
    '1017 .*no named machine' '1018 .*adapters' '1019 .*compute in FP8' '1020 .*no figure for bf16' \
    '1023 .*no number of devices' '1013 .*more than the 8 GPUs' '1014 .*no rate of the links' '1015 .*not as many on each of 3 nodes'; do
    grep -q "^ *$reason" "$dir/out" || fail "no '$reason': $(grep "^ *${reason%% *} " "$dir/out")"
done

# words of half precision come before those of the weights
[ "$(grep -c '^# the rate is row 102[12].s: \([0-9.]*\) of' "$dir/out")" = 2 ] || fail "no rates of 1021 and 1022"
[ "$(sed -n "s/^# the rate is row 102[12]'s: //p" "$dir/out" | sort -u | wc -l)" = 1 ] ||
    fail "mixed precision is not fp16: $(grep "row 102[12]'s" "$dir/out")"
# quoted commas, another order of the columns and more of them; a missing column; a short row
sed '1s/^id,/extra,id,/; 2,$s/^/"a ""b"", c",/' "$rows" >"$dir/more.csv"
[ "$("$GHP_BIN/ghp-published" "$dir/more.csv" | tail -n 1)" = "$last" ] || fail "another column changes the result"
sed '1s/,tp,/,other,/' "$rows" >"$dir/less.csv"
"$GHP_BIN/ghp-published" "$dir/less.csv" >"$dir/out" 2>&1 && fail "takes a file without a column"
grep -q "no column 'tp'" "$dir/out" || fail "does not name the missing column: $(cat "$dir/out")"
# no row, and one that gives its own rate: nothing was predicted, so nothing was met
head -n 1 "$rows" >"$dir/none.csv"
"$GHP_BIN/ghp-published" "$dir/none.csv" >"$dir/out" 2>&1 && fail "takes a file without rows"
grep -q 'none.csv has no rows after its first line' "$dir/out" || fail "does not say that rows are missing: $(cat "$dir/out")"
{ head -n 1 "$dir/odd.csv" && grep '^1001,' "$dir/odd.csv"; } >"$dir/one.csv"
(cd "$dir" && "$GHP_SOURCE/bench/published" one.csv) | tail -n 1 | grep -qx 'rows 1 said 0 mean - % worst - % rank -' ||
    fail "one row has an error"
(cd "$dir" && "$GHP_SOURCE/bench/published" one.csv) | grep 'all other families' && fail "one family has others"
{ cat "$rows" && echo '7,short'; } >"$dir/short.csv"
"$GHP_BIN/ghp-published" "$dir/short.csv" >"$dir/out" 2>&1 && fail "takes a row without fields"
grep -q 'short.csv:[0-9]* has 2 fields' "$dir/out" || fail "does not name the short row: $(cat "$dir/out")"

[ $failures -eq 0 ] && echo "$last"
[ $failures -eq 0 ]
