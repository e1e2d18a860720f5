#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/run/test_checkpoint.sh - what checkpoints survive: a newest one that is damaged or cut gives way to the
# one before it, which is named; a full disk costs checkpoints and metrics, each said, but not the run, which exits 1.
# They are as many as --checkpoint-epochs and --checkpoint-every say, and evaluations come as --eval-every says. In
# short tests executor/state/checkpoint stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 --strategy model -o plan.json >out 2>&1 ||
    { cat out >&2; exit 1; }

# run ARGS...: 8 steps by two workers, a checkpoint after every second
run() {
    ranks 2 run plan.json --steps 8 --numerics exact --threads 1 --json --checkpoint-every 2 --watchdog 600 "$@"
}
hash() { sed -n 's/^ *"weights_hash": "\(.*\)",*$/\1/p' out; }
says() { grep -qe "$1" err || fail "$2 does not say '$1', but: $(head -c 1500 err)"; }
mounted=
trap '[ -z "$mounted" ] || umount full; rm -rf "$scratch"' EXIT

run --checkpoint whole || fail "a plain run exits $?: $(cat err)"
want=$(hash)
[ -n "$want" ] || fail "no weights_hash"
[ "$(echo $(ls whole))" = "checkpoint.previous.safetensors checkpoint.safetensors" ] ||
    fail "beside the checkpoints: $(ls whole)"

# the newest of 8 steps is damaged, then cut: training continues from the one of 6 steps, to the same bits
for how in damaged cut; do
    rm -rf kept && cp -r whole kept
    newest=kept/checkpoint.safetensors
    if [ $how = cut ]; then
        truncate -s 100000 $newest
    else
        printf '\377\377\377\377' | dd of=$newest bs=1 seek=200000 conv=notrunc status=none
    fi
    run --checkpoint kept --resume || fail "$how: exit $?: $(cat err)"
    says "$newest.*; continuing from the checkpoint before it, 'kept/checkpoint.previous.safetensors', of 6 steps" $how
    [ "$(hash)" = "$want" ] || fail "$how: other weights than an uninterrupted run"
done

# both are
truncate -s 1000 kept/*
run --checkpoint kept --resume && fail "resumed from damaged checkpoints"
says 'nor can the one before it be used' "a folder of damaged checkpoints"

rm kept/checkpoint.previous.safetensors
run --checkpoint kept --resume && fail "resumed from a damaged checkpoint"
says 'there is no checkpoint before it: put a copy of one in its place, or begin again with --overwrite' \
    "a damaged checkpoint alone"

# metrics that cannot be written
run --checkpoint kept --overwrite --metrics /dev/full
[ $? = 1 ] || fail "lost metrics: not exit 1"
says 'warning: no more metrics' 'a run without room for metrics'
says 'the training is done, but its metrics are kept in part' 'a run without room for metrics'
[ "$(hash)" = "$want" ] || fail "lost metrics: other weights"

# how often: 4 epochs of 8 steps; by workers who keep step, and by asynchronous ones
mkdir black
{ printf '\0\0\10\3\0\0\0\100\0\0\0\34\0\0\0\34' && head -c 50176 /dev/zero; } >black/train-images-idx3-ubyte
{ printf '\0\0\10\1\0\0\0\100' && head -c 64 /dev/zero; } >black/train-labels-idx1-ubyte
for part in images-idx3 labels-idx1; do cp black/train-$part-ubyte black/t10k-$part-ubyte; done
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 --sync gosgd:0.5 -o free.json >out 2>&1 ||
    fail "no plan of asynchronous workers: $(cat out)"
# Asynchronous workers meet when the news of a due step has come to all, so they may be some steps past it: the last two
# of 30 and 32 may be one.
kept() { # kept PLAN FILES OPTION...: FILES files are written, by asynchronous workers that or one less
    local files
    rm -rf often
    ranks 2 run "$1" --epochs 4 --data "idx:$PWD/black" --normalise none --eval off --threads 1 --json --run run.json \
        --checkpoint often "${@:3}" || fail "$1, ${*:3}: $(cat err)"
    files=$(sed -n 's/.*"files": \([0-9]*\).*/\1/p' run.json)
    [ "$files" = "$2" ] || { [ "$1" = free.json ] && [ "$2" -gt 2 ] && [ "$files" = $(($2 - 1)) ]; } ||
        fail "$1, ${*:3}: '$files' files, not $2"
    "$GHP_BIN/ghp-inspect" often 2>&1 | grep -q '32 steps' || fail "$1, ${*:3}: the last checkpoint is not of the end"
}
for how in plan.json free.json; do
    kept $how 4
    kept $how 1 --checkpoint-epochs 0
    kept $how 2 --checkpoint-epochs 2
    kept $how 4 --checkpoint-epochs 0 --checkpoint-every 10
    kept $how 5 --checkpoint-epochs 2 --checkpoint-every 10
