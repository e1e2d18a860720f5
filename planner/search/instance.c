/* planner/search/instance.c - costs the pieces of core/program/lower, each (layer, split) and (edge, pair of splits)
 * once.
 *
 * Networks repeat blocks, and an edge has many pairs: an edge that is like an earlier one takes that one's costs. */
#include "planner/search/instance.h"
#include "core/program/lower_points.h"
#include "core/program/lower_bucket.h"
#include "core/program/lower_flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum ghp_status allocate(struct ghp_instance *in)
{
    size_t layers = (size_t)in->n_layers, edges = (size_t)in->n_edges;

    in->n_choices = ghp_alloc(layers, sizeof *in->n_choices);
    in->first_choice = ghp_alloc(layers + 1, sizeof *in->first_choice);
    in->first_pair = ghp_alloc(edges + 1, sizeof *in->first_pair);
    in->most_reduce_s = ghp_alloc(2 * layers, sizeof *in->most_reduce_s);
    in->wait_slot = ghp_alloc(3 * layers + 1, sizeof *in->wait_slot);
    in->ready_slot = ghp_alloc(3 * layers + 1, sizeof *in->ready_slot);
    in->edge_slot = ghp_alloc(2 * edges, sizeof *in->edge_slot);
    in->stage = ghp_alloc(layers, sizeof *in->stage);
    in->p2p_transfer_of = ghp_alloc(edges + 1, sizeof *in->p2p_transfer_of);
    in->p2p_transfer = ghp_alloc(edges + 1, sizeof *in->p2p_transfer);
    if (in->stage == NULL || in->p2p_transfer_of == NULL || in->p2p_transfer == NULL ||
        in->n_choices == NULL || in->first_choice == NULL || in->first_pair == NULL ||
        in->most_reduce_s == NULL || in->wait_slot == NULL || in->ready_slot == NULL ||
        in->edge_slot == NULL)
        return GHP_NO_MEMORY();
    in->most_gather_s = in->most_reduce_s + layers; /* of the same block */
    return GHP_OK;
}

/* Layer v's reduction is item n_layers - 1 - v and its update waits for it; the loss waits for the metrics, which
 * follow everything. */
static void place_items(struct ghp_instance *in)
{
    const struct ghp_model *model = in->lowering->model;
    int steady_phases =
        in->first_steady >= 0 ? in->n_stages : 0; /* they precede the backward slots */
    unsigned shardings = in->lowering->shardings;

    in->n_items = in->first_use = in->n_layers + 1;
    if (ghp_sync_ops_of(in->lowering->method.sync)->gathers || shardings != 0)
        in->n_items = in->first_use += in->n_layers;
    if (shardings >> GHP_SHARDING_STEP != 0) in->n_items += in->n_layers;
    for (int v = 0; v < in->n_layers; v++) {
        in->wait_slot[in->n_layers - 1 - v] = 2 * ghp_point_forward(model, v);
        in->ready_slot[in->n_layers - 1 - v] = 2 * ghp_point_backward(model, v) + steady_phases;
    }
    for (int e = 0; e < in->n_edges; e++) {
        in->edge_slot[2 * e] = 2 * ghp_point_forward_edge(model, e);
        in->edge_slot[2 * e + 1] = 2 * ghp_point_backward_edge(model, e) + steady_phases;
    }
    in->wait_slot[in->n_layers] = 2 * ghp_point_forward(model, in->n_layers - 1);
    in->ready_slot[in->n_layers] = (in->first_tail >= 0 ? in->first_tail : in->n_slots) - 1;
    for (int i = in->n_layers + 1; i <= 3 * in->n_layers; i++) {
        in->wait_slot[i] = 2 * ghp_point_forward(model, (i - 1) % in->n_layers);
        in->ready_slot[i] = -1;
    }
    for (int i = 0; i < in->n_stages; i++) {
        int first = in->route[i].first_layer;
        const struct ghp_layer *l = &model->layers[first];

        in->start_slot[i] = l->n_inputs > 0 ? in->edge_slot[2 * l->first_edge]
                                            : in->wait_slot[in->n_layers - 1 - first];
    }
}

