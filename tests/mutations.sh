#!/usr/bin/env bash
# tests/mutations.sh - do the tests notice? Makes one mistake at a time in a copy of the source tree, builds it, and
# wants a test to fail. Run it by hand; it takes a build and some minutes. ./check does not run it.
#
#   tests/mutations.sh [--all] [NAME...]
#
# Without --all only the tests that should see a mistake are run (the last words of each line below); with it, all.
# NAMEs choose mistakes; without any, each is made. MUTATIONS_FOLDER keeps the copy and its build for the next time.
# Prints which test caught what. Exit 1 where a mistake went unseen, or no longer applies to the source: then mend its
# line here.
set -u
source_tree=$(cd "$(dirname "$0")/.." && pwd)
all=false
wanted=()
for argument; do
    case $argument in
    --all) all=true ;;
    -*)
        echo "mutations.sh: unknown option '$argument'; use --all or names" >&2
        exit 2
        ;;
    *) wanted+=("$argument") ;;
    esac
done
if [ -n "${MUTATIONS_FOLDER:-}" ]; then
    folder=$MUTATIONS_FOLDER
    mkdir -p "$folder" || exit 1
else
    folder=$(mktemp -d) || exit 1
    trap 'rm -rf "$folder"' EXIT
fi
rm -rf "$folder/tree" && mkdir "$folder/tree" || exit 1
(cd "$source_tree" && git ls-files -z | tar --null --files-from=- -c) | tar -x -C "$folder/tree" || exit 1
cd "$folder/tree" || exit 1
. cmake/setup.sh

