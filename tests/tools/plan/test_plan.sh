#!/usr/bin/env bash
# ghp-test: timeout=180 full=yes needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/plan/test_plan.sh - ghp-plan at the command line: tables, the JSON object, plan files, strategies, splits
# by hand, memory, exit codes, and that nothing is left if it fails. In short tests tools/plan/expect, tools/plan/shard
# and planner/make/make stand for it.
set -eu
. "$(dirname "$0")/../scratch.sh"
models=$GHP_SOURCE/models
fail() { echo "FAILED: $*" >&2; exit 1; }
plan() { "$GHP_BIN/ghp-plan" "$@"; }
analytic "$models/vgg16.json" law.json F=6e12,bandwidth=1.25e9,latency=20e-6
vgg=("$models/vgg16.json" --profile law.json --workers 16 --batch 1024)

# tables on stdout, nothing on stderr; the best plan and its baselines, a row for each weighted layer
plan "${vgg[@]}" --time-limit 100 -o best.json >table 2>noise # on a busy machine second-best choices are what is left
[ ! -s noise ] || fail "chatter on stderr: $(cat noise)"
for word in '^# vgg16, 16 workers' '^ghp ' '^data, sharded update ' '^model ' '^OWT ' '^conv13 ' '^fc6 ' '# what binds'; do
    grep -q "$word" table || fail "the table has no '$word'"
done
grep -q '^# optimal: the best plan.* takes .* ms a step, and none takes less' table || fail "the plan is not optimal"
"$GHP_BIN/ghp-inspect" best.json --verify >/dev/null || fail "the plan does not verify"

# without -o no file
plan "${vgg[@]}" >/dev/null
[ "$(ls ./*.json)" = "$(printf './best.json\n./law.json')" ] || fail "files appeared: $(ls)"

# one object, the keys that scripts rely on; the same plan twice
plan "${vgg[@]}" --time-limit 100 --json -o again.json >one
python3 - <<'PY' || fail "the object is not as promised"
import json
one = json.load(open("one"))
step_s = one["predicted"]["predicted_step_s"]
assert step_s <= 1.1475 and one["certificate"]["gap"] == 0
assert abs(one["images_per_s"] * step_s - 1024) < 1e-6
assert one["predicted"]["peak_bytes"] > 0 and one["workers"] == one["groups"] * one["group_size"] == 16
assert one["baselines"][0]["strategy"] == "data" and one["baselines"][0]["predicted"]["predicted_step_s"] > step_s
assert {"layer": "fc6", "split": "in", "tp_size": 2} in one["splits"] and one["options"]["workers"] == "16"
saved = json.load(open("again.json"))
for key in set(one) - {"images_per_s", "model", "options"}: # the same thing under the same key
    assert one[key] == saved[key], key
a, b = json.load(open("best.json")), json.load(open("again.json"))
for key in a:
    if key != "certificate":
        assert a[key] == b[key], key
PY

# the baselines as plans of their own, and splits by hand
for strategy in data model owt; do
    plan "${vgg[@]}" --strategy $strategy -o $strategy.json --json >one
    "$GHP_BIN/ghp-inspect" $strategy.json --verify >/dev/null || fail "$strategy does not verify"
    holds one "o['strategy'] == '$strategy' and [o['predicted']] == [
        b['predicted'] for b in o['baselines'] if b['strategy'] == '$strategy']" ||
        fail "$strategy is not its baseline"
done
plan "${vgg[@]}" --force 'conv*=data,fc*=out:max,fc8=in:4' -o forced.json --json >one
for split in conv3:data:1 fc7:out:16 fc8:in:4; do
    holds one "'$split' in ['%s:%s:%d' % (i['layer'], i['split'], i['tp_size']) for i in o['splits']]" ||
        fail "--force was not followed: not $split"
done
"$GHP_BIN/ghp-inspect" forced.json --verify >/dev/null || fail "the forced plan does not verify"
plan "${vgg[@]}" --groups 4 --bucket-cap 4MiB --time-limit 3 --json >one
holds one "o['groups'] == 4 and o['bucket_cap_bytes'] == 4 << 20" || fail "--groups, --bucket-cap"
plan "${vgg[@]}" --json >one
plan "${vgg[@]}" --precision double --json >two
holds two "o['predicted']['peak_bytes'] > 1.5 * json.load(open('one'))['predicted']['peak_bytes']" ||
    fail "--precision double"

# every synchroniser next to the plan that auto makes, which is the one written; a slow worker
plan "${vgg[@]}" --sync all --straggler 3:2 -o all.json >table
for word in '^allreduce *ghp .* chosen$' '^allreduce *data ' '^sharded *' '^local:8 *data ' \
    '# slowed: worker 3 takes 2 times' '# all.json has the plan'; do
    grep -q "$word" table || fail "--sync all has no '$word'"
