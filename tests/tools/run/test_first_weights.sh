#!/usr/bin/env bash
# ghp-test: timeout=300 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/run/test_first_weights.sh - a network's own weights are loaded whole, or the run ends with what is wrong:
# folders in one file and in several, damaged and foreign ones; files that were moved; plans that are run from another
# folder. Only --init random and a network without weights are drawn from the seed. In short tests
# onnx/huggingface/weights and executor/state/init stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"

# folder FOLDER [SHARDS]: a small gpt2 whose tensors are known numbers, in one file or in several
folder() {
    python3 - "$@" <<'END'
import json, os, struct, sys
folder, shards = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
os.makedirs(folder, exist_ok=True)
json.dump({"model_type": "gpt2", "vocab_size": 256, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 2},
          open(f"{folder}/config.json", "w"))
dims = {"wte.weight": [256, 4], "wpe.weight": [8, 4], "ln_f.weight": [4], "ln_f.bias": [4]}
for name, d in {"ln_1.weight": [4], "ln_1.bias": [4], "attn.c_attn.weight": [4, 12], "attn.c_attn.bias": [12],
                "attn.c_proj.weight": [4, 4], "attn.c_proj.bias": [4], "ln_2.weight": [4], "ln_2.bias": [4],
                "mlp.c_fc.weight": [4, 16], "mlp.c_fc.bias": [16], "mlp.c_proj.weight": [16, 4],
                "mlp.c_proj.bias": [4]}.items():
    dims["h.0." + name] = d

def write(path, names):
    header, data = {}, b""
    for name in names:
        n = 1
        for d in dims[name]: n *= d
        values = struct.pack(f"<{n}f", *[((i * 7 + len(name) * 3) % 13 - 6) / 4 for i in range(n)])
        header[name] = {"dtype": "F32", "shape": dims[name], "data_offsets": [len(data), len(data) + 4 * n]}
        data += values
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

names = list(dims)
if shards == 0:
    write(f"{folder}/model.safetensors", names)
else:
    part = lambda i: f"model-{i + 1:05}-of-{shards:05}.safetensors"
    for i in range(shards): write(f"{folder}/{part(i)}", names[i::shards])
    json.dump({"metadata": {}, "weight_map": {n: part(i % shards) for i, n in enumerate(names)}},
              open(f"{folder}/model.safetensors.index.json", "w"))
END
}

# planned NETWORK PLAN
planned() {
    "$GHP_BIN/ghp-plan" "$1" --profile "$top/profile" --workers 1 --batch 8 -o "$2" >out 2>err || fail "$2: $(cat err)"
}

train=(mpirun --oversubscribe --bind-to none -n 1 "$GHP_BIN/ghp-run")
options=(--data "bytes:$PWD/text" --threads 1 --steps 1 --lr 0 --numerics exact)
# loss PLAN OPTION...: of the first step
loss() {
    "${train[@]}" "$@" "${options[@]}" --metrics "$top/metrics" --overwrite >"$top/out" 2>"$top/err" </dev/null ||
        fail "$*: $(cat "$top/err")"
    sed -n 's/.*"loss": *\([-+0-9.eE]*\).*/\1/p;1q' "$top/metrics"
    rm -f "$top/metrics"
}
# refused TEXT PLAN OPTION...: trains nothing
refused() { denied 1 "$1" "${train[@]}" "${@:2}" "${options[@]}"; }

top=$PWD
python3 -c 'import random; random.seed(3); print(end="".join(random.choices("etaoin shrdlu", k=513)))' >text
folder net
analytic net profile
planned net net.plan
drawn=$(loss net.plan --init random)
whole=$(loss net.plan)
[ -n "$whole" ] && [ "$whole" != "$drawn" ] || fail "the folder's weights: $whole, drawn ones: $drawn"