/* Stages, what stands for them, and the p2p transfers between them. */
static void place_stages(struct ghp_instance *in)
{
    const struct ghp_staging *staging = in->lowering->staging;
    const struct ghp_model *model = in->lowering->model;

    in->n_stages = ghp_staging_stages(staging);
    in->micro_batches = ghp_staging_micro_batches(staging);
    in->first_steady = in->n_stages > 1 || in->micro_batches > 1 ? in->n_points : -1;
    for (int i = 0; i < in->n_stages; i++) {
        in->rank[i] = ghp_stage_representative(staging, i, in->lowering->problem);
        struct ghp_placement placement =
            ghp_placement_of(staging, model->n_layers, in->lowering->problem, in->rank[i]);

        in->problem[i] = placement.problem;
        in->speed[i] = placement.speed;
        in->route[i] =
            (struct ghp_route){.first_layer = in->n_stages > 1 ? staging->stage[i].first_layer : 0,
                               .end_layer = ghp_stage_end(staging, i, model->n_layers),
                               .next = -1,
                               .p2p_transfer = -1};
    }
    for (int v = 0; v < in->n_layers; v++)
        in->stage[v] = ghp_stage_of(staging, v);
    for (int e = 0; e < in->n_edges; e++) {
        int from = in->stage[in->edges[e].from], to = in->stage[in->edges[e].to], carrier = -1;

        in->p2p_transfer_of[e] = -1;
        if (from == to) continue;
        ghp_remote_activation_readers(model, staging, in->edges[e].from, to, &carrier);
        if (carrier != e) continue;
        in->p2p_transfer_of[e] = in->n_p2p_transfers;
        in->p2p_transfer[in->n_p2p_transfers++] = (struct ghp_p2p_transfer){
            .edge = e, .from = from, .to = to, .back = model->layers[in->edges[e].from].learns};
    }
}

/* The first stage that reads a stage's last layer, where a gradient comes back from it. */
static void place_routes(struct ghp_instance *in)
{
    for (int h = 0; h < in->n_p2p_transfers; h++) {
        const struct ghp_p2p_transfer *p2p_transfer = &in->p2p_transfer[h];
        struct ghp_route *route = &in->route[p2p_transfer->from];

        if (!p2p_transfer->back || in->edges[p2p_transfer->edge].from != route->end_layer - 1)
            continue;
        if (route->next >= 0 && route->next <= p2p_transfer->to) continue;
        route->next = p2p_transfer->to;
        route->p2p_transfer = h;
    }
}

/* Whether the layer may be split over so many; where each worker has all weights it is not split at all. */
static bool takes(const struct ghp_instance *in, int v, int tp_size, int tp_sizes)
{
    if (tp_size > 1 && (ghp_sync_wants_data(in->lowering->method.sync) ||
                        ghp_lr_scaling_takes_batches(in->lowering->method.scaling)))
        return false;
    if (in->lowering->staging == NULL) return tp_sizes % tp_size == 0;
    return ghp_stage_takes_tp_size(in->lowering->staging, in->stage[v], in->lowering->problem,
                                   tp_size) &&
           (in->n_stages > 1 || tp_sizes % tp_size == 0);
}

/* Offers the splits of every layer whose TP size divides `tp_sizes`. */
static enum ghp_status offer_choices(struct ghp_instance *in, int tp_sizes)
{
    const struct ghp_model *model = in->lowering->model;
    struct ghp_split all[GHP_MAX_CHOICES];
    size_t room = 0;
    int p2p_transfer_pairs = 0;

