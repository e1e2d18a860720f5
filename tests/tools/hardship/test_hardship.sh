#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-inspect,ghp-profile,ghp-train,ghp-launch,cc
# tests/tools/hardship/test_hardship.sh - tools that run short of memory, disk or descriptors, or are given what is not
# a regular file, end in time with a sentence and a failure, or do all that was asked. It counts runs, and of these the
# crashes, hangs and silent successes, of which there are none. Full runs fail more allocations than fast ones; GHP_EVERY=1
# fails each. In short tests planner/shortage, onnx/no_memory and executor/state/shortage stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
cat >model.json <<'END'
{"format": "ghp.model/1", "name": "net", "input": {"channels": 4, "height": 6, "width": 6}, "layers": [
{"name": "flat", "op": "flatten"}, {"name": "fc", "op": "linear", "features": 12}, {"name": "relu", "op": "relu"},
{"name": "out", "op": "linear", "features": 6}, {"name": "loss", "op": "softmax_cross_entropy"}]}
END
analytic model.json profile.json
plan=("$GHP_BIN/ghp-plan" model.json --profile profile.json --workers 1 --batch 8)
"${plan[@]}" -o plan.json >out 2>&1 || { cat out >&2; exit 1; }
profile=("$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model model.json)
inspect=("$GHP_BIN/ghp-inspect" plan.json --profile profile.json)
run=("$GHP_BIN/ghp-run" plan.json --steps 2 --threads 1 --bind none --seed 1)
runs=0 crashes=0 hangs=0 silent=0

# judge CODE WHAT: of a run that had to fail; its messages are in err
judge() {
    runs=$((runs + 1))
    if [ "$1" = 124 ]; then
        hangs=$((hangs + 1)) && fail "hangs: $2"
    elif [ "$1" -ge 126 ]; then
        crashes=$((crashes + 1)) && fail "ends with $1: $2: $(tail -n 3 err)"
    elif [ "$1" = 0 ]; then
        silent=$((silent + 1)) && fail "succeeds: $2"
    elif [ -s err ] && ! grep -qE '^(ghp-[a-z]+|ghp): (.*[;,:] |out of memory)' err; then
        fail "says no remedy: $2: $(tail -n 3 err)"
    fi
}
# hard WHAT COMMAND...: fails with a sentence in time
hard() {
    local code=0
    timeout 60 "${@:2}" >out 2>err </dev/null || code=$?
    judge $code "$1"
    [ -s err ] || fail "says nothing: $1"
}

# outputs that cannot be
full_stdout() { "$@" >/dev/full; }
no_stdout() { "$@" >&-; }
no_stderr() { "$@" 2>&-; }
no_stdin() { "$@" <&-; }
export -f full_stdout no_stdout no_stderr no_stdin
within() { hard "$1: ${*:3:1}" bash -c '"$@"' "$1" "$1" "${@:3}"; }
for tool in plan profile inspect run; do
    declare -n command=$tool
    made=()
    [ $tool = profile ] && made=(-o made.json)
    within full_stdout - "${command[@]}" "${made[@]}"
    within no_stdout - "${command[@]}" "${made[@]}"
    # without a place for messages, or for input, the work is done; and no message goes into a file
    for way in no_stderr no_stdin; do
        runs=$((runs + 1))
        timeout 60 bash -c '"$@"' $way $way "${command[@]}" "${made[@]}" >out 2>err || fail "$tool $way: $(cat err)"
        [ -s out ] || fail "$tool $way: printed nothing"
    done
done
for where in nowhere/x /dev/full . model.json/x; do
    hard "plan -o $where" "${plan[@]}" -o "$where"
    hard "profile -o $where" "${profile[@]}" -o "$where"
    for option in html trace dot; do hard "inspect --$option $where" "${inspect[@]}" --$option "$where"; done
    for option in run metrics; do hard "run --$option $where" "${run[@]}" --$option "$where"; done
done
for where in nowhere/x /dev/full model.json/x; do
    hard "train --folder $where" "$GHP_BIN/ghp-train" model.json --workers 1 --batch 8 --folder "$where"
    hard "launch --checkpoint $where" "$GHP_BIN/ghp-launch" plan.json --checkpoint "$where" -- --steps 1 --bind none
done
# what ghp-run prints passes through mpirun, which does not say that it could not be written
for way in full_stdout no_stdout; do
    within $way - "$GHP_BIN/ghp-train" model.json --workers 1 --batch 8 --budget 1 --folder made -- --steps 1 --bind none
    within $way - "$GHP_BIN/ghp-launch" plan.json --checkpoint kept --overwrite -- --steps 1 --threads 1 --bind none
done
# before the work: nothing was trained
hard 'run --run nowhere/r' "${run[@]}" --run nowhere/r --metrics before.jsonl
[ ! -s before.jsonl ] || fail 'the run file was tried after the training'
grep -q 'create its folder first' err || fail "--run nowhere/r says: $(cat err)"
limited() { # what is printed goes through a pipe, which has no size
    (ulimit -f 0 && exec "$@") 2>&1 | cat >&2
    return "${PIPESTATUS[0]}"
}
export -f limited
within limited - "${plan[@]}" -o made.json
within limited - "${profile[@]}" -o made.json
within limited - "${inspect[@]}" --html made.html
# MPI wants files of its own, so a full disk of the run's is a small file system
mkdir disk
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=12k tmpfs disk 2>/dev/null; then
    trap 'umount "$scratch/disk"; rm -rf "$scratch"' EXIT
    head -c 9000 /dev/zero >disk/filled
    hard 'a full disk: --run' "${run[@]}" --run disk/run.json
    hard 'a full disk: --checkpoint' "${run[@]}" --checkpoint disk/kept
    hard 'a full disk: plan' "${plan[@]}" -o disk/plan.json
    umount disk && trap 'rm -rf "$scratch"' EXIT
else
    echo 'left out: no file system can be mounted here, so no full disk under ghp-run'
fi

# inputs that are not regular files, or cannot be read
mkfifo pipe && mkdir folder && : >empty && head -c 40 plan.json >cut
for what in pipe /dev/zero /dev/tty folder empty cut nowhere; do
    hard "model $what" "$GHP_BIN/ghp-plan" $what --profile profile.json --workers 1 --batch 8
    hard "profile $what" "$GHP_BIN/ghp-plan" model.json --profile $what --workers 1 --batch 8
    hard "inspect $what" "$GHP_BIN/ghp-inspect" $what
    hard "profiled model $what" "$GHP_BIN/ghp-profile" --analytic F=1e11 --model $what -o made.json
    hard "plan $what" "$GHP_BIN/ghp-run" $what --steps 1 --threads 1 --bind none
    for data in "idx:$what" "npy:$what" "folder:$what" "cifar10:$what"; do
        hard "--data $data" "${run[@]}" --data "$data"
    done
    hard "--init $what" "${run[@]}" --init $what
    hard "trained model $what" "$GHP_BIN/ghp-train" $what --workers 1 --batch 8 --folder made
    hard "launched plan $what" "$GHP_BIN/ghp-launch" $what --checkpoint kept
done
# a command's output is taken
"$GHP_BIN/ghp-plan" <(cat model.json) --profile <(cat profile.json) --workers 1 --batch 8 >out 2>err ||
    fail "does not read a command's output: $(cat err)"
"$GHP_BIN/ghp-inspect" /dev/stdin <model.json >out 2>err || fail "does not read stdin: $(cat err)"
name=$(printf 'caf\351.json')
cp model.json "$name"
hard 'a name in Latin-1' "$GHP_BIN/ghp-plan" "$name" --profile profile.json --workers 1 --batch 8
grep -q 'is not UTF-8; rename the file' err || fail "a name in Latin-1: $(cat err)"

# allocations of ghp and of the libraries that it calls for files, one after the other; MPI's are left alone
cat >short.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static long left = -1, count;
static int started; /* libraries that are linked into a tool allocate before its main, and are not ghp's to mend */
static __thread int inside;
static int (*tool)(int, char **, char **);
static int begin(int n, char **words, char **environment)
{
    const char *only = getenv("SHORT_TOOL"); /* not those that it starts */
    started = only == NULL || strcmp(only, program_invocation_short_name) == 0;
    return tool(n, words, environment);
}
int __libc_start_main(int (*main)(int, char **, char **), int n, char **words, void *init, void *fini, void *ends,
                      void *stack)
{
    int (*start)(void *, int, char **, void *, void *, void *, void *) = dlsym(RTLD_NEXT, "__libc_start_main");
    tool = main;
    return start(begin, n, words, init, fini, ends, stack);
}
__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("SHORT_AT");
    left = at != NULL ? atol(at) : -1;
}
__attribute__((destructor)) static void finish(void)
{
    const char *to = getenv("SHORT_COUNT");
    FILE *file = to != NULL && started ? (left = -1, fopen(to, "w")) : NULL;
    if (file != NULL) fprintf(file, "%ld\n", count), fclose(file);
}
static int fails(void *caller)
{
    Dl_info info;
    int ours;
    if (inside || !started) return 0;
    inside = 1;
    ours = dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
           (strstr(info.dli_fname, "/ghp-") != NULL || strstr(info.dli_fname, "jansson") != NULL ||
            strstr(info.dli_fname, "protobuf") != NULL);
    inside = 0;
    if (!ours) return 0;
    if (__atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST) != left) return 0;
    errno = ENOMEM;
    return 1;
}
void *malloc(size_t n) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n); }
char *strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *t = fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
    return t != NULL ? memcpy(t, s, n) : NULL;
}
END
cc -shared -fPIC -O1 -w -o short.so short.c -ldl || fail 'cannot build the library whose allocations fail'
# short NAME OUTPUTS COMMAND...: fails one allocation after the other. A run that succeeds has made the same files, and
# did not speak of memory. $upto is the number of allocations that fail, from the first on.
short() {
    local name=$1 files=$2 total step=1 at code file
    shift 2
    rm -f $files
    timeout 60 env SHORT_TOOL="${1##*/}" SHORT_COUNT=total LD_PRELOAD="$PWD/short.so" "$@" >out 2>err </dev/null || fail "$name: $(cat err)"
    read -r total <total
    total=${upto:-$total}
    step=$((total / $(full && echo 80 || echo 25) + 1)) # GHP_EVERY=1 fails each of them
    step=${GHP_EVERY:-$step}
    for file in $files; do mv "$file" "$file.right"; done
    for ((at = 0; at < total; at += step)); do
        code=0
        timeout 60 env SHORT_TOOL="${1##*/}" SHORT_AT=$at LD_PRELOAD="$PWD/short.so" "$@" >out 2>err </dev/null || code=$?
        if [ $code = 0 ]; then
            runs=$((runs + 1))
            ! grep 'out of memory' err >&2 || fail "$name: allocation $at of $total: goes on without memory"
            for file in $files; do
                cmp -s <(stable "$file") <(stable "$file.right") ||
                    { silent=$((silent + 1)) && fail "$name: allocation $at of $total: another $file, and exit 0"; }
            done
        else
            judge $code "$name: allocation $at of $total"
            grep -q 'out of memory\|memory' err || fail "$name: allocation $at of $total: $(tail -n 2 err)"
        fi
        rm -f $files
    done
    echo "$name: $total allocations, every ${step}th failed"
}
# stable FILE: without what differs from run to run
stable() { sed -E '/"(search_s|seconds|search|made_at)"/d; s/"search_s": *[0-9.e-]+//' "$1"; }
short plan made.json "${plan[@]}" -o made.json
timeout 60 "${run[@]}" --checkpoint weights >out 2>&1 &&
    "$GHP_BIN/ghp-inspect" model.json --export-onnx net.onnx --weights weights/checkpoint.safetensors >out 2>&1 ||
    fail "no network with weights: $(cat out)"
upto=150 short weights made.json "$GHP_BIN/ghp-plan" net.onnx --profile profile.json --workers 1 --batch 8 --no-break-even -o made.json
short profile made.json "${profile[@]}" -o made.json
short trace made.trace "${inspect[@]}" --trace made.trace
short html made.html "${inspect[@]}" --html made.html
short run '' "${run[@]}"
# in place of mpirun: what a turn of ghp-train leaves, and nothing of a training
cat >instead.sh <<'END'
#!/bin/sh
case $3 in
*ghp-profile) cp profile.json trained/profile.json ;;
esac
END
chmod +x instead.sh
short train trained/plan.json "$GHP_BIN/ghp-train" model.json --workers 1 --batch 8 --folder trained \
    --mpirun "$PWD/instead.sh"
short launch '' "$GHP_BIN/ghp-launch" plan.json --checkpoint launched --mpirun "$PWD/instead.sh" -- --steps 1
echo "runs $runs, crashes $crashes, hangs $hangs, silent successes $silent"
[ $failures -eq 0 ]
