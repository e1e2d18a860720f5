#!/usr/bin/env bash
# run.sh [FOLDER] - a lesson: four workers learn digits under several schemes, first equally fast, then with a slow one.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"
schemes=${SCHEMES:-allreduce bsp gosgd:0.25 ad-psgd}
steps=${STEPS:-30} batch=64 workers=4

[ -d digits ] || python3 "$here/../mnist-mlp/digits.py" digits
ghp-profile --analytic F=1e10,bandwidth=1e8,latency=1e-5 --model "$here/../mnist-mlp/mlp.json" -o profile.json

# train SCHEME NAME LAW: a training in the time of four emulated machines; its record is NAME.json
train() {
    local servers
    ghp-plan "$here/../mnist-mlp/mlp.json" --profile profile.json --workers $workers --batch $batch --strategy data \
        --sync "$1" -o plan.json >plan.out 2>&1 || { cat plan.out >&2; return 1; }
    servers=$(sed -n 's/^ *"servers": \([0-9]*\).*/\1/p' plan.json)
    mpirun --oversubscribe --bind-to none -n $((workers + ${servers:-0})) ghp-run plan.json --data idx:digits \
        --steps "$steps" --lr 0.1 --threads 1 --bind none --progress none --emulate "$3" --run "$2.json" --overwrite \
        >"$2.out" 2>&1 || { cat "$2.out" >&2; return 1; }
}

# For all workers together, until the last one is done.
rate() { value measured_training_s "$1" | awk -v images=$((steps * batch)) '{ printf "%.0f", images / $1 }'; }
value() { sed -n "s/^ *\"$1\": \([0-9.]*\).*/\1/p" "$2.json"; }

# A step computes for 20 ms; each link carries 20 MB/s. In the last column worker 3 takes four times as long.
{
    printf '\n%-14s %12s %12s %18s\n' scheme images/s accuracy 'one slow: images/s'
    for scheme in $schemes; do
        name=${scheme//[:,]/-}
        train "$scheme" "$name-equal" step=20ms,port=2e7
        train "$scheme" "$name-slow" step=20ms,port=2e7,slow=3:4
        printf '%-14s %12s %12.3f %18s\n' "$scheme" "$(rate "$name-equal")" \
            "$(value test_accuracy "$name-equal")" "$(rate "$name-slow")"
    done
} | tee table

# Other programs that use the cores make rates too low.
late=$(for run in *-equal.json *-slow.json; do value emulation_late_steps "${run%.json}"; done | sort -n | tail -n 1)
[ "$late" -le $((steps / 10)) ] ||
    echo "$late steps of a worker computed for longer than they should: the machine is busy, so the rates are too low."
