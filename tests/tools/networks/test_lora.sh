#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,ghp-train
# tests/tools/networks/test_lora.sh - low-rank adaptation: trained as the PEFT library trains it, on one worker and on
# several; the adapter is one that PEFT reads, and the merged network one that transformers reads. Wants a python3
# (GHP_PYTHON) that has torch and transformers; without peft its arithmetic is written out.
# In short tests tools/examples/pytorch_resnet stands for it.
set -u
python=${GHP_PYTHON:-python3}
export HF_HUB_OFFLINE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 TRANSFORMERS_VERBOSITY=error OMP_NUM_THREADS=1
. "$(dirname "$0")/../scratch.sh"

"$python" -c 'import torch, transformers' 2>/dev/null || {
    echo "skipped: torch and transformers of '$python' are not there" >&2
    exit 77
}
"$python" "$GHP_SOURCE/tests/tools/networks/lora.py" || fail "ghp's low-rank matrices are not PyTorch's"
[ $failures -eq 0 ]
