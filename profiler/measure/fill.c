/* profiler/measure/fill.c - see measure/fill.h. */
#include "profiler/measure/fill.h"

#include "executor/engine/kernel_spec.h"
#include "profiler/worklist/analytic_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How far a model is from what was measured: twice the mean error by seconds, as spreads are of quartiles; of hardly
 * anything all of it. */
struct misfit {
    int n;
    double seconds, off_s;
};

enum { LEAST_POINTS = 4 };

static void misfit_add(struct misfit *misfit, double predicted_s, double measured_s)
{
    if (!(predicted_s > 0)) return;
    misfit->n++;
    misfit->seconds += measured_s;
    misfit->off_s += fabs(predicted_s - measured_s);
}

static double misfit_spread(const struct misfit *misfit)
{
    if (misfit->n < LEAST_POINTS || !(misfit->seconds > 0)) return 1;
    return fmin(2 * misfit->off_s / misfit->seconds, 2);
}

/* Its entry, if it was measured; else NULL. */
static const struct ghp_op_entry *measured_of(const struct ghp_profile *profile,
                                              const struct ghp_worklist_op *op)
{
    const struct ghp_op_entry *entry = ghp_profile_find(profile, op->key, op->pass);

    return entry != NULL && entry->source == GHP_SOURCE_MEASURED && entry->seconds > 0 ? entry
                                                                                       : NULL;
}

static void note_misfit(const struct ghp_worklist *worklist, struct ghp_profile *profile)
{
    struct ghp_analytic_model *model = &profile->analytic;
    struct misfit misfit = {0};

    for (int i = 0; i < worklist->n_ops; i++) {
        const struct ghp_worklist_op *op = &worklist->ops[i];
        const struct ghp_op_entry *entry = measured_of(profile, op);
        double rate = op->flops > 0 ? model->flops_per_s : model->memory_Bps;

        if (entry != NULL && rate > 0)
            misfit_add(&misfit, (op->flops > 0 ? op->flops : op->bytes) / rate, entry->seconds);
    }
    model->spread = misfit_spread(&misfit);
}

void ghp_measure_fit_analytic(const struct ghp_worklist *worklist, struct ghp_profile *profile)
{
    double flops = 0, flop_s = 0, bytes = 0, byte_s = 0;

    for (int i = 0; i < worklist->n_ops; i++) {
        const struct ghp_worklist_op *op = &worklist->ops[i];
        const struct ghp_op_entry *entry = measured_of(profile, op);

        if (entry == NULL) continue;
        flops += op->flops;
        if (op->flops > 0) flop_s += entry->seconds;
        if (op->flops > 0) continue;
        bytes += op->bytes;
        byte_s += entry->seconds;
    }
    if (flop_s > 0) profile->analytic.flops_per_s = flops / flop_s;
    if (byte_s > 0) profile->analytic.memory_Bps = bytes / byte_s;
    note_misfit(worklist, profile);
}

/* What the entries of operations that the budget did not reach are made from. */
struct filling {
    const struct ghp_measure *m;
    const struct ghp_worklist *worklist;
    const struct ghp_profile *profile;
    struct ghp_analytic_op laws;
    double spread, sibling_spread; /* of seconds by the laws alone, and through a sibling */
};

/* How many times as much is done as was asked for: processors do neighbouring channels of a pixel at once, those of
 * what an operation writes, and the last of them idle. */
static double padded(const struct filling *f, const struct ghp_worklist_op *op)
{
    const struct ghp_local *local = &op->local;
    bool by_outputs = local->op == GHP_OP_CONV2D && op->pass != GHP_PASS_BACKWARD_DATA;
    int64_t channels = by_outputs ? local->k : local->c, whole;

    if (ghp_measure_device(f->m).ops != NULL || local->op == GHP_OP_LINEAR ||
        local->h * local->w == 1 || channels == 0)
        return 1;
    whole = (channels + GHP_BLOCK_CHANNELS - 1) / GHP_BLOCK_CHANNELS * GHP_BLOCK_CHANNELS;
    return (double)whole / (double)channels;
}

