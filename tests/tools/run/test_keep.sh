#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-launch,ghp-inspect,python3
# tests/tools/run/test_keep.sh - checkpoints that outlive the two newest: the last K, or the K with the least test loss,
# by what the metrics file says; over a resume, a kill between two of their names, under ghp-launch; loaded by --init;
# gone with the training that --overwrite replaces. In short tests executor/state/checkpoint stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 8 -o plan.json >out 2>&1 || fail "plan: $(cat out)"
train() { "$GHP_BIN/ghp-run" plan.json --lr 0.05 "$@" >out 2>err </dev/null; }
kept() { ls "$1" | sed -n 's/^checkpoint\.step-\([0-9]*\)\.safetensors$/\1/p' | sort -n | tr '\n' ' '; }
keeps() { [ "$(kept "$1")" = "$2" ] || fail "$3: kept '$(kept "$1")', not '$2'"; }

train --steps 10 --checkpoint last --checkpoint-every 2 --keep last:3 || fail "last: $(cat err)"
keeps last '6 8 10 ' 'last:3 of 10 steps'
cmp -s last/checkpoint.safetensors last/checkpoint.step-10.safetensors || fail "the last one is not the newest"
train --steps 14 --checkpoint last --checkpoint-every 2 --keep last:3 --resume || fail "resume: $(cat err)"
keeps last '10 12 14 ' 'last:3 after a resume'
train --steps 16 --checkpoint last --checkpoint-every 2 --resume || fail "resume without: $(cat err)"
keeps last '10 12 14 ' 'a resume without --keep'

# the best by the losses in the metrics file, which a step of the loss has after each evaluation
train --steps 12 --checkpoint best --checkpoint-epochs 0 --eval-every 2 --keep best:2 --metrics metrics || fail "best: $(cat err)"
best=$(python3 -c "
import json
losses = {o['step']: o['test_loss'] for o in map(json.loads, open('metrics')) if o.get('test_loss') is not None}
print(*sorted(sorted(losses, key=lambda step: (losses[step], -step))[:2]), '')")
keeps best "$best" 'best:2'
train --steps 1 --init "best/checkpoint.step-${best%% *}.safetensors" || fail "--init of a kept one: $(cat err)"
"$GHP_BIN/ghp-inspect" "best/checkpoint.step-${best%% *}.safetensors" >out 2>err || fail "ghp-inspect of a kept one: $(cat err)"

# a kill between two of the names: the next save removes the one that is too many
cp last/checkpoint.step-10.safetensors last/checkpoint.step-9.safetensors
train --steps 18 --checkpoint last --checkpoint-every 2 --keep last:3 --resume || fail "one too many: $(cat err)"
keeps last '12 14 18 ' 'one too many'

# a training that is replaced takes its own with it; one of which only these are left is not overwritten unsaid
train --steps 2 --checkpoint last --overwrite --keep last:3 || fail "overwrite: $(cat err)"
keeps last '2 ' 'after --overwrite'
rm last/checkpoint.safetensors
denied 2 "'last' holds a training of 'lenet5' after 2 steps; name another folder with --checkpoint, or replace" \
    "$GHP_BIN/ghp-run" plan.json --steps 2 --checkpoint last

"$GHP_BIN/ghp-launch" plan.json --checkpoint launched --mpirun 'mpirun --oversubscribe --bind-to none' -- --steps 8 \
    --checkpoint-every 2 --keep last:2 >out 2>err </dev/null || fail "ghp-launch: $(cat err)"
keeps launched '6 8 ' 'under ghp-launch'

for bad in last best:0 best:1001 last:2x first:2; do
    denied 2 "bad value '$bad' for '--keep'; give last:K .* or best:K" "$GHP_BIN/ghp-run" plan.json --steps 1 --checkpoint x --keep $bad
done
denied 2 '--keep keeps checkpoints, and none are written; give --checkpoint DIR' "$GHP_BIN/ghp-run" plan.json --steps 1 --keep last:1
denied 1 '--keep best:1 goes by the test loss, and nothing is evaluated; give --eval on, or --keep last:K' \
    "$GHP_BIN/ghp-run" plan.json --steps 1 --checkpoint y --keep best:1
[ $failures -eq 0 ]
