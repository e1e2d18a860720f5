#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_zero_gradients.sh - a network whose convolutions have a bias before a batch norm, so that its
# gradient is zero but for rounding, verifies in double, float and, where the processor has it, bf16; and a fault is
# still caught. In short tests executor/engine/gradients stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
sed 's/, "bias": false//' "$GHP_SOURCE/models/small-resnet.json" >biased.json
grep -q '"bias": false' biased.json && fail "biases are still off"
analytic biased.json law.json F=1e11,bandwidth=1e9,latency=2e-5
plan() { "$GHP_BIN/ghp-plan" biased.json --profile law.json --workers 2 --batch 16 --force "$1" -o "$2" >out 2>err; }
for kind in data out; do
    plan "*=$kind" $kind.json || plan "*=$kind:max" $kind.json || fail "plan by $kind: $(head -3 err)"
done

# verify PLAN OPTIONS...
verify() {
    ranks 2 run "$1" --verify 1 --lr 0.01 --json --threads 1 --bind none "${@:2}"
    local code=$?
    printf '%-10s %-40s e_w %-10s e_g %s\n' "$1" "${*:2}" "$(number max_relative_difference out)" \
        "$(number max_relative_gradient_difference out)"
    return $code
}
for kind in data out; do
    verify $kind.json --backend reference --precision double || fail "$kind, double: $(head -3 err)"
    verify $kind.json --backend onednn --precision float || fail "$kind, float: $(head -3 err)"
    verify $kind.json --backend onednn --precision bf16 || grep -q 'no bf16 kernels' err ||
        fail "$kind, bf16: $(head -3 err)"
done
verify data.json --backend reference --precision double --inject-fault drop-reduction &&
    fail "drop-reduction was not caught"
verify data.json --backend onednn --precision float --inject-fault drop-reduction &&
    fail "drop-reduction was not caught in float"
[ $failures -eq 0 ]
