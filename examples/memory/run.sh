#!/usr/bin/env bash
# run.sh [FOLDER] - a lesson: four workers hold one network in several ways, and all of them train it to the same loss.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"
ways=${WAYS:-ddp zero1 zero2 fsdp tensor pipeline auto}
workers=4 batch=32 steps=${STEPS:-20}

[ -d digits ] || python3 "$here/../mnist-mlp/digits.py" digits
# Nothing is measured: each worker is said to compute 10 GFLOP/s, and to have a link of 1 Gbit/s.
ghp-profile --analytic F=1e10,bandwidth=1.25e8,latency=2e-5 --model "$here/deep.json" -o profile.json >profile.out

# options WAY: what ghp-plan is told
options() {
    case $1 in
    ddp) echo "--strategy data --sync allreduce" ;;
    zero1) echo "--strategy data --sync sharded" ;;
    zero2) echo "--strategy data --shard gradients" ;;
    fsdp) echo "--strategy data --shard pass" ;;
    tensor) echo "--strategy model" ;;
    pipeline) echo "--stages 1,fc2:1,fc3:1,fc4:1 --micro-batches ${MICRO_BATCHES:-4}" ;;
    auto) echo "--shard auto --memory ${MEMORY:-8MiB}" ;;
    *) echo "there is no way '$1'; use ddp, zero1, zero2, fsdp, tensor, pipeline or auto" >&2; return 1 ;;
    esac
}

# number KEY FILE: the first value of that key
number() { sed -n "/^ *\"$1\": [0-9]/{s/^ *\"$1\": \([-0-9.e]*\).*/\1/p;q}" "$2"; }

{
    printf '%-9s %13s %10s %9s %7s\n' way 'MiB a worker' 'MiB sent' 'step, ms' loss
    for way in $ways; do
        chosen=$(options "$way")
        # shellcheck disable=SC2086 # several words
        ghp-plan "$here/deep.json" --profile profile.json --workers $workers --batch $batch --optimizer adamw \
            --no-break-even $chosen -o "$way.plan.json" >"$way.out" 2>&1 || { cat "$way.out" >&2; exit 1; }
        mpirun --oversubscribe --bind-to none -n $workers ghp-run "$way.plan.json" --data idx:digits --steps "$steps" \
            --threads 1 --bind none --progress none --eval off --run "$way.run.json" >>"$way.out" 2>&1 ||
            { cat "$way.out" >&2; exit 1; }
        awk -v way="$way" -v memory="$(number peak_bytes "$way.plan.json")" \
            -v sent="$(number sent_bytes "$way.plan.json")" -v step="$(number predicted_step_s "$way.plan.json")" \
            -v loss="$(number final_loss "$way.run.json")" 'BEGIN {
                printf "%-9s %13.1f %10.1f %9.1f %7.3f\n", way, memory / 1048576, sent / 1048576, 1000 * step, loss
            }'
    done
} | tee table
