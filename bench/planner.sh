#!/bin/bash
# bench/planner.sh - what a search costs: seconds of whole runs of ghp-plan, and the gap they leave, by laws of round
# numbers.
#
# usage, from the source tree's root: bench/planner.sh [cases | deep | growth [FOLDER]]
#   cases    networks of models/ and a chain of 96 repeated blocks, without and with priced memory traffic [default]
#   deep     96 blocks each: a transformer as wide as GPT-2 774M on 1024 and 4096 workers, convolutions on 1024; with
#            a time limit of 9 s, on 4096 workers 30 s
#   growth   vgg16 over 2 to 1024 workers, and chains of 6 to 96 blocks on 1024; drawn into FOLDER, if given, as
#            workers.svg and layers.svg
# Seconds are of the processor (user) and of the clock, start-up included: of GHP_REPEATS runs the least of each.
# Environment: GHP_BIN folder of the tools [build/bin], GHP_REPEATS [5].
set -u
mode=${1:-cases} folder=${2:-} bin=${GHP_BIN:-build/bin} repeats=${GHP_REPEATS:-5}
if [[ ! $mode =~ ^(cases|deep|growth)$ ]] || [ $# -gt 2 ] || { [ $mode != growth ] && [ -n "$folder" ]; }; then
    echo "usage: bench/planner.sh [cases | deep | growth [FOLDER]]" >&2
    exit 2
fi
[ -z "$folder" ] || mkdir -p "$folder" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
TIMEFORMAT='%R %U'
row='%-12s %-8s %7s %8s %7s %12s %8s %8s %8s\n'

law=F=6e12,bandwidth=1.25e9,latency=20e-6
"$bin/ghp-profile" --analytic $law -o "$work/free.json" >/dev/null || exit 1
"$bin/ghp-profile" --analytic $law,memory_bandwidth=1e11 -o "$work/100GB_s.json" >/dev/null || exit 1

# number KEY: the first number after "KEY" in the last plan's --json
number() {
    sed -n "s/^ *\"$1\": *\([-+0-9.eE]*\),*\$/\1/p" "$work/plan.txt" | head -n 1
}

# plan NAME MODEL WORKERS BATCH TRAFFIC [LIMIT]: one row
plan() {
    local k
    : >"$work/seconds"
    for ((k = 0; k < repeats; ++k)); do
        { time "$bin/ghp-plan" "$2" --profile "$work/$5.json" --workers "$3" --batch "$4" --json \
            --time-limit "${6:-30}" >"$work/plan.txt"; } 2>>"$work/seconds" || { cat "$work/seconds" >&2; exit 1; }
    done
    read -r clock user < <(awk '{ if (NR == 1 || $1 < c) c = $1; if (NR == 1 || $2 < u) u = $2 } END { print c, u }' \
        "$work/seconds")
    # shellcheck disable=SC2059
    printf "$row" "$1" "$5" "$3" "$4" "$(number plans_simulated)" \
        "$(awk -v s="$(number predicted_step_s)" 'BEGIN { printf "%.2f", 1e3 * s }')" \
        "$(awk -v g="$(number gap)" 'BEGIN { printf "%.3f", 100 * g }')" "$user" "$clock"
}

# shellcheck disable=SC2059
printf "$row$row" network traffic workers batch plans step gap user clock "" "" "" "" "" ms % s s
if [ "$mode" = cases ]; then
    bench/chain.sh 96 mlp >"$work/mlp-96.json"
    for traffic in free 100GB_s; do
        for case in alexnet:64:4096 vgg16:64:4096 resnet50:64:4096 googlenet:64:4096 inception-v3:64:4096 \
            densenet121:64:4096 vgg16:1024:65536 resnet50:1024:65536; do
            IFS=: read -r network workers batch <<<"$case"
            plan "$network" "models/$network.json" "$workers" "$batch" $traffic
        done
        plan mlp-96 "$work/mlp-96.json" 1024 65536 $traffic
    done
elif [ "$mode" = deep ]; then
    bench/chain.sh 96 gpt >"$work/gpt-96.json"
    bench/chain.sh 96 conv >"$work/conv-96.json"
    plan conv-96 "$work/conv-96.json" 1024 65536 free 9
    plan gpt-96 "$work/gpt-96.json" 1024 4096 free 9
    plan gpt-96 "$work/gpt-96.json" 4096 16384 free
else
    for ((workers = 2; workers <= 1024; workers *= 2)); do
        plan vgg16 models/vgg16.json $workers $((64 * workers)) free
        echo "vgg16 $workers $user" >>"$work/workers"
    done
    for blocks in 6 12 24 48 96; do
        bench/chain.sh $blocks mlp >"$work/mlp-$blocks.json"
        plan mlp-$blocks "$work/mlp-$blocks.json" 1024 65536 free
        echo "1024_workers $(grep -c '"op"' "$work/mlp-$blocks.json") $user" >>"$work/layers"
    done
    [ -z "$folder" ] && exit
    draw() { # CHART X TITLE NAME: the numbers of $work/CHART (Debian package gnuplot-nox)
        gnuplot -e "set terminal svg size 700,420 font 'sans,13' background 'white'; set output '$folder/$1.svg';
            set title '$3'; set logscale xy; set xlabel '$2'; set ylabel 'processor time of ghp-plan [s]'; set grid;
            plot '$work/$1' using 2:3 with linespoints title '$4'"
    }
    draw workers workers 'Cost of a search over the workers' 'vgg16, 64 samples a worker'
    draw layers layers 'Cost of a search over the layers' '1024 workers, chains of blocks of six layers'
fi
