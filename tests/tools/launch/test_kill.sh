#!/usr/bin/env bash
# ghp-test: timeout=1500 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/launch/test_kill.sh - a training that is killed (signal 9) at a random moment, while it computes,
# reduces or writes one of its many checkpoints: the last checkpoint always loads; the resumed run has the losses,
# metrics and weights of the uninterrupted one - bit for bit under the same plan (float on oneDNN and double on the
# reference backend in turn), to rounding under another plan and worker count (double); what the kill left
# half-written is gone afterwards. 2 kills, in full runs 3; GHP_ALL=1 or GHP_KILLS=N: 50 or N. GHP_SEED repeats a
# sequence of kills. In short tests executor/state/checkpoint and executor/launcher/job stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
kills=2
full && kills=3
[ "${GHP_ALL:-0}" = 1 ] && kills=50
kills=${GHP_KILLS:-$kills}
RANDOM=${GHP_SEED:-$$}
echo "GHP_SEED=${GHP_SEED:-$$}, $kills kills"
model=$GHP_SOURCE/models/small-resnet.json
steps=24
unstarted=0  # killed before the first checkpoint
unfinished=0 # killed while a checkpoint was being written
finished=0   # killed after the last one
other=0

fail() {
    echo "FAILED: kill $turn: $*" >&2
    [ -s err ] && head -5 err >&2
    failures=$((failures + 1))
}

# What mpirun starts: leaves its process number, which the tool then takes over.
cat >rank.sh <<'SH'
#!/bin/sh
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
SH
chmod +x rank.sh

# launch N ARGS...: ghp-run by N workers, many checkpoints
launch() {
    local precision=(--precision float)
    [ "$mode" = double ] && precision=(--precision double --backend reference)
    mpirun --oversubscribe --bind-to none -n "$1" ./rank.sh "$GHP_BIN/ghp-run" "${@:2}" "${precision[@]}" \
        --steps $steps --numerics exact --lr 0.02 --json --checkpoint kept --checkpoint-every 1 \
        --metrics metrics.jsonl --watchdog 600 >out 2>err </dev/null
}
clean() { ! ls kept | grep -vxE 'checkpoint(\.previous)?\.safetensors' || fail "beside the checkpoints: $(ls kept)"; }
curve() { sed 's/"images_per_s":[^,]*,//' "$1"; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$2"; }
losses() { awk '/"losses": \[/ { on = 1; next } /\]/ { on = 0 } on { gsub(/[ ,]/, ""); print }' "$1"; }
now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
has_checkpoint() { [ -e kept/checkpoint.safetensors ]; }
is_writing() { compgen -G 'kept/checkpoint.safetensors.tmp-*' >/dev/null; }

# waits SECONDS COMMAND...: until the command succeeds, without a pause
waits() {
    local end=$(($(now_ms) + 1000 * $1))
    until "${@:2}"; do
        [ "$(now_ms)" -lt $end ] || return 1
    done
}

analytic "$model" profile.json
plan() { # plan WORKERS FILE OPTIONS...
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$1" --batch 12 "${@:3}" -o "$2" >/dev/null 2>&1 ||
        exit 1
}
plan 2 mixed2.json --force '*=in:max,*conv1=out:2'
plan 1 other1.json --strategy data
plan 3 other3.json --strategy data

turn=reference
declare -A window_ms # from the first checkpoint to the end
for mode in float double; do
    rm -rf kept metrics.jsonl
    launch 2 mixed2.json &
    job=$!
    waits 60 has_checkpoint
    begin=$(now_ms)
    wait $job || { fail "the uninterrupted run in $mode"; exit 1; }
    window_ms[$mode]=$(($(now_ms) - begin))
    mv out $mode.json
    curve metrics.jsonl >$mode.curve
    losses $mode.json >$mode.losses
    [ "$(wc -l <$mode.losses)" = $steps ] || { fail "$(wc -l <$mode.losses) losses of $steps steps"; exit 1; }
done

# Starts a run and kills rank 0, the last rank, or all at once, mpirun first; all of them have ended when it returns
# (mpirun ends those that are left). When: every sixth while it starts, the others some time after the first
# checkpoint, and half of these once a checkpoint is being written.
kill_a_run() {
    local delay=$((RANDOM * 32768 + RANDOM)) ranks mpirun_pid victims job
    rm -rf kept metrics.jsonl pid.*
    launch 2 mixed2.json 2>/dev/null &
    job=$!
    waits 60 eval '[ -s pid.0 ] && [ -s pid.1 ]'
    ranks="$(cat pid.0) $(cat pid.1)"
    mpirun_pid=$(ps -o ppid= -p "${ranks% *}" | tr -d ' ')
    [ $((RANDOM % 6)) = 0 ] || waits 60 has_checkpoint
    sleep "$(awk -v d=$delay -v window="${window_ms[$mode]}" 'BEGIN { printf "%.3f", d / 2^30 * window / 1000 }')"
    [ $((RANDOM % 2)) = 0 ] || ! has_checkpoint || waits 1 is_writing
    case $((RANDOM % 3)) in
    0) victims=${ranks% *} ;;
    1) victims=${ranks#* } ;;
    2) victims="$mpirun_pid $ranks" ;;
    esac
    # shellcheck disable=SC2086
    kill -9 $victims 2>/dev/null
    wait $job 2>/dev/null
    # shellcheck disable=SC2086
    waits 20 eval "! kill -0 ${ranks% *} 2>/dev/null && ! kill -0 ${ranks#* } 2>/dev/null" || fail "ranks live on"
}

