#!/usr/bin/env bash
# ghp-test: timeout=60 needs=python3
# tests/tools/bench/test_bench_cpu.sh - the benchmarks of a processor: refusals, and the chart of its results: bars as
# long as the ratios, the same bytes for the same results.
set -u
. "$(dirname "$0")/../scratch.sh"
bench=$GHP_SOURCE/bench

# refused CODE TEXT COMMAND...: from the source tree's root, where the benchmark runs
refused() { denied "$1" "$2" env -C "$GHP_SOURCE" GHP_BENCH="$PWD/kept" "${@:3}"; }

printf '#!/bin/sh\nexit 1\n' >bare && chmod +x bare
refused 3 "install python3-torch" env GHP_PYTHON="$PWD/bare" "$bench/cpu/run" lenet5:64
refused 2 "not a network of models/" "$bench/cpu/run" nobody:8
refused 2 "not a network of models/" "$bench/cpu/run" lenet5
refused 2 "one worker with itself" "$bench/cpu/run" --precision bf16 --workers 2 lenet5:64
refused 3 "no PyTorch 2" env GHP_PYTHON="$PWD/bare" "$bench/transformers" gpt-nano:2x64
refused 2 "such as gpt2-124m:4x64" "$bench/transformers" gpt2-124m:4
refused 2 "has 64 positions" "$bench/transformers" gpt-nano:2x32
refused 2 "wants RESULT.json" "$bench/cpu/chart.py" only.json
refused 1 "cannot read" "$bench/cpu/chart.py" "$PWD/none.json" "$PWD/chart.svg"
echo '{"format": "ghp.run/2"}' >other.json
refused 1 "not a result of bench/cpu/run" "$bench/cpu/chart.py" "$PWD/other.json" "$PWD/chart.svg"

cat >result.json <<'EOF'
{"format": "ghp.bench-cpu/1", "clock": "wall", "repeats": 5, "rows": [
 {"network": "a<b", "batch": 8, "workers": 1, "threads": 1, "ratio": 2.0, "ratio_low": 1.9, "ratio_high": 2.1,
  "over_floor": 1.1},
 {"network": "c", "batch": 16, "workers": 2, "threads": 1, "ratio": 4.0, "ratio_low": 4.0, "ratio_high": 4.0}]}
EOF
"$bench/cpu/chart.py" result.json one.svg || fail "no chart"
"$bench/cpu/chart.py" result.json two.svg && cmp -s one.svg two.svg || fail "not the same bytes"
python3 - <<'EOF' || fail "the chart is not as its results"
import xml.etree.ElementTree as tree
name = "{http://www.w3.org/2000/svg}rect"
bars = [(b.get("class"), float(b.get("width"))) for b in tree.parse("one.svg").getroot().iter(name)]
assert [b[0] for b in bars] == ["ghp", "floor", "ghp"], bars
assert abs(bars[2][1] / bars[0][1] - 2) < 1e-2 and abs(bars[1][1] / bars[0][1] - 1.1) < 1e-2, bars
assert "a&lt;b, batch 8" in open("one.svg").read()
EOF
[ $failures -eq 0 ]
