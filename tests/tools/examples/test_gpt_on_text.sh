#!/usr/bin/env bash
# ghp-test: timeout=200 processors=2 full=yes label=mpi needs=ghp-train,ghp-profile,ghp-plan,ghp-run,ghp-inspect
# tests/tools/examples/test_gpt_on_text.sh - examples/gpt-on-text: the text is learnt, and exported. In short tests
# tools/launch/commands stands for it.
set -u
. "$(dirname "$0")/example.sh"
example gpt-on-text
below "$(sed -n 's/^test accuracy .* loss \([0-9.]*\), perplexity.*/\1/p' out)" 3.1 "the loss of the test text"
for file in config.json model.safetensors; do
    [ -s work/gpt/$file ] || fail "no gpt/$file"
done
[ $failures -eq 0 ]
