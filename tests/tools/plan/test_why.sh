#!/usr/bin/env bash
# ghp-test: timeout=180 full=yes needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/plan/test_why.sh - why a plan is as it is: every split of a layer, second-best, break-even values and the
# margin, as ghp-plan writes them and ghp-inspect shows them, without the profile. In short tests
# planner/alternatives/break_even and tools/inspect/inspect stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
models=$GHP_SOURCE/models

# says 'TEXT' ARGS...: ghp-inspect ends with 0, nothing on stderr, TEXT (a regular expression) on stdout
says() {
    local text=$1
    shift
    "$GHP_BIN/ghp-inspect" "$@" >out 2>err || { fail "$*: exit $?: $(cat err)"; return; }
    [ -s err ] && fail "$*: chatter on stderr: $(cat err)"
    grep -qE -e "$text" out || fail "$*: does not say '$text'"
}

# refused 'TEXT' ARGS...: bad usage
refused() { denied 2 "$1" "$GHP_BIN/ghp-inspect" "${@:2}"; }

analytic "$models/vgg16.json" p.json F=6e12,bandwidth=1.25e9,latency=20e-6
vgg=("$models/vgg16.json" --profile p.json --workers 16 --batch 1024)
"$GHP_BIN/ghp-plan" "${vgg[@]}" -o plan.json >table 2>noise || fail "$(cat noise)"
[ -s noise ] && fail "chatter on stderr: $(cat noise)"
"$GHP_BIN/ghp-plan" "${vgg[@]}" --no-break-even -o plain.json >/dev/null || fail "--no-break-even"
mv p.json kept.json # the plan is enough

says '^margin: .* by data parallelism.*: .*the error is not known, so the plan that is faster by the profile was taken' \
    plan.json --explain
says '^fc7 +data +in:2 .*inter_bandwidth_Bps +GB/s +1\.25 +0\.969' plan.json --explain
says '^data .* planned$' plan.json --explain fc7
says '^in:2 .* second-best$' plan.json --explain fc7
says '^out:16 ' plan.json --explain fc7
says '^second-best of fc7: in:2, along with fc6.bias channel:2' plan.json --explain fc7
says 'fc7 .*global_batch +samples +1024 +800 +none' plan.json --explain fc7
says 'memory_limit_bytes +MiB +no limit' plan.json --explain fc7
says 'other splits of relu1: not in the plan' plan.json --explain relu1
says '"margin": "' plan.json --explain --json
says '"choices": ' plan.json --explain fc7 --json
says '"break_even": ' plan.json --explain fc7 --json
says '^# searched: off, as asked' plain.json --explain
grep -q '"break_even":' plain.json && fail "--no-break-even has values"

# names that are near, and names that are not
refused "did you mean 'fc6', 'fc7', 'fc8'" plan.json --explain fc9
refused "did you mean .*'conv12'" plan.json --explain conv112
refused 'see its layers' plan.json --explain nothing_like_it

# a margin within the error: the simpler plan, and why
load='"load": {"latency_s": 0.001, "bandwidth_Bps": 1e+12, "spread": 1000.0, "source": "measured"}'
sed "s/\"load\": {[^}]*}/$load/" kept.json >noisy.json
cmp -s kept.json noisy.json && fail "noisy.json is no edit"
noisy=("$models/vgg16.json" --profile noisy.json --workers 16 --batch 1024 --no-break-even)
"$GHP_BIN/ghp-plan" "${noisy[@]}" -o data.json >/dev/null || fail "cannot plan by noisy.json"
says '^margin: .*within the error, so the simpler plan was taken: data parallelism' data.json --explain
says "^error of this plan's step: .* from 'load' of input" data.json --explain
says '^preferred: data parallelism' data.json
"$GHP_BIN/ghp-plan" "${noisy[@]}" --no-simplify -o fast.json >/dev/null || fail "--no-simplify"
says '^margin: .*within the error, but the faster plan was asked for' fast.json --explain

# a transformer: tables, attention and the loss have their splits too, and its two crossovers are told in tokens
nano=("$models/gpt-nano.json" --profile n.json --workers 4 --batch 8)
analytic "$models/gpt-nano.json" n.json F=1e11,bandwidth=1e8,latency=1e-6
"$GHP_BIN/ghp-plan" "${nano[@]}" --crossovers -o nano.json >table || fail "cannot plan gpt-nano"
# the plan of the last batch that is said to split splits, and that of the next does not
for part in blocks embedding; do
    ends=$(sed -nE "s/^# $part.*: split up to ([0-9]+) tokens a step, by data from ([0-9]+) on/\\1 \\2/p" table)
    [ -n "$ends" ] || fail "no crossover of $part: $(cat table)"
    layers=$([ $part = blocks ] && echo '^h\..* (linear|attention) ' || echo '^(wte|lm_head) ')
    for tokens in $ends; do
        "$GHP_BIN/ghp-plan" "$models/gpt-nano.json" --profile n.json --workers 4 --batch $((tokens / 64)) >other
        grep -E "$layers" other | awk '$4 != "data" && $5 != "data" { n++ } END { exit n == 0 }'
        [ $? = $([ "$tokens" = "${ends% *}" ]; echo $?) ] || fail "$part at $tokens tokens: $(cat other)"
    done
done
for op in embedding attention softmax_cross_entropy; do
    grep -qE "^[a-z0-9_.]+ +$op .* [a-z]+(:[0-9])? +[a-z]+(:[0-9])? +[+-]" table ||
        fail "$op has no second best: $(cat table)"
done
says '^tensor-parallel blocks: .*ideal' nano.json --explain
says '^vocabulary-parallel ends: .*ideal' nano.json --explain
says '"blocks_crossover_tokens"' nano.json --explain --json
"$GHP_BIN/ghp-plan" "${nano[@]}" --strategy data --micro-batches 2 -o sums.json >/dev/null 2>err ||
    fail "no sums by data: $(cat err)"
grep -q '"micro_batches": 2' sums.json || fail "no micro-batches"
"$GHP_BIN/ghp-plan" "$models/gpt-nano.json" --profile n.json --sweep workers=1,2 --batch 8 >table || fail "no sweep"
grep -q 'tokens/s' table || fail "a sweep of sequences has no tokens/s: $(cat table)"

# docs/tutorial/4-why-this-plan.md: its commands, but for those that train, print what it shows
page=$GHP_SOURCE/docs/tutorial/4-why-this-plan.md
blocks() { awk -v l="\`\`\`$1" '$0 == l { on = 1; next } /^```/ { on = 0 } on' "$page"; }
blocks json >pair.json
blocks sh | grep -v '^mpirun' >page.sh
PATH=$GHP_BIN:$PATH bash -e page.sh >out 2>err || fail "$page: $(cat err)"
[ "$(blocks text | wc -l)" -gt 2 ] || fail "$page shows no output"
while read -r line; do
    tr -s ' ' <out | grep -qF -e "$line" || fail "$page: nothing prints '$line'"
done < <(blocks text | tr -s ' ')

[ "$failures" = 0 ] && echo "plans say why"
exit $((failures > 0))
