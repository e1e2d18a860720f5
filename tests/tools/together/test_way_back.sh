#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/together/test_way_back.sh - the tensors of a checkpoint are the module's: their names, shapes and values,
# also of products that are written x @ weight. Wants a python3 (GHP_PYTHON) that has torch, onnx, onnxscript and
# safetensors. In short tests tools/examples/pytorch_resnet stands for it.
set -u
python=${GHP_PYTHON:-python3}
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1

"$python" -c 'import torch, onnx, onnxscript, safetensors' 2>/dev/null || {
    echo "skipped: '$python' lacks torch, onnx, onnxscript or safetensors; set GHP_PYTHON to one that has them" >&2
    exit 77
}
"$python" -W ignore "$GHP_SOURCE/tests/tools/together/way_back.py" 2>err || fail "a tensor comes back as another: $(tail -n 5 err)"
[ $failures -eq 0 ]
