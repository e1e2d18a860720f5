#!/usr/bin/env bash
# ghp-test: timeout=600 processors=2 label=mpi full=yes needs=ghp-train,ghp-plan,ghp-run,ghp-profile,ghp-inspect,ghp-launch
# tests/tools/together/test_tutorial.sh - docs/tutorial/: the files of the second page are written and its commands run;
# the commands of the third run with four workers on this host. In short tests docs/how-to/python.md and from-pytorch.md
# prove the same commands (tools/python, networks/from_pytorch).
set -u
python=$(command -v "${GHP_PYTHON:-python3}")
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1 PYTHONPATH=$GHP_SOURCE/python PYTHONDONTWRITEBYTECODE=1
tutorial=$GHP_SOURCE/docs/tutorial
mkdir bin
printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >bin/python
# the newest worker of this test, not of another one
cat >bin/pgrep <<SCRIPT
#!/bin/sh
for id in \$(/usr/bin/pgrep -x ghp-run | sort -rn); do
    [ "\$(readlink /proc/\$id/cwd)" = "$PWD" ] && echo "\$id" && exit
done
exit 1
SCRIPT
chmod +x bin/*
PATH=$PWD/bin:$GHP_BIN:$PATH
cp "$GHP_SOURCE/models/lenet5.json" .

# blocks PAGE LANGUAGE: the fenced blocks of a page in that language
blocks() { awk -v l="\`\`\`$2" '$0 == l { on = 1; next } /^```/ { on = 0 } on' "$tutorial/$1"; }

printf 'localhost slots=4\n' >hosts
# "some seconds" are over when the training has written a checkpoint since: a busy machine is slow to start workers
cat >third.sh <<'SCRIPT'
set -m
sleep() {
    touch before
    command sleep "$1"
    for ((i = 0; i < 600; i++)); do
        [ kept/checkpoint.safetensors -nt before ] && return
        command sleep 0.1
    done
}
SCRIPT
blocks 3-four-machines.md sh >>third.sh
timeout 300 bash -x third.sh >out 2>err </dev/null || fail "the third page: $(tail -5 err)"
grep -q '^exit code 4$' out || fail "the third page: a signal does not end with exit code 4: $(cat out)"
grep -q 'ghp-launch: in .* workers continue with' err || fail "the third page: nothing was restarted: $(grep ghp- err | head -20)"
grep -q checkpoint out || fail "the third page: ghp-inspect shows no checkpoint: $(tail -5 out)"

"$python" -c 'import torch, onnx, onnxscript' 2>/dev/null || {
    echo "skipped the second page: '$python' lacks torch, onnx or onnxscript; set GHP_PYTHON to one that has them"
    exit $((failures > 0))
}
blocks 2-your-network.md python | awk '/^# [a-z]+\.py$/ { file = $2; printf "" >file } { print >>file }'
blocks 2-your-network.md sh >second.sh
bash -e second.sh >out 2>err </dev/null || fail "the second page: $(tail -5 err)"
differ=$(sed -n "s/^gradients differ from PyTorch's by //p" out)
awk -v d="$differ" 'BEGIN { exit !(d != "" && d < 1e-12) }' || fail "the second page: gradients differ by '$differ'"
right=$(sed -n 's/^right: //p' out)
awk -v r="$right" 'BEGIN { exit !(r > 0.8) }' || fail "the second page: not most answers are right, but $right"
[ $failures -eq 0 ]
