#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,python3
# tests/tools/examples/test_memory.sh - examples/memory: each way that divides more needs less memory, and all of them train
# to the same loss. In short tests tools/plan/expect stands for it.
set -u
. "$(dirname "$0")/example.sh"
export STEPS=10
full || export WAYS='ddp fsdp pipeline'
example memory
last='' loss=''
while read -r way memory _ _ final; do
    case $way in
    zero1 | zero2 | fsdp) below "$memory" "$last" "the memory of $way" ;;
    tensor | pipeline) below "$memory" "$all" "the memory of $way" ;;
    auto) below "$memory" 8.01 "the memory of $way" ;;
    ddp) all=$memory ;;
    esac
    last=$memory loss=${loss:-$final}
    apart=$(awk -v a="$final" -v b="$loss" 'BEGIN { print (a - b) * (a - b) }')
    below "$apart" 0.0001 "the squared distance of the loss $final of $way from $loss"
done < <(tail -n +2 work/table)
[ "$(tail -n +2 work/table | wc -l)" -ge 3 ] || fail "the table lacks ways: $(cat work/table)"
[ $failures -eq 0 ]
