#!/usr/bin/env bash
# ghp-test: timeout=60
# tests/core/test_phrases.sh - pages, help, messages and comments in plain words: none of the turns of phrase below
# stands in a page, in a text that a program prints or in a comment of the code. The sentences of README and of all
# pages but results and the generated ones are short, as the user's glossary is. No name in a C source has a word that
# once was ghp's own where it does not mean what the field means by it.
set -u
cd "$GHP_SOURCE" || exit 1
python3 - <<'PYTHON'
import os
import re
import subprocess
import sys

# what not to write, and what to write instead
PHRASES = [
    (r"\b[Bb]esides?\b", "next to, compared with, during, in addition to"),
    (r"(?<!hide )(?<!hides )(?<!hidden )\b[Bb]ehind\b", "after"),  # a word of the field, after hide and hidden
    (r"\b[Aa]new\b", "again, from scratch"),
    (r"\b([Gg]o|[Gg]oes|[Gg]oing|gone|went) on\b", "continue"),
    (r"\b[Ww]ho(so|m)?ever\b", "anyone who"),
    (r"\bso[- ](many|maniest)\b", "say how many"),
    (r"(?<![Tt]here )\b(is|are|was|were) (no|none)\b(?! longer| more)", "is not"),
    (r"\b(has|have|had) not\b(?! (been|yet|\w+ed|seen|done|come|begun|met|run|said|taken)\b)", "does not have"),
    (r"\bknows? not\b", "does not know"),
    (r"\b(to|cannot) be had\b", "is available"),
    (r"(?:^|>|[.:;?!] )Of [a-z`]", "begin with the subject"),
    (r"(?:^|[.?!] )Where\b", "If"),
    (r"\b(refused|only|but|also|even|needed|printed|allowed) where\b", "if"),
    (r"(?<![\w.)*/}+\]\"%])\.\d", "0.3"),
    (r"\b[Ss]hares? of (?!((the|its|a|each) )?(samples|batch|micro-batch|stages?|one block)\b|%)", "part, fraction"),
    (r"\b(slow twin|outer choice|lender|census|optimizer strip)s?\b", "see NAMES"),
    (r"\bby `?(asp|ssp|bsp|gosgd|local:|easgd|aladdin|lsgd|dgd|sgp|ad-psgd)\b", "with, under"),
]
# where such a phrase says something else: file, words, reason
ALLOWED = [
    ("CHANGELOG.md", '"go on" and "anew"', "words that a release replaced"),
    ("docs/explanation/cpu.md", "Where a step's time goes", "a place"),
    ("docs/results/scaling.md", "Where one kind of plan takes over", "a place in the table"),
    ("docs/explanation/time-model.md", "Where the streams meet", "a place"),
    ("docs/how-to/report.md", "Where a step's time went", "a place"),
    ("docs/results/published-speedups.md", "Where the batch is not published", "rows of the table"),
    ("docs/results/schemes.md", "Where the formulas of two", "a place in the table"),
    ("inspect/report/limits.c", "Where a layer", "a heading: the place where it flips"),
    ("profiler/run/cache.c", " beside %lld", "a key in files that exist"),
]
SHORT = r"(.*/)?(README|CONTRIBUTING)\.md$|docs/(tutorial|how-to|explanation|reference(?!/cli)|developers)/.*\.md$"
# words of names in C sources that have one meaning: the word, what else to say, files in which it means what the
# glossaries say, and names in which it does
NAMES = [
    ("strips?", "optimizer shard", None, "png_set_strip_alpha"),
    ("holders?", "replica group", r"folder_lock|test_cache", ""),
    ("banks?|lenders?|mates?|census", "double buffer, owner, peers, count", None, ""),
    ("beside|accidents?", "concurrent, failpoint", None, ""),
    ("home", "owner, NUMA node", r"run/cache", ""),
    ("how", "mode, options", None, ""),
    ("settings?", "context, numerics", r"tests/executor/backend/cuda", ""),
    ("touch", "access, use, def", None, "windows_touch"),
    ("grains?", "block size", r"platform/parallel|backend/cpu|data/pictures|test_load_balance", ""),
    ("pieces?", "slice, block, part", r"core/(plan/space|program/lower)|planner/(search|pipeline)", ""),
    ("cuts?", "part, box, slice, shard, clamp", r"planner/pipeline|cost/test_stages|test_program_hash", ""),
    ("carry", "exchange, copy, run", r"core/(cost|program)|executor/mixing|worker/optimizer_shards", ""),
    ("windows?", "interval, reach", r"core/(model|cost|sharding)|executor/(backend|data)|tests/executor|onnx|"
     r"inspect/(model|profile)|fuzz_tokens|test_trials|lab/probe", ""),
    ("share", "part, fraction, weight", r"core/(sharding|cost)|planner/pipeline",
     "measured_share foreign_share share_json stats_delta_share share_lists share_identity share_samples "
     "ghp_onnx_share ghp_degrees_share_latency"),
]
MEAN_WORDS, MOST_WORDS = 17, 25
END = r"(?:(?<=[.!?])|(?<=[.!?]\*)|(?<=[.!?]\*\*))\s+(?=[A-Z*\[x]|ghp|mpirun|oneDNN)"
GLOSSARY_WORDS = 45  # of the user's page

