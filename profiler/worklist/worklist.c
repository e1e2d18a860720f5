/* profiler/worklist/worklist.c - collects what plans ask for, thins sizes of collectives to a grid, orders by value. */
#include "profiler/worklist/worklist.h"

#include "core/base/array.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXACT_SIZES = 12,  /* a kind of collective with no more sizes is measured at these very sizes */
    GRID_START = 1024, /* [bytes]; smaller messages cost the latency, whatever their size */
    /* steps of 2 between these: there messages begin to go by rendezvous */
    GRID_FINE = 32 << 10,
    GRID_COARSE = 1 << 20,
    /* from this size on, a message between two ranks goes by rendezvous (Open MPI's btl_tcp_eager_limit): a jump, so
     * the last size before it is measured as well */
    GRID_RENDEZVOUS = 64 << 10,
    GRID_EAGER = 63 << 10,
    /* shorter messages may pass a limited link as a burst, faster than its rate: weights of workers go in one message,
     * and queue at a server's port, so a pair's rate is taken by one that shows it */
    LONG_MESSAGE = 1 << 20
};

static enum ghp_status add_op(struct ghp_worklist *worklist, const struct ghp_worklist_op *op)
{
    GHP_TRY_ROOM(worklist->ops, worklist->n_ops, worklist->max_ops);
    worklist->ops[worklist->n_ops++] = *op;
    return GHP_OK;
}

static enum ghp_status add_comm(struct ghp_worklist *worklist, const struct ghp_worklist_comm *comm)
{
    GHP_TRY_ROOM(worklist->comms, worklist->n_comms, worklist->max_comms);
    worklist->comms[worklist->n_comms++] = *comm;
    return GHP_OK;
}

/* The enumeration of one (model, extent). */
struct collecting {
    const struct ghp_worklist_request *request;
    struct ghp_problem problem;
    struct ghp_worklist *worklist;
    const struct ghp_model *model;
    double step_bytes; /* of the model so far */
    bool shares;       /* the extent is one worker with its own share */
};

/* Whether no other worker shares a batch norm's statistics; if ghost batches do, they may be shared or not. */
static bool own_statistics(const struct collecting *c, const struct ghp_local *local)
{
    return c->request->workers == 1 || local->norm.local_stats;
}

static enum ghp_status visit_op(void *context, const struct ghp_space_local *item)
{
    struct collecting *c = context;
    const struct ghp_fuse_scope scope = {.local_stats = own_statistics(c, &item->local),
                                         .fuses = c->request->fuses,
                                         .masks = c->request->masks};
    struct ghp_worklist_op op = {
        .local = item->local,
        .pass = item->pass,
        .value = GHP_VALUE_REST,
        .n_variants = 1,
        .epilogue = ghp_fuse_usual(c->model, item->layer, item->pass, scope),
        .fused = ghp_fuse_always(c->model, item->layer, item->pass, scope)};

    if (c->shares)
        op.value = GHP_VALUE_DATA;
    else if (c->problem.workers == c->request->workers)
        op.value = item->split.kind == GHP_SPLIT_DATA ? GHP_VALUE_DATA : GHP_VALUE_SPLIT;
    ghp_local_key(&item->local, op.key);
    op.flops = (double)ghp_local_flops(&item->local, item->pass);
    op.bytes = (double)ghp_local_bytes(&item->local, item->pass, c->request->element_bytes);
    if (item->split.kind == GHP_SPLIT_DATA) c->step_bytes += op.bytes;
    return add_op(c->worklist, &op);
}

static enum ghp_status visit_comm(void *context, const struct ghp_space_comm *item)
{
    const struct collecting *c = context;
    struct ghp_worklist_comm comm = {
        .op = item->op, .count = item->count, .stride = item->stride, .bytes = item->bytes};

    if ((int64_t)item->count * item->stride > c->request->ranks) return GHP_OK;
    GHP_TRY(add_comm(c->worklist, &comm));
    if (item->stream != GHP_STREAM_COMM || item->bytes >= c->request->bucket_bytes) return GHP_OK;
    comm.bytes = c->request->bucket_bytes; /* gradients of several layers together */
    return add_comm(c->worklist, &comm);
}

