/* core/program/lower/buffer_assignment.c - gives a complete instruction list its operands, buffers, buckets, waits and
 * lifetimes.
 *
 * Buffers are made on first use and live from the first to the last point that accesses them; program/liveness.h says
 * what accesses them. In-place operations do not get buffers of their own: their output *is* their input's buffer,
 * their dx is their dy. */
#include "core/program/liveness.h"
#include "core/program/lower/buffer_assignment.h"
#include "core/program/lower/buffer_assignment_private.h"
#include "core/program/ring.h"

#include "core/model/precision.h"

#include <stdlib.h>
#include <string.h>

/* ---- scratch ---- */

static enum ghp_status scratch_for(struct ghp_buffer_assignment *k, struct ghp_instr *instr,
                                   int64_t bytes, int *operand)
{
    if (bytes <= 0) return GHP_OK;
    int id = -1;
    struct ghp_buffer buffer = ghp_describe_bytes(GHP_BUFFER_SCRATCH, instr->layer, bytes);
    buffer.edge = instr->edge;
    GHP_TRY(ghp_buffer_assignment_demand(k, &id, buffer));
    *operand = id;
    return GHP_OK;
}

void ghp_instr_accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                        int index, struct ghp_accesses *accesses)
{
    const struct ghp_kind_facts *kind = ghp_kind_of(&program->instrs[index]);

    accesses->n = 0;
    if (kind->accesses != NULL) kind->accesses(lowering, program, index, accesses);
}

enum ghp_status ghp_lower_scratch(const struct ghp_lowering *lowering,
                                  const struct ghp_instr *instr, struct ghp_instr_scratch *scratch)
{
    *scratch = (struct ghp_instr_scratch){0};
    return ghp_kind_of(instr)->work != NULL ? ghp_kind_of(instr)->work(lowering, instr, scratch)
                                            : GHP_OK;
}

static enum ghp_status assign_scratch(struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    struct ghp_instr_scratch scratch;
    if (k->lowering->unplaced) return GHP_OK; /* asking how many bytes takes long */
    GHP_TRY(ghp_lower_scratch(k->lowering, instr, &scratch));
    GHP_TRY(scratch_for(k, instr, scratch.work_bytes, &instr->at.scratch));
    if (scratch.receive_bytes == 0) return GHP_OK; /* `saved` may be a pass's own */
    return scratch_for(k, instr, scratch.receive_bytes, &instr->at.saved);
}

/* ---- the tensors of program/liveness.h ---- */

/* What is to be made of a tensor that an instruction accesses. */
static struct ghp_buffer describe(const struct ghp_buffer_assignment *k,
                                  const struct ghp_instr *instr, struct ghp_access access)
{
    struct ghp_layout layout =
        instr->kind == GHP_INSTR_RESHARD ? instr->step.to : instr->transfer.to;
    enum ghp_buffer_kind buffer_kind = GHP_BUFFER_SCRATCH; /* between two steps */
    struct ghp_buffer buffer;
    switch (access.tensor) {
    case GHP_TENSOR_OUTPUT:
        return ghp_buffer_assignment_tensor(k, GHP_BUFFER_OUTPUT, access.of, layout);
    case GHP_TENSOR_SAVED:
        return ghp_describe_bytes(GHP_BUFFER_SAVED, access.of,
                                  ghp_local_saved_bytes(&instr->local, k->lowering->element_bytes));
    case GHP_TENSOR_STATS:
    case GHP_TENSOR_BACKWARD_STATS:
        return ghp_describe_bytes(GHP_BUFFER_STATS, access.of,
                                  ghp_local_stats_bytes(&instr->local));
    case GHP_TENSOR_SUMMAND:
        return ghp_buffer_assignment_describe_parameter(
            k, GHP_BUFFER_SCRATCH, instr->layer,
            k->program->buffers[k->gradients[access.of * GHP_MAX_PARAMS + access.slot]].elements);
    case GHP_TENSOR_WEIGHTS:
        return ghp_describe_bytes(
            GHP_BUFFER_WEIGHT_BUCKET, access.of,
            instr->in_bf16 ? instr->bytes / 2 * ghp_parameter_bytes(k->lowering->element_bytes)
                           : instr->bytes);
    case GHP_TENSOR_RING:
        return ghp_describe_bytes(GHP_BUFFER_SCRATCH, access.of,
                                  ghp_ring_bytes(instr, k->lowering->element_bytes));
    case GHP_TENSOR_LABELS:
        return ghp_describe_bytes(
            GHP_BUFFER_LABELS, access.of,
            ghp_labels_bytes(k->lowering->model, k->splits[access.of], k->placement.problem));
    case GHP_TENSOR_INPUT: buffer_kind = GHP_BUFFER_EDGE_INPUT; break;
    case GHP_TENSOR_EDGE_GRADIENT: buffer_kind = GHP_BUFFER_EDGE_GRADIENT_OUT; break;
    default: break;
    }
    buffer = ghp_buffer_assignment_tensor(k, buffer_kind,
                                          k->lowering->model->edges[instr->edge].from, layout);
    buffer.edge = instr->edge;
    return buffer;
}

