#!/usr/bin/env bash
# ghp-test: timeout=400 processors=2 label=mpi needs=ghp-plan,ghp-run,ghp-profile,slurmctld,slurmd,srun,munged
# tests/tools/bench/test_slurm.sh - under Slurm, two hosts of the lab: srun and mpirun start workers where Slurm says,
# on the cores and in the memory that it allots; a job that is warned writes its checkpoint and ends with exit code 4,
# and a second one continues from there. Needs root.
set -u
. "$(dirname "$0")/../scratch.sh"
if [ "$(id -u)" != 0 ]; then
    echo "skipped: slurmd starts jobs as their users, which only root may" >&2
    exit 77
fi
lab=$GHP_SOURCE/bench/lab/slurm
model=$GHP_SOURCE/models/lenet5.json
expect() { # CODE TEXT ARGUMENT...
    "$lab" "${@:3}" >out 2>err </dev/null
    [ $? = "$1" ] && grep -q -e "$2" err || fail "$lab ${*:3}: $(head -3 err)"
}
expect 2 "no command given" --hosts 2
expect 2 "cannot use --hosts '0': not a whole number from 1 to 16" --hosts 0 -- true
expect 2 "unknown option '--nodes'" --nodes 2 -- true
law=F=1e11,bandwidth=1e9,latency=2e-5
analytic "$model" profile.json $law
for n in 2 4; do
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers $n --batch 32 -o $n.json >out 2>err ||
        fail "plan: $(head -3 err)"
done

vgg=$GHP_SOURCE/models/vgg-a-32.json
analytic "$vgg" vgg.json $law
"$GHP_BIN/ghp-plan" "$vgg" --profile vgg.json --workers 2 --batch 64 --strategy data -o large.json >out 2>err ||
    fail "plan: $(head -3 err)"

cat >inside.sh <<'END'
srun -N 2 -n 2 -c 1 "$GHP_BIN/ghp-run" 2.json --steps 2 >two 2>&1
echo "$?" >two.code
srun -N 2 --ntasks-per-node=2 "$GHP_BIN/ghp-run" 4.json --verify 2 --threads 1 >four 2>&1
echo "$?" >four.code
salloc -N 2 --ntasks-per-node=2 mpirun --bind-to none "$GHP_BIN/ghp-run" 4.json --steps 2 >allocated 2>&1
echo "$?" >allocated.code
salloc -N 1 --mem=300 srun -n 1 "$GHP_BIN/ghp-profile" --machine-only -o machine.json >machine 2>&1
salloc -N 1 -n 2 --mem=60 srun "$GHP_BIN/ghp-run" large.json --steps 2 >large 2>&1
echo "$?" >large.code
cat >job.sh <<'JOB'
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --output=job.%j
[ -e kept/checkpoint.safetensors ] && again=--resume
srun "$GHP_BIN/ghp-run" 2.json --steps ${1:-1000000} --lr 1e-6 --checkpoint kept --heartbeat beat $again
JOB
sbatch job.sh >submitted 2>&1
job=$(sed 's/.* //' submitted)
for ((i = 0; i < 600; i++)); do
    grep -q 'step *[1-9]' beat 2>/dev/null && break
    sleep 0.1
done
scancel --signal=USR1 "$job"
for ((i = 0; i < 300; i++)); do
    scontrol show job "$job" >state
    grep -qE 'JobState=(FAILED|COMPLETED|CANCELLED)' state && break
    sleep 0.1
done
steps=$(sed -n 's/.*ended after \([0-9]*\) of .*/\1/p' "job.$job")
sbatch --wait job.sh $((steps + 5)) >submitted 2>&1
echo "$?" >second.code
mv "job.$(sed 's/.* //;q' submitted)" second
mv "job.$job" first
END
# on a busy machine Debian's Open MPI, started by srun, sometimes crashes as it starts, before ghp's first word: once
# more. Whatever crashes after that word has failed, and so has what crashes in the last turn.
crash='Process received signal'
runs=(two four allocated machine large first second)
crashed() { # crashed SED: a run, in the part of its output that this leaves
    local run
    for run in "${runs[@]}"; do sed -n "$1" "$run" 2>/dev/null | grep -q "$crash" && return; done
    return 1
}
early() { crashed '/^ghp-run: /,$!p'; }
late() { crashed '/^ghp-run: /,$p'; }
for turn in 1 2 3; do
    rm -rf kept beat state submitted job.[0-9]* ./*.code "${runs[@]}"
    "$lab" -- bash inside.sh >out 2>err </dev/null
    case $? in
    0) ;;
    3)
        echo "skipped: $(tail -n 1 err)" >&2
        exit 77
        ;;
    *) fail "the lab: $(tail -n 5 err)" ;;
    esac
    if late || ! early; then break; fi
    echo "turn $turn: $(grep -h -A 12 "$crash" "${runs[@]}" 2>/dev/null | head -n 12)" >&2
done
for run in "${runs[@]}"; do
    if grep -q "$crash" "$run"; then fail "$run crashes: $(grep -A 12 "$crash" "$run" | head -n 13)"; fi
done
holds() { grep -qE -e "$2" "$1" || fail "$1 has no '$2': $(grep ghp- "$1" | head -n 4)"; }
[ "$(cat two.code)" = 0 ] || fail "two workers by srun: $(head -n 4 two)"
[ "$(nproc)" -lt 2 ] || holds two ' 1 thread\(s\) a worker, bound to processor'
[ "$(cat four.code)" = 0 ] || fail "four workers by srun: $(head -n 4 four)"
[ "$(cat allocated.code)" = 0 ] || fail "four workers by mpirun in an allocation: $(head -n 6 allocated)"
[ "$(number memory_bytes machine.json)" = $((300 << 20)) ] || fail "memory of --mem=300: $(cat machine machine.json)"
holds machine '300 MiB of memory by SLURM_MEM_PER_NODE'
[ "$(cat large.code)" = 1 ] || fail "a plan larger than --mem: $(head -n 4 large)"
holds large 'needs .* a worker, and SLURM_MEM_PER_NODE leaves 60.0 MiB for 2 worker\(s\) of this node'
holds first 'SIGUSR1 at worker [01]: ended after [0-9]+ of 1000000 steps'
holds state 'JobState=FAILED.*NonZeroExitCode'
holds state 'ExitCode=4:0'
[ "$(cat second.code)" = 0 ] || fail "the second job: $(head -n 4 second)"
holds second 'resumed|resuming|goes on|from the checkpoint'
[ $failures -eq 0 ]
