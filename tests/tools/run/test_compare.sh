#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/run/test_compare.sh - ghp-run PLAN PLAN2 --compare STEPS: the table, the object, the run files; that
# training by the winner gives the bits of training by it alone; and what it refuses to compare. In short tests
# executor/compare/candidates and executor/compare/host_load stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

# run N ARGS...: ghp-run by N workers; stdout in out, stderr in err
run() { ranks "$1" run "${@:2}"; }
says() { grep -qe "$2" "$1" || { fail "$1 lacks '$2':"; head -30 "$1" >&2; }; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" out; }

# refused CODE 'TEXT' N ARGS...: exits with CODE, says TEXT, prints nothing on stdout
refused() {
    run "${@:3}"
    local got=$?
    [ $got = "$1" ] || fail "${*:4}: exit $got, expected $1: $(tail -n 3 err)"
    says err "$2"
    [ ! -s out ] || fail "${*:4}: chatter on stdout"
}

# plan WORKERS STRATEGY FILE ARGS...: for $model, $profile and $batch
profile=profile.json batch=12
plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile $profile --workers "$1" --batch $batch --strategy "$2" -o "$3" "${@:4}" \
        >/dev/null 2>&1
}
analytic "$model" profile.json
plan 2 data data.json && plan 2 model model.json && plan 2 owt owt.json && plan 3 data data3.json &&
    plan 3 auto auto3.json && plan 1 data one.json && cp one.json same.json || fail planning

# the table: a row a plan, the first compared with itself, no prediction by another backend's profile, somebody won
run 2 data.json model.json --compare 4 || fail "a comparison exits $?: $(tail -n 3 err)"
says out '^data.json  *data  *-  *[0-9.]*  *[0-9.]*  *-  *1.0000  1.0000  1.0000$'
says out '^model.json  *model '
says out "^winner '\(data\|model\).json'"
says out 'interval.* 97.9 %' # ten rounds: docs/reference/formats.md
grep -q 'images/s' out && fail 'trained without --steps or --epochs'

# the object: three plans, six rounds that are the six orders; medians lie within their rounds
run 2 data.json model.json owt.json --compare 3 --compare-rounds 6 --compare-warmup 1 --run-dir runs --json ||
    fail "--json exits $?"
for text in '"format": "ghp.comparison/2"' '"interval_coverage": 0.96875' '"training": null' '"plan": "owt.json"' \
    '"foreign_share"'; do
    says out "$text"
done
[ "$(grep -c '"order"' out)" = 6 ] || fail "$(grep -c '"order"' out) rounds"
[ "$(tr -d ' \n' <out | grep -o '"order":\[[123],[123],[123]\]' | sort -u | wc -l)" = 6 ] ||
    fail 'six rounds are not the six orders'
tr -d ' \n' <out | grep -o '"measured_step_s":[^,]*\|"rounds_s":\[[^]]*\]' | tr -d '"]' | tr '[' , | tr : ' ' |
    awk '{ if ($1 == "measured_step_s") { m = $2; next }
           n = split($2, r, ","); below = above = 0
           for (i = 2; i <= n; i++) { below += r[i] <= m; above += r[i] >= m; if (!(r[i] > 0)) bad = 1 }
           if (n != 7 || below < 3 || above < 3) bad = 1; plans++ }
         END { exit !(plans == 3 && !bad) }' || fail "medians and rounds: $(cat out)"
cp out compared.json
"$GHP_BIN/ghp-inspect" compared.json >out 2>err || fail "ghp-inspect refuses the comparison: $(cat err)"
says out '^winner '
says out '^model.json  *model '

# each plan's run: all its steps' losses, every instruction; resident memory of several arenas in one process says
# nothing
[ "$(ls runs)" = "$(printf '%s\n' 1-data.run.json 2-model.run.json 3-owt.run.json)" ] || fail "run files: $(ls runs)"
says runs/2-model.run.json '"steps": 24[,}]'
says runs/2-model.run.json '"strategy": "model"'
says runs/2-model.run.json '"peak_rss_over_base_bytes": null'
says runs/2-model.run.json '"instruction"'
"$GHP_BIN/ghp-inspect" runs/2-model.run.json >out 2>err || fail "ghp-inspect refuses a run: $(cat err)"
says out 'backward_weight'

