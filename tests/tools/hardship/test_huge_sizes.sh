#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-inspect,ghp-profile
# tests/tools/hardship/test_huge_sizes.sh - networks, plans and batches whose sizes do not fit in 64 bits are refused by
# each tool with a sentence that names a batch that fits. Networks of large sizes that do fit are planned. In short
# tests core/model/model stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
# 2^38 outputs a sample in one layer: 2^24 samples of them have 2^64 bytes with 4 bytes a value.
wrap() {
    printf '%s\n' '{"format": "ghp.model/1", "name": "wrap", "input": {"channels": 1, "height": 1, "width": 1}, "layers": [
{"name": "c1", "op": "conv2d", "channels": 65536, "kernel": 2, "pad": '$1', "bias": false},
{"name": "c2", "op": "conv2d", "channels": 2, "kernel": 1, "stride": '$((2 * $1))', "bias": false},
{"name": "f", "op": "flatten"}, {"name": "loss", "op": "softmax_cross_entropy"}]}'
}
plan() { timeout 60 "$GHP_BIN/ghp-plan" "$1" --profile an.json --workers "$2" --batch "$3" --memory 100000TiB -o "$4"; }
# refused WHAT COMMAND...: in time, with a sentence
refused() {
    local code=0
    "${@:2}" >out 2>err </dev/null || code=$?
    [ $code = 1 ] || [ $code = 2 ] || fail "${*:2} ends with $code: $(tail -n 3 err)"
    grep -q -- "$1" err || fail "${*:2} says: $(cat err)"
}
ulimit -v 16000000

wrap 1024 >wrap.json
analytic wrap.json an.json
fits='use at most [0-9]* samples'
for batch in 16777216 4194304 1073741824 1099511627776; do
    for workers in 1 4; do
        refused "$fits" plan wrap.json $workers $batch no.json
    done
    refused "$fits" "$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model wrap.json --batch $batch -o no.json
    refused "$fits" "$GHP_BIN/ghp-profile" --model wrap.json --batch $batch --workers 1 -o no.json
done
[ ! -e no.json ] || fail 'a refused plan or profile was written'

# the batch that the sentence names fits
most=$(sed -n 's/.*use at most \([0-9]*\) samples.*/\1/p' err)
plan wrap.json 1 $most fits.json >out 2>&1 || fail "batch $most is refused: $(cat out)"

# a plan that was sound has its batch changed
plan wrap.json 1 64 plan.json >out 2>&1 || fail "batch 64 is refused: $(cat out)"
for batch in 16777216 1099511627776; do
    sed "s/\"global_batch\": 64,/\"global_batch\": $batch,/" plan.json >wrong.json
    cmp -s plan.json wrong.json && fail 'the plan has no global batch of 64'
    refused "$fits" "$GHP_BIN/ghp-run" wrong.json --steps 1
    refused "$fits" "$GHP_BIN/ghp-inspect" wrong.json
done

# a network of which not even one sample fits
wrap 2048 >larger.json
refused '2^39 outputs a sample' "$GHP_BIN/ghp-inspect" larger.json
refused '2^39 outputs a sample' plan larger.json 1 1 no.json

# a long sequence
printf '%s\n' '{"format": "ghp.model/1", "name": "long", "input": {"positions": 1048576, "vocabulary": 65536}, "layers": [
{"name": "e", "op": "embedding", "channels": 65536}, {"name": "o", "op": "linear", "features": 65536},
{"name": "loss", "op": "softmax_cross_entropy"}]}' >long.json
refused "$fits" plan long.json 1 1048576 no.json

[ $failures -eq 0 ]
