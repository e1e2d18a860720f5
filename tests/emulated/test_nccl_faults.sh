#!/usr/bin/env bash
# ghp-test: timeout=300 label=emulated
# tests/emulated/test_nccl_faults.sh - one rank never comes to make NCCL's communicators, to its first collective or to
# their end; or it exits, or hangs in a kernel, on the host or on its GPU; with stages also before a message to another
# stage, or one ends in an error; with shards before they are gathered for a checkpoint. No worker stays: all end within
# the watchdog's limit and some seconds, and say in what they were. Without NCCL a GPU's kernel that does not end is
# named, and a signal ends the run.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
limit=3 most=$((limit + 80)) # the launcher needs some seconds to end a job, more on a busy machine
kernel=12                    # the one that never ends, amid the steps
export GHP_EMULATED=eager GHP_EMULATED_GPUS=own
cat >small.json <<'JSON'
{"format": "ghp.model/1", "name": "small", "input": {"channels": 1, "height": 2, "width": 2},
 "layers": [{"name": "flat", "op": "flatten"}, {"name": "fc0", "op": "linear", "features": 2},
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

# start RANKS ARGS...: a run of the plan $plan, its mpirun's number in $job
start() {
    mpirun --oversubscribe --bind-to none -n "$1" ../rank.sh "$GHP_EMULATED_BIN/ghp-run" "../$plan$1.json" \
        --backend cuda --transport "$transport" --steps 6 --watchdog $limit "${@:2}" >out 2>err </dev/null &
    job=$!
}

# run RANKS ARGS...: with a fault; all workers end, and the run with an error
run() {
    local job
    start "$@"
    waits $most over "$1" || fail "$what: still there after $most s: $(cat err)"
    waits 5 eval "! alive $job" || echo "$what: mpirun outlives its workers"
    # shellcheck disable=SC2046
    kill -9 $(cat pid.*) $job 2>/dev/null
    wait $job && fail "$what: exit 0"
}

# what is said of NCCL's faults, and of failpoints
bringing="'(bringing NCCL together|making a communicator)': nothing arrived from rank" # of those one communicator ahead
declare -A said=([start]="in ('bringing NCCL together': NCCL does not return|$bringing)"
    [first]="in ('(all_reduce of .*|connecting stages)': NCCL does not return|$bringing)"
    [end]="in 'ending NCCL': NCCL does not return"
    [exchange]="NCCL failed on worker RANK in '.*': remote error"
    [hang@backward]="(waited|has been in) .*backward"
    [hang@receive]="waited $limit s in '(receive|send|metric_reduce) of .*': another worker did not come"
    [hang@gather]="in 'finishing what is enqueued': the GPU does not return"
    [stuck]="waited $limit s in '.*': another worker did not come"
    [stuck-mpi]="has been in '.*' of step|in '.*': nothing arrived from rank")

# one PLAN RANKS FAULT:RANK: in a folder of its own; the fault is NCCL's, or a failpoint
one() {
    local plan=$1 what="$1, $2 workers, $3" says=${said[${3%%:*}]:-} rank=${3##*:} transport=nccl
    mkdir "$1-$2-$3" && cd "$1-$2-$3" || exit 1
    shift
    for again in 1 2 3; do # on a busy machine MPI may not have come together within the limit
        failures=0
        rm -f pid.*
        case $2 in
        stuck-mpi*) transport=mpi GHP_EMULATED_STUCK=$rank:$kernel run "$1" ;;
        stuck*) GHP_EMULATED_STUCK=$rank:$kernel run "$1" ;;
        *@gather*) run "$1" --failpoint "$2" --checkpoint kept ;;
        *@receive*) GHP_EMULATED_CAPTURE=0 run "$1" --failpoint "$2" ;; # graphs pass none
        *@*) run "$1" --failpoint "$2" ;;
        *) GHP_EMULATED_NCCL=$2 run "$1" ;;
        esac
        grep -q "in 'starting MPI'" err || break
        echo "$what: MPI did not start within $limit s, time $again" >&2
    done
    [ -z "$says" ] || grep -qE -e "${says/RANK/$rank}" err ||
        fail "$what: does not say '$says', but: $(cat err)"
    [ $failures -eq 0 ]
}

# alone: a kernel of one worker's GPU never ends; it may only be slow, so that it takes a signal to end the run
alone() {
    local plan=plan what="one worker, stuck" transport=auto job
    mkdir alone && cd alone || exit 1
    failures=0
    for again in 1 2 3; do
        GHP_EMULATED_STUCK=0:$kernel start 1
        waits $most grep -qsE "has been in '.*' of step|in 'starting MPI'" err
        grep -q "in 'starting MPI'" err || break
        wait $job
    done
    grep -q "has been in '.*' of step" err || fail "$what: is not named: $(cat err)"
    kill -TERM "$(cat pid.0)"
    waits $most over 1 || fail "$what: still there after a signal: $(cat err)"
    kill -9 "$(cat pid.0)" $job 2>/dev/null
    wait $job && fail "$what: exit 0"
    [ $failures -eq 0 ]
}

# Most of a case is waiting, so that some run at once.
running=0
reap() { wait -n || failures=$((failures + 1)) && running=$((running - 1)); }

"$GHP_BIN/ghp-plan" small.json --profile profile.json --workers 1 --batch 8 -o plan1.json >out 2>&1 ||
    fail "planning for one: $(cat out)"
alone &
running=1
for n in $(full && echo 2 4 || echo 2); do
    "$GHP_BIN/ghp-plan" small.json --profile profile.json --workers "$n" --batch 8 --strategy data -o "plan$n.json" \
        >out 2>&1 || fail "planning: $(cat out)"
    "$GHP_BIN/ghp-plan" small.json --profile profile.json --workers "$n" --batch 8 --strategy data --shard step \
        -o "sharded$n.json" >out 2>&1 || fail "planning shards: $(cat out)"
    "$GHP_BIN/ghp-plan" small.json --profile profile.json --workers "$n" --batch 8 --stages $((n / 2)),fc:$((n / 2)) \
        --micro-batches 2 -o "staged$n.json" >out 2>&1 || fail "planning stages: $(cat out)"
    for rank in $(full && [ "$n" = 2 ] && echo 0) 1; do
        for fault in start end stuck $(full && echo first exit@forward:2 hang@backward:2 stuck-mpi); do
            [ $running -lt 3 ] || reap
            one plan "$n" "$fault:$rank" &
            running=$((running + 1))
        done
        [ $running -lt 3 ] || reap
        one sharded "$n" "hang@gather:1:$rank" &
        running=$((running + 1))
        for fault in exchange hang@receive:8 $(full && echo start first end exit@send:5); do
            [ $running -lt 3 ] || reap
            one staged "$n" "$fault:$rank" &
            running=$((running + 1))
        done
    done
done
while [ $running -gt 0 ]; do reap; done
[ $failures -eq 0 ]
