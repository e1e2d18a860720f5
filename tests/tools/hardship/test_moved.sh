#!/usr/bin/env bash
# ghp-test: timeout=200 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-inspect,ghp-profile,ghp-train,ghp-launch,python3
# tests/tools/hardship/test_moved.sh - files that were moved or replaced since the plan was made, and files and folders
# that the caller may not read: each is refused, and the message names it. What is not needed is not asked for. The
# second part needs root, to become another user. In short tests executor/state/migrate stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
chmod 755 .
cat >model.json <<'END2'
{"format": "ghp.model/1", "name": "net", "input": {"channels": 4, "height": 6, "width": 6}, "layers": [
{"name": "flat", "op": "flatten"}, {"name": "fc", "op": "linear", "features": 12}, {"name": "relu", "op": "relu"},
{"name": "out", "op": "linear", "features": 6}, {"name": "loss", "op": "softmax_cross_entropy"}]}
END2
steps=(--steps 1 --threads 1 --bind none)
plan() { "$GHP_BIN/ghp-plan" "$1" --profile profile.json --workers 1 --batch 8 -o "$2" >out 2>&1 || fail "$(cat out)"; }
refuses() { # TEXT COMMAND...
    denied 1 "$1" timeout 60 "${@:2}"
}
works() { timeout 60 "$@" >out 2>err </dev/null || fail "$*: $(cat err)"; }
analytic model.json profile.json
plan model.json plan.json
works "$GHP_BIN/ghp-run" plan.json "${steps[@]}" --checkpoint kept
"$GHP_BIN/ghp-inspect" model.json --export-onnx net.onnx --weights kept/checkpoint.safetensors >out 2>&1 ||
    fail "$(cat out)"
plan net.onnx net.plan

# moved
mv net.onnx away.onnx
run=("$GHP_BIN/ghp-run" net.plan "${steps[@]}")
refuses "net.onnx', the network of the plan, is not there.*--init FILE or --init random" "${run[@]}"
works "${run[@]}" --init away.onnx
works "${run[@]}" --init random
mkdir net.onnx # replaced by a folder
refuses 'net.onnx' "${run[@]}"
rmdir net.onnx && head -c 300 away.onnx >net.onnx # by a part of itself
refuses 'net.onnx.*--init random draws other weights' "${run[@]}"
sed 's/"features": 12/"features": 13/' model.json >wide.json
analytic wide.json wide.profile F=2e11,bandwidth=1e9,latency=1e-5
"$GHP_BIN/ghp-plan" wide.json --profile wide.profile --workers 1 --batch 8 -o wide.plan >out 2>&1 || fail "$(cat out)"
works "$GHP_BIN/ghp-run" wide.plan "${steps[@]}" --checkpoint wide
"$GHP_BIN/ghp-inspect" wide.json --export-onnx net.onnx --weights wide/checkpoint.safetensors >out 2>&1
refuses "net.onnx.*fc" "${run[@]}" # by another network
refuses "wide/checkpoint.safetensors'.*fc.*resume with the plan's own model" \
    "$GHP_BIN/ghp-run" plan.json "${steps[@]}" --checkpoint wide --resume
refuses "there is no checkpoint in 'nowhere'" "$GHP_BIN/ghp-run" plan.json "${steps[@]}" --checkpoint nowhere --resume

# a folder of transformers, and what is left of it
mkdir folder
cat >folder/config.json <<'END2'
{"model_type": "gpt2", "vocab_size": 7, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 2}
END2
works "$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model folder -o folder.profile
"$GHP_BIN/ghp-plan" folder --profile folder.profile --workers 1 --batch 2 -o folder.plan >out 2>&1 || fail "$(cat out)"
works "$GHP_BIN/ghp-run" folder.plan "${steps[@]}"
rm folder/config.json
refuses "folder', the network of the plan, is not there" "$GHP_BIN/ghp-run" folder.plan "${steps[@]}"

# a profile that was moved is asked for only if it is named
mv profile.json other.json
works "$GHP_BIN/ghp-inspect" plan.json
works "$GHP_BIN/ghp-run" plan.json "${steps[@]}"
refuses "profile.json" "$GHP_BIN/ghp-inspect" plan.json --profile profile.json
refuses "made for another profile" "$GHP_BIN/ghp-inspect" plan.json --profile wide.profile
mv other.json profile.json

# not for this user
other=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$PWD" TMPDIR=/tmp XDG_CACHE_HOME="$PWD/cache")
if [ "$(id -u)" != 0 ] || ! "${other[@]}" "$GHP_BIN/ghp-inspect" plan.json >out 2>&1; then
    echo 'left out: another user, who may run the tools'
    [ $failures -eq 0 ]
    exit
fi
mkdir dark dark/sub own && chmod 777 own && cp plan.json model.json dark && cp -r kept closed && mv away.onnx closed.onnx
cp plan.json closed.plan && cp model.json closed.json && cp profile.json closed.profile
head -c 400 /dev/zero >closed.bin && cp kept/checkpoint.safetensors closed.safetensors
chmod 000 closed* && chmod 700 dark
may_not() { refuses "$1" "${other[@]}" "${@:2}"; }
read="': Permission denied; ask for the right to read it"
may_not "'closed.json$read" "$GHP_BIN/ghp-plan" closed.json --profile profile.json --workers 1 --batch 8
may_not "'dark/model.json$read" "$GHP_BIN/ghp-plan" dark/model.json --profile profile.json --workers 1 --batch 8
may_not "'closed.profile$read" "$GHP_BIN/ghp-plan" model.json --profile closed.profile --workers 1 --batch 8
may_not "'closed.onnx$read" "$GHP_BIN/ghp-plan" closed.onnx --profile profile.json --workers 1 --batch 8
! grep -q warning err || fail "warns of a file that cannot be read: $(cat err)"
may_not "'closed$read" "$GHP_BIN/ghp-plan" closed --profile profile.json --workers 1 --batch 8
may_not "dark/x': Permission denied; choose a place" \
    "$GHP_BIN/ghp-plan" model.json --profile profile.json --workers 1 --batch 8 -o dark/x
may_not "'closed.plan$read" "$GHP_BIN/ghp-inspect" closed.plan
"${other[@]}" "$GHP_BIN/ghp-inspect" closed.safetensors >out 2>err && fail 'shows a checkpoint that it may not read'
grep -qF "'closed.safetensors$read" err || fail "a checkpoint that may not be read: $(cat err)" # the table names it too
may_not "'closed.json$read" "$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model closed.json \
    -o own/x
may_not "'closed.plan$read" "$GHP_BIN/ghp-launch" closed.plan --checkpoint own/k
may_not "closed/checkpoint.lock': Permission denied" "$GHP_BIN/ghp-launch" plan.json --checkpoint closed
may_not "'dark/x': Permission denied" "$GHP_BIN/ghp-train" model.json --workers 1 --batch 8 --folder dark/x
run=("$GHP_BIN/ghp-run" plan.json "${steps[@]}")
may_not "'closed.plan$read" "$GHP_BIN/ghp-run" closed.plan "${steps[@]}"
may_not "'closed.safetensors$read" "${run[@]}" --init closed.safetensors
may_not "folder 'closed': Permission denied" "${run[@]}" --data npy:closed
may_not "checkpoints into 'closed'" "${run[@]}" --checkpoint closed --resume
may_not "'dark/x': Permission denied" "${run[@]}" --metrics dark/x
[ $failures -eq 0 ]
