#!/usr/bin/env bash
# run.sh [FOLDER] - exports a PyTorch module, trains it with two workers, and loads the weights into the module again.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"

# PYTHON names an interpreter that has PyTorch. ghp's package is that of this tree, or the installed one.
python=${PYTHON:-${GHP_PYTHON:-python3}}
"$python" -c 'import torch, onnx, onnxscript, safetensors' 2>/dev/null ||
    without "$python lacks torch, onnx, onnxscript or safetensors; set PYTHON to one that has them"
export PYTHONPATH=$here:$here/../../python

"$python" "$here/export.py"
ghp-train net.onnx --workers 2 --batch 32 --budget 3 --folder trained -- \
    --data npy:stripes --normalise none --epochs 6 --lr 0.05 --momentum 0.9 --checkpoint trained --overwrite
"$python" "$here/back.py"
