#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes label=mpi processors=2 needs=ghp-train,ghp-plan,ghp-run,ghp-profile
# tests/tools/run/test_train.sh - from a network to its training with one command: only what the choice hangs on is
# measured, in the end nothing more is wanted, and a second time nothing is measured. Its own sentence is the last line
# of what fails, signals reach the training, and nothing outlives it. In short tests tools/launch/commands stands for
# it.
set -u
. "$(dirname "$0")/../scratch.sh"
cat >tiny.json <<END
{"format": "ghp.model/1", "name": "tiny", "input": {"channels": 4, "height": 6, "width": 6}, "layers": [
{"name": "conv", "op": "conv2d", "channels": 12, "kernel": 3, "pad": 1},
{"name": "relu", "op": "relu"},
{"name": "pool", "op": "max_pool", "kernel": 2},
{"name": "flat", "op": "flatten"},
{"name": "fc", "op": "linear", "features": 12},
{"name": "loss", "op": "softmax_cross_entropy"}]}
END
tiny=("$GHP_BIN/ghp-train" tiny.json --workers 2 --batch 8 --backend reference --budget 60)
train() { "${tiny[@]}" "$@" >out 2>err || fail "ghp-train: $(cat err)"; }

train -- --steps 3 --json
cp err first
grep -q '"steps": 3' out || fail "not three steps: $(head -c 400 out)"
grep -q '"wanted": \[\]' ghp-tiny-n2-b8/wanted.json || fail "still wanted: $(cat ghp-tiny-n2-b8/wanted.json)"
grep -q 'measuring what data parallelism takes' err || fail "does not say what it measures: $(cat err)"
"$GHP_BIN/ghp-plan" tiny.json --workers 2 --batch 8 --profile ghp-tiny-n2-b8/profile.json --wanted list.json \
    >out 2>err || fail "ghp-plan --wanted: $(cat err)"
[ -s out ] && fail "--wanted alone makes more than the list: $(head -n 3 out)"
cmp -s list.json ghp-tiny-n2-b8/wanted.json || fail "another list: $(cat list.json)"
train --folder again --plan-only
[ -s out ] && fail "chatter on stdout: $(cat out)"
# later turns ask for what measurements of this time say; of workers that were not equally fast nothing is kept
if ! grep -q 'not equally fast' first err; then
    grep '^operations' err | head -n 1 | grep -q '^operations  *0 ' || fail "measured again: $(cat err)"
fi
grep -q 'again/plan.json. is made in' err || fail "does not say where the plan is: $(cat err)"

# parameters sharded: what that takes is measured, too
train --folder sharded --shard pass -- --verify 2
grep -q '"wanted": \[\]' sharded/wanted.json || fail "--shard: still wanted: $(cat sharded/wanted.json)"
denied 2 'give one of none, gradients, step' "${tiny[@]}" --folder odd --plan-only --shard zero4

# the last line is its own, whatever mpirun adds
last() {
    [ "$(tail -n 1 err)" = "ghp-train: ghp-run ended with exit code $1; what to do is said above" ] ||
        fail "ends with: $(tail -n 1 err)"
}
# what ghp-run or ghp-plan would refuse is refused before anything is measured
early() { # early CODE TEXT ARGS...
    "${tiny[@]}" --folder fresh "${@:3}" >out 2>err
    [ $? = "$1" ] || fail "${*:3}: exit code not $1: $(cat err)"
    grep -q "$2" err || fail "${*:3}: not the reason: $(cat err)"
    grep -q 'measuring' err && fail "${*:3}: refused only after measuring"
    [ -e fresh ] && fail "${*:3}: leaves a folder"
    [ -s out ] && fail "${*:3}: chatter on stdout"
}
early 2 "^ghp-run: unknown option '--nonsense'" -- --nonsense
last 2
early 2 "^ghp-train: .* give --optimizer adamw before '--'" -- --steps 3 --optimizer adamw
early 2 "^ghp-train: .* give --optimizer lion before '--'" --optimizer adamw -- --optimizer=lion
early 2 'both --steps and --epochs' -- --steps 3 --epochs 2
early 1 "^ghp-run: no data in 'nowhere'" -- --data idx:nowhere
early 1 "^ghp-run: cannot read 'gone'" -- --data tokens:tiny.json,val:gone,type=uint32
# the network's own weights, and those of --init, are tried before anything is measured
python3 - <<'END'
import json, os, struct
os.makedirs("net")
json.dump({"model_type": "gpt2", "vocab_size": 256, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 2},
          open("net/config.json", "w"))
