#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp-plan,ghp-profile,ghp-run,ghp-inspect
# tests/tools/inspect/test_show_checkpoint.sh - ghp-inspect shows a checkpoint: both generations, steps, optimizer,
# size, tensors, whether the checksum holds. A damaged one is said, and the one before it shown.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 8 --optimizer adamw -o plan.json >out 2>&1 &&
    "$GHP_BIN/ghp-run" plan.json --steps 5 --checkpoint kept --checkpoint-every 3 >out 2>&1 </dev/null ||
    { cat out >&2; exit 1; }
inspect() { "$GHP_BIN/ghp-inspect" "$@"; }

inspect kept >out 2>err || fail "$(cat err)"
[ "$(grep -c 'whole: its checksum holds' out)" = 2 ] || fail "not two whole files: $(head out)"
grep -qE '^kept/checkpoint.safetensors +5 +adamw +[0-9]+ +[0-9.]+ ' out || fail "the newest: $(head out)"
grep -qE '^kept/checkpoint.previous.safetensors +3 +adamw' out || fail "the one before: $(head out)"
grep -q "model 'lenet5' after 5 steps, seed 1, batches of 8" out || fail "no head"
grep -qE '^variance.fc1.weight +[0-9x]+ +float' out || fail "no moments"
[ "$(number step <(inspect kept --json))" = 5 ] || fail "--json"
[ "$(number step <(inspect kept/checkpoint.previous.safetensors --json))" = 3 ] || fail "a file alone"

# one byte of the newest
damage() { printf '\377' | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") - 2)) conv=notrunc 2>/dev/null; }
damage kept/checkpoint.safetensors
inspect kept >out 2>err || fail "a damaged newest: $(cat err)"
[ "$(grep -c 'whole: its checksum holds' out)" = 1 ] || fail "a damaged newest is whole: $(head out)"
grep -q "model 'lenet5' after 3 steps" out || fail "not the one before it: $(head out)"
inspect kept/checkpoint.safetensors >out 2>err && fail "a damaged file: exit 0"
grep -q "^ghp-inspect: .*checkpoint.safetensors" err || fail "a damaged file: $(cat err)"
damage kept/checkpoint.previous.safetensors
inspect kept >out 2>err && fail "two damaged files: exit 0"

# no checkpoint
printf '\002\0\0\0\0\0\0\0{}' >other.safetensors
denied_by() { inspect "$1" >out 2>err && fail "$1: exit 0"; grep -q "$2" err || fail "$1: $(cat err)"; }
denied_by other.safetensors 'is not a checkpoint of ghp-run'
denied_by nothing.safetensors 'nothing.safetensors'
denied 2 'are about plans' "$GHP_BIN/ghp-inspect" other.safetensors --html x.html
exit $((failures > 0))