done
plan "${vgg[@]}" --sync all --clip-norm 1 | grep -q '# no local:2, data: .*--clip-norm' ||
    fail "--sync all does not say who is refused"
plan "${vgg[@]}" --sync all --straggler 3:2 --json >one
python3 - <<'PY' || fail "--sync all is not as promised"
import json
best, all = json.load(open("best.json")), json.load(open("all.json"))
assert best["predicted"] == all["predicted"] and best["splits"] == all["splits"]
rows = json.load(open("one"))["schemes"]
(chosen,) = [r for r in rows if r["feasible"] and r["chosen"]]
assert chosen["predicted"] == best["predicted"]
local = {r["sync"]: r for r in rows}["local:8"]
assert local["staleness"] == {"max": 7, "mean": 3.5}
for r in rows:
    alone, compute = r["predicted"]["predicted_step_s"], r["predicted"]["compute_s"]
    mixes = r["sync"].split(":")[0] in ("asp", "ssp", "easgd", "aladdin") # a server's port may bind all alike
    assert alone < r["slowed"]["predicted_step_s"] * (1 + mixes * 1e-9) <= (alone + compute) * (1 + 1e-8)
    assert abs(r["samples_per_s"] * alone - 1024) < 1e-6
PY
plan "${vgg[@]}" --straggler 3:2 >table
grep -q '^conv13 ' table && grep -q '^allreduce *OWT ' table || fail "--straggler without its baselines"

# a profile that was measured for another network: the error of its rates is the prediction's
python3 - <<'PY'
import json
p = json.load(open("law.json"))
p["analytic"]["spread"] = p["analytic"]["comm_spread"] = 0.5
p["overlap"]["compute"] = 1.3
p["operations"] = [{"key": "bias n1 c3 h5 w5", "pass": "forward", "mean_s": 1e-3, "spread": 0, "source": "measured",
                    "scratch_bytes": 0, "algorithm": ""}]
json.dump(p, open("foreign.json", "w"))
PY
foreign=("$models/vgg16.json" --profile foreign.json --workers 16 --batch 1024)
plan "${foreign[@]}" --analytic --strategy data --json >one
holds one "abs(o['predicted']['error_s'] / (o['predicted']['compute_s'] + o['predicted']['comm_s']) - 0.25) < 1e-6" ||
    fail "the error of a law is not the prediction's"
holds one "len(o['baselines']) == 3 and all(b['range_s'][0] < b['predicted']['predicted_step_s'] < b['range_s'][1]
    for b in [o, *o['baselines']])" || fail "a prediction has no range"
# computing, reshards and exposed are the step, whatever slows them
plan "${foreign[@]}" --analytic --strategy model >table
awk '/^(data|model|OWT)/ { rows++; for (i = 1; $i !~ /^[0-9.]+$/;) i++
                           d = $i - $(NF-7) - $(NF-6) - $(NF-5); bad += d * d > 1e-4; reshards += $(NF-6) > 0 }
     END { exit !(rows == 3 && !bad && reshards == 2) }' table || fail "the parts are not the step: $(cat table)"
grep -q '^# what binds: the reshards, ' table || fail "reshards bind, and it is not said: $(cat table)"

# what was asked for may be slower than data parallelism
plan "$models/lenet5.json" --profile law.json --workers 4 --batch 4096 --strategy model >table
grep -q '^# verdict: .* ms ([0-9.]* %) more; ' table || fail "a loss is not said to be one: $(tail -n 1 table)"

# an error that is not known is not zero
plan "$models/vgg16.json" --profile law.json --workers 16 --batch 1024 -o unknown.json >table
grep -q '^data, sharded update  *[0-9.]*  *?  *0 ' table || fail "an error that is not known is in the table: $(cat table)"
grep -q '^# .*; the error of the step is not known$' table || fail "it is not said that the error is not known"
grep -q '^# verdict: .* error of a prediction not known, .*: the error is not known, so the plan ' table ||
    fail "no verdict under the table, or a gain is beyond an error that is not known: $(tail -n 3 table)"
holds unknown.json "o['predicted']['error_s'] is None" || fail "an error that is not known is not null"
"$GHP_BIN/ghp-inspect" unknown.json --json >one
holds one "not any('error_s' in s for s in o['strategies'])" || fail "ghp-inspect has an error that is not known"

