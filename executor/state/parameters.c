/* executor/state/parameters.c - see parameters.h. */
#include "executor/state/parameters.h"

#include "core/base/finite.h"
#include "core/base/hash.h"
#include "core/program/lower/lower.h"
#include "core/program/lower/points.h"
#include "executor/platform/random.h"
#include "executor/state/broadcast.h"
#include "executor/state/shard.h"
#include "executor/state/weight_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of each number of all tensors here. */
static int number_bytes(const struct ghp_worker *worker)
{
    return ghp_parameter_bytes(ghp_worker_program(worker)->element_bytes);
}

static int moments_of(const struct ghp_worker *worker)
{
    return ghp_worker_program(worker)->optimizer->n_moments;
}

static struct ghp_shard shard_of(const struct ghp_worker *worker, const struct ghp_tensor *t)
{
    const struct ghp_program *program = ghp_worker_program(worker);
    const struct ghp_placement *placement = ghp_worker_placement(worker);
    const struct ghp_op_facts *facts = ghp_op_of(program->model->layers[t->layer].op);
    const struct ghp_op_param *kind = t->is_state ? facts->states : facts->params;
    struct ghp_local local =
        ghp_local_of(program->model, t->layer, program->splits[t->layer], placement->problem);

    return ghp_shard_of(&kind[t->slot], &local, program->splits[t->layer], placement->number,
                        t->param);
}

/* The address of a tensor's part; the host cannot read it if it is on a device. */
static void *part_at(struct ghp_worker *worker, const struct ghp_tensor *t,
                     enum ghp_buffer_kind buffer_kind, int64_t expected)
{
    int64_t elements = 0;
    void *part = ghp_worker_tensor(worker, buffer_kind, t->layer, t->slot, &elements);

    GHP_ASSERT(part != NULL);
    GHP_ASSERT_EQ(elements, expected);
    return part;
}

static struct ghp_device device_of(const struct ghp_worker *worker)
{
    return ghp_exec_context_device(ghp_worker_exec_context(worker));
}

/* The descriptor of the part. */
static struct ghp_param_descriptor descriptor_of(const struct ghp_worker *worker,
                                                 const struct ghp_tensor *t)
{
    struct ghp_shard shard = shard_of(worker, t);
    struct ghp_param_descriptor descriptor = {.n_dims = t->param->n_dims,
                                              .elements = ghp_shard_elements(shard),
                                              .element_bytes = number_bytes(worker)};

    memcpy(descriptor.dims, shard.dims, sizeof descriptor.dims);
    return descriptor;
}

/* A part in host memory and the field's order: the part itself if it lies so, else a copy. */
struct view {
    struct ghp_worker *worker;
    struct ghp_param_descriptor descriptor;
    bool nchw16c; /* the part is (weight_blocks.h) */
    void *part;   /* where it lies */
    void *here;
    void *own; /* the copy's memory, if it is the view's */
    int64_t bytes;
};

/* room: memory for the copy, if there is to be one; NULL: the view's own. */
static enum ghp_status view_open(struct ghp_worker *worker, const struct ghp_tensor *t,
                                 enum ghp_buffer_kind buffer_kind, void *room, struct view *v)
{
    struct ghp_param_descriptor descriptor = descriptor_of(worker, t);

    *v = (struct view){.worker = worker,
                       .descriptor = descriptor,
                       .nchw16c = !t->is_state && ghp_worker_blocks_weights(worker, t->layer),
                       .part = part_at(worker, t, buffer_kind, descriptor.elements),
                       .bytes = descriptor.elements * descriptor.element_bytes};
    v->here = v->part;
    if (device_of(worker).ops == NULL && !v->nchw16c) return GHP_OK;
    if (room == NULL) room = v->own = ghp_alloc((size_t)v->bytes + 1, 1);
    v->here = room;
    return room != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void view_close(struct view *v)
{
    free(v->own);
}

/* From and to where the part lies; nothing if it is itself. */
static enum ghp_status view_read(struct view *v)
{
    if (v->here == v->part) return GHP_OK;
    if (!v->nchw16c) return ghp_device_get(device_of(v->worker), &v->descriptor, v->part, v->here);
    ghp_weight_blocks_get(&v->descriptor, v->part, v->here);
    return GHP_OK;
}

static enum ghp_status view_write(struct view *v)
{
    if (v->here == v->part) return GHP_OK;
    if (!v->nchw16c) return ghp_device_put(device_of(v->worker), &v->descriptor, v->here, v->part);
    ghp_weight_blocks_put(&v->descriptor, v->here, v->part);
    return GHP_OK;
}

static void fill_value(void *at, int64_t n, int element_bytes, double value)
{
    for (int64_t i = 0; i < n; i++) {
        if (element_bytes == 8)
            ((double *)at)[i] = value;
        else
            ((float *)at)[i] = (float)value;
    }
}

/* Index of the only consumer of a layer's output, -1 if it has none or several. */
static int next_layer(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];

