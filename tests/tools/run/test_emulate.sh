#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/run/test_emulate.sh - ghp-run --emulate: weights are those of a run without, bit for bit, by
# synchronisers and in stages; steps last as long as the emulated machines' at least (a sleep is never too short), a
# slow worker's factor among them; the report and the run file say so; what cannot be is refused. In short tests
# executor/platform/emulation stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

run() { # run WORKERS FILE OPTIONS...
    ranks "$1" run plan.json --steps 6 --numerics exact --run "$2" "${@:3}" || fail "${*:3}: $(head -n 3 err)"
}

plan() {
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 "$@" -o plan.json >out 2>err ||
        fail "$*: $(cat err)"
}

hash() { sed -n 's/^ *"weights_hash": "\([0-9a-f]*\)",*$/\1/p' "$1"; }

# lasts FILE SECONDS: no step is shorter; of six, worker 0 need not wait for what follows the fifth's last reduction
lasts() {
    local took
    took=$(number measured_training_s "$1")
    awk -v s="$took" -v least="$2" 'BEGIN { exit !(s >= 4.5 * least) }' || fail "six steps took $took s, one takes $2"
}

analytic "$model" profile.json F=1e10,bandwidth=1e9,latency=1e-5
plans=("--sync local:2" "--stages 1,fc1:1")
full && plans+=("--sync allreduce --strategy data" "--sync sharded --strategy data")
for plan in "${plans[@]}"; do
    plan $plan
    run 2 plain.run
    run 2 emulated.run --emulate step=10ms,port=2e7,latency=1ms,slow=1:2
    { [ -n "$(hash plain.run)" ] && [ "$(hash plain.run)" = "$(hash emulated.run)" ]; } || fail "$plan: other weights"
    lasts emulated.run 0.0099
done
what=step=0.01s,port=2e+07,latency=0.001s,slow=1:2
grep -q "^# emulated: $what" out || fail "the report does not say what was emulated"
grep -q "\"emulation\": \"$what\"" emulated.run || fail "the run file does not say what was emulated"
grep -q emulation plain.run && fail "a run without an emulation speaks of one"
"$GHP_BIN/ghp-inspect" emulated.run >out 2>err || fail "the run cannot be shown: $(cat err)"

# a slow worker's computing, and what no computing hides: one bucket, M / port out in two halves, twice the latency
plan --strategy data --bucket-cap 1GiB
run 2 emulated.run --emulate step=10ms,slow=1:2
lasts emulated.run 0.0199
run 2 emulated.run --emulate step=10ms,port=2e7,latency=1ms
bytes=$(sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' plan.json | head -n 1)
lasts emulated.run "$(awk -v m="$bytes" 'BEGIN { print 0.0099 + m / 2e7 + 2e-3 }')"

ranks 2 run plan.json --emulate step=10,speed=2 && fail "speed=2 was taken"
grep -q 'such as step=40ms' err || fail "what cannot be emulated is not refused: $(cat err)"
ranks 2 run plan.json --emulate step=10ms,slow=2:2 && fail "worker 2 of 2 was taken"
grep -q 'but the 2 workers are numbered 0 to 1' err || fail "a slow worker that there is none of: $(cat err)"
[ $failures -eq 0 ] && echo "emulated machines take their time, and give the same bits"
