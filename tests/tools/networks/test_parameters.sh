#!/usr/bin/env bash
# ghp-test: timeout=900 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_parameters.sh - what of a PyTorch module is trained: parameters, and neither buffers nor
# constants, as both exporters write them. Wants a python3 (GHP_PYTHON) that has torch, onnx and onnxscript.
# In short tests tools/examples/pytorch_resnet stands for it.
set -u
python=${GHP_PYTHON:-python3}
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1

"$python" -c 'import torch, onnx, onnxscript' 2>/dev/null || {
    echo "skipped: '$python' lacks torch, onnx or onnxscript; set GHP_PYTHON to one that has them" >&2
    exit 77
}
"$python" -W ignore "$GHP_SOURCE/tests/tools/networks/parameters.py" 2>err ||
    fail "ghp trains otherwise: $(tail -n 5 err)"
[ $failures -eq 0 ]
