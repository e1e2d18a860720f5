#!/usr/bin/env bash
# run.sh [FOLDER] - fine-tunes a Hugging Face folder with low-rank matrices (LoRA).
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"

# MODEL names a folder that transformers saved. Without it a small one is made: trained on ghp's how-to pages.
if [ -z "${MODEL:-}" ]; then
    MODEL=$PWD/base
    cat "$docs"/how-to/*.md >first-text
    ghp-train "$models/llama-nano.json" --workers 1 --batch 16 --optimizer adamw --budget 2 --folder first -- \
        --data bytes:first-text --steps 60 --lr 0.003 --checkpoint first --overwrite
    ghp-inspect first/plan.json --export-hf "$MODEL" --weights first/checkpoint.safetensors
fi

# The second text: ghp's networks in JSON. Only the matrices are trained, two next to each linear layer of the blocks.
[ -n "${TEXT:-}" ] || cat "$models"/*.json >text
data=${DATA:-bytes:${TEXT:-text}}
ghp-train "$MODEL" --workers 2 --batch 16 --optimizer adamw --lora 8:16 --lora-targets '*_proj' --budget 3 \
    --folder tuned -- --data "$data" --train-fraction 0.9 --steps 120 --lr 0.01 --checkpoint tuned --overwrite

# What the network said of the same test text before.
mpirun -n 2 ghp-run tuned/plan.json --data "$data" --train-fraction 0.9 --evaluate | sed 's/^/before: /'

# Two ways out: the matrices alone, as PEFT has them, and the whole network with their products added.
ghp-inspect tuned/plan.json --export-peft adapter --weights tuned/checkpoint.safetensors
ghp-inspect tuned/plan.json --export-hf merged --weights tuned/checkpoint.safetensors