# The rest of the run under the same plan: equal to the bit.
check_same() {
    launch 2 mixed2.json "$@" || { fail "resuming exits $?"; return; }
    clean
    [ "$(value weights_hash out)" = "$(value weights_hash $mode.json)" ] || fail "other weights than uninterrupted"
    losses out >rest.losses
    tail -n "$(wc -l <rest.losses)" $mode.losses | cmp -s - rest.losses || fail "other losses than uninterrupted"
    curve metrics.jsonl | cmp -s - $mode.curve || fail "the metrics are not those of an uninterrupted run"
}

# Under another plan and worker count, in double: sums of other order leave differences of some 1e-13 after these steps;
# 1e-10 leaves room. In float a relu within rounding of its kink may fall the other way (docs/explanation/exactness.md),
# after which runs part, so there is nothing to hold it to.
check_other() {
    local n=$1
    launch "$n" "other$n.json" --resume || { fail "resuming by $n exits $?"; return; }
    clean
    other=$((other + 1))
    losses out >rest.losses
    tail -n "$(wc -l <rest.losses)" $mode.losses | paste - rest.losses | awk '
        { d = $1 - $2; if (d < 0) d = -d; if (!(d <= 1e-10)) bad = 1; n++ } END { exit bad || n == 0 }' ||
        fail "by $n workers: losses differ by more than 1e-10"
}

for ((turn = 1; turn <= kills; turn++)); do
    mode=$([ $((turn % 2)) = 0 ] && echo float || echo double)
    kill_a_run
    is_writing && unfinished=$((unfinished + 1))
    done_steps=$(head -c 100000 kept/checkpoint.safetensors 2>/dev/null | grep -ao '"step":"[0-9]*"' | tr -dc 0-9)
    if [ -z "$done_steps" ]; then
        [ -e kept/checkpoint.safetensors ] && fail "a checkpoint without steps"
        unstarted=$((unstarted + 1))
        check_same --overwrite # from scratch, over the metrics of its first steps, if there are any
    elif [ "$done_steps" = $steps ]; then
        finished=$((finished + 1))
        launch 2 mixed2.json --resume || fail "resuming a finished run exits $?"
        grep -q 'nothing is left' err || fail "the last checkpoint does not load"
    else
        cp -r kept killed && cp metrics.jsonl killed.jsonl
        check_same --resume
        rm -rf kept && mv killed kept && mv killed.jsonl metrics.jsonl
        [ $mode = float ] || check_other $((turn % 4 == 1 ? 3 : 1))
    fi
done
echo "$kills kills: $unstarted before the first checkpoint, $finished after the last," \
    "$unfinished while one was written;" \
    "$other resumed by another plan too; $failures failures"
exit $((failures > 0))
