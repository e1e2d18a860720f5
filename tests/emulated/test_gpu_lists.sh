#!/usr/bin/env bash
# ghp-test: timeout=600 label=emulated
# tests/emulated/test_gpu_lists.sh - tests/gpu/all's lists run through with tiny sizes on the emulated GPU: every check
# passes, and the table and its JSON have them. In short tests the list of transports, in full all, and a bundle: with
# what it has they run on a machine whose GPU has no driver, and say so.
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
if full; then
    mkdir smi build
    printf '#!/bin/sh\necho "GPU 0: none"\n' >smi/nvidia-smi
    chmod +x smi/nvidia-smi
    echo GHP_NATIVE:BOOL=OFF >build/CMakeCache.txt
    ln -s "$GHP_BIN" "$GHP_BIN/../tests" build
    "$GHP_SOURCE/tests/gpu/bundle" "$PWD/build" "$PWD/gpu.tar.gz" >out 2>err || grep -q "larger than" err ||
        fail "bundle: $(cat err)"
    tar -xzf gpu.tar.gz
    for list in 1 2 3; do
        env -u LD_LIBRARY_PATH PATH="$PWD/smi:$PATH" ghp-gpu/all $list >out 2>err
        [ $? = 1 ] || fail "bundle, list $list without a driver: $(cat out err)"
    done
    grep -E "No such file|not found|cannot open" ghp-gpu/gpu/*.log && fail "bundle: something is missing"
    grep -q "no NVIDIA driver" ghp-gpu/gpu/verify-gpt.log || fail "bundle: $(cat ghp-gpu/gpu/verify-gpt.log)"
fi
[ $failures -eq 0 ]
