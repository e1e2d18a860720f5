#!/usr/bin/env bash
# ghp-test: timeout=1200 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_modules.sh - small modules of the kinds that people bring (modules.py), as both of PyTorch's
# exporters write them: read, and their gradients after one step compared with PyTorch's, in double. Full runs take each
# module by one exporter, in turn, and by both those whose graphs the two write unlike; GHP_EXPORTERS=all takes all by
# both.
# Wants a python3 (GHP_PYTHON) that has torch, torchvision, onnx and onnxscript.
# In short tests tools/examples/pytorch_resnet stands for it.
set -u
python=${GHP_PYTHON:-python3}
. "$(dirname "$0")/../scratch.sh"

"$python" -c 'import torch, torchvision, onnx, onnxscript' 2>/dev/null || {
    echo "skipped: '$python' lacks torch, torchvision, onnx or onnxscript; set GHP_PYTHON to one that has them" >&2
    exit 77
}

cases=(swin_v2.traced.17.64 encoder_causal.dynamo.20.64)
if full; then
    cases=() ways=(traced.17.64 dynamo.20.64)
    unlike=' vit encoder attention attention_unbound swin_v2 maxvit looks registers again unet adaptive tables '
    unlike+='gated products computed '
    for module in $(PYTHONPATH=$GHP_SOURCE/tests/tools/networks "$python" -c 'import modules; print(*modules.MODULES)'); do
        cases+=($module.${ways[0]})
        [[ $unlike != *" $module "* && ${GHP_EXPORTERS-} != all ]] || cases+=($module.${ways[1]})
        ways=(${ways[1]} ${ways[0]})
    done
fi
"$python" "$GHP_SOURCE/tests/tools/networks/exporters.py" "${cases[@]}" || fail "ghp's are not PyTorch's"
[ $failures -eq 0 ]