static struct ghp_op_work work_of(const struct filling *f, const struct ghp_worklist_op *op)
{
    double times = padded(f, op);

    return (struct ghp_op_work){op->local.op, op->pass, times * op->flops, times * op->bytes};
}

static void note_laws(struct filling *f)
{
    for (int i = 0; i < f->worklist->n_ops; i++) {
        const struct ghp_worklist_op *op = &f->worklist->ops[i];
        const struct ghp_op_entry *entry = measured_of(f->profile, op);
        const struct ghp_op_work work = work_of(f, op);

        if (entry != NULL) ghp_analytic_op_add(&f->laws, &work, entry->seconds);
    }
}

/* The same operation over the samples nearest to these in proportion, measured; NULL: none. */
static const struct ghp_worklist_op *sibling_of(const struct ghp_worklist *worklist,
                                                const struct ghp_profile *profile,
                                                const struct ghp_worklist_op *op)
{
    const struct ghp_worklist_op *best = NULL;
    double nearest = 0;

    for (int i = 0; i < worklist->n_ops; i++) {
        const struct ghp_worklist_op *other = &worklist->ops[i];
        double apart = fabs(log((double)other->local.n / (double)op->local.n));

        if (other == op || (best != NULL && apart >= nearest) ||
            !ghp_worklist_is_family(op, other) || measured_of(profile, other) == NULL)
            continue;
        best = other;
        nearest = apart;
    }
    return best;
}

/* Seconds by the analytic model of the operation's own kind, through a sibling's if there is one. */
static double analytic_s(const struct filling *f, const struct ghp_worklist_op *op,
                         const struct ghp_worklist_op *sibling, double otherwise_s)
{
    const struct ghp_op_work work = work_of(f, op);
    double seconds = ghp_analytic_op_seconds(&f->laws, &work), known;

    if (!(seconds > 0)) return otherwise_s;
    if (sibling == NULL) return seconds;
    const struct ghp_op_work sibling_work = work_of(f, sibling);
    known = ghp_analytic_op_seconds(&f->laws, &sibling_work);
    return known > 0
               ? seconds / known * ghp_profile_find(f->profile, sibling->key, op->pass)->seconds
               : seconds;
}

/* What the laws say of operations that were measured. */
static void note_spreads(struct filling *f)
{
    struct misfit alone = {0}, near = {0};

    for (int i = 0; i < f->worklist->n_ops; i++) {
        const struct ghp_worklist_op *op = &f->worklist->ops[i], *sibling;
        const struct ghp_op_entry *entry = measured_of(f->profile, op);

        if (entry == NULL) continue;
        misfit_add(&alone, analytic_s(f, op, NULL, 0), entry->seconds);
        sibling = sibling_of(f->worklist, f->profile, op);
        if (sibling != NULL) misfit_add(&near, analytic_s(f, op, sibling, 0), entry->seconds);
    }
    f->spread = misfit_spread(&alone);
    f->sibling_spread = misfit_spread(&near);
}

/* The sibling's algorithm, or the one that the backend's rules choose. */
static const char *algorithm_of(const struct filling *f, const struct ghp_worklist_op *sibling)
{
    const struct ghp_op_entry *entry =
        sibling != NULL ? ghp_profile_find(f->profile, sibling->key, sibling->pass) : NULL;

    return entry != NULL && entry->algorithm != NULL && entry->algorithm[0] != '\0'
               ? entry->algorithm
               : GHP_ALGORITHM_UNTIMED;
}

/* Formats as a sibling has them, in proportion to its seconds. Without one, an operation that only moves memory takes
 * as long in any; of a convolution nothing is known. */