# a profile that was disturbed: its fraction of the step is the prediction's error
python3 -c "import json; json.dump(dict(json.load(open('law.json')), disturbed=0.07), open('disturbed.json', 'w'))"
plan "$models/vgg16.json" --profile disturbed.json --workers 16 --batch 1024 --strategy data -o again.json >table
grep -q '^# the machine was disturbed while it was profiled: 7 %' table || fail "a disturbed profile is not said"
holds again.json "abs(o['predicted']['error_s'] / o['predicted']['predicted_step_s'] - 0.07) < 1e-6" ||
    fail "what is doubtful is not in the error"
"$GHP_BIN/ghp-inspect" again.json --verify >/dev/null || fail "a plan by a disturbed profile does not verify"
# what disturbed all predictions alike does not turn a choice, however long it made them
for disturbed in 0.6 2.4; do
    python3 -c "import json; json.dump(dict(json.load(open('law.json')), disturbed=$disturbed), open('disturbed.json', 'w'))"
    plan "$models/vgg16.json" --profile disturbed.json --workers 16 --batch 1024 -o again.json >/dev/null
    holds again.json "o['certificate'].get('preferred') is None and 'beyond the error' in o['certificate']['margin']" ||
        fail "disturbed by $disturbed: the plan is data parallelism, though another one is faster"
done

# refusals: exit code, what stderr says, nothing on stdout, nothing written
refused() {
    local code=$1 text=$2 got=0
    shift 2
    plan "$@" -o no.json >out 2>err || got=$?
    [ $got = "$code" ] || fail "$* : exit $got, not $code: $(cat err)"
    grep -q -- "$text" err || fail "$* : '$(cat err)' does not say '$text'"
    [ ! -s out ] || fail "$* : chatter on stdout"
    [ ! -e no.json ] || fail "$* : left a plan"
}
refused 2 'no model' --profile law.json --workers 2 --batch 8
refused 2 'profile' "$models/vgg16.json" --workers 2 --batch 8
refused 2 'one of them' "${vgg[@]}" --strategy data --force 'fc6=data'
refused 2 'fc9' "${vgg[@]}" --force 'fc9=data'
refused 2 'use one of' "${vgg[@]}" --force 'conv1=in:2'
refused 2 'divisor of 16' "${vgg[@]}" --groups 3
refused 2 'bucket-cap' "${vgg[@]}" --bucket-cap some
refused 2 'numbered 0 to 15' "${vgg[@]}" --straggler 16:2
refused 2 'RANK:FACTOR' "${vgg[@]}" --straggler 3
refused 2 'leave --sweep' "${vgg[@]}" --crossovers --sync all
refused 1 "knows no operation of 'vgg16'" "${foreign[@]}"
refused 3 'less than --strict 0.1' "${vgg[@]}" --strict 0.1
refused 1 'multiple of 16' "$models/vgg16.json" --profile law.json --workers 16 --batch 1000
refused 1 'nowhere.json' "$models/vgg16.json" --profile nowhere.json --workers 16 --batch 1024
refused 3 'least' "${vgg[@]}" --memory 100MiB --time-limit 5
echo "ghp-plan keeps its promises"

# plans for fewer workers in one file: those that divide the batch, the others with the reason
small=("$models/lenet5.json" --profile small.json --workers 4 --batch 8)
analytic "$models/lenet5.json" small.json F=1e10,bandwidth=1e9,latency=1e-5
plan "${small[@]}" --elastic 3 -o set.json >table 2>noise || fail "--elastic: $(cat noise)"
"$GHP_BIN/ghp-inspect" set.json >shown || fail "ghp-inspect of a set"
cmp -s table shown || fail "ghp-plan and ghp-inspect show other sets: $(diff table shown)"
for word in '^ *4 .*optimal' '^ *2 ' '^ *1 ' '^ *3 *.*not a multiple of 3'; do
    grep -qE "$word" shown || fail "the set has no '$word': $(cat shown)"
done
plan "${small[@]}" -o four.json >/dev/null 2>&1
python3 - <<'PY' || fail "the set is not as promised"
import json
whole, four = json.load(open("set.json")), json.load(open("four.json"))
assert [p["workers"] for p in whole["plans"]] == [4, 2, 1] and [o["workers"] for o in whole["left_out"]] == [3]
for plan in (whole["plans"][0], four):
    plan["certificate"]["search_s"] = 0
assert whole["plans"][0] == four, "the plan for all workers is another one than alone"
PY
plan "${small[@]}" --elastic 3 >/dev/null 2>noise && fail "a set without a file"
grep -q 'name it with -o' noise || fail "a set without a file: $(cat noise)"
plan "${small[@]}" --sync local:4 --elastic 1 -o no.json >/dev/null 2>noise && fail "a set of replicas that differ"
grep -q 'same number of ranks' noise || fail "a set of replicas that differ: $(cat noise)"
