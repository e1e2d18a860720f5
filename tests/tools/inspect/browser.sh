# tests/tools/inspect/browser.sh - sourced by tests that show a page in a browser, after scratch.sh: the browser, and
# whether a page fits its window.
# shellcheck shell=bash
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) # empty: there is none

# browse PAGE [OPTION...]: shows a page of this folder; its document, as it became, goes to stdout
browse() {
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD/chrome" \
        --virtual-time-budget=2000 "${@:2}" --dump-dom "file://$PWD/$1"
}

# fits PAGE: neither a narrow nor a wide window has to scroll it aside
fits() {
    local width is may
    for width in 400 1280; do
        cat >frame.html <<HTML
<iframe id="f" src="$1" style="width:${width}px;height:2000px"></iframe>
<script>document.getElementById("f").onload = function () {
  try {
    var d = this.contentDocument.documentElement;
    document.title = "wide " + d.scrollWidth + " of " + d.clientWidth;
  } catch (e) { document.title = "closed"; } };</script>
HTML
        browse frame.html --allow-file-access-from-files --window-size=1400,1000 >dom 2>/dev/null
        read -r _ is _ may <<<"$(sed -n 's:.*<title>\(.*\)</title>.*:\1:p' dom | head -1)"
        [ "${is:-}" = "${may:--}" ] || fail "$1 is ${is:-?} pixels wide in a window of ${may:-?}"
    done
}