wrong, used = [], set()
tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True).stdout.split() or [
    os.path.relpath(os.path.join(at, name), ".") for at, _, names in os.walk(".") for name in names]


def without_code(text):
    """The page with its code as x, so that places stay."""
    return re.sub(r"^```.*?^```|`[^`\n]*(?:\n[^`\n]+)?`", lambda m: re.sub(r"[^\n]", "x", m.group()), text,
                  flags=re.S | re.M)


def paragraphs(text):
    at = 0
    for part in re.split(r"(\n\s*\n|\n(?=\s*(?:[*|#-] |\d+\. |\|)))", without_code(text)):
        yield text.count("\n", 0, at) + 1, re.sub(r"^[*#\d. -]+(?=[A-Z])", "", " ".join(part.split()))
        at += len(part)


def texts(text):
    """The strings of a C file, neighbours as one; comments and file names are none."""
    found, last = [], None
    for m in re.finditer(r'/\*.*?\*/|//[^\n]*|^\s*#\s*include[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', text, re.S | re.M):
        if m.group()[0] != '"':
            continue
        gap = text[last:m.start()] if last is not None else "x"
        if re.fullmatch(r"(\s|PRI\w+)*", gap):
            found[-1][1] += m.group()[1:-1]
        else:
            found.append([text.count("\n", 0, m.start()) + 1, m.group()[1:-1]])
        last = m.end()
    return [(line, words.replace("\\n", "\n")) for line, words in found if " " in words.strip()]


def comments(text):
    """The comments of a C file, each as one line; // comments of neighbouring lines are one."""
    quoted = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\''
    for m in re.finditer(quoted + r"|/\*.*?\*/|(?://[^\n]*(?:\n[ \t]*(?=//))?)+", text, re.S):
        if m.group()[0] == "/":
            words = re.sub(r"^(/\*|//)\s*|\s*\*/$", "", m.group())
            yield text.count("\n", 0, m.start()) + 1, re.sub(r"\n\s*(\*|//)?\s?", " ", words)


def script_comments(text):
    """The comments of a script, those of neighbouring lines as one."""
    for m in re.finditer(r"(?:^|(?<=\s))# [^\n]*(?:\n[ \t]*# [^\n]*)*", text):
        yield text.count("\n", 0, m.start()) + 1, re.sub(r"\n\s*# ?", " ", m.group()[2:])


def names(text):
    """The words that a C file uses, but for those of its comments, texts and included files, each on a line."""
    return "\n".join(sorted(set(re.findall(r"[A-Za-z_]\w*", re.sub(
        r'/\*.*?\*/|//[^\n]*|^\s*#\s*include[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', " ", text,
        flags=re.S | re.M)))))


