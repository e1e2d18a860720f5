#!/usr/bin/env bash
# ghp-test: timeout=200 processors=2 full=yes label=mpi needs=ghp-train,ghp-profile,ghp-plan,ghp-run,ghp-inspect
# tests/tools/examples/test_finetune_hf.sh - examples/finetune-hf: the matrices of an adapter are trained, and nothing
# else. In short tests tools/launch/commands stands for it.
set -u
. "$(dirname "$0")/example.sh"
example finetune-hf
before=$(sed -n 's/^before: loss \([0-9.]*\),.*/\1/p' out)
after=$(sed -n 's/^test accuracy .*, loss \([0-9.]*\), perplexity.*/\1/p' out | tail -n 1)
below "$after" "$(awk -v b="$before" 'BEGIN { print 0.9 * b }')" "the test loss after fine-tuning ($before before)"
for file in adapter/adapter_model.safetensors adapter/adapter_config.json merged/config.json merged/model.safetensors; do
    [ -s work/$file ] || fail "no $file"
done
"$GHP_BIN/ghp-inspect" work/merged >shown 2>err || fail "the merged folder cannot be read: $(cat err)"
cmp -s work/base/model.safetensors work/merged/model.safetensors && fail "merged has the weights of base"
[ $failures -eq 0 ]
