#!/usr/bin/env bash
# ghp-test: timeout=180 needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/plan/test_plan.sh - ghp-plan at the command line: tables, the JSON object, plan files, strategies, splits
# by hand, memory, exit codes, and that nothing is left behind where it fails.
set -eu
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
models=$GHP_SOURCE/models
fail() { echo "FAILED: $*" >&2; exit 1; }
plan() { "$GHP_BIN/ghp-plan" "$@"; }
"$GHP_BIN/ghp-profile" --analytic F=6e12,bandwidth=1.25e9,latency=20e-6 --model "$models/vgg16.json" -o law.json 2>/dev/null
vgg=("$models/vgg16.json" --profile law.json --workers 16 --batch 1024)

# tables on stdout, nothing on stderr; the best plan and its baselines, a row for each weighted layer
plan "${vgg[@]}" -o best.json >table 2>noise
[ ! -s noise ] || fail "chatter on stderr: $(cat noise)"
for word in '^# vgg16, 16 workers' '^ghp ' '^data ' '^model ' '^OWT ' '^conv13 ' '^fc6 ' '# what binds'; do
    grep -q "$word" table || fail "the table has no '$word'"
done
grep -q 'gap 0;' table || fail "the gap is not 0"
"$GHP_BIN/ghp-inspect" best.json --verify >/dev/null || fail "the plan does not verify"

# without -o no file
plan "${vgg[@]}" >/dev/null
[ "$(ls)" = "$(printf 'best.json\nlaw.json\nnoise\ntable')" ] || fail "files appeared: $(ls)"

# one object, the keys that scripts rely on; the same plan twice
plan "${vgg[@]}" --json -o again.json >one
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
    python3 -c "import json; o = json.load(open('one')); assert o['strategy'] == '$strategy'; assert [o['predicted']] == [b['predicted'] for b in o['baselines'] if b['strategy'] == '$strategy']" ||
        fail "$strategy is not its baseline"
done
plan "${vgg[@]}" --force 'conv*=data,fc*=out:max,fc8=in:4' -o forced.json --json >one
python3 -c "import json; s = {i['layer']: (i['split'], i['tp_size']) for i in json.load(open('one'))['splits']}; assert (s['conv3'], s['fc7'], s['fc8']) == (('data', 1), ('out', 16), ('in', 4))" ||
    fail "--force was not followed"
"$GHP_BIN/ghp-inspect" forced.json --verify >/dev/null || fail "the forced plan does not verify"
plan "${vgg[@]}" --groups 4 --bucket-cap 4MiB --time-limit 3 --json >one
python3 -c "import json; o = json.load(open('one')); assert o['groups'] == 4 and o['bucket_cap_bytes'] == 4 << 20" || fail "--groups, --bucket-cap"
plan "${vgg[@]}" --json >one
plan "${vgg[@]}" --precision double --json >two
python3 -c "import json; a, b = json.load(open('two')), json.load(open('one')); assert a['predicted']['peak_bytes'] > 1.5 * b['predicted']['peak_bytes']" ||
    fail "--precision double"

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
refused 1 'multiple of 16' "$models/vgg16.json" --profile law.json --workers 16 --batch 1000
refused 1 'nowhere.json' "$models/vgg16.json" --profile nowhere.json --workers 16 --batch 1024
refused 3 'least' "${vgg[@]}" --memory 100MiB --time-limit 5
echo "ghp-plan keeps its promises"
