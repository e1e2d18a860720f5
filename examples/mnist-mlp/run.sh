#!/usr/bin/env bash
# run.sh [FOLDER] - trains a small network on images of digits with two workers, and counts right answers.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"

# MNIST names a folder with MNIST's four files. Without it digits are drawn.
digits=${MNIST:-digits}
[ -d "$digits" ] || python3 "$here/digits.py" "$digits"

# Measure, plan and train. What stands after -- goes to ghp-run.
ghp-train "$here/mlp.json" --workers 2 --batch 64 --budget 3 --folder trained -- \
    --data "idx:$digits" --epochs 6 --lr 0.05 --momentum 0.9 --eval-every 1 --checkpoint trained --overwrite

# Why is the plan as it is?
ghp-inspect trained/plan.json --explain
