#!/usr/bin/env bash
# ghp-test: timeout=3600 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_exporters.sh - networks of torchvision as both of PyTorch's exporters write them: read, and
# their gradients after one step compared with PyTorch's, in double and float. Full runs take a network of each kind
# once; GHP_EXPORTERS=all takes each in four ways and prints the table of docs/results/exactness.md.
# Wants a python3 (GHP_PYTHON) that has torch, torchvision, onnx and onnxscript.
# In short tests tools/examples/pytorch_resnet stands for it.
set -u
python=${GHP_PYTHON:-python3}
. "$(dirname "$0")/../scratch.sh"

"$python" -c 'import torch, torchvision, onnx, onnxscript' 2>/dev/null || {
    echo "skipped: '$python' lacks torch, torchvision, onnx or onnxscript; set GHP_PYTHON to one that has them" >&2
    exit 77
}

cases=(squeezenet1_1.traced.17 resnet18.dynamo.20 mobilenet_v3_small.dynamo.20.64)
if full; then
    # float once, where it shows something (docs/results/exactness.md); alexnet, vgg, googlenet, densenet121 and resnet50
    # have nothing that is theirs alone
    cases=(resnet18.dynamo.20.64 inception_v3.dynamo.22.64 mobilenet_v3_large.traced.13.64 squeezenet1_1.traced.20
        shufflenet_v2_x1_0.dynamo.18.64 efficientnet_b0.dynamo.22.64)
fi
if [ "${GHP_EXPORTERS-}" = all ]; then
    cases=()
    for network in alexnet vgg11 vgg11_bn vgg16 resnet18 resnet50 googlenet inception_v3 densenet121 mobilenet_v2 \
        mobilenet_v3_large mobilenet_v3_small squeezenet1_1 shufflenet_v2_x1_0 efficientnet_b0; do
        for way in traced.13 traced.20 dynamo.18 dynamo.22; do cases+=($network.$way); done
    done
fi
"$python" "$GHP_SOURCE/tests/tools/networks/exporters.py" "${cases[@]}" || fail "ghp's are not PyTorch's"
[ $failures -eq 0 ]
