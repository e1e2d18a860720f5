#!/usr/bin/env bash
# ghp-test: timeout=240 needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/test_calibrate.sh - from runs to a corrected profile and a plan by it: run files, where their error sits,
# --calibrate, and what it refuses.  Whether calibration helps is this machine's matter: both answers are right here.
set -u
. "$(dirname "$0")/scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

run() { mpirun --oversubscribe --bind-to none -n "$1" "$GHP_BIN/ghp-run" "${@:2}" >out 2>err </dev/null; }
plan() { "$GHP_BIN/ghp-plan" "$@" >out 2>err; }
says() { grep -qE -e "$2" "$1" || { fail "$1 lacks '$2':"; head -30 "$1" >&2; }; }

mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-profile" --model "$model" --workers 2 --batch 16 --budget 5 -o measured.json >out 2>err ||
    fail "profiling: $(cat err)"
for s in data owt model; do
    plan "$model" --profile measured.json --workers 2 --batch 16 --strategy $s -o $s.plan.json || fail "planning $s: $(cat err)"
    run 2 $s.plan.json --steps 12 --numerics fast --run $s.run.json || fail "running $s: $(cat err)"
done

# one run, then all of them: terms, layers, the sentence
"$GHP_BIN/ghp-inspect" owt.run.json >out 2>err || fail "ghp-inspect refuses a run: $(cat err)"
for text in '^conv2d forward +2 ' '^all_gather over 2, to ' '^waiting for partners ' '^between instructions +1 ' \
    '^# layers, each with' '^step predicted .* of the error sits in ' '^# instructions'; do says out "$text"; done
"$GHP_BIN/ghp-inspect" data.run.json owt.run.json model.run.json >out 2>err || fail "ghp-inspect refuses three runs: $(cat err)"
says out '^model.run.json +lenet5 +model +2 '
says out '^between instructions +3 '
"$GHP_BIN/ghp-inspect" data.run.json owt.run.json --json >out 2>err || fail "--json of two runs: $(cat err)"
for key in runs terms reductions error_layers where; do says out "\"$key\": "; done

# measured terms of worker 0 sum to its step
if command -v python3 >/dev/null; then
    "$GHP_BIN/ghp-inspect" owt.run.json --json >one.json
    python3 - <<'PY' || fail "terms do not sum to the step"
import json, sys
run = json.load(open("one.json"))
for which in "measured", "predicted":
    terms, step = sum(t[which + "_s"] for t in run["terms"]), run[which + "_step_s"]
    if abs(terms - step) > 1e-6 * step:  # sums of some hundred reals, each good to 1e-15
        sys.exit(f"{which}: {terms} is not {step}")
PY
fi

# calibrating: yes or no, but the tables either way
plan "$model" data.run.json owt.run.json model.run.json --calibrate --profile measured.json -o corrected.json
code=$?
for text in '^owt.run.json +owt ' '^conv2d forward +[0-9.]+ ' '^between instructions +1\.000 ' 'held out; worst'; do says out "$text"; done
case $code in
0) [ -s corrected.json ] || fail "the corrected profile is not written" ;;
3)
    [ -e corrected.json ] && fail "a profile that does not help is written"
    says err 'calibration cannot help: .*--force-calibrate'
    ;;
*) fail "--calibrate exits $code: $(cat err)" ;;
esac
plan "$model" data.run.json owt.run.json model.run.json --calibrate --force-calibrate --profile measured.json -o corrected.json ||
    fail "--force-calibrate: $(cat err)"
says corrected.json '"calibration": '
says corrected.json '"source": "calibrated"'
"$GHP_BIN/ghp-inspect" corrected.json >out 2>err || fail "ghp-inspect refuses it: $(cat err)"
says out '^# calibrated .* by 3 run'
says out '^[a-z].* calibrated'

# a plan by it is sound, runs, and its run knows the corrections
plan "$model" --profile corrected.json --workers 2 --batch 16 --strategy owt -o again.plan.json || fail "planning by it: $(cat err)"
"$GHP_BIN/ghp-inspect" again.plan.json --verify >out 2>err || fail "the plan by it does not hold: $(cat err)"
run 2 again.plan.json --steps 6 --run again.run.json || fail "running by it: $(cat err)"
grep -q '"phase": "between", "predicted_s": 0.0,' again.run.json && fail "the run predicts nothing between instructions"
says again.run.json '"phase": "between", "predicted_s": [0-9]'

# what does not fit
calibrate=("$GHP_BIN/ghp-plan" --calibrate --profile measured.json -o refused.json)
denied 1 'calibrated already' "$GHP_BIN/ghp-plan" "$model" data.run.json --calibrate --profile corrected.json
denied 1 'is not the model' "${calibrate[@]}" "$GHP_SOURCE/models/vgg-a-32.json" data.run.json
denied 1 'give runs of 2 workers' "${calibrate[@]}" "$model" <(sed 's/"workers": 2/"workers": 4/' data.run.json)
denied 1 'not of 4; leave --workers out' "${calibrate[@]}" "$model" data.run.json --workers 4
denied 1 'ghp-run --run' "${calibrate[@]}" "$model" <(grep -v '"measured_own_s"' data.run.json | sed 's/, "measured_own_s": [-0-9.e]*//')
denied 2 'no run given' "${calibrate[@]}" "$model"
denied 2 'add --calibrate' "$GHP_BIN/ghp-plan" "$model" data.run.json --profile measured.json
denied 2 'needs --calibrate' "$GHP_BIN/ghp-plan" "$model" --force-calibrate --profile measured.json --workers 2 --batch 16
denied 2 'makes no plan' "${calibrate[@]}" "$model" data.run.json --memory 1GiB
denied 2 'only runs are shown together' "$GHP_BIN/ghp-inspect" data.run.json owt.run.json "$model"
"$GHP_BIN/ghp-plan" "$model" data.run.json --calibrate --profile measured.json -o refused.json >out 2>err
[ $? = 3 ] || fail "one run alone does not exit 3"
says err 'one run cannot show'
[ -e refused.json ] && fail "a refused calibration left a file"

[ "$failures" = 0 ] && echo "runs correct a profile as they should"
exit $((failures > 0))
