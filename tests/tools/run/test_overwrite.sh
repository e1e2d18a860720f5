#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-launch,ghp-train
# tests/tools/run/test_overwrite.sh - a training that is kept is never replaced unsaid: a run that is not resumed is
# refused in a folder with checkpoints, and by a metrics file that is not empty, and names what helps. Nothing of what
# is there has changed then. --overwrite replaces it. The same holds for ghp-launch and ghp-train. If two jobs have one
# folder, the second is refused and told whose it is; what a job that was killed leaves is cleared, and that is said. In
# short tests executor/platform/folder_lock and core/base/leftover stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
plan() { # plan NAME FEATURES: a network of that name
    cat >"$1.json" <<END
{"format": "ghp.model/1", "name": "$1", "input": {"channels": 4, "height": 6, "width": 6}, "layers": [
{"name": "flat", "op": "flatten"}, {"name": "fc", "op": "linear", "features": $2},
{"name": "loss", "op": "softmax_cross_entropy"}]}
END
    analytic "$1.json" profile.json
    "$GHP_BIN/ghp-plan" "$1.json" --profile profile.json --workers 2 --batch 8 --strategy data -o "$1.plan" >out 2>&1 ||
        { cat out >&2; exit 1; }
}
plan one 12
plan other 10
export OMPI_MCA_rmaps_base_oversubscribe=1
run() { ranks 2 run "$@" --threads 1 --bind none; }
refused() {
    denied 2 "$1" mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" "${@:2}" --threads 1 --bind none
}
state() { (cd "$1" && md5sum -- *); }
unchanged() {
    [ "$(state kept)" = "$before" ] && cmp -s metrics.jsonl metrics.before || fail "$1: what was kept has changed"
}

run one.plan --steps 20 --checkpoint kept --checkpoint-every 10 --metrics metrics.jsonl || fail "first: $(cat err)"
before=$(state kept)
cp metrics.jsonl metrics.before

holds="'kept' holds a training of 'one' after 20 steps; "
refused "${holds}continue it with --resume, replace it with --overwrite, or name another folder with --checkpoint" \
    one.plan --steps 20 --checkpoint kept --metrics metrics.jsonl
refused "${holds}name another folder with --checkpoint, or replace that training with --overwrite" \
    other.plan --steps 20 --checkpoint kept --metrics metrics.jsonl
refused "${holds}name another folder with --checkpoint, or replace" one.plan --verify 2 --checkpoint kept
refused "'metrics.jsonl' holds the metrics of a training; replace them with --overwrite, or name another file with" \
    one.plan --steps 3 --metrics metrics.jsonl
refused "'metrics.jsonl' holds the metrics of a training; continue that training with --resume, replace them with" \
    one.plan --steps 3 --metrics metrics.jsonl --checkpoint new
refused 'give one of them' one.plan --resume --overwrite --checkpoint kept
unchanged 'refused runs'

# the same by the tools that start it; ghp-launch does not try again
launch=("$GHP_BIN/ghp-launch" --mpirun 'mpirun --oversubscribe --bind-to none' --checkpoint kept --pause 0.1)
denied 2 "${holds}continue it with --resume" "${launch[@]}" one.plan -- --steps 20 --threads 1
grep -q 'workers continue with' err && fail "ghp-launch tries again: $(cat err)"
denied 2 "${holds}name another folder" "${launch[@]}" other.plan -- --steps 20 --threads 1
denied 2 "cannot follow '--'" "${launch[@]}" one.plan -- --overwrite
denied 2 "${holds}continue it with --resume" "$GHP_BIN/ghp-train" one.json --workers 2 --batch 8 --backend reference \
    --budget 2 --folder made -- --steps 3 --checkpoint kept --metrics metrics.jsonl
grep -q measuring err && fail "ghp-train measures before it looks into the folder"
unchanged 'refused by other tools'

# one that fails before its first checkpoint is not to be resumed: what is there is another training's
denied 1 'gave up: .*see why, then start it again, as it has no checkpoint yet' "${launch[@]}" one.plan --overwrite \
    --restarts 1 -- --steps 20 --threads 1 --data idx:nowhere
unchanged 'given up'

# the older one alone is a training, too; so is one that cannot be read
mkdir lone && cp kept/checkpoint.previous.safetensors lone
refused "'lone' holds a training of 'one' after 10 steps; continue" one.plan --steps 20 --checkpoint lone
mkdir odd && echo damaged >odd/checkpoint.safetensors
refused "'odd' holds a training; continue it with --resume, replace" one.plan --steps 20 --checkpoint odd
denied 1 'or begin again with --overwrite instead of --resume' mpirun --oversubscribe -n 2 "$GHP_BIN/ghp-run" one.plan \
    --steps 20 --checkpoint odd --resume --threads 1

# what was asked for
run one.plan --steps 20 --checkpoint odd --overwrite || fail "--overwrite of a damaged one: $(cat err)"
run other.plan --steps 4 --checkpoint kept --metrics metrics.jsonl --overwrite || fail "--overwrite: $(cat err)"
[ "$(wc -l <metrics.jsonl)" = 4 ] || fail "--overwrite: $(wc -l <metrics.jsonl) lines of metrics"
[ "$(echo $(ls kept))" = checkpoint.safetensors ] || fail "--overwrite leaves $(ls kept)"
"${launch[@]}" one.plan --overwrite -- --steps 20 --threads 1 --metrics metrics.jsonl >out 2>err || fail "$(cat err)"
"$GHP_BIN/ghp-inspect" kept >out 2>&1
grep -q '20 steps' out || fail "ghp-launch --overwrite: $(cat out)"
: >empty.jsonl
run one.plan --steps 3 --metrics empty.jsonl || fail "an empty metrics file: $(cat err)"

# two jobs in one folder
mkdir two
(
    cd two || exit
    exec mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" ../one.plan --steps 100000000 --threads 1 \
        --bind none --checkpoint ../busy --checkpoint-every 1000 --metrics metrics.jsonl >out 2>err </dev/null
) &
job=$!
trains() { [ -s two/metrics.jsonl ]; }
waits 60 trains || fail "does not train: $(cat two/err)"
process=$(sed -n 's/^process //p' busy/checkpoint.lock)
in_use="another job trains into 'busy': process $process of host '$(hostname)', since 20.*; wait for its end, or name"
for how in --resume --overwrite; do
    denied 1 "$in_use" mpirun --oversubscribe -n 2 "$GHP_BIN/ghp-run" one.plan --steps 9 --checkpoint busy $how
    denied 1 "$in_use" "$GHP_BIN/ghp-launch" one.plan --checkpoint busy $how -- --steps 9
done
alive "$process" && [ -e busy/checkpoint.lock ] || fail "the first job has not gone on: $(cat two/err)"
kill -9 $(pgrep -P $job) $job
wait $job 2>/dev/null
gone() { ! alive "$process"; }
waits 20 gone || fail "process $process lives on"
run one.plan --steps 9 --checkpoint busy --overwrite || fail "behind a job that was killed: $(cat err)"
grep -q "ghp-run: 'busy/checkpoint.lock' is cleared: its job is gone, process $process of host" err ||
    fail "does not say that it clears a lock: $(cat err)"
[ "$(echo $(ls busy))" = checkpoint.safetensors ] || fail "what is left: $(ls busy)"
exit $((failures > 0))
