#!/bin/bash
# cmake/analyze.sh BUILD [FOLDER...] - clang's static analyzer over the C sources that a build folder of ninja has
# compiled, in these folders of ghp (core, onnx, planner and inspect). Prints what it finds; exit code 0: nothing.
#
# What was analyzed without a finding is noted in ~/.cache/ghp/analyzed, by the contents of the source and its headers,
# the command and clang's version, and left out from then on.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:?give a build folder, such as build-fuzz}
shift
[ $# -gt 0 ] || set -- core onnx planner inspect
exec python3 - "$build" "$@" <<'PYTHON'
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys

build, root = os.path.abspath(sys.argv[1]), os.getcwd()
folders = tuple(os.path.join(root, folder) + os.sep for folder in sys.argv[2:])
kept = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ghp", "analyzed")
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
    entries = {e["file"]: e for e in json.load(file) if e["file"].startswith(folders) and e["file"].endswith(".c")}


def output_of(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def words_of(entry):
    """What the analyzer needs of the compiler's command: the dialect, macros and folders."""
    words, taken = shlex.split(entry["command"]), []
    for i, word in enumerate(words):
        if word.startswith(("-D", "-I", "-isystem", "-std", "-f", "-m", "-pthread")):
            taken += words[i:i + 2] if word in ("-D", "-I", "-isystem") else [word]
    return taken


def headers_of():
    """What each object was compiled from, as ninja knows it; paths as they lead from the build folder."""
    found, of = {}, []
    for line in output_of(["ninja", "-C", build, "-t", "deps"]).split("\n"):
        if line.startswith(" "):
            of.append(os.path.normpath(os.path.join(build, line.strip())))
        elif ": #deps" in line:
            of = found.setdefault(line.split(":")[0], [])
    return found


hashes = {}


def hash_of(path):
    if path not in hashes:
        with open(path, "rb") as file:
            hashes[path] = hashlib.sha256(file.read()).hexdigest()
    return hashes[path]


def key_of(entry, headers):
    words = shlex.split(entry["command"])
    own = [p for p in headers.get(words[words.index("-o") + 1], []) if p.startswith(root + os.sep)]
    text = [version, *[word.replace(root, ".") for word in words_of(entry)], entry["file"].replace(root, ".")]
    return hashlib.sha256("\n".join(text + [hash_of(p) for p in own]).encode()).hexdigest() if own else ""


def analyze(entry):
    # with fewer steps than the usual 225000 a function, some files take a tenth of the time
    limits = ["-Xclang", "-analyzer-output=text", "-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000"]
    # where such a limit ends a path, memory that is freed after it counts as leaked: the sanitizers find true leaks
    limits += ["-Xclang", "-analyzer-disable-checker", "-Xclang", "unix.Malloc"]
    return subprocess.run(["clang", "--analyze", "-Qunused-arguments", *limits, *words_of(entry), entry["file"]],
                          cwd=entry["directory"], capture_output=True, text=True, check=False).stderr


version, headers = output_of(["clang", "--version"]).split("\n")[0], headers_of()
keys = {name: key_of(entry, headers) for name, entry in entries.items()}
left = [name for name in entries if not keys[name] or not os.path.exists(os.path.join(kept, keys[name]))]
os.makedirs(kept, exist_ok=True)
found = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for name, text in zip(left, pool.map(analyze, [entries[name] for name in left])):
        if text:
            found += 1
            sys.stderr.write(text)
        elif keys[name]:
            open(os.path.join(kept, keys[name]), "w", encoding="utf-8").close()
print("clang's analyzer: %d files, %d of them analyzed now, findings in %d" % (len(entries), len(left), found))
sys.exit(found > 0 or not entries)
PYTHON
