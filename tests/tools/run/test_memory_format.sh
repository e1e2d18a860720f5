#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,python3
# tests/tools/run/test_memory_format.sh - convolutions split by channels in plans whose exchanged tensors lie blocked,
# through the tools: the plan names them, and holds; and it trains like one worker, by either numerics. So that it is
# blocks that the plan takes, however little could be measured, the profile is edited: it has all pairs of formats,
# and what is plain counts ten times. In short tests executor/engine/program_formats stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/tests/executor/blocks.json

ranks 2 profile --numerics fast --model "$model" --workers 2 --batch 16 --budget 10 --sample 0.002 --threads 1 \
    -o measured.json || fail "ghp-profile: $(cat err)"
python3 - <<'PY' || fail "the profile cannot be edited"
import json

with open("measured.json") as file:
    profile = json.load(file)


def ways(key):
    """The pairs that an operation can have: the most blocked, plain, then either side alone."""
    words = key.split()
    size = {w[0]: int(w[1:]) for w in words[1:6] if w[1:].isdigit()}
    c, pixels = size["c"] % 16 == 0, size["h"] * size["w"] > 1
    conv = words[0] == "conv2d"
    x = c and pixels and words[0] in ("conv2d", "bias", "relu", "max_pool", "flatten")
    y = size["k"] % 16 == 0 and pixels if conv else x and words[0] != "flatten"
    pairs = [(x, y), (False, False)] + ([(True, False), (False, True)] if conv else [])
    return [p for i, p in enumerate(pairs) if p not in pairs[:i] and p[0] <= x and p[1] <= y]


for op in profile["operations"]:
    pairs = ways(op["key"])
    if "memory_formats" not in op and (len(pairs) > 1 or op["key"].startswith("conv2d")):
        names = {True: "nChw16c", False: "plain"}
        op["memory_formats"] = [{"x": names[x], "y": names[y], "mean_s": op["mean_s"], "algorithm": op["algorithm"]}
                         for x, y in pairs]
    for form in op.get("memory_formats", [])[1:]:
        form["mean_s"] = 10 * op["mean_s"]
with open("profile.json", "w") as file:
    json.dump(profile, file)
PY

# check NAME FORCE LAYERS: these lie blocked under these splits, and nothing else changes what the plan trains
check() {
    local numerics seed passed
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 16 --force "$2" -o "$1.json" >out 2>err ||
        fail "ghp-plan $2: $(cat err)"
    python3 - "$1.json" "$3" <<'PY' || fail "$1: not blocked: $3"
import json, sys

with open(sys.argv[1]) as file:
    blocked = json.load(file)["nChw16c"]
print(blocked)
sys.exit(not set(sys.argv[2].split()) <= set(blocked))
PY
    "$GHP_BIN/ghp-inspect" "$1.json" --verify >out 2>err || fail "$1 does not hold: $(cat err)"
    for numerics in exact fast; do
        passed=false
        for seed in 1 2 3 4; do # a decision within rounding of its threshold may fall the other way: docs/explanation/exactness.md
            ranks 2 run "$1.json" --verify 2 --numerics $numerics --threads 1 --lr 0.01 --seed $seed --json &&
                passed=true && break
        done
        $passed || fail "$1, $numerics: e_g $(number max_relative_gradient_difference out): $(head -3 err)"
        echo "$1, $numerics, seed $seed: e_w $(number max_relative_difference out)," \
            "e_g $(number max_relative_gradient_difference out)"
    done
}

check out '*=data,second=out:2,small=out:2' 'relu1 second relu2 small'
full && check in '*=data,second=in:2,smaller=in:2' 'relu1 second relu2 small smaller'
check channels '*=data,first=out:2,relu1=channel:2,second=in:2,relu2=full:2,pool=full:2' 'first relu1 second relu2 pool'

[ $failures -eq 0 ]
