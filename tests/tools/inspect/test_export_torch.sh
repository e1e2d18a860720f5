#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=script needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/inspect/test_export_torch.sh - plans that PyTorch carries out: on four ranks ten steps have the losses of
# one process. What PyTorch's placements cannot say is refused. Wants a python3 (GHP_PYTHON) that has torch, onnx and
# onnxscript for all but the refusals. In short tests tools/inspect/inspect stands for it.
set -u
python=${GHP_PYTHON:-python3}
script=$GHP_SOURCE/tests/tools/inspect/export_torch.py
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1

# planned MODEL WORKERS OPTION...: plan.json of it, by a profile that is the same for all
planned() {
    local model=$1 workers=$2
    shift 2
    analytic "$model" profile F=1e10,bandwidth=1e9,latency=1e-6
    "$GHP_BIN/ghp-plan" "$model" --profile profile --workers "$workers" --batch 16 --no-break-even --time-limit 5 "$@" -o plan.json \
        >out 2>err || { fail "$model: $(cat err)"; return 1; }
}

# ---- refusals ----
lenet=$GHP_SOURCE/models/lenet5.json
# cannot 'TEXT' OPTION...: a plan of lenet5 that is refused
cannot() {
    local text=$1
    shift
    planned "$lenet" 4 "$@" && denied 1 "$text" "$GHP_BIN/ghp-inspect" plan.json --export-torch plan.py
}
cannot "'conv1' \\(conv2d\\) is split out:2.*--force 'conv1=data'" --force 'conv1=out:2'
cannot "'fc1' and 'fc2' are split over 2 and 4 workers" --force 'conv*=data,fc1=out:2,fc2=in:4'
cannot 'stages' --stages 2,fc1:2 --micro-batches 2
cannot "parameters of 'fc[12](.bias)?' are sharded and 'fc1' is split over 2" --force 'conv*=data,fc1=out:2,fc2=data+pass,fc3=data' \
    --shard auto
cannot 'plan with --shard-within 4' --strategy data --shard pass --shard-within 2
cannot 'recomputes layers.* --recompute never' --strategy data --memory 900KiB
cannot "synchronises by 'local'" --strategy data --sync local:2
sed 's/"op": "batch_norm"/"op": "batch_norm", "statistics": "local:2"/' "$GHP_SOURCE/models/small-resnet.json" >ghost.json
planned "$PWD/ghost.json" 2 --strategy data &&
    denied 1 'takes statistics of 2 samples at a time' "$GHP_BIN/ghp-inspect" plan.json --export-torch plan.py
denied 2 'about plans' "$GHP_BIN/ghp-inspect" "$lenet" --export-torch plan.py
[ ! -e plan.py ] || fail "a refusal wrote plan.py"

# ---- training ----
warm_python torch onnx onnxscript torch.distributed.fsdp || {
    echo "left out: '$python' lacks torch, onnx or onnxscript; set GHP_PYTHON to one that has them" >&2
    [ $failures -eq 0 ] && exit 77
    exit 1
}

# four_ranks COMMAND...: what torchrun does with four of them
four_ranks() {
    local rank ended=0 started=() port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    for rank in 0 1 2 3; do
        MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=4 RANK=$rank LOCAL_RANK=$rank PYTHONPATH=$PWD "$@" &
        started+=($!)
    done
    for rank in "${started[@]}"; do wait "$rank" || ended=1; done
    return $ended
}

# trains NETWORK FORCED OPTION...: PyTorch on four ranks by the plan
trains() {
    [ -e "$1.onnx" ] || warm "$script" export "$1" >out 2>err || { fail "$1: $(tail -n 3 err)"; return; }
    planned "$1.onnx" 4 --force "$2" "${@:3}" || return
    rm -f plan.py
    "$GHP_BIN/ghp-inspect" plan.json --export-torch plan.py >out 2>err || { fail "$1: $(cat err)"; return; }
    four_ranks warm "$script" train "$1" >out 2>err </dev/null || { fail "$1: $(cat out) $(tail -n 20 err)"; return; }
    cat out
}
trains mlp '0=out:2,2=in:2,4=out:2,6=data'
full && trains mlp '0=out:4,2=in:4,4=in:4,6=out:4'
trains mlp '0=data+pass,2=data+step,4=data,6=data' --shard auto # FSDP2
[ "$(grep -cE '^    \("[02]", (True|False)\),$' plan.py)" = 2 ] || fail "plan.py does not shard two layers"
full && trains block '*=data' --shard pass
trains normed '*=data'
trains cnn '0=data,3=data,7=out:4,9=in:4,11=data'
trains block 'up=out:2,down=in:2,head=data,q=data,k=data,v=data,o=data,embed=data'
[ $failures -eq 0 ]
