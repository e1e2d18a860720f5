/* profiler/measure/autotuning.c - see worklist/autotuning.h. */
#include "profiler/measure/autotuning.h"
#include "core/base/clock.h"

#include "executor/engine/kernel_spec.h"
#include "profiler/worklist/time_estimate.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* How an algorithm that may be the quickest is tried. */
struct trial_rules {
    int samples;     /* of each that may win, the first included */
    double hopeless; /* times the quickest one's seconds in the first sample */
    double lost;     /* the same on cold pages and caches */
};
static const struct trial_rules thorough = {3, 1.25, 4};
/* The rules if a plan waits for it. In runs as long as a trial, cold caches count for less. */
static const struct trial_rules named_short = {2, 1.1, 4}, named_long = {1, 1.1, 1.35};

/* What else the machine does only adds. */
static double least(const struct ghp_samples *samples)
{
    double value = samples->values[0];

    for (int i = 1; i < samples->n; i++)
        value = samples->values[i] < value ? samples->values[i] : value;
    return value;
}

void ghp_autotuning_note(struct ghp_worklist_variant *variant)
{
    double seconds = least(&variant->samples);

    if (!(variant->least_s > 0) || seconds < variant->least_s) variant->least_s = seconds;
}

struct ghp_kernel_spec ghp_autotuning_spec(const struct ghp_measure *m,
                                           const struct ghp_worklist_op *op,
                                           const struct ghp_worklist_variant *variant)
{
    struct ghp_kernel_spec spec = {
        .x = variant->x,
        .y = variant->y,
        .w = ghp_op_of(op->local.op)->chooses_format &&
             ghp_backend_blocks_weights(m->backend_ops, m->backend, &op->local)};

    bool sums = ghp_backend_sums(m->backend_ops, m->backend);
    struct ghp_kernel_spec with = ghp_kernel_spec_with(spec, op->epilogue, sums);

    if (ghp_backend_fuses(m->backend_ops, m->backend, op->local.op, op->pass)) return with;
    spec.sums = with.sums && op->pass == GHP_PASS_STATS;
    return spec;
}

struct ghp_opbench_task ghp_measure_op_task(const struct ghp_measure *m,
                                            const struct ghp_worklist_op *op)
{
    double other =
        op->step_bytes < (double)m->cache_bytes ? op->step_bytes : (double)m->cache_bytes;

    return (struct ghp_opbench_task){
        .local = op->local, .pass = op->pass, .other_bytes = (int64_t)other};
}

enum ghp_status ghp_autotuning_run(void *context, int64_t repeats)
{
    return ghp_opbench_run(context, (int)(repeats < INT_MAX ? repeats : INT_MAX));
}

struct ghp_task ghp_autotuning_task(const struct ghp_measure *m, struct ghp_opbench *bench)
{
    return (struct ghp_task){
        .run = ghp_autotuning_run, .context = bench, .clock = ghp_measure_clock(m), .alone = true};
}

/* Times the bench's algorithm, and no longer than it takes to see that another one is quicker (best_s; 0: none yet). */
static enum ghp_status try_one(const struct ghp_measure *m, struct ghp_opbench *bench, bool named,
                               double best_s, double *seconds)
{
    const double trial_s = GHP_AUTOTUNING_FRACTION * m->sample_s;
    struct ghp_samples trial = {0};
    struct trial_rules rules;

    GHP_TRY(ghp_measure_cold(m, ghp_autotuning_task(m, bench), seconds));
    rules = !named ? thorough : *seconds < trial_s ? named_short : named_long;
    if (best_s > 0 && *seconds > rules.lost * best_s) return GHP_OK;
    GHP_TRY(ghp_measure_warm(m, ghp_autotuning_task(m, bench), trial_s, 1, &trial));
    if (!(best_s > 0) || least(&trial) < rules.hopeless * best_s)
        GHP_TRY(
            ghp_measure_on(m, ghp_autotuning_task(m, bench), trial_s, rules.samples - 1, &trial));
    *seconds = least(&trial);
    return GHP_OK;
}

/* One way's trials. */
struct trying {
    struct ghp_opbench *bench;
    const struct ghp_worklist_op *op;
    int which;
    struct ghp_worklist_variant *variant;
    struct ghp_autotuning options;
};