open("net/model.safetensors", "wb").write(struct.pack("<Q", 2) + b"{}")
END
tiny[1]=net
early 1 "^ghp-run: 'net/model.safetensors' has no tensor .*--init random draws other weights" -- --data bytes:tiny.json
early 1 "^ghp-run: 'net/model.safetensors' has no tensor" -- --data bytes:tiny.json --init net
printf 'version https://git-lfs' >net/model.safetensors
early 1 "^ghp-run: 'net/model.safetensors'.*Git LFS" -- --data bytes:tiny.json
tiny[1]=tiny.json
early 2 "there is no synchroniser 'none'" --sync none
# nor is anything measured for a training that could not be written, or that would replace another one
early 1 "cannot make 'gone/kept': there is no folder 'gone'" -- --checkpoint gone/kept
early 1 "cannot write checkpoints into 'tiny.json'" -- --checkpoint tiny.json
early 1 "there is no checkpoint in 'none'" -- --checkpoint none --resume
[ ! -e none ] || fail "a trial leaves a folder"
early 1 "gone/run.json" -- --run gone/run.json
echo '{"step": 0, "epoch": 0, "loss": 1}' >metrics.jsonl
early 2 "'metrics.jsonl' holds the metrics of a training" -- --metrics metrics.jsonl
early 2 "bad value 'much' for '--clip-norm'" --clip-norm much -- --steps 3
# neither a network that cannot be read nor a plan that is refused touches what a folder has
echo kept >again/profile.json
touch net.py
tiny[1]=net.py
early 1 "^ghp-train: 'net.py' is PyTorch's"
tiny[1]=tiny.json
for wrong in "net.py" "tiny.json --sync none" "tiny.json --freeze no.such"; do
    # shellcheck disable=SC2086
    "$GHP_BIN/ghp-train" $wrong --workers 2 --batch 8 --folder again >out 2>err && fail "$wrong is taken"
    [ "$(cat again/profile.json)" = kept ] || fail "$wrong: the profile is gone"
    [ ! -e again/tried.json ] || fail "$wrong: leaves a file"
done
# nor does a signal while it measures
XDG_CACHE_HOME=$PWD/empty "${tiny[@]}" --folder again --plan-only >out 2>err </dev/null &
job=$!
measures() { grep -q 'measuring what data parallelism takes' err; }
waits 60 measures || fail "does not measure: $(cat err)"
kill -TERM $job
wait $job
[ $? = 4 ] || fail "SIGTERM while it measures: $(cat err)"
[ "$(cat again/profile.json)" = kept ] || fail "SIGTERM while it measures: the profile is gone"
[ ! -e again/earlier.json ] || fail "SIGTERM while it measures: leaves a file"
# options of ghp-plan reach the plan, and a memory that no plan fits is not taken for a bad option
train --folder again --clip-norm 1 --micro-batches 2 --plan-only
grep -q '"clip_norm": *1' again/plan.json || fail "no --clip-norm in the plan"
grep -q '"micro_batches": *2' again/plan.json || fail "no --micro-batches in the plan"
"${tiny[@]}" --folder again --memory 1KiB --plan-only >out 2>err
[ $? = 3 ] || fail "--memory 1KiB: $(cat err)"
grep -q measuring err || fail "--memory 1KiB is refused unmeasured: $(cat err)"
endless() {
    rm -rf metrics.jsonl
    "${tiny[@]}" --folder again -- --steps 100000000 --metrics metrics.jsonl >endless.out 2>err </dev/null &
    job=$!
    waits 60 lines 5 || fail "does not train: $(cat err)"
}
endless
kill -USR1 $job
wait $job
[ $? = 4 ] || fail "SIGUSR1: $(cat err)"
grep -q '^ghp-run: .*ended after' err || fail "SIGUSR1 does not reach the training: $(cat err)"
[ "$(tail -n 1 err)" = 'ghp-train: ended by a signal; ghp-run says above what it kept' ] ||
    fail "SIGUSR1: ends with: $(tail -n 1 err)"

# Ctrl-C, as the terminal gives it: in order, with a checkpoint from which training continues
rm -f metrics.jsonl
mkfifo keys
kept='--checkpoint kept --metrics metrics.jsonl'
TERM=xterm script -qec "${tiny[*]} --folder again -- --steps 100000000 $kept" /dev/null >shown <keys &
job=$!
exec 7>keys
waits 60 lines 5 || fail "does not train: $(cat shown)"
printf '\003' >&7
ended() { ! kill -0 $job 2>/dev/null; }
waits 60 ended || { fail "Ctrl-C does not end it"; kill $job; }
exec 7>&-
wait $job
[ $? = 4 ] || fail "Ctrl-C: not exit 4: $(tail -c 1000 shown)"
tail -n 1 shown | grep -q '^ghp-train: ended by a signal; ghp-run says above' || fail "Ctrl-C: $(tail -c 1000 shown)"
steps=$(sed -n 's/.*ghp-run: SIG[A-Z0-9]* at worker .: ended after \([0-9]*\) of .*--resume continues.*/\1/p' shown)
[ -n "$steps" ] || fail "Ctrl-C: ghp-run does not say what it kept: $(tail -c 1000 shown)"
# shellcheck disable=SC2086
train --folder again -- --steps $((steps + 1)) $kept --resume
endless
kill -9 $job
wait $job 2>/dev/null
still() { n=$(wc -l <metrics.jsonl) && sleep 0.5 && [ "$n" = "$(wc -l <metrics.jsonl)" ]; }
waits 20 still || fail "killed, its workers train on"

denied 2 'one model, --workers and --batch are needed' "$GHP_BIN/ghp-train" tiny.json --workers 2
denied 1 'multiple' "$GHP_BIN/ghp-train" tiny.json --workers 2 --batch 7 --folder odd --plan-only
denied 1 'no-such.json' "$GHP_BIN/ghp-train" no-such.json --workers 2 --batch 8 --folder none --plan-only

[ "$failures" = 0 ] || exit 1
