/* core/program/lower/gather.c - when sharded weights are gathered, and when reductions of sharded gradients are waited
 * for.
 *
 * Neither buffer lives always, so the list says when each is there and when it is free again. A *use* is one run of
 * COMPUTEs that read the same gathered weights: of a pass, a micro-batch or a step, as the layer's sharding says. A use
 * begins with a wait; its gather is posted before the heavy layer that is computed next before it, so that both run at
 * the same time. What is gathered for two uses with no heavy layer between them is gathered once. In the same way a
 * reduction runs during the heavy layer that is computed next, and is waited for after it. A layer is heavy if it has a
 * matrix of weights: a bias or a norm takes too little time to hide a gather. */
#include "core/program/lower/gather.h"

#include "core/base/array.h"

#include <stdlib.h>

/* One instruction to be put before another. */
struct insertion {
    int before;
    int first; /* of the gather's own wait and update, and of the reduction's: the order among them */
    struct ghp_instr instr;
    int after; /* the insertion that the instruction waits for; -1: as the instruction says */
};

struct use { /* of an owner of parameters: the latest one */
    bool open;
    int layer, micro, last; /* last: the COMPUTE that has read it last */
    bool backward;
    int gather; /* insertion */
};

struct gathering {
    const struct ghp_emitter *e;
    struct use *uses; /* a layer */
    struct insertion *list;
    int n, max;
};

static int owner_of(const struct gathering *g, int layer)
{
    return ghp_model_owner(g->e->lowering->model, layer);
}

static bool is_heavy(const struct gathering *g, const struct ghp_instr *instr)
{
    const struct ghp_layer *owner;

    if (instr->kind != GHP_INSTR_COMPUTE) return false;
    owner = &g->e->lowering->model->layers[owner_of(g, instr->layer)];
    for (int p = 0; p < owner->n_params; p++) {
        int wide = 0;

        for (int d = 0; d < owner->params[p].n_dims; d++)
            wide += owner->params[p].dims[d] > 1;
        if (wide > 1) return true;
    }
    return false;
}

/* Whether it reads weights that are gathered. */
static bool reads_gathered(const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_COMPUTE && ghp_sharding_gathers(instr->sharding) &&
           (ghp_op_uses(instr->local.op, instr->pass) & GHP_AT_W) != 0;
}

static struct insertion *put(struct gathering *g, int before, struct ghp_instr *instr)
{
    struct insertion *grown = ghp_array_grow(g->list, g->n, &g->max, sizeof *g->list);

    if (grown == NULL) return NULL;
    g->list = grown;
    g->list[g->n] = (struct insertion){before, g->n, *instr, -1};
    return &g->list[g->n++];
}

/* Takes the instruction that the emitter has just appended off the program's end again. */
static struct ghp_instr take_last(const struct gathering *g)
{
    return g->e->program->instrs[--g->e->program->n_instrs];
}

/* ---- gathers ---- */

/* The instruction at which i's weights are read. A kernel that does a bias along with the product before it reads the
 * bias there. */
static int reading_place(const struct gathering *g, int i)
{
    const struct ghp_instr *instrs = g->e->program->instrs;
    const struct ghp_layer *layer = &g->e->lowering->model->layers[instrs[i].layer];
    int before = i - 1;

    if (instrs[i].local.op != GHP_OP_BIAS || instrs[i].pass != GHP_PASS_FORWARD) return i;
    while (before >= 0 && (instrs[before].kind == GHP_INSTR_UPDATE ||
                           (instrs[before].kind == GHP_INSTR_WAIT && instrs[before].edge < 0)))
        before--;
    return before >= 0 && instrs[before].kind == GHP_INSTR_COMPUTE &&
                   instrs[before].pass == GHP_PASS_FORWARD &&
                   instrs[before].layer == layer->inputs[0]
               ? before
               : i;
}

/* The heavy COMPUTE of another owner that is next before i, but not before `end`; end - 1: none. */
static int heavy_before(const struct gathering *g, int i, int end, int owner)
{
    const struct ghp_instr *instrs = g->e->program->instrs;

    while (--i >= end)
        if (is_heavy(g, &instrs[i]) && owner_of(g, instrs[i].layer) != owner) break;
    return i < end ? end - 1 : i;
}

