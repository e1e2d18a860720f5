#!/bin/bash
# bench/chain.sh - prints a network of repeated blocks, for the planner's cost over the number of layers.
#
# usage: bench/chain.sh BLOCKS [KIND]
#   KIND   mlp    blocks of linear 1024 -> 4096, relu, linear 4096 -> 1024, added to their input: a transformer's
#                 feed-forward halves; input 1024 [default]
#          conv   blocks of conv 3x3, batch_norm, relu, twice, added to their input, 256 channels at 14x14
#          plain  blocks of linear 1024 -> 1024 and relu, without a sum: a chain
set -u
blocks=${1:-} kind=${2:-mlp}
if ! [[ $blocks =~ ^[1-9][0-9]*$ ]] || [[ ! $kind =~ ^(mlp|conv|plain)$ ]] || [ $# -gt 2 ]; then
    echo "usage: bench/chain.sh BLOCKS [mlp|conv|plain]" >&2
    exit 2
fi

layer() {
    printf '    %s,\n' "$1"
}

# mlp NUMBER BEFORE: one block behind the layer BEFORE
mlp() {
    layer "{\"name\": \"b$1.up\", \"op\": \"linear\", \"features\": 4096, \"inputs\": [\"$2\"]}"
    layer "{\"name\": \"b$1.relu\", \"op\": \"relu\"}"
    layer "{\"name\": \"b$1.down\", \"op\": \"linear\", \"features\": 1024}"
    layer "{\"name\": \"b$1.add\", \"op\": \"add\", \"inputs\": [\"b$1.down\", \"$2\"]}"
}

conv() {
    local inputs=", \"inputs\": [\"$2\"]" half
    for half in 1 2; do
        layer "{\"name\": \"b$1.conv$half\", \"op\": \"conv2d\", \"channels\": 256, \"kernel\": 3, \"pad\": 1, \"bias\": false$inputs}"
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

printf '{\n  "format": "ghp.model/1",\n  "name": "%s-%d",\n' "$kind" "$blocks"
if [ "$kind" = conv ]; then
    printf '  "input": {"channels": 3, "height": 14, "width": 14},\n  "layers": [\n'
    layer '{"name": "stem", "op": "conv2d", "channels": 256, "kernel": 3, "pad": 1}'
    before=stem last=relu2
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
layer '{"name": "fc", "op": "linear", "features": 1024}'
printf '    {"name": "loss", "op": "softmax_cross_entropy"}\n  ]\n}\n'
