#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/data/test_two_classes.sh - networks that tell even digits from odd ones, on written-down pictures: a
# support vector machine by workers that average their weights, and a kernel machine on random features, whose workers,
# when they average after each step over the whole set, go the way of one. Labels by parity, images of length 1, and
# their refusals. In short tests executor/backend/reference/reference and executor/data/data stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"

run() { ranks "$1" run "${@:2}" --json; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" out; }
says() { grep -qe "$2" "$1" || { fail "$1 lacks '$2':"; head -20 "$1" >&2; }; }
plan() { # plan MODEL WORKERS BATCH FILE OPTION...
    analytic "$GHP_SOURCE/models/$1.json" profile.json F=1e10,bandwidth=1e9,latency=1e-6
    "$GHP_BIN/ghp-plan" "$GHP_SOURCE/models/$1.json" --profile profile.json --workers "$2" --batch "$3" \
        --strategy data -o "${@:4}" >/dev/null 2>err || fail "planning $4: $(cat err)"
}
near() { awk -v a="$1" -v b="$2" -v limit="$3" 'BEGIN { d = a - b; exit !(a != "" && d <= limit && d >= -limit) }'; }

bytes() { perl -ne 'print pack "H*", $_' >"$1"; } # bytes FILE: of hexadecimal digits

# 64 digits that differ by where they are bright: digit d has column 2 d + 4 bright, and some noise
mkdir digits
awk 'BEGIN { srand(1)
    printf "0000080300000040" "0000001c0000001c"
    for (s = 0; s < 64; s++) for (i = 0; i < 784; i++)
        printf "%02x", (i % 28 == 2 * (s % 10) + 4 ? 200 : 0) + int(40 * rand()) }' |
    bytes digits/train-images-idx3-ubyte
awk 'BEGIN { printf "0000080100000040"; for (s = 0; s < 64; s++) printf "%02x", s % 10 }' |
    bytes digits/train-labels-idx1-ubyte
for part in images-idx3 labels-idx1; do cp digits/train-$part-ubyte digits/t10k-$part-ubyte; done
data=(--data "idx:$PWD/digits" --labels parity --momentum 0)

# ---- a support vector machine ----
machine=("${data[@]}" --normalise unit --weight-decay 1e-3 --lr 1000 --lr-schedule inverse --epochs 10)
plan svm-mnist 1 1 one.json
run 1 one.json "${machine[@]}" || fail "svm: $(tail -1 err)"
near "$(value test_accuracy)" 1 0.1 || fail "svm: accuracy $(value test_accuracy)"
plan svm-mnist 2 2 two.json --sync local:8
run 2 two.json "${machine[@]}" || fail "svm, averaged: $(tail -1 err)"
near "$(value test_accuracy)" 1 0.1 || fail "svm, averaged: accuracy $(value test_accuracy)"

# ---- a kernel machine: all samples in each step ----
kernel=("${data[@]}" --normalise none --weight-decay 0 --lr 0.003 --steps 40 --precision double)
plan kernel-mnist 1 64 whole.json
run 1 whole.json "${kernel[@]}" || fail "kernel machine: $(tail -1 err)"
whole=$(value final_loss)
near "$whole" 0 0.4 || fail "kernel machine: loss $whole"
plan kernel-mnist 4 64 each.json --sync local:1
run 4 each.json "${kernel[@]}" || fail "kernel machine, averaged: $(tail -1 err)"
near "$(value final_loss)" "$whole" 1e-5 || fail "averaged after each step: loss $(value final_loss), of one $whole"
run 4 each.json "${kernel[@]}" --inject-fault drop-reduction
[ -n "$(value final_loss)" ] || fail "an average that is left out: $(tail -1 err)"
near "$(value final_loss)" "$whole" 1e-5 && fail "an average that is left out is not seen"

# ---- refusals ----
refused() { # refused STATUS TEXT OPTION...
    run 1 one.json --steps 1 "${@:3}"
    [ $? = "$1" ] || fail "${*:3}: does not exit $1"
    says err "$2"
}
refused 2 "labels" --data "idx:$PWD/digits" --labels odd
refused 2 "labels parity is for labelled images" --labels parity
refused 1 "model has 2 classes" --data "idx:$PWD/digits"
refused 2 "step-at" --step-at 0.5,0.6
refused 2 "write --step-at" --lr-schedule step --step-at 0.5

[ "$failures" = 0 ] && echo "even and odd digits are told apart"
exit $((failures > 0))
