#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp-plan,ghp-run,ghp-profile,ghp-gpu-floors
# tests/tools/bench/test_bench_gpu.sh - bench/gpu/run takes a network of tokens with its optimizer and clipping, and
# prints its tokens/s and each phase and its floor, for a plan that clips, too. Here on a processor.
set -u
. "$(dirname "$0")/../scratch.sh"
denied 2 "is not NETWORK:BATCH" env NETWORKS=lenet5 "$GHP_SOURCE/bench/gpu/run" "$(dirname "$GHP_BIN")" "$PWD/figures"
cat >tiny.json <<'JSON'
{"format": "ghp.model/1", "name": "tiny", "input": {"vocabulary": 8, "positions": 2},
 "layers": [{"name": "wte", "op": "embedding", "channels": 4}, {"name": "wpe", "op": "position_embedding"},
            {"name": "ln", "op": "layer_norm"}, {"name": "head", "op": "linear", "features": 8, "bias": false},
            {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
NETWORKS=$PWD/tiny.json:2:adamw:1 BACKEND=onednn PRECISION=float WAYS='' RATES="1e14 1e12" GHP_BUDGET=1 STEPS=3 \
    "$GHP_SOURCE/bench/gpu/run" "$(dirname "$GHP_BIN")" "$PWD/figures" >out 2>err || fail "run: $(cat out err)"
grep -q "tokens/s *ghp" out || fail "no tokens/s: $(cat out)"
grep -q "^norm " out || fail "no phase of the clipping: $(cat out)"
holds figures/*.result.json "o['unit'] == 'tokens/s' and o['ghp'] > 0"
[ $failures -eq 0 ]
