#!/usr/bin/env bash
# ghp-test: timeout=400 full=yes processors=2 label=mpi needs=ghp-train,ghp-profile,ghp-plan,ghp-run,ghp-inspect
# tests/tools/examples/test_pytorch_resnet.sh - examples/pytorch-resnet: a module is exported, trained, and loaded again.
set -u
. "$(dirname "$0")/example.sh"
example pytorch-resnet
above "$(sed -n 's/^right in PyTorch: //p' out)" 0.9 "the fraction of right answers in PyTorch"
below "$(sed -n "s/^gradients of one step differ from PyTorch's by //p" out)" 1e-12 "the gradients' difference"
[ $failures -eq 0 ]
