#!/usr/bin/env bash
# tests/gpu/accuracy.sh BIN - predicted beside measured steps on GPUs: a profile of 1, 2 and 4 workers each, and the plans that
# tests/gpu/verify.sh verifies, at a batch that keeps a GPU busy. Workers that share a GPU carry by MPI through host memory;
# TRANSPORT=nccl where each has its own. Prints each error, then mean and worst.
set -u
BIN=$(cd "$1" && pwd) || exit 2
source_tree=$(cd "$(dirname "$0")/../.." && pwd)
. "$source_tree/tests/tools/scratch.sh"
model=${MODEL:-vgg-a-32}
batch=${BATCH:-256}
transport=${TRANSPORT:-auto}
launch() { mpirun --oversubscribe --bind-to none -n "$@" >out 2>err </dev/null; }

for n in ${WORKERS:-1 2 4}; do
    launch "$n" "$BIN/ghp-profile" --backend cuda --precision "${PRECISION:-bf16}" --transport "$transport" \
        --model "$source_tree/models/$model.json" --workers "$n" --batch "$batch" --budget "${GHP_BUDGET:-60}" \
        -o "$n.json" || { head -2 err; exit 77; }
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
        launch "$n" "$BIN/ghp-run" "$n-$name.json" --steps "${STEPS:-40}" --json --transport "$transport" ||
            { fail "run $n $name: $(head -2 err)"; continue; }
        echo "$n $name $(number predicted_step_s out) $(number measured_step_s out)" >>steps
    done
done
[ -e steps ] || exit 1
awk '{ e = 100 * ($3 / $4 - 1); a = e < 0 ? -e : e; sum += a; if (a > worst) worst = a
       printf "%d workers, %-6s predicted %8.3f ms, measured %8.3f ms, error %+.1f %%\n", $1, $2, 1e3 * $3, 1e3 * $4, e }
     END { printf "mean %.1f %%, worst %.1f %% of %d (bars: 3 %%, 8 %%)\n", sum / NR, worst, NR
           exit !(sum / NR <= 3 && worst <= 8) }' steps || failures=$((failures + 1))
[ $failures -eq 0 ]
