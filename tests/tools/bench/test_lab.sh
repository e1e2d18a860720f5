#!/bin/bash
# ghp-test: timeout=180 processors=2 full=yes needs=ghp-lab-probe
# tests/tools/bench/test_lab.sh - the cluster lab: links hold their rate both ways, hosts have names of their own, ranks
# of one host share memory, exit codes and signals pass, input is not eaten, nothing is left.
#
# Rates are asserted with slack, and on the best of five repeats, since other work takes the cores: a busy machine makes
# a link slower, but nothing makes it faster than its rate and a burst of 8 kB.
set -u
lab=$GHP_SOURCE/bench/lab/run
folder=$(mktemp -d)
cd "$folder" || exit 1
trap 'rm -rf "$folder"' EXIT
PATH=$GHP_BIN:$PATH:/usr/sbin:/sbin
failures=0
marker=7${$}7 # seconds that only this test's sleepers sleep

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

skip() {
    echo "skipped: $*"
    exit 77
}

# expect CODE 'TEXT' COMMAND...: exits with CODE and says TEXT on stdout or stderr
expect() {
    local code=$1 text=$2 got
    shift 2
    "$@" >out 2>err </dev/null
    got=$?
    if [ "$got" != "$code" ]; then
        fail "$* : exit $got, expected $code: $(tail -n 3 err)"
    elif ! cat out err | grep -qe "$text"; then
        fail "$* : did not say '$text': $(head -n 5 out err)"
    fi
}

# refused CODE 'TEXT' ARGUMENT...: the lab says TEXT on stderr, prints nothing on stdout, and exits with CODE
refused() {
    expect "$1" "$2" "$lab" "${@:3}"
    [ ! -s out ] || fail "$lab ${*:3} : chatter on stdout"
}

# sleepers: how many processes sleep for this test; the whole command line, which the lab's own lines only end with
# shellcheck disable=SC2317 # called through within
sleepers() {
    local file n=0
    for file in /proc/[0-9]*/cmdline; do
        [ "$({ tr '\0' ' ' <"$file"; } 2>/dev/null)" = "sleep $marker " ] && n=$((n + 1))
    done
    echo "$n"
}

# within SECONDS COMMAND...: whether it comes true in that time
within() {
    local tenths=$(($1 * 10))
    shift
    until "$@"; do
        [ $((tenths--)) -gt 0 ] || return 1
        sleep 0.1
    done
}
# shellcheck disable=SC2317 # called through within
asleep() { [ "$(sleepers)" = "$1" ]; }

# What the lab must leave as it was.
surroundings() {
    hostname
    ip -o link | sed 's/ state [A-Z]* / /'
    ip netns list
    cat /proc/self/mounts
    find /dev/shm -maxdepth 1 -name 'ghp-lab*'
    cat /etc/hosts
}

for program in ip tc unshare nsenter taskset mpirun; do
    command -v $program >/dev/null || skip "no $program here; install iproute2, util-linux and openmpi-bin"
done
"$lab" --hosts 1 --shell -- true 2>err </dev/null
case $? in
0) ;;
3) skip "$(cat err)" ;;
*) fail "the smallest lab does not start: $(cat err)" && exit 1 ;;
esac
surroundings >before

# usage
expect 0 '^usage: bench/lab/run' "$lab" --help
[ ! -s err ] || fail '--help chatters on stderr'
refused 2 "unknown option '--host'" --host 2 -- true
refused 2 'from 1 to 64' --hosts 0 -- true
refused 2 'needs a value' --hosts
refused 2 'such as 200mbit' --rate fast -- true
refused 2 'such as 200mbit' --rate 0mbit -- true
refused 2 'leave one out' --rate 1gbit --rates 1gbit,1gbit -- true
refused 2 'one for each host' --hosts 3 --rates 1gbit,none -- true
refused 2 'from 1 to 2' --hosts 2 --ranks 3 -- true
refused 2 "follows '--'" true
refused 2 'no command given' --hosts 2
refused 2 'choose among these' --hosts 1 --cores 9999 -- true
refused 2 'lists such as' --cores many -- true
refused 2 'leave them out' --shell --ranks 2 -- true
refused 127 'build ghp with ./demo' --hosts 1 -- no-such-program

# a kernel that refuses namespaces, and one that refuses only those of processes
mkdir never partly
printf '#!/bin/sh\necho "unshare: Operation not permitted" >&2; exit 1\n' >never/unshare
printf '#!/bin/sh\ncase " $* " in *" --pid "*) exit 1 ;; esac\nexec %s "$@"\n' "$(command -v unshare)" >partly/unshare
chmod +x never/unshare partly/unshare
PATH=$PWD/never:$PATH refused 3 'refuses namespaces.*Operation not permitted' --hosts 1 -- true
PATH=$PWD/partly:$PATH expect 0 host1 "$lab" --hosts 2 -- hostname

