#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/inspect/test_report.sh - ghp-inspect's drawings: the page is well-formed, small, fetches nothing, escapes
# names, has readable colours (in a browser: test_report_browser.sh); the trace parses and has its lanes; the graph is
# Graphviz's.
set -u
. "$(dirname "$0")/../scratch.sh"
models=$GHP_SOURCE/models

inspect() { "$GHP_BIN/ghp-inspect" "$@"; }

# refused CODE 'TEXT' ARGS...
refused() { denied "$1" "$2" inspect "${@:3}"; }

# has FILE 'TEXT': a fixed text
has() { grep -qF -e "$2" "$1" || fail "$1 has no '$2'"; }
hasnt() { grep -qE -e "$2" "$1" && fail "$1 has '$2'"; }

# page FILE: well-formed, at most 1 MB, nothing fetched
page() {
    local bytes
    bytes=$(wc -c <"$1")
    [ "$bytes" -le 1000000 ] || fail "$1 has $bytes bytes"
    # addresses: only data: and places of the page itself
    hasnt "$1" '[a-z]+://|[Ss][Rr][Cc] *=|@import'
    grep -oE '(href|url) *[=(] *["'\'']?[^"'\'')]*' "$1" | grep -vE '(href|url) *[=(] *["'\'']?(#|data:)' >fetched
    [ -s fetched ] && fail "$1 fetches: $(head -1 fetched)"
    if command -v xmllint >/dev/null; then
        xmllint --noout --nonet "$1" || fail "$1 is not well-formed"
    elif command -v python3 >/dev/null; then
        python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1" ||
            fail "$1 is not well-formed"
    else
        echo "not checked: well-formedness, for want of xmllint and python3" >&2
    fi
}

plan() { # plan MODEL OUT ARGS...
    local model=$1 out=$2
    shift 2
    "$GHP_BIN/ghp-plan" "$model" --profile p.json -o "$out" --time-limit 5 "$@" >/dev/null 2>err ||
        fail "cannot plan $model: $(cat err)"
}

"$GHP_BIN/ghp-profile" --machine-only --hwloc 'package:2 core:2 pu:1' --nodes 4 -o m.json >/dev/null 2>&1 ||
    fail "no machine"
analytic "$models/vgg16.json" p.json F=6e12,bandwidth=1.25e9,latency=20e-6

# what the page says
plan "$models/vgg16.json" vgg.json --machine m.json --workers 16 --batch 1024 --groups 4 --memory 6GiB
inspect vgg.json --html vgg.html --trace vgg.trace --dot vgg.dot >out 2>err || fail "vgg16: $(cat err)"
[ -s err ] && fail "chatter on stderr: $(cat err)"
[ "$(wc -l <out)" = 5 ] || fail "not one line a file: $(cat out)"
page vgg.html
has vgg.html 'vgg16 on 16 workers'
has vgg.html 'data: every layer by samples'
has vgg.html 'limit 6.00 GiB'
has vgg.html 'predicted compute stream'
has vgg.html '<h3>node 3</h3>'
has vgg.html '<b>worker 15</b>'
hasnt vgg.html 'measured compute stream|worker 16|node 4'
plan "$models/lenet5.json" one.json --machine m.json --workers 16 --batch 64 --groups 1
inspect one.json --html one.html >out 2>err || fail "one group: $(cat err)"
has one.html 'All 16 workers are one group: its exchanges pass the nodes'
has vgg.html 'prefers-color-scheme:dark'
has vgg.html '<html lang="en">'
# each drawing has a text in its place; each layer is in the table
labelled='<svg role="img"[^>]* aria-label="[^"]|<svg [^>]* role="img" aria-label="[^"]'
[ "$(grep -o '<svg' vgg.html | wc -l)" = "$(grep -oE "$labelled" vgg.html | wc -l)" ] ||
    fail "a drawing has no text in its place"
for layer in conv1 conv13.bias fc6 fc8 loss; do
    has vgg.html "<tr><th scope=\"row\">$layer</th>"