    for (int v = 0; v < in->n_layers; v++) {
        int n =
            ghp_split_choices(&model->layers[v], in->problem[in->stage[v]], all, GHP_MAX_CHOICES);
        struct ghp_split *grown =
            realloc(in->choices, (room + (size_t)n * GHP_SHARDING_COUNT) * sizeof *grown);

        if (grown == NULL) return GHP_NO_MEMORY();
        in->choices = grown;
        in->first_choice[v] = (int)room;
        for (int i = 0; i < n; i++)
            if (takes(in, v, all[i].tp_size, tp_sizes))
                room += (size_t)ghp_stage_shardings(
                    &(struct ghp_sharding_place){model, in->lowering->staging, v,
                                                 in->problem[in->stage[v]]},
                    in->lowering->shardings, all[i], &in->choices[room]);
        in->n_choices[v] = (int)room - in->first_choice[v];
        in->first_choice[v + 1] = (int)room;
    }
    for (int e = 0; e < in->n_edges; e++) {
        int pairs = in->n_choices[in->edges[e].from] * in->n_choices[in->edges[e].to];

        in->first_pair[e + 1] = in->first_pair[e] + pairs;
        if (in->p2p_transfer_of[e] < 0) continue;
        in->p2p_transfer[in->p2p_transfer_of[e]].first_pair = p2p_transfer_pairs;
        p2p_transfer_pairs += pairs;
    }
    in->p2p_transfer_cost =
        ghp_alloc((size_t)p2p_transfer_pairs + 1, sizeof *in->p2p_transfer_cost);
    if (in->p2p_transfer_cost == NULL) return GHP_NO_MEMORY();
    in->layer = ghp_alloc(room, sizeof *in->layer);
    in->edge = ghp_alloc((size_t)in->first_pair[in->n_edges], sizeof *in->edge);
    in->metric_s = ghp_alloc((size_t)in->n_choices[in->n_layers - 1], sizeof *in->metric_s);
    if (in->layer == NULL || in->edge == NULL || in->metric_s == NULL) return GHP_NO_MEMORY();
    return GHP_OK;
}

static struct ghp_contention contention_of(const struct ghp_instance *in, int stage)
{
    return (struct ghp_contention){in->problem[stage].workers, in->lowering->problem.workers,
                                   in->speed[stage]};
}