def script_texts(text):
    """The quoted words of a script that are no comment's: what it prints, or looks for in what a tool prints."""
    for m in re.finditer(r"""(?:^|(?<=\s))#[^\n]*|"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"|'[^'\n]* [^'\n]*'""", text, re.M):
        if m.group()[0] != "#":
            words = re.sub(r":[-+<>=^]*\d*\.\d\w?\}", "}", m.group()[1:-1])  # Python's formats apart
            yield text.count("\n", 0, m.start()) + 1, words


def read(name):
    with open(name, encoding="utf-8", errors="replace") as file:
        return file.read()


def check(name, items):
    for line, words in items:
        for pattern, instead in PHRASES:
            for m in re.finditer(pattern, words, re.M):
                near = words[max(0, m.start() - 40):m.end() + 40]
                why = [row for row in ALLOWED if row[0] == name and row[1] in near]
                used.update(why)
                if not why:
                    wrong.append("%s:%d: '%s' in '%s'; write: %s" % (name, line, m.group().strip(), near, instead))


def sentences(text):
    for _, words in paragraphs(text):
        if words.startswith(("|", "#", "!", "x" * 8)):
            continue
        words = re.sub(r"\]\([^)]*\)", "]", words)
        for sentence in re.split(END + r"|:$|:\s+(?=[A-Z*])", words):
            n = len(re.findall(r"[\w'.,%/+-]*\w[\w'.,%/+-]*", sentence))
            if n > 1:
                yield n, sentence


for name in tracked:
    if not os.path.exists(name):
        continue
    if name.endswith(".md"):
        check(name, paragraphs(read(name)))
    elif re.search(r"\.(c|h|cu|cuh|cpp|hpp)$", name):
        check(name, comments(read(name)))
        used_names = names(read(name)) if not name.endswith("pp") else ""
        for word, instead, files, known in NAMES:
            if files is None or not re.search(files, name):
                wrong += ["%s: the name '%s'; write: %s" % (name, one, instead)
                          for one in re.findall(r"(?i)^(?:\w+_)?(?:%s)(?:_\w+)?$" % word, used_names, re.M)
                          if one not in known.split()]
        if re.match(r"(core|planner|profiler|executor|inspect|onnx)/", name):
            check(name, texts(read(name)))
    elif re.search(r"\.(sh|py|cmake)$|CMakeLists\.txt$|^(demo|check)$|^(bench|tests)/[\w/]+$", name):
        check(name, script_comments(read(name)))
    if re.match(r"(demo|check)$|(bench|examples)/[\w/-]+(\.sh|\.py)?$", name):
        check(name, script_texts(read(name)))
    if re.match(r"python/ghp/.*\.py$", name):
        check(name, [(1, " ".join(m.split())) for m in re.findall(r'"""[^"]*"""|"(?:[^"\\\n]|\\.)*"', read(name))])
    if re.match(SHORT, name):
        lengths = list(sentences(read(name)))
        wrong += ["%s: %d words: %s" % (name, n, sentence) for n, sentence in lengths if n > MOST_WORDS]
        mean = sum(n for n, _ in lengths) / len(lengths)
        if mean > MEAN_WORDS:
            wrong.append("%s: %.1f words a sentence; %d at most" % (name, mean, MEAN_WORDS))
        print("%s: %d sentences, %.1f words in the mean, %d at most" % (name, len(lengths), mean, max(lengths)[0]))
explained = len(re.findall(r"^\| \*\*", read("docs/reference/glossary.md"), re.M))
if not 0 < explained <= GLOSSARY_WORDS:
    wrong.append("docs/reference/glossary.md explains %d words; at most %d" % (explained, GLOSSARY_WORDS))
wrong += ["%s: '%s' is not there any more; take it out of ALLOWED" % row[:2] for row in ALLOWED if row not in used]
print("\n".join(wrong))
sys.exit(len(wrong) > 0)
PYTHON
