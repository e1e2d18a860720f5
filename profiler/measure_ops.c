/* profiler/measure_ops.c - opens, times and closes one operation after the other; fills what is left by law. */
#include "profiler/measure_ops.h"
#include "core/log.h"
#include "executor/formats.h"
#include "profiler/op_law.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum ghp_status bench_run(void *context, int64_t repeats)
{
    return ghp_opbench_run(context, (int)(repeats < INT_MAX ? repeats : INT_MAX));
}

static struct ghp_task task_of(const struct ghp_measure *m, struct ghp_opbench *bench)
{
    return (struct ghp_task){
        .run = bench_run, .context = bench, .clock = ghp_measure_clock(m), .alone = true};
}

struct ghp_opbench_task ghp_measure_op_task(const struct ghp_measure *m,
                                            const struct ghp_agenda_op *op)
{
    double other =
        op->step_bytes < (double)m->cache_bytes ? op->step_bytes : (double)m->cache_bytes;

    return (struct ghp_opbench_task){
        .local = op->local, .pass = op->pass, .other_bytes = (int64_t)other};
}

/* The bench on rank 0; the others wait. */
struct lone {
    struct ghp_opbench *bench;
    bool waits;
};

static enum ghp_status lone_run(void *context, int64_t repeats)
{
    const struct lone *lone = context;

    return lone->waits ? GHP_OK : bench_run(lone->bench, repeats);
}

enum { TRIAL_SAMPLES = 3 };          /* of each algorithm that may be the quickest */
static const double hopeless = 1.25; /* times the quickest one's seconds in the first sample */

/* What rank 0 decides about an operation. */
enum decision { MEASURE, LEAVE };

/* Seconds spent and work done so far: what the next operation will take. */
struct pace {
    double flops, flop_s, bytes, byte_s;
};

static double expected_s(const struct pace *pace, const struct ghp_agenda_op *op)
{
    double flops_per_s = pace->flop_s > 0 ? pace->flops / pace->flop_s : 1e10;
    double bytes_per_s = pace->byte_s > 0 ? pace->bytes / pace->byte_s : 1e9;

    if (op->samples.n > 0) return ghp_measure_summary(&op->samples).seconds;
    return op->flops > 0 ? op->flops / flops_per_s : op->bytes / bytes_per_s;
}

static enum decision decide(const struct ghp_measure *m, const struct ghp_agenda_op *op,
                            const struct ghp_ops_limits *limits, const struct pace *pace)
{
    double runs_s = (2 + limits->samples) * expected_s(pace, op);
    struct ghp_opbench_task task = ghp_measure_op_task(m, op);

    if (ghp_measure_now_s() + runs_s > limits->deadline_s) return LEAVE;
    if (ghp_opbench_bytes(&task, m->element_bytes) > limits->memory_bytes) return LEAVE;
    return MEASURE;
}

/* What the kernel says of itself. */
struct outcome {
    bool fits; /* every rank had the memory; else nothing was timed */
    int64_t scratch_bytes;
    char algorithm[128];
};

/* The least of a few: what else the machine does only adds. */
static double least(const struct ghp_samples *samples)
{
    double value = samples->values[0];

    for (int i = 1; i < samples->n; i++)
        value = samples->values[i] < value ? samples->values[i] : value;
    return value;
}

/* In which a worker is most likely to run it. */
static struct ghp_formats formats_of(const struct ghp_measure *m, const struct ghp_agenda_op *op)
{
    struct ghp_formats formats = ghp_formats_likely(m->backend_ops, m->backend, &op->local);

    if (!ghp_formats_fuses(m->backend_ops, m->backend, &op->local, op->pass)) return formats;
    return ghp_fuse_formats(formats, op->epilogue);
}

/* Whether workers of this backend leave it to the convolution before it. */
static bool is_absorbed(const struct ghp_measure *m, const struct ghp_agenda_op *op)
{
    const struct ghp_local conv = {.op = GHP_OP_CONV2D};

    return op->absorbed && ghp_formats_fuses(m->backend_ops, m->backend, &conv, GHP_PASS_FORWARD);
}