/* The place that notes the buffer of a tensor; NULL: it is made elsewhere, or is another tensor's. */
static int *slot_of(struct ghp_buffer_assignment *k, const struct ghp_instr *instr,
                    struct ghp_access access)
{
    struct ghp_assigned_tensors *t = k->now;
    int of = access.of;
    switch (access.tensor) {
    case GHP_TENSOR_OUTPUT:
        return access.writes && instr->kind == GHP_INSTR_RECEIVE ? &t->y[of] : NULL;
    case GHP_TENSOR_INPUT:
        if (!access.writes) return NULL;
        return k->recompute ? &t->recompute_x[of] : &t->x[of];
    case GHP_TENSOR_EDGE_GRADIENT: return access.writes ? &t->dxr[of] : NULL;
    case GHP_TENSOR_BETWEEN: return &k->between;
    case GHP_TENSOR_SAVED:
        if (k->recompute || (instr->backward && t->recompute_saved[of] >= 0))
            return &t->recompute_saved[of];
        return &t->saved[of];
    case GHP_TENSOR_STATS: return &t->stats[2 * of];
    case GHP_TENSOR_BACKWARD_STATS: return &t->stats[2 * of + 1];
    case GHP_TENSOR_SUMMAND: return &k->partial[access.slot];
    case GHP_TENSOR_LABELS: return &t->labels;
    case GHP_TENSOR_WEIGHTS: return &k->gathered;
    case GHP_TENSOR_RING: return &k->ring;
    default: return NULL;
    }
}

static int buffer_of(const struct ghp_buffer_assignment *k, struct ghp_access access)
{
    switch (access.tensor) {
    case GHP_TENSOR_OUTPUT: return ghp_buffer_assignment_output(k, access.of);
    case GHP_TENSOR_INPUT: return ghp_buffer_assignment_input(k, access.of);
    case GHP_TENSOR_GRADIENT: return ghp_buffer_assignment_output_gradient(k, access.of);
    case GHP_TENSOR_INPUT_GRADIENT: return k->now->dx[access.of];
    case GHP_TENSOR_EDGE_GRADIENT: return ghp_buffer_assignment_edge_gradient(k, access.of);
    default: return -1;
    }
}

