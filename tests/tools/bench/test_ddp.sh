#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes needs=ghp-inspect
# tests/tools/bench/test_ddp.sh - the yardstick of PyTorch: refusals without it; where it is, its networks have ghp's
# numbers of weights, and a worker alone trains. In short tests tools/bench/slurm stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
lab=$GHP_SOURCE/bench/lab

# refused CODE TEXT COMMAND...
refused() { denied "$1" "$2" timeout 60 "${@:3}"; }

# an interpreter without PyTorch: clear words and exit code 3
printf '#!/bin/sh\nexit 1\n' >bare && chmod +x bare
refused 3 "install python3-torch" env GHP_PYTHON="$PWD/bare" "$lab/ddp" --check
refused 3 "GHP_PYTHON" env GHP_PYTHON="$PWD/bare" "$lab/ddp" --model m.json --batch 4
refused 2 "unknown option '--speed'" "$lab/ddp" --speed 1
refused 2 "'--model' needs a value" "$lab/ddp" --model

if command -v python3 >/dev/null; then
    model=$GHP_SOURCE/models/lenet5.json
    refused 3 "install python3-torch" env GHP_PYTHON="$PWD/bare" "$lab/against-ddp" --model "$model" --batch 64
    refused 2 "not a multiple of 4" "$lab/against-ddp" --model "$model" --batch 65
    refused 1 "cannot find" env GHP_BIN="$PWD" "$lab/against-ddp" --model "$model" --batch 64
fi

"$lab/ddp" --check 2>err || {
    [ "$failures" = 0 ] || exit 1
    cat err >&2 # the rest needs PyTorch, which ghp does not
    exit 0
}
python=${GHP_PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
for name in lenet5 small-resnet alexnet-96 cd-dnn-512 resnet18-32 vgg-a-32-wide; do
    model=$GHP_SOURCE/models/$name.json
    timeout 120 "$python" "$lab/ddp.py" --model "$model" --batch 2 --steps 1 --repeats 1 --warmup 0 \
        --format contiguous >out 2>err || fail "$name: $(tail -n 2 err)"
    wanted=$(number weights <("$GHP_BIN/ghp-inspect" "$model" --json))
    grep -q "\"weights\": $wanted," out || fail "$name: not $wanted weights in: $(cat out)"
    grep -q '"loss": [0-9]' out || fail "$name: no finite loss in: $(cat out)"
done

# the yardstick of transformers, which wants PyTorch 2
if [ -n "${GHP_TEST_FULL:-}" ] &&
    "$python" -c 'import torch, sys; sys.exit(int(torch.__version__.split(".")[0]) < 2)'; then
    timeout 120 "$python" "$GHP_SOURCE/bench/transformers_torch.py" --blocks 2 --heads 4 --width 32 --vocabulary 256 \
        --positions 64 --batch 1 --seconds 0.001 >out 2>err || fail "transformers_torch: $(tail -n 2 err)"
    wanted=$(number weights <("$GHP_BIN/ghp-inspect" "$GHP_SOURCE/models/gpt-nano.json" --json))
    grep -q "\"weights\": $wanted," out || fail "transformers_torch: not $wanted weights in: $(cat out)"
fi

# what the builder does not know is refused, not left out
sed 's/"op": "relu"/"op": "swish"/' "$GHP_SOURCE/models/lenet5.json" >swish.json
refused 1 "unknown op swish" "$python" "$lab/ddp.py" --model swish.json --batch 2

[ "$failures" = 0 ] || exit 1
