#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/together/test_former.sh - former names of options set what their new names set; files of former versions
# are refused by one sentence that says what to do. In short tests core/plan/plan stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

profile() { "$GHP_BIN/ghp-profile" "$@"; }
plan() { "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$1" --batch 8 "${@:2}"; }
run() { mpirun --oversubscribe --bind-to none -n 1 "$GHP_BIN/ghp-run" plan.json --threads 1 --bind none "$@"; }

# taken 'NAME=VALUE ...' COMMAND...: COMMAND --json says that these options, by their new names, have these values
taken() {
    local pair
    "${@:2}" --json >out 2>err </dev/null || fail "${*:2}: $(tail -n 3 err)"
    sed -n '/^ "options": {$/,$p' out >options
    for pair in $1; do
        grep -qE "^  \"${pair%%=*}\": \"${pair#*=}\",?\$" options || fail "${*:2}: not $pair: $(cat options)"
    done
}

analytic "$model" profile.json
plan 1 -o plan.json >out 2>err || fail "plan: $(cat err)"

# ghp-plan
taken 'bucket-cap=4MiB load-balance=equal mip-gap=0.1 pipeline=off' \
    plan 2 --bucket-bytes 4MiB --shares equal --gap 0.1 --roles shared
taken 'pipeline=auto max-stages=2 max-micro-batches=4' plan 2 --roles all --most-stages 2 --most-micro-batches 4
for names in "--bucket-cap 0|--bucket-bytes 0" "--mip-gap 0.2|--gap 0.2" "--pipeline auto|--roles all"; do
    # shellcheck disable=SC2086 # an option and its value
    plan 2 ${names%|*} -o new.json >out 2>err && plan 2 ${names#*|} -o former.json >out 2>err ||
        fail "$names: $(cat err)"
    cmp <(sed 's/"search_s": .*//' new.json) <(sed 's/"search_s": .*//' former.json) || fail "$names: other plans"
done
denied 2 'is given twice' plan 2 --mip-gap 0.1 --gap 0.2

# ghp-run
taken 'lr-schedule=cosine' run --steps 1 --schedule cosine
taken 'compare=1 compare-rounds=2 compare-turn=0.5 compare-warmup=1' \
    run plan.json --ab 1 --ab-rounds 2 --ab-turn 0.5 --ab-warmup 1
denied 2 "leave --train-fraction out" run --steps 1 --split 0.5
denied 2 "bad value 'none-such' for '--inject-fault'" run --steps 1 --fault none-such
denied 2 "bad value 'none' for '--failpoint'" run --steps 1 --inject-accident none

# ghp-profile
machine=(--machine-only --hwloc 'core:2 pu:1' -o machine.json)
denied 2 '--bucket-cap has no use' profile "${machine[@]}" --bucket 8MiB
denied 2 '--homogeneous has no use' profile "${machine[@]}" --alike
denied 2 '--validate has no use' profile "${machine[@]}" --held-out profile.json

# files of version 1
profile "${machine[@]}" >out 2>err || fail "machine: $(cat err)"
run --steps 1 --run run.json >out 2>err || fail "run: $(tail -n 3 err)"
for kind in machine profile plan run; do
    grep -q "\"format\": \"ghp.$kind/2\"" $kind.json || fail "$kind.json is of no version 2"
    sed "s|\"ghp.$kind/2\"|\"ghp.$kind/1\"|" $kind.json >$kind.1.json
    denied 1 "the format is 'ghp.$kind/1', but this version of ghp reads 'ghp.$kind/2'; make the file again" \
        "$GHP_BIN/ghp-inspect" $kind.1.json
done
denied 1 "reads 'ghp.profile/2'; make the file again" \
    "$GHP_BIN/ghp-plan" "$model" --profile profile.1.json --workers 2 --batch 8
denied 1 "reads 'ghp.machine/2'; make the file again" plan 2 --machine machine.1.json
mv plan.1.json plan.json
denied 1 "reads 'ghp.plan/2'; make the file again" run --steps 1

[ $failures -eq 0 ]
