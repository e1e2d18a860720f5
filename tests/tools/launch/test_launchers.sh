#!/usr/bin/env bash
# ghp-test: timeout=120 label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-launch,mpirun.openmpi,mpirun.mpich
# tests/tools/launch/test_launchers.sh - with Open MPI and MPICH both installed: workers under the other's
# mpirun are refused, ghp-launch starts them by the right one, and they train the same by it as one worker.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
for n in 2 3; do
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers $n --batch 12 -o $n.json >out 2>err ||
        fail "plan: $(head -3 err)"
done

ours=mpirun.openmpi other=mpirun.mpich kind=openmpi
ldd "$GHP_BIN/ghp-run" | grep -q libmpich && ours=mpirun.mpich other=mpirun.openmpi kind=mpich
timeout 60 $other -n 2 "$GHP_BIN/ghp-run" 2.json --steps 2 >out 2>err </dev/null &&
    fail "$other starts workers of another MPI"
grep -q "^ghp-run: 2 workers were started, and each is alone: .* $kind; start them with 'mpirun" err ||
    fail "$other starts workers of another MPI: $(head -3 err)"
for n in 2 3; do
    ranks $n run $n.json --verify 3 --threads 1 ||
        fail "$n workers: $(head -3 err)"
done
"$GHP_BIN/ghp-launch" 2.json --checkpoint kept -- --steps 3 --threads 1 >out 2>err </dev/null ||
    fail "ghp-launch by its own choice: $(head -3 err)"
[ -f kept/checkpoint.safetensors ] || fail "ghp-launch left no checkpoint"

# a plan for other workers than were started
timeout 60 $ours -n 2 "$GHP_BIN/ghp-run" 3.json --steps 2 >out 2>err </dev/null &&
    fail "2 workers train by a plan for 3"
grep -q "is for 3 worker(s), but 2 were started" err || fail "2 workers and a plan for 3: $(head -3 err)"
[ $failures -eq 0 ]