static enum ghp_status collect_problem(struct collecting *c)
{
    for (int i = 0; i < c->request->n_models; i++) {
        const struct ghp_model *model = &c->request->models[i];
        int first = c->worklist->n_ops;

        c->model = model;
        c->step_bytes = 0;
        GHP_TRY(ghp_space_locals(model, c->problem, visit_op, c));
        for (int o = first; o < c->worklist->n_ops; o++)
            c->worklist->ops[o].step_bytes = c->step_bytes;
        GHP_TRY(ghp_space_comms(model, c->problem, c->request->element_bytes, visit_comm, c));
    }
    return GHP_OK;
}

/* What workers of unlike speeds compute, each over its share of the batch. */
static enum ghp_status collect_shares(struct collecting *c, int64_t batch)
{
    int workers = c->request->workers;
    const double *speed =
        c->request->speeds != NULL ? ghp_speeds_of(c->request->speeds, workers) : NULL;
    int64_t *shares;
    enum ghp_status status = GHP_OK;

    if (speed == NULL) return GHP_OK;
    shares = ghp_alloc((size_t)workers, sizeof *shares);
    if (shares == NULL) return GHP_NO_MEMORY();
    ghp_speeds_deal(speed, workers, 1, batch, shares);
    c->shares = true;
    for (int r = 0; r < workers && status == GHP_OK; r++) {
        bool known = false;

        for (int i = 0; i < r && !known; i++)
            known = shares[i] == shares[r];
        c->problem = (struct ghp_problem){.workers = 1, .global_batch = shares[r]};
        if (!known) status = collect_problem(c);
    }
    c->shares = false;
    free(shares);
    return status;
}

static int by_key(const void *a, const void *b)
{
    const struct ghp_worklist_op *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    if (order != 0) return order;
    if (x->pass != y->pass) return (int)x->pass - (int)y->pass;
    return (int)x->value - (int)y->value;
}

/* Keeps the most valuable of equal operations. */
static void merge_ops(struct ghp_worklist *worklist)
{
    int kept = 0;

    if (worklist->n_ops == 0) return;
    qsort(worklist->ops, (size_t)worklist->n_ops, sizeof *worklist->ops, by_key);
    for (int i = 1; i < worklist->n_ops; i++) {
        const struct ghp_worklist_op *op = &worklist->ops[i];
        struct ghp_worklist_op *last = &worklist->ops[kept];

        if (last->pass != op->pass || strcmp(last->key, op->key) != 0) {
            worklist->ops[++kept] = *op;
            continue;
        }
        last->fused = last->fused && op->fused;
        if (op->step_bytes > last->step_bytes) last->step_bytes = op->step_bytes;
    }
    worklist->n_ops = kept + 1;
}

/* Operations that differ in the batch only make a family. */
static int by_family(const void *a, const void *b)
{
    const struct ghp_worklist_op *x = a, *y = b;
    struct ghp_local u = x->local, v = y->local;
    char ku[GHP_KEY_BYTES], kv[GHP_KEY_BYTES];
    int order = 0;

    u.n = 0;
    v.n = 0;
    ghp_local_key(&u, ku);
    ghp_local_key(&v, kv);
    order = strcmp(ku, kv);
    if (order != 0) return order;
    if (x->pass != y->pass) return (int)x->pass - (int)y->pass;
    if (x->value != y->value) return (int)x->value - (int)y->value;
    return (x->local.n > y->local.n) - (x->local.n < y->local.n); /* the cheapest second size */
}

bool ghp_worklist_is_family(const struct ghp_worklist_op *x, const struct ghp_worklist_op *y)
{
    struct ghp_local u = x->local, v = y->local;
    char ku[GHP_KEY_BYTES], kv[GHP_KEY_BYTES];

    if (x->pass != y->pass || u.op != v.op || u.c != v.c || u.k != v.k) return false;
    u.n = 0;
    v.n = 0;
    ghp_local_key(&u, ku);
    ghp_local_key(&v, kv);
    return strcmp(ku, kv) == 0;
}

/* Raises one more member of families that N workers alone would know at one batch size. */
static void mark_seconds(struct ghp_worklist *worklist)
{
    int first = 0;

    qsort(worklist->ops, (size_t)worklist->n_ops, sizeof *worklist->ops, by_family);
    for (int i = 1; i <= worklist->n_ops; i++) {
        struct ghp_worklist_op *family = &worklist->ops[first];

        if (i < worklist->n_ops && ghp_worklist_is_family(family, &worklist->ops[i])) continue;
        if (i - first >= 2 && family[0].value != GHP_VALUE_REST &&
            family[1].value == GHP_VALUE_REST)
            family[1].value = GHP_VALUE_SECOND;
        first = i;
    }
}