static void fill_memory_formats(const struct filling *f, const struct ghp_worklist_op *op,
                                const struct ghp_worklist_op *sibling, struct ghp_op_entry *entry)
{
    const struct ghp_op_entry *known =
        sibling != NULL ? ghp_profile_find(f->profile, sibling->key, sibling->pass) : NULL;

    if (known != NULL && known->n_memory_formats > 0) {
        entry->n_memory_formats = known->n_memory_formats;
        memcpy(entry->memory_formats, known->memory_formats, sizeof entry->memory_formats);
        for (int i = 0; i < known->n_memory_formats && known->seconds > 0; i++)
            entry->memory_formats[i].seconds *= entry->seconds / known->seconds;
        return;
    }
    if (!op->memory_formats || op->local.op == GHP_OP_CONV2D) return;
    entry->n_memory_formats = op->n_variants;
    for (int w = 0; w < op->n_variants; w++)
        entry->memory_formats[w] = (struct ghp_op_memory_format){
            .x = op->variants[w].x, .y = op->variants[w].y, .seconds = entry->seconds};
}

/* One entry that was not measured; its strings are owned by the caller. */
static enum ghp_status fill_one(const struct filling *f, const struct ghp_worklist_op *op,
                                struct ghp_op_entry *entry)
{
    const struct ghp_measure *m = f->m;
    const struct ghp_worklist_op *sibling = sibling_of(f->worklist, f->profile, op);
    const char *algorithm = algorithm_of(f, sibling);
    struct ghp_kernel *kernel = NULL;
    struct ghp_opbench_task task = {.local = op->local, .pass = op->pass};
    struct ghp_cost cost = {0};
    enum ghp_status status = ghp_profile_op(f->profile, &op->local, op->pass, &cost);

    GHP_TRY(status);
    GHP_TRY(m->backend_ops->prepare_as != NULL
                ? m->backend_ops->prepare_as(m->backend, &op->local, op->pass, algorithm, &kernel)
                : m->backend_ops->prepare(m->backend, &op->local, op->pass, &kernel));
    entry->pass = op->pass;
    entry->seconds = ghp_measure_is_fused(m, op)          ? 0
                     : cost.source == GHP_SOURCE_ANALYTIC ? analytic_s(f, op, sibling, cost.seconds)
                                                          : cost.seconds;
    entry->spread = cost.source != GHP_SOURCE_ANALYTIC ? cost.spread
                    : sibling != NULL                  ? f->sibling_spread
                                                       : f->spread;
    entry->source = cost.source;
    entry->contention = cost.seconds > 0 ? cost.contention_s / cost.seconds : 0;
    entry->key = strdup(op->key);
    entry->algorithm = strdup(m->backend_ops->algorithm(kernel));
    m->backend_ops->release(kernel);
    fill_memory_formats(f, op, sibling, entry);
    GHP_TRY(
        ghp_kernel_spec_scratch(m->backend_ops, m->backend, &task, entry, &entry->scratch_bytes));
    return entry->key != NULL && entry->algorithm != NULL ? GHP_OK : GHP_NO_MEMORY();
}

enum ghp_status ghp_measure_fill(const struct ghp_measure *m, const struct ghp_worklist *worklist,
                                 struct ghp_profile *profile, struct ghp_ops_count *count)
{
    struct filling f = {.m = m, .worklist = worklist, .profile = profile};
    struct ghp_op_entry *entries = ghp_alloc((size_t)worklist->n_ops, sizeof *entries);
    enum ghp_status status = entries != NULL ? ghp_profile_finalize(profile) : GHP_NO_MEMORY();
    int n = 0;

    if (status == GHP_OK) note_laws(&f);
    if (status == GHP_OK) note_spreads(&f);
    /* all prices before the first entry: what is filled in must not become a source itself */
    for (int i = 0; i < worklist->n_ops && status == GHP_OK; i++) {
        const struct ghp_worklist_op *op = &worklist->ops[i];

        if (ghp_profile_find(profile, op->key, op->pass) != NULL) continue;
        status = fill_one(&f, op, &entries[n++]);
    }
    for (int i = 0; i < n && status == GHP_OK; i++) {
        count->interpolated += entries[i].source == GHP_SOURCE_INTERPOLATED;
        count->analytic += entries[i].source == GHP_SOURCE_ANALYTIC;
        status = ghp_profile_add_op(profile, &entries[i]);
    }
    for (int i = 0; i < n; i++) {
        free(entries[i].key);
        free(entries[i].algorithm);
    }
    free(entries);
    return status == GHP_OK ? ghp_profile_finalize(profile) : status;
}
