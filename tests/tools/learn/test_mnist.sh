#!/usr/bin/env bash
# ghp-test: timeout=600 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/learn/test_mnist.sh - lenet5 learns MNIST under a mixed plan as well as with one worker: 8 000 of the
# public 10 000 test images train, 2 000 test; three seeds, 15 epochs, 4 workers (G = 2, K = 2) compared with one.
# The images are not part of this tree: GHP_MNIST names their folder (t10k-images-idx3-ubyte.gz and labels), by default
# shared/data/mnist next to the source tree; without them the test is skipped.
# Bars: mean accuracy 98.5 %; means within 0.2 points (a seed's spread is about 0.1 points, four of 2 000 images); the
# first 20 losses within 1e-5 (summation order; docs/explanation/exactness.md).
# In full runs only; that a mixed plan trains like one worker is tools/equality's and executor/equality's in every run.
set -u
data=${GHP_MNIST:-$GHP_SOURCE/../shared/data/mnist}
if [ ! -r "$data/t10k-images-idx3-ubyte.gz" ]; then
    echo "skipped: no MNIST images in '$data'; set GHP_MNIST to a folder that has them" >&2
    exit 77
fi
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json

losses() { sed -n "/\"$1\": \[/,/\]/p" "$2" | sed -n 's/^ *\([0-9][-+0-9.eE]*\),*$/\1/p'; }

analytic "$model" profile.json F=1e11,bandwidth=1e9,latency=2e-5
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 4 --batch 64 --groups 2 --force 'conv*=data,fc*=out:2' \
    -o 4.json >/dev/null 2>&1 || exit 1
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 64 -o 1.json >/dev/null 2>&1 || exit 1

train() { # WORKERS SEED OPTIONS...
    ranks "$1" run "$1.json" --data "idx:$data" --train-fraction 0.8 --threads 1 --numerics exact --lr 0.02 \
        --weight-decay 0.004 --seed "$2" --json "${@:3}" || {
        head -5 err >&2
        exit 1
    }
}

for seed in 5 6 7; do
    for workers in 4 1; do
        started=$(date +%s.%N)
        train $workers $seed --epochs 15 --lr-schedule cosine
        took=$(echo "$(date +%s.%N) $started" | awk '{ print $1 - $2 }')
        echo "$workers $seed $(number test_accuracy out) $took" >>accuracies
    done
    train 4 $seed --verify 20
    paste <(losses losses out) <(losses losses_of_one_worker out) |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d; n++ } END { print n, most }' >>differences
done
awk '{ printf "%d worker(s), seed %d: %.2f %% in %.1f s\n", $1, $2, 100 * $3, $4 }' accuracies
awk '{ printf "first %d losses: greatest difference %.1e\n", $1, $2 }
    $1 != 20 || $2 > 1e-5 { bad = 1 }
    END { exit bad }' differences || fail "losses differ"
awk '{ sum[$1] += $3; n[$1]++ }
    END { a = 100 * sum[4] / n[4]; b = 100 * sum[1] / n[1]; d = a - b; if (d < 0) d = -d
          printf "means: %.2f %% with 4 workers, %.2f %% with one\n", a, b
          exit !(a >= 98.5 && d <= 0.2) }' accuracies || fail "accuracy"
[ $failures -eq 0 ]
