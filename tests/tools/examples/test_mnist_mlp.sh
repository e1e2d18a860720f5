#!/usr/bin/env bash
# ghp-test: timeout=200 processors=2 full=yes label=mpi needs=ghp-train,ghp-profile,ghp-plan,ghp-run,ghp-inspect,python3
# tests/tools/examples/test_mnist_mlp.sh - examples/mnist-mlp: drawn digits are learnt. In short tests
# tools/launch/commands stands for it.
set -u
. "$(dirname "$0")/example.sh"
example mnist-mlp
above "$(sed -n 's/^test accuracy \([0-9.]*\) %.*/\1/p' out)" 95 "the accuracy on test images, in percent,"
grep -q '^margin: ' out || fail "the plan is not explained"
[ $failures -eq 0 ]
