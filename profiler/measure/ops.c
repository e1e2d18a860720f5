/* profiler/measure/ops.c - opens, times and closes one operation after the other. */
#include "profiler/measure/ops.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "executor/engine/kernel_spec.h"
#include "profiler/measure/background_load.h"
#include "profiler/measure/autotuning.h"

#include <math.h>
#include <stdio.h>

/* background load, beyond what the operation takes under contention */
static const double stays = 1.5;

/* A spread that moves the sum of data parallelism's operations by less is calm enough. */
static const double least_doubt = 1e-3;

/* What rank 0 decides about an operation. */
enum decision { MEASURE, LEAVE };

static struct ghp_visit_plan visit_plan_of(const struct ghp_measure *m,
                                           const struct ghp_ops_limits *limits)
{
    return (struct ghp_visit_plan){.samples = limits->samples,
                                   .sample_s = m->sample_s,
                                   .chooses = m->backend_ops->algorithms != NULL};
}

bool ghp_measure_is_fused(const struct ghp_measure *m, const struct ghp_worklist_op *op)
{
    bool forward = op->pass == GHP_PASS_FORWARD || op->pass == GHP_PASS_STATS;

    return op->fused && ghp_backend_fuses(m->backend_ops, m->backend, GHP_OP_BATCH_NORM,
                                          forward ? GHP_PASS_FORWARD : GHP_PASS_BACKWARD_DATA);
}

/* One walk through the work list. */
struct walk {
    const struct ghp_measure *m;
    const struct ghp_ops_limits *limits;
    struct ghp_profile *profile;
    struct ghp_background_load *background_load; /* NULL: none, nothing is measured among them */
    int unasked;                                 /* operations whose scratch is not known yet */
    double data_s; /* of data parallelism's operations, each once, as far as they are measured */
    struct ghp_opbench_memory *memory; /* of one bench after the other */
    double saved_s;
    enum ghp_status own; /* this rank's alone, told to all before the next operation */
};

/* Then measures the same on rank 0 alone, among background load. */
static enum ghp_status measure_alone(const struct walk *walk, struct ghp_opbench *bench,
                                     struct ghp_worklist_op *op)
{
    const struct ghp_measure *m = walk->m;
    double once_s = ghp_samples_summary(&op->variants[0].samples).seconds, took_s = 0;
    int64_t repeats = (int64_t)fmax(1, ceil(m->sample_s / fmax(once_s, 1e-9)));
    enum ghp_status status;

    if (walk->background_load == NULL || op->alone.n == GHP_MAX_SAMPLES) return GHP_OK;
    GHP_TRY(ghp_control_barrier(m->transport->control, m->world));
    if (m->rank != 0) {
        status =
            ghp_background_load_run(walk->background_load, stays * (double)(repeats + 1) * once_s);
    } else {
        status = ghp_autotuning_run(bench, 1); /* cold: thrown away */
        took_s = -ghp_now_s();
        if (status == GHP_OK) status = ghp_autotuning_run(bench, repeats);
        took_s = (took_s + ghp_now_s()) / (double)repeats;
    }
    GHP_TRY(ghp_measure_max(m, status, &took_s));
    op->alone.values[op->alone.n++] = took_s;
    return GHP_OK;
}

/* What the other workers' running the operation too, in the place of others, adds: a part of its seconds. */
static double contention_of(const struct ghp_worklist_op *op)
{
    double together_s = ghp_samples_summary(&op->variants[0].samples).seconds;
    double lone_s = ghp_samples_summary(&op->alone).seconds;

    return op->alone.n > 0 && together_s > 0 ? fmax(1 - lone_s / together_s, -1) : 0;
}

/* As many as are wanted; fewer if it is enough that two are calm.
 *
 * warm   it has just been tried */
static enum ghp_status sample_first(const struct walk *walk, struct ghp_task task, bool warm,
                                    struct ghp_samples *samples)
{
    const struct ghp_measure *m = walk->m;
    const int wanted = samples->n + walk->limits->samples;
    int more = walk->limits->calm > 0 ? 2 : walk->limits->samples;

    GHP_TRY((warm && walk->limits->calm > 0 ? ghp_measure_warm : ghp_measure_more)(
        m, task, m->sample_s, more, samples));
    while (samples->n < wanted && samples->n < GHP_MAX_SAMPLES &&
           ghp_samples_summary(samples).spread >= walk->limits->calm)
        GHP_TRY(ghp_measure_on(m, task, m->sample_s, 1, samples));
    return GHP_OK;
}

