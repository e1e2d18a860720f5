#!/bin/bash
# bench/compare.sh - measures this machine, plans a network by all strategies, trains by each plan, and prints predicted
# beside measured.
#
# usage, from the source tree's root: bench/compare.sh MODEL WORKERS BATCH [FOLDER]
#   FOLDER   where profile, plans and runs go [build/bench]
# Environment: GHP_BIN folder of the tools [build/bin], GHP_BUDGET seconds of measuring [80], GHP_STEPS of each run
# [16].
set -u
if [ $# -lt 3 ] || [ $# -gt 4 ]; then
    echo "usage: bench/compare.sh MODEL WORKERS BATCH [FOLDER]" >&2
    exit 2
fi
model=$1 workers=$2 batch=$3 out=${4:-build/bench}
bin=${GHP_BIN:-build/bin} budget=${GHP_BUDGET:-80} steps=${GHP_STEPS:-16}
strategies="auto data model owt"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
mkdir -p "$out" || exit 1

# as many processes as workers; ghp itself binds them to cores
launch=(mpirun -n "$workers" --oversubscribe --bind-to none)

say() {
    printf '== %s\n' "$*" >&2
}

# number FILE KEY: the first number behind "KEY"
number() {
    sed -n "s/^ *\"$2\": *\([-+0-9.eE]*\),*\$/\1/p" "$1" | head -n 1
}

say "measuring the machine and the network, $workers workers at once (at most about $budget s)"
"${launch[@]}" "$bin/ghp-profile" --model "$model" --workers "$workers" --batch "$batch" --budget "$budget" \
    --sample 0.01 --fresh -o "$out/profile.json" >&2 || exit 1

for s in $strategies; do
    say "planning: $s"
    "$bin/ghp-plan" "$model" --profile "$out/profile.json" --workers "$workers" --batch "$batch" --strategy "$s" \
        --mip-gap 0.04 --time-limit 15 -o "$out/$s.plan.json" >"$out/$s.plan.txt" || exit 1
done
cat "$out/auto.plan.txt" >&2
for s in $strategies; do
    say "training $steps steps: $s"
    "${launch[@]}" "$bin/ghp-run" "$out/$s.plan.json" --steps "$steps" --json >"$out/$s.run.json" || exit 1
done

cores=$(lscpu --parse=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)
echo "# $(basename "$model" .json), $workers workers, global batch $batch, on $cores core(s); measured: median over $steps steps"
if [ "$cores" -lt "$workers" ]; then
    echo "# the cores are oversubscribed: $workers workers share $cores, which makes steps longer and less even"
fi
row='%-5s %10s %10s %10s %10s %8s'
# shellcheck disable=SC2059
printf "$row\n$row\n" plan memory sent predicted measured error "" MiB MiB ms ms %
slower=''
for s in $strategies; do
    case $s in auto) name=ghp ;; owt) name=OWT ;; *) name=$s ;; esac
    awk -v row="$row\n" -v name=$name -v bytes="$(number "$out/$s.run.json" peak_bytes)" \
        -v sent="$(number "$out/$s.plan.json" sent_bytes)" \
        -v predicted="$(number "$out/$s.run.json" predicted_step_s)" \
        -v measured="$(number "$out/$s.run.json" measured_step_s)" 'BEGIN {
            printf row, name, sprintf("%.1f", bytes / 1048576), sprintf("%.1f", sent / 1048576),
                sprintf("%.2f", 1e3 * predicted), sprintf("%.2f", 1e3 * measured),
                sprintf("%+.1f", 100 * (predicted - measured) / measured) }'
    slower+=$(awk -v name=$name -v ratio="$(number "$out/$s.run.json" compute)" \
        'BEGIN { if (ratio > 1.1) printf " %s %.2f", name, ratio }')
done
[ -z "$slower" ] || echo "# a fixed job took longer after these plans than while profiling, times:$slower"
echo "# memory and bytes sent are of one worker, and of one step; files are in $out"