static int by_value(const void *a, const void *b)
{
    const struct ghp_worklist_op *x = a, *y = b;

    if (x->value != y->value) return (int)x->value - (int)y->value;
    if (x->flops < y->flops || x->flops > y->flops) return x->flops > y->flops ? -1 : 1;
    if (x->bytes < y->bytes || x->bytes > y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return by_key(a, b);
}

int ghp_worklist_compare_comms(const void *a, const void *b)
{
    const struct ghp_worklist_comm *x = a, *y = b;

    if (x->op != y->op) return (int)x->op - (int)y->op;
    if (x->count != y->count) return x->count - y->count;
    if (x->stride != y->stride) return x->stride - y->stride;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Small ones first: what a budget does not reach is then the large end of tables, which their analytic model
 * continues. */
static int by_bytes(const void *a, const void *b)
{
    const struct ghp_worklist_comm *x = a, *y = b;

    if (x->bytes != y->bytes) return x->bytes > y->bytes ? 1 : -1;
    return ghp_worklist_compare_comms(a, b);
}

static bool same_kind(const struct ghp_worklist_comm *x, const struct ghp_worklist_comm *y)
{
    return x->op == y->op && x->count == y->count && x->stride == y->stride;
}

/* The grid's next size. */
static int64_t grid_next(int64_t size)
{
    return size * (size >= GRID_FINE && size < GRID_COARSE ? 2 : GHP_COMM_GRID_STEP);
}

/* Two others that are far apart, and the bytes that a collective of their kind moves a multiple of. */
struct gap {
    const struct ghp_worklist_comm *from, *to;
    int64_t multiple;
};

static enum ghp_status add_between(const struct gap *gap, int64_t size,
                                   struct ghp_worklist *thinned)
{
    struct ghp_worklist_comm comm = *gap->from;

    comm.bytes = size / gap->multiple * gap->multiple;
    if (comm.bytes < 2 * gap->from->bytes || comm.bytes > gap->to->bytes / 2) return GHP_OK;
    return add_comm(thinned, &comm);
}

/* The grid's sizes between two others, and those where messages of the kind's ranks begin to go by rendezvous. */
static enum ghp_status fill_gap(const struct ghp_worklist_comm *from,
                                const struct ghp_worklist_comm *to, int element_bytes,
                                struct ghp_worklist *thinned)
{
    struct gap gap = {from, to, (int64_t)from->count * element_bytes};
    const int64_t rendezvous = (int64_t)from->count * GRID_RENDEZVOUS;
    bool on_grid = false;

    for (int64_t size = GRID_START; size <= to->bytes / 2; size = grid_next(size)) {
        GHP_TRY(add_between(&gap, size, thinned));
        on_grid |= size == rendezvous;
    }
    GHP_TRY(add_between(&gap, (int64_t)from->count * GRID_EAGER, thinned));
    return on_grid ? GHP_OK : add_between(&gap, rendezvous, thinned);
}

/* Sizes of one kind, ascending: themselves if few, with the grid's in gaps; else the grid's from the smallest to the
 * largest. */
static enum ghp_status thin_kind(const struct ghp_worklist_comm *kind, int n, int element_bytes,
                                 struct ghp_worklist *thinned)
{
    int step = n <= EXACT_SIZES ? 1 : n - 1;

    for (int i = 0; i + step < n; i += step) {
        GHP_TRY(add_comm(thinned, &kind[i]));
        GHP_TRY(fill_gap(&kind[i], &kind[i + step], element_bytes, thinned));
    }
    return add_comm(thinned, &kind[n - 1]);
}

/* A long message, if a kind between the fewest ranks has none. */
static enum ghp_status add_long(const struct ghp_worklist_comm *longest, int fewest,
                                struct ghp_worklist *thinned)
{
    struct ghp_worklist_comm comm = *longest;

    comm.bytes = (int64_t)comm.count * LONG_MESSAGE;
    return comm.count > fewest || comm.bytes <= longest->bytes ? GHP_OK : add_comm(thinned, &comm);
}

static enum ghp_status thin_comms(struct ghp_worklist *worklist, int element_bytes)
{
    struct ghp_worklist thinned = {0};
    enum ghp_status status = GHP_OK;
    int kept = 0, first = 0, fewest = INT_MAX;

    if (worklist->n_comms == 0) return GHP_OK;
    for (int i = 0; i < worklist->n_comms; i++)
        if (worklist->comms[i].count < fewest) fewest = worklist->comms[i].count;
    qsort(worklist->comms, (size_t)worklist->n_comms, sizeof *worklist->comms,
          ghp_worklist_compare_comms);
    for (int i = 1; i < worklist->n_comms; i++)
        if (ghp_worklist_compare_comms(&worklist->comms[kept], &worklist->comms[i]) != 0)
            worklist->comms[++kept] = worklist->comms[i];
    worklist->n_comms = kept + 1;
    for (int i = 1; i <= worklist->n_comms && status == GHP_OK; i++) {
        if (i < worklist->n_comms && same_kind(&worklist->comms[first], &worklist->comms[i]))
            continue;
        status = thin_kind(&worklist->comms[first], i - first, element_bytes, &thinned);
        if (status == GHP_OK) status = add_long(&worklist->comms[i - 1], fewest, &thinned);
        first = i;
    }
    free(worklist->comms);
    worklist->comms = thinned.comms;
    worklist->n_comms = thinned.n_comms;
    worklist->max_comms = thinned.max_comms;
    if (worklist->n_comms > 0)
        qsort(worklist->comms, (size_t)worklist->n_comms, sizeof *worklist->comms, by_bytes);
    return status;
}

static enum ghp_status add_named(const struct ghp_worklist_request *request,
                                 struct ghp_worklist *worklist)
{
    int64_t longest = 0;

    for (int i = 0; i < worklist->n_comms; i++)
        if (worklist->comms[i].bytes > longest) longest = worklist->comms[i].bytes;
    for (int i = 0; i < request->n_named; i++) {
        const struct ghp_worklist_comm *comm = &request->named[i];

        if ((int64_t)comm->count * comm->stride <= request->ranks && comm->bytes <= longest &&
            comm->bytes % ((int64_t)comm->count * request->element_bytes) == 0)
            GHP_TRY(add_comm(worklist, comm));
    }
    return GHP_OK;
}

static enum ghp_status collect(const struct ghp_worklist_request *request,
                               struct ghp_worklist *worklist)
{
    for (int b = 0; b < request->n_batches; b++) {
        struct collecting c = {.request = request, .worklist = worklist};

        c.problem.global_batch = request->batches[b];
        c.problem.workers = request->workers;
        GHP_TRY(ghp_problem_check(c.problem));
        for (int i = 0; i < request->n_models; i++)
            GHP_TRY(
                ghp_model_check_sizes(&request->models[i], request->batches[b], request->workers));
        for (int n = 1; n <= request->workers; n++) {
            c.problem.workers = n;
            if (ghp_problem_check(c.problem) == GHP_OK) GHP_TRY(collect_problem(&c));
        }
        GHP_TRY(collect_shares(&c, request->batches[b]));
    }
    merge_ops(worklist);
    mark_seconds(worklist);
    qsort(worklist->ops, (size_t)worklist->n_ops, sizeof *worklist->ops, by_value);
    GHP_TRY(add_named(request, worklist));
    return thin_comms(worklist, request->element_bytes);
}

enum ghp_status ghp_worklist_collect(const struct ghp_worklist_request *request,
                                     struct ghp_worklist *worklist)
{
    enum ghp_status status = GHP_OK;

    memset(worklist, 0, sizeof *worklist);
    status = collect(request, worklist);
    if (status != GHP_OK) ghp_worklist_release(worklist);
    return status;
}

void ghp_worklist_release(struct ghp_worklist *worklist)
{
    free(worklist->ops);
    free(worklist->comms);
    memset(worklist, 0, sizeof *worklist);
}

int ghp_worklist_draw(const struct ghp_worklist *worklist,
                      double (*weight)(const struct ghp_worklist_op *op), int most,
                      const struct ghp_worklist_op **ops)
{
    double all = 0, passed = 0, drawn = 0.5;
    int n = 0;

    for (int i = 0; i < worklist->n_ops; i++)
        all += weight(&worklist->ops[i]);
    for (int i = 0; i < worklist->n_ops && n < most; i++) {
        double own = weight(&worklist->ops[i]);

        passed += own;
        if (!(own > 0) || passed < all * drawn / most) continue;
        ops[n++] = &worklist->ops[i];
        while (passed >= all * drawn / most)
            drawn += 1;
    }
    return n;
}
