#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp-plan,ghp-expect,ghp-run,ghp-profile,ghp-inspect,ghp-launch,ghp-train,python3
# tests/tools/together/test_options_named.sh - each option that a message names is one of some tool, and each choice that
# a remedy gives to it ("plan with --load-balance equal") is one of its choices. Compares the C strings of the source
# tree with what --help prints.
set -u
. "$(dirname "$0")/../scratch.sh"

for tool in plan expect run profile inspect launch train; do
    "$GHP_BIN/ghp-$tool" --help all >$tool.help
done
python3 - "$GHP_SOURCE" *.help <<'EOF' || fail "options are named that are not there"
import pathlib, re, sys

# of mpirun, srun, lstopo and bench/lab/run; of the solvers that ghp-inspect runs, up to a low line
FOREIGN = {"hostfile", "oversubscribe", "map-by", "ntasks-per-node", "distribution", "mpi", "of", "freemps", "tmlim",
           "options", "time", "hosts", "rate"}
root = pathlib.Path(sys.argv[1])
choices = {}  # option: all choices of it, by any tool; None: some tool takes any value
for path in sys.argv[2:]:
    text = re.sub(r"\n {20,}", " ", pathlib.Path(path).read_text())
    for name, argument, rest in re.findall(r"^ {2,6}(?:-\w, )?--([a-z0-9-]+)(?: (NAME\b))?(.*)$", text, re.M):
        listed = re.search(r": ((?:[\w:.-]+, )*[\w:.-]+)(?: \[.*\])?$", rest) if argument else None
        if listed and choices.get(name, set()) is not None:
            choices.setdefault(name, set()).update(listed[1].split(", "))
        else:
            choices[name] = None
assert len(choices) > 100, choices

def look(where, text):
    wrong = 0
    for match in re.finditer(r"(\w+ )?(?<![\w-])--([a-z][a-z0-9-]*)(?:[ =]([a-z0-9-]+))?", text):
        before, name, value = match.groups()
        if name not in choices and name not in FOREIGN:
            wrong += 1
            print(f"{where}: --{name} is no option of a tool: ...{match[0]}", file=sys.stderr)
        elif before in ("with ", "use ", "give ", "or ", "add ") and value and choices.get(name):
            if value not in choices[name]:
                wrong += 1
                print(f"{where}: {match[0]}: its choices are {sorted(choices[name])}", file=sys.stderr)
    return wrong

wrong = strings = 0
for room in ("core", "onnx", "planner", "inspect", "executor", "profiler"):
    for path in (root / room).rglob("*.c"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        text = re.sub(r'"\s*\n\s*"', "", text)
        for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
            if "<svg" in string or "var(--" in string or "COMP_WORDS" in string or "--ink" in string:
                continue
            strings += 1
            wrong += look(path.relative_to(root), string)
assert strings > 5000, strings
sys.exit(wrong > 0)
EOF
[ $failures -eq 0 ]
