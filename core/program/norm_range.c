/* core/program/norm_range.c - who squares which elements for norms of gradients, and where the sums lie. */
#include "core/program/program.h"

#include "core/model/precision.h"

static const struct ghp_bucket *bucket_of(const struct ghp_program *program, int storage)
{
    int b = 0;

    while (program->buckets[b].buffer != storage)
        b++;
    return &program->buckets[b];
}

/* What of the gradient lies in this worker's optimizer shard of its bucket. */
static struct ghp_norm_range in_shard(const struct ghp_program *program, const struct ghp_buffer *b,
                                      const struct ghp_bucket *bucket)
{
    int64_t bytes = ghp_parameter_bytes(program->element_bytes);
    int64_t begin = bucket->shard_offset - b->storage_offset;
    struct ghp_norm_range range = {begin / bytes, (begin + bucket->shard_bytes) / bytes};

    if (range.first < 0) range.first = 0;
    if (range.end > b->elements) range.end = b->elements;
    return range.first < range.end ? range : (struct ghp_norm_range){0};
}

struct ghp_norm_range ghp_norm_range_of(const struct ghp_program *program, int buffer)
{
    const struct ghp_buffer *b = &program->buffers[buffer];
    const struct ghp_layer *layer = &program->model->layers[b->layer];
    const struct ghp_bucket *bucket = bucket_of(program, b->storage);
    bool divided = b->elements < layer->params[b->slot].elements; /* not copied to each member */
    int number = program->placement.number, parts = divided ? program->splits[b->layer].tp_size : 1;
    int64_t replicas = program->placement.problem.workers / parts, replica = number / parts;

    if (!ghp_placement_owns(&program->placement,
                            b->layer)) /* a copy: its owner's stage squares it */
        return (struct ghp_norm_range){0};
    /* A subgroup that holds the same has the same optimizer shards, and so have groups that are sharded within. */
    if (bucket->shard_bytes > 0)
        return (divided || number % bucket->tp_size == 0) &&
                       number / bucket->tp_size < bucket->shards
                   ? in_shard(program, b, bucket)
                   : (struct ghp_norm_range){0};
    return (struct ghp_norm_range){.first = b->elements * replica / replicas / 16 * 16,
                                   .end = replica + 1 == replicas
                                              ? b->elements
                                              : b->elements * (replica + 1) / replicas / 16 * 16};
}

int64_t ghp_norm_sums(const struct ghp_model *model, const struct ghp_rate_rule *rates)
{
    return rates != NULL ? 2 * ghp_norm_place(model, model->n_layers, 0) : 1;
}

int ghp_norm_place(const struct ghp_model *model, int layer, int slot)
{
    int place = slot;

    for (int i = 0; i < layer; i++)
        place += model->layers[i].n_params;
    return place;
}
