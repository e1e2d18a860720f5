#!/bin/bash
# tests/core/test_limits.sh - sources that can be overlooked: no C file over 600 lines, no function over 60, no how-to page
# over 80, and no folder of tests or documents with more than 25 nouns (tests/core/test_includes.sh has those of the
# rooms).
set -u
cd "${GHP_SOURCE:?set it to the source tree}" || exit 1

# What is longer than it should be, and its most: it may shrink, and leaves this list then.
known="tests/core/program/test_sync.c:check_texts 73
tests/planner/sweep/test_what_if.c:test_links 64"

over() {
    find core onnx inspect planner executor profiler tests bench -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' |
        sort | xargs awk '
        FNR == 1 && ++files > 1 && lines > 600 { print file, lines }
        FNR == 1 { file = FILENAME; start = 0 }
        { lines = FNR }
        /^[a-z_].*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
        /^{$/ { start = FNR }
        /^}$/ && start && FNR - start > 61 { print FILENAME ":" name, FNR - start - 1 }
        END { if (lines > 600) print file, lines; if (files < 500) print "files", 1 }'
    wc -l docs/how-to/*.md | awk '$1 > 80 && $2 != "total" { print $2, $1 }'
    find tests bench docs -type f -not -name '.*' | sed -E 's|([^/])\.[^/]*$|\1|; s/_private$//' | sort -u |
        sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 25 { print $2, $1 }'
}

awk -v known="$known" '
    BEGIN { for (n = split(known, line, "\n"); n > 0; n--) { split(line[n], word, " "); most[word[1]] = word[2] } }
    $2 > most[$1] { print $1 " has " $2 " lines or nouns, which is too much to overlook: divide it"; bad = 1 }
    { delete most[$1] }
    END {
        for (name in most) print name " is short enough now: take it out of `known`"
        exit bad || length(most) > 0
    }' < <(over) >&2