/* Times the bench's algorithm, and no longer than it takes to see that another one is quicker (best_s; 0: none yet). */
static enum ghp_status try_one(const struct ghp_measure *m, struct ghp_opbench *bench,
                               double best_s, double *seconds)
{
    struct ghp_samples trial = {0};

    GHP_TRY(ghp_measure_more(m, task_of(m, bench), m->sample_s, 1, &trial));
    if (!(best_s > 0) || least(&trial) < hopeless * best_s)
        GHP_TRY(ghp_measure_on(m, task_of(m, bench), m->sample_s, TRIAL_SAMPLES - 1, &trial));
    *seconds = least(&trial);
    return GHP_OK;
}

/* Times each algorithm in the likely formats, and notes the name of the quickest; all ranks see the same times. */
static enum ghp_status try_all(const struct ghp_measure *m, struct ghp_opbench *bench,
                               const struct ghp_algorithms *list, struct ghp_agenda_op *op)
{
    struct ghp_formats formats = formats_of(m, op);
    double best_s = 0;

    for (int i = 0; i < list->n; i++) {
        enum ghp_status status = ghp_opbench_switch(bench, m->backend, list->names[i], formats);
        double unused = 0, seconds;

        GHP_TRY(ghp_measure_max(m, status, &unused));
        GHP_TRY(try_one(m, bench, best_s, &seconds));
        if (i > 0 && seconds >= best_s) continue;
        best_s = seconds;
        snprintf(op->algorithm, sizeof op->algorithm, "%s", list->names[i]);
    }
    return GHP_OK;
}

/* Has the bench run the quickest of the backend's algorithms; tries them all the first time. */
static enum ghp_status choose_algorithm(const struct ghp_measure *m, struct ghp_opbench *bench,
                                        struct ghp_agenda_op *op)
{
    struct ghp_formats formats = formats_of(m, op);
    struct ghp_algorithms list = {0};
    enum ghp_status status = GHP_OK;
    double most = 0;

    if (m->backend_ops->algorithms == NULL) return GHP_OK;
    if (op->algorithm[0] == '\0') {
        status = m->backend_ops->algorithms(m->backend, &op->local, op->pass, formats, &list);
        most = list.n;
        GHP_TRY(ghp_measure_max(m, status, &most));
        if (most - list.n > 0)
            return GHP_FAIL(GHP_ERR_BACKEND,
                            "the ranks have different algorithms for '%s'; give all nodes the same "
                            "oneDNN and processors",
                            op->key);
        if (list.n == 0) return GHP_OK;
        GHP_TRY(try_all(m, bench, &list, op));
    }
    return ghp_opbench_switch(bench, m->backend, op->algorithm, formats);
}

/* Whether a worker's operation may take less time while no other one runs it: where each has a core, and all are alike. */
static bool knows_lone(const struct ghp_measure *m)
{
    return m->size > 1 && !m->shares_cores && !(m->fastest > 1) &&
           ghp_measure_clock(m) == GHP_CLOCK_HOST;
}

/* The same without company, right behind. */
static enum ghp_status measure_lone(const struct ghp_measure *m, struct ghp_opbench *bench,
                                    struct ghp_samples *samples)
{
    struct lone lone = {.bench = bench, .waits = m->rank != 0};
    struct ghp_task task = {.run = lone_run, .context = &lone, .clock = ghp_measure_clock(m)};

    return knows_lone(m) ? ghp_measure_more(m, task, m->sample_s, 1, samples) : GHP_OK;
}

/* What the other workers' running the operation too adds, as a share of its seconds. */
static double company_of(const struct ghp_agenda_op *op)
{
    double together_s = ghp_measure_summary(&op->samples).seconds;
    double lone_s = ghp_measure_summary(&op->lone).seconds;

    return op->lone.n > 0 && lone_s < together_s ? 1 - lone_s / together_s : 0;
}

static enum ghp_status measure_one(const struct ghp_measure *m, struct ghp_agenda_op *op,
                                   int samples, struct outcome *outcome)
{
    struct ghp_opbench *bench = NULL;
    struct ghp_opbench_task task = ghp_measure_op_task(m, op);
    double short_of_memory = 0;
    enum ghp_status status = ghp_opbench_open(m->backend_ops, m->backend, &task, &bench);

    if (status == GHP_ERR_NO_MEMORY) {
        short_of_memory = 1;
        status = GHP_OK;
    }
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &short_of_memory), done);
    outcome->fits = !(short_of_memory > 0);
    if (!outcome->fits) goto done;
    status = choose_algorithm(m, bench, op);
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &short_of_memory), done);
    GHP_TRY_GOTO(status, ghp_measure_more(m, task_of(m, bench), m->sample_s, samples, &op->samples),
                 done);
    GHP_TRY_GOTO(status, measure_lone(m, bench, &op->lone), done);
    GHP_TRY_GOTO(status,
                 ghp_formats_scratch(m->backend_ops, m->backend, &task,
                                     ghp_opbench_algorithm(bench), &outcome->scratch_bytes),
                 done);
    snprintf(outcome->algorithm, sizeof outcome->algorithm, "%s", ghp_opbench_algorithm(bench));
