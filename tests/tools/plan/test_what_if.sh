#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-profile,ghp-inspect,ghp-run
# tests/tools/plan/test_what_if.sh - ghp-plan --set and --machine at the command line: what the plan records, what
# ghp-inspect and ghp-run say of it, that it verifies, and what is refused. In short tests planner/sweep/what_if stands
# for it.
set -eu
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
fail() { echo "FAILED: $*" >&2; exit 1; }
plan() { "$GHP_BIN/ghp-plan" "$model" --profile measured.json --workers 4 --batch 64 "$@"; }
inspect() { "$GHP_BIN/ghp-inspect" "$@"; }

# a profile with two measured collectives of four workers on two nodes; the rest by law
analytic "$model" law.json F=1e11,bandwidth=1e9,latency=0,intra_bandwidth=8e9,intra_latency=0,nodes=2,cores=2
python3 - <<'PY'
import json
p = json.load(open("law.json"))
p["workers"] = 4
p["collectives"] = [
    {"op": "all_reduce", "ranks": c, "stride": 1, "bytes": b, "mean_s": s, "spread": 0.1, "source": "measured"}
    for c, b, s in ((2, 1 << 10, 1e-5), (2, 1 << 24, 4e-3), (4, 1 << 10, 2e-5), (4, 1 << 24, 3e-2))]
json.dump(p, open("measured.json", "w"))
PY

# setting what is there: the same plan, bit by bit but for the seconds
stable() { sed 's/"search_s": [-+0-9.eE]*/"search_s": 0/' "$1"; }
plan --time-limit 300 -o plain.json >plain # long: runners-up are cut off by time
plan --time-limit 300 --set nodes=2 --set inter.bandwidth_Bps=1e9 --set speed.compute=1 -o same.json >same
cmp <(stable plain.json) <(stable same.json) || fail "an identity edit changed the plan"
if grep -q 'what if' same plain; then fail "an identity edit is recorded"; fi

# data parallelism over all four crosses the nodes' link: its reductions are proportional to the link, by law
plan --strategy data --bucket-cap 0 --json >before
plan --strategy data --bucket-cap 0 --set inter.bandwidth_Bps=0.5e9 --json -o slow.json >after
python3 - <<'PY' || fail "reductions do not follow the link"
import json
a, b = json.load(open("before")), json.load(open("after"))
before, after = a["predicted"], b["predicted"]
assert abs(after["comm_s"] / before["comm_s"] - 2) < 1e-12, (before["comm_s"], after["comm_s"])
assert before["compute_s"] == after["compute_s"]
assert b["what_if"] == [{"key": "inter.bandwidth_Bps", "from": "1e+09", "to": "5e+08"}]
assert "what_if" not in a
measured = [c for c in json.load(open("slow.json"))["profile"]["collectives"] if c["ranks"] == 4]
assert measured and all(c["source"] == "analytic" for c in measured)
PY

# the record: in the file, in ghp-inspect, in ghp-run; and enough to verify by the profile as measured
plan --set nodes=1 --set memory_bytes=64GiB --set overlap.compute=1.2 -o edited.json >table
grep -q '^# what if: nodes 2 -> 1, .*overlap.compute 1 -> 1.2' table ||
    fail "the table does not name the edits: $(grep what table)"
inspect edited.json | grep -q '^# what if: nodes 2 -> 1' || fail "ghp-inspect does not name the edits"
inspect edited.json --verify | grep -q '^sound' || fail "the what-if does not verify"
inspect slow.json --verify >/dev/null || fail "the slow link does not verify"
ranks 4 run edited.json --steps 1 --bind none --backend reference || fail "$(cat err)"
grep -q '^# the plan is a what-if.*nodes 2 -> 1' out || fail "ghp-run does not say that its plan is a what-if"
plan --strategy data --bucket-cap 0 --set slow.links=2 --json -o links.json >after
inspect links.json --verify >/dev/null || fail "slow links do not verify"
holds after "abs(o['predicted']['comm_s'] / json.load(open('before'))['predicted']['comm_s'] - 2) < 1e-12" ||
    fail "reductions do not follow slow links"

# workers_per_node keeps what was measured, and memory_bytes limits a worker to its share
"$GHP_BIN/ghp-plan" "$model" --profile measured.json --workers 16 --batch 64 --set workers_per_node=2 -o many.json \
    >/dev/null
inspect many.json --verify >/dev/null || fail "workers_per_node does not verify"
inspect many.json | grep -q 'nodes 2 -> 8' || fail "the nodes do not follow"
plan --set memory_bytes=64MiB --json >one
holds one "o['memory_limit_bytes'] == 32 << 20" || fail "memory_bytes is no limit"
plan --set memory_bytes=64MiB --memory 1GiB --json >one
holds one "o['memory_limit_bytes'] == 1 << 30" || fail "--memory does not win"

