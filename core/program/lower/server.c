/* core/program/lower/server.c - the program of a parameter server (core/program/sync/servers.c). It has one shard of
 * each bucket, with its moments, and room for that shard of each worker's gradients.
 *
 * The sum of the gradients lies where the first worker's lie. If workers mix (core/program/sync/mixing.c) there are
 * only buffers and no instructions, since no order of steps is common to all workers. */
#include "core/model/precision.h"
#include "core/program/lower/buffer_assignment_private.h"
#include "core/program/lower/emitter.h"
#include "core/program/lower/lower.h"

/* The instructions of one bucket after the other, of `kind`; from the last layer on, or from the first. */
static enum ghp_status emit_buckets(const struct ghp_emitter *e, enum ghp_instr_kind kind,
                                    bool backward)
{
    int n = e->lowering->model->n_layers;

    for (int k = 0; k < n; k++) {
        int layer = backward ? n - 1 - k : k, b = e->buckets->of_layer[layer];
        struct ghp_bucket_range range = {0};
        struct ghp_instr *instr;

        if (b >= 0) range = e->buckets->ranges[b];
        if (range.server_shard_bytes == 0 || range.ready_layer != layer) continue;
        range.bytes = range.server_shard_bytes;
        instr = kind == GHP_INSTR_UPDATE
                    ? ghp_emitter_add_update(e, layer, range.server_shard_bytes, 0)
                    : ghp_emitter_add_exchange(e, kind, b, range, 0);
        if (instr == NULL) return GHP_NO_MEMORY();
        instr->bucket = b;
        instr->serves = kind != GHP_INSTR_UPDATE;
    }
    return GHP_OK;
}

static enum ghp_status add_buffer(struct ghp_buffer_assignment *k, enum ghp_buffer_kind kind,
                                  const struct ghp_bucket_range *range, int copies, int *id)
{
    struct ghp_buffer buffer =
        ghp_describe_bytes(kind, range->ready_layer, copies * range->server_shard_bytes);

    buffer.elements = buffer.bytes / ghp_parameter_bytes(k->lowering->element_bytes);
    buffer.persistent = true;
    *id = -1;
    return ghp_buffer_assignment_demand(k, id, buffer);
}

static struct ghp_bucket empty_bucket(const struct ghp_bucket_range *range)
{
    return (struct ghp_bucket){.tp_size = range->tp_size,
                               .bytes = range->bytes,
                               .shard_bytes = range->server_shard_bytes,
                               .server_shard_bytes = range->server_shard_bytes,
                               .buffer = -1,
                               .weights = -1,
                               .weight_shard = -1,
                               .gradient_shard = -1,
                               .moment = {-1, -1}};
}

static enum ghp_status make_bucket(struct ghp_buffer_assignment *k,
                                   const struct ghp_bucket_range *range, struct ghp_bucket *bucket)
{
    struct ghp_program *program = k->program;

    *bucket = empty_bucket(range);
    if (range->server_shard_bytes == 0) return GHP_OK;
    GHP_TRY(add_buffer(k, GHP_BUFFER_OPTIMIZER_SHARD, range, 1, &bucket->weight_shard));
    GHP_TRY(
        add_buffer(k, GHP_BUFFER_ARRIVALS, range, k->lowering->problem.workers, &bucket->buffer));
    GHP_TRY(add_buffer(k, GHP_BUFFER_OPTIMIZER_SHARD, range, 1, &bucket->gradient_shard));
    program->buffers[bucket->gradient_shard].storage = bucket->buffer;
    for (int m = 0; m < program->optimizer->n_moments; m++)
        GHP_TRY(add_buffer(k, ghp_moment_kind(m), range, 1, &bucket->moment[m]));
    return GHP_OK;
}

/* The whole of a server with whose weights workers mix: its shard, what each worker sends and is sent, moments for
 * each, and a sum. */
