#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/together/test_schema.sh - docs/schema/*.json and what ghp-inspect --layer-schema prints describe the
# files: the source tree's models and plans, and files that the tools make here, are valid; files with a key too much,
# too few or of another type are not.
# Skipped where Python's jsonschema (Debian: python3-jsonschema) is not installed. In short tests core/plan/plan and
# core/base/json stand for it.
set -u
python3 -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null || {
    echo "skipped: install python3-jsonschema to check files against docs/schema" >&2
    exit 77
}
scratch=$(mktemp -d) && cd "$scratch" || exit 1
trap 'rm -rf "$scratch"' EXIT

model=$GHP_SOURCE/models/lenet5.json
mkdir layer
ranks=(mpirun --oversubscribe --bind-to none -n 2)
plan() { "$GHP_BIN/ghp-plan" "$model" --workers 2 --batch 8 -o "$@"; } # plan FILE ARGS...
{
    "$GHP_BIN/ghp-inspect" --layer-schema >layer/layer.json &&
        "$GHP_BIN/ghp-profile" --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model "$model" -o law.json &&
        "$GHP_BIN/ghp-profile" --machine-only --hwloc 'numa:2 core:2 pu:1' -o machine.json &&
        "${ranks[@]}" "$GHP_BIN/ghp-profile" --model "$model" --workers 2 --batch 8 --budget 3 -o measured.json &&
        plan plan.json --profile measured.json &&
        plan moved.json --profile measured.json --set inter.latency_s=1e-4 &&
        plan given.json --profile law.json --force '*=out:max' &&
        "${ranks[@]}" "$GHP_BIN/ghp-run" plan.json --steps 3 --run run.json &&
        "${ranks[@]}" "$GHP_BIN/ghp-run" given.json --verify 2 --run verified.json
} >out 2>&1 </dev/null || {
    echo "the tools made no files:" >&2
    tail -n 5 out >&2
    exit 1
}

python3 - "$GHP_SOURCE" "$GHP_BIN/../tests/seeds/model/drawn.json" *.json <<'PY'
import copy, glob, json, os, sys
import jsonschema

source, drawn, made = sys.argv[1], sys.argv[2], sys.argv[3:]
schemas = {}
for path in glob.glob(os.path.join(source, "docs/schema/*.json")) + ["layer/layer.json"]:
    with open(path) as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    schemas[schema["$id"]] = schema


def inline(part, home):
    """The same with all references into one document, so that every version of the library resolves them alike."""
    if isinstance(part, list):
        return [inline(item, home) for item in part]
    if not isinstance(part, dict):
        return part
    part = {key: inline(value, home) for key, value in part.items() if key != "$id"}
    if "$ref" in part:
        target = part["$ref"]
        part["$ref"] = f"#/$defs/{home}{target[1:]}" if target.startswith("#") else f"#/$defs/{target}"
    return part


everything = {name: inline(schema, name) for name, schema in schemas.items()}


def validator(kind):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}.json", "$defs": everything})


failures, examples = 0, {}
networks = [os.path.join(source, "tests/executor/joins.json"), drawn]  # with operations that no network of models/ has
kept = sorted(path for folder in ("models", "plans", "machines", "machines/network") for path in glob.glob(os.path.join(source, folder, "*.json")))
for path in made + kept + networks:
    with open(path) as file:
        value = json.load(file)
    kind = value["format"].split("/")[0].split(".")[1]
    examples.setdefault(kind, value)
    for error in list(validator(kind).iter_errors(value))[:3]:
        failures += 1
        print(f"{path}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}", file=sys.stderr)


def refuses(kind, change, what):
    global failures
    value = copy.deepcopy(examples[kind])
    change(value)
    if validator(kind).is_valid(value):
        failures += 1
        print(f"{kind}: a file with {what} passes", file=sys.stderr)


for kind in sorted(set(schemas) - {"layer.json"}):
    kind = kind.split(".")[0]
    if kind not in examples:
        failures += 1
        print(f"no file of the kind {kind} was checked", file=sys.stderr)
        continue
    for key in schemas[kind + ".json"]["required"]:
        refuses(kind, lambda v: v.pop(key), f"no {key}")
        refuses(kind, lambda v: v.update({key: {"wrong": {}}}), f"another type of {key}") if key != "options" else None
    if kind != "run":  # which readers take with any keys
        refuses(kind, lambda v: v.update(further=1), "a further key")
refuses("model", lambda v: v["layers"][0].update(kernal=3), "a misspelt key of a layer")
refuses("model", lambda v: v["layers"].insert(0, {"name": "a", "op": "activation", "function": "tanh", "alpha": 1}),
        "a key that an activation's function does not take")
refuses("model", lambda v: v["layers"][0].update(op="conv"), "an operation that there is not")
refuses("model", lambda v: v["layers"][0].update(channels=0), "a number out of its range")
refuses("plan", lambda v: v["model"]["layers"][0].update(kernal=3), "a misspelt key inside its model")
refuses("plan", lambda v: v["profile"]["machine"].update(nodes="two"), "a text for a number inside its profile")
sys.exit(failures > 0)
PY
