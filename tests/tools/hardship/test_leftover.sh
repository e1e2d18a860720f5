#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/hardship/test_leftover.sh - mpirun and its workers are killed (signal 9) while they train: what they leave
# in the checkpoint's folder and in shared memory goes with the next run, and what a living run has stays. In short
# tests core/base/leftover stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 -o plan.json >out 2>&1 ||
    { cat out >&2; exit 1; }
cat >rank.sh <<'SH'
#!/bin/sh
echo $$ >"$1.$OMPI_COMM_WORLD_RANK"
shift
exec "$@"
SH
chmod +x rank.sh

# segments NAME: the shared memory that the ranks of a run have mapped
segments() { cat "/proc/$(cat "$1.0")/maps" "/proc/$(cat "$1.1")/maps" | grep -o '/dev/shm/[^ ]*' | sort -u; }
# start NAME STEPS ARGS...: a run in the background that trains when this returns, its mpirun's number in $job
start() {
    mpirun --oversubscribe --bind-to none -n 2 ./rank.sh "$1" "$GHP_BIN/ghp-run" plan.json --steps "$2" \
        --metrics "$1.jsonl" "${@:3}" >out 2>err </dev/null &
    job=$!
    for ((i = 0; i < 600; i++)); do
        [ -s "$1.jsonl" ] && return
        sleep 0.05
    done
    fail "$1 does not train: $(cat err)"
}

start living 100000000
living=$job kept=$(segments living)
start killed 100000000 --checkpoint folder --checkpoint-every 1
left=$(segments killed)
echo "shared memory: living" $kept, killed $left
for ((i = 0; i < 600; i++)); do # in the middle of a checkpoint, once all threads stand: one may be about to rename it
    kill -STOP "$(cat killed.0)"
    sleep 0.02
    compgen -G 'folder/*.tmp-*' >/dev/null && break
    kill -CONT "$(cat killed.0)"
    sleep 0.005
done
kill -9 $job "$(cat killed.0)" "$(cat killed.1)"
wait $job 2>/dev/null
sleep 0.5
compgen -G 'folder/*.tmp-*' >/dev/null || fail "no checkpoint was half-written"
ranks 2 run plan.json --steps 2 --checkpoint folder --overwrite || fail "the next run exits $?: $(head -5 err)"
[ "$(ls folder)" = checkpoint.safetensors ] || fail "beside the checkpoint: $(ls folder)"
for file in $left; do [ ! -e "$file" ] || fail "$file of the killed run is still there"; done
for file in $kept; do [ -e "$file" ] || fail "$file of the living run is gone"; done
kill $living
wait $living 2>/dev/null
exit $((failures > 0))