/* Every tensor that the instruction accesses gets the buffer it is in, made if it is not there. */
static enum ghp_status assign_tensors(struct ghp_buffer_assignment *k, int index)
{
    struct ghp_instr *instr = &k->program->instrs[index];
    int ids[sizeof instr->at / sizeof(int)];
    struct ghp_accesses accesses;
    memcpy(ids, &instr->at, sizeof ids);
    ghp_instr_accesses(k->lowering, k->program, index, &accesses);
    for (int i = 0; i < accesses.n; i++) {
        struct ghp_access access = accesses.access[i];
        int *slot = slot_of(k, instr, access);
        bool passing = access.tensor == GHP_TENSOR_BETWEEN || access.tensor == GHP_TENSOR_SUMMAND ||
                       access.tensor == GHP_TENSOR_WEIGHTS || access.tensor == GHP_TENSOR_RING;
        if (slot != NULL) {
            if (passing && access.writes) *slot = -1; /* each time another one */
            GHP_TRY(ghp_buffer_assignment_demand(k, slot, describe(k, instr, access)));
            ids[access.operand] = *slot;
            continue;
        }
        if (access.tensor == GHP_TENSOR_OUTPUT && access.writes)
            GHP_TRY(ghp_buffer_assignment_make_output(k, access.of));
        ids[access.operand] = buffer_of(k, access);
    }
    memcpy(&instr->at, ids, sizeof ids);
    return GHP_OK;
}

/* ---- what lives always ---- */

static int lasting(const struct ghp_buffer_assignment *k, const struct ghp_instr *instr,
                   enum ghp_lasting what)
{
    const struct ghp_bucket *bucket =
        instr->bucket >= 0 ? &k->program->buckets[instr->bucket] : NULL;
    bool in_bucket = what == GHP_LASTING_GRADIENTS || what == GHP_LASTING_WEIGHTS ||
                     what == GHP_LASTING_WEIGHT_SHARD;

    GHP_ASSERT(!in_bucket || bucket != NULL);
    switch (what) {
    case GHP_LASTING_GRADIENTS: return bucket->buffer;
    case GHP_LASTING_WEIGHTS: return bucket->weights;
    case GHP_LASTING_WEIGHT_SHARD: return bucket->weight_shard;
    case GHP_LASTING_RECEIVE: return k->receive;
    case GHP_LASTING_METRICS: return k->metrics;
    case GHP_LASTING_SQUARES: return k->squares;
    case GHP_LASTING_COPIES: return k->copies;
    case GHP_LASTING_PREFETCH: return k->prefetch;
    case GHP_LASTING_NONE: break;
    }
    return -1;
}

static void assign_lasting(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_kind_facts *kind = ghp_kind_of(instr);

    if (kind->x != GHP_LASTING_NONE) instr->at.x[0] = lasting(k, instr, kind->x);
    if (kind->y != GHP_LASTING_NONE) instr->at.y = lasting(k, instr, kind->y);
    if (kind->metrics != GHP_LASTING_NONE) instr->at.metrics = lasting(k, instr, kind->metrics);
    if (kind->scratch != GHP_LASTING_NONE) instr->at.scratch = lasting(k, instr, kind->scratch);
    if (kind->assign != NULL) kind->assign(k, instr);
}

/* The layer down to which gradients have to have names, at an instruction of the backward part. */
static int named_layer(const struct ghp_buffer_assignment *k, const struct ghp_instr *instr)
{
    return instr->edge < 0 ? instr->layer : k->lowering->model->edges[instr->edge].to;
}

static enum ghp_status assign_instr(struct ghp_buffer_assignment *k, int index)
{
    struct ghp_program *program = k->program;
    struct ghp_instr *instr = &program->instrs[index];
    /* whose layer may come later than what is computed around it */
    bool of_weights = instr->kind == GHP_INSTR_WAIT && instr->edge < 0;
    k->now = &k->micro[instr->micro];
    k->recompute = instr->recompute;
    if (instr->backward && instr->stream != GHP_STREAM_COMM && !of_weights)
        GHP_TRY(ghp_buffer_assignment_gradients(k, named_layer(k, instr)));
    GHP_TRY(assign_tensors(k, index));
    if (instr->kind == GHP_INSTR_GATHER) GHP_TRY(ghp_buffer_assignment_carve_gathered(k, instr));
    if (ghp_sharding_reduces_each(instr->sharding) && instr->stream == GHP_STREAM_COMPUTE)
        GHP_TRY(ghp_buffer_assignment_renew(k, instr));
    assign_lasting(k, instr);
    return assign_scratch(k, instr);
}

