#!/bin/bash
# job.sh PLAN STEPS - trains under Slurm, and continues by itself after the time limit: submit it with sbatch.
#SBATCH --job-name=ghp --nodes=2 --ntasks-per-node=1 --time=60 --requeue
#SBATCH --signal=B:USR1@120 --open-mode=append --output=ghp.%j.out
# Slurm warns this script two minutes before the end. Workers then write a checkpoint and end with exit code 4.

resume=()
[ ! -e kept/checkpoint.safetensors ] || resume=(--resume)
# shellcheck disable=SC2086 # several words
srun ${SRUN_OPTIONS:-} ghp-run "$1" --steps "$2" --data "${DATA:-synthetic}" --checkpoint kept --checkpoint-every 500 \
    --progress none "${resume[@]}" &
job=$!
trap 'scancel --signal=USR1 "$SLURM_JOB_ID"' USR1 # to the tasks, which srun started
wait $job
code=$?
[ $code -le 128 ] || { wait $job; code=$?; } # the signal ended the first wait

if [ $code = 4 ]; then
    echo "job $SLURM_JOB_ID continues later"
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
