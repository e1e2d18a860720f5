#!/bin/bash
# bench/compare.sh - measures this machine as far as the choice of a plan hangs on it, plans a network by all
# strategies, times the plans in turns, and prints predicted next to measured, and why ghp's plan is what it is.
#
# usage, from the source tree's root: bench/compare.sh MODEL WORKERS BATCH [FOLDER]
#   FOLDER   where profile, plans, run and report page go [build/bench]
# Environment: GHP_BIN folder of the tools [build/bin], GHP_BUDGET seconds of measuring [50], GHP_STEPS of each of a
# plan's six turns, at most [2], GHP_PLACE where workers compute, as options of ghp-run, for example "--threads 1 --bind
# none".
set -u
if [ $# -lt 3 ] || [ $# -gt 4 ]; then
    echo "usage: bench/compare.sh MODEL WORKERS BATCH [FOLDER]" >&2
    exit 2
fi
model=$1 workers=$2 batch=$3 out=${4:-build/bench}
bin=${GHP_BIN:-build/bin} budget=${GHP_BUDGET:-50} steps=${GHP_STEPS:-2}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
read -r -a place <<<"${GHP_PLACE:-}"
mkdir -p "$out" || exit 1

# as many processes as workers; ghp itself binds them to cores
launch=(mpirun -n "$workers" --oversubscribe --bind-to none)

# told WORDS COMMAND...: what is done; the command's output is shown where it fails
told() {
    printf '== %s\n' "$1" >&2
    "${@:2}" >"$out/log.txt" 2>&1 && return
    cat "$out/log.txt" >&2
    exit 1
}

told "measuring what the choice of a plan hangs on, and planning (at most about $budget s)" \
    "$bin/ghp-train" "$model" --workers "$workers" --batch "$batch" --folder "$out" --cache none --budget "$budget" \
    "${place[@]}" --plan-only
cp "$out/plan.json" "$out/ghp.plan.json"
made=$(sed -n 's/^ghp-train: .* is made in \(.*\)/made in \1/p' "$out/log.txt")
for s in data model owt; do
    told "planning: $s" "$bin/ghp-plan" "$model" --profile "$out/profile.json" --workers "$workers" --batch "$batch" \
        --strategy "$s" -o "$out/$s.plan.json"
done
told "training by ghp's plan, for the report" "${launch[@]}" "$bin/ghp-run" "$out/ghp.plan.json" --steps 12 \
    "${place[@]}" --run "$out/run.json"
told "the report page" "$bin/ghp-inspect" "$out/ghp.plan.json" --run "$out/run.json" --html "$out/report.html"
printf '== %s\n' "timing four plans in turns" >&2
"${launch[@]}" "$bin/ghp-run" "$out/ghp.plan.json" "$out/data.plan.json" "$out/model.plan.json" "$out/owt.plan.json" \
    "${place[@]}" --compare "$steps" --compare-warmup 1 --compare-rounds 6 || exit 1
echo "# why ghp's plan is so ($made):"
"$bin/ghp-plan" "$model" --profile "$out/profile.json" --workers "$workers" --batch "$batch" |
    sed -n '/^layer /,$p'
echo "# the plan as a page with drawings, and what was measured: $out/report.html"
