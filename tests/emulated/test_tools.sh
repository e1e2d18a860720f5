#!/usr/bin/env bash
# ghp-test: timeout=900 full=yes label=emulated
# tests/emulated/test_tools.sh - the way from a profile to a trained network on an emulated GPU: ghp-profile --backend
# cuda, ghp-plan, ghp-run; what tests/gpu/verify.sh asks of a machine with a GPU, in small; streams as late as they
# may be. Timings mean nothing here; that there are any, and bytes, do. In short tests emulated/graphs, emulated/launches
# and emulated/cuda_ops stand for it.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
BIN=$GHP_EMULATED_BIN
export MODELS_FOLDER=$PWD/models # of smaller images: the emulated GPU is slow
mkdir models
sed 's/"height": 28, "width": 28/"height": 12, "width": 12/' "$GHP_SOURCE/models/lenet5.json" >models/lenet5.json
sed 's/"height": 16, "width": 16/"height": 8, "width": 8/' "$GHP_SOURCE/models/small-resnet.json" \
    >models/small-resnet.json
model=$PWD/models/lenet5.json
launch() { mpirun --oversubscribe --bind-to none -n "$@" >out 2>err </dev/null; }

# one worker, its streams as late as they may be, on tapes
launch 1 "$BIN/ghp-profile" --backend cuda --precision float --model "$model" --batch 2 --budget 1 --sample 1e-4 \
    -o one.json || fail "profile: $(head -3 err)"
grep -q '"backend": "cuda"' one.json || fail "the profile is not cuda's"
grep -q '"name": "emulated GPU"' one.json || fail "the machine has no GPU"
grep -q '"reserved_bytes"' one.json || fail "the profile has no bytes beside the arena"
"$BIN/ghp-plan" "$model" --profile one.json --workers 1 --batch 2 -o one.plan.json >out 2>err ||
    fail "plan: $(head -3 err)"
launch 1 "$BIN/ghp-run" one.plan.json --steps 6 --json --run one.run.json || fail "run: $(head -3 err)"
[ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] || fail "allocated is not predicted memory"
"$BIN/ghp-inspect" one.run.json >out 2>err || fail "inspect: $(head -3 err)"

# in bf16 the profile gives networks a padded vocabulary, of which neither losses nor checkpoints have anything
words=$GHP_SOURCE/tests/executor/tokens.json
launch 1 "$BIN/ghp-profile" --backend cuda --precision bf16 --model "$words" --batch 2 --budget 1 --sample 1e-4 \
    -o words.json || fail "profile of words: $(head -3 err)"
grep -q '"vocabulary_multiple": 64' words.json || fail "the profile pads no vocabulary"
grep -q '"linear n2 c12 h12 w1 k64"' words.json || fail "the profile has no padded product: $(grep linear words.json)"
"$BIN/ghp-plan" "$words" --profile words.json --workers 1 --batch 2 -o words.plan.json >out 2>err ||
    fail "plan of words: $(head -3 err)"
sed 's|^  "input"|  "vocabulary_multiple": 1,\n&|' "$words" >plain.json
"$BIN/ghp-plan" plain.json --profile words.json --workers 1 --batch 2 -o plain.plan.json >out 2>err ||
    fail "plan of words without padding: $(head -3 err)"
[ "$(grep '"program_hash"' words.plan.json)" != "$(grep '"program_hash"' plain.plan.json)" ] || fail "nothing is padded"
for plan in words plain; do
    launch 1 "$BIN/ghp-run" $plan.plan.json --steps 6 --checkpoint-every 4 --json --checkpoint $plan ||
        fail "run of $plan: $(head -3 err)"
    # what the profile has not measured asks for other scratch than it says
    [ $plan = plain ] || [ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] ||
        fail "$plan: allocated is not predicted memory"
    grep '"weights_hash"' out >$plan.hash
done
# copies of weights that updates write train to the bits of weights that each product casts, with a break in between
GHP_EMULATED_CASTS=1 launch 1 "$BIN/ghp-run" words.plan.json --steps 6 --checkpoint-every 3 --json --checkpoint cast ||
    fail "run with casts: $(head -3 err)"
grep '"weights_hash"' out | cmp - words.hash || fail "copies in bfloat16 train to other weights than casts do"
cmp words.hash plain.hash || fail "a padded vocabulary trains to other weights"
cmp words/checkpoint.safetensors plain/checkpoint.safetensors || fail "a padded vocabulary has other checkpoints"

