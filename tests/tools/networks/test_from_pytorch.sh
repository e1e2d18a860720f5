#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_from_pytorch.sh - docs/how-to/from-pytorch.md, then weights-back.md, fine-tuning.md and
# torch-plans.md: their files are written and their commands run, in the order of the pages. Wants a python3 (GHP_PYTHON)
# that has torch, onnx, onnxscript and safetensors. In short tests tools/examples/pytorch_resnet stands for it.
set -u
python=$(command -v "${GHP_PYTHON:-python3}")
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1 PYTHONPATH=$GHP_SOURCE/python PYTHONDONTWRITEBYTECODE=1

"$python" -c 'import torch, onnx, onnxscript, safetensors' 2>/dev/null || {
    echo "skipped: '$python' lacks torch, onnx, onnxscript or safetensors; set GHP_PYTHON to one that has them" >&2
    exit 77
}

# the pages' words for the programs
mkdir bin
printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >bin/python
printf '#!/bin/sh\nexec "%s" -m torch.distributed.run "$@"\n' "$python" >bin/torchrun
chmod +x bin/*
PATH=$PWD/bin:$GHP_BIN:$PATH

# Fenced blocks of sh, and of python that begin with '# NAME.py', and commands inside a sentence that are one whole code
# span beginning with python, in their order, as lines KIND TEXT: the file, or `command`.
awk '
    /^```sh$/ { file = "command"; next }
    /^```python$/ { file = "named below"; next }
    /^```/ { file = ""; next }
    file == "named below" { file = ($1 == "#" && $2 ~ /\.py$/ && NF == 2) ? $2 : "" }
    file != "" { print file ($0 == "" ? "" : " " $0); next }
    {
        if (match($0, /`python [a-z]+\.py`/)) print "command " substr($0, RSTART + 1, RLENGTH - 2)
    }' "$GHP_SOURCE"/docs/how-to/{from-pytorch,weights-back,fine-tuning,torch-plans}.md >steps

# Whether torchrun failed by what PyTorch 2.15 does on busy cores: a worker aborts at the interpreter's end, when all is
# done and printed, since a thread of PyTorch is still there.
aborted_at_end() {
    case $text in
    torchrun*) grep -q '^terminate called without an active exception' err && [ "$(wc -l <"out.$commands")" = 10 ] ;;
    *) false ;;
    esac
}

commands=0
while IFS= read -r line; do
    kind=${line%% *} text=
    [ "$kind" = "$line" ] || text=${line#* }
    if [ "$kind" != command ]; then
        printf '%s\n' "$text" >>"$kind"
        continue
    fi
    commands=$((commands + 1))
    bash -c "$text" >"out.$commands" 2>err </dev/null || aborted_at_end || {
        fail "$text: $(tail -n 5 err)"
        break
    }
    case $text in
    ghp-inspect*net.onnx) [ ! -s err ] || fail "$text says: $(cat err)" ;; # no batch norm is folded
    'python back.py')
        grep -qF "['norm.num_batches_tracked']" "out.$commands" || fail "back.py: $(cat "out.$commands")"
        ;;
    torchrun*) [ "$(wc -l <"out.$commands")" = 10 ] || fail "train.py: $(cat "out.$commands")" ;;
    esac
done <steps
[ $commands -ge 10 ] || fail "the pages have $commands commands only"
# what came back is what was trained
python - <<'PY' || fail "the module has other weights than the checkpoint"
import back
import net
from safetensors.torch import load_file

trained, before = load_file("trained/checkpoint.safetensors"), net.make().state_dict()
for name, value in back.module.state_dict().items():
    if name in trained:
        assert (value == trained[name]).all() and (value != before[name]).any(), name
PY
[ $failures -eq 0 ]
