#!/usr/bin/env bash
# docs/explanation/scaling.sh - makes the tables of docs/results/scaling.md and the charts of
# docs/explanation/scaling.md: predicted scaling of vgg16 and resnet50 from 1 to 4096 workers, strong (global batch
# 4096) and weak (64 samples a worker), over a slow and a fast network.
#
#   docs/explanation/scaling.sh [BIN [FOLDER]]      BIN: the tools [build/bin]; FOLDER: where to [docs/explanation/scaling]
#
# Charts are drawn by gnuplot (Debian package gnuplot-nox). Every figure of the machine is here. SECONDS_A_POINT bounds the search for one worker count: where it binds, the table
# says `time limit`, and another machine may find a slightly other plan.
set -eu
cd "$(dirname "$0")/../.."
bin=$(cd "${1:-build/bin}" && pwd)
folder=${2:-docs/explanation/scaling}
seconds=${SECONDS_A_POINT:-10}
workers=workers=1,2,4,...,4096
# a worker: 6 TFLOP/s sustained, memory traffic free; a node each; 10 Gbit/s and 20 us between them
slow=F=6e12,bandwidth=1.25e9,latency=20e-6
# the same workers on 100 Gbit/s and 2 us: a what-if
fast=(--set inter.bandwidth_Bps=12.5e9 --set inter.latency_s=2e-6)

mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# sweep MODEL NAME OPTIONS...: FOLDER/MODEL-NAME.txt and .svg
sweep() {
    local model=$1 name=$1-$2
    shift 2
    echo "$name" >&2
    "$bin/ghp-plan" "models/$model.json" --profile "$work/$model.json" --sweep "$workers" --time-limit "$seconds" "$@" \
        >"$folder/$name.txt"
    gnuplot -c docs/explanation/scaling.gp "$folder/$name.txt" "$model, $(sed -n '1s/.*, \(.* scaling: [^,]*\),.*/\1/p' "$folder/$name.txt")" \
        "$folder/$name.svg"
}

for model in vgg16 resnet50; do
    "$bin/ghp-profile" --analytic "$slow" --model "models/$model.json" -o "$work/$model.json" 2>/dev/null
    sweep "$model" strong --batch 4096
    sweep "$model" strong-fast --batch 4096 "${fast[@]}"
    sweep "$model" weak --batch-per-worker 64
    sweep "$model" weak-fast --batch-per-worker 64 "${fast[@]}"
done
