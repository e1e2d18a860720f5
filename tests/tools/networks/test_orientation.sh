#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_orientation.sh - checkpoints of a network whose modules compute x @ weight: resumed, with
# moments; those of older versions, which hold such weights in ghp's order; and newer ones under an older plan. In short
# tests core/model/orientation stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
python3 -c 'import random; random.seed(3); print(end="".join(random.choices("etaoin shrdlu", k=1025)))' >text

# The same network as older versions made it (old) and with its orientation (new); square: with no other product.
python3 - "$GHP_SOURCE/models/gpt-nano.json" <<'END'
import json, sys

model = json.load(open(sys.argv[1]))
for age in "old", "new":
    for layer in model["layers"]:
        layer.pop("transposed", None)
        if age == "new" and layer["op"] == "linear" and layer["name"] != "lm_head":
            layer["transposed"] = True
    json.dump(model, open(age + ".json", "w"))
    mix = {"name": "mix", "op": "linear", "features": 256} | ({"transposed": True} if age == "new" else {})
    square = {"format": "ghp.model/1", "name": "square", "input": {"vocabulary": 256, "positions": 64}, "layers": [
        {"name": "wte", "op": "embedding", "channels": 256}, mix, {"name": "loss", "op": "softmax_cross_entropy"}]}
    json.dump(square, open("square-" + age + ".json", "w"))
END

for name in old new square-old square-new; do
    analytic $name.json $name.profile
    "$GHP_BIN/ghp-plan" $name.json --profile $name.profile --workers 1 --batch 4 --no-break-even -o $name.plan >out 2>err ||
        fail "cannot plan $name: $(cat err)"
done

train() { # PLAN METRICS STEPS OPTIONS...
    "$GHP_BIN/ghp-run" "$1.plan" --data bytes:text --lr 0.1 --momentum 0.9 --threads 1 --numerics exact \
        --metrics "$2.metrics" --steps "$3" "${@:4}" >out 2>err </dev/null || fail "$*: $(cat err)"
}
losses() { sed -n 's/.*"loss": *\([-+0-9.eE]*\).*/\1/p' "$1.metrics"; }

# as one training: the losses of whole.metrics
resumed() { # NAME
    [ "$(losses "$1")" = "$(losses whole)" ] || fail "$1: losses $(losses "$1"), not $(losses whole)"
}
train new whole 4
[ "$(losses whole | wc -l)" = 4 ] || fail "no losses: $(cat whole.metrics)"
train new parts 2 --checkpoint new.ck
train new parts 4 --checkpoint new.ck --resume
resumed parts
train old older 2 --checkpoint old.ck
cp -r old.ck older.ck
train new older 4 --checkpoint older.ck --resume
resumed older
grep -q '"transposed":"true"' -a older.ck/checkpoint.safetensors || fail "the older checkpoint did not become a newer one"

# Out again: the same tensors, whichever plan made them.
for age in old new; do
    train $age first 1 --checkpoint $age.first --overwrite
    "$GHP_BIN/ghp-inspect" $age.plan --export-hf $age.hf --weights $age.first/checkpoint.safetensors >out 2>err ||
        fail "no folder of $age: $(cat err)"
    "$GHP_BIN/ghp-inspect" $age.plan --export-onnx $age.onnx --weights $age.first/checkpoint.safetensors >out 2>err ||
        fail "no ONNX of $age: $(cat err)"
done
cmp old.hf/model.safetensors new.hf/model.safetensors || fail "--export-hf writes other weights"

# A newer checkpoint says nothing to an older plan: refused, even if all shapes fit.
for name in '' square-; do
    rm -rf ck && train "${name}new" x 1 --checkpoint ck --overwrite
    ck=ck/checkpoint.safetensors
    says="weights of x @ weight.*older"
    denied 1 "$says" "$GHP_BIN/ghp-run" "${name}old.plan" --data bytes:text --steps 2 --checkpoint ck --resume
    denied 1 "$says" "$GHP_BIN/ghp-run" "${name}old.plan" --data bytes:text --steps 2 --init $ck
    denied 1 "$says" "$GHP_BIN/ghp-inspect" "${name}old.plan" --export-onnx x.onnx --weights $ck
done
denied 1 "$says" "$GHP_BIN/ghp-inspect" old.plan --export-hf x --weights new.first/checkpoint.safetensors
[ $failures -eq 0 ]
