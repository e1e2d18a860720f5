#!/bin/bash
# tests/core/test_style.sh [--fix] - the part of the house style that clang-format does not know, in all C sources:
#
#   for (...; i++)   and i++; as a statement: one way to count
#   sizeof x         of an expression; sizeof(int) of a type (C alone: C++ names types like variables)
#   Words. Words.    one space after a full stop
#
# Says where a line differs; with --fix changes it. Names of types that end in _t, are in capitals or follow
# struct, enum or union are known; `types` has the others.
set -u
cd "${GHP_SOURCE:?set it to the source tree}" || exit 1
python=$(command -v python3) || {
    echo "python3 is not installed"
    exit 77
}
exec "$python" - "$@" <<'PYTHON'
import re
import subprocess
import sys

types = "char short int long float double bool void unsigned lanes bytes shorts words number".split()
path = r"[A-Za-z_]\w*(?:(?:->|\.)\w+|\[[^][]*\])*"
rules = [
    ("i++ in a loop", re.compile(r"(for \([^;]*;[^;]*;(?:[^;()]*, )?\s*)\+\+(" + path + r")\)"), r"\1\2++)"),
    ("i++ as a statement", re.compile(r"^(\s*(?:[^/\"]*\)\s)?)\+\+(" + path + r");", re.M), r"\1\2++;"),
    ("one space after a full stop", re.compile(r"(?<=[a-z0-9)'`])\.  (?=[A-Z`'])"), ". "),
]
size = re.compile(r"\bsizeof\((\**" + path + r")\)")


def size_of(match):
    word = re.match(r"\**(\w+)", match[1])[1]
    return match[0] if word in types or word.endswith("_t") or word.isupper() else "sizeof " + match[1]


fix, failures = "--fix" in sys.argv, 0
names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.cu", "*.cuh"], capture_output=True, text=True).stdout.split()
for name in names:
    with open(name, encoding="utf-8") as file:
        text = was = file.read()
    sizes = [] if name.endswith((".cu", ".cuh")) else [("sizeof x of an expression", size, size_of)]
    for what, pattern, right in rules + sizes:
        new = pattern.sub(right, text)
        if new != text:
            failures += 1
            old, now = text.split("\n"), new.split("\n")
            line = next(i for i, (a, b) in enumerate(zip(old, now)) if a != b)
            if not fix:
                print(f"{name}:{line + 1}: {what}: {now[line].strip()}", file=sys.stderr)
        text = new
    if fix and text != was:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
if failures and not fix:
    print("tests/core/test_style.sh --fix changes them", file=sys.stderr)
sys.exit(failures > 0 and not fix)
PYTHON
