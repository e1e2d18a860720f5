/* planner/search/instance_cost.c - costs the pieces of core/program/lower, each (layer, split) and (edge, pair of
 * splits) once.
 *
 * Networks repeat blocks, and an edge has many pairs: an edge that is like an earlier one takes that one's costs. */
#include "core/program/lower/bucket.h"
#include "core/program/lower/flow.h"
#include "core/program/lower/points.h"
#include "planner/search/instance_private.h"

#include <math.h>
#include <string.h>

static struct ghp_contention contention_of(const struct ghp_instance *in, int stage)
{
    return (struct ghp_contention){in->problem[stage].workers, in->lowering->problem.workers,
                                   in->speed[stage]};
}

static enum ghp_work work_of(const struct ghp_instr *instr)
{
    bool sends = instr->kind == GHP_INSTR_RESHARD || instr->kind == GHP_INSTR_STAT_REDUCE ||
                 instr->kind == GHP_INSTR_SHIFT;
    return sends && instr->ranks.count > 1 ? GHP_WORK_LINK : GHP_WORK_COMPUTE;
}

/* ---- reductions inside buckets ---- */

static enum ghp_status cost_of_size(const struct ghp_instance *in, const struct ghp_instr *instr,
                                    int64_t size, struct ghp_cost *cost)
{
    struct ghp_instr sized = *instr;

    sized.bytes = size;
    if (ghp_instr_is_served(instr))
        return ghp_profile_cost(in->profile, &sized, in->lowering->problem.workers, cost);
    return ghp_profile_comm(in->profile, instr->comm, size, instr->ranks,
                            in->lowering->problem.workers, cost);
}

/* Seconds a byte that no bucket of up to `most` bytes undercuts: the least cost of a size over the next larger size
 * of a fine ladder, given that a larger message is never cheaper. At most 1/16 below the true part. */
static enum ghp_status least_per_byte(const struct ghp_instance *in, const struct ghp_instr *instr,
                                      int64_t least, int64_t most, double *per_byte_s)
{
    struct ghp_cost cost;
    int64_t size = least;
    double after = INFINITY;

    *per_byte_s = INFINITY;
    while (size <= most) {
        int64_t next = size + size / 16 + GHP_ALIGN_BYTES;

        GHP_TRY(cost_of_size(in, instr, size, &cost));
        after = cost.seconds / (double)next;
        if (after < *per_byte_s) *per_byte_s = after;
        size = next;
    }
    return GHP_OK;
}

/* Adds a layer's reduction or gather; `bytes` without padding, which a bucket has once for all its layers. */
static enum ghp_status cost_bucket(const struct ghp_instance *in, const struct ghp_instr *instr,
                                   int64_t bytes, double *seconds)
{
    struct ghp_cost cost;
    int64_t most = 0;
    double per_byte_s;

    if (in->alone) {
        GHP_TRY(ghp_profile_cost(in->profile, instr, in->lowering->problem.workers, &cost));
        *seconds += cost.seconds;
        return GHP_OK;
    }
    if (instr->kind == GHP_INSTR_SHARD_REDUCE) /* of the optimizer shard, without its padding */
        bytes = instr->bytes - GHP_ALIGN_BYTES;
    if (instr->in_bf16) bytes = bytes / ghp_parameter_bytes(in->lowering->element_bytes) * 2;
    if (bytes <= 0) return GHP_OK;
    for (int v = 0; v < in->n_layers; v++)
        most += in->lowering->model->layers[v].fixed
                    ? 0
                    : ghp_layer_weights(&in->lowering->model->layers[v]) *
                              ghp_parameter_bytes(in->lowering->element_bytes) +
                          in->lowering->model->layers[v].n_params * GHP_ALIGN_BYTES;
    GHP_TRY(least_per_byte(in, instr, bytes, most, &per_byte_s));
    *seconds += per_byte_s * (double)bytes;
    return GHP_OK;
}

/* An update as a part of its bucket's, if a bucket's optimizer shard is updated at once: what its bytes add.
 * `bytes`: of the layer's gradients, without padding. */
static enum ghp_status cost_update(const struct ghp_instance *in, const struct ghp_instr *instr,
                                   int64_t bytes, struct ghp_cost *cost)
{
    struct ghp_instr part = *instr;
    struct ghp_cost twice;

    part.bytes = ghp_optimizer_written(instr->optimizer, bytes) / instr->ranks.count;
    GHP_TRY(ghp_profile_cost(in->profile, &part, in->lowering->problem.workers, cost));
    part.bytes *= 2;
    GHP_TRY(ghp_profile_cost(in->profile, &part, in->lowering->problem.workers, &twice));
    cost->seconds = twice.seconds - cost->seconds;
    return GHP_OK;
}

/* ---- layers ---- */

/* Whether the first micro-batch is without the instruction: a sum of gradients to which nothing is added yet. */
static int leaves_out_first(const struct ghp_instance *in, const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_ACCUMULATE &&
           !ghp_lower_has_sharer_after(in->lowering, instr->layer);
}