# classes and outputs with weights, and outputs with losses of their own, in recorded steps: the losses of a processor
outputs() { # outputs LOSS OPTION...: of ghp-run
    echo '{"format": "ghp.model/1", "name": "outputs", "input": {"channels": 12}, "layers": [
  {"name": "main", "op": "linear", "features": 4}, {"name": "aux", "op": "linear", "features": 4, "inputs": ["input"]},
  {"name": "both", "op": "concat", "inputs": ["main", "aux"]}, {"name": "loss", "op": '"$1"'}]}' >outputs.json
    analytic outputs.json outputs.profile.json
    "$BIN/ghp-plan" outputs.json --profile outputs.profile.json --workers 1 --batch 8 -o outputs.plan.json >out 2>err ||
        fail "plan of two outputs: $(head -3 err)"
    for backend in onednn cuda; do
        launch 1 "$BIN/ghp-run" outputs.plan.json --backend $backend --steps 6 --lr 0.1 --overwrite \
            --metrics $backend.metrics "${@:2}" || fail "$1 by $backend: $(head -3 err)"
        sed 's/.*"loss": *\([^,}]*\).*/\1/' $backend.metrics >$backend.losses
    done
    paste onednn.losses cuda.losses | awk '{ d = $1 - $2; if (d * d > 1e-10) bad = 1 } END { exit bad || NR != 6 }' ||
        fail "losses of $1 differ: $(paste onednn.losses cuda.losses)"
}
outputs '"softmax_cross_entropy", "output_weights": [1, 0.3]' --class-weights 1,0.25,3,2
outputs '"losses", "losses": [{"op": "softmax_cross_entropy", "smoothing": 0.1},
    {"op": "regression", "error": "smooth_l1", "weight": 0.3}]'

# in short tests emulated/nccl and emulated/cuda_ops stand for the rest
if full; then
    # two workers, carried by NCCL and by MPI
    export GHP_EMULATED=eager
    GHP_EMULATED_GPUS=2 launch 2 "$BIN/ghp-profile" --backend cuda --transport nccl --precision bf16 \
        --model "$model" --batch 4 --budget 1 --sample 1e-4 -o two.json || fail "profile over NCCL: $(head -3 err)"
    "$BIN/ghp-plan" "$model" --profile two.json --workers 2 --batch 4 -o two.plan.json >out 2>err ||
        fail "plan over NCCL: $(head -3 err)"
    for how in "nccl 2" "mpi 1"; do
        set -- $how
        GHP_EMULATED_GPUS=$2 launch 2 "$BIN/ghp-run" two.plan.json --steps 2 --transport "$1" ||
            fail "run over $1: $(head -3 err)"
        grep -q "tensors go by $1" err || fail "$1 did not carry"
    done
    launch 2 "$BIN/ghp-run" two.plan.json --steps 2 --transport nccl && fail "NCCL took two workers on one GPU"
    grep -q -- '--transport mpi' err || fail "no remedy: $(head -3 err)"

    # two workers, each of which sees a GPU of its own alone: the profile counts two
    export GHP_EMULATED_GPUS=own
    launch 2 "$BIN/ghp-profile" --backend cuda --precision float --model "$model" --batch 4 --budget 1 --sample 1e-4 \
        -o own.json || fail "profile of two: $(head -3 err)"
    grep -A2 '"gpus"' own.json | grep -q '"count": 2' || fail "not two GPUs: $(grep -A2 '"gpus"' own.json)"
    "$BIN/ghp-plan" "$model" --profile own.json --workers 2 --batch 4 -o own.plan.json >out 2>err ||
        fail "plan for two: $(head -3 err)"

    # a rank that cannot record its step: all enqueue theirs
    for faulty in 0 1; do
        GHP_EMULATED_CAPTURE=$faulty launch 2 "$BIN/ghp-run" own.plan.json --steps 3 --transport nccl ||
            fail "run where rank $faulty records nothing: $(head -3 err)"
        grep -q "steps are enqueued one by one" err || fail "rank 0 does not follow rank $faulty: $(cat err)"
    done
    unset GHP_EMULATED_GPUS

    # equal to one worker: what tests/gpu/verify.sh asks of a machine with a GPU
    # through host memory, two workers on one GPU, streams as late as they may be
    GHP_EMULATED='' FAULTS='' STEPS=2 MODELS=lenet5 PLANS='out staged' PRECISIONS=float TRANSPORTS=mpi NUMERICS=auto \
        "$GHP_SOURCE/tests/gpu/verify.sh" "$BIN" 2 || fail "late streams"
    export GHP_EMULATED_GPUS=4
    FAULTS='' STEPS=2 MODELS=lenet5 PLANS='data in' PRECISIONS=float TRANSPORTS=nccl NUMERICS=auto \
        "$GHP_SOURCE/tests/gpu/verify.sh" "$BIN" 2 || fail verify
    FAULTS=local-statistics STEPS=2 MODELS=small-resnet PLANS=data PRECISIONS=bf16 TRANSPORTS=nccl \
        NUMERICS=auto "$GHP_SOURCE/tests/gpu/verify.sh" "$BIN" 2 || fail verify
fi

# a GPU that is too old, and none: the remedy
GHP_EMULATED_OLD=1 launch 1 "$BIN/ghp-run" one.plan.json --steps 1
[ $? = 1 ] || fail "a run on an old GPU does not exit 1"
grep -q "compute capability 7.0.*CUDA_VISIBLE_DEVICES" err || fail "no remedy: $(head -3 err)"
GHP_EMULATED_GPUS=0 launch 1 "$BIN/ghp-run" one.plan.json --steps 1
[ $? = 1 ] || fail "a run without a GPU does not exit 1"
grep -q -- '--backend onednn' err || fail "no remedy: $(head -3 err)"
[ $failures -eq 0 ]
