#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-profile,script
# tests/tools/plan/test_progress.sh - a long search shows how long it may still take, on terminals only and in colour
# only if that is wanted. In short tests tools/run/run stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
escape=$(printf '\033')

analytic "$GHP_SOURCE/models/vgg16.json" p.json F=6e12,bandwidth=1.25e9,latency=20e-6

"$GHP_BIN/ghp-profile" --machine-only --hwloc 'package:2 core:2 pu:1' --nodes 4 -o m.json >/dev/null 2>&1 ||
    fail "no machine"

# whether pure model parallelism fits into this memory is not found out in its part of the time, some seconds
search=("$GHP_BIN/ghp-plan" "$GHP_SOURCE/models/vgg16.json" --profile p.json --machine m.json --workers 16 --batch 1024
    --groups 4 --memory 6GiB --time-limit 6 --strategy model)

on_terminal() { # on_terminal ENVIRONMENT...: what the terminal gets
    env -u NO_COLOR TERM=xterm "$@" script -qec "${search[*]}" /dev/null </dev/null
}

on_terminal >shown
grep -q 'searching \[#.*% *, *[0-9.]* *[a-z]* left, at most; [0-9]* plans' shown || fail "no bar: $(head -c 300 shown)"
grep -qF "$escape[36m" shown || fail "no colour on a terminal"
on_terminal NO_COLOR=1 >shown
grep -q 'searching \[' shown || fail "no bar without colour"
grep -qF "$escape[3" shown && fail "colour in spite of NO_COLOR"
on_terminal TERM=dumb >shown
grep -qF "$escape[3" shown && fail "colour on a dumb terminal"

"${search[@]}" >out 2>err
grep -q 'searching' out err && fail "a bar where no terminal is"
grep -qF "$escape" out err && fail "an escape where no terminal is"

[ "$failures" = 0 ] && echo "progress is where it belongs"
exit $((failures > 0))
