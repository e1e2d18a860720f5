#!/usr/bin/env bash
# run.sh [FOLDER] - plans for clusters that are not here. Nothing is measured.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"
machine=(gpt2-124m --machine h100-sxm-8 --batch 512 --precision bf16)
say() { printf '\n## %s\n' "$*"; }

say "GPT-2 on one, two and four nodes of eight H100: what does a step take?"
ghp-expect "${machine[@]}" --nodes 1,2,4

say "Two nodes with Ethernet of 10 Gbit/s between them: what binds, and what would help?"
ghp-expect "${machine[@]}" --nodes 2 --network eth-10

say "Which plan is best there?"
ghp-plan "${machine[@]}" --nodes 2 --network eth-10 --workers 16 --no-break-even -o plan.json
