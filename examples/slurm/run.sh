#!/usr/bin/env bash
# run.sh [FOLDER] - measures, plans and trains under Slurm: three jobs on two nodes.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"
command -v sbatch >/dev/null || without "there is no sbatch here; run it on a login node of a Slurm cluster"
# shellcheck disable=SC2206 # several words
launch=(srun ${SRUN_OPTIONS:-} -N 2 --ntasks-per-node=1)

# Measure where the training will run, started in the same way.
"${launch[@]}" ghp-profile --model "$models/lenet5.json" --workers 2 --batch 64 --budget 5 -o profile.json

# Planning needs one core and no MPI: the login node will do.
ghp-plan "$models/lenet5.json" --profile profile.json --workers 2 --batch 64 -o plan.json

# Train. --wait ends with the job's exit code.
sbatch --wait "$here/job.sh" "$PWD/plan.json" "${STEPS:-200}"
cat ghp.*.out
