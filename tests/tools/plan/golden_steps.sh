#!/usr/bin/env bash
# tests/tools/plan/golden_steps.sh - predicts the steps of many networks, machines, numbers of workers and plans, and
# compares them with those kept in golden_steps.txt. Run by test_golden_steps.sh.
#
# usage: GHP_BIN=build/bin GHP_SOURCE=. tests/tools/plan/golden_steps.sh [--write]
#   without --write   prints each step that changed, with the change in per cent; exit 1 if any did
#   --write           writes golden_steps.txt: after a change of the time model, with the printed changes in the commit
set -u
source=$(cd "$GHP_SOURCE" && pwd) kept=$(cd "$GHP_SOURCE" && pwd)/tests/tools/plan/golden_steps.txt
bin=$(cd "$GHP_BIN" && pwd) work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$bin/ghp-profile" --analytic F=6e12,bandwidth=1.25e9,latency=20e-6 -o law.json >/dev/null || exit 1
"$bin/ghp-profile" --analytic F=1e12,bandwidth=1.25e8,latency=50e-6,memory_bandwidth=2e10 -o slow.json >/dev/null || exit 1
n=0

# sweep NETWORK WORKERS BATCH MACHINE ARGS...: a row for each number of workers, and ghp, data, model and OWT
sweep() {
    n=$((n + 1))
    echo "$1 $4" >"$n.name"
    "$bin/ghp-plan" "$source/models/$1.json" --sweep "workers=$2" --batch "$3" --time-limit 100 "${@:5}" --json \
        >"$n.sweep" 2>err || { cat err >&2; exit 1; }
}

# expect NETWORK MACHINE NODES BATCH PLAN ARGS...: a row for each number of nodes. NETWORK: of models/, a file or a known
# name; MACHINE: a named one or a profile
expect() {
    local network=$source/models/$1.json machine=(--machine "$2")
    [ -e "$network" ] || network=$1
    [ -e "$2" ] && machine=(--profile "$2")
    n=$((n + 1))
    echo "${1##*/} ${2##*/} NODES node(s) batch $4 $5 ${*:6}" >"$n.name"
    "$bin/ghp-expect" "$network" "${machine[@]}" --nodes "$3" --batch "$4" --plan "$5" "${@:6}" --json \
        >"$n.expect" 2>err || { cat err >&2; exit 1; }
}

sweep alexnet 1,4,16 512 law --profile law.json
sweep vgg16 1,4,16 128 law --profile law.json
sweep resnet18 1,4,8 256 slow --profile slow.json
sweep vgg16 1,4,16 256 measured --profile "$source/plans/vgg16-16.profile.json" --analytic
sweep llama-nano 1,2,4 16 slow --profile slow.json
sweep alexnet 2,8,16 1024 xeon-8180-2/eth-10 --machine xeon-8180-2 --network eth-10
sweep cd-dnn 2,8 512 a5000-4/eth-1 --machine a5000-4 --network eth-1
expect resnet50 a100-sxm-40-8 1 1024 data --precision bf16
expect resnet50 v100-sxm-16-8 4 2048 data
expect resnet50 h100-sxm-8 2 4096 sharded --precision bf16 --network ib-400x8
expect vgg16 v100-sxm-16-8 2 512 data --network eth-25
expect vgg16 l4-8 1 256 data --micro-batches 4
expect densenet121 a30-4 2 256 data --network eth-100
expect googlenet epyc-7763-2 4 256 data --network eth-10
expect mobilenet-v2 l40s-8 1 1024 data --precision tf32
expect gpt-nano a10-4 1 64 data
# tensor splits, stages, sharded parameters, recomputation
gpt=gpt2-124m@256
expect $gpt a100-sxm-40-8 1,2,4 128 data --precision bf16 --tensor 4
expect $gpt h100-pcie-8 1 128 data --precision bf16 --tensor 2 --micro-batches 4
expect $gpt a100-sxm-80-8 1,2 128 data --precision bf16 --pipeline 4 --micro-batches 8
expect $gpt a100-sxm-80-8 1,2 128 data --precision bf16 --tensor 2 --pipeline 2 --micro-batches 4
expect $gpt h100-sxm-8 1,2,16 512 data --precision bf16 --shard pass --recompute
expect $gpt v100-sxm-16-8 1,2 128 data --shard gradients --micro-batches 2
expect resnet18 l40s-8 2 256 data --tensor 2 --network eth-100
# by what was measured
python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["model"], open("net.json", "w"))' \
    "$source/tests/fuzz/seeds/plan/measured.json" || exit 1
expect net.json "$source/tests/fuzz/seeds/profile/measured.json" 1,2 8 data --network eth-1
expect net.json "$source/tests/fuzz/seeds/profile/measured.json" 1 8 sharded
python3 - "$kept" "$@" <<'PY'
import glob, json, sys
now = {}
for name in sorted(glob.glob("*.name"), key=lambda name: int(name.split(".")[0])):
    what, number = open(name).read().strip(), name.split(".")[0]
    try:
        points = json.load(open(number + ".sweep"))["points"]
    except FileNotFoundError:
        one = json.load(open(number + ".expect"))
        for at in one.get("points", [one]):
            now[what.replace("NODES", str(at["nodes"]))] = at["step_s"]
        continue
    for point in points:
        for plan in ("ghp", "data", "model", "owt"):
            if point[plan]["feasible"]:
                key = f"{what} {point['workers']} workers batch {point['global_batch']} {plan}"
                now[key] = point[plan]["predicted"]["predicted_step_s"]
if "--write" in sys.argv[2:]:
    with open(sys.argv[1], "w") as out:
        out.write("# predicted steps in milliseconds; tests/tools/plan/golden_steps.sh --write makes this file\n")
        out.writelines(f"{1e3 * step_s:.9g} {key}\n" for key, step_s in now.items())
    sys.exit()
kept, changes = {}, []
for line in open(sys.argv[1]):
    if not line.startswith("#"):
        step_ms, key = line.strip().split(" ", 1)
        kept[key] = float(step_ms) / 1e3
for key in list(kept) + [key for key in now if key not in kept]:
    if key not in now or key not in kept:
        changes.append(None)
        print(f"{key}: {'is no longer predicted' if key in kept else 'is new'}")
    elif abs(now[key] / kept[key] - 1) > 1e-6:  # what is kept has nine digits
        changes.append(100 * (now[key] / kept[key] - 1))
        print(f"{key}: {1e3 * kept[key]:.3f} -> {1e3 * now[key]:.3f} ms ({changes[-1]:+.4f} %)")
numbers = [change for change in changes if change is not None]
between = f", by {min(numbers):+.4f} to {max(numbers):+.4f} %" if numbers else ""
print(f"{len(changes)} of {len(kept)} predicted steps changed{between}")
sys.exit(len(changes) > 0)
PY
