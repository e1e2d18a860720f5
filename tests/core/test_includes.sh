#!/bin/bash
# tests/core/test_includes.sh - who may include whom, foreign headers stay in the files that wrap them, and
# functions that are never used.
set -u
cd "${GHP_SOURCE:?set it to the source tree}" || exit 1
failures=0

fail() {
    echo "$1" >&2
    failures=$((failures + 1))
}

# The folders that files of a folder may include from.
allowed_for() {
    case $1 in
    core) echo core ;;
    planner) echo core planner ;;
    executor) echo core executor ;;
    profiler) echo core executor profiler ;;
    esac
}

# The rooms that may include a foreign header, or "any" for one that is not foreign.
rooms_of() {
    case $1 in
    glpk.h) echo planner ;;
    mpi.h) echo executor profiler ;;
    hwloc.h | hwloc/*) echo executor profiler ;;
    dnnl.h | dnnl_*.h | oneapi/* | cuda*.h | cudnn*.h | cublas*.h | nccl.h | zlib.h | Random123/*) echo executor ;;
    jansson.h | protobuf-c/* | onnx.pb-c.h) echo core ;;
    *) echo any ;;
    esac
}

contains() { # contains WORD LIST...
    local word=$1 item
    shift
    for item; do [ "$item" = "$word" ] && return 0; done
    return 1
}

declare -A wrapper # foreign header -> the one header of ghp that shows it
checked=0
for room in core planner executor profiler; do
    for file in "$room"/*.[ch] "$room"/*.cu "$room"/*.cuh; do
        [ -f "$file" ] || continue
        checked=$((checked + 1))
        while IFS= read -r name; do
            [[ $name == */* ]] || fail "$file: includes \"$name\"; write it from the root"
            # shellcheck disable=SC2046
            contains "${name%%/*}" $(allowed_for "$room") ||
                fail "$file: $room may not include $name; see the dependency direction in CMakeLists.txt"
        done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file")
        while IFS= read -r name; do
            rooms=$(rooms_of "$name")
            [ "$rooms" = any ] && continue
            # shellcheck disable=SC2086
            contains "$room" $rooms || fail "$file: <$name> belongs to $rooms"
            [[ $file == *.h ]] || continue
            [ "$name" = jansson.h ] && [ "$file" != core/json.h ] &&
                fail "$file: include core/json.h, which wraps <$name>"
            [ -n "${wrapper[$name]:-}" ] && fail "$file: <$name> is shown by ${wrapper[$name]} already"
            wrapper[$name]=$file
        done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' "$file")
        grep -nE '\b(atoi|strcpy|strcat|sprintf|vsprintf|strtok|rand|gets)[[:space:]]*\(|[^_[:alnum:]]assert[[:space:]]*\(' \
            "$file" | while IFS= read -r line; do echo "$file:$line"; done | grep . >&2 &&
            fail "$file: uses a function that is never used here"
    done
done
[ "$checked" -gt 0 ] || fail "no source file found in $PWD"
[ "$failures" -eq 0 ]
