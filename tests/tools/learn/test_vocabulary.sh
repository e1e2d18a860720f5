#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_vocabulary.sh - a padded vocabulary trains like itself: on the reference backend bit for bit,
# with the same checkpoint; on oneDNN and divided among two workers to rounding (ghp-run --verify), which have what is
# predicted of memory. A checkpoint goes from one to the other, and a profile says what networks get. In short tests
# core/model/vocabulary stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"

# network NAME MULTIPLE: tests/executor/NAME.json padded, as NAME-MULTIPLE.json
network() { sed "s|^  \"input\"|  \"vocabulary_multiple\": $2,\n&|" "$GHP_SOURCE/tests/executor/$1.json" >"$1-$2.json"; }

# planned NETWORK PLAN WORKERS OPTIONS...
planned() {
    "$GHP_BIN/ghp-plan" "$1" --profile profile.json --workers "$3" --batch 8 "${@:4}" -o "$2" >out 2>err ||
        fail "planning $2: $(cat err)"
}

# trained PLAN OPTIONS...: three steps in double by one worker; says its weights
trained() {
    ranks 1 run "$1" --backend reference --precision double --steps 3 --lr 0.1 --json "${@:2}" || fail "$*: $(cat err)"
    [ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] || fail "$1: allocated is not predicted memory"
    grep '"weights_hash"' out
}

for name in tied tokens; do
    plain=$GHP_SOURCE/tests/executor/$name.json
    network $name 64
    analytic "$plain" profile.json
    planned "$plain" plain.json 1
    planned $name-64.json padded.json 1
    [ "$(grep '"model_hash"' plain.json)" = "$(grep '"model_hash"' padded.json)" ] || fail "$name: another network"
    [ "$(grep '"program_hash"' plain.json)" != "$(grep '"program_hash"' padded.json)" ] || fail "$name: not padded"
    [ "$(number peak_bytes plain.json)" -lt "$(number peak_bytes padded.json)" ] || fail "$name: no more memory"
    one=$(trained plain.json --checkpoint plain --model "$plain")
    other=$(trained padded.json --checkpoint padded --model "$plain")
    [ -n "$one" ] && [ "$one" = "$other" ] || fail "$name: padded $other, else $one"
    cmp plain/checkpoint.safetensors padded/checkpoint.safetensors || fail "$name: other checkpoints"
    [ "$(trained plain.json --init padded/checkpoint.safetensors)" = \
        "$(trained padded.json --init plain/checkpoint.safetensors)" ] || fail "$name: not from the other's checkpoint"
    rm -rf plain padded

    # divided: the logits and their weights by words, by channels, in stages; by the planner
    i=0
    tables="*=data,embed=out:2,out=in:2 *=data,embed=rows:2,out=out:2,loss=channel:2"
    [ $name = tokens ] && tables="*=data,out=in:2 *=data,out=out:2,loss=channel:2"
    for force in $tables; do
        planned $name-64.json divided.json 2 --force "$force"
        ranks 2 run divided.json --verify 3 --lr 0.01 --json || fail "$name by $force: $(head -3 err; cat out)"
        [ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] || fail "$name by $force: memory"
    done
    planned $name-64.json staged.json 2 --stages 1,loss:1
    ranks 2 run staged.json --verify 3 --lr 0.01 --json || fail "$name in stages: $(head -3 err; cat out)"
done

# what a profile says holds for networks that say nothing
sed 's|^  "workers"|  "vocabulary_multiple": 64,\n&|' profile.json >64.json
[ "$(grep -c vocabulary_multiple 64.json)" = 1 ] || fail "no key in the profile: $(head -12 profile.json)"
for model in "$plain" tokens-64.json; do
    "$GHP_BIN/ghp-plan" "$model" --profile 64.json --workers 1 --batch 8 -o by_profile.json >out 2>err ||
        fail "by the profile: $(cat err)"
    [ "$(grep '"program_hash"' by_profile.json)" = "$(grep '"program_hash"' padded.json)" ] ||
        fail "$model: not as the profile says"
done
denied 1 '1 to 4096|at least 1|from 1' "$GHP_BIN/ghp-plan" <(sed 's/: 64,/: 0,/' tokens-64.json) --profile profile.json \
    --workers 1 --batch 8 -o x.json
[ $failures -eq 0 ]
