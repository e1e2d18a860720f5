#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/learn/test_mixing.sh - workers that mix their weights with servers' and wait for nobody's step: they end
# when the samples asked for are used, with a line of metrics a step at most and no step twice; the report says what
# was sent. One worker alone is SGD, says --verify; of several it is refused. Training continues from a checkpoint with
# the same synchroniser; with another the checkpoint is refused. A signal ends all workers with a checkpoint. What mixes
# in step, without
# servers, is held against its reference by --verify, which sees a fault. What cannot be is refused. In short tests
# executor/mixing/mix_served and executor/mixing/mix_gossip stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

plan() { # plan WORKERS SYNC
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$1" --batch 8 --sync "$2" -o plan.json >out 2>err ||
        fail "$2: $(cat err)"
}

run() { ranks "$1" run plan.json --lr 0.01 "${@:2}"; } # run RANKS OPTIONS...

"$GHP_BIN/ghp-profile" --analytic F=1e10,bandwidth=1e9,latency=1e-5 --model "$model" -o profile.json 2>/dev/null

plan 1 asp
run 2 --verify 4 || fail "one worker by asp is not SGD: $(head -n 3 err) $(grep -i fail out)"
plan 1 easgd:2
not_run 2 'draw even one worker' 2 --verify 4
plan 1 gosgd:0.5
run 1 --verify 4 || fail "one worker by gosgd is not SGD: $(head -n 3 err) $(grep -i fail out)"
plan 2 asp
not_run 2 'chance decides' 3 --verify 4
not_run 1 '2 worker.s. and 1 server.s.' 2 --steps 4
for sync in ssp:2 aladdin gosgd:0.5 ad-psgd; do # the last two without a server
    rm -rf kept metrics.jsonl
    plan 2 $sync
    ranks=3
    [[ $sync == *gd* ]] && ranks=2
    run $ranks --steps 12 --checkpoint kept --metrics metrics.jsonl --run run.json || fail "$sync: $(head -n 3 err)"
    [ "$(number steps run.json)" = 12 ] || fail "$sync: $(number steps run.json) steps of 12"
    steps=$(sed -n 's/.*"step": *\([0-9]*\).*/\1/p' metrics.jsonl)
    [ "$(tail -n 1 <<<"$steps")" = 11 ] && [ "$steps" = "$(sort -nu <<<"$steps")" ] ||
        fail "$sync: steps of the metrics: $steps"
    grep -q '"mixing": {.*"sent_bytes": [1-9]' run.json || fail "$sync: the run file does not say what was sent"
    run $ranks --steps 20 --checkpoint kept --resume --run run.json || fail "$sync, resumed: $(head -n 3 err)"
    [ "$(number first_step run.json)" = 12 ] || fail "$sync: resumed at $(number first_step run.json)"
done
plan 2 easgd:2
not_run 1 'is of a training with ad-psgd on 2 worker' 3 --lr 0.01 --steps 30 --checkpoint kept --resume

for sync in easgd:2 ssp:2; do # by the second all end after as many steps
    rm -rf kept metrics.jsonl
    plan 2 $sync
    mpirun --oversubscribe --bind-to none -n 3 "$GHP_BIN/ghp-run" plan.json --lr 0.01 --steps 100000000 \
        --checkpoint kept --metrics metrics.jsonl --heartbeat beat >out 2>err </dev/null &
    waits 60 lines 20 || fail "$sync: no lines of metrics: $(head -n 3 err)"
    pids=($(pgrep -P "$!" ghp-run))
    kill -TERM "${pids[0]}"
    code=0
    wait $! || code=$?
    grep -q 'SIGTERM at worker' err && [ -e kept/checkpoint.safetensors ] ||
        fail "$sync, a signal: exit $code, $(tail -n 3 err)"
done

# seconds that a worker computes, waits and sends: emulated ones, of which none can be less; for lenet5 246824 bytes. In
# that many steps an average more or less among those that are measured is within the tenth.
for sync in asp sgp local:2; do
    plan 2 $sync
    ranks=2
    [ $sync = asp ] && ranks=3
    run $ranks --steps 60 --run run.json --emulate step=20ms,port=2.5e7 || fail "$sync, emulated: $(head -n 3 err)"
    python3 - $sync <<'END' >problem 2>&1 || fail "$sync: $(tail -n 1 problem)"
import json, sys
run, sync, carried_s = json.load(open("run.json")), sys.argv[1], 246824 / 2.5e7
phases = {p["phase"]: p["measured_s"] for p in run["phases"]}
computing_s = sum(s for p, s in phases.items() if p.startswith(("forward", "backward", "update")))
sending_s = sum(i["measured_s"] for i in run["instructions"] if i["instruction"] in ("mix", "average"))
assert computing_s >= .02 * .99, f"computing takes {computing_s} s of 20 ms"
least_s = carried_s * {"asp": 2, "sgp": 1, "local:2": 1 / 2}[sync] * .9
assert sending_s >= least_s, f"sending takes {sending_s} s, not {least_s}"
if sync != "local:2":
    mixing = run["mixing"]
    assert mixing["waited_s"] / mixing["steps"] >= least_s, f"{mixing} has waited less than {least_s} s a step"
    assert 1 <= mixing["sent_bytes"] / mixing["steps"] / 246824 < 1.01, f"{mixing} has not sent all weights a step"
END
done

# in step, without servers: held against one process that trains the replicas in turn
for sync in lsgd:2,2 dgd:ring; do
    plan 2 $sync
    run 2 --verify 9 || fail "$sync: $(head -n 3 err) $(grep -i fail out)"
    code=0
    run 2 --verify 9 --inject-fault drop-reduction || code=$?
    [ $code = 3 ] || fail "$sync: the fault is not seen: exit $code"
done
plan 4 lsgd:1,2
run 4 --steps 8 --run run.json || fail "lsgd:1,2: $(head -n 3 err)"
grep -q '"led_most": [1-9]' run.json || fail "lsgd: nobody led"
while read -r code sync text; do
    not_planned "$code" "$text" 4 8 --sync "$sync"
done <<'END'
1 lsgd:3,2 do not divide 4 workers
1 lsgd:8,2 more than the 4 worker
2 lsgd:2 wants groups of workers and steps
2 dgd:star wants a graph: ring
1 dgd:0-1,2-3 is not connected: no edges lead from worker 0 to worker 2
1 dgd:0-1,1-2,2-4 numbered up to 3
END
not_planned 1 "fill no grid" 3 9 --sync dgd:torus
not_planned 2 'more than the 2 worker' 2 8 --sync asp --servers 3
not_planned 2 'by --sync ad-psgd there are none' 2 8 --sync ad-psgd --servers 1
not_planned 2 'wants at least 2 workers' 1 8 --sync ad-psgd
not_planned 2 'wants a probability P, from' 2 8 --sync gosgd:2
not_planned 2 'wants S steps, 0 to' 2 8 --sync ssp
not_planned 2 "every layer by data" 2 8 --sync asp --strategy model
[ $failures -eq 0 ]
