#!/bin/bash
# tests/core/test_limits.sh - sources that can be overlooked: no C file over 600 lines, no function over 60, no how-to page
# over 80, and no folder of tests or documents with more than 25 nouns (tests/core/test_includes.sh has those of the
# rooms).
set -u
cd "${GHP_SOURCE:?set it to the source tree}" || exit 1

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

awk '
    { print $1 " has " $2 " lines or nouns, which is too much to overlook: divide it"; bad = 1 }
    END { exit bad }' < <(over) >&2
