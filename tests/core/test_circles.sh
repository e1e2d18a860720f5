#!/bin/bash
# tests/core/test_circles.sh - whether source files use each other in a circle, by the symbols of their object files: of
# each circle the files, and what each uses of the others. tests/core/test_includes.sh sees includes; this sees calls.
#
# ghp-test: needs=nm
set -u
cd "${GHP_BIN:?set it to the folder of the tools}/.." || exit 1
python=$(command -v python3) || {
    echo "python3 is not installed"
    exit 77
}
exec "$python" - <<'PYTHON'
import json
import os
import shlex
import subprocess
import sys

rooms = ("core/", "onnx/", "inspect/", "planner/", "executor/", "profiler/")


def objects():
    """Path of the source without its ending: path of its object. Only those of this build: old ones are left."""
    with open("compile_commands.json", encoding="utf-8") as file:
        commands = json.load(file)
    source = os.environ["GHP_SOURCE"]
    for command in commands:
        name = os.path.relpath(os.path.join(command["directory"], command["file"]), source)
        words = shlex.split(command["command"])
        path = os.path.join(command["directory"], words[words.index("-o") + 1])
        if name.startswith(rooms) and os.path.exists(path):
            yield os.path.splitext(name)[0], path


def symbols(paths):
    """Of each object what it defines for others, and what it uses of others."""
    table = {path: (set(), set()) for path in paths}
    lines = subprocess.run(["nm", "-gA", *paths], capture_output=True, text=True, check=True).stdout.splitlines()
    for path, line in (line.rsplit(":", 1) for line in lines):
        kind, name = line.split()[-2:]
        table[path][kind == "U"].add(name)
    return table


def circles(uses):
    """Tarjan's strongly connected components of more than one file."""
    order, low, stack, found = {}, {}, [], []

    def visit(at):
        order[at] = low[at] = len(order)
        stack.append(at)
        for to in uses[at]:
            if to not in order:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == order[at]:
            circle = stack[stack.index(at):]
            del stack[stack.index(at):]
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for at in uses:
        if at not in order:
            visit(at)
    return sorted(found)


paths = dict(objects())
of_path = symbols(list(paths.values()))
table = {name: of_path[path] for name, path in paths.items()}
owner = {symbol: name for name, (defined, _) in table.items() for symbol in defined}
uses = {name: {} for name in table}
for name, (_, used) in table.items():
    for symbol in used:
        if owner.get(symbol, name) != name:
            uses[name].setdefault(owner[symbol], []).append(symbol)

failures = 0
found = circles(uses)
for circle in found:
    failures += 1
    print(f"{len(circle)} files use each other in a circle; split out the part below, or move it:", file=sys.stderr)
    for name in circle:
        for other in sorted(set(uses[name]) & set(circle)):
            print(f"    {name} uses of {other}: {' '.join(sorted(uses[name][other]))}", file=sys.stderr)
if len(table) < 100:
    failures += 1
    print(f"there are {len(table)} objects in {os.getcwd()}; build all first", file=sys.stderr)
print(f"{len(found)} circles with {sum(map(len, found))} of {len(table)} files")
sys.exit(failures > 0)
PYTHON