static enum ghp_status make_mixed(struct ghp_buffer_assignment *k,
                                  const struct ghp_bucket_range *range, struct ghp_bucket *bucket)
{
    const struct ghp_mixing_facts *mixing = ghp_lowering_sync(k->lowering)->mixing;
    int workers = k->lowering->problem.workers, moments = k->program->optimizer->n_moments;

    *bucket = empty_bucket(range);
    GHP_TRY(add_buffer(k, GHP_BUFFER_OPTIMIZER_SHARD, range, 1, &bucket->weight_shard));
    GHP_TRY(add_buffer(k, GHP_BUFFER_ARRIVALS, range, mixing->arrivals * workers, &bucket->buffer));
    if (mixing->server_sum)
        GHP_TRY(add_buffer(k, GHP_BUFFER_OPTIMIZER_SHARD, range, 1, &bucket->gradient_shard));
    for (int m = 0; m < moments && mixing->server_moments; m++)
        GHP_TRY(add_buffer(k, ghp_moment_kind(m), range, workers, &bucket->moment[m]));
    return GHP_OK;
}

/* Operands, and which PUSH an update waits for. */
static void assign(struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++) {
        struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_bucket *bucket = &program->buckets[instr->bucket];

        if (instr->kind == GHP_INSTR_PUSH) instr->at.y = bucket->buffer;
        if (instr->kind == GHP_INSTR_PULL) instr->at.x[0] = bucket->weight_shard;
        if (instr->kind != GHP_INSTR_UPDATE) continue;
        instr->at.w[0] = bucket->weight_shard;
        instr->at.dw[0] = bucket->gradient_shard;
        for (int m = 0; m < instr->optimizer->n_moments; m++)
            instr->at.moment[m][0] = bucket->moment[m];
        for (int j = 0; j < program->n_instrs; j++)
            if (program->instrs[j].kind == GHP_INSTR_PUSH &&
                program->instrs[j].bucket == instr->bucket)
                instr->wait = j;
    }
}

static enum ghp_status lower_server(const struct ghp_emitter *e)
{
    struct ghp_program *program = e->program;
    struct ghp_buffer_assignment k = {.lowering = e->lowering, .program = program};
    bool mixes = ghp_lowering_mixes(e->lowering);

    if (!mixes) {
        GHP_TRY(emit_buckets(e, GHP_INSTR_UPDATE, true));
        GHP_TRY(emit_buckets(e, GHP_INSTR_PULL, false));
        GHP_TRY(emit_buckets(e, GHP_INSTR_PUSH, true));
    }
    program->buckets = ghp_alloc((size_t)e->buckets->n + 1, sizeof *program->buckets);
    if (program->buckets == NULL) return GHP_NO_MEMORY();
    program->n_buckets = e->buckets->n;
    for (int b = 0; b < e->buckets->n; b++)
        GHP_TRY(
            (mixes ? make_mixed : make_bucket)(&k, &e->buckets->ranges[b], &program->buckets[b]));
    assign(program);
    return ghp_program_place(program);
}

enum ghp_status ghp_lower_server(const struct ghp_lowering *lowering,
                                 const struct ghp_split *splits, int server,
                                 struct ghp_program *program)
{
    struct ghp_bucket_plan buckets = {0};
    struct ghp_emitter e = ghp_emitter_of(lowering, lowering->problem.workers + server, program);
    enum ghp_status status;

    GHP_ASSERT(server >= 0 && server < lowering->method.sync.servers);
    e.placement =
        ghp_placement_of(lowering->staging, lowering->model->n_layers, lowering->problem, 0);
    e.splits = splits;
    e.buckets = &buckets;
    *program = ghp_emitter_program(&e, splits);
    status = ghp_bucket_plan_init(lowering, &e.placement, splits, &buckets);
    if (status == GHP_OK) status = lower_server(&e);
    ghp_bucket_plan_release(&buckets);
    if (status != GHP_OK) ghp_program_release(program);
    return status;
}
