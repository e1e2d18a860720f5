"""Where ghp's tools are, and how they are run."""
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Iterable, List, Mapping, Optional, Sequence, Union

Option = Union[None, bool, int, float, str, os.PathLike, Sequence[Union[int, float, str, os.PathLike]]]

_OWN = Path(__file__).parent / "bin"


class Error(Exception):
    """What a tool of ghp refused, or failed to do: its own sentence, which names a remedy.

    code   the tool's exit code: 1 tried and failed, 2 bad usage, 3 a sound question with a negative answer
    """

    def __init__(self, sentence: str, code: int = 1):
        super().__init__(sentence)
        self.code = code


class UsageError(Error, ValueError):
    """An option, or a file, that cannot be meant."""


class NoPlanError(Error):
    """A sound question with a negative answer, such as a plan for less memory than any plan needs."""


def find(name: str) -> Optional[str]:
    """The path of a tool: the package's own, or the one in the folder GHP_BIN, or the one on PATH; None if there is
    none."""
    for folder in (_OWN, os.environ.get("GHP_BIN")):
        if folder and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    return shutil.which(name)


def options(given: Mapping[str, Option]) -> List[str]:
    """Keywords as a command line has them: batch_norm="local" is --batch-norm local, json=True is --json, a list gives
    an option several times, and None or False leaves it out."""
    words: List[str] = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            words += [option] if one is True else [option, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return words


def _as_keywords(sentence: str, words: Sequence[str]) -> str:
    """What a tool says of options, with Python's keywords in their place: batch_norm for those in quotes and those that
    are in `words`, batch_norm="local" for '--batch-norm local'."""
    sentence = re.sub(r"'--([a-z][a-z0-9-]*) ([^' ]+)'", lambda m: '%s="%s"' % (m[1].replace("-", "_"), m[2]), sentence)
    given = "|".join(re.escape(word) for word in words if word.startswith("--"))
    return re.sub(r"(?<=')--([a-z][a-z0-9-]*)(?=')" + (r"|(?<![\w-])(?:%s)(?![\w-])" % given if given else ""),
                  lambda m: m[0][2:].replace("-", "_"), sentence)


def run(name: str, arguments: Iterable[object], before: Sequence[str] = (), cwd: Optional[str] = None,
        keywords: bool = False) -> str:
    """Runs a tool; returns what it prints.

    Its warnings become Python's. Raises Error, or one of its two kinds, with what it says when it fails.

    before     words in front of the tool, such as those of mpirun
    keywords   whether the options were given as keywords, which errors then name
    """
    tool = find(name)
    if tool is None:
        raise Error("there is no '%s' in the package, in GHP_BIN or on PATH; install ghp, or set GHP_BIN to its "
                    "build/bin" % name)
    words = [os.fspath(a) if isinstance(a, os.PathLike) else str(a) for a in arguments]
    done = subprocess.run([*before, tool, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=cwd,
                          check=False)
    said = [line[len(name) + 2:] for line in done.stderr.splitlines() if line.startswith(name + ": ")]
    if done.returncode != 0:
        kind = {2: UsageError, 3: NoPlanError}.get(done.returncode, Error)
        errors = [line for line in said if not line.startswith("warning: ")]
        sentence = errors[-1] if errors else done.stderr.strip() or "%s ended with exit code %d" % (name,
                                                                                                  done.returncode)
        raise kind(_as_keywords(sentence, words) if keywords else sentence, done.returncode)
    for line in said:
        warnings.warn(line[len("warning: "):] if line.startswith("warning: ") else line, stacklevel=3)
    return done.stdout


def version() -> str:
    """The version of the tools, such as "0.2.0"."""
    return run("ghp-plan", ["--version"]).split()[2]


def main() -> None:
    """The commands that pip installs: each becomes the package's tool of its name; `ghp plan` is ghp-plan."""
    name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
    if name == "ghp":
        if arguments[:1] == ["help"] and len(arguments) > 1:
            arguments = [arguments[1], "--help"]
        if arguments in ([], ["help"], ["-h"], ["--help"]):
            print("usage: ghp TOOL [the tool's options]\nThe tools are plan, expect and inspect, each with --help.")
            return
        if arguments == ["--version"]:
            arguments = ["plan", "--version"]
        name, arguments = "ghp-" + arguments[0], arguments[1:]
    tool = find(name)
    if tool is None:
        sys.exit("ghp: there is no '%s'; the package has ghp-plan, ghp-expect and ghp-inspect, and ghp's build all "
                 "tools" % name)
    os.execv(tool, [tool, *arguments])
