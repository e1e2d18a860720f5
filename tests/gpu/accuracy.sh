#!/usr/bin/env bash
# tests/gpu/accuracy.sh BIN - predicted and measured steps on GPUs: a profile of 1, 2 and 4 workers each, and the
# plans that tests/gpu/verify.sh verifies, at a batch that keeps a GPU busy. Prints each error, then mean and worst.
#
# WORKERS (1 2 4), MODEL (vgg-a-32), BATCH (256), PRECISION (bf16), STEPS (40), TRANSPORT (auto) and GHP_BUDGET (60 s
# a profile) choose. Workers that share a GPU take turns on it, and carry by MPI through host memory: WORKERS=1
# measures one alone; TRANSPORT=nccl where each has its own. Exit 1 where the errors are above the bars or a tool
# fails, 77 where there is no GPU.
set -u
BIN=$(cd "$1" && pwd) || exit 2
source_tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$source_tree/tests/tools/scratch.sh"
. "$source_tree/tests/gpu/libraries.sh"
model=${MODEL:-vgg-a-32}
batch=${BATCH:-256}
budget=${GHP_BUDGET:-60}
transport=${TRANSPORT:-auto}
launch() { mpi "$@" >out 2>err; }

for n in ${WORKERS:-1 2 4}; do
    launch "$n" "$BIN/ghp-profile" --backend cuda --precision "${PRECISION:-bf16}" --transport "$transport" \
        --model "$source_tree/models/$model.json" --workers "$n" --batch "$batch" --budget "$budget" -o "$n.json" || {
        no_gpu err && { echo "skipped: $(why err)"; exit 77; }
        fail "profile of $n workers: $(why err)"
        continue
    }
    for plan in data "out --force *=out:max" "in --force *=in:max" "mixed --groups 2 --force *=in:max,fc*=in:2"; do
        set -f
        # shellcheck disable=SC2086
        set -- $plan
        set +f
        name=$1
        shift
        [ "$n" = 1 ] && [ "$name" != data ] && continue
        [ "$n" != 4 ] && [ "$name" = mixed ] && continue
        [ "$name" = data ] && set -- --strategy data
        "$BIN/ghp-plan" "$source_tree/models/$model.json" --profile "$n.json" --workers "$n" --batch "$batch" \
            -o "$n-$name.json" "$@" >out 2>err || { fail "plan $n $name: $(head -1 err)"; continue; }
        # vgg-a-32 has no batch norm: at 0.01 it diverges now and then
        launch "$n" "$BIN/ghp-run" "$n-$name.json" --steps "${STEPS:-40}" --lr 0.001 --json --transport "$transport" ||
            { fail "run $n $name: $(why err)"; continue; }
        echo "$n $name $(number predicted_step_s out) $(number measured_step_s out)" >>steps
    done
done
[ -e steps ] || exit 1
awk '{ e = 100 * ($3 / $4 - 1); a = e < 0 ? -e : e; sum += a; if (a > worst) worst = a
       printf "%d workers, %-6s predicted %8.3f ms, measured %8.3f ms, error %+.1f %%\n",
           $1, $2, 1e3 * $3, 1e3 * $4, e }
     END { printf "mean %.1f %%, worst %.1f %% of %d (bars: 3 %%, 8 %%)\n", sum / NR, worst, NR
           exit !(sum / NR <= 3 && worst <= 8) }' steps || failures=$((failures + 1))
[ $failures -eq 0 ]
