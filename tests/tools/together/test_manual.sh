#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp,ghp-plan,ghp-expect,ghp-profile,ghp-inspect,ghp-run,ghp-launch,ghp-train
# tests/tools/together/test_manual.sh - what each tool says of itself: --version with its libraries, the man page and
# bash's completions, which come from the option table and are installed.
set -u
. "$(dirname "$0")/../scratch.sh"

for tool in ghp ghp-plan ghp-expect ghp-profile ghp-inspect ghp-run ghp-launch ghp-train; do
    # versions: the tool's own, and of the libraries that it is linked to and no others
    "$GHP_BIN/$tool" --version >version 2>err || fail "$tool --version: $(cat err)"
    grep -qE "^$tool \(ghp\) [0-9]+\.[0-9]+\.[0-9]+$" version || fail "$tool --version: no version of its own"
    needed=$(readelf -d "$GHP_BIN/$tool" | grep NEEDED)
    for pair in jansson:jansson GLPK:glpk oneDNN:dnnl 'Open MPI:mpi' hwloc:hwloc zlib:z; do
        linked=no said=no
        grep -q "\[lib${pair##*:}\.so" <<<"$needed" && linked=yes
        grep -qE "^${pair%%:*} .*[0-9]+\.[0-9]+" version && said=yes
        [ "$linked" = "$said" ] || fail "$tool: ${pair%%:*} is linked: $linked, said: $said"
    done

    # --help is a page of a terminal, and says how to get the rest; exit code 4 is of those that train
    "$GHP_BIN/$tool" --help >short
    "$GHP_BIN/$tool" --help all >help
    [ "$(wc -l <short)" -le 60 ] || fail "$tool --help has $(wc -l <short) lines"
    [ "$(LC_ALL=C.UTF-8 awk 'length($0) > 80' short help | wc -l)" = 0 ] ||
        fail "$tool --help is wider than 80 columns: $(LC_ALL=C.UTF-8 awk 'length($0) > 80' short help | head -3)"
    cmp -s help <("$GHP_BIN/$tool" --help=all) || fail "$tool --help=all is not --help all"
    cmp -s short help || grep -q "'$tool --help all' has the others" short || fail "$tool --help hides options"
    tr '\n' ' ' <short | grep -q "Exit codes: [^.]*, 4 ended early by a signal" && ends=yes || ends=no
    case $tool in ghp-run | ghp-launch | ghp-train) wanted=yes ;; *) wanted=no ;; esac
    [ $ends = $wanted ] || fail "$tool: --help names exit code 4: $ends, not $wanted"

    # the man page names every option of --help, and groff has nothing to say against it
    "$GHP_BIN/$tool" --help=man >page 2>err || fail "$tool --help=man: $(cat err)"
    for option in $(grep -oE '^ {2,6}(-[a-zA-Z], )?--[a-z0-9-]+' help | grep -oE '\-\-[a-z0-9-]+'); do
        grep -qF "\\fB${option//-/\\-}\\fR" page || fail "$tool: $option is not in the man page"
    done
    [ "$tool" != ghp ] && sed '/^\.SH OPTIONS/q' page | grep -q '^\.TP' && fail "$tool: its man page begins with a list"
    if command -v groff >/dev/null; then
        groff -ww -man -Tutf8 -P-cbou page >text 2>warnings
        [ -s warnings ] && fail "$tool: groff says $(head -3 warnings)"
        grep -q "EXIT STATUS" text || fail "$tool: groff drops sections"
        [ -z "$(LC_ALL=C.UTF-8 awk 'length($0) > 80' text)" ] || fail "$tool: its man page is wider than 80 columns"
    else
        echo "not checked: the man page by groff, which is not there" >&2
    fi

    # completions: every option, the values of choices, files
    "$GHP_BIN/$tool" --help=bash >completions 2>err || fail "$tool --help=bash: $(cat err)"
    bash -n completions || fail "$tool: bash cannot read its completions"
done

# offers 'WORDS...' -> the completions of the last word, sorted, on one line
offers() {
    (
        # shellcheck disable=SC1090
        source <("$GHP_BIN/$1" --help=bash) || exit
        complete -p "$1" >/dev/null || exit
        # shellcheck disable=SC2034
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "_${1//-/_}"
        printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
    )
}

expect() { # expect 'WHAT' WORDS...
    local what=$1 got
    shift
    got=$(offers "$@")
    [ "$got" = "$what " ] || fail "$*: offers '$got', not '$what'"
}

touch 'my plan.json' model.json
PATH=$GHP_BIN:$PATH
expect "--strategy" ghp-plan --strat
expect "auto data model owt" ghp-plan --strategy ""
expect "data" ghp-plan --strategy d
expect "data" ghp-plan --strategy = d
expect "auto data model owt" ghp-plan --strategy =
expect "model.json" ghp-plan mod
expect "my plan.json" ghp-run --run my
expect "" ghp-run --steps ""
expect "--version" ghp-inspect --v --vers
expect "plan profile" ghp p
expect "pipeline plan profile python pytorch" ghp help p
expect "auto data model owt" ghp plan --strategy ""
expect "auto data model owt" ghp plan --strategy =
expect "my plan.json" ghp run my
expect "" ghp nosuch my
options=$(ghp-run --help all | sed -nE 's/^ {2,6}(-[a-zA-Z], )?(--[a-z0-9-]+).*/\2/p' | sort | tr '\n' ' ')
[ "$(offers ghp-run --)" = "$options" ] || fail "ghp-run: completions are not the options of --help"

"$GHP_BIN/ghp-plan" --help=html >out 2>err
[ $? = 2 ] || fail "--help=html is not refused"
grep -q "give all, man, md, bash, or none" err || fail "--help=html: $(cat err)"
[ -s out ] && fail "--help=html prints"

# installed where man and bash look
build=$(dirname "$GHP_BIN")
if cmake --install "$build" --prefix "$PWD/usr" >log 2>&1; then
    for tool in ghp ghp-plan ghp-expect ghp-profile ghp-inspect ghp-run ghp-launch ghp-train; do
        cmp -s "usr/share/man/man1/$tool.1" <("$GHP_BIN/$tool" --help=man) ||
            fail "$tool.1 is not installed as it should be"
        cmp -s "usr/share/bash-completion/completions/$tool" <("$GHP_BIN/$tool" --help=bash) ||
            fail "$tool's completions are not installed"
    done
    if command -v man >/dev/null; then
        man --warnings -l usr/share/man/man1/ghp-plan.1 >/dev/null 2>warnings || fail "man: $(cat warnings)"
        [ -s warnings ] && fail "man says $(head -3 warnings)"
    fi
else
    fail "cannot install: $(tail -3 log)"
fi

[ "$failures" = 0 ] && echo "each tool says what it is"
exit $((failures > 0))