    return l->n_consumers == 1 ? model->edges[l->out_edges[0]].to : -1;
}

static int next_of_op(const struct ghp_model *model, int layer, enum ghp_op op)
{
    int next = layer < 0 ? -1 : next_layer(model, layer);

    return next >= 0 && model->layers[next].op == op ? next : -1;
}

/* Variance of a weight times its fan-in, such that activations keep their size from layer to layer: a relu halves the
 * mean square of what passes it, and max pooling after it about doubles that again. */
static double variance_gain(const struct ghp_model *model, int layer)
{
    int bias = next_of_op(model, layer, GHP_OP_BIAS);
    int relu = next_of_op(model, bias >= 0 ? bias : layer, GHP_OP_RELU);

    return relu >= 0 && next_of_op(model, relu, GHP_OP_MAX_POOL) < 0 ? 2 : 1;
}

static void draw(const struct ghp_worker *worker, const struct ghp_tensor *t, uint64_t seed,
                 char *part)
{
    const struct ghp_program *program = ghp_worker_program(worker);
    struct ghp_shard shard = shard_of(worker, t);
    bool uniform = t->param->init == GHP_INIT_UNIFORM;
    void (*fill)(uint64_t, uint64_t, int64_t, int64_t, double, int, void *) =
        uniform ? ghp_random_fill_uniform : ghp_random_fill_normal;
    double deviation = uniform ? 1 / sqrt((double)t->param->fan_in) : t->param->deviation;

    if (t->param->init < GHP_INIT_UNIFORM) {
        fill_value(part, ghp_shard_elements(shard), number_bytes(worker),
                   t->param->init == GHP_INIT_ONE ? 1 : 0);
        return;
    }
    if (t->param->init == GHP_INIT_KAIMING)
        deviation = sqrt(variance_gain(program->model, t->layer) / (double)t->param->fan_in);
    for (int64_t row = 0; row < shard.rows; row++) {
        int64_t first = row * shard.apart + shard.member * shard.run;
        char *run = part + row * shard.run * number_bytes(worker);

        fill(seed, (uint64_t)t->ordinal, first, shard.valid, deviation, number_bytes(worker), run);
        fill_value(run + shard.valid * number_bytes(worker), shard.run - shard.valid,
                   number_bytes(worker), 0);
    }
    fill_value(part + shard.rows * shard.run * number_bytes(worker), shard.padding * shard.run,
               number_bytes(worker), 0);
}

static enum ghp_status init_tensor(struct ghp_worker *worker, const struct ghp_tensor *t,
                                   uint64_t seed)
{
    struct view v;
    enum ghp_status status = view_open(worker, t, ghp_tensor_buffer_kind(t), NULL, &v);

    if (status == GHP_OK) draw(worker, t, seed, v.here);
    if (status == GHP_OK) status = view_write(&v);
    view_close(&v);
    return status == GHP_OK ? ghp_worker_keep(worker, ghp_tensor_buffer_kind(t), t->layer, t->slot)
                            : status;
}

static enum ghp_status clear_moment(struct ghp_worker *worker, const struct ghp_tensors_list *list,
                                    int moment)
{
    for (int i = 0; i < list->n_trained; i++) {
        const struct ghp_tensor *t = &list->items[i];
        int64_t elements = ghp_shard_elements(shard_of(worker, t));

        if (!ghp_worker_holds(worker, t->layer)) continue;
        GHP_TRY(ghp_device_clear(device_of(worker), GHP_DEVICE_STREAM_COMPUTE,
                                 part_at(worker, t, ghp_moment_kind(moment), elements),
                                 elements * number_bytes(worker)));
        GHP_TRY(ghp_worker_keep(worker, ghp_moment_kind(moment), t->layer, t->slot));
    }
    return ghp_worker_distribute(worker, ghp_moment_kind(moment));
}

enum ghp_status ghp_parameters_init(struct ghp_worker *worker, uint64_t seed)
{
    struct ghp_tensors_list list = {0};
    enum ghp_status status = GHP_OK;

