#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/launch/test_limits.sh - in a control group of one core's time and little memory, of either version:
# machine, threads and memory are the limit's, with the file that says so, and a plan that needs more memory is
# refused. In one of a cpuset of one processor they are its. Needs the right to make control groups. In short tests
# executor/platform/limits stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
unset OMP_WAIT_POLICY
model=$GHP_SOURCE/models/vgg-a-32.json
allowed=$(taskset -cp $$ | sed 's/.*: //')
first=${allowed%%[-,]*}

# mounted CONTROLLER: where its groups of version 1 are, with what one must be told before it takes a process
mounted() {
    awk -v c="$1" '{
        for (i = 7; $i != "-"; i++);
        if ($(i + 1) == "cgroup" && ("," $(i + 3) ",") ~ ("," c ",")) { print $5; exit }
    }' /proc/self/mountinfo
}

# group CONTROLLER: a group for it in $group, removed at the end
groups=()
group() {
    local top
    top=$(mounted "$1")
    version=1
    if [ -z "$top" ]; then
        version=2
        top=$(awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup2") { print $5; exit } }' /proc/self/mountinfo)
        grep -qw "$1" "$top/cgroup.subtree_control" 2>/dev/null || top=''
    fi
    group=$top/ghp-test-$$
    if [ -z "$top" ] || { [ ! -d "$group" ] && ! mkdir "$group" 2>/dev/null; }; then
        [ $failures -eq 0 ] || exit 1
        echo "skipped: no control group can be made here for $1" >&2
        exit 77
    fi
    groups+=("$group")
}
# the system takes a moment to see that a process has left
leave() { for group in "${groups[@]}"; do waits 5 rmdir "$group" 2>/dev/null; done; }
trap 'leave; rm -rf "$scratch"' EXIT
put() { echo "$2" 2>/dev/null >"$group/$1" || fail "cannot write $1"; }
inside() { # inside GROUP... COMMAND...: in $n_groups control groups
    sh -c 'for g in '"${*:1:$n_groups}"'; do echo $$ >$g/cgroup.procs || exit 9; done; shift '"$n_groups"'; exec "$@"' \
        sh "$@" >out 2>err </dev/null
}
key() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2" | head -n 1; }

group cpu
cpu=$group
if [ $version = 1 ]; then put cpu.cfs_quota_us 170000; else put cpu.max '170000 100000'; fi
group memory
memory=$group
if [ $version = 1 ]; then put memory.limit_in_bytes 400M; else put memory.max 400M; fi

n_groups=2
inside "$cpu" "$memory" "$GHP_BIN/ghp-profile" --machine-only -o machine.json || fail "machine: $(head -3 err)"
if [ "$(nproc)" -gt 1 ]; then
    grep -q "ghp-profile: this machine is limited to 1 core by $cpu/cpu" err ||
        fail "the core's limit is not named: $(cat err)"
fi
grep -q "400 MiB of memory by $memory/memory" err || fail "the memory's limit is not named: $(cat err)"
[ "$(key cores machine.json)" = 1 ] || fail "$(key cores machine.json) cores in time for 1.7"
[ "$(key memory_bytes machine.json)" = $((400 << 20)) ] || fail "memory $(key memory_bytes machine.json)"

analytic "$model" profile.json
for case in small:8 large:1024; do
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch ${case#*:} -o ${case%:*}.json >out 2>err ||
        fail "plan: $(head -3 err)"
done
inside "$cpu" "$memory" "$GHP_BIN/ghp-run" small.json --steps 2 || fail "a small plan: $(head -3 err)"
if [ "$(nproc)" -gt 1 ]; then
    grep -q ' 1 thread(s) a worker, not bound: .*cpu.* leaves processor time of 1.7 core(s)' err ||
        fail "threads: $(head -3 err)"
fi
inside "$cpu" "$memory" "$GHP_BIN/ghp-run" large.json --steps 2 && fail "a plan larger than the limit trains"
grep -q "^ghp-run: 'large.json' needs .* a worker, and $memory/memory.* leaves .* plan with --memory below" err ||
    fail "a plan larger than the limit: $(head -3 err)"

group cpuset
cpuset=$group
if [ $version = 1 ]; then put cpuset.mems "$(cat "$(dirname "$group")/cpuset.mems")"; fi
put cpuset.cpus "$first"
n_groups=1
inside "$cpuset" "$GHP_BIN/ghp-profile" --machine-only -o machine.json || fail "machine: $(head -3 err)"
[ "$(key cores machine.json)" = 1 ] || fail "$(key cores machine.json) cores of one processor"
inside "$cpuset" "$GHP_BIN/ghp-run" small.json --steps 2 || fail "a plan on one processor: $(head -3 err)"
grep -q ' 1 thread(s) a worker' err || fail "threads on one processor: $(head -3 err)"
[ $failures -eq 0 ]
