#!/usr/bin/env bash
# tests/fuzz/keep.sh [READER...] - keeps what fuzzing has found (all readers, unless named): of the inputs in the
# build's folders corpus/READER those that reach what no seed reaches become tests/fuzz/corpus/READER.tar.xz. Every
# build reads them in its tests, and tests/fuzz/run.sh begins with them.
#
# GHP_FUZZ_BUILD names the build with fuzzers [build-fuzz]. Left out are inputs with strings of other projects' files,
# which fuzzing of ONNX begins with, too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${GHP_FUZZ_BUILD:-$here/../../build-fuzz}
[ $# -gt 0 ] || set -- $(cd "$here" && ls fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$here/corpus"

for reader; do
    program=$build/tests/fuzz/fuzz_$reader
    [ -x "$program" ] || {
        echo "tests/fuzz/keep.sh: there is no $program; build it first (see the head of tests/fuzz/run.sh)" >&2
        exit 2
    }
    mkdir -p "$scratch/found" "$scratch/$reader"
    for folder in "$build/tests/corpus/$reader" "$build/corpus/$reader"; do
        [ ! -d "$folder" ] || find "$folder" -type f -exec cp -t "$scratch/found" {} +
    done
    grep -rlaE 'backend-test|test_[a-z]+' "$scratch/found" | xargs -r rm --
    cp "$here/seeds/$reader"/* "$scratch/$reader"
    TMPDIR=$scratch "$program" -merge=1 -close_fd_mask=1 "$scratch/$reader" "$scratch/found" 2>"$scratch/log" || {
        tail -n 20 "$scratch/log" >&2
        exit 1
    }
    for seed in "$here/seeds/$reader"/*; do
        rm "$scratch/$reader/$(basename "$seed")"
    done
    XZ_OPT=-9e tar -C "$scratch" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go=r,u=rwX \
        -cJf "$here/corpus/$reader.tar.xz" "$reader"
    echo "$reader: $(find "$scratch/$reader" -type f | wc -l) inputs in $(wc -c <"$here/corpus/$reader.tar.xz") bytes"
    rm -rf "${scratch:?}/found" "${scratch:?}/$reader"
done
