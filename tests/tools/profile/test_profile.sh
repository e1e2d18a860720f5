#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp-profile
# tests/tools/profile/test_profile.sh - ghp-profile without measuring: laws, machines, and what it refuses.
set -u
. "$(dirname "$0")/../scratch.sh"
profile=$GHP_BIN/ghp-profile
model=$GHP_SOURCE/models/vgg16.json
law=F=6e12,bandwidth=1.25e9,latency=20e-6

# accepted COMMAND...: exits 0 and says nothing on stderr
accepted() {
    "$@" >out 2>err </dev/null || fail "exit $?: $* : $(cat err)"
    [ -s err ] && fail "chatter: $* : $(cat err)"
}

# refused CODE TEXT COMMAND...: exits with CODE, says TEXT, prints no result, writes no file new.json
refused() {
    local code=$1 text=$2
    shift 2
    "$@" >out 2>err </dev/null
    local got=$?
    [ "$got" = "$code" ] || fail "exit $got, not $code: $*"
    grep -qF -e "$text" err || fail "no '$text' in: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "not one line: $* : $(cat err)"
    [ -s out ] && fail "result: $*"
    [ -e new.json ] && fail "left new.json: $*"
}

# laws: equal texts give equal files, whatever the model
accepted "$profile" --analytic $law --model "$model" -o a.json
accepted "$profile" --analytic $law --model "$model" --workers 16 --batch 1024 -o b.json
cmp a.json b.json || fail "two runs of one law differ"
accepted "$profile" --analytic $law,nodes=4,cores=8,memory=64GiB --precision double --numerics exact -o c.json
grep -q '"element_bytes": 8' c.json || fail "no double"
grep -q '"nodes": 4' c.json || fail "no nodes"
grep -q '"memory_bytes": 68719476736' c.json || fail "no memory"
accepted "$profile" --analytic $law --json -o d.json
grep -q '"profile_hash"' out || fail "no hash in --json"

# machines
accepted "$profile" --machine-only --hwloc "package:2 core:4 pu:2" --nodes 4 -o m.json
for text in '"nodes": 4' '"packages": 2' '"cores": 8' '"threads": 16' '"pu_indices": \[0, 2, 4, 6, 8, 10, 12, 14\]'; do
    grep -q "$text" m.json || fail "no $text in the machine"
done
accepted "$profile" --machine-only --inter-bandwidth 5e8 --memory 3GiB -o here.json
grep -q '"bandwidth_Bps": 5e+08\|"bandwidth_Bps": 500000000' here.json || fail "no inter bandwidth"
grep -q '"memory_bytes": 3221225472' here.json || fail "no memory"
accepted "$profile" --help
grep -q -- "--analytic" out || fail "no --analytic in --help"

# refusals
refused 2 "no output file" "$profile" --analytic $law
refused 2 "nothing to measure" "$profile" -o new.json
refused 2 "nothing to measure" "$profile" --model "$model" -o new.json
refused 2 "no use with --machine-only" "$profile" --machine-only --model "$model" -o new.json
refused 2 "no use with --analytic" "$profile" --analytic $law --budget 5 -o new.json
refused 2 "without --machine-only" "$profile" --hwloc "core:2 pu:1" --model "$model" --batch 4 -o new.json
refused 2 "did you mean 'bandwidth'" "$profile" --analytic F=1,bandwith=2,latency=0 -o new.json
refused 2 "'latency' is missing" "$profile" --analytic F=1,bandwidth=2 -o new.json
refused 2 "--batch '4,x'" "$profile" --model "$model" --batch 4,x -o new.json
refused 2 "above 0" "$profile" --model "$model" --batch 0 -o new.json
refused 1 "multiple of" "$profile" --analytic $law --workers 6 --batch 1024 -o new.json
refused 1 "no-such-model" "$profile" --analytic $law --model no-such-model.json -o new.json
refused 1 "neither a file" "$profile" --machine-only --hwloc nonsense -o new.json
refused 1 "no/such" "$profile" --analytic $law -o no/such/new.json
refused 1 "no/such" "$profile" --machine-only -o no/such/new.json
printf '{"format": "ghp.model/1", "name": "cut' >cut.json
refused 1 "cut.json:1" "$profile" --analytic $law --model cut.json -o new.json

[ "$failures" = 0 ] || exit 1
