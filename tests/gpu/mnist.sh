#!/usr/bin/env bash
# tests/gpu/mnist.sh BIN - lenet5 learns MNIST in bf16 on a GPU: 8 000 of the public 10 000 test images train, 2 000
# test, as tests/tools/learn/test_mnist.sh has it; three seeds, mean accuracy at least 98.5 %. GHP_MNIST names the
# folder of the images; SEEDS (5 6 7), EPOCHS (15) and BAR (98.5) choose. Exit 77 where there are no images, or no GPU.
set -u
BIN=$(cd "$1" && pwd) || exit 2
source_tree=$(cd "$(dirname "$0")/../.." && pwd)
data=${GHP_MNIST:-$source_tree/../shared/data/mnist}
[ -r "$data/t10k-images-idx3-ubyte.gz" ] || { echo "skipped: no MNIST images in '$data'; set GHP_MNIST"; exit 77; }
data=$(cd "$data" && pwd)
. "$source_tree/tests/tools/scratch.sh"
. "$source_tree/tests/gpu/libraries.sh"
model=$source_tree/models/lenet5.json
"$BIN/ghp-profile" --analytic F=1e13,bandwidth=1e10,latency=1e-5 --model "$model" -o profile.json >out 2>err &&
    "$BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 64 -o plan.json >out 2>err ||
    { head -2 err; exit 1; }
for seed in ${SEEDS:-5 6 7}; do
    mpi 1 "$BIN/ghp-run" plan.json --backend cuda --precision bf16 --data "idx:$data" --train-fraction 0.8 --lr 0.02 \
        --weight-decay 0.004 --lr-schedule cosine --epochs "${EPOCHS:-15}" --seed "$seed" --json >out 2>err || {
        no_gpu err && { echo "skipped: $(why err)"; exit 77; }
        fail "seed $seed: $(why err)"
        continue
    }
    echo "$seed $(number test_accuracy out)" >>accuracies
done
[ -e accuracies ] || exit 1
awk -v bar="${BAR:-98.5}" '{ printf "seed %d: %.2f %%\n", $1, 100 * $2; sum += 100 * $2 }
    END { printf "mean %.2f %% (bar %.1f %%)\n", sum / NR, bar; exit !(sum / NR >= bar) }' accuracies ||
    failures=$((failures + 1))
[ $failures -eq 0 ]
