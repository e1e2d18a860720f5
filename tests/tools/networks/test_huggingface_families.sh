#!/usr/bin/env bash
# ghp-test: timeout=900 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_huggingface_families.sh - every family of transformers that ghp takes is trained as PyTorch
# trains it, by AdamW, on one worker and on several, and comes back as a folder, in one file and in several. Wants a
# python3 (GHP_PYTHON) that has torch and transformers. In short tests tools/python/python stands for it.
set -u
python=${GHP_PYTHON:-python3}
export HF_HUB_OFFLINE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 TRANSFORMERS_VERBOSITY=error OMP_NUM_THREADS=1
. "$(dirname "$0")/../scratch.sh"

"$python" -c 'import torch, transformers' 2>/dev/null || {
    echo "skipped: torch and transformers of '$python' are not there" >&2
    exit 77
}
"$python" "$GHP_SOURCE/tests/tools/networks/huggingface_families.py" || fail "ghp's are not PyTorch's"
[ $failures -eq 0 ]
