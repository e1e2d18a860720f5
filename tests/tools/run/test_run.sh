#!/usr/bin/env bash
# ghp-test: timeout=240 needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/run/test_run.sh - ghp-run as a user sees it: report, JSON, metrics, repeats, resuming under another plan
# and worker count, evaluation, verification that passes and that fails, the run file, binding.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/small-resnet.json
first= second=

# run N ARGS...: ghp-run by N workers; stdout in out, stderr in err
run() { ranks "$1" run "${@:2}"; }
says() { grep -qe "$2" "$1" || { fail "$1 lacks '$2':"; head -20 "$1" >&2; }; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" out; }

# plan WORKERS FILE ARGS...: by $profile
profile=profile.json
plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile $profile --workers "$1" --batch 12 -o "$2" "${@:3}" >/dev/null 2>&1 ||
        fail "planning $2"
}
analytic "$model" profile.json
plan 2 auto2.json
plan 4 data4.json --strategy data
plan 2 model2.json --strategy model
plan 3 data3.json --strategy data
plan 1 one.json --strategy data

# the report, and the same run as JSON
run 2 auto2.json --steps 6 || fail "a plain run exits $?"
for text in 'predicted' 'measured' 'backward_weight' '^step ' 'a.conv1' 'images/s' 'equal to the byte'; do
    says out "$text"
done
says err 'numerics fast'
if full; then
    # an analytic profile does not know kernels' scratch: the plan says so, and the run has both sums
    "$GHP_BIN/ghp-plan" "$GHP_SOURCE/models/vgg-a-32.json" --profile profile.json --workers 2 --batch 4 -o vgg.json \
        >vgg 2>&1 || fail "$(tail -1 vgg)"
    says vgg "memory is without kernels' scratch"
    run 2 vgg.json --steps 1 || fail "vgg-a-32 exits $?"
    planned=$(sed -n 's/^ghp .*  \([0-9.]* [KMG]iB\)  .*/\1/p' vgg)
    says out "predicted $planned by the plan, with the scratch .* (equal to the byte)"
fi
run 2 auto2.json --steps 6 --json --seed 3 || fail "--json exits $?"
for key in predicted_step_s measured_step_s images_per_s max_relative_difference max_relative_gradient_difference \
    test_accuracy peak_bytes; do
    says out "\"$key\""
done
[ "$(value peak_bytes)" = "$(value allocated_bytes)" ] || fail "predicted and allocated bytes differ"

# the program that was costed is the one that runs; a plan that does not name it, or the files that it was made of, is
# run as it is
costed=$(sed -n 's/^  "program_hash": "\(.*\)",$/\1/p' auto2.json)
[ "$(value program_hash)" = "$costed" ] || fail "another program ran"
sed 's/"program_hash": "...\(.*\)"/"program_hash": "fff\1"/' auto2.json >other.json
run 2 other.json --steps 1 && fail "another program than the costed one was run"
says err 'was costed as program fff'
run 2 other.json --steps 1 --precision double --backend reference || fail "--precision is refused: $(tail -1 err)"
sed '/"program_hash"/d; /^  "\(model\|profile\)_path"/d' auto2.json >silent.json
run 2 silent.json --steps 1 || fail "a plan without program_hash and paths exits $?"

if full; then
    # steps that a profile of this backend predicted otherwise, and how surely, are said to be so, early and at the end
    sed 's/"backend": "analytic"/"backend": "onednn"/; s/"numerics": "[a-z]*"/"numerics": "fast"/' profile.json |
        python3 -c "import json, sys; p = json.load(sys.stdin); p['disturbed'] = 1e-4; json.dump(p, open('sure.json', 'w'))"
    profile=sure.json plan 2 sure.plan.json --strategy data
    run 2 sure.plan.json --steps 40 || fail "a run of 40 steps exits $?"
    says err 'steps take .* predicted were .* +- '
    says out "beyond twice the prediction's own error"
fi

# exact runs repeat bit for bit
run 2 auto2.json --steps 6 --json --numerics exact && first=$(value weights_hash)
run 2 auto2.json --steps 6 --json --numerics exact && second=$(value weights_hash)
[ -n "$first" ] && [ "$first" = "$second" ] || fail "two exact runs differ: $first $second"

