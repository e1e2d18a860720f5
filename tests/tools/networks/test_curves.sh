#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/networks/test_curves.sh - a U-Net on masks and a ViT-tiny on pictures, as PyTorch exports them: 50 steps by
# the planner's own plan on two workers, full cases on four too. The losses of all steps and the last weights are those
# of one worker and of PyTorch, in double. Wants a python3 (GHP_PYTHON) that has torch, torchvision and onnxscript.
# In short tests tools/examples/pytorch_resnet stands for it.
set -u
python=${GHP_PYTHON:-python3}
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1

"$python" -c 'import torch, torchvision, onnx, onnxscript' 2>/dev/null || {
    echo "skipped: '$python' lacks torch, torchvision, onnx or onnxscript; set GHP_PYTHON to one that has them" >&2
    exit 77
}

cases=(unet.2)
full && cases=(unet.2.4 vit.2.4)
"$python" "$GHP_SOURCE/tests/tools/networks/curves.py" "${cases[@]}" || fail "ghp's curves are not PyTorch's"
[ $failures -eq 0 ]