done:
    ghp_opbench_close(bench);
    return status;
}

static void pace_add(struct pace *pace, const struct ghp_agenda_op *op, double seconds)
{
    pace->flops += op->flops;
    if (op->flops > 0) {
        pace->flop_s += seconds;
    } else {
        pace->bytes += op->bytes;
        pace->byte_s += seconds;
    }
}

static enum ghp_status enter(const struct ghp_agenda_op *op, struct outcome *outcome,
                             struct ghp_profile *profile)
{
    struct ghp_timed timed = ghp_measure_summary(&op->samples);
    struct ghp_op_entry entry = {.pass = op->pass,
                                 .seconds = timed.seconds,
                                 .spread = timed.spread,
                                 .source = GHP_SOURCE_MEASURED,
                                 .scratch_bytes = outcome->scratch_bytes,
                                 .algorithm = outcome->algorithm,
                                 .company = company_of(op)};
    char key[GHP_KEY_BYTES];

    snprintf(key, sizeof key, "%s", op->key);
    entry.key = key; /* copied by the profile */
    return ghp_profile_add_op(profile, &entry);
}

/* One walk through the agenda. */
struct walk {
    const struct ghp_measure *m;
    const struct ghp_ops_limits *limits;
    struct ghp_profile *profile;
    struct pace pace;
    double saved_s;
    enum ghp_status own; /* this rank's alone, told to all before the next operation */
};

/* What a convolution does along with its own work is in the convolution's time. */
static enum ghp_status take_absorbed(struct walk *walk, const struct ghp_agenda_op *op)
{
    const struct ghp_measure *m = walk->m;
    struct ghp_opbench_task task = ghp_measure_op_task(m, op);
    struct ghp_op_entry entry = {.key = (char *)(uintptr_t)op->key, /* copied by the profile */
                                 .pass = op->pass,
                                 .source = GHP_SOURCE_MEASURED,
                                 .algorithm = (char[]){"fused"}};

    GHP_TRY(ghp_formats_scratch(m->backend_ops, m->backend, &task, NULL, &entry.scratch_bytes));
    return m->rank == 0 ? ghp_profile_add_op(walk->profile, &entry) : GHP_OK;
}

/* Measures one operation that all ranks have agreed on. */
static enum ghp_status take(struct walk *walk, struct ghp_agenda_op *op)
{
    struct outcome outcome = {0};

    if (is_absorbed(walk->m, op)) {
        walk->own = take_absorbed(walk, op);
        return GHP_OK;
    }
    GHP_TRY(measure_one(walk->m, op, walk->limits->samples, &outcome));
    if (!outcome.fits) return GHP_OK;
    pace_add(&walk->pace, op, ghp_measure_summary(&op->samples).seconds);
    if (walk->m->rank != 0) return GHP_OK;
    walk->own = enter(op, &outcome, walk->profile);
    if (walk->own != GHP_OK || ghp_measure_now_s() - walk->saved_s < GHP_SAVE_S) return GHP_OK;
    walk->saved_s = ghp_measure_now_s();
    walk->own = walk->limits->save(walk->limits->context);
    return GHP_OK;
}

/* A law needs one operation at least, however short the time: the cheapest with FLOPs, or without. */
static enum ghp_status anchor(struct walk *walk, const struct ghp_agenda *agenda, bool with_flops)
{
    struct ghp_agenda_op *best = NULL;
    double unused = 0;

    for (int i = 0; i < agenda->n_ops; ++i) {
        struct ghp_agenda_op *op = &agenda->ops[i];

        if ((op->flops > 0) != with_flops || is_absorbed(walk->m, op)) continue;
        if (op->kept || op->samples.n > 0) return GHP_OK;
        if (best == NULL || op->flops + op->bytes < best->flops + best->bytes) best = op;
    }
    if (best == NULL) return GHP_OK;
    GHP_TRY(ghp_measure_max(walk->m, walk->own, &unused));
    return take(walk, best);
}

