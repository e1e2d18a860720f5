#!/usr/bin/env bash
# ghp-test: timeout=180 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,script
# tests/tools/run/test_watched.sh - a run is seen while it runs: one live line on a terminal, under mpirun too, plain
# lines where there is none, nothing where nobody wants it; Ctrl-C on the terminal ends it in order, with a checkpoint.
# In short tests executor/train/stop stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
escape=$(printf '\033')
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 -o plan.json >out 2>&1 &&
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 8 -o one.json >out 2>&1 ||
    { cat out >&2; exit 1; }
mpi="mpirun --oversubscribe --bind-to none -n 2"
run="$GHP_BIN/ghp-run plan.json --threads 1"

# no terminal: a line every few seconds, without escapes; two of them come while other runs are seen
$mpi $run --steps 100000000 >/dev/null 2>lines </dev/null &
job=$!

# alone, and under mpirun, whose pipe leads to the terminal
TERM=xterm script -qec "$GHP_BIN/ghp-run one.json --steps 30" /dev/null >shown </dev/null
grep -q 'step \[[#.]*\] [0-9]*/30, .* left, loss [0-9.]*, [0-9]* samples/s, [0-9.]* ms a step' shown ||
    fail "no live line: $(head -c 500 shown)"
TERM=xterm script -qec "stty cols 60; $mpi $run --steps 30" /dev/null >shown </dev/null
grep -q 'step [0-9]*/30, .* left, loss' shown || fail "no live line under mpirun: $(head -c 500 shown)"
# mpirun carries both outputs in pipes of their own, so the report may follow a live line at once
tr '\r' '\n' <shown | sed "s/$escape\[[0-9]*[mK]//g; s/# lenet5 by .*//" | grep '^step [0-9]*/' >drawn
[ "$(wc -L <drawn)" -lt 60 ] || fail "a live line longer than the terminal: $(cat drawn)"

# none: not even on a terminal
TERM=xterm script -qec "$mpi $run --steps 30 --progress none" /dev/null >shown </dev/null
grep -q 'step .*/30' shown && fail "--progress none: $(head -c 500 shown)"

said() { [ "$(grep -c '^ghp-run: step [0-9]*/100000000, .* left, loss [0-9.]*, [0-9]* samples/s' lines)" -ge 2 ]; }
waits 60 said || fail "no lines: $(cat lines)"
kill -TERM $job
wait $job
grep -qF "$escape" lines && fail "an escape where no terminal is"

# what is measured, why, and for how long at most
measure=(ranks 2 profile --cache none --model "$model" --workers 2 --batch 8 --budget 1 -o q.json)
"${measure[@]}"
grep -q 'measuring [0-9]* operations and [0-9]* collectives that plans for lenet5 can ask for.*1.00 s at most' err ||
    fail "ghp-profile: $(cat err)"
"${measure[@]}" --progress none
grep -q 'measuring' err && fail "ghp-profile --progress none: $(cat err)"

# Ctrl-C, as the terminal gives it
mkfifo keys
TERM=xterm script -qec "$mpi $run --steps 100000000 --checkpoint kept" /dev/null >shown <keys &
job=$!
exec 7>keys
trains() { grep -q 'step .*/100000000.*loss' shown; }
waits 60 trains || fail "does not train: $(head -c 500 shown)"
printf '\003' >&7
ended() { ! kill -0 $job 2>/dev/null; }
waits 60 ended || { fail "Ctrl-C does not end it"; kill $job; }
exec 7>&-
wait $job
grep -q 'ghp-run: SIG[A-Z]* at worker .: ended after .*--resume continues from the checkpoint in kept' shown ||
    fail "Ctrl-C: $(tail -c 1000 shown)"
[ -e kept/checkpoint.safetensors ] || fail "Ctrl-C: no checkpoint"
exit $((failures > 0))