static enum ghp_work work_of(const struct ghp_instr *instr)
{
    bool sends = instr->kind == GHP_INSTR_RESHARD || instr->kind == GHP_INSTR_STAT_REDUCE;
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
 * of a fine ladder, given that a larger message is never cheaper. At most 1/16 below the true share. */
static enum ghp_status share_per_byte(const struct ghp_instance *in, const struct ghp_instr *instr,
                                      int64_t least, int64_t most, double *share)
{
    struct ghp_cost cost;
    int64_t size = least;
    double after = INFINITY;

    *share = INFINITY;
    while (size <= most) {
        int64_t next = size + size / 16 + GHP_ALIGN_BYTES;

        GHP_TRY(cost_of_size(in, instr, size, &cost));
        after = cost.seconds / (double)next;
        if (after < *share) *share = after;
        size = next;
    }
    return GHP_OK;
}

/* Of a layer's reduction or gather; `bytes` without padding, which a bucket has once for all its layers. */
static enum ghp_status cost_bucket(const struct ghp_instance *in, const struct ghp_instr *instr,
                                   int64_t bytes, double *seconds)
{
    struct ghp_cost cost;
    int64_t most = 0;
    double share;

    if (in->alone) {
        GHP_TRY(ghp_profile_cost(in->profile, instr, in->lowering->problem.workers, &cost));
        *seconds = cost.seconds;
        return GHP_OK;
    }
    for (int v = 0; v < in->n_layers; v++)
        most += in->lowering->model->layers[v].fixed
                    ? 0
                    : ghp_layer_weights(&in->lowering->model->layers[v]) *
                              ghp_parameter_bytes(in->lowering->element_bytes) +
                          in->lowering->model->layers[v].n_params * GHP_ALIGN_BYTES;
    GHP_TRY(share_per_byte(in, instr, bytes, most, &share));
    *seconds = share * (double)bytes;
    return GHP_OK;
}

/* An update as a part of its bucket's, where a bucket's optimizer shard is updated at once: what its bytes add.
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

/* In how many micro-batches a layer's instruction is found, besides the forward part of the first and the backward part
 * of the last: updates in none, sums of gradients in all but the first. */
static double others(const struct ghp_instance *in, const struct ghp_instr *instr)
{
    int u = in->micro_batches;

    if (u == 1 || instr->kind == GHP_INSTR_UPDATE) return 0;
    return instr->kind == GHP_INSTR_ACCUMULATE ? u - 2 : u - 1;
}

/* Whether the schedule leaves the instruction to a step of its own. */
static bool is_deferred(const struct ghp_instance *in, const struct ghp_instr *instr)
{
    return instr->backward && ghp_lower_defers_weights(in->lowering, instr->layer) &&
           (instr->kind != GHP_INSTR_COMPUTE || instr->pass == GHP_PASS_BACKWARD_WEIGHT);
}

/* Adds what a micro-batch's deferred instruction costs: steps of the micro-batches before the last, less those that wait
 * as the schedule says (ghp_stage_schedule), stand before the stage's last backward step. */
static void add_deferred(const struct ghp_instance *in, const struct ghp_instr *instr,
                         double seconds, struct ghp_layer_cost *p)
{
    int all = in->micro_batches - (instr->kind == GHP_INSTR_ACCUMULATE);
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
        if (in->lowering->no_metrics || instr.ranks.count == 1 || in->n_stages > 1 ||
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

static enum ghp_status cost_pair(const struct ghp_instance *in, int e, int i, int j,
                                 struct ghp_program *piece)
{
    const struct ghp_edge *edge = &in->edges[e];
    struct ghp_edge_cost *p = &in->edge[in->first_pair[e] + i * in->n_choices[edge->to] + j];
    struct ghp_cost cost;

    piece->n_instrs = 0;
    GHP_TRY(ghp_lower_edge(in->lowering, e, in->choices[in->first_choice[edge->from] + i],
                           in->choices[in->first_choice[edge->to] + j],
                           in->rank[in->stage[edge->to]], piece));
    for (int k = 0; k < piece->n_instrs; k++) {
        const struct ghp_instr *instr = &piece->instrs[k];
        GHP_TRY(ghp_profile_cost(in->profile, instr, in->lowering->problem.workers, &cost));
        cost.seconds = ghp_cost_contended(instr, &cost, contention_of(in, in->stage[edge->to]));
        if (instr->stream == GHP_STREAM_TRANSFER) {
            int at = in->p2p_transfer[in->p2p_transfer_of[e]].first_pair +
                     i * in->n_choices[edge->to] + j;

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
    struct ghp_lowering plain = *in->lowering;

    plain.input_gradient = false; /* counts in layers, not in edges */
    if (in->n_stages > 1 &&
        (in->stage[a->from] != in->stage[a->to] || in->stage[b->from] != in->stage[b->to] ||
         in->stage[a->from] != in->stage[b->from]))
        return false;
    if (from_a->n_consumers != 1 || from_b->n_consumers != 1) return false;
    if (memcmp(&from_a->out, &from_b->out, sizeof from_a->out) != 0) return false;
    if (ghp_lower_needs_gradient(&plain, a->from) != ghp_lower_needs_gradient(&plain, b->from))
        return false;
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
        int n_from = in->n_choices[in->edges[e].from], n_to = in->n_choices[in->edges[e].to];
        int like = 0;

        while (like < e && !same_edge(in, e, like))
            like++;
        if (like < e) {
            memcpy(&in->edge[in->first_pair[e]], &in->edge[in->first_pair[like]],
                   (size_t)(n_from * n_to) * sizeof *in->edge);
            continue;
        }
        for (int i = 0; i < n_from; i++)
            for (int j = 0; j < n_to; j++)
                GHP_TRY(cost_pair(in, e, i, j, piece));
    }
    return GHP_OK;
}

enum ghp_status ghp_instance_init(const struct ghp_lowering *lowering,
                                  const struct ghp_profile *profile, int tp_sizes,
                                  struct ghp_instance *instance)
{
    struct ghp_program piece = {0};
    enum ghp_status status = GHP_OK;

    *instance = (struct ghp_instance){.lowering = lowering,
                                      .profile = profile,
                                      .n_layers = lowering->model->n_layers,
                                      .n_edges = lowering->model->n_edges,
                                      .edges = lowering->model->edges,
                                      .alone = lowering->method.bucket_bytes == 0};
    instance->n_points = ghp_point_count(lowering->model);
    if (lowering->staging == NULL) GHP_TRY_GOTO(status, ghp_problem_check(lowering->problem), done);
    GHP_TRY_GOTO(status, ghp_staging_check(lowering->staging, lowering->model, lowering->problem),
                 done);
    GHP_TRY_GOTO(status, allocate(instance), done);
    place_stages(instance);
    instance->n_slots =
        2 * instance->n_points + (instance->first_steady >= 0 ? instance->n_stages : 0);
    instance->first_tail = -1;
    if (ghp_staging_defers_weights(lowering->staging)) {
        instance->first_tail = instance->n_slots;
        instance->n_slots += instance->n_stages;
    }
    GHP_TRY_GOTO(status, offer_choices(instance, tp_sizes), done);
    place_items(instance);
    place_routes(instance);
    GHP_TRY_GOTO(status, cost_layers(instance, &piece), done);
    GHP_TRY_GOTO(status, cost_edges(instance, &piece), done);
done:
    ghp_program_release(&piece);
    if (status != GHP_OK) ghp_instance_release(instance);
    return status;
}

struct ghp_frontier_graph ghp_instance_graph(const struct ghp_instance *instance)
{
    return (struct ghp_frontier_graph){.n_nodes = instance->n_layers,
                                       .n_edges = instance->n_edges,
                                       .edges = instance->edges,
                                       .n_choices = instance->n_choices,
                                       .first_choice = instance->first_choice,
                                       .first_pair = instance->first_pair};
}

void ghp_instance_release(struct ghp_instance *instance)
{
    if (instance == NULL) return;
    free(instance->n_choices);
    free(instance->first_choice);
    free(instance->first_pair);
    free(instance->choices);
    free(instance->layer);
    free(instance->edge);
    free(instance->metric_s);
    free(instance->most_reduce_s);
    free(instance->wait_slot);
    free(instance->ready_slot);
    free(instance->edge_slot);
    free(instance->stage);
    free(instance->p2p_transfer);
    free(instance->p2p_transfer_of);
    free(instance->p2p_transfer_cost);
    free(instance->receive_bytes);
    free(instance->layer_spans.first);
    free(instance->layer_spans.span);
    free(instance->edge_spans.first);
    free(instance->edge_spans.span);
    memset(instance, 0, sizeof *instance);
}

void ghp_instance_splits(const struct ghp_instance *instance, const int *choice,
                         struct ghp_split *splits)
{
    for (int v = 0; v < instance->n_layers; v++)
        splits[v] = instance->choices[instance->first_choice[v] + choice[v]];
}

int ghp_instance_find(const struct ghp_instance *instance, int layer, struct ghp_split split)
{
    for (int i = 0; i < instance->n_choices[layer]; i++)
        if (ghp_split_same(instance->choices[instance->first_choice[layer] + i], split)) return i;
    return -1;
}

/* The same parameters under the split of the layer that owns them. */
static struct ghp_split owners_split(const struct ghp_instance *in, int layer, int i)
{
    struct ghp_split own = in->choices[in->first_choice[layer] + i];

    return in->lowering->model->layers[layer].tied > 0 ? own : ghp_split_of_tied(own);
}

int ghp_instance_tied_choice(const struct ghp_instance *instance, int layer, int i, int other)
{
    struct ghp_split wanted = owners_split(instance, layer, i);

    for (int k = 0; k < instance->n_choices[other]; k++)
        if (ghp_split_same(owners_split(instance, other, k), wanted)) return k;
    return -1;
}

void ghp_instance_choose(const struct ghp_instance *instance, int layer, int i, int *choice)
{
    const struct ghp_model *model = instance->lowering->model;
    bool shares = model->layers[layer].tied > 0 || model->layers[layer].shared;

    for (int v = 0; v < instance->n_layers && shares; v++)
        if (ghp_model_owner(model, v) == ghp_model_owner(model, layer)) {
            choice[v] = ghp_instance_tied_choice(instance, layer, i, v);
            GHP_ASSERT(choice[v] >= 0); /* domains have choices in pairs */
        }
    choice[layer] = i;
}

int ghp_instance_pair(const struct ghp_instance *instance, int edge, const int *choice)
{
    const struct ghp_edge *e = &instance->edges[edge];

    return instance->first_pair[edge] + choice[e->from] * instance->n_choices[e->to] +
           choice[e->to];
}