done

# evaluations of 32 steps, 8 an epoch: after each epoch, and after every few steps
evaluated() { # evaluated PLAN DUE OPTION...: after the steps where one is due, by asynchronous workers there or later
    rm -f lines
    ranks 2 run "$1" --epochs 4 --data "idx:$PWD/black" --normalise none --threads 1 --metrics lines "${@:3}" ||
        fail "$1, ${*:3}: $(cat err)"
    got=$(echo $(sed -n 's/.*"step":\([0-9]*\),.*"test_loss".*/\1/p' lines))
    if [ "$1" = free.json ]; then
        awk -v got="$got" -v due="$2" 'BEGIN {
            dues = split(due, d); n = split(got, g); next_due = 1
            for (i = 1; i <= n; i++) {
                if (g[i] < d[next_due]) exit 1 # none was due
                while (next_due <= dues && d[next_due] <= g[i]) next_due++
            }
            exit !(n > dues / 2 && g[n] == d[dues])
        }' || fail "$1, ${*:3}: evaluated after '$got', due after '$2'"
    else
        [ "$got" = "$2" ] || fail "$1, ${*:3}: evaluated after '$got', not '$2'"
    fi
}
for how in plan.json free.json; do
    evaluated $how '8 16 24 32'
    evaluated $how '5 8 10 15 16 20 24 25 30 32' --eval-every 5
done
run --eval-every 3 --eval off && fail "--eval off with --eval-every"
says 'leave one of them out' "--eval off with --eval-every"
run --eval-every 3 --checkpoint evaluated --metrics synthetic.lines || fail "--eval-every of synthetic data: $(cat err)"
[ "$(grep -c test_loss synthetic.lines)" = 3 ] || fail "--eval-every of synthetic data: $(cat synthetic.lines)"

# a disk with room for one checkpoint of half a megabyte
mkdir full
if mount -t tmpfs -o size=800k ghp full 2>/dev/null; then
    mounted=yes
    run --checkpoint full
    [ $? = 1 ] || fail "a full disk: not exit 1"
    [ "$(grep -c 'warning: no checkpoint after [468] steps: .*No space left' err)" = 3 ] ||
        fail "not three lost checkpoints: $(cat err)"
    says "the checkpoint after the last step, 8, could not be written into 'full'" 'a full disk'
    [ "$(hash)" = "$want" ] || fail "a full disk: other weights"
    [ "$(ls full)" = checkpoint.safetensors ] || fail "a full disk: left $(ls full)"
    mount -o remount,size=8m full
    run --checkpoint full --resume || fail "the disk has room again: exit $?: $(cat err)"
    says 'resuming after step 2' 'the disk has room again'
    [ "$(hash)" = "$want" ] || fail "the disk has room again: other weights"

    # one with room for none: nothing is there to resume
    rm full/* && mount -o remount,size=100k full
    run --checkpoint full --metrics lost.jsonl
    [ $? = 1 ] || fail "no room at all: not exit 1"
    again="into 'full', and there is none before it; make room there, and train again with --overwrite"
    says "the checkpoint after the last step, 8, could not be written $again" 'no room at all'
    ranks 2 run plan.json --steps 100000000 --threads 1 --checkpoint full --checkpoint-epochs 0 \
        --heartbeat beat &
    waits 60 grep -qsE '^step +0*[1-9]' beat || fail "no step is done"
    kill -USR1 "$(pgrep -P $!)"
    wait $!
    [ $? = 1 ] || fail "no room at all, and a signal: not exit 1"
    says "ended after .* steps; their checkpoint is lost" 'a signal without room'
    says "could not be written $again" 'a signal without room'
    mount -o remount,size=8m full
    run --checkpoint full --metrics lost.jsonl --overwrite || fail "as it says: exit $?: $(cat err)"
else
    echo "no file system may be mounted here: the full disk is left to executor/checkpoint"
fi
exit $((failures > 0))