enum ghp_status ghp_measure_ops(const struct ghp_measure *m, struct ghp_agenda *agenda,
                                const struct ghp_ops_limits *limits, struct ghp_profile *profile)
{
    struct walk walk = {.m = m, .limits = limits, .profile = profile};
    double unused = 0;
    enum ghp_status status = GHP_OK;

    walk.saved_s = ghp_measure_now_s();
    if (agenda->n_ops > 0) ghp_progress_begin("operations", agenda->n_ops);
    for (int i = 0; i < agenda->n_ops; ++i) {
        struct ghp_agenda_op *op = &agenda->ops[i];
        unsigned char decision = (unsigned char)decide(m, op, limits, &walk.pace);

        ghp_progress_step(i, "%s %s", ghp_op_name(op->local.op), ghp_pass_name(op->pass));
        if (op->kept) continue;
        GHP_TRY_GOTO(status, ghp_measure_share(m, walk.own, &decision, 1), done);
        if (decision == MEASURE) GHP_TRY_GOTO(status, take(&walk, op), done);
    }
    GHP_TRY_GOTO(status, anchor(&walk, agenda, true), done);
    GHP_TRY_GOTO(status, anchor(&walk, agenda, false), done);
    status = ghp_measure_max(m, walk.own, &unused);
done:
    ghp_progress_end();
    return status;
}

void ghp_measure_fit_law(const struct ghp_agenda *agenda, struct ghp_profile *profile)
{
    struct pace pace = {0};

    for (int i = 0; i < agenda->n_ops; ++i) {
        const struct ghp_agenda_op *op = &agenda->ops[i];
        const struct ghp_op_entry *entry = ghp_profile_find(profile, op->key, op->pass);

        if (entry != NULL && entry->source == GHP_SOURCE_MEASURED && entry->seconds > 0)
            pace_add(&pace, op, entry->seconds);
    }
    if (pace.flop_s > 0) profile->law.flops_per_s = pace.flops / pace.flop_s;
    if (pace.byte_s > 0) profile->law.memory_Bps = pace.bytes / pace.byte_s;
}

/* What the entries of operations that the budget did not reach are made from. */
struct filling {
    const struct ghp_measure *m;
    const struct ghp_agenda *agenda;
    const struct ghp_profile *profile;
    struct ghp_op_laws laws;
};

static struct ghp_op_work work_of(const struct ghp_agenda_op *op)
{
    return (struct ghp_op_work){op->local.op, op->pass, op->flops, op->bytes};
}

static void note_laws(const struct ghp_agenda *agenda, const struct ghp_profile *profile,
                      struct ghp_op_laws *laws)
{
    for (int i = 0; i < agenda->n_ops; ++i) {
        const struct ghp_agenda_op *op = &agenda->ops[i];
        const struct ghp_op_entry *entry = ghp_profile_find(profile, op->key, op->pass);
        const struct ghp_op_work work = work_of(op);

        if (entry != NULL && entry->source == GHP_SOURCE_MEASURED && entry->seconds > 0)
            ghp_op_laws_add(laws, &work, entry->seconds);
    }
}

/* The same operation over the samples nearest to these in proportion, measured; NULL: none. */
static const struct ghp_agenda_op *sibling_of(const struct ghp_agenda *agenda,
                                              const struct ghp_profile *profile,
                                              const struct ghp_agenda_op *op)
{
    const struct ghp_agenda_op *best = NULL;
    double nearest = 0;

    for (int i = 0; i < agenda->n_ops; ++i) {
        const struct ghp_agenda_op *other = &agenda->ops[i];
        double apart = fabs(log((double)other->local.n / (double)op->local.n));
        const struct ghp_op_entry *entry;

        if ((best != NULL && apart >= nearest) || !ghp_agenda_is_family(op, other)) continue;
        entry = ghp_profile_find(profile, other->key, other->pass);
        if (entry == NULL || entry->source != GHP_SOURCE_MEASURED) continue;
        best = other;
        nearest = apart;
    }
    return best;
}

