#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp-plan,ghp-profile
# tests/tools/plan/test_sweep.sh - ghp-plan --sweep: the table, the object, measured shares beyond the
# profile's workers, and what is refused.
set -eu
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/alexnet.json
fail() { echo "FAILED: $*" >&2; exit 1; }
analytic "$model" law.json F=6e12,bandwidth=1.25e9,latency=20e-6
sweep() { "$GHP_BIN/ghp-plan" "$model" --profile law.json "$@"; }

# strong scaling: a row for each plan and count; what a point cannot be is said
sweep --sweep workers=1,2,4,...,64,96 --batch 512 >table 2>noise
[ ! -s noise ] || fail "chatter on stderr: $(cat noise)"
[ "$(grep -c ' ghp  ' table)" = 7 ] || fail "not 7 points: $(cat table)"
grep -q '^# 96 workers, no plan: .*multiple of 96' table || fail "96 workers have no reason"
grep -q '^ *96 .*infeasible' table || fail "96 workers have no row"
grep -q '^ *1 .* 1.00  *100.0 .*optimal' table || fail "one worker is no speed-up of 1"
grep -q '^ *64 .*split, TP size' table || fail "64 workers do not say what is split"

# the object, and its agreement with single plans
sweep --sweep workers=1,8,64 --batch 512 --json >object
sweep --workers 64 --batch 512 --json >single
python3 - <<'PY' || fail "the object is not as promised"
import json, math
o, s = json.load(open("object")), json.load(open("single"))
assert o["scaling"] == "strong" and o["global_batch"] == 512 and [p["workers"] for p in o["points"]] == [1, 8, 64]
one, last = o["points"][0], o["points"][2]
step_s = last["ghp"]["predicted"]["predicted_step_s"]
assert last["ghp"]["predicted"] == s["predicted"]
for base in s["baselines"]:
    assert last[base["strategy"]]["predicted"] == base["predicted"]
    assert step_s <= base["predicted"]["predicted_step_s"]
assert len(s["baselines"]) == 3
assert not one["model"]["feasible"] and "at least 2" in one["model"]["reason"]
assert math.isclose(last["ghp"]["speedup"], one["ghp"]["predicted"]["predicted_step_s"] / step_s)
assert last["certificate"]["gap"] == 0 and last["ghp"]["predicted"]["measured_share"] == 0
assert last["groups"] * last["group_size"] == 64
PY
sweep --sweep workers=2,8 --batch-per-worker 32 --json >weak
holds weak "o['scaling'] == 'weak' and [p['global_batch'] for p in o['points']] == [64, 256]" || fail "weak scaling"
holds weak "all(p['data']['efficiency'] <= 1 + 1e-12 for p in o['points'])" || fail "weak scaling"

# a measured profile: beyond its workers the law prices, and the table says how much is measured
analytic "$model" nodes.json F=6e12,bandwidth=1.25e9,latency=20e-6,nodes=2,cores=2
python3 - <<'PY'
import json
p = json.load(open("nodes.json"))
p["workers"] = 4
p["collectives"] = [{"op": "all_reduce", "ranks": c, "stride": 1, "bytes": 1 << b, "mean_s": 1e-5 * 2 ** (b - 8),
                     "spread": 0.1, "source": "measured"} for c in (2, 4) for b in range(8, 30)]
p["operations"] = [{"key": "bias n1 c3 h5 w5", "pass": "forward", "mean_s": 1e-3, "spread": 0, "source": "measured",
                    "scratch_bytes": 0, "algorithm": ""}]
p["rates"]["update"] = {"latency_s": 1e-6, "bandwidth_Bps": 1e10, "spread": 0.1, "source": "measured"}
json.dump(p, open("measured.json", "w"))
PY
"$GHP_BIN/ghp-plan" "$model" --profile measured.json --analytic --sweep workers=1,2,4,8,16 --batch 512 --json >object
python3 - <<'PY' || fail "a measured profile's points"
import json
points = json.load(open("object"))["points"]
assert [p["nodes"] for p in points] == [1, 1, 2, 4, 8], [p["nodes"] for p in points]
shares = [p["data"]["predicted"]["measured_share"] for p in points]
assert shares[2] > 0 and shares[4] < shares[2], shares
for plan in (p[name] for p in points for name in ("ghp", "data", "model", "owt")):
    low, high = plan["range_s"] if plan["feasible"] else (0, 0)
    assert not plan["feasible"] or low < plan["predicted"]["predicted_step_s"] < high, plan
PY
"$GHP_BIN/ghp-plan" "$model" --profile measured.json --analytic --sweep workers=4,16 --batch 512 --set nodes=2 --json >object
holds object "[p['nodes'] for p in o['points']] == [2, 2]" || fail "--set nodes in a sweep"

# by the analytic model, too, and on another machine: a node is full before the next one has workers
analytic "$model" hosts.json F=6e12,bandwidth=1.25e9,latency=20e-6,intra_bandwidth=1e11,intra_latency=1e-6,nodes=2,cores=8
"$GHP_BIN/ghp-plan" "$model" --profile hosts.json --sweep workers=4,8,16 --batch 512 --json >object
holds object "[p['nodes'] for p in o['points']] == [1, 1, 2]" || fail "a sweep does not fill nodes"
"$GHP_BIN/ghp-plan" "$model" --profile hosts.json --workers 4 --batch 512 --set nodes=1 --json >one
holds one "o['predicted']['predicted_step_s'] == json.load(open('object'))['points'][0]['ghp']['predicted']['predicted_step_s']" ||
    fail "4 workers of a sweep are not on one node"
python3 -c 'import json; json.dump(json.load(open("hosts.json"))["machine"], open("machine.json", "w"))'
"$GHP_BIN/ghp-plan" "$model" --profile hosts.json --machine machine.json --sweep workers=4,16,32 --batch 512 --json >object
holds object "[p['nodes'] for p in o['points']] == [1, 2, 2]" || fail "a sweep does not fill another machine's nodes"

refused() {
    local code=$1 text=$2 got=0
    shift 2
    sweep "$@" >out 2>err || got=$?
    [ $got = "$code" ] || fail "$* : exit $got, not $code: $(cat err)"
    grep -qe "$text" err || fail "$* : '$(cat err)' does not say '$text'"
    [ ! -s out ] || fail "$* : chatter on stdout"
}
refused 2 'one batch' --sweep workers=1,2
refused 2 'one batch' --sweep workers=1,2 --batch 8 --batch-per-worker 2
refused 2 'leave --workers' --sweep workers=1,2 --batch 8 --workers 4
refused 2 'leave --workers' --sweep workers=1,2 --batch 8 -o plan.json
refused 2 'three numbers' --sweep workers=1,2,...,8 --batch 8
refused 2 'is for sweeps' --workers 2 --batch-per-worker 8
refused 3 'no point' --sweep workers=3,5 --batch 8
[ ! -e plan.json ] || fail "a refused sweep left a plan"
echo "sweeps keep their promises"
