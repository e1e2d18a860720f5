#!/usr/bin/env bash
# ghp-test: timeout=60
# tests/core/test_links.sh - every link of a page leads to a file, and to a heading if it names one; every page of docs/
# that code, tests or pages name is there; and each page is reached from docs/index.md.
set -u
cd "$GHP_SOURCE" || exit 1
python3 - <<'PYTHON'
import os
import re
import subprocess
import sys

wrong = []
tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True).stdout.split() or [
    os.path.relpath(os.path.join(at, name), ".") for at, _, names in os.walk(".") for name in names]
pages = [name for name in tracked if name.endswith(".md") and os.path.exists(name)]


def slugs(page):
    found, text = set(), re.sub(r"^```.*?^```", "", open(page, encoding="utf-8").read(), flags=re.S | re.M)
    for title in re.findall(r"^#+ (.*)$", text, flags=re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        found.add(re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-"))
    return found


reached, links, anchors = {"docs/index.md"}, 0, 0
for page in pages:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", open(page, encoding="utf-8").read(), flags=re.S | re.M)
    wrong += ["%s: a blank in '%s'" % (page, target) for target in re.findall(r"\]\(([^)\n]*\.md[^)\n]* [^)\n]*)\)", text)]
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        links, anchors = links + 1, anchors + bool(anchor)
        full = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(full):
            wrong.append("%s: there is no '%s'" % (page, target))
        elif anchor and full.endswith(".md") and anchor not in slugs(full):
            wrong.append("%s: '%s' has no such heading" % (page, target))
        if page == "docs/index.md":
            reached.add(full)
for name in tracked:
    if name.endswith((".c", ".h", ".cu", ".cpp", ".hpp", ".sh", ".py", ".md", ".txt", ".cmake")) and os.path.exists(name):
        for path in re.findall(r"\bdocs/[\w/-]+\.md\b", open(name, encoding="utf-8", errors="replace").read()):
            if not os.path.exists(path):
                wrong.append("%s: there is no %s" % (name, path))
wrong += ["docs/index.md does not link to %s" % page for page in pages
          if page.startswith("docs/") and page not in reached]
print("%d links, %d of them to a heading" % (links, anchors))
print("\n".join(sorted(set(wrong))))
sys.exit(len(wrong) > 0)
PYTHON
