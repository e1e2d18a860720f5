#!/usr/bin/env bash
# run.sh [FOLDER] - trains a small language model on a text with two workers.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"

# TEXT names a file. Without it ghp's own documentation is the text.
[ -n "${TEXT:-}" ] || cat "$docs"/how-to/*.md >text
ghp-train "$models/gpt-nano.json" --workers 2 --batch 16 --optimizer adamw --clip-norm 1 --budget 3 \
    --folder trained -- --data "bytes:${TEXT:-text}" --train-fraction 0.9 --steps 200 --lr 0.003 \
    --warmup-steps 20 --lr-schedule cosine --checkpoint trained --overwrite

# The weights as a folder that Hugging Face's transformers load.
ghp-inspect trained/plan.json --export-hf gpt --weights trained/checkpoint.safetensors