/* In how many micro-batches a layer's instruction is found, other than the forward part of the first and the backward
 * part of the last: updates in none, sums of gradients in all but the first. */
static double others(const struct ghp_instance *in, const struct ghp_instr *instr)
{
    int u = in->micro_batches;

    if (u == 1 || instr->kind == GHP_INSTR_UPDATE) return 0;
    return u - 1 - leaves_out_first(in, instr);
}

/* Whether the schedule leaves the instruction to a step of its own. */
static bool is_deferred(const struct ghp_instance *in, const struct ghp_instr *instr)
{
    return instr->backward && ghp_lower_defers_weights(in->lowering, instr->layer) &&
           (instr->kind != GHP_INSTR_COMPUTE || instr->pass == GHP_PASS_BACKWARD_WEIGHT);
}

/* Adds what a micro-batch's deferred instruction costs: steps of the micro-batches before the last, less those that
 * wait as the schedule says (ghp_stage_schedule), stand before the stage's last backward step. */
static void add_deferred(const struct ghp_instance *in, const struct ghp_instr *instr,
                         double seconds, struct ghp_layer_cost *p)
{
    int all = in->micro_batches - leaves_out_first(in, instr);
    int steady = all - 1 - in->stage[instr->layer];

    if (steady < 0) steady = 0;
    p->steady_s[work_of(instr)] += steady * seconds;
    p->tail_s[work_of(instr)] += (all - steady) * seconds;
}

/* Whether an instruction of gathered weights is left out: the bound is that of the first gather alone, since a path
 * from one reduction to the next step's passes need not go through the others, nor through the update. A layer that
 * shares another's weights may use what was gathered for that one. */
static bool leaves_out(const struct ghp_instr *instr, int v)
{
    return ghp_sharding_gathers(instr->sharding) &&
           (instr->kind == GHP_INSTR_UPDATE ||
            (instr->kind == GHP_INSTR_GATHER && (instr->backward || instr->layer != v)));
}

static enum ghp_status cost_layer_choice(const struct ghp_instance *in, int v, int flat,
                                         struct ghp_program *piece)
{
    struct ghp_layer_cost *p = &in->layer[flat];
    int64_t bytes = ghp_lower_gradient_bytes(in->lowering, v, in->choices[flat]);
    int replicas = ghp_sync_replicas(in->lowering->method.sync, in->lowering->problem.workers);
    struct ghp_cost cost;

    piece->n_instrs = 0;
    GHP_TRY(ghp_lower_layer(in->lowering, v, in->choices[flat], in->rank[in->stage[v]], piece));
    for (int k = 0; k < piece->n_instrs; k++) {
        const struct ghp_instr *instr = &piece->instrs[k];
        if (leaves_out(instr, v)) continue;
        if (instr->stream == GHP_STREAM_COMM) {
            p->reduces = p->reduces || ghp_instr_reduces(instr);
            GHP_TRY(cost_bucket(in, instr, bytes,
                                ghp_instr_reduces(instr) ? &p->reduce_s : &p->gather_s));
            continue;
        }
        bool shard = instr->kind == GHP_INSTR_UPDATE && instr->ranks.count > 1;
        bool starts = shard || (instr->kind == GHP_INSTR_UPDATE && replicas > 1);

        if (shard && !in->alone)
            GHP_TRY(cost_update(in, instr, bytes, &cost));
        else
            GHP_TRY(ghp_profile_cost(in->profile, instr, in->lowering->problem.workers, &cost));
        cost.seconds = ghp_cost_contended(instr, &cost, contention_of(in, in->stage[v]));
        if (starts) {
            p->start_s = cost.seconds;
            continue;
        }
        if (is_deferred(in, instr)) {
            add_deferred(in, instr, cost.seconds, p);
            continue;
        }
        p->steady_s[work_of(instr)] += others(in, instr) * cost.seconds;
        if (v == in->n_layers - 1 && !instr->backward &&
            (instr->kind == GHP_INSTR_STAT_REDUCE || instr->pass == GHP_PASS_STATS))
            in->metric_s[flat - in->first_choice[v]] += cost.seconds;
        if (!instr->backward)
            p->forward_s[work_of(instr)] += cost.seconds;
        else if (p->reduces ||
                 (instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_BACKWARD_DATA))
            p->after_s[work_of(instr)] += cost.seconds;
        else
            p->before_s[work_of(instr)] += cost.seconds;
    }
    if (p->reduce_s > in->most_reduce_s[v]) in->most_reduce_s[v] = p->reduce_s;
    if (p->gather_s > in->most_gather_s[v]) in->most_gather_s[v] = p->gather_s;
    return GHP_OK;
}

/* The metrics' reduction belongs to no layer's piece: its ranks follow from the last layer's TP size. A divided loss
 * waits for it after its statistics, whose seconds are taken off. */
static enum ghp_status cost_metrics(const struct ghp_instance *in)
{
    int last = in->n_layers - 1;
    struct ghp_cost cost;