# names, places, exit codes, input
# shellcheck disable=SC2016 # the ranks expand it
"$lab" --hosts 2 --ranks-per-host 2 -- sh -c 'echo $OMPI_COMM_WORLD_RANK $(hostname)' 2>err </dev/null | sort >out
[ "$(cat out)" = $'0 host0\n1 host0\n2 host1\n3 host1' ] || fail "ranks and hosts: $(cat out err)"
expect 0 host0 "$lab" --hosts 3 --ranks 1 -- hostname
# shellcheck disable=SC2016 # the ranks expand it
expect 7 '' "$lab" --hosts 2 -- sh -c 'exit $((OMPI_COMM_WORLD_RANK * 7))'
expect 9 host1 "$lab" --hosts 2 --shell -- sh -c 'mpirun -n 2 hostname; exit 9'
core=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
expect 0 "list: $core\$" "$lab" --hosts 1 --cores "$core" -- sh -c 'taskset -cp $$'
expect 0 "list: $core\$" "$lab" --hosts 2 --ranks 1 --cores one -- sh -c 'taskset -cp $$'
lines=$(printf '1\n2\n' | while read -r line; do "$lab" --hosts 1 -- cat; echo "line $line"; done 2>&1)
[ "$lines" = $'line 1\nline 2' ] || fail "the lab ate its caller's input: $lines"
[ "$(echo word | "$lab" --hosts 2 --stdin -- cat 2>err)" = word ] || fail '--stdin does not reach rank 0'
expect 0 host0 "$lab" --hosts 1 -- hostname <&-
if unshare --user --map-root-user true 2>/dev/null; then
    expect 0 host1 "$lab" --rootless --hosts 2 -- hostname
else
    echo 'not tested: --rootless; this kernel has no user namespaces for this user'
fi

# rates: every link, both ways, one direction at a time and both at once, and an all-reduce
# in_range LOW HIGH FILE: whether the best rates between hosts in the probe's table all are
in_range() {
    awk -v low="$1" -v high="$2" '
        $1 ~ /^(one-way|two-way|all-reduce)$/ && $2 != $3 { n++; if ($(NF-1) < low || $(NF-1) > high) bad = 1 }
        END { exit !(n >= 4 && !bad) }' "$3"
}
# holds_rate LOW HIGH ARGUMENT...: below LOW it is tried again, twice; above HIGH is a failure at once
holds_rate() {
    local low=$1 high=$2 attempt
    for attempt in 1 2 3; do
        "$lab" "${@:3}" -- ghp-lab-probe --bytes 1MiB --repeats 5 >rates 2>err </dev/null ||
            { fail "probe: $(cat err)" && return; }
        in_range 0 "$high" rates || { fail "faster than the link: $(cat rates)" && return; }
        in_range "$low" "$high" rates && return
        echo "attempt $attempt: slower than $low Mbit/s; the machine is busy"
    done
    fail "slower than the link three times: $(cat rates)"
}
holds_rate 120 220 --hosts 2 --rate 200mbit --ranks-per-host 2
inside=$(awk '$1 == "one-way" && $2 == "host0" && $3 == "host0" { print $(NF-1) }' rates) # the best
[ "${inside:-0}" -gt 1000 ] || fail "inside a host only ${inside:-?} Mbit/s"
holds_rate 30 55 --rates 200mbit,50mbit

# shared memory: 1 MiB messages between two ranks of a host pass no network device, not even the loopback
"$lab" --hosts 2 --ranks-per-host 2 --shell -- sh -c 'mpirun -n 2 ghp-lab-probe --bytes 1MiB --repeats 20 &&
    cat /proc/self/net/dev' >out 2>err </dev/null || fail "probe inside one host: $(cat err)"
grep -q '^# 2 ranks on 1 hosts' out || fail "two ranks of a host do not see each other: $(cat out)"
network=$(awk '$1 ~ /^(lo|eth0):$/ { n += $2 + $10 } END { print n + 0 }' out)
[ "$network" -lt 1000000 ] || fail "ranks of one host sent $network bytes over network devices"
grep -q 'eth0:' out || fail 'no device eth0 on a host'

# signals: all ends, in time, whether asked or not
for signal in TERM HUP KILL; do
    "$lab" --hosts 2 -- sleep $marker </dev/null >out 2>err &
    job=$!
    within 20 asleep 2 || fail "no sleeping ranks before $signal: $(cat err)"
    kill -$signal $job
    wait $job 2>/dev/null
    code=$?
    case $signal in
    TERM) [ $code = 143 ] || fail "exit $code after TERM" ;;
    HUP) [ $code = 129 ] || fail "exit $code after HUP" ;;
    esac
    within 15 asleep 0 || fail "ranks go on after $signal"
done

surroundings >after
diff before after >out || fail "the lab left something behind: $(cat out)"
[ "$failures" = 0 ] && echo 'the lab holds its rates and leaves nothing behind'
exit $((failures > 0))
