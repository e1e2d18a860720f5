# tests/tools/scratch.sh - sourced by the tools' tests: a folder of their own that goes with them, and how failures are said.
# A test ends with [ $failures -eq 0 ], so that it tells all that is wrong at once.
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT
failures=0

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# number KEY FILE: the first value of a key in a JSON file of one key a line
number() { sed -n "s/^ *\"$1\": *\([-+0-9.eE]*\),*\$/\1/p" "$2" | head -n 1; }