/* Takes as many samples of the first way as are wanted. The other ways only decide between formats, so it takes one
 * sample of each. If what to measure was named, the winner's least trial is that one, and formats are compared by
 * trials. */
static enum ghp_status sample_variant(const struct walk *walk, struct ghp_opbench *bench,
                                      struct ghp_worklist_op *op, int which)
{
    const struct ghp_measure *m = walk->m;
    const struct ghp_task task = ghp_autotuning_task(m, bench);
    struct ghp_worklist_variant *variant = &op->variants[which];
    bool named = walk->limits->trials != NULL, tried = variant->least_s > 0;

    if (which > 0 && named && tried) {
        variant->samples.values[variant->samples.n++] = variant->least_s;
        return GHP_OK;
    }
    if (which > 0)
        GHP_TRY(ghp_measure_more(m, task, (named ? GHP_AUTOTUNING_FRACTION : 1) * m->sample_s, 1,
                                 &variant->samples));
    else
        GHP_TRY(sample_first(walk, task, tried && variant->samples.n == 0, &variant->samples));
    snprintf(variant->used, sizeof variant->used, "%s", ghp_opbench_algorithm(bench));
    if (!named || !tried) ghp_autotuning_note(variant);
    return GHP_OK;
}

/* One pair of formats, by the quickest algorithm. */
static enum ghp_status measure_variant(const struct walk *walk, struct ghp_opbench *bench,
                                       struct ghp_worklist_op *op, int which)
{
    const struct ghp_measure *m = walk->m;
    const struct ghp_ops_limits *limits = walk->limits;
    double late = which > 0 && m->rank == 0 && ghp_now_s() > limits->deadline_s;
    enum ghp_status status = GHP_OK;

    GHP_TRY(ghp_measure_max(m, GHP_OK, &late));
    if (late > 0) return GHP_OK;
    status = ghp_autotuning_choose(
        m, bench, op, which,
        (struct ghp_autotuning){.deadline_s = limits->deadline_s, .trials = limits->trials});
    GHP_TRY(ghp_measure_max(m, status, &late));
    GHP_TRY(sample_variant(walk, bench, op, which));
    return which == 0 ? measure_alone(walk, bench, op) : GHP_OK;
}

/* How many pairs of formats this visit is about: if what to measure was named, those that are known are. */
static int variants_of(const struct walk *walk, const struct ghp_worklist_op *op)
{
    bool known = op->variants[op->n_variants - 1].samples.n > 0;

    return walk->limits->trials != NULL && known ? 1 : ghp_time_estimate_variants(op);
}

/* Takes samples by the quickest algorithm; *fits: every rank had the memory, else nothing was timed. */
static enum ghp_status measure_one(const struct walk *walk, struct ghp_worklist_op *op, bool *fits)
{
    const struct ghp_measure *m = walk->m;
    struct ghp_opbench *bench = NULL;
    struct ghp_opbench_task task = ghp_measure_op_task(m, op);
    double short_of_memory = 0;
    enum ghp_status status;

    task.memory = walk->memory;
    status = ghp_opbench_open(m->backend_ops, m->backend, &task, &bench);
    if (status == GHP_ERR_NO_MEMORY) {
        short_of_memory = 1;
        status = GHP_OK;
    }
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &short_of_memory), done);
    *fits = !(short_of_memory > 0);
    if (!*fits) goto done;
    for (int w = 0, variants = variants_of(walk, op); w < variants; w++)
        GHP_TRY_GOTO(status, measure_variant(walk, bench, op, w), done);
done:
    ghp_opbench_close(bench);
    return status;
}

/* Rank 0's time must last for the operation, and for the scratch of all that will not be measured. */
static enum decision decide(const struct walk *walk, const struct ghp_worklist_op *op)
{
    const struct ghp_measure *m = walk->m;
    const struct ghp_ops_limits *limits = walk->limits;
    struct ghp_opbench_task task = ghp_measure_op_task(m, op);
    double end_s = ghp_now_s() + ghp_time_estimate_scratch_s(limits->estimate, walk->unasked);

    if (ghp_measure_is_fused(m, op)) return MEASURE;
    end_s += ghp_time_estimate_s(limits->estimate, op, visit_plan_of(m, limits));
    if (end_s > limits->deadline_s) return LEAVE;
    if (ghp_opbench_bytes(&task, m->element_bytes) > limits->memory_bytes) return LEAVE;
    return MEASURE;
}

/* Rank 0's: enters it with what a worker's kernels of the operation ask for, which is found out once. */
static enum ghp_status enter(struct walk *walk, struct ghp_worklist_op *op,
                             struct ghp_op_entry *entry)
{
    const struct ghp_measure *m = walk->m;
    struct ghp_time_estimate *estimate = walk->limits->estimate;
    struct ghp_opbench_task task = ghp_measure_op_task(m, op);
    double start_s = ghp_now_s();

