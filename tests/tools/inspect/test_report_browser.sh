#!/usr/bin/env bash
# ghp-test: timeout=240 needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/inspect/test_report_browser.sh - the report's page in a browser: nothing is blocked, nothing fails, and
# neither a wide nor a narrow window has to scroll the page aside.
set -u
here=$(dirname "$(readlink -f "$0")")
. "$here/../scratch.sh"
. "$here/browser.sh"
if [ -z "$browser" ]; then
    echo "skipped: there is no chromium to show the page with"
    exit 77
fi

analytic "$GHP_SOURCE/models/vgg16.json" p.json F=6e12,bandwidth=1.25e9,latency=20e-6
page() { # page MODEL NAME WORKERS BATCH
    "$GHP_BIN/ghp-plan" "$1" --profile p.json --workers "$3" --batch "$4" -o "$2.json" >/dev/null 2>err ||
        fail "cannot plan: $(cat err)"
    "$GHP_BIN/ghp-inspect" "$2.json" --html "$2.html" >/dev/null || fail "cannot draw $2"
}
page "$GHP_SOURCE/models/vgg16.json" vgg 16 1024
evil='<script>alert(1)<\/script> <img src=x onerror=console.error(2)>'
sed "s/\"name\": \"lenet5\"/\"name\": \"$evil\"/" "$GHP_SOURCE/models/lenet5.json" >evil-model.json
page evil-model.json evil 2 8

console() { # console FILE: what the page says on the console
    browse "$1" --enable-logging=stderr --window-size=1280,1000 2>&1 >dom | grep 'CONSOLE'
}
sed 's/<script>/<script>nobody.home();/' vgg.html >broken.html
console broken.html | grep -q 'nobody' || fail "the browser's console cannot be heard"
for f in vgg evil; do
    console $f.html >said && fail "$f.html: $(head -2 said)"
    grep -q '</html>' dom || fail "$f.html was not shown"
done
fits vgg.html

[ "$failures" = 0 ] && echo "the page works in $browser"
exit $((failures > 0))