done
step=$(inspect vgg.json --json | sed -n 's/^ *"predicted_step_s": \([0-9.]*\),.*/\1/p' | head -1)
has vgg.html "$(awk -v s="$step" 'BEGIN { printf "<b>%.3f ms</b>", s * 1e3 }')"

# a plan of data parallelism has one row, not a second one as what it is compared with
plan "$models/lenet5.json" data.json --workers 4 --batch 64 --strategy data
inspect data.json --html data.html >/dev/null || fail "a plan of data parallelism"
has data.html '<h3>this plan (data)</h3>'
hasnt data.html 'data: every layer by samples'

# break-even values and edits, where the plan has them
has vgg.html 'flips to its second-best'
plan "$models/lenet5.json" far.json --workers 4 --batch 64 --set nodes=9
inspect far.json --html far.html >/dev/null || fail "a plan with all there is"
page far.html
has far.html '<td class="word">inter_bandwidth_Bps</td>'
has far.html '<b>What if:</b>'

# a large network stays small; a lone worker and an impossible strategy draw too
plan "$models/resnet50.json" big.json --machine m.json --workers 16 --batch 512 --mip-gap 0.2
inspect big.json --html big.html >/dev/null || fail "resnet50"
page big.html
plan "$models/lenet5.json" lone.json --workers 1 --batch 8
inspect lone.json --html lone.html --json >out || fail "one worker"
has out '"html": "lone.html"'
page lone.html

# names from files are text, not markup; ghp checks a plan's hashes, so the plan is made from such a model
evil='<script>alert(1)<\/script>\\"'\''\&amp; <img src=x onerror=alert(2)>'
sed "s/\"name\": \"lenet5\"/\"name\": \"$evil\"/" "$models/lenet5.json" >evil.json
cmp -s evil.json "$models/lenet5.json" && fail "the name was not changed"
plan evil.json evil.plan --workers 2 --batch 8
inspect evil.plan --html evil.html --dot evil.dot --trace evil.trace >/dev/null || fail "strange names"
hasnt evil.html '<script>alert|<img'
has evil.html '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;amp; &lt;img'
sed 's/ src=x/ x/' evil.html >evil2.html # the text, which is escaped, looks like an attribute
page evil2.html
has evil.dot 'digraph "<script>alert(1)</script>\"'

# a run with the plan: made up by hand from the trace's instructions, with other times
if command -v python3 >/dev/null; then
    inspect lone.json --trace lone.trace >/dev/null
    cat >run.py <<'PY'
import json
events = [e for e in json.load(open("lone.trace"))["traceEvents"] if e["ph"] == "X"]
assert [e["args"]["instruction"] for e in events] == list(range(len(events)))
rows = [dict(instruction=e["name"].split()[0], layer=e["args"].get("layer"),
             stream=("compute", "communication")[e["tid"]], predicted_start_s=None, predicted_s=None,
             measured_start_s=i * 1e-3, measured_s=1e-3, measured_wait_s=0.0)
        for i, e in enumerate(events)]
run = dict(format="ghp.run/2", model="lenet5", workers=1, global_batch=8, measured_step_s=len(rows) * 1e-3,
           instructions=rows)
json.dump(run, open("run.json", "w"))
json.dump(dict(run, workers=2), open("workers.json", "w"))
json.dump(dict(run, instructions=rows[1:]), open("fewer.json", "w"))
rows[3] = dict(rows[3], layer="elsewhere")
json.dump(run, open("layer.json", "w"))
json.dump(dict(run, measured_step_s=0.0), open("nothing.json", "w"))
PY
    python3 run.py || fail "the trace is not as described"
    inspect lone.json --run run.json --html run.html --trace run.trace >/dev/null || fail "a run"
    page run.html
    has run.html 'measured compute stream'
    has run.html 'measured step'
    refused 1 'another plan' lone.json --run workers.json --html no.html
    refused 1 'another number of instructions' lone.json --run fewer.json --html no.html
    refused 1 'its instructions differ' lone.json --run layer.json --html no.html
    refused 1 'measured no step' lone.json --run nothing.json --html no.html
    [ -e no.html ] && fail "a page was written for a refused run"
    cat >trace.py <<'PY'
