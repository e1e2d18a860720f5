# tests/tools/examples/example.sh - sourced by the examples' tests: runs one as a reader would.
# shellcheck shell=bash source-path=SCRIPTDIR source=../scratch.sh
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

# example NAME: runs examples/NAME/run.sh in the folder `work`, with its output in `out`, and checks that its page names
# the command. What it cannot do here, it says itself.
example() {
    local code=0 folder=$GHP_SOURCE/examples/$1
    bash "$folder/run.sh" work >out 2>err </dev/null || code=$?
    [ $code != 77 ] || { tail -n 1 err >&2; exit 77; }
    [ $code = 0 ] || fail "examples/$1/run.sh: exit $code: $(tail -n 5 err)"
    grep -q "examples/$1/run.sh" "$folder/README.md" || fail "examples/$1/README.md does not name its command"
    [ "$(wc -l <"$folder/README.md")" -le 40 ] || fail "examples/$1/README.md has more than 40 lines"
}

# above NUMBER LEAST WHAT, below NUMBER MOST WHAT
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a > b) }' || fail "$3 is '$1', not above $2"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a < b) }' || fail "$3 is '$1', not below $2"; }