/* The first COMPUTE of the run that i is in: passes of the same layer and direction. */
static int run_begin(const struct gathering *g, int i, int end)
{
    const struct ghp_instr *instrs = g->e->program->instrs, *of = &instrs[i];
    int begin = i;

    while (--i >= end) {
        if (instrs[i].kind != GHP_INSTR_COMPUTE) continue;
        if (instrs[i].layer != of->layer || instrs[i].backward != of->backward ||
            instrs[i].micro != of->micro)
            break;
        begin = i;
    }
    return begin;
}

static bool same_use(const struct use *use, const struct ghp_instr *instr)
{
    bool backward = instr->backward || instr->recompute;

    if (instr->sharding == GHP_SHARDING_STEP) return true;
    if (use->micro != instr->micro) return false;
    return instr->sharding == GHP_SHARDING_MICRO_BATCH ||
           (use->layer == instr->layer && use->backward == backward);
}

/* The update of a step's shard, before its first gather. */
static enum ghp_status put_update(struct gathering *g, int before, int owner, int bucket, int point)
{
    const struct ghp_bucket_range *range = &g->e->buckets->ranges[bucket];
    struct ghp_instr *update = ghp_emitter_add_update(g->e, owner, range->shard_bytes, point);
    struct ghp_instr copy;

    if (update == NULL) return GHP_NO_MEMORY();
    update->bucket = bucket;
    update->ranks = ghp_bucket_ranks(g->e->lowering, &g->e->placement, range);
    update->sharding = range->sharding;
    update->micro = 0;
    copy = take_last(g);
    return put(g, before, &copy) != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static enum ghp_status put_wait(struct gathering *g, int before, const struct ghp_instr *of,
                                int point, int after)
{
    struct ghp_instr *wait = ghp_emitter_add(g->e, GHP_INSTR_WAIT, point), copy;
    struct insertion *place;

    if (wait == NULL) return GHP_NO_MEMORY();
    wait->layer = of->layer;
    wait->backward = of->backward;
    wait->micro = of->micro;
    copy = take_last(g);
    place = put(g, before, &copy);
    if (place == NULL) return GHP_NO_MEMORY();
    place->after = after;
    return GHP_OK;
}

/* A use begins with instruction i: its gather, and the wait for it. */
static enum ghp_status begin_use(struct gathering *g, int i, struct use *use)
{
    const struct ghp_instr reader = g->e->program->instrs[i];
    int owner = owner_of(g, reader.layer), bucket = g->e->buckets->of_layer[owner];
    int read = reading_place(g, i), end = use->open ? use->last + 1 : 0;
    int heavy = heavy_before(g, read, end, owner),
        at = heavy < end ? end : run_begin(g, heavy, end);
    int point = g->e->program->instrs[at].point;
    struct ghp_instr *gather, copy;

    if (!use->open && !g->e->lowering->forward_only)
        GHP_TRY(put_update(g, at, owner, bucket, point));
    gather = ghp_emitter_add_gather(g->e, owner, bucket, &g->e->buckets->ranges[bucket], point);
    if (gather == NULL) return GHP_NO_MEMORY();
    gather->micro = reader.micro;
    gather->backward = reader.backward || reader.recompute;
    copy = take_last(g);
    if (put(g, at, &copy) == NULL) return GHP_NO_MEMORY();
    *use = (struct use){.open = true,
                        .layer = reader.layer,
                        .micro = reader.micro,
                        .backward = reader.backward || reader.recompute,
                        .gather = g->n - 1};
    return put_wait(g, read, &copy, reader.point, use->gather);
}

static enum ghp_status note_use(struct gathering *g, int i)
{
    const struct ghp_instr *instr = &g->e->program->instrs[i];
    struct use *use = &g->uses[owner_of(g, instr->layer)];
    int owner = owner_of(g, instr->layer);

    if (!use->open ||
        (!same_use(use, instr) && heavy_before(g, i, use->last + 1, owner) > use->last))
        GHP_TRY(begin_use(g, i, use));
    use->last = i;
    use->layer = g->e->program->instrs[i].layer;
    use->micro = g->e->program->instrs[i].micro;
    use->backward = g->e->program->instrs[i].backward || g->e->program->instrs[i].recompute;
    return GHP_OK;
}

/* ---- reductions ---- */

/* The place after the run of the heavy layer that computes next after reduction i. If there is none it is the end, and
 * if norms of all gradients come first, the place before these. */
static int place_behind(const struct gathering *g, int i)
{
    const struct ghp_program *program = g->e->program;
    const struct ghp_instr *instrs = program->instrs;
    int layer = instrs[i].layer, at = i + 1, behind = -1, of = -1;

    for (; at < program->n_instrs; at++) {
        if (instrs[at].kind == GHP_INSTR_NORM) return behind >= 0 ? behind : at;
        if (instrs[at].kind != GHP_INSTR_COMPUTE) continue;
        if (behind >= 0 && instrs[at].layer != of) return behind;
        if (behind < 0 && (!is_heavy(g, &instrs[at]) || instrs[at].layer == layer)) continue;
        of = instrs[at].layer;
        behind = at + 1;
    }
    return behind >= 0 ? behind : program->n_instrs;
}

/* The wait for a reduction; a further micro-batch's is then added to the optimizer shard. */
static enum ghp_status note_reduction(struct gathering *g, int i)
{
    const struct ghp_instr reduction = g->e->program->instrs[i];
    int at = place_behind(g, i), wait = g->n;
    int point = g->e->program->instrs[at - 1].point;
    struct ghp_instr *sum, copy;