/* ---- lifetimes and waits ---- */

static void extend_life(struct ghp_program *program, int buffer, int point)
{
    if (buffer < 0) return;
    while (program->buffers[buffer].storage != buffer)
        buffer = program->buffers[buffer].storage;
    struct ghp_buffer *b = &program->buffers[buffer];
    if (b->persistent) return;
    if (point < b->first_point) b->first_point = point;
    if (point > b->last_point) b->last_point = point;
}

/* ghp_operands holds nothing but buffer ids, so it is walked as an array of them. */
static void extend_lives(struct ghp_program *program)
{
    _Static_assert(sizeof(struct ghp_operands) % sizeof(int) == 0, "operands are ints");
    for (int i = 0; i < program->n_instrs; i++) {
        int ids[sizeof(struct ghp_operands) / sizeof(int)];
        memcpy(ids, &program->instrs[i].at, sizeof ids);
        for (size_t j = 0; j < sizeof ids / sizeof ids[0]; j++)
            extend_life(program, ids[j], program->instrs[i].point);
    }
}

/* Updates wait for their bucket. The metrics of a step are taken where the next one's loss is about to add to them; in
 * stages without the loss at the end of the next step, where nobody has to wait for it. */
static enum ghp_status set_waits(struct ghp_program *program, int loss_layer)
{
    bool has_loss = ghp_placement_owns(&program->placement, loss_layer);
    int *reduction = ghp_alloc((size_t)program->n_buckets + 1, sizeof *reduction); /* of a bucket */
    int end = program->n_instrs - 1, metrics = -1, carry = -1;
    if (reduction == NULL) return GHP_NO_MEMORY();
    while (end > 0 && program->instrs[end].stream != GHP_STREAM_COMPUTE)
        end--;
    for (int b = 0; b < program->n_buckets; b++)
        reduction[b] = -1;
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *comm = &program->instrs[i];
        if (comm->stream != GHP_STREAM_COMM) continue;
        if (ghp_instr_reduces(comm)) reduction[comm->bucket] = i;
        if (comm->kind == GHP_INSTR_METRIC_REDUCE) metrics = i;
        if (comm->kind == GHP_INSTR_CARRY) carry = i;
    }
    for (int j = 0; j < program->n_instrs; j++) {
        struct ghp_instr *waits = &program->instrs[j];
        bool loss = waits->kind == GHP_INSTR_COMPUTE && waits->pass == GHP_PASS_FORWARD &&
                    waits->layer == loss_layer && waits->micro == 0;
        if (waits->kind == GHP_INSTR_UPDATE && waits->bucket >= 0)
            waits->wait = reduction[waits->bucket];
        if (waits->kind == GHP_INSTR_MIX) waits->wait = carry;
        if (metrics >= 0 && (has_loss ? loss : j == end)) waits->wait = metrics;
    }
    free(reduction);
    return GHP_OK;
}

/* ---- the whole ---- */

enum ghp_status ghp_buffers_assign(const struct ghp_lowering *lowering,
                                   const struct ghp_split *splits,
                                   const struct ghp_bucket_plan *buckets,
                                   struct ghp_program *program)
{
    struct ghp_buffer_assignment k;
    enum ghp_status status = GHP_OK;

    GHP_TRY(ghp_buffer_assignment_open(lowering, splits, buckets, program, &k));
    for (int i = 0; i < program->n_instrs && status == GHP_OK; i++)
        status = assign_instr(&k, i);
    ghp_buffer_assignment_close(&k);
    if (status != GHP_OK) return status;
    extend_lives(program);
    return set_waits(program, lowering->model->n_layers - 1);
}