    entry->key = op->key; /* copied by the profile */
    entry->pass = op->pass;
    entry->source = GHP_SOURCE_MEASURED;
    if (!op->asked || op->asked_memory_formats != entry->n_memory_formats) {
        walk->unasked -= !op->asked;
        GHP_TRY(
            ghp_kernel_spec_scratch(m->backend_ops, m->backend, &task, entry, &op->scratch_bytes));
        op->asked = true;
        op->asked_memory_formats = entry->n_memory_formats;
        estimate->scratch_s += ghp_now_s() - start_s;
        estimate->scratches++;
    }
    entry->scratch_bytes = op->scratch_bytes;
    return ghp_profile_add_op(walk->profile, entry);
}

/* Puts what was measured in each pair of formats into the entry, relative to the first. The least seconds of each are
 * compared, which the machine's other work disturbs least. As long as one is missing it puts nothing, because there is
 * no choice yet. */
static void put_memory_formats(const struct ghp_worklist_op *op, struct ghp_op_entry *entry)
{
    if (!op->memory_formats) return;
    for (int w = 0; w < op->n_variants; w++) {
        const struct ghp_worklist_variant *variant = &op->variants[w];
        struct ghp_op_memory_format *format = &entry->memory_formats[w];

        if (variant->samples.n == 0) return;
        *format = (struct ghp_op_memory_format){.x = variant->x,
                                                .y = variant->y,
                                                .seconds = entry->seconds * variant->least_s /
                                                           op->variants[0].least_s};
        snprintf(format->algorithm, sizeof format->algorithm, "%.63s", variant->used);
    }
    entry->n_memory_formats = op->n_variants;
}

static enum ghp_status enter_measured(struct walk *walk, struct ghp_worklist_op *op)
{
    struct ghp_timed timed = ghp_samples_summary(&op->variants[0].samples);
    struct ghp_op_entry entry = {.seconds = timed.seconds,
                                 .spread = timed.spread,
                                 .algorithm = op->variants[0].used,
                                 .contention = contention_of(op)};

    put_memory_formats(op, &entry);
    return enter(walk, op, &entry);
}

/* What a convolution does along with its own work is in the convolution's time, in whatever formats: entered once. */
static enum ghp_status enter_fused(struct walk *walk, struct ghp_worklist_op *op)
{
    struct ghp_op_entry entry = {.algorithm = (char[]){GHP_OP_FUSED},
                                 .n_memory_formats = op->memory_formats ? op->n_variants : 0};

    for (int w = 0; w < entry.n_memory_formats; w++)
        entry.memory_formats[w] = (struct ghp_op_memory_format){
            .x = op->variants[w].x, .y = op->variants[w].y, .algorithm = GHP_OP_FUSED};
    return enter(walk, op, &entry);
}

static enum ghp_status save_now_and_then(struct walk *walk)
{
    if (ghp_now_s() - walk->saved_s < GHP_SAVE_S) return GHP_OK;
    walk->saved_s = ghp_now_s();
    return walk->limits->save(walk->limits->context);
}

/* Measures one operation that all ranks have agreed on. */
static enum ghp_status take(struct walk *walk, struct ghp_worklist_op *op)
{
    const struct ghp_measure *m = walk->m;
    const struct ghp_visit_plan visit_plan = visit_plan_of(m, walk->limits);
    enum ghp_visit kind = ghp_time_estimate_kind(op, visit_plan.chooses);
    double start_s = ghp_now_s();
    bool fits = false;

    if (ghp_measure_is_fused(m, op)) {
        if (m->rank == 0 && !op->asked) walk->own = enter_fused(walk, op);
        return GHP_OK;
    }
    GHP_TRY(measure_one(walk, op, &fits));
    if (!fits || m->rank != 0) return GHP_OK;
    walk->own = enter_measured(walk, op);
    ghp_time_estimate_note(walk->limits->estimate, op, kind, visit_plan, ghp_now_s() - start_s);
    if (walk->own == GHP_OK) walk->own = save_now_and_then(walk);
    return GHP_OK;
}

/* Rank 0's profile knows; the same on all ranks. */
static enum ghp_status sum_data(struct walk *walk, const struct ghp_worklist *worklist)
{
    for (int i = 0; i < worklist->n_ops && walk->m->rank == 0; i++) {
        const struct ghp_worklist_op *op = &worklist->ops[i];
        const struct ghp_op_entry *entry = ghp_profile_find(walk->profile, op->key, op->pass);

        if (op->value == GHP_VALUE_DATA && entry != NULL && entry->source == GHP_SOURCE_MEASURED)
            walk->data_s += entry->seconds;
    }
    return ghp_measure_max(walk->m, GHP_OK, &walk->data_s);
}

