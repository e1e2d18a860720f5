#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes needs=ghp,ghp-plan,ghp-run,ghp-profile,ghp-inspect,ghp-launch,ghp-train
# tests/tools/together/test_mistakes.sh - the commands of docs/how-to/mistakes.md, and of mistakes.txt next to this script,
# answer as these say: ghp's last line, said once, with that exit code; nothing on stdout, no file, and no control
# character. In short tests tools/hardship/bad_input stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
models=$GHP_SOURCE/models
lists=("$GHP_SOURCE"/{docs/how-to/mistakes.md,tests/tools/together/mistakes.txt})
PATH=$GHP_BIN:$PATH
unset OMPI_MCA_rmaps_base_oversubscribe # what a user's shell has

cp "$models"/{lenet5,small-resnet}.json .
law=F=1e11,bandwidth=1e9,latency=1e-5
profile() { ghp-profile --model lenet5.json "$@" >made 2>&1 || { cat made >&2 && exit 1; }; }
profile --analytic $law -o profile.json
profile --analytic $law,memory_bandwidth=1e10 -o other.json
profile --workers 1 --batch 8 --budget 1 --cache none -o measured.json
plan() { ghp-plan lenet5.json --profile profile.json "$@" >made 2>&1 || { cat made >&2 && exit 1; }; }
plan --workers 2 --batch 8 -o plan.json
plan --workers 64 --batch 64 -o plan64.json
: >empty.json
mkdir folder
printf 'PK\003\004\000' >net.pt
echo 'import torch' >net.py
: >weights.safetensors
sed 's/"kernel": *5\([^}]*\)}/"kernel": 5\1,}/' lenet5.json >comma.json
sed 's/"kernel": *5/"kernal": 5/' lenet5.json >kernal.json
sed 's/"kernel": *5/"\\u001b[2Jkernel": 5/' lenet5.json >escape.json
head -c 200 plan.json >cut.json
sed 's|ghp.plan/2|ghp.plan/9|' plan.json >newer.json
ls -A >before

# what a user types: mpirun binds no rank, and may share cores, unless the launcher itself is tested
mpirun() { command mpirun --timeout 60 --oversubscribe --bind-to none "$@"; }

# own FILE: stderr without what mpirun adds
own() { awk '/^-----+$/ { inside = !inside; next } !inside && NF && !/^\[[^]]*:[0-9]+\]/ && !/^mpirun/' "$1"; }

# answers COMMAND CODE TEXT
answers() {
    local code=0 last
    eval "$1" >out 2>err </dev/null || code=$?
    [ "$code" = "$2" ] || fail "$1: exit $code, not $2: $(cat err)"
    last=$(own err | tail -n 1)
    [ "$last" = "$3" ] || fail "$1: says"$'\n'"  $last, not"$'\n'"  $3"
    [ "$(grep -cxF -e "$last" err)" = 1 ] || fail "$1: says it $(grep -cxF -e "$last" err) times"
    LC_ALL=C grep -q '[[:cntrl:]]' <(tr -d '\n' <err) && fail "$1: prints control characters"
    [ ! -s out ] || fail "$1: chatter on stdout"
    rm -rf kept ghp-lenet5-n* # which ghp-launch and ghp-train make before all else
    ls -A | grep -vxE 'out|err|made' | cmp -s - <(grep -vxE 'out|err|made' before) || fail "$1: leaves files: $(ls -A)"
}

checked=0
while IFS=$'\t' read -r command code text; do
    answers "$command" "$code" "$text"
    checked=$((checked + 1))
done < <(awk '
    /^\$ / { command = substr($0, 3); text = ""; next }
    /^\[exit [0-9]+\]$/ { print command "\t" substr($2, 1, length($2) - 1) "\t" text; command = ""; next }
    command != "" { sub(/^ +/, ""); text = text (text == "" ? "" : " ") $0; next }
' "${lists[@]}")
[ "$checked" = "$(cat "${lists[@]}" | grep -c '^\$ ')" ] || fail "only $checked mistakes have an answer"
[ "$checked" -ge 40 ] || fail "only $checked mistakes are tried"
exit $((failures > 0))
