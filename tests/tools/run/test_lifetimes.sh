#!/usr/bin/env bash
# ghp-test: timeout=600 label=mpi needs=ghp-plan,ghp-profile,ghp-run
# tests/tools/run/test_lifetimes.sh - networks are trained a step by one worker and by two, whole and in stages. In a
# build with GHP_SANITIZE the arena is closed wherever no buffer lives, so that a kernel that reads or writes outside of a
# buffer's lifetime ends the run (executor/engine/arena.h). Fast runs take the smallest network that has fused
# additions; full ones of such a build those of models/ that have operations or kernels of their own.
set -u
. "$(dirname "$0")/../scratch.sh"
export ASAN_OPTIONS=detect_leaks=0 # of MPI's
networks=("$GHP_SOURCE/models/small-resnet.json")
larger='/(alexnet.*|vgg.*|overfeat-fast|cd-dnn.*|resnet.*|inception-v3|densenet121|gpt-micro|lenet-300-100)[.]json$'
full && grep -qa __asan_init "$GHP_BIN/ghp-run" &&
    readarray -t networks < <(printf '%s\n' "$GHP_SOURCE"/models/*.json | grep -vE "$larger")
analytic "${networks[0]}" profile.json

# trained NAME WORKERS PLANNING...: a plan by these options runs a step
trained() {
    "$GHP_BIN/ghp-plan" "$network" --profile profile.json --workers "$2" --batch 4 --time-limit 1 --no-break-even \
        --sync allreduce --load-balance equal "${@:3}" -o plan.json \
        >out 2>err || { fail "$1: cannot be planned: $(tail -n 2 err)" && return; }
    ranks "$2" run plan.json --steps 1 --eval off --threads 1 --bind none ||
        fail "$1: $(grep -m 3 -E 'ERROR|runtime error|ghp-run:' err)"
}
for network in "${networks[@]}"; do
    name=$(basename "$network" .json)
    trained "$name, one worker" 1 --strategy data
    trained "$name, two workers" 2 --strategy data
    # tensors go from one worker to the other
    [ "$name" != small-resnet ] || trained "$name, two stages" 2 --stages 1,b.bn1:1
done
[ $failures -eq 0 ]