# the thread that reduces changes no bit; plans of several stages need it
run 2 auto2.json --steps 6 --json --numerics exact --overlap off || fail "--overlap off exits $?"
[ "$(value weights_hash)" = "$first" ] || fail "without overlap other bits: $first $(value weights_hash)"
plan 2 stages2.json --stages 1,fc1:1
run 2 stages2.json --steps 2 --overlap off && fail "--overlap off was taken for two stages"
says err 'plans of one stage'

# steps, epochs and the metrics file: 8192 / 12 steps an epoch, a line each
run 2 auto2.json --steps 7 --metrics metrics.jsonl --lr-schedule cosine --warmup 3 --lr 0.1 || fail "metrics"
[ "$(grep -c '"loss"' metrics.jsonl)" = 7 ] || fail "metrics.jsonl has not 7 lines"
says metrics.jsonl '"learning_rate":0.1[,}]'

# evaluation over all 1024 samples, though the batch does not divide them
run 3 data3.json --steps 2 --eval on --json || fail "--eval exits $?"
[ "$(value test_samples)" = 1024 ] || fail "evaluated $(value test_samples) samples"

# stop under one plan, continue under others
options=(--precision double --numerics exact --lr 0.02 --json)
run 1 one.json --steps 8 "${options[@]}" || fail "the whole run"
whole=$(value final_loss)
run 2 model2.json --steps 3 "${options[@]}" --checkpoint kept || fail "first part"
run 4 data4.json --steps 6 "${options[@]}" --checkpoint kept --resume || fail "second part"
run 3 data3.json --steps 8 "${options[@]}" --checkpoint kept --resume || fail "third part"
awk -v a="$whole" -v b="$(value final_loss)" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-10 && d > -1e-10) }' ||
    fail "resumed loss $(value final_loss), uninterrupted $whole"
[ "$(echo $(ls kept))" = "checkpoint.previous.safetensors checkpoint.safetensors" ] ||
    fail "beside the checkpoints: $(ls kept)"
run 3 data3.json --steps 8 "${options[@]}" --checkpoint kept --resume || fail "resuming a finished run exits $?"
says err 'nothing is left to train'
run 3 data3.json --steps 7 "${options[@]}" --checkpoint kept --resume && fail "resumed behind its end"
says err 'raise --steps'
run 3 data3.json --steps 9 "${options[@]}" --checkpoint kept --resume --seed 2 && fail "resumed with another seed"
says err 'seed 1'

# verification passes in double, fails with a fault, refuses a fault that cannot act
run 2 model2.json --verify 3 --precision double || fail "--verify exits $?"
says out '^PASS'
says out 'same bits'
run 4 data4.json --verify 2 --precision double --inject-fault drop-reduction && fail "a dropped reduction passed"
says out '^FAIL'
run 4 data4.json --verify 2 --precision double --inject-fault bias-times-k && fail "a fault without effect was accepted"
says err 'changes nothing'

# the run file
run 2 auto2.json --steps 4 --run kept.run.json || fail "--run exits $?"
"$GHP_BIN/ghp-inspect" kept.run.json >out 2>err || fail "ghp-inspect refuses the run: $(cat err)"
says out 'backward_weight'

# usage: exit 2, before anything starts, said once
run 2 auto2.json --verify 3 --steps 4
[ $? = 2 ] || fail "--verify with --steps is no usage error"
[ "$(grep -c '^ghp-run:' err)" = 1 ] || fail "a usage error is said $(grep -c '^ghp-run:' err) times"

if full; then
    # a measured profile of this machine: workers go to the cores that the plan names
    ranks 2 profile --model "$model" --workers 2 --batch 12 --budget 4 -o here.json || fail "profiling"
    profile=here.json plan 2 here.plan.json
    run 2 here.plan.json --steps 5 --bind require || fail "--bind require exits $?: $(grep ghp-run err)"
    says err 'bound to processor(s) [0-9, -]* memory '
    run 2 here.plan.json --steps 5 --bind none || fail "--bind none exits $?: $(grep ghp-run err)"
    grep -q 'memory' err && fail "--bind none binds memory: $(grep memory err)"
fi

[ "$failures" = 0 ] && echo "ghp-run does what it says"
exit $((failures > 0))