# ---- several files are one network
folder parts 3
planned parts parts.plan
[ "$(loss parts.plan)" = "$whole" ] || fail "three files are other weights than one"
[ "$(loss net.plan --init parts)" = "$whole" ] || fail "--init of three files"
mv parts/model-00002-of-00003.safetensors away
refused "the folder has no file 'model-00002-of-00003.safetensors'; fetch that file" parts.plan
cp parts/model-00001-of-00003.safetensors parts/model-00002-of-00003.safetensors
refused "the file 'model-00002-of-00003.safetensors' has no such tensor" parts.plan
refused "the file 'model-00002-of-00003.safetensors' has no such tensor" net.plan --init parts

# ---- what cannot be loaded ends the run
damaged() { # NAME TEXT COMMAND: the folder after the command; --init FOLDER reads it whole
    cp -r net kept
    (cd net && eval "$3")
    refused "$2" net.plan --init net
    rm -r net
    mv kept net
}
damaged cut "truncated or damaged" 'head -c 3000 model.safetensors >x && mv x model.safetensors'
cp net/model.safetensors whole
head -c 3000 whole >net/model.safetensors
refused "truncated or damaged" net.plan # the same of the plan's own folder
mv whole net/model.safetensors
damaged pointer "is a pointer of Git LFS.*git lfs pull" \
    'printf "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n" >model.safetensors'
damaged empty "is not a safetensors file, or it is truncated" ': >model.safetensors'
damaged bin "pytorch_model.bin' is in PyTorch's own format.*save_pretrained" \
    'mv model.safetensors pytorch_model.bin'
damaged foreign "tf_model.h5': ghp reads the weights .* from model.safetensors" 'mv model.safetensors tf_model.h5'
damaged layers "has no tensor .*h\.1\." "sed -i 's/\"n_layer\": 1/\"n_layer\": 2/' config.json"
damaged wide "is \[4\]\[16\], but by config.json it is \[4\]\[8\]" \
    "sed -i 's/\"n_layer\": 1/\"n_layer\": 1, \"n_inner\": 8/' config.json"
damaged missing "has no tensor 'transformer.ln_f.bias'" "sed -i 's/\"ln_f.bias\"/\"ln_f.axis\"/' model.safetensors"

# ---- weights for another head: the remedies that are named work, and ghp-run says what it draws
trained=$(loss net.plan --checkpoint learned)
sed 's/ln_f.bias"/ln_f.axis"/' learned/checkpoint.safetensors >head.safetensors
refused "no tensor '.*ln_f.bias'.* or draw this one by --init-except '.*ln_f.bias'" net.plan --init head.safetensors
name=$(sed -n "s/.*--init-except '\(.*\)'.*/\1/p" err)
refused "a tensor '.*ln_f.axis' that the model does not have.* leave this one out by --init-except '.*axis'" net.plan \
    --init head.safetensors --init-except "$name"
mixed=$(loss net.plan --init head.safetensors --init-except "$name" --init-except '*ln_f.axis')
[ -n "$mixed" ] && [ "$mixed" != "$trained" ] && [ "$mixed" != "$drawn" ] ||
    fail "one bias is drawn: $mixed, whole: $trained, drawn: $drawn: $(cat err)"
grep -q "1 of 20 tensors are drawn from the seed: $name" err || fail "what is drawn: $(cat err)"
[ "$(loss net.plan --init-except '*')" = "$drawn" ] || fail "all of its own weights are excepted, and it is not drawn"
refused "names no tensor" net.plan --init-except 'no.such.*'
refused "names no tensor" net.plan --init-except 'no.such.*' --dry-run
refused "no tensor '.*ln_f.bias'" net.plan --init head.safetensors --dry-run
denied 2 "leave it out" "${train[@]}" net.plan --init random --init-except '*' "${options[@]}"

# ---- ghp-plan warns of them before it searches: the plan does not depend on weights
cp -r net missing
sed -i 's/"ln_f.bias"/"ln_f.axis"/' missing/model.safetensors
"$GHP_BIN/ghp-plan" missing --profile "$top/profile" --workers 1 --batch 8 -o missing.plan >out 2>err ||
    fail "no plan for weights that --init may replace: $(cat err)"
