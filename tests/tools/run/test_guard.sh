#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/run/test_guard.sh - ghp-run --guard: on emulated links, where messages take longer than any busy machine,
# a plan that is slower than data parallelism gives way to it in mid-training and the losses continue as they would
# have; one that is faster stays, and its weights are to the bit those of a run without guard. auto acts where the first
# steps are beyond the prediction's error or the profile was disturbed, in trainings of more than 200 steps, and not
# else; what has no guard is refused. In short tests executor/compare/candidates and executor/train/drift stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
steps=62 # 3 that warm up, 32 that are judged, 6 turns of 4, and some more

# run FILE OPTIONS...: by plan.json
run() {
    ranks 2 run plan.json --backend reference --threads 1 --numerics exact --run "$1" "${@:2}" ||
        fail "${*:2}: $(tail -n 3 err)"
}
says() { grep -qe "$2" "$1" || { fail "$1 lacks '$2':"; head -30 "$1" >&2; }; }
lacks() { ! grep -qe "$2" "$1" || { fail "$1 has '$2':"; head -30 "$1" >&2; }; }
hash() { sed -n 's/^ *"weights_hash": "\([0-9a-f]*\)",*$/\1/p' "$1"; }
plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile "${profile:-profile.json}" --workers 2 --batch 2 "$@" -o plan.json \
        >out 2>err || fail "$*: $(cat err)"
}
analytic "$model" profile.json F=1e10,bandwidth=1e9,latency=1e-5

# many messages, each 4 ms late: data parallelism in one bucket has the fewest. In double the losses agree to its
# rounding.
plan --strategy model --bucket-cap 1GiB
run plain.run --steps $steps --precision double --guard off --metrics plain.lines
run turned.run --steps $steps --precision double --guard on --metrics turned.lines --emulate latency=4ms \
    --checkpoint kept --checkpoint-every 10
says err 'in a round that took .* times as long: the training continues with data parallelism$'
says out '^# after step [0-9]* data parallelism took .*: the training continued with it'
says turned.run '"switched": true'
says turned.run '"strategy": "data"'
"$GHP_BIN/ghp-inspect" turned.run >out 2>err || fail "the run cannot be shown: $(cat err)"
[ "$(wc -l <turned.lines)" = $steps ] || fail "$(wc -l <turned.lines) lines of metrics"
paste plain.lines turned.lines >both.lines
sed 's/"[a-z0-9_]*": //g; s/[{},]/ /g' both.lines |
    awk -v n=$steps '{ d = $3 - $(3 + NF / 2); if (d < 0) d = -d }
        $1 != $(1 + NF / 2) || d > 1e-9 { bad = 1 }
        END { exit !(NR == n && !bad) }' || fail "the losses are others: $(tail -n 2 both.lines)"
# the last checkpoint is of the whole training, and continues by either plan
run resumed.run --steps $((steps + 2)) --precision double --guard off --checkpoint kept --resume
says err "resuming after step $steps"

# bytes that take long: all of a large layer's gradient, compared with its few activations
plan --strategy owt
run plain.run --steps $steps --guard off
run kept.run --steps $steps --guard on --emulate port=1e7
says err 'in a round that took .* times as long: the training continues with the plan$'
says kept.run '"switched": false'
says kept.run '"strategy": "owt"'
{ [ -n "$(hash plain.run)" ] && [ "$(hash plain.run)" = "$(hash kept.run)" ]; } ||
    fail 'a plan that is kept ends with other weights'

# auto: by what was predicted, which an edit makes wrong; a shorter training has no guard
sed -i 's/"backend": "analytic"/"backend": "reference"/; s/"numerics": "fast"/"numerics": "exact"/' profile.json
plan --strategy owt
predict() { # predict STEP ERROR: the plan's own prediction, which stands before all others
    awk -v step="$1" -v error="$2" '/"predicted": *\{/ { own++ }
        own == 1 { sub(/"predicted_step_s": *[-0-9.e+]*/, "\"predicted_step_s\": " step)
                   sub(/"error_s": *[-0-9.e+nul]*/, "\"error_s\": " error) }
        { print }' plan.json >edited && mv edited plan.json
}
predict 1e-9 1e-10
run auto.run --steps 201
says err 'timed in turns'
low=$(number ratio_low auto.run) high=$(number ratio_high auto.run)
kept=$(grep -c 'the plan, since 1 is in the range' err)
awk -v l="$low" -v h="$high" -v kept="$kept" 'BEGIN { exit kept != (l <= 1 && h >= 1) }' ||
    fail "[$low, $high] does not decide so: $(grep 'timed in turns' err)"
run auto.run --steps 200
lacks err 'timed in turns'
run auto.run --steps 201 --guard off
lacks err 'timed in turns'
predict 1e-9 1000
run auto.run --steps 201
lacks err 'timed in turns'
sed 's/"element_bytes": *[0-9]*,/& "disturbed": 0.2,/' profile.json >disturbed.json
profile=disturbed.json plan --strategy owt
predict 1e-9 1000
run auto.run --steps 201
says err 'timed in turns'

# what there is nothing to turn to, or no way
refused() { # refused 'TEXT' ARGS...
    ranks 2 run plan.json --steps 60 "${@:2}" && fail "${*:2}: taken"
    says err "$1"
}
plan --strategy data
refused 'is data parallelism already' --guard on
plan --strategy owt --lr-scaling lars
refused 'has state of its own' --guard on
[ $failures -eq 0 ] && echo "a guard turns to data parallelism where that is faster, and else changes nothing"
