#!/usr/bin/env bash
# ghp-test: timeout=300 processors=2 label=mpi needs=ghp-train,ghp-profile,ghp-plan,ghp-run,ghp-inspect,slurmctld,slurmd,srun,munged
# tests/tools/examples/test_slurm_job.sh - examples/slurm: three jobs on a Slurm of two hosts, made of this machine. Jobs
# that are warned or preempted write a checkpoint and are put back into the queue. Needs root.
set -u
. "$(dirname "$0")/example.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd starts jobs as their users, which only root may" >&2; exit 77; }
code=0
"$GHP_SOURCE/bench/lab/slurm" --hosts 2 -- "$GHP_SOURCE/examples/slurm/run.sh" "$PWD/work" >out 2>err </dev/null || code=$?
[ $code != 3 ] || { echo "skipped: $(tail -n 1 err)" >&2; exit 77; }
[ $code = 0 ] || fail "examples/slurm/run.sh: exit $code: $(tail -n 5 err)"
grep -qE '; 200 steps in ' out || fail "the job trained no 200 steps: $(tail -n 3 out)"

# a job that is warned: the workers write a checkpoint, and the job goes back into the queue
cat >warned.sh <<'END'
cd work && rm -rf kept ghp.*.out
job=$(sbatch --parsable "$GHP_SOURCE/examples/slurm/job.sh" plan.json 1000000)
for ((i = 0; i < 600; i++)); do
    [ -e kept/checkpoint.safetensors ] && break
    sleep 0.1
done
scancel --batch --signal=USR1 "$job"
for ((i = 0; i < 300; i++)); do
    scontrol show job "$job" >state
    grep -q 'JobState=PENDING' state && break
    sleep 0.1
done
scancel "$job"

# preempted by another job: SIGTERM comes twice, and the checkpoint is written all the same
rm -rf kept
job=$(sbatch --parsable "$GHP_SOURCE/examples/slurm/job.sh" plan.json 1000000)
for ((i = 0; i < 600; i++)); do
    [ -e kept/checkpoint.safetensors ] && break
    sleep 0.1
done
srun -p urgent -N 2 true
scontrol show job "$job" >preempted.state
mv "ghp.$job.out" preempted.out
END
"$GHP_SOURCE/bench/lab/slurm" --hosts 2 -- bash warned.sh >out 2>err </dev/null || fail "the second Slurm: $(tail -n 5 err)"
grep -q 'JobState=PENDING' work/state || fail "the warned job is not put back: $(cat work/state)"
grep -q 'SIGUSR1 at worker' work/ghp.*.out || fail "no worker was warned: $(tail -n 5 work/ghp.*.out)"
grep -q 'JobState=PENDING' work/preempted.state || fail "the preempted job: $(cat work/preempted.state)"
grep -q 'SIGTERM at worker' work/preempted.out || fail "preempted, it does not end in order: $(tail -n 5 work/preempted.out)"
[ -s work/kept/checkpoint.safetensors ] || fail "the preempted job left no checkpoint"
[ $failures -eq 0 ]
