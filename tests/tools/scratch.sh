# tests/tools/scratch.sh - sourced by the tools' tests: a folder of their own that goes with them, and how failures
# are said. A test ends with [ $failures -eq 0 ], so that it tells all that is wrong at once.
scratch=$(mktemp -d) && cd "$scratch" || exit 1
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$PWD/cache # measurements of one test are not another's
failures=0

# full: whether all cases are wanted (GHP_TEST_FULL=1, set by `./check --full`), or the few that prove each property
full() { [ "${GHP_TEST_FULL:-}" = 1 ]; }

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# analytic MODEL FILE [LAW]: a profile by formulas
analytic() {
    "$GHP_BIN/ghp-profile" --analytic "${3:-F=1e11,bandwidth=1e9,latency=1e-5}" --model "$1" -o "$2" >out 2>err || {
        cat err >&2
        exit 1
    }
}

# ranks N TOOL ARGS...: ghp-TOOL by N processes; stdout in out, stderr in err
ranks() { mpirun --oversubscribe --bind-to none -n "$1" "$GHP_BIN/ghp-$2" "${@:3}" >out 2>err </dev/null; }

# number KEY FILE: the first value of a key in a JSON file of one key a line
number() { sed -n "s/^ *\"$1\": *\([-+0-9.eE]*\),*\$/\1/p" "$2" | head -n 1; }

# holds FILE EXPRESSION: Python's, of the object `o` in a JSON file
holds() { python3 -c "import json; o = json.load(open('$1')); assert $2, o"; }

larger() { awk -v a="$1" -v b="$2" 'BEGIN { print (b + 0 > a + 0) ? b : a }'; }

# waits SECONDS COMMAND...: until the command succeeds
waits() {
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

# alive PROCESS: it has not ended, nor waits as a zombie for its parent
alive() { kill -0 "$1" 2>/dev/null && [ "$(ps -o stat= -p "$1" | cut -c1)" != Z ]; }

# warm_python MODULE...: starts a Python (GHP_PYTHON or python3) that imports them once, for `warm`; fails if one is missing
warm_python() {
    "${GHP_PYTHON:-python3}" "$GHP_SOURCE/tests/tools/warm_python.py" serve "$scratch/python" "$@" \
        </dev/null >/dev/null 2>python-err &
    warm=$!
    trap 'kill $warm 2>/dev/null; rm -rf "$scratch"' EXIT
    until [ -e "$scratch/python" ]; do
        alive $warm || return 1
        sleep 0.05
    done
}

# warm PROGRAM ARG...: as `python3 PROGRAM ARG...`, in a copy of that Python
warm() { "${GHP_PYTHON:-python3}" -S "$GHP_SOURCE/tests/tools/warm_python.py" run "$scratch/python" "$@"; }

# lines N: metrics.jsonl has N lines
lines() { [ -e metrics.jsonl ] && [ "$(wc -l <metrics.jsonl)" -ge "$1" ]; }

# denied CODE 'TEXT' COMMAND...: exits with CODE, says TEXT (a regular expression) on stderr, and nothing on stdout
denied() {
    local code=$1 text=$2 got=0
    shift 2
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$code" ] || fail "$*: exit $got, expected $code: $(cat err)"
    grep -qE -e "$text" err || fail "$*: does not say '$text', but: $(cat err)"
    [ ! -s out ] || fail "$*: chatter on stdout"
}

# not_run CODE TEXT RANKS ARGS...: ghp-run of plan.json by RANKS processes, denied
not_run() { denied "$1" "$2" mpirun --oversubscribe --bind-to none -n "$3" "$GHP_BIN/ghp-run" plan.json "${@:4}"; }

# not_planned CODE TEXT WORKERS BATCH ARGS...: ghp-plan of $model by profile.json, denied
not_planned() {
    denied "$1" "$2" "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$3" --batch "$4" "${@:5}" -o x.json
}

# denied_once CODE TEXT COMMAND...: several processes exit with CODE; one of them says TEXT (as it is), within a minute
denied_once() {
    local code=$1 text=$2 got=0
    shift 2
    timeout 60 "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$code" ] || fail "exit $got, not $code: $* : $(cat err)"
    [ "$(grep -cF -e "$text" err)" = 1 ] || fail "not once '$text' in: $(cat err)"
}
