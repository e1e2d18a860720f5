/* planner/search/instance.c - the choices of a problem, their classes, and where their costs stand; what they cost is
 * instance_cost.c's. */
#include "core/program/lower/flow.h"
#include "core/program/lower/points.h"
#include "planner/search/instance_private.h"

#include <stdlib.h>
#include <string.h>

static enum ghp_status allocate(struct ghp_instance *in)
{
    size_t layers = (size_t)in->n_layers, edges = (size_t)in->n_edges;

    in->n_choices = ghp_alloc(layers, sizeof *in->n_choices);
    in->first_choice = ghp_alloc(layers + 1, sizeof *in->first_choice);
    in->n_classes = ghp_alloc(layers, sizeof *in->n_classes);
    in->first_pair = ghp_alloc(edges + 1, sizeof *in->first_pair);
    in->most_reduce_s = ghp_alloc(2 * layers, sizeof *in->most_reduce_s);
    in->wait_slot = ghp_alloc(3 * layers + 1, sizeof *in->wait_slot);
    in->ready_slot = ghp_alloc(3 * layers + 1, sizeof *in->ready_slot);
    in->edge_slot = ghp_alloc(2 * edges, sizeof *in->edge_slot);
    in->stage = ghp_alloc(layers, sizeof *in->stage);
    in->p2p_transfer_of = ghp_alloc(edges + 1, sizeof *in->p2p_transfer_of);
    in->p2p_transfer = ghp_alloc(edges + 1, sizeof *in->p2p_transfer);
    if (in->stage == NULL || in->p2p_transfer_of == NULL || in->p2p_transfer == NULL ||
        in->n_choices == NULL || in->first_choice == NULL || in->n_classes == NULL ||
        in->first_pair == NULL || in->most_reduce_s == NULL || in->wait_slot == NULL ||
        in->ready_slot == NULL || in->edge_slot == NULL)
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

    in->n_stages = ghp_staging_chunks(staging);
    in->n_owners = ghp_staging_stages(staging);
    in->micro_batches = ghp_staging_micro_batches(staging);
    in->first_steady = in->n_stages > 1 || in->micro_batches > 1 ? in->n_points : -1;
    for (int i = 0; i < in->n_stages; i++) {
        struct ghp_layer_range range = ghp_chunk_range(staging, i, model->n_layers);
        in->rank[i] = ghp_stage_representative(staging, i % in->n_owners, in->lowering->problem);
        struct ghp_placement placement =
            ghp_placement_of(staging, model->n_layers, in->lowering->problem, in->rank[i]);

        in->problem[i] = placement.problem;
        in->speed[i] = placement.speed;
        in->route[i] = (struct ghp_route){range.first, range.end, .next = -1, .p2p_transfer = -1};
    }
    for (int v = 0; v < in->n_layers; v++)
        in->stage[v] = ghp_chunk_of(staging, v);
    for (int e = 0; e < in->n_edges; e++) {
        int from = in->stage[in->edges[e].from], to = in->stage[in->edges[e].to], carrier = -1;

        in->p2p_transfer_of[e] = -1;
        if (from % in->n_owners == to % in->n_owners) continue;
        ghp_remote_activation_readers(model, staging, in->edges[e].from, to % in->n_owners,
                                      &carrier);
        if (carrier != e) continue;
        in->p2p_transfer_of[e] = in->n_p2p_transfers;
        in->p2p_transfer[in->n_p2p_transfers++] = (struct ghp_p2p_transfer){
            .edge = e, .from = from, .to = to, .back = model->layers[in->edges[e].from].learns};
    }
}

/* The first stage that reads a stage's last layer, if a gradient comes back from it. */
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

/* Whether the layer may be split so. If each worker has all weights, it is not split at all. */
static bool takes(const struct ghp_instance *in, int v, struct ghp_split split, int tp_sizes)
{
    int tp_size = split.tp_size;

    if (split.kind == GHP_SPLIT_RING && in->profile->on_device)
        return false; /* pieces are added up by a loop over host memory */
    if (tp_size > 1 && (ghp_sync_wants_data(in->lowering->method.sync) ||
                        ghp_lr_scaling_takes_batches(in->lowering->method.scaling)))
        return false;
    if (in->lowering->staging == NULL) return tp_sizes % tp_size == 0;
    return ghp_stage_takes_tp_size(in->lowering->staging, in->stage[v] % in->n_owners,
                                   in->lowering->problem, tp_size) &&
           (in->n_stages > 1 || tp_sizes % tp_size == 0);
}

/* Numbers the classes of each layer's choices: those that differ in their sharding alone stand together. */
static enum ghp_status number_classes(struct ghp_instance *in)
{
    in->class_of = ghp_alloc((size_t)in->first_choice[in->n_layers] + 1, sizeof *in->class_of);
    if (in->class_of == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < in->n_layers; v++)
        for (int flat = in->first_choice[v]; flat < in->first_choice[v + 1]; flat++) {
            if (flat == in->first_choice[v] ||
                !ghp_split_alike(in->choices[flat - 1], in->choices[flat]))
                in->n_classes[v]++;
            in->class_of[flat] = in->n_classes[v] - 1;
        }
    return GHP_OK;
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
            if (takes(in, v, all[i], tp_sizes))
                room += (size_t)ghp_stage_shardings(
                    &(struct ghp_sharding_place){model, in->lowering->staging, v,
                                                 in->problem[in->stage[v]]},
                    in->lowering->shardings, all[i], &in->choices[room]);
        in->n_choices[v] = (int)room - in->first_choice[v];
        in->first_choice[v + 1] = (int)room;
    }
    GHP_TRY(number_classes(in));
    for (int e = 0; e < in->n_edges; e++) {
        int pairs = in->n_classes[in->edges[e].from] * in->n_classes[in->edges[e].to];

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

enum ghp_status ghp_instance_init(const struct ghp_lowering *lowering,
                                  const struct ghp_profile *profile, int tp_sizes,
                                  struct ghp_instance *instance)
{
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
    GHP_TRY_GOTO(status, ghp_instance_cost(instance), done);
done:
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
                                       .class_of = instance->class_of,
                                       .first_pair = instance->first_pair};
}

void ghp_instance_release(struct ghp_instance *instance)
{
    if (instance == NULL) return;
    free(instance->n_choices);
    free(instance->first_choice);
    free(instance->n_classes);
    free(instance->class_of);
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
    const int *class_of = instance->class_of;

    return instance->first_pair[edge] +
           class_of[instance->first_choice[e->from] + choice[e->from]] *
               instance->n_classes[e->to] +
           class_of[instance->first_choice[e->to] + choice[e->to]];
}
