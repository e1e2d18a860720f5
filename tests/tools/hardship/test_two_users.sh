#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-inspect,ghp-profile,python3
# tests/tools/hardship/test_two_users.sh - in a folder that two users share, nothing of one is overwritten by the other.
# The other user makes links to the victim's file under every name that a tool will open or write. The file stays as it
# is, and each run either succeeds or names the link. Needs root, to be two users. In short tests
# executor/platform/folder_lock stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo 'skipped: needs root and setpriv'; exit 77; }
other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
chmod 755 .
mkdir home shared && chmod 777 shared # not sticky: the kernel's own guard of links does not help
printf precious >home/precious && chmod 600 home/precious
"${other[@]}" true 2>/dev/null && "${other[@]}" ln -s x shared/probe 2>/dev/null ||
    { echo 'skipped: cannot become another user here'; exit 77; }
cat >model.json <<'END'
{"format": "ghp.model/1", "name": "net", "input": {"channels": 4, "height": 6, "width": 6}, "layers": [
{"name": "flat", "op": "flatten"}, {"name": "fc", "op": "linear", "features": 12},
{"name": "loss", "op": "softmax_cross_entropy"}]}
END
analytic model.json profile.json
"$GHP_BIN/ghp-plan" model.json --profile profile.json --workers 1 --batch 8 -o plan.json >out 2>&1 || { cat out; exit 1; }

# trap_at NAME: the other user's link of that name leads to the victim's file
trap_at() { "${other[@]}" ln -sfn "$PWD/home/precious" "shared/$1"; }
# kept WHAT: the victim's file is as it was
kept() {
    [ "$(cat home/precious)" = precious ] || fail "$1: overwrote another file"
    printf precious >home/precious
}

: >home/precious # an empty file is of every kind, so only the link is looked at
trap_at plan && trap_at trace && trap_at metrics && trap_at heartbeat && trap_at run && trap_at html
emptied() { [ ! -s home/precious ] || { fail "$1: wrote into another file"; : >home/precious; }; }
link='it is a link that another user made; remove it'
denied 1 "$link" "$GHP_BIN/ghp-plan" model.json --profile profile.json --workers 1 --batch 8 -o shared/plan
emptied plan
denied 1 "$link" "$GHP_BIN/ghp-inspect" plan.json --profile profile.json --trace shared/trace
emptied trace
denied 1 "$link" "$GHP_BIN/ghp-inspect" plan.json --profile profile.json --html shared/html
emptied html
run=("$GHP_BIN/ghp-run" plan.json --steps 2 --threads 1 --bind none)
for way in metrics heartbeat run; do
    denied 1 "$link" "${run[@]}" --"$way" "shared/$way"
    emptied $way
done

# temporary names: those of the next thousand processes
printf precious >home/precious
mkdir shared/kept && chmod 777 shared/kept
"${other[@]}" env PATH=/usr/bin:/bin python3 - "$PWD" <<'END' || fail 'cannot make the links'
import os, sys
for number in range(os.getpid(), os.getpid() + 1000):
    for file in "checkpoint.safetensors", "checkpoint.previous.safetensors":
        os.symlink(sys.argv[1] + "/home/precious", f"shared/kept/{file}.tmp-{os.uname().nodename}-{number}")
END
timeout 60 "${run[@]}" --checkpoint shared/kept >out 2>err || fail "a training in a shared folder: $(cat err)"
kept checkpoint
[ -f shared/kept/checkpoint.safetensors ] && [ ! -L shared/kept/checkpoint.safetensors ] || fail 'no checkpoint'
[ $failures -eq 0 ]
