#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/inspect/test_inspect.sh - ghp-inspect on each kind of file: what its tables say, --json, --verify,
# --explain.
set -u
. "$(dirname "$0")/../scratch.sh"
models=$GHP_SOURCE/models

inspect() { "$GHP_BIN/ghp-inspect" "$@"; }

# says 'TEXT' ARGS...: exit 0, nothing on stderr, TEXT (a regular expression) on stdout
says() {
    local text=$1
    shift
    inspect "$@" >out 2>err || { fail "$*: exit $?: $(cat err)"; return; }
    [ -s err ] && fail "$*: chatter on stderr: $(cat err)"
    grep -qE -e "$text" out || fail "$*: does not say '$text'"
}

# refused CODE 'TEXT' ARGS...
refused() { denied "$1" "$2" inspect "${@:3}"; }

# models: published weights and operations
says '^# weights 138357544 .* norms 138344128; forward 30\.9[0-9]* GFLOP' "$models/vgg16.json"
says '^# weights 25557032 ' "$models/resnet50.json"
says '"weights": 61706,' "$models/lenet5.json" --json
says '^fc1 +linear +400 +120 +48000 ' "$models/lenet5.json"

# a profile by law, and one by hand with entries
analytic "$models/vgg-a-32.json" p.json F=6e12,bandwidth=1.25e9,latency=20e-6
says 'between nodes +20\.00 +1\.250' p.json
says '^conv8 ' p.json "$models/vgg-a-32.json"
cat >entries.py <<'PY'
import json, sys
p = json.load(open("p.json"))
key = "conv2d n16 c3 h32 w32 k64 r3 s3 t1x1 p1,1,1,1 d1x1 g1"
p["operations"] = [dict(key=key, mean_s=t, spread=0.05, source="measured", scratch_bytes=1048576, algorithm="direct",
                        **{"pass": name})
                   for name, t in (("backward_data", 2e-3), ("backward_weight", 3e-3), ("forward", 1e-3))]
p["collectives"] = [dict(op="all_reduce", ranks=4, stride=1, bytes=1000000, mean_s=1e-3, spread=0.1, source="measured")]
json.dump(p, open("measured.json", "w"))
PY
if command -v python3 >/dev/null; then
    python3 entries.py
    row='^conv2d n16 .* 16 +1\.0000 +2\.0000 +3\.0000 +4\.000 +0\.188 +0\.007 +1\.000 +5\.0 +measured +direct'
    says "$row" measured.json
    says '^all_reduce +4 +1 +1000000 +1000\.00 +1\.500 +10\.0 +measured' measured.json
    says '^conv1 +16 +1\.0000 +2\.0000 +3\.0000' measured.json "$models/vgg-a-32.json"
fi

# plans
for s in auto data owt; do
    "$GHP_BIN/ghp-plan" "$models/vgg-a-32.json" --profile p.json --workers 4 --batch 64 --strategy $s -o $s.json \
        >/dev/null 2>&1 || fail "cannot plan $s"
done
says '^# plan of vgg-a-32 \(auto\): 4 workers' auto.json
says '^certificate: ' auto.json
says '"gap": ' auto.json --json
says '^exposed ' data.json
says '^sound: step ' auto.json --verify
says '"sound": true' owt.json --verify --json
says '^fc1 +out:4 ' owt.json --explain
says '^each worker computes linear n64 c512 h1 w1 k128' owt.json --explain fc1
says '^reshard +' owt.json --explain fc1
says '^each worker computes' --explain fc1 owt.json
says '^fc1 .*data +out:4' data.json owt.json
says '^all of these +data +owt' data.json owt.json
for s in data owt; do
    "$GHP_BIN/ghp-plan" "$models/vgg-a-32.json" --machine a10-4 --workers 4 --batch 64 --strategy $s -o peak-$s.json >/dev/null 2>&1 ||
        fail "cannot plan $s for a10-4"
done
says '"low_s": [0-9]' peak-data.json peak-owt.json --json
"$GHP_BIN/ghp-inspect" peak-owt.json --html peak.html >/dev/null || fail "no page"
[ "$(grep -o 'with 90 %' peak.html | wc -l)" -ge 4 ] || fail "the page has no range for each strategy"

# --verify refuses what was edited
sed 's/"peak_bytes": [0-9]*/"peak_bytes": 1/' data.json >memory.json
sed '0,/"predicted_step_s": 0/s//"predicted_step_s": 1/' data.json >cost.json
sed 's/"fc1", "split": "out", "tp_size": 4}/"fc1", "split": "in", "tp_size": 4}/' owt.json >split.json
for f in memory cost split; do
    cmp -s $f.json data.json || cmp -s $f.json owt.json && fail "$f.json is no edit"
    refused 1 'does not hold' $f.json --verify
done
sed 's/"memory_Bps": 0.0/"memory_Bps": 1e+09/' p.json >other.json
refused 1 'another profile' auto.json --verify --profile other.json
mkdir elsewhere && mv p.json elsewhere/ && cp auto.json elsewhere/
says '^sound' elsewhere/auto.json --verify
refused 1 'with --profile' auto.json --verify
says '^sound' auto.json --verify --profile elsewhere/p.json

# a run file
cat >run.json <<'JSON'
{"format": "ghp.run/2", "plan": "auto.json", "measured_step_s": 0.125, "images_per_s": 512.0, "peak_bytes": 1048576,
 "phases": [{"phase": "forward", "predicted_s": 0.11, "measured_s": 0.1},
            {"phase": "update", "predicted_s": 0.01, "measured_s": 0.02}]}
JSON
says '^measured_step_s +125\.000 +ms' run.json
says '^forward +110\.000 +100\.000 +10\.0' run.json
says 'older ghp-run wrote this' run.json
says '^peak_bytes +1\.000 +MiB' run.json
says '"format": "ghp.run/2"' run.json --json

# a summary is not taken for a file of what it sums up
says '"summary_of": "ghp.model/1"' "$models/lenet5.json" --json
"$GHP_BIN/ghp-inspect" "$models/lenet5.json" --json >summary.json || fail "a model's summary"
refused 1 'what ghp-inspect --json prints of a file; give that file' summary.json

# bad usage
refused 2 'no file is named'
refused 2 'give a plan' "$models/lenet5.json" --verify
refused 2 'give a profile and a model' "$models/lenet5.json" "$models/vgg16.json"
refused 2 "has no layer 'fc9'" auto.json --explain fc9
refused 2 'leave out' auto.json data.json --verify
echo '{"format": "ghp.nothing/1"}' >nothing.json
refused 1 "does not know the format" nothing.json
echo "{}" >empty.json
refused 1 "key .format. is missing" empty.json

[ "$failures" = 0 ] && echo "ghp-inspect says what it should"
exit $((failures > 0))