# training afterwards: the winner's, from the first weights, bit for bit as if it had been run alone
for more in '--steps 7' '--steps 7 --lr-schedule cosine --warmup 2 --weight-decay 0.01'; do
    # shellcheck disable=SC2086 # words
    run 2 owt.json model.json data.json --compare 3 --compare-rounds 2 --numerics exact $more --json ||
        fail "--compare with $more exits $?: $(tail -n 3 err)"
    winner=$(value winner) hash=$(value weights_hash) loss=$(value final_loss)
    # shellcheck disable=SC2086 # words
    run 2 "$winner" --numerics exact $more --json || fail "'$winner' alone exits $?"
    [ -n "$hash" ] && [ "$hash" = "$(value weights_hash)" ] ||
        fail "after --compare $hash, alone $(value weights_hash) ($winner, $more)"
    [ -n "$loss" ] && [ "$loss" = "$(value final_loss)" ] ||
        fail "after --compare $loss, alone $(value final_loss) ($winner, $more)"
done
run 2 data.json model.json --compare 3 --compare-rounds 2 --steps 4 --metrics metrics.jsonl --run run.json ||
    fail "--compare with files exits $?"
[ "$(grep -c '"loss"' metrics.jsonl)" = 4 ] || fail "metrics.jsonl has not 4 lines"
says out 'images/s'
says out 'too few rounds'
says run.json '"first_step": 0[,}]'

# one worker, and three; one plan compared with its copy. A winner of two equal plans is named
run 1 one.json same.json --compare 2 --compare-rounds 6 || fail "one worker exits $?: $(tail -n 3 err)"
run 3 data3.json auto3.json --compare 2 --compare-rounds 6 || fail "three workers exit $?: $(tail -n 3 err)"

# a profile of this backend: predictions and errors are shown
ranks 2 profile --model "$model" --workers 2 --batch 12 --budget 3 -o here.json || fail profiling
for strategy in data model; do
    profile=here.json plan 2 $strategy here.$strategy.json || fail planning
done
run 2 here.data.json here.model.json --compare 4 || fail "measured plans exit $?: $(tail -n 3 err)"
says out '^here.model.json  *model  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[-+][0-9.]*  *[0-9.]*  [0-9.]*  [0-9.]*$'
refused 1 'other nodes or cores' 2 here.data.json model.json --compare 4
run 2 here.data.json model.json --compare 2 --bind none || fail "--bind none exits $?: $(tail -n 3 err)"
says out '^model.json  *model  *-'

# memory: a limit that plans were made for is overstepped with a warning, the machine's is not
plan 2 data small.json --memory 1300KiB || fail 'planning with --memory'
run 2 small.json model.json --compare 2 --compare-rounds 1 || fail "limited plans exit $?: $(tail -n 3 err)"
says err 'warning: the plans together take .* more than the 1.27 MiB'
analytic "$GHP_SOURCE/models/vgg16.json" vgg16.json
model=$GHP_SOURCE/models/vgg16.json profile=vgg16.json batch=131072 plan 2 data huge.json --memory 1024TiB
refused 1 'need [0-9.]* TiB a worker at once.*compare fewer' 2 huge.json huge.json --compare 2 --backend reference

# what differs in more than the plan is not compared
batch=14 plan 2 data other-batch.json
sed 's/"name": *"lenet5"/"name": "lenet6"/' "$model" >lenet6.json
model=lenet6.json plan 2 data other-model.json
refused 1 'global batches of 12 and 14' 2 data.json other-batch.json --compare 2
refused 1 "two models, 'lenet5' and 'lenet6'" 2 data.json other-model.json --compare 2
refused 1 "'data3.json' is for 3 worker(s), but 2 were started" 2 data.json data3.json --compare 2
refused 5 'diverged; lower --lr' 2 data.json model.json --compare 5 --lr 1e6

# usage
refused 2 'give one, or --compare STEPS' 2 data.json model.json
refused 2 'give two or more' 2 data.json --compare 2
refused 2 'verify one plan alone' 2 data.json model.json --compare 2 --verify 2
refused 2 'give --steps or --epochs too' 2 data.json model.json --compare 2 --run run.json
refused 2 'give --run FILE' 2 data.json --run-dir runs
refused 1 "cannot make '/proc/nowhere': No such file" 2 data.json model.json --compare 2 --run-dir /proc/nowhere

[ "$failures" = 0 ] && echo "ghp-run compares plans"
exit $((failures > 0))
