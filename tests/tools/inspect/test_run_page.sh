#!/usr/bin/env bash
# ghp-test: timeout=120 label=mpi needs=ghp-plan,ghp-profile,ghp-run,ghp-inspect
# tests/tools/inspect/test_run_page.sh - a run's page: well-formed, nothing fetched, every loss and layer in it, foreign
# names escaped; what has no such page is refused. In a browser, where there is one, it fits wide and narrow windows.
set -u
here=$(dirname "$(readlink -f "$0")")
. "$here/../scratch.sh"
. "$here/browser.sh"
sed 's/"name": "lenet5"/"name": "<b>lenet<\/b>"/' "$GHP_SOURCE/models/lenet5.json" >model.json
analytic model.json profile.json
"$GHP_BIN/ghp-plan" model.json --profile profile.json --workers 2 --batch 8 -o plan.json >out 2>err &&
    ranks 2 run plan.json --steps 120 --threads 1 --run run.json || { cat err >&2; exit 1; }
inspect() { "$GHP_BIN/ghp-inspect" "$@"; }

inspect run.json --html run.html >out 2>err || fail "$(cat err)"
grep -q '^wrote run.html$' out || fail "says $(cat out)"
grep -qE '://|[Ss][Rr][Cc] *=|@import|\{\{' run.html && fail "something is fetched, or left out"
grep -q '<b>lenet' run.html && fail "a name became markup"
grep -qF '&lt;b&gt;lenet&lt;/b&gt; trained on 2 workers' run.html || fail "no name"
grep -q '"each" d="M[^"]*"' run.html || fail "no curve"
[ "$(grep -o 'class="each" d="[^"]*"' run.html | grep -o '[ML]' | wc -l)" = 120 ] || fail "not every loss"
layers=$(sed -n '/"layers"/,/\]/p' run.json | grep -c '"layer"')
[ "$(grep -c 'class="tag' run.html)" = "$layers" ] || fail "not every layer"
for text in 'measured step' 'predicted step' '>forward<' '>launch overhead<' 'from 3.173 in the first step'; do
    grep -qF "$text" run.html || fail "no '$text'"
done
if command -v xmllint >/dev/null; then
    xmllint --noout --nonet run.html || fail "not well-formed"
elif command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' run.html || fail "not well-formed"
fi

# a resumed run's steps are its own; a loss that was not finite is left out of the curve
first_loss() {
    sed -z "s/\(\"losses\": \[[ \n]*\)[-+0-9.e]*/\1$1/" run.json | sed 's/"first_step": 0/"first_step": 1000/'
}
first_loss null >later.json
inspect later.json --html later.html >out 2>err || fail "a loss that is null: $(cat err)"
grep -qF '<span>120 steps</span>' later.html || fail "a resumed run's steps"
grep -qF '>step 1000<' later.html || fail "a resumed run's first step"
[ "$(grep -o 'class="each" d="[^"]*"' later.html | grep -o '[ML]' | wc -l)" = 119 ] ||
    fail "a loss that is null is drawn"
first_loss '"x"' >wrong.json
denied 1 'this is not a loss' inspect wrong.json --html wrong.html

denied 2 'a run has --html FILE alone; for the others give its plan, with --run run.json' \
    inspect run.json --trace t.json
denied 2 'html is of one run' inspect run.json run.json --html both.html
denied 2 'would write over the input' inspect run.json --html run.json

[ -z "$browser" ] || fits run.html
exit $((failures > 0))
