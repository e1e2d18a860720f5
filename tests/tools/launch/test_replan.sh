#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-profile,ghp-launch
# tests/tools/launch/test_replan.sh - ghp-launch --replan: a heartbeat that tells of a slower worker or slower links
# brings a plan for the machine as it is, which is gone over to where it pays, and left where the machine is as before.
# The run is a script's, which beats as it is told. In short tests executor/launcher/replan and
# executor/launcher/restart stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json F=1e9,bandwidth=1e9,latency=1e-5,nodes=4,cores=1
plan=("$GHP_BIN/ghp-plan" "$model" --profile profile.json --batch 96 --load-balance by-speed)
"${plan[@]}" --workers 4 -o 4.json >out 2>err || fail "plan: $(cat err)"
export PLAN="${plan[*]}"

# What takes mpirun's place: notes its plan, beats beats.ATTEMPT, ends in order when asked, else with what done has.
cat >mpi.sh <<'SH'
#!/bin/bash
trap 'exit 4' USR1
shift 3
echo "$1" >>plans
attempt=$(wc -l <plans)
while [ $# -gt 1 ]; do [ "$1" = --heartbeat ] && beat=$2; shift; done
echo "step 1 kept 0 of 100000" >"$beat"
sleep 0.5
cat "beats.$attempt" >"$beat"
for ((i = 0; i < ${patience:-25}; i++)); do sleep 0.1; done
exit 0
SH
chmod +x mpi.sh

# launch NAME ARGS...: a training under the script, whose beats are beats.1, beats.2 and so on
launch() {
    local name=$1
    shift
    rm -rf kept plans
    "$GHP_BIN/ghp-launch" --mpirun ./mpi.sh 4.json --checkpoint kept "$@" >out 2>err </dev/null ||
        fail "$name: exit $?: $(cat err)"
}
says() { grep -qE -e "$1" err || fail "$2 does not say '$1', but: $(cat err)"; }
trained() { [ "$(tr '\n' ' ' <plans)" = "$1 " ] || fail "$2: trained by $(tr '\n' ' ' <plans)"; }
beats() { printf 'step 2 kept 0 of %s\nchange %s\n' "$2" "$3" >"beats.$1"; }

# slow; slower still; as before
beats 1 100000 '1 slow-worker 1 2.5 step 0.5 before 0.2'
beats 2 100000 '1 slow-worker 1 2 step 0.9 before 0.3'
beats 3 100000 '1 other 0 1 step 0.4 before 0.9'
beats 4 100000 '0 other 0 0 step 0 before 0'
patience=100 launch 'a machine that changes' --replan "\$PLAN --workers \$GHP_WORKERS"
trained '4.json kept/replanned.1.json kept/replanned.2.json 4.json' 'a machine that changes'
says 'ghp-launch: worker 1 computes 2.5 times as long: planning again' 'a slow worker'
says "by 'kept/replanned.1.json' a step takes about .*, now 500 ms, with 99998 left; a restart takes .*: the run stops" \
    'a slow worker'
says "4 workers continue with 'kept/replanned.1.json' from step 0" 'a slow worker'
says 'worker 1 computes 5 times as long: planning again' 'a slower one'
says "by '4.json' a step takes about 200 ms, now 400 ms" 'as before'
holds kept/replanned.1.json "[(w['key'], float(w['to'])) for w in o['what_if']] == [('slow.worker', 1),
    ('slow.factor', 2.5)] and o['samples_per_worker'][1] < 24 and sum(o['samples_per_worker']) == 96" ||
    fail "the first plan is not for a slow worker"
holds kept/replanned.2.json "[(w['key'], float(w['to'])) for w in o['what_if']] == [('slow.worker', 1),
    ('slow.factor', 5)]" || fail "the second plan is not for a slower worker"

# what is not worth a restart, as data parallelism cannot send less; a command that fails, a plan for others
beats 1 100000 '1 slow-links 0 3 step 0.5 before 0.2'
launch 'slow links' --replan "\$PLAN --strategy data --workers 4"
trained 4.json 'slow links'
says 'exchanges take 3 times as long: planning again' 'slow links'
says 'a step takes about 500 ms, now 500 ms, with 99998 left; a restart takes .*: the run continues as it is' 'slow links'
holds kept/replanned.1.json "[(w['key'], w['to']) for w in o['what_if']] == [('slow.links', '3')]" ||
    fail "the plan is not for slow links"
beats 1 2 '1 slow-worker 1 2.5 step 0.25 before 0.2'
launch 'no steps are left' --replan "\$PLAN --workers 4"
trained 4.json 'no steps are left'
says 'with 0 left; a restart takes .*: the run continues as it is' 'no steps are left'
beats 1 100000 '1 slow-worker 1 2.5 step 0.5 before 0.2'
launch 'a command that fails' --replan false
trained 4.json 'a command that fails'
says 'warning: --replan makes no plan, the run continues as it is: the command failed' 'a command that fails'
launch 'a plan for fewer' --replan "\$PLAN --workers 3"
trained 4.json 'a plan for fewer'
says 'it is for 3 workers, not 4; say --workers \$GHP_WORKERS' 'a plan for fewer'

# slower for no reason that is known, and without --replan
beats 1 100000 '1 other 0 0 step 0.5 before 0.2'
launch 'no reason' --replan "\$PLAN --workers 4"
trained 4.json 'no reason'
beats 1 100000 '1 slow-worker 1 2.5 step 0.5 before 0.2'
launch 'without --replan'
trained 4.json 'without --replan'
if grep -q 'planning again' err; then fail "without --replan it plans: $(cat err)"; fi
exit $((failures > 0))