static int count_unasked(const struct ghp_worklist *worklist)
{
    int n = 0;

    for (int i = 0; i < worklist->n_ops; i++)
        n += !worklist->ops[i].kept && !worklist->ops[i].asked;
    return n;
}

/* An analytic model needs one operation at least, however short the time: the cheapest with FLOPs, or without. */
static enum ghp_status anchor(struct walk *walk, const struct ghp_worklist *worklist,
                              bool with_flops)
{
    struct ghp_worklist_op *best = NULL;
    double unused = 0;

    for (int i = 0; i < worklist->n_ops; i++) {
        struct ghp_worklist_op *op = &worklist->ops[i];

        if ((op->flops > 0) != with_flops || ghp_measure_is_fused(walk->m, op)) continue;
        if (op->kept || op->variants[0].samples.n > 0) return GHP_OK;
        if (best == NULL || op->flops + op->bytes < best->flops + best->bytes) best = op;
    }
    if (best == NULL) return GHP_OK;
    GHP_TRY(ghp_measure_max(walk->m, walk->own, &unused));
    return take(walk, best);
}

/* Whether there is nothing to do about it in this round; the same on all ranks. */
static bool is_done(const struct walk *walk, const struct ghp_worklist_op *op)
{
    struct ghp_timed timed = ghp_samples_summary(&op->variants[0].samples);

    if (op->left) return !ghp_measure_is_fused(walk->m, op);
    if (op->variants[op->n_variants - 1].samples.n == 0 || !(walk->limits->calm > 0)) return false;
    return timed.spread < walk->limits->calm ||
           timed.spread * timed.seconds < least_doubt * walk->data_s;
}

static int count_todo(const struct walk *walk, const struct ghp_worklist *worklist)
{
    int n = 0;

    for (int i = 0; i < worklist->n_ops; i++)
        n += !worklist->ops[i].kept && !is_done(walk, &worklist->ops[i]);
    return n;
}

/* Whose plans it is measured for. */
static const char *reason_of(const struct ghp_worklist_op *op)
{
    static const char *const reasons[GHP_VALUE_COUNT] = {[GHP_VALUE_DATA] = "data parallelism",
                                                         [GHP_VALUE_SPLIT] = "splits",
                                                         [GHP_VALUE_SECOND] = "other batches",
                                                         [GHP_VALUE_REST] = "fewer workers"};

    return reasons[op->value];
}

enum ghp_status ghp_measure_ops(const struct ghp_measure *m, struct ghp_worklist *worklist,
                                const struct ghp_ops_limits *limits, struct ghp_profile *profile)
{
    struct ghp_opbench_memory memory = {0};
    struct walk walk = {.m = m,
                        .limits = limits,
                        .profile = profile,
                        .unasked = count_unasked(worklist),
                        .memory = &memory};
    double unused = 0;
    int done = 0;
    enum ghp_status status = GHP_OK;

    GHP_TRY(sum_data(&walk, worklist));
    if (limits->alone)
        GHP_TRY(ghp_background_load_open(m, worklist, limits->memory_bytes, &walk.background_load));
    walk.saved_s = ghp_now_s();
    if (count_todo(&walk, worklist) > 0)
        ghp_progress_begin("operations", 0, count_todo(&walk, worklist));
    for (int i = 0; i < worklist->n_ops; i++) {
        struct ghp_worklist_op *op = &worklist->ops[i];
        unsigned char decision = (unsigned char)decide(&walk, op);

        if (op->kept || is_done(&walk, op)) continue;
        ghp_progress_step(done++, "%s %s over %lld samples, for %s", ghp_op_name(op->local.op),
                          ghp_pass_name(op->pass), (long long)op->local.n, reason_of(op));
        GHP_TRY_GOTO(status, ghp_measure_broadcast(m, walk.own, &decision, 1), done);
        if (decision == MEASURE) GHP_TRY_GOTO(status, take(&walk, op), done);
    }
    GHP_TRY_GOTO(status, anchor(&walk, worklist, true), done);
    GHP_TRY_GOTO(status, anchor(&walk, worklist, false), done);
    status = ghp_measure_max(m, walk.own, &unused);
done:
    ghp_progress_end();
    ghp_background_load_close(walk.background_load);
    ghp_opbench_memory_release(&memory);
    return status;
}
