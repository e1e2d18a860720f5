/* profiler/trials.c - see trials.h. */
#include "profiler/trials.h"

#include "executor/formats.h"

#include <limits.h>
#include <stdio.h>

enum { TRIAL_SAMPLES = 3 };          /* of each algorithm that may be the quickest */
static const double hopeless = 1.25; /* times the quickest one's seconds in the first sample */

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

enum ghp_status ghp_trials_run(void *context, int64_t repeats)
{
    return ghp_opbench_run(context, (int)(repeats < INT_MAX ? repeats : INT_MAX));
}

struct ghp_task ghp_trials_task(const struct ghp_measure *m, struct ghp_opbench *bench)
{
    return (struct ghp_task){
        .run = ghp_trials_run, .context = bench, .clock = ghp_measure_clock(m), .alone = true};
}

/* Times the bench's algorithm, and no longer than it takes to see that another one is quicker (best_s; 0: none yet). */
static enum ghp_status try_one(const struct ghp_measure *m, struct ghp_opbench *bench,
                               double best_s, double *seconds)
{
    struct ghp_samples trial = {0};

    GHP_TRY(ghp_measure_more(m, ghp_trials_task(m, bench), m->sample_s, 1, &trial));
    if (!(best_s > 0) || least(&trial) < hopeless * best_s)
        GHP_TRY(
            ghp_measure_on(m, ghp_trials_task(m, bench), m->sample_s, TRIAL_SAMPLES - 1, &trial));
    *seconds = least(&trial);
    return GHP_OK;
}

/* Times each algorithm in the likely formats, and notes the name of the quickest; all ranks see the same times, and all
 * stop with the likeliest so far where rank 0's time is up. */
static enum ghp_status try_all(const struct ghp_measure *m, struct ghp_opbench *bench,
                               const struct ghp_algorithms *list, struct ghp_agenda_op *op,
                               double deadline_s)
{
    struct ghp_formats formats = formats_of(m, op);
    double best_s = 0;

    for (int i = 0; i < list->n; i++) {
        enum ghp_status status = ghp_opbench_switch(bench, m->backend, list->names[i], formats);
        double late = i > 0 && m->rank == 0 && ghp_measure_now_s() > deadline_s, seconds;

        GHP_TRY(ghp_measure_max(m, status, &late));
        if (late > 0) break;
        GHP_TRY(try_one(m, bench, best_s, &seconds));
        if (i > 0 && seconds >= best_s) continue;
        best_s = seconds;
        snprintf(op->algorithm, sizeof op->algorithm, "%s", list->names[i]);
    }
    return GHP_OK;
}

enum ghp_status ghp_trials_choose(const struct ghp_measure *m, struct ghp_opbench *bench,
                                  struct ghp_agenda_op *op, double deadline_s)
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
        GHP_TRY(try_all(m, bench, &list, op, deadline_s));
    }
    return ghp_opbench_switch(bench, m->backend, op->algorithm, formats);
}
