#!/usr/bin/env bash
# ghp-test: timeout=300 label=emulated
# tests/emulated/test_gpu_lists.sh - tests/gpu/all's lists run through with tiny sizes on the emulated GPU: every check
# passes, and the table and its JSON have them. In short tests the list of transports, in full all.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
all=$GHP_SOURCE/tests/gpu/all
denied 2 "usage: tests/gpu/all" "$all" 4
for list in $(full && echo 1 2 3 || echo 3); do
    SMALL=1 "$all" "$list" "$(dirname "$GHP_EMULATED_BIN")" "$PWD/kept" >out 2>err || fail "list $list: $(cat out err)"
    holds "kept/all-$list.json" "o['checks'] and all(c['verdict'] == 'passed' for c in o['checks'])"
    grep -q "^check .*seconds" out || fail "no table: $(cat out)"
    [ "$list" = 3 ] || holds "kept/all-$list.json" "o['networks'][0]['ghp'] > 0"
done
[ $failures -eq 0 ]
