#!/usr/bin/env bash
# ghp-test: timeout=300 label=emulated
# tests/emulated/test_nccl_faults.sh - one rank never comes to make NCCL's communicators, to its first collective or to
# their end; or it exits, or hangs in a kernel. No worker stays: all end within the watchdog's limit and some seconds,
# and say in what they were.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
limit=3 most=$((limit + 40)) # the launcher needs some seconds to end a job
export GHP_EMULATED=eager GHP_EMULATED_GPUS=own
cat >small.json <<'JSON'
{"format": "ghp.model/1", "name": "small", "input": {"channels": 1, "height": 2, "width": 2},
 "layers": [{"name": "flat", "op": "flatten"},
            {"name": "fc", "op": "linear", "features": 2}, {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
analytic small.json profile.json

# What mpirun starts: leaves its process number, which the tool then takes over.
cat >rank.sh <<'SH'
#!/bin/sh
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
SH
chmod +x rank.sh

over() { # RANKS: all have ended
    local rank
    for ((rank = 0; rank < $1; rank++)); do
        [ -s "pid.$rank" ] && ! alive "$(cat "pid.$rank")" || return 1
    done
}

# run RANKS ARGS...: with a fault; all workers end, and the run with an error
run() {
    mpirun --oversubscribe --bind-to none -n "$1" ../rank.sh "$GHP_EMULATED_BIN/ghp-run" "../plan$1.json" \
        --backend cuda --transport nccl --steps 3 --watchdog $limit "${@:2}" >out 2>err </dev/null &
    local job=$!
    waits $most over "$1" || fail "$what: still there after $most s: $(cat err)"
    waits 5 eval "! alive $job" || echo "$what: mpirun outlives its workers"
    # shellcheck disable=SC2046
    kill -9 $(cat pid.*) $job 2>/dev/null
    wait $job && fail "$what: exit 0"
}

declare -A doing=([start]="bringing NCCL together" [first]="all_reduce of .*" [end]="ending NCCL")

# one RANKS FAULT:RANK: in a folder of its own; the fault is NCCL's, or a failpoint
one() {
    local what="$1 workers, $2" during=${doing[${2%%:*}]:-}
    mkdir "$1-$2" && cd "$1-$2" || exit 1
    for again in 1 2 3; do # on a busy machine MPI may not have come together within the limit
        failures=0
        rm -f pid.*
        if [ -n "$during" ]; then
            GHP_EMULATED_NCCL=$2 run "$1"
        else
            run "$1" --failpoint "$2"
        fi
        grep -q "in 'starting MPI'" err || break
        echo "$what: MPI did not start within $limit s, time $again" >&2
    done
    [ -z "$during" ] || grep -qE -e "waited $limit s in '$during': NCCL does not return" err ||
        fail "$what: does not say it is in '$during', but: $(cat err)"
    [ "${2%%@*}" != hang ] || grep -qE "(waited|has been in) .*backward" err ||
        fail "$what: does not say where it hangs, but: $(cat err)"
    [ $failures -eq 0 ]
}

# Most of a case is waiting, so that some run at once.
running=0
reap() { wait -n || failures=$((failures + 1)) && running=$((running - 1)); }

for n in $(full && echo 2 4 || echo 2); do
    "$GHP_BIN/ghp-plan" small.json --profile profile.json --workers "$n" --batch 8 --strategy data -o "plan$n.json" \
        >out 2>&1 || fail "planning: $(cat out)"
    for rank in $(full && seq 0 $((n - 1)) || echo 1); do
        for fault in start end $(full && echo first exit@forward:2 hang@backward:2); do
            [ $running -lt 5 ] || reap
            one "$n" "$fault:$rank" &
            running=$((running + 1))
        done
    done
done
while [ $running -gt 0 ]; do reap; done
[ $failures -eq 0 ]