/* Seconds by the law of the operation's own kind, through a sibling's where there is one. */
static double law_s(const struct filling *f, const struct ghp_agenda_op *op,
                    const struct ghp_agenda_op *sibling, double otherwise_s)
{
    const struct ghp_op_work work = work_of(op);
    double seconds = ghp_op_laws_seconds(&f->laws, &work), known;

    if (!(seconds > 0)) return otherwise_s;
    if (sibling == NULL) return seconds;
    const struct ghp_op_work sibling_work = work_of(sibling);
    known = ghp_op_laws_seconds(&f->laws, &sibling_work);
    return known > 0
               ? seconds / known * ghp_profile_find(f->profile, sibling->key, op->pass)->seconds
               : seconds;
}

/* The sibling's algorithm, or the one that the backend's rules choose. */
static const char *algorithm_of(const struct filling *f, const struct ghp_agenda_op *sibling)
{
    const struct ghp_op_entry *entry =
        sibling != NULL ? ghp_profile_find(f->profile, sibling->key, sibling->pass) : NULL;

    return entry != NULL && entry->algorithm != NULL && entry->algorithm[0] != '\0'
               ? entry->algorithm
               : GHP_ALGORITHM_UNTIMED;
}

/* One entry that was not measured; its strings are owned by the caller. */
static enum ghp_status fill_one(const struct filling *f, const struct ghp_agenda_op *op,
                                struct ghp_op_entry *entry)
{
    const struct ghp_measure *m = f->m;
    const struct ghp_agenda_op *sibling = sibling_of(f->agenda, f->profile, op);
    const char *algorithm = algorithm_of(f, sibling);
    struct ghp_kernel *kernel = NULL;
    struct ghp_opbench_task task = {.local = op->local, .pass = op->pass};
    struct ghp_price price = {0};
    enum ghp_status status = ghp_profile_op(f->profile, &op->local, op->pass, &price);

    GHP_TRY(status);
    GHP_TRY(m->backend_ops->prepare_as != NULL
                ? m->backend_ops->prepare_as(m->backend, &op->local, op->pass, algorithm, &kernel)
                : m->backend_ops->prepare(m->backend, &op->local, op->pass, &kernel));
    entry->pass = op->pass;
    entry->seconds = is_absorbed(m, op)               ? 0
                     : price.source == GHP_SOURCE_LAW ? law_s(f, op, sibling, price.seconds)
                                                      : price.seconds;
    entry->spread = price.spread;
    entry->source = price.source;
    entry->company = price.seconds > 0 ? price.company_s / price.seconds : 0;
    status = ghp_formats_scratch(m->backend_ops, m->backend, &task,
                                 m->backend_ops->algorithm(kernel), &entry->scratch_bytes);
    entry->key = strdup(op->key);
    entry->algorithm = strdup(m->backend_ops->algorithm(kernel));
    m->backend_ops->release(kernel);
    GHP_TRY(status);
    return entry->key != NULL && entry->algorithm != NULL ? GHP_OK : GHP_NO_MEMORY();
}

enum ghp_status ghp_measure_fill(const struct ghp_measure *m, const struct ghp_agenda *agenda,
                                 struct ghp_profile *profile, struct ghp_ops_count *count)
{
    struct filling f = {.m = m, .agenda = agenda, .profile = profile};
    struct ghp_op_entry *entries = ghp_alloc((size_t)agenda->n_ops, sizeof *entries);
    enum ghp_status status = entries != NULL ? ghp_profile_seal(profile) : GHP_NO_MEMORY();
    int n = 0;

    if (status == GHP_OK) note_laws(agenda, profile, &f.laws);
    /* all prices before the first entry: what is filled in must not become a source itself */
    for (int i = 0; i < agenda->n_ops && status == GHP_OK; ++i) {
        const struct ghp_agenda_op *op = &agenda->ops[i];

        if (ghp_profile_find(profile, op->key, op->pass) != NULL) continue;
        status = fill_one(&f, op, &entries[n++]);
    }
    for (int i = 0; i < n && status == GHP_OK; ++i) {
        count->interpolated += entries[i].source == GHP_SOURCE_INTERPOLATED;
        count->law += entries[i].source == GHP_SOURCE_LAW;
        status = ghp_profile_add_op(profile, &entries[i]);
    }
    for (int i = 0; i < n; ++i) {
        free(entries[i].key);
        free(entries[i].algorithm);
    }
    free(entries);
    return status == GHP_OK ? ghp_profile_seal(profile) : status;
}
