#!/usr/bin/env bash
# tests/fuzz/run.sh SECONDS [READER...] - fuzzes the readers (all, unless named), each for SECONDS, under
# AddressSanitizer and UndefinedBehaviorSanitizer. It wants a build with fuzzers:
#
#   cmake -G Ninja -S . -B build-fuzz -DCMAKE_C_COMPILER=clang -DGHP_FUZZ=ON && ninja -C build-fuzz
#
# GHP_FUZZ_BUILD names it where it is elsewhere; what was found interesting is kept in its folder corpus/READER and used
# by the next run, with what the source tree keeps (tests/fuzz/keep.sh). Prints a line for each reader: inputs tried,
# coverage reached. Exit code 1: a finding, whose input is kept in findings/READER-*. Once it is fixed, the input
# becomes a seed (seeds/READER).
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${GHP_FUZZ_BUILD:-$here/../../build-fuzz}
seconds=${1:-}
case $seconds in
'' | *[!0-9]*)
    echo "usage: tests/fuzz/run.sh SECONDS [READER...]" >&2
    exit 2
    ;;
esac
shift
[ $# -gt 0 ] || set -- $(cd "$here" && ls fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')
scratch=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
trap 'rm -rf "$scratch"' EXIT
failures=0

# Every text of the seeds, as a dictionary: keys, names of operations, units. Fails where there is none.
dictionary() {
    grep -arhoE '"[A-Za-z0-9_./-]{1,40}"' "$@" | sort -u | grep .
}

for reader; do
    program=$build/tests/fuzz/fuzz_$reader
    if [ ! -x "$program" ]; then
        echo "tests/fuzz/run.sh: there is no $program; build it first (see the head of this script)" >&2
        exit 2
    fi
    mkdir -p "$build/corpus/$reader" "$build/findings" "$scratch/$reader"
    words=() made=()
    for folder in seeds corpus; do # seeds that the build makes, and what fuzzing found before
        [ -d "$build/tests/$folder/$reader" ] && made+=("$build/tests/$folder/$reader")
    done
    dictionary "$here/seeds/$reader" "${made[@]}" >"$scratch/$reader.dict" && words=(-dict="$scratch/$reader.dict")
    foreign=() nodes=/usr/share/libonnx-testdata/data/node # files of other writers: a graph of one node each
    if [ "$reader" = onnx ] && [ -d $nodes ]; then
        mkdir -p "$scratch/foreign"
        for folder in $nodes/*/; do
            cp "$folder/model.onnx" "$scratch/foreign/$(basename "$folder").onnx" 2>/dev/null
        done
        foreign=("$scratch/foreign")
    fi
    # 64 KiB hold every seed; what takes longer than 5 s or more than 1 GiB for that is a finding
    TMPDIR=$scratch/$reader "$program" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -malloc_limit_mb=256 \
        -max_len=65536 -close_fd_mask=1 -print_final_stats=1 "${words[@]}" \
        -artifact_prefix="$build/findings/$reader-" \
        "$build/corpus/$reader" "$here/seeds/$reader" "${made[@]}" "${foreign[@]}" >"$scratch/log" 2>&1
    code=$?
    tries=$(sed -n 's/^stat::number_of_executed_units: //p' "$scratch/log")
    echo "$reader: ${tries:-0} inputs, $(grep -oE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$scratch/log" | tail -n 1)"
    if [ "$code" != 0 ]; then
        grep -vE '^#[0-9]+[[:space:]]' "$scratch/log" | tail -n 60 >&2
        echo "$reader: a finding (exit $code)" >&2
        failures=$((failures + 1))
    fi
done
exit $((failures > 0))