is_wanted() {
    local name
    [ ${#wanted[@]} -eq 0 ] && return 0
    for name in "${wanted[@]}"; do [ "$name" = "$1" ] && return 0; done
    return 1
}

# failing_tests TEST...: the names of those that fail, of all fast tests where --all is given
failing_tests() {
    local pattern
    pattern=$(printf '|%s' "$@")
    set -- -R "^(${pattern#|})\$"
    $all && set --
    ctest --test-dir ../build --no-tests=error --parallel "$(nproc)" "$@" 2>&1 </dev/null |
        sed -n 's/^[[:space:]]*[0-9][0-9]* - \([^ ]*\) (.*/\1/p' | tr '\n' ' '
}

(build ../build -DGHP_CUDA=OFF) >build.log 2>&1 || {
    tail -n 20 build.log >&2
    echo "mutations.sh: the tree does not build as it is" >&2
    exit 1
}
made=0
unseen=0

not_seen() {
    echo "$1"
    unseen=$((unseen + 1))
}

# mistake NAME FILE SED TEST...: the sed command must change the file
mistake() {
    local name=$1 file=$2 edit=$3 seen
    shift 3
    is_wanted "$name" || return
    made=$((made + 1))
    cp -p "$file" original
    sed -i "$edit" "$file"
    if cmp -s "$file" original; then
        not_seen "$name: NOT MADE: $file has no such line any more"
    elif ! cmake --build ../build --parallel "$(nproc)" >build.log 2>&1; then
        not_seen "$name: NOT MADE: it does not build: $(grep -m1 error build.log)"
    else
        seen=$(failing_tests "$@")
        if [ -n "$seen" ]; then
            echo "$name: caught by $seen"
        else
            not_seen "$name: UNSEEN"
        fi
    fi
    cp original "$file" # newer than what was built of the mistake
}

# what --inject-fault does, in every run
mistake reduction-dropped executor/engine/worker.c \
    's/if (w->run.fault != GHP_FAULT_DROP_REDUCTION || ghp_worker_is_served(w)) return;//' executor/train/equality:np2
mistake wrong-scale executor/engine/worker/step.c \
    's/if (w->run.fault == GHP_FAULT_GROUP_SCALE) //' executor/train/equality:np2
mistake ignored-counted executor/data/data.c 's/data->labels_of_one\[at\] < 0;/data->labels_of_one[at] < -1;/' \
    executor/train/equality:np2 executor/engine/gradients
mistake bias-added-twice executor/engine/worker/instr.c \
    's/w->run.fault == GHP_FAULT_BIAS_TIMES_K && //' executor/train/equality:np2
mistake masks-by-rank executor/engine/kernel_arguments.c \
    's/if (run->fault == GHP_FAULT_RANK_MASKS)$//' executor/train/equality:np2
mistake local-statistics executor/engine/worker/instr.c \
    's/w->prepared\[i\].comm == NULL || w->run.fault == GHP_FAULT_LOCAL_STATISTICS/true/' executor/train/equality:np2
# attention: a key after the diagonal, the sum before a new maximum, heads of keys that are not divided
mistake looks-ahead executor/backend/cpu/attention.c 's/at.row + row + 1;/at.row + row + 2;/' \
    executor/backend/onednn/onednn executor/backend/bf16
mistake sum-not-scaled executor/backend/cpu/attention.c 's/sum\[row\] \* factor + sum_of/sum[row] + sum_of/' \
    executor/backend/onednn/onednn executor/backend/bf16
mistake heads-not-divided core/model/op/sequence/attention.c 's/local->heads.n_kv \/= parts;//' \
    core/model/attention executor/train/equality:np2
# a loss whose classes are divided: sums of other maxima, logits of padding
mistake sums-not-scaled executor/backend/cpu/softmax.c 's/of\[GHP_ROW_SUM\] \* exp(.*);/of[GHP_ROW_SUM];/' \
    executor/backend/onednn/onednn executor/train/equality:np2
mistake padding-counted executor/backend/cpu/softmax.c 's/left < local->c ? left : local->c;/local->c;/' \
    executor/backend/onednn/onednn executor/train/equality:np2
# programs
mistake wait-dropped core/program/lower/buffer_assignment.c \
    's/waits->wait = reduction\[waits->bucket\];/waits->wait = -1;/' \
    core/program/lower/lower core/cost/simulate planner/search/exact executor/train/equality:np2
mistake wrong-bucket core/program/lower/bucket.c \
    's/plan->of_layer\[held\] = open;/plan->of_layer[held] = 0;/' \
    core/program/lower/lower core/plan/space planner/search/exact executor/train/equality:np2
mistake shard-of-another core/program/lower/buffer_assignment_private.c \
    's/k->placement.number \/ bucket->tp_size %/0 %/' executor/train/sync:np2
mistake gather-not-run executor/engine/worker/optimizer_shards.c \
    's/: gather_shards(w, i, instr->at.x\[0\], instr->at.y);/: GHP_OK;/' executor/train/sync:np2
mistake average-not-divided executor/engine/worker/replicas.c \
    's/(float)by;/1;/' executor/train/sync:np2
mistake average-each-step executor/engine/worker/replicas.c \
    's/(of->index + 1) % (uint64_t)instr->period == 0/of->index + 1 > 0 || instr == NULL/' executor/train/sync:np2
mistake losses-not-kept executor/engine/worker/results.c \
    's/kept(w, w->kept_metrics++)/kept(w, 0 * w->kept_metrics++)/' executor/train/sync:np2
mistake gradient-of-all-samples executor/engine/worker/step.c \
    's/1.0 \/ weight/1.0 \/ (weight * replicas)/' executor/train/sync:np2
mistake push-not-added executor/engine/server.c \
    's/drops ? 1 : s->workers/1/' executor/engine/server:np3
mistake cut-of-another executor/engine/server.c \
    's/worker \* shard->server_shard_bytes/0 * shard->server_shard_bytes/' executor/engine/server:np3
# sharded weights: another worker's shard, a wait after the pass that reads what is gathered, weights that are kept from
# one pass to the next, a gradient whose buffer may be another's before its reduction is over
mistake weight-shard-of-another core/program/lower/buffer_assignment_private.c \
    's/bucket->shard_offset = offset;/bucket->shard_offset = 0 * offset;/' executor/train/sharding:np3
mistake gather-waited-late core/program/lower/gather.c \
    's/return put_wait(g, read, &copy, reader.point, use->gather);/return put_wait(g, i + 1, \&copy, reader.point, use->gather);/' \
    executor/train/sharding:np3
mistake gathered-not-freed core/program/lower/gather.c \
    's/return instr->sharding == GHP_SHARDING_MICRO_BATCH ||/return instr->sharding >= GHP_SHARDING_MICRO_BATCH ||/' \
    executor/train/sharding:np3
mistake gradient-freed-early core/program/kind/transfer.c \
    's/instr->at.x\[0\] = what->at.x\[0\];/if (what->stream == GHP_STREAM_TRANSFER) &/' executor/train/sharding:np3
# samples by norms: weights of other chances, a sum that misses changes, chances without their floor, gradients
# unweighted
mistake chances-forget-uniform executor/data/sampler.c 's/ + s->uniform;$/;/' executor/data/sampler
mistake sums-miss-changes executor/data/sampler.c 's/node >= 1; node \/= 2)/node >= 1; node \/= 4)/' executor/data/sampler
mistake never-uniform executor/data/sampler.c 's/draw(s, step, 0) < s->uniform ||/draw(s, step, 0) < 0 ||/' \
    executor/data/sampler
mistake gradients-unweighted executor/engine/worker/step.c \
    's/if (step->weight > 0) w->loss_scale \*= step->weight;//' executor/train/sampling:np3
mistake shares-not-kept core/program/sync/gossip.c 's/.keeps_share = true,//' executor/mixing/mix_gossip:np3
# gradients of asp whose age nobody counts, bytes that nobody counts, a matrix of neighbours whose rows sum to less
# than 1
mistake step-drawn-too executor/mixing/mix_served.c \
    's/ghp_flat_pull(before,/ghp_flat_pull(x,/; s/ghp_flat_subtract(x, before, .*;/(void)before;/' executor/mixing/mix_served:np3
mistake triggers-late executor/mixing/mix_server.c 's/c->count + 1 >= pi/c->count >= pi/' executor/mixing/mix_served:np3
mistake staleness-not-counted executor/mixing/mix_server.c 's/(double)(s->count.versions - c->seen)/0/' \
    executor/mixing/mix_served:np3
mistake bytes-not-counted executor/mixing/mixer_private.c 's/m->count.sent_bytes += message.bytes;/m->count.sent_bytes = 0;/' \
    executor/mixing/mix_served:np3
mistake degree-of-another core/sharding/neighbours.c 's/1 - ghp_neighbours_degree(graph, workers, v) \* weight/weight + 0 * v/' \
    core/sharding/neighbours
# learning rates by norms: ratios that nobody cuts, gains that fall
mistake ratio-not-cut core/optimizer/tensor_rates.c 's/return \*cut ? n : s;/return s;/' core/optimizer/tensor_rates
mistake gains-not-summed core/optimizer/tensor_rates.c 's/gain\[j\] += rates/gain[j] = rates/' core/optimizer/tensor_rates
# pushes: to one worker alone, rates of w's that are not 1, weights that are sent and kept
mistake push-to-the-same-one executor/mixing/mix_push.c \
    's/return 1 << step % l;/return step < 0 ? l : 1;/' executor/mixing/mix_push:np4
mistake rate-not-by-weight executor/engine/worker.h \
    's/mixing->whole_shares ? 1 \/ numbers->share : 1;/mixing->whole_shares ? 1 : 1;/' executor/mixing/mix_push:np4
mistake push-not-halved executor/mixing/mix_push.c \
    's/m->place.numbers->share -= (double)p->sent;//' executor/mixing/mix_push:np4
mistake relu-not-fused core/program/fuse.c \
    's/if (follows(program, &program->instrs\[last\], last + 1, GHP_FUSES_RELU)) found.relu = last + 1;//' core/program/fuse
mistake recomputed-not-written core/program/fuse.c \
    's/!lives_at(program, norm->at.y, add->point + 1) \&\&/true \&\&/' core/program/fuse executor/engine/program_hash:np4
# what runs is not what was costed
mistake fused-by-nobody executor/engine/worker.c \
    's/strcmp(entry->algorithm, GHP_OP_FUSED) != 0/true/' executor/engine/worker:np2
mistake costed-otherwise executor/train/rank_plan.c \
    's/^    lowering.scratch = /    lowering.method.bucket_bytes \/= 2;\n&/' executor/engine/program_hash:np4
mistake split-off-by-one core/sharding/stage.c \
    's/\(at.first_channel = member \* at.channels\);/\1 + 1;/' \
    core/sharding/split core/sharding/stage core/sharding/transfer executor/engine/reshard:np2
# interleaved stages: chunks go backward as they went forward, sends are waited for before receivers can post
mistake chunks-not-reversed core/sharding/schedule.c \
    's/backward ? chunks - 1 - chunk : chunk,/chunk,/' core/sharding/stage core/cost/stages
mistake sends-waited-for-early core/sharding/schedule.c \
    's/\(place_of(t, to_chunk, step)\) - 2/\1 - (1 << 20)/' core/cost/stages
# positions: those of the member before, a mask that every member has alike
mistake positions-of-another core/sharding/stage.c \
    's/\(at.first_position = member \* at.positions\);/\1 - at.positions;/' \
    core/sharding/stage core/sharding/transfer executor/engine/reshard:np2
mistake mask-of-first-positions executor/engine/kernel_arguments.c \
    's/.first_position = at.first_position,//' executor/train/equality:np2
mistake queries-of-first-positions core/model/attention.h \
    's/? first_position : 0/? 0 * first_position : 0/' executor/train/equality:np2
# a reader looks into the slot next to the writer's
mistake wrong-slot executor/transport/mpi/shared_segment.h \
    's/ chunk % (uint32_t)shared->slots/ (chunk + (uint32_t)(rank != shared->index)) % (uint32_t)shared->slots/' \
    executor/transport/transport:np2
# files that belong to others
mistake stale-hash core/plan/plan_io.c \
    's/if (said == found) return GHP_OK;/if (said == found || said != 0) return GHP_OK;/' core/plan/plan
mistake stale-profile inspect/plan.c \
    's/if (status == GHP_OK && profile->hash == plan->profile_hash)/if (status == GHP_OK)/' tools/hardship/bad_input
rm -f original
[ $made -gt 0 ] || {
    echo "mutations.sh: no mistake of these names" >&2
    exit 2
}
cmake --build ../build --parallel "$(nproc)" >build.log 2>&1
echo "$made mistakes, $unseen unseen"
[ $unseen -eq 0 ]
