#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/hardship/test_long.sh - a long training: what it keeps of its losses is bounded and evenly spaced, and
# each is the one that the metrics file has for that step; the first, the last and the number of steps are true however
# long it is. In short tests core/base/file_open stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
steps=5000 most=2048 # GHP_LOSSES_KEPT of executor/train/losses.h

cat >model.json <<'JSON'
{"format": "ghp.model/1", "name": "tiny", "input": {"channels": 4}, "layers": [
  {"name": "fc1", "op": "linear", "features": 3}, {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
analytic model.json profile.json
"$GHP_BIN/ghp-plan" model.json --profile profile.json --workers 1 --batch 4 -o plan.json >out 2>&1 ||
    { cat out >&2; exit 1; }
"$GHP_BIN/ghp-run" plan.json --steps $steps --lr 0.001 --metrics metrics.jsonl --json >run.json 2>err </dev/null ||
    { cat err >&2; exit 1; }
[ "$(number steps run.json)" = $steps ] || fail "steps: $(number steps run.json), not $steps"
every=$(number losses_every run.json)
awk '/"losses": \[/ { on = 1; next } /\]/ { on = 0 } on { gsub(/[ ,]/, ""); print }' run.json >kept
n=$(wc -l <kept)
[ "$n" -le $most ] || fail "$n losses are kept of $steps steps, more than $most"
[ "$n" -ge $((most / 2)) ] || fail "only $n losses are kept of $steps steps"
sed -n 's/.*"loss":\([-+0-9.eE]*\).*/\1/p' metrics.jsonl >all
[ "$(wc -l <all)" = $steps ] || fail "the metrics have $(wc -l <all) steps"
# the metrics have nine digits
awk -v every="${every:-1}" '(NR - 1) % every == 0' all | paste - kept | awk '
    { d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-8 * $1) bad++ } END { exit bad > 0 || NR == 0 }' ||
    fail "what is kept is not every ${every:-1}. step's loss"
awk -v a="$(tail -n 1 all)" -v b="$(number final_loss run.json)" 'BEGIN { d = a - b; exit !(d < 1e-8 && d > -1e-8) }' ||
    fail "final_loss is not that of the last step"
echo "$n losses of $steps steps, every ${every:-1}."
exit $((failures > 0))