import json
for name, processes in (("vgg.trace", 1), ("evil.trace", 1), ("run.trace", 2)):
    events = json.load(open(name))["traceEvents"]
    named = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert named == {"predicted", "measured"} if processes == 2 else {"predicted"}, named
    done = [e for e in events if e["ph"] == "X"]
    assert {e["pid"] for e in done} == set(range(1, processes + 1))
    assert {e["tid"] for e in done} <= {0, 1}
    for pid in range(1, processes + 1):  # what runs on one lane never overlaps
        for tid in (0, 1):
            lane = sorted((e["ts"], e["dur"]) for e in done if (e["pid"], e["tid"]) == (pid, tid))
            assert lane or tid == 1, (name, pid, tid)
            for (ts, dur), (after, _) in zip(lane, lane[1:]):
                assert ts + dur <= after + 1e-6 * max(1, after), (name, ts, dur, after)
step = 1e6 * json.load(open("vgg.json"))["predicted"]["predicted_step_s"]
lane = [e for e in json.load(open("vgg.trace"))["traceEvents"] if e["ph"] == "X" and e["tid"] == 0]
end = max(e["ts"] + e["dur"] for e in lane)
assert abs(end - step) <= 1e-9 * step, (end, step)
PY
    python3 trace.py || fail "a trace is not sound"
    # contrast of text on its ground, W3C's formula: body text, soft text, kinds of split on cards and on their tint
    cat >contrast.py <<'PY'
import re
style = open("vgg.html").read().split("<style>")[1].split("</style>")[0]
def rgb(text):
    text = text if len(text) == 6 else "".join(c + c for c in text)
    return [int(text[i:i + 2], 16) / 255 for i in (0, 2, 4)]
def luminance(c):
    c = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in c]
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]
def contrast(a, b):
    a, b = sorted((luminance(a), luminance(b)))
    return (b + 0.05) / (a + 0.05)
themes = re.findall(r":root\s*\{([^}]*)\}", style)
assert len(themes) == 2
for theme in themes:
    v = {k: rgb(c) for k, c in re.findall(r"--([a-z0-9]+):\s*#([0-9a-f]+)", theme)}
    tints = {k: [0.13 * v[k][i] + 0.87 * v["card"][i] for i in range(3)]
             for k in ("data", "out", "in", "channel", "full", "rows", "position", "ring")}
    pairs = [(k, ground, v[ground]) for k in ("ink", "soft") for ground in ("ground", "card")]
    pairs += [("change", "card", v["card"])]
    pairs += [(k, "card", v["card"]) for k in tints] + [(k, "its tint", t) for k, t in tints.items()]
    pairs += [("soft", k + "'s tint", t) for k, t in tints.items()]
    for name, ground, colour in pairs:
        c = contrast(v[name], colour)
        assert c >= 4.5, "%s on %s: %.2f" % (name, ground, c)
PY
    python3 contrast.py || fail "a colour is too near its ground"
else
    echo "not checked: runs, traces and contrast, for want of python3" >&2
fi

# Graphviz
if command -v dot >/dev/null; then
    for graph in vgg evil; do
        dot -Tsvg $graph.dot -o $graph.svg 2>err || fail "dot cannot read $graph.dot: $(cat err)"
    done
fi
layers=$(sed -n '/^  "splits": \[/,/^  \]/p' vgg.json | grep -c '"layer"')
[ "$(grep -c ' \[label=.*fillcolor' vgg.dot)" = "$layers" ] || fail "not one node a layer"

# bad usage
refused 2 'are about plans' p.json --html x.html
refused 2 'one plan alone' vgg.json --html x.html --verify
refused 2 'give one of them' vgg.json --run run.json
refused 1 "no-such-folder" vgg.json --html no-such-folder/x.html

[ "$failures" = 0 ] && echo "ghp-inspect draws what it should"
exit $((failures > 0))
