#!/usr/bin/env bash
# ghp-test: timeout=120 label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/run/test_tensorboard.sh - tensorboard reads from --tensorboard what --metrics has, of a resumed run too.
# Wants a python3 (GHP_PYTHON) that has tensorboard, for all but the refusals.
set -u
python=${GHP_PYTHON:-python3}
script=$GHP_SOURCE/tests/tools/run/tensorboard_read.py
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 --clip-norm 1 -o plan.json >out 2>&1 ||
    { cat out >&2; exit 1; }
run() { ranks 2 run plan.json --threads 1 "$@"; }

: >file
run --steps 2 --tensorboard file && fail "a file as the folder"
grep -q "ghp-run: cannot write 'file/events" err || fail "a file as the folder: $(cat err)"

run --steps 6 --eval on --metrics metrics.jsonl --tensorboard events --checkpoint kept || fail "$(cat err)"
ls events/events.out.tfevents.* >/dev/null || fail "no event file"

"$python" -c 'import tensorboard' 2>/dev/null || {
    echo "left out: '$python' lacks tensorboard; set GHP_PYTHON to one that has it" >&2
    [ $failures -eq 0 ] && exit 77
    exit 1
}

# same: what tensorboard reads is what the metrics file has, as floats
same() {
    "$python" "$script" events >scalars 2>err || { fail "tensorboard: $(tail -n 3 err)"; return; }
    "$python" - >said 2>err <<'PY' || fail "$1: $(cat err) $(cat said)"
import json, struct
names = {"loss": "train/loss", "top1": "train/top1", "images_per_s": "train/samples_per_s",
         "learning_rate": "train/learning_rate", "gradient_norm": "train/gradient_norm", "test_loss": "test/loss",
         "test_top1": "test/top1"}
wanted = {}
for line in map(json.loads, open("metrics.jsonl")):
    for key, tag in names.items():
        if key in line:
            wanted[tag, line["step"] - key.startswith("test")] = struct.unpack("f", struct.pack("f", line[key]))[0]
rows = [line.split() for line in open("scalars")]
read = {(tag, int(step)): float(value) for tag, step, value in rows}
print(sorted(set(wanted.items()) ^ set(read.items()))[:6])
assert len(rows) == len(read) and read == wanted and len(read) > 30
PY
}
same 'a run'

# continued from a checkpoint, past steps that were trained already
cp -r kept earlier
run --steps 12 --eval on --metrics metrics.jsonl --tensorboard events --checkpoint kept --resume || fail "$(cat err)"
same 'a resumed run'
rm -r kept && mv earlier kept
sleep 1.1 # files are told apart by the second
run --steps 14 --eval on --metrics metrics.jsonl --tensorboard events --checkpoint kept --resume || fail "$(cat err)"
same 'a run that was thrown back'
exit $((failures > 0))