    for (int i = 0; i < in->n_choices[last]; i++) {
        struct ghp_instr instr = {.kind = GHP_INSTR_METRIC_REDUCE, .layer = -1, .edge = -1};
        double before_s = in->metric_s[i];

        in->metric_s[i] = 0;
        ghp_instr_sum_metrics(
            &instr,
            ghp_ranks_replica(0, ghp_split_sharers(in->choices[in->first_choice[last] + i]),
                              in->lowering->problem.workers),
            ghp_sync_metric_period(in->lowering->method.sync));
        if (instr.ranks.count == 1 || in->n_stages > 1 ||
            ghp_sync_runs_free(in->lowering->method.sync))
            continue;
        GHP_TRY(ghp_profile_cost(in->profile, &instr, in->lowering->problem.workers, &cost));
        in->metric_s[i] = fmax(cost.seconds - before_s, 0);
    }
    return GHP_OK;
}

static enum ghp_status cost_layers(const struct ghp_instance *in, struct ghp_program *piece)
{
    for (int v = 0; v < in->n_layers; v++)
        for (int flat = in->first_choice[v]; flat < in->first_choice[v + 1]; flat++)
            GHP_TRY(cost_layer_choice(in, v, flat, piece));
    return cost_metrics(in);
}

/* ---- edges ---- */

static enum ghp_status cost_pair(const struct ghp_instance *in, int e, int a, int b,
                                 struct ghp_program *piece)
{
    const struct ghp_edge *edge = &in->edges[e];
    struct ghp_edge_cost *p = &in->edge[in->first_pair[e] + a * in->n_classes[edge->to] + b];
    struct ghp_cost cost;

    piece->n_instrs = 0;
    GHP_TRY(ghp_lower_edge(in->lowering, e, in->choices[ghp_instance_of_class(in, edge->from, a)],
                           in->choices[ghp_instance_of_class(in, edge->to, b)],
                           in->rank[in->stage[edge->to]], piece));
    for (int k = 0; k < piece->n_instrs; k++) {
        const struct ghp_instr *instr = &piece->instrs[k];
        GHP_TRY(ghp_profile_cost(in->profile, instr, in->lowering->problem.workers, &cost));
        cost.seconds = ghp_cost_contended(instr, &cost, contention_of(in, in->stage[edge->to]));
        if (instr->stream == GHP_STREAM_TRANSFER) {
            int at = in->p2p_transfer[in->p2p_transfer_of[e]].first_pair +
                     a * in->n_classes[edge->to] + b;

            *(instr->backward ? &in->p2p_transfer_cost[at].backward_s
                              : &in->p2p_transfer_cost[at].forward_s) = cost.seconds;
            continue;
        }
        (instr->backward ? p->backward_s : p->forward_s)[work_of(instr)] += cost.seconds;
    }
    return GHP_OK;
}

/* Whether two edges carry tensors of one shape under the same choices and with the same duties, so that all their
 * costs agree: the blocks that a network repeats. */
static bool same_edge(const struct ghp_instance *in, int e, int other)
{
    const struct ghp_model *model = in->lowering->model;
    const struct ghp_edge *a = &in->edges[e], *b = &in->edges[other];
    const struct ghp_layer *from_a = &model->layers[a->from], *from_b = &model->layers[b->from];

    if (in->n_stages > 1 &&
        (in->stage[a->from] != in->stage[a->to] || in->stage[b->from] != in->stage[b->to] ||
         in->stage[a->from] != in->stage[b->from]))
        return false;
    if (from_a->n_consumers != 1 || from_b->n_consumers != 1) return false;
    if (memcmp(&from_a->out, &from_b->out, sizeof from_a->out) != 0) return false;
    if (model->layers[a->from].learns != model->layers[b->from].learns) return false;
    const int ends[2][2] = {{a->from, b->from}, {a->to, b->to}};
    for (int k = 0; k < 2; k++) {
        int n = in->n_choices[ends[k][0]];
        if (n != in->n_choices[ends[k][1]]) return false;
        for (int i = 0; i < n; i++)
            if (!ghp_split_same(in->choices[in->first_choice[ends[k][0]] + i],
                                in->choices[in->first_choice[ends[k][1]] + i]))
                return false;
    }
    return true;
}

static enum ghp_status cost_edges(const struct ghp_instance *in, struct ghp_program *piece)
{
    for (int e = 0; e < in->n_edges; e++) {
        int n_from = in->n_classes[in->edges[e].from], n_to = in->n_classes[in->edges[e].to];
        int like = 0;

        while (like < e && !same_edge(in, e, like))
            like++;
        if (like < e) {
            memcpy(&in->edge[in->first_pair[e]], &in->edge[in->first_pair[like]],
                   (size_t)(n_from * n_to) * sizeof *in->edge);
            continue;
        }
        for (int a = 0; a < n_from; a++)
            for (int b = 0; b < n_to; b++)
                GHP_TRY(cost_pair(in, e, a, b, piece));
    }
    return GHP_OK;
}

enum ghp_status ghp_instance_cost(struct ghp_instance *in)
{
    struct ghp_program piece = {0};
    enum ghp_status status = cost_layers(in, &piece);

    if (status == GHP_OK) status = cost_edges(in, &piece);
    ghp_program_release(&piece);
    return status;
}