/* Whether in plain formats it cannot win: in blocked ones, without a reorder, it took longer than the quickest here. */
static bool cannot_win(const struct trying *t, const char *algorithm, double best_s)
{
    return t->options.trials != NULL && best_s > 0 &&
           ghp_trials_least_s(t->options.trials, t->op, t->which, algorithm) > best_s;
}

/* Times each algorithm, and notes the name of the quickest; all ranks see the same times, and all stop with the
 * quickest so far if rank 0's time is up. */
static enum ghp_status try_all(const struct ghp_measure *m, const struct trying *t,
                               const struct ghp_algorithms *list)
{
    struct ghp_kernel_spec spec = ghp_autotuning_spec(m, t->op, t->variant);
    double best_s = 0, seconds[GHP_MAX_ALGORITHMS] = {0};

    for (int i = 0; i < list->n; i++) {
        enum ghp_status status;
        double late = i > 0 && m->rank == 0 && ghp_now_s() > t->options.deadline_s;

        if (cannot_win(t, list->names[i], best_s)) continue;
        status = ghp_opbench_switch(t->bench, m->backend, list->names[i], spec);
        GHP_TRY(ghp_measure_max(m, status, &late));
        if (late > 0) break;
        GHP_TRY(try_one(m, t->bench, t->options.trials != NULL, best_s, &seconds[i]));
        if (i > 0 && seconds[i] >= best_s) continue;
        best_s = t->variant->least_s = seconds[i];
        snprintf(t->variant->algorithm, sizeof t->variant->algorithm, "%s", list->names[i]);
        snprintf(t->variant->used, sizeof t->variant->used, "%s", ghp_opbench_algorithm(t->bench));
    }
    for (int i = 0; i < list->n && t->options.trials != NULL; i++)
        if (seconds[i] > 0)
            GHP_TRY(ghp_trials_add(t->options.trials, t->op, t->which, list->names[i],
                                   (const double[]){seconds[i], best_s}));
    return GHP_OK;
}

/* Whether two algorithms are one implementation, whatever they reorder. */
static bool same_implementation(const char *a, const char *b)
{
    size_t n = strcspn(a, "+");

    return n == strcspn(b, "+") && strncmp(a, b, n) == 0;
}

/* With one side plain and one blocked only what wins with both alike is tried: it is the same there, and one
 * reorder. */
static void keep_winners(const struct ghp_worklist_op *op, struct ghp_algorithms *list)
{
    int kept = 0;

    for (int i = 0; i < list->n; i++) {
        bool wins = same_implementation(list->names[i], op->variants[0].algorithm) ||
                    same_implementation(list->names[i], op->variants[1].algorithm);

        if (wins && kept < i) memcpy(list->names[kept], list->names[i], sizeof list->names[i]);
        kept += wins;
    }
    if (kept > 0) list->n = kept;
}

enum ghp_status ghp_autotuning_choose(const struct ghp_measure *m, struct ghp_opbench *bench,
                                      struct ghp_worklist_op *op, int which,
                                      struct ghp_autotuning options)
{
    struct ghp_worklist_variant *variant = &op->variants[which];
    const struct trying t = {bench, op, which, variant, options};
    struct ghp_kernel_spec spec = ghp_autotuning_spec(m, op, variant);
    struct ghp_algorithms list = {0};
    enum ghp_status status = GHP_OK;
    double most = 0;

    if (m->backend_ops->algorithms == NULL) /* it chooses for itself, for each format */
        return ghp_kernel_spec_is_fused(spec) ? ghp_opbench_switch(bench, m->backend, NULL, spec)
                                              : GHP_OK;
    if (variant->algorithm[0] == '\0') {
        status = m->backend_ops->algorithms(m->backend, &op->local, op->pass, spec, &list);
        if (which > 1) keep_winners(op, &list);
        most = list.n;
        GHP_TRY(ghp_measure_max(m, status, &most));
        if (most - list.n > 0)
            return GHP_FAIL(GHP_ERR_BACKEND,
                            "the ranks have different algorithms for '%s'; give all nodes the same "
                            "oneDNN and processors",
                            op->key);
        if (list.n == 0 && !op->memory_formats && !ghp_kernel_spec_is_fused(spec)) return GHP_OK;
        if (options.trials != NULL) ghp_trials_narrow(options.trials, op, which, &list);
        GHP_TRY(try_all(m, &t, &list));
    }
    return ghp_opbench_switch(bench, m->backend,
                              variant->algorithm[0] != '\0' ? variant->algorithm : NULL, spec);
}