# a share below a byte is a limit, too
got=0
plan --set memory_bytes=3 -o no.json >out 2>err || got=$?
[ $got = 3 ] && grep -q 'memory binds' err || fail "memory_bytes=3 of four workers: exit $got: $(cat err)"

# without --memory the machine's own memory is the limit, shared by the workers of a node, and that is said
analytic "$model" small.json F=1e11,bandwidth=1e9,latency=0,nodes=1,cores=4,memory=4MiB
within() { "$GHP_BIN/ghp-plan" "$model" --profile small.json --batch 64 --json "$@" >one 2>err; }
within --workers 4 || fail "$(cat err)"
holds one "o['memory_limit_bytes'] == 1 << 20 and o['predicted']['peak_bytes'] <= 1 << 20" ||
    fail "the machine's memory limits nothing: $(cat err)"
grep -q 'the machine has 1.00 MiB of memory for each worker' err || fail "it is not said: $(cat err)"
within --workers 4 --memory 1GiB || fail "$(cat err)"
holds one "o['memory_limit_bytes'] == 1 << 30" || fail "--memory does not win over the machine"
python3 - <<'PY'
import json
m = json.load(open("small.json"))["machine"]
m["gpus"] = {"count": 4, "name": "card", "memory_bytes": 1 << 20, "nvlink_Bps": 0, "pcie_Bps": 0}
m["memory_bytes"] = 1 << 40
json.dump(m, open("cards.json", "w"))
PY
within --workers 4 --machine cards.json || fail "$(cat err)"
holds one "o['memory_limit_bytes'] == 1 << 20" || fail "the cards' memory limits nothing: $(cat err)"

# one worker that is slower than nobody: its plan can be read
"$GHP_BIN/ghp-plan" "$model" --profile measured.json --workers 1 --batch 64 --set slow.worker=0 --set slow.factor=3 \
    -o lone.json >/dev/null || fail "no plan for one slow worker"
inspect lone.json --verify >/dev/null || fail "the plan for one slow worker is not read"

# another machine; its unknown link keeps the profile's figures
"$GHP_BIN/ghp-profile" --machine-only --hwloc 'package:1 core:2 pu:1' --nodes 2 --inter-bandwidth 2e9 \
    --inter-latency 0 -o machine.json >/dev/null 2>&1
python3 - <<'PY'
import json
m = json.load(open("machine.json"))
m["intra"] = {"latency_s": 0, "bandwidth_Bps": 0}
json.dump(m, open("machine.json", "w"))
PY
plan --machine machine.json --strategy data --bucket-cap 0 -o other.json --json >after
inspect other.json --verify >/dev/null || fail "the other machine does not verify"
python3 - <<'PY' || fail "--machine is not followed"
import json
a, b = json.load(open("before")), json.load(open("after"))
assert abs(2 * b["predicted"]["comm_s"] / a["predicted"]["comm_s"] - 1) < 1e-12
assert b["what_if"][0]["key"] == "machine" and b["what_if"][0]["to"] == "machine.json"
assert json.load(open("other.json"))["profile"]["machine"]["intra"]["bandwidth_Bps"] == 8e9
PY

# an edited record is no longer what the plan was made with
sed 's/"to": "5e+08"/"to": "6e+08"/' slow.json >forged.json
if inspect forged.json --verify >/dev/null 2>err; then fail "a forged record verifies"; fi
sed 's/"what_if": \[/"what_if": [{"key": "nodes", "to": "3"}, /' slow.json >broken.json
if inspect broken.json >/dev/null 2>err; then fail "a record without 'from' was read"; fi
grep -q "broken.json:[0-9]" err || fail "$(cat err)"

refused() {
    local text=$1 got=0
    shift
    plan "$@" -o no.json >out 2>err || got=$?
    [ $got = 2 ] || fail "$* : exit $got, not 2: $(cat err)"
    grep -qe "$text" err || fail "$* : '$(cat err)' does not say '$text'"
    [ ! -s out ] && [ ! -e no.json ] || fail "$* : left something"
}
refused "did you mean 'inter.latency_s'" --set inter.latency=1e-6
refused 'use one of nodes' --set colour=red
refused 'KEY=VALUE' --set nodes
refused 'from 1 to 1048576' --set nodes=0
refused 'given twice' --set nodes=2 --set nodes=3
refused 'give one of them' --set nodes=2 --set workers_per_node=3
"$GHP_BIN/ghp-plan" --help all | grep -q '^  inter.bandwidth_Bps  .*\[bytes/s\]' || fail "--help does not list the keys"
echo "what-ifs keep their promises"