grep -q "missing/model.safetensors' has no tensor .*the plan does not depend on it, but ghp-run refuses" err ||
    fail "ghp-plan does not warn: $(cat err)"
"$GHP_BIN/ghp-plan" net --profile "$top/profile" --workers 1 --batch 8 -o again.plan >out 2>err
[ -s err ] && fail "ghp-plan warns of a sound folder: $(cat err)"

# ---- a network without weights is drawn, which is said
mkdir bare
cp net/config.json bare
planned bare bare.plan
[ "$(loss bare.plan)" = "$drawn" ] || fail "a folder without weights is not drawn"
grep -q "/bare' holds no weights: they are drawn from the seed" err || fail "drawn, unsaid: $(cat err)"
refused "'bare' has no weights" bare.plan --init bare

# ---- a network that had weights when it was planned never becomes one without
cp -r net emptied
planned emptied emptied.plan
rm emptied/model.safetensors
refused "/emptied' had weights when it was planned, and has none now.*--init random" emptied.plan
[ "$(loss emptied.plan --init random)" = "$drawn" ] || fail "--init random of an emptied folder"
planned ./net@4 short.plan
grep -q '"model_weights": true' short.plan || fail "a plan of net@4 does not know of the weights"

# ---- from another folder, moved, and gone
mkdir elsewhere
[ "$(cd elsewhere && loss ../net.plan)" = "$whole" ] || fail "a plan that is run from another folder"
planned ./net@4 short.plan
[ "$(cd elsewhere && loss ../short.plan)" = "$(loss short.plan --init net@4)" ] || fail "samples of 4 from another folder"
mkdir moved
mv net net.plan moved
[ "$(loss moved/net.plan)" = "$whole" ] || fail "a network that was moved with its plan"
grep -q "/net' is not there: 'moved/net', next to the plan, is taken" err || fail "moved, unsaid: $(cat err)"
mv moved/net gone
refused "/net', the network of the plan, is not there, nor 'net' next to the plan.*--init random" moved/net.plan
[ "$(loss moved/net.plan --init random)" = "$drawn" ] || fail "--init random of a network that is gone"
[ "$(loss moved/net.plan --init gone)" = "$whole" ] || fail "--init FOLDER of a network that is gone"

# ---- ONNX: the same
"$GHP_BIN/ghp-inspect" gone --export-onnx drawn.onnx >out 2>err || fail "an export: $(cat err)"
"${train[@]}" moved/net.plan --init gone "${options[@]}" --checkpoint kept >out 2>err || fail "a checkpoint: $(cat err)"
"$GHP_BIN/ghp-inspect" moved/net.plan --export-onnx net.onnx --weights kept/checkpoint.safetensors >out 2>err ||
    fail "an export: $(cat err)"
planned net.onnx onnx.plan
[ "$(cd elsewhere && loss ../onnx.plan)" = "$whole" ] || fail "ONNX from another folder"
head -c 3000 net.onnx >cut.onnx
mv net.onnx net.kept
cp cut.onnx net.onnx
refused "net.onnx: this is not an ONNX model, or it is damaged.*--init random" onnx.plan
rm net.onnx
refused "/net.onnx', the network of the plan, is not there" onnx.plan

# ---- what PyTorch puts in front of the names of a wrapped module
python3 - kept/checkpoint.safetensors wrapped.safetensors <<'END'
import json, struct, sys
bytes = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", bytes[:8])[0]
header = json.loads(bytes[8:8 + n])
kept, data = {}, b""
for name, entry in header.items():
    if name == "__metadata__" or name.startswith("momentum."): continue
    first, last = entry["data_offsets"]
    kept["_orig_mod.module." + name] = dict(entry, data_offsets=[len(data), len(data) + last - first])
    data += bytes[8 + n + first:8 + n + last]
text = json.dumps(kept).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data)
END
[ "$(loss moved/net.plan --init wrapped.safetensors)" = "$whole" ] || fail "names of a wrapped module"
grep -q "names of its tensors are read without 'module.'" err || fail "wrapped, unsaid: $(cat err)"
[ $failures -eq 0 ]
