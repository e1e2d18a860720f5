/* core/program/lower/points.c - see points.h. */
#include "core/program/lower/points.h"

struct ghp_ranks ghp_ranks_subgroup(int rank, int tp_size)
{
    return (struct ghp_ranks){.first = rank / tp_size * tp_size, .count = tp_size, .stride = 1};
}

struct ghp_ranks ghp_ranks_replica(int rank, int tp_size, int workers)
{
    return (struct ghp_ranks){
        .first = rank % tp_size, .count = workers / tp_size, .stride = tp_size};
}

struct ghp_ranks ghp_ranks_shards(int rank, int tp_size, int shards)
{
    return (struct ghp_ranks){.first = rank / (tp_size * shards) * (tp_size * shards) +
                                       rank % tp_size,
                              .count = shards,
                              .stride = tp_size};
}

struct ghp_ranks ghp_ranks_copies(int rank, int tp_size, int shards, int workers)
{
    return ghp_ranks_replica(rank, tp_size * shards, workers);
}

/* Forward: in-edges of a layer directly before it. Edges are numbered by consumer, so both count up together. */
int ghp_point_forward_edge(const struct ghp_model *model, int edge)
{
    return edge + model->edges[edge].to;
}

int ghp_point_forward(const struct ghp_model *model, int layer)
{
    return model->layers[layer].first_edge + model->layers[layer].n_inputs + layer;
}

int ghp_point_count(const struct ghp_model *model)
{
    return 2 * (model->n_layers + model->n_edges);
}

int ghp_point_backward(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    int later_edges = model->n_edges - (l->first_edge + l->n_inputs);
    return model->n_layers + model->n_edges + (model->n_layers - 1 - layer) + later_edges;
}

int ghp_point_backward_edge(const struct ghp_model *model, int edge)
{
    return ghp_point_backward(model, model->edges[edge].to) + 1 + model->edges[edge].slot;
}
