#!/bin/bash
# tests/core/test_includes.sh - who may include whom, no circle between files or folders, folders of a size that can be
# overlooked, one thing by one name, foreign headers stay in the files that wrap them, and functions that are never
# used.
#
# ghp-test: timeout=180
set -u
cd "${GHP_SOURCE:?set it to the source tree}" || exit 1
failures=0

fail() {
    echo "$1" >&2
    failures=$((failures + 1))
}

# The rooms that files of a room may include from.
declare -A allowed=([core]="core" [onnx]="core onnx" [inspect]="core onnx inspect" [planner]="core onnx inspect planner"
    [executor]="core onnx executor" [profiler]="core onnx executor profiler")

# sets_folders HEADER: the folders that may include a foreign header, or "any" for one that is not foreign.
sets_folders() {
    case $1 in
    glpk.h) folders=planner ;;
    mpi.h) folders="executor profiler" ;;
    hwloc.h | hwloc/*) folders="executor profiler" ;;
    cuda*.h | cudnn*.h | cublas*.h | nccl.h) folders="executor/backend/cuda executor/transport/nccl" ;;
    dnnl.h | dnnl_*.h | oneapi/* | zlib.h | Random123/*) folders=executor ;;
    jpeglib.h | jerror.h | png.h) folders=executor/data/image ;;
    protobuf-c/* | onnx.pb-c.h) folders=onnx/file ;;
    jansson.h | xxhash.h) folders=core ;;
    *) folders=any ;;
    esac
}

# What runs programs sees of a plan what its program says (core/program/program.h): these headers say how layers are
# split, staged, combined and scaled, and how all that becomes a program.
runs_programs() { within "$1" executor/engine executor/mixing; }
of_plans="core/sharding/split.h core/sharding/stage.h core/program/sync.h core/program/method.h core/program/lowering.h
          core/program/lower/lower.h core/optimizer/lr_scaling.h core/plan/plan.h"

# What of a program, and which types and functions, they never read: all of it stands in a program in its own words.
of_plans_read='program(\.|->)(method|splits|staging)\b|\bstruct ghp_(split|staging|lowering|method|plan)\b'
of_plans_read+='|\bstruct ghp_(sync|sync_ops|lr_scaling)\b|\bghp_(split|staging|sync|lr_scaling)_[a-z]|\bGHP_SYNC_'

# Folders of a room from the lowest up: each may include those before it.
orders=(
    "core/base core/model core/optimizer core/sharding core/program core/cost core/plan"
    "core/program core/program/lower core/program/sync"
    "core/program/lower core/program/kind"
    "onnx/huggingface onnx"
    "onnx/file onnx/read onnx/pattern onnx"
    "onnx/file onnx/read onnx/operator onnx"
    "onnx/file onnx/write onnx/operator"
    "executor/platform executor/backend executor/transport executor/data/image executor/data executor/opbench
     executor/engine executor/state executor/train executor/report executor/compare executor/cli"
    "planner/labelling planner/search planner/pipeline planner/make planner/sweep planner/cli"
    "profiler/worklist profiler/measure profiler/run profiler/cli"
)
nouns_most=25 # of a folder; a source and its header of the same name are one

# acyclic WHAT: whether the pairs of stdin ("A B": A includes B) have an order; else says where they run in a circle.
acyclic() {
    local circle
    circle=$(sort -u | tsort 2>&1 >/dev/null | sed 's/^tsort: -*:* *//') && [ -z "$circle" ] && return 0
    fail "$1 that include each other in a circle; split out the part below, or move it:"$'\n'"$circle"
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
pairs=$(mktemp) || exit 1 # "A B": file A includes file B
trap 'rm -f "$pairs"' EXIT
rooms=(core onnx inspect planner executor profiler)
mapfile -t files < <(find "${rooms[@]}" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')
while IFS=: read -r file name; do
    room=${file%%/*}
    case $name in
    \<*)
        name=${name#<}
        sets_folders "$name"
        [ "$folders" = any ] && continue
        # shellcheck disable=SC2086
        within "$file" $folders || fail "$file: <$name> belongs to $folders"
        [[ $file == *.h ]] || continue
        [ "$name" = jansson.h ] && [ "$file" != core/base/json.h ] &&
            fail "$file: include core/base/json.h, which wraps <$name>"
        [ -n "${wrapper[$name]:-}" ] && fail "$file: <$name> is shown by ${wrapper[$name]} already"
        wrapper[$name]=$file
        ;;
    *)
        name=${name#\"}
        [[ $name == */* ]] || fail "$file: includes \"$name\"; write it from the root"
        # shellcheck disable=SC2086
        contains "${name%%/*}" ${allowed[$room]} ||
            fail "$file: $room may not include $name; see the dependency direction in CMakeLists.txt"
        # shellcheck disable=SC2086
        ! runs_programs "$file" || ! contains "$name" $of_plans ||
            fail "$file: includes $name; it runs a program, so have lowering say it in core/program/program.h"
        echo "$file $name" >>"$pairs"
        ;;
    esac
done < <(sed -nE -e 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<][^">]*).*/\1/;T body' -e F -e 'p;d' -e ': body' \
    -e 's/^#define BODY ("[^"]*)".*/\1/;T' -e F -e p "${files[@]}" | paste -d: - -)
for file in "${files[@]}"; do echo "$file"; done | grep -E '^executor/(engine|mixing)/' |
    xargs grep -nE "$of_plans_read" >&2 &&
    fail "the files above read what their program was lowered from; have lowering say it in core/program/program.h"
grep -nE -e '\b(atoi|strcpy|strcat|sprintf|vsprintf|strtok|rand|gets)[[:space:]]*\(' \
    -e '[^_[:alnum:]]assert[[:space:]]*\(' "${files[@]}" >&2 && fail "the files above use a function that is never used here"

acyclic "these files" < <(sed -E 's/\.[a-z]+( |$)/\1/g; s/_private( |$)/\1/g' "$pairs")
acyclic "these folders" < <(
    sed -E 's|/[^/ ]*( \|$)|\1|g' "$pairs"
    for order in "${orders[@]}"; do
        below=
        for folder in $order; do
            [ -n "$below" ] && echo "$folder $below"
            below=$folder
        done
    done
)
while read -r n folder; do
    [ "$n" -le "$nouns_most" ] || fail "$folder holds $n nouns; a folder holds at most $nouns_most: divide it"
done < <(find "${rooms[@]}" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' |
    sed -E 's/\.[a-z]+$//' | sort -u | sed 's|/[^/]*$||' | sort | uniq -c)
in_headers() { find "${rooms[@]}" -name '*.h' -exec grep -hoE "$1" {} + | grep -oE 'ghp_[a-z0-9_]+' | sort; }
both=$(
    in_headers '^struct ghp_[a-z0-9_]+ \{' | uniq -d
    comm -12 <(in_headers 'struct ghp_[a-z0-9_]+' | uniq) <(in_headers '\bghp_[a-z0-9_]+\(' | uniq)
)
[ -z "$both" ] || fail "two structs, or a struct and a function, have one name; rename one:"$'\n'"$both"
grep -rnE '&ghp_sync_[a-z]' executor >&2 &&
    fail "the files above know a synchroniser by its variable; have those of its scheme know its name"
[ -s "$pairs" ] || fail "no include found in $PWD"
[ "${#files[@]}" -gt 0 ] || fail "no source file found in $PWD"
[ "$failures" -eq 0 ]
