#!/bin/bash
# bench/chain.sh - prints a network of repeated blocks, for the planner's cost over the number of layers.
#
# usage: bench/chain.sh BLOCKS [KIND]
#   KIND   mlp    blocks of linear 1024 -> 4096, relu, linear 4096 -> 1024, added to their input: a transformer's
#                 feed-forward halves; input 1024 [default]
#          conv   blocks of conv 3x3, batch_norm, relu, twice, added to their input, 256 channels at 14x14
#          plain  blocks of linear 1024 -> 1024 and relu, without a sum: a chain
#          gpt    whole blocks of a transformer as wide as GPT-2 774M: 1280 channels, 20 heads, 1024 positions
set -u
blocks=${1:-} kind=${2:-mlp}
if ! [[ $blocks =~ ^[1-9][0-9]*$ ]] || [[ ! $kind =~ ^(mlp|conv|plain|gpt)$ ]] || [ $# -gt 2 ]; then
    echo "usage: bench/chain.sh BLOCKS [mlp|conv|plain|gpt]" >&2
    exit 2
fi

layer() {
    printf '    %s,\n' "$1"
}

# mlp NUMBER BEFORE: one block after the layer BEFORE
mlp() {
    layer "{\"name\": \"b$1.up\", \"op\": \"linear\", \"features\": 4096, \"inputs\": [\"$2\"]}"
    layer "{\"name\": \"b$1.relu\", \"op\": \"relu\"}"
    layer "{\"name\": \"b$1.down\", \"op\": \"linear\", \"features\": 1024}"
    layer "{\"name\": \"b$1.add\", \"op\": \"add\", \"inputs\": [\"b$1.down\", \"$2\"]}"
}

conv() {
    local inputs=", \"inputs\": [\"$2\"]" half
    for half in 1 2; do
        layer "{\"name\": \"b$1.conv$half\", \"op\": \"conv2d\", \"channels\": 256, \"kernel\": 3, \"pad\": 1,\
 \"bias\": false$inputs}"
        layer "{\"name\": \"b$1.norm$half\", \"op\": \"batch_norm\"}"
        [ $half -eq 1 ] && layer "{\"name\": \"b$1.relu1\", \"op\": \"relu\"}"
        inputs=
    done
    layer "{\"name\": \"b$1.add\", \"op\": \"add\", \"inputs\": [\"b$1.norm2\", \"$2\"]}"
    layer "{\"name\": \"b$1.relu2\", \"op\": \"relu\"}"
}

plain() {
    layer "{\"name\": \"b$1.fc\", \"op\": \"linear\", \"features\": 1024, \"inputs\": [\"$2\"]}"
    layer "{\"name\": \"b$1.add\", \"op\": \"relu\"}"
}

gpt() {
    local part inputs
    layer "{\"name\": \"b$1.norm1\", \"op\": \"layer_norm\", \"inputs\": [\"$2\"]}"
    for part in q k v; do
        layer "{\"name\": \"b$1.$part\", \"op\": \"linear\", \"features\": 1280, \"inputs\": [\"b$1.norm1\"]}"
    done
    inputs="[\"b$1.q\", \"b$1.k\", \"b$1.v\"]"
    layer "{\"name\": \"b$1.heads\", \"op\": \"attention\", \"heads\": 20, \"inputs\": $inputs}"
    layer "{\"name\": \"b$1.proj\", \"op\": \"linear\", \"features\": 1280}"
    layer "{\"name\": \"b$1.sum\", \"op\": \"add\", \"inputs\": [\"$2\", \"b$1.proj\"]}"
    layer "{\"name\": \"b$1.norm2\", \"op\": \"layer_norm\"}"
    layer "{\"name\": \"b$1.up\", \"op\": \"linear\", \"features\": 5120}"
    layer "{\"name\": \"b$1.gelu\", \"op\": \"gelu\", \"approximate\": \"tanh\"}"
    layer "{\"name\": \"b$1.down\", \"op\": \"linear\", \"features\": 1280}"
    layer "{\"name\": \"b$1.add\", \"op\": \"add\", \"inputs\": [\"b$1.sum\", \"b$1.down\"]}"
}

printf '{\n  "format": "ghp.model/1",\n  "name": "%s-%d",\n' "$kind" "$blocks"
if [ "$kind" = conv ]; then
    printf '  "input": {"channels": 3, "height": 14, "width": 14},\n  "layers": [\n'
    layer '{"name": "stem", "op": "conv2d", "channels": 256, "kernel": 3, "pad": 1}'
    before=stem last=relu2
elif [ "$kind" = gpt ]; then
    printf '  "input": {"vocabulary": 50304, "positions": 1024},\n  "layers": [\n'
    layer '{"name": "wte", "op": "embedding", "channels": 1280}'
    layer '{"name": "wpe", "op": "position_embedding"}'
    before=wpe last=add
else
    printf '  "input": {"channels": 1024},\n  "layers": [\n'
    layer '{"name": "stem", "op": "linear", "features": 1024}'
    before=stem last=add
fi
for ((b = 1; b <= blocks; ++b)); do
    "$kind" "$b" "$before"
    before=b$b.$last
done
[ "$kind" = conv ] && layer '{"name": "pool", "op": "global_avg_pool"}' && layer '{"name": "flat", "op": "flatten"}'
if [ "$kind" = gpt ]; then
    layer '{"name": "norm", "op": "layer_norm"}'
    layer '{"name": "head", "op": "linear", "features": 50304, "bias": false}'
else
    layer '{"name": "fc", "op": "linear", "features": 1024}'
fi
printf '    {"name": "loss", "op": "softmax_cross_entropy"}\n  ]\n}\n'