    GHP_TRY(ghp_tensors_list_init(ghp_worker_program(worker)->model, &list));
    for (int i = 0; i < list.n; i++)
        if (ghp_worker_holds(worker, list.items[i].layer))
            GHP_TRY_GOTO(status, init_tensor(worker, &list.items[i], seed), done);
    for (int m = 0; m < moments_of(worker) && status == GHP_OK; m++)
        status = clear_moment(worker, &list, m);
done:
    ghp_tensors_release(&list);
    return status;
}

/* All members' parts, and from them the whole. */
static enum ghp_status gather_parts(struct ghp_worker *worker, struct ghp_shard shard,
                                    const struct view *v, void *whole)
{
    const struct ghp_placement *placement = ghp_worker_placement(worker);
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    struct ghp_comm *comm = NULL;
    enum ghp_status status = GHP_OK;
    char *parts = ghp_alloc((size_t)shard.tp_size, (size_t)v->bytes);

    if (parts == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(
        status,
        ghp_collectives_group(
            exec->transport->host,
            ghp_placement_ranks(placement, ghp_ranks_subgroup(placement->number, shard.tp_size)),
            GHP_STREAM_COMPUTE, &comm),
        done);
    comm->label = "gathering a tensor";
    GHP_TRY_GOTO(status, comm->ops->all_gather(comm, v->here, parts, v->bytes), done);
    for (int i = 0; i < shard.tp_size; i++) {
        shard = ghp_shard_member(shard, i);
        ghp_shard_put(shard, number_bytes(worker), parts + i * v->bytes, whole);
    }
done:
    free(parts);
    return status;
}

/* From the members of this worker's subgroup, who hold it together. */
static enum ghp_status gather_here(struct ghp_worker *worker, const struct ghp_tensor *t,
                                   enum ghp_buffer_kind buffer_kind, void *whole)
{
    struct ghp_shard shard = shard_of(worker, t);
    struct view v;
    enum ghp_status status =
        view_open(worker, t, buffer_kind, ghp_shard_is_whole(shard) ? whole : NULL, &v);

    GHP_TRY_GOTO(status, status, done);
    GHP_TRY_GOTO(status, view_read(&v), done);
    if (shard.tp_size > 1)
        status = gather_parts(worker, shard, &v, whole);
    else if (!ghp_shard_is_whole(shard))
        ghp_shard_put(shard, number_bytes(worker), v.here, whole);
    else if (v.here != whole)
        memcpy(whole, v.here, (size_t)v.bytes);
done:
    view_close(&v);
    return status;
}

int ghp_parameters_parts(const struct ghp_worker *worker, const struct ghp_tensor *t)
{
    return shard_of(worker, t).tp_size;
}

enum ghp_status ghp_parameters_gather(struct ghp_worker *worker, const struct ghp_tensor *t,
                                      enum ghp_buffer_kind buffer_kind, void *whole)
{
    int64_t bytes = t->param->elements * number_bytes(worker);

    GHP_TRY(ghp_worker_collect(worker, buffer_kind, t->layer));
    if (ghp_worker_owns(worker, t->layer)) GHP_TRY(gather_here(worker, t, buffer_kind, whole));
    return ghp_broadcast_layer(worker, t->layer, whole, bytes);
}

enum ghp_status ghp_parameters_scatter(struct ghp_worker *worker, const struct ghp_tensor *t,
                                       enum ghp_buffer_kind buffer_kind, const void *whole)
{
    struct view v;
    enum ghp_status status;

    if (!ghp_worker_holds(worker, t->layer)) return GHP_OK;
    status = view_open(worker, t, buffer_kind, NULL, &v);
    if (status == GHP_OK)
        ghp_shard_take(shard_of(worker, t), v.descriptor.element_bytes, whole, v.here);
    if (status == GHP_OK) status = view_write(&v);
    view_close(&v);
    return status == GHP_OK ? ghp_worker_keep(worker, buffer_kind, t->layer, t->slot) : status;
}

/* Continues the hash with a part. */
static enum ghp_status hash_part(struct ghp_worker *worker, const struct ghp_tensor *t,
                                 enum ghp_buffer_kind buffer_kind, uint64_t *hash)
{
    struct view v;
    enum ghp_status status = view_open(worker, t, buffer_kind, NULL, &v);

    if (status == GHP_OK) status = view_read(&v);
    if (status == GHP_OK) *hash = ghp_hash(v.here, (size_t)v.bytes, *hash);
    view_close(&v);
    return status;
}

enum ghp_status ghp_parameters_hash(struct ghp_worker *worker, const struct ghp_tensors_list *list,
                                    uint64_t *hashes)
{
    for (int i = 0; i < list->n; i++) {
        const struct ghp_tensor *t = &list->items[i];

        hashes[i] = 0;
        if (!ghp_worker_holds(worker, t->layer)) continue;
        hashes[i] = GHP_HASH_SEED;
        if (t->is_state || !ghp_worker_shards_weights(worker, t->layer))
            GHP_TRY(hash_part(worker, t, ghp_tensor_buffer_kind(t), &hashes[i]));
        if (!t->trains || ghp_worker_has_optimizer_shard(worker, t->layer)) continue;
        for (int m = 0; m < moments_of(worker); m++)
            GHP_TRY(hash_part(worker, t, ghp_moment_kind(m), &hashes[i]));
    }
    return GHP_OK;
}

static enum ghp_status is_part_finite(struct ghp_worker *worker, const struct ghp_tensor *t,
                                      enum ghp_buffer_kind buffer_kind, bool *finite)
{
    struct view v;
    enum ghp_status status = view_open(worker, t, buffer_kind, NULL, &v);

    if (status == GHP_OK) status = view_read(&v);
    if (status == GHP_OK)
        *finite = *finite && ghp_are_finite(v.here, v.bytes / v.descriptor.element_bytes,
                                            v.descriptor.element_bytes);
    view_close(&v);
    return status;
}

enum ghp_status ghp_parameters_not_finite(struct ghp_worker *worker, int *layer)
{
    struct ghp_tensors_list list;
    enum ghp_status status;

    *layer = ghp_worker_optimizer_shard_not_finite(worker);
    GHP_TRY(ghp_tensors_list_init(ghp_worker_program(worker)->model, &list));
    status = GHP_OK;
    for (int i = 0; i < list.n && status == GHP_OK; i++) {
        const struct ghp_tensor *t = &list.items[i];
        int moments =
            !t->trains || ghp_worker_has_optimizer_shard(worker, t->layer) ? 0 : moments_of(worker);
        bool finite = true;

        if (!ghp_worker_holds(worker, t->layer)) continue;
        if (t->is_state || !ghp_worker_shards_weights(worker, t->layer))
            status = is_part_finite(worker, t, ghp_tensor_buffer_kind(t), &finite);
        for (int m = 0; m < moments && status == GHP_OK; m++)
            status = is_part_finite(worker, t, ghp_moment_kind(m), &finite);
        if (!finite && (*layer < 0 || t->layer < *layer)) *layer = t->layer;
    }
    ghp_tensors_release(&list);
    return status;
}

/* Continues the hash with a whole tensor. It makes a copy, which may be most of a network, only if no worker has all of
 * it. */
static enum ghp_status hash_whole(struct ghp_worker *worker, const struct ghp_tensor *t,
                                  enum ghp_buffer_kind buffer_kind, uint64_t *hash)
{
    size_t bytes = (size_t)(t->param->elements * number_bytes(worker));
    enum ghp_status status;
    void *whole;

    GHP_TRY(ghp_worker_collect(worker, buffer_kind, t->layer));
    if (ghp_worker_placement(worker)->n_stages == 1 && ghp_shard_is_whole(shard_of(worker, t)))
        return hash_part(worker, t, buffer_kind, hash);
    whole = ghp_alloc(bytes, 1);
    if (whole == NULL) return GHP_NO_MEMORY();
    status = ghp_parameters_gather(worker, t, buffer_kind, whole);
    if (status == GHP_OK) *hash = ghp_hash(whole, bytes, *hash);
    free(whole);
    return status;
}

/* Makes the hash of all workers from this worker's. */
static enum ghp_status hash_replicas(struct ghp_worker *worker, uint64_t *hash)
{
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    int n = ghp_worker_program(worker)->problem.workers;
    struct ghp_comm *world = NULL;
    enum ghp_status status;
    uint64_t *all = ghp_alloc((size_t)n, sizeof *all);

    if (all == NULL) return GHP_NO_MEMORY();
    status =
        ghp_collectives_group(exec->transport->host, (struct ghp_ranks){.count = n, .stride = 1},
                              GHP_STREAM_COMPUTE, &world);
    if (status == GHP_OK) world->label = "comparing replicas";
    if (status == GHP_OK) status = world->ops->all_gather(world, hash, all, (int64_t)sizeof *hash);
    if (status == GHP_OK) *hash = ghp_hash(all, (size_t)n * sizeof *all, GHP_HASH_SEED);
    free(all);
    return status;
}

enum ghp_status ghp_parameters_fingerprint(struct ghp_worker *worker,
                                           const struct ghp_tensors_list *list, uint64_t *hash)
{
    *hash = GHP_HASH_SEED;
    for (int i = 0; i < list->n; i++) {
        const struct ghp_tensor *t = &list->items[i];

        GHP_TRY(hash_whole(worker, t, ghp_tensor_buffer_kind(t), hash));
    }
    for (int m = 0; m < moments_of(worker); m++)
        for (int i = 0; i < list->n_trained; i++)
            GHP_TRY(hash_whole(worker, &list->items[i], ghp_moment_kind(m), hash));
    return ghp_worker_has_replicas(worker) ? hash_replicas(worker, hash) : GHP_OK;
}

/* What all replicas of the shards of one TP size say: hashes of the others are zero. */
static enum ghp_status compare_tp_size(struct ghp_worker *worker,
                                       const struct ghp_tensors_list *list, int tp_size,
                                       const uint64_t *hashes, int *different)
{
    const struct ghp_placement *placement = ghp_worker_placement(worker);
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    struct ghp_ranks replicas = ghp_placement_ranks(
        placement, ghp_ranks_replica(placement->number, tp_size, placement->problem.workers));
    int64_t bytes = list->n * (int64_t)sizeof(uint64_t);
    struct ghp_comm *comm = NULL;
    enum ghp_status status = GHP_OK;
    uint64_t *all;

    if (replicas.count == 1) return GHP_OK;
    all = ghp_alloc((size_t)replicas.count, (size_t)bytes);
    if (all == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status,
                 ghp_collectives_group(exec->transport->host, replicas, GHP_STREAM_COMPUTE, &comm),
                 done);
    comm->label = "comparing replicas";
    GHP_TRY_GOTO(status, comm->ops->all_gather(comm, hashes, all, bytes), done);
    for (int i = 0; i < list->n; i++) {
        if (shard_of(worker, &list->items[i]).tp_size != tp_size ||
            !ghp_worker_holds(worker, list->items[i].layer))
            continue;
        for (int h = 1; h < replicas.count; h++)
            if (all[h * list->n + i] != all[i] && (*different < 0 || i < *different))
                *different = i;
    }
done:
    free(all);
    return status;
}

/* The first difference that any worker has seen. */
static enum ghp_status first_of_all(struct ghp_worker *worker, int *different)
{
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    int n = ghp_worker_program(worker)->problem.workers, mine = *different;
    struct ghp_comm *world = NULL;
    enum ghp_status status = GHP_OK;
    int *all = ghp_alloc((size_t)n, sizeof *all);

    if (all == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status,
                 ghp_collectives_group(exec->transport->host,
                                       (struct ghp_ranks){.count = n, .stride = 1},
                                       GHP_STREAM_COMPUTE, &world),
                 done);
    world->label = "comparing replicas";
    GHP_TRY_GOTO(status, world->ops->all_gather(world, &mine, all, (int64_t)sizeof mine), done);
    for (int i = 0; i < n; i++)
        if (all[i] >= 0 && (*different < 0 || all[i] < *different)) *different = all[i];
done:
    free(all);
    return status;
}

enum ghp_status ghp_parameters_compare(struct ghp_worker *worker,
                                       const struct ghp_tensors_list *list, int *different)
{
    int workers = ghp_worker_placement(worker)->problem.workers;
    uint64_t *hashes = ghp_alloc((size_t)list->n + 1, sizeof *hashes);
    enum ghp_status status = GHP_OK;

    *different = -1;
    if (ghp_worker_has_replicas(worker)) workers = 0; /* they do differ */
    if (hashes == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, ghp_parameters_hash(worker, list, hashes), done);
    for (int tp_size = 1; tp_size <= workers; tp_size++) {
        bool used = false;

        for (int i = 0; i < list->n; i++)
            used = used || (ghp_worker_holds(worker, list->items[i].layer) &&
                            shard_of(worker, &list->items[i]).tp_size == tp_size);
        if (used)
            GHP_TRY_GOTO(status, compare_tp_size(worker, list, tp_size, hashes, different), done);
    }
    status = first_of_all(worker, different);
done:
    free(hashes);
    return status;
}