    GHP_TRY(put_wait(g, at, &reduction, point, -1));
    g->list[wait].instr.after = i;
    if (reduction.micro == 0 || !ghp_sharding_reduces_each(reduction.sharding)) return GHP_OK;
    sum = ghp_emitter_add(g->e, GHP_INSTR_ACCUMULATE, point);
    if (sum == NULL) return GHP_NO_MEMORY();
    sum->layer = reduction.layer;
    sum->backward = true;
    sum->micro = reduction.micro;
    sum->pass = GHP_PASS_BACKWARD_WEIGHT;
    sum->bucket = reduction.bucket;
    sum->bytes = g->e->buckets->ranges[reduction.bucket].shard_bytes;
    sum->after = i;
    copy = take_last(g);
    return put(g, at, &copy) != NULL ? GHP_OK : GHP_NO_MEMORY();
}

/* ---- the new list ---- */

static int by_place(const void *a, const void *b)
{
    const struct insertion *x = a, *y = b;

    if (x->before != y->before) return x->before < y->before ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Puts all in; `moved` and `placed`: where old instructions and insertions, by their order of making, come to stand. */
static enum ghp_status merge(struct gathering *g, int *moved, int *placed)
{
    struct ghp_program *program = g->e->program;
    int old = program->n_instrs, n = old + g->n, k = 0, at = 0;
    struct ghp_instr *list = ghp_alloc((size_t)n + 1, sizeof *list);

    if (list == NULL) return GHP_NO_MEMORY();
    qsort(g->list, (size_t)g->n, sizeof *g->list, by_place);
    for (int i = 0; i <= old; i++) {
        for (; k < g->n && g->list[k].before == i; k++) {
            placed[g->list[k].first] = at;
            list[at++] = g->list[k].instr;
        }
        if (i < old) moved[i] = at;
        if (i < old) list[at++] = program->instrs[i];
    }
    for (int i = 0; i < n; i++)
        if (list[i].after >= 0) list[i].after = moved[list[i].after];
    for (k = 0; k < g->n; k++)
        if (g->list[k].after >= 0) list[placed[g->list[k].first]].after = placed[g->list[k].after];
    free(program->instrs);
    program->instrs = list;
    program->n_instrs = n;
    program->max_instrs = n + 1;
    return GHP_OK;
}

static enum ghp_status find_all(struct gathering *g)
{
    const struct ghp_program *program = g->e->program;
    enum ghp_status status = GHP_OK;

    for (int i = 0; i < program->n_instrs && status == GHP_OK; i++) {
        const struct ghp_instr *instr = &program->instrs[i];

        if (reads_gathered(instr))
            status = note_use(g, i);
        else if (ghp_instr_reduces(instr) && instr->sharding != GHP_SHARDING_NONE &&
                 (i + 1 == program->n_instrs || instr[1].kind != GHP_INSTR_SHARD_REDUCE))
            status = note_reduction(g, i); /* of one over groups, too, the second one */
    }
    return status;
}

enum ghp_status ghp_emit_gathers(const struct ghp_emitter *e)
{
    struct gathering g = {.e = e};
    int *moved = NULL;
    enum ghp_status status;

    g.uses = ghp_alloc((size_t)e->lowering->model->n_layers, sizeof *g.uses);
    status = g.uses == NULL ? GHP_NO_MEMORY() : find_all(&g);
    if (status == GHP_OK && g.n > 0) {
        moved = ghp_alloc((size_t)(e->program->n_instrs + g.n), sizeof *moved);
        status = moved == NULL ? GHP_NO_MEMORY() : merge(&g, moved, moved + e->program->n_instrs);
    }
    free(moved);
    free(g.uses);
    free(g.list);
    return status;
}
