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

# The rooms that files of a room may include from.
allowed_for() {
    case $1 in
    core) echo core ;;
    onnx) echo core onnx ;;
    inspect) echo core onnx inspect ;;
    planner) echo core onnx inspect planner ;;
    executor) echo core onnx executor ;;
    profiler) echo core onnx executor profiler ;;
    esac
}

# The folders that may include a foreign header, or "any" for one that is not foreign.
folders_of() {
    case $1 in
    glpk.h) echo planner ;;
    mpi.h) echo executor profiler ;;
    hwloc.h | hwloc/*) echo executor profiler ;;
    cuda*.h | cudnn*.h | cublas*.h | nccl.h) echo executor/backend/cuda executor/transport/nccl ;;
    dnnl.h | dnnl_*.h | oneapi/* | zlib.h | Random123/*) echo executor ;;
    protobuf-c/* | onnx.pb-c.h) echo onnx ;;
    jansson.h) echo core ;;
    *) echo any ;;
    esac
}

# within FILE FOLDER...: whether the file lies in one of the folders.
within() {
    local file=$1 folder
    shift
    for folder; do [[ $file == "$folder"/* ]] && return 0; done
    return 1
}

contains() { # contains WORD LIST...
    local word=$1 item
    shift
    for item; do [ "$item" = "$word" ] && return 0; done
    return 1
}

declare -A wrapper # foreign header -> the one header of ghp that shows it
checked=0
for room in core onnx inspect planner executor profiler; do
    while IFS= read -r file; do
        checked=$((checked + 1))
        while IFS= read -r name; do
            [[ $name == */* ]] || fail "$file: includes \"$name\"; write it from the root"
            # shellcheck disable=SC2046
            contains "${name%%/*}" $(allowed_for "$room") ||
                fail "$file: $room may not include $name; see the dependency direction in CMakeLists.txt"
        done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file")
        while IFS= read -r name; do
            folders=$(folders_of "$name")
            [ "$folders" = any ] && continue
            # shellcheck disable=SC2086
            within "$file" $folders || fail "$file: <$name> belongs to $folders"
            [[ $file == *.h ]] || continue
            [ "$name" = jansson.h ] && [ "$file" != core/base/json.h ] &&
                fail "$file: include core/base/json.h, which wraps <$name>"
            [ -n "${wrapper[$name]:-}" ] && fail "$file: <$name> is shown by ${wrapper[$name]} already"
            wrapper[$name]=$file
        done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' "$file")
        grep -nE '\b(atoi|strcpy|strcat|sprintf|vsprintf|strtok|rand|gets)[[:space:]]*\(|[^_[:alnum:]]assert[[:space:]]*\(' \
            "$file" | while IFS= read -r line; do echo "$file:$line"; done | grep . >&2 &&
            fail "$file: uses a function that is never used here"
    done < <(find "$room" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')
done
[ "$checked" -gt 0 ] || fail "no source file found in $PWD"
[ "$failures" -eq 0 ]
