/* profiler/measure/arrival.c - see measure/arrival.h. */
#include "profiler/measure/arrival.h"
#include "core/base/clock.h"
#include "core/model/precision.h"
#include "executor/platform/task_thread.h"
#include "profiler/measure/comm.h"
#include "profiler/measure/overlap.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROUNDS = 5,            /* at most GHP_MAX_SAMPLES - 1 */
    SHORT_BYTES = 1 << 10, /* of each rank: as statistics are */
    EXCHANGE_SAMPLES = 6,  /* of one alone */
    LEAST_SEGMENTS = 8,    /* of computing, in a round */
    MOST_SEGMENTS = 1000,
    MOST_TASKS = 64 /* of a segment */
};
static const double round_samples = 8; /* a round lasts as long as this many samples */
/* In seconds of a short collective: the least length of a segment of computing, since reductions would wait for each
 * other in a shorter one; and the greatest length of an operation in it. Workers get through longer ones unevenly, and
 * that is not a delay. */
static const double segment_exchanges = 4, longest_exchanges = 8;

enum joint { NOTHING, EXCHANGE, REDUCTION, JOINTS }; /* what follows each segment */

struct small_step {
    const struct ghp_measure *m;
    struct ghp_task computes[GHP_OVERLAP_TASKS];
    int n_computes, next;
    int tasks, segments; /* of a segment, of a round; the same on all ranks */
    struct ghp_comm *exchanges, *reductions;
    struct ghp_reduction sum;
    void *mine, *all;
    struct ghp_task_thread *stream;
};

static enum ghp_status reduce_once(void *context, int job)
{
    struct small_step *s = context;

    (void)job;
    return s->reductions->ops->all_reduce(s->reductions, &s->sum);
}

static enum ghp_status step_open(struct small_step *s)
{
    struct ghp_collectives *collectives = ghp_measure_collectives(s->m);
    struct ghp_ranks ranks = {.first = 0, .count = s->m->size, .stride = 1};
    size_t bytes = (size_t)s->m->size * SHORT_BYTES;

    GHP_TRY(ghp_collectives_group(collectives, ranks, GHP_STREAM_COMM, &s->reductions));
    GHP_TRY(ghp_collectives_group(collectives, ranks, GHP_STREAM_COMPUTE, &s->exchanges));
    s->reductions->label = "reductions after layers";
    s->exchanges->label = "exchanges after layers";
    s->mine = ghp_alloc(SHORT_BYTES, 1);
    s->all = ghp_alloc(bytes, 1);
    s->sum.out = ghp_alloc(bytes, 1);
    s->sum.scratch = ghp_alloc(GHP_COMM_SEGMENT_BYTES, 1);
    if (s->mine == NULL || s->all == NULL || s->sum.out == NULL || s->sum.scratch == NULL)
        return GHP_NO_MEMORY();
    s->sum.in = s->sum.out;
    s->sum.element_bytes = ghp_parameter_bytes(s->m->element_bytes);
    s->sum.elements = (int64_t)bytes / s->sum.element_bytes;
    s->sum.scratch_bytes = GHP_COMM_SEGMENT_BYTES;
    return ghp_task_thread_open(MOST_SEGMENTS, reduce_once, s, &s->stream);
}

static void step_close(struct small_step *s)
{
    ghp_task_thread_close(s->stream);
    free(s->sum.scratch);
    free(s->sum.out);
    free(s->all);
    free(s->mine);
}

static enum ghp_status compute(struct small_step *s, int tasks)
{
    for (int i = 0; i < tasks; i++) {
        const struct ghp_task *task = &s->computes[s->next];

        s->next = (s->next + 1) % s->n_computes;
        GHP_TRY(task->run(task->context, 1));
    }
    return GHP_OK;
}

static enum ghp_status run_segments(struct small_step *s, enum joint joint)
{
    int64_t ticket = 0;

    for (int i = 0; i < s->segments; i++) {
        GHP_TRY(compute(s, s->tasks));
        if (joint == EXCHANGE)
            GHP_TRY(s->exchanges->ops->all_gather(s->exchanges, s->mine, s->all, SHORT_BYTES));
        if (joint == REDUCTION) ticket = ghp_task_thread_post(s->stream, i);
    }
    return ghp_task_thread_wait(s->stream, ticket);
}

/* Seconds of a segment and what follows it, the slowest rank's mean over a round. */
static enum ghp_status time_round(struct small_step *s, enum joint joint, double *seconds)
{
    enum ghp_status status = ghp_control_barrier(s->m->transport->control, s->m->world);
    double start_s = ghp_now_s();

    s->next = 0;
    if (status == GHP_OK) status = run_segments(s, joint);
    *seconds = (ghp_now_s() - start_s) / s->segments;
    return ghp_measure_max(s->m, status, seconds);
}

/* One such collective, as all are timed. */
static enum ghp_status time_alone(const struct ghp_measure *m, enum ghp_comm_op op, double *seconds)
{
    struct ghp_worklist_comm what = {
        .op = op, .count = m->size, .stride = 1, .bytes = (int64_t)m->size * SHORT_BYTES};

    GHP_TRY(ghp_measure_comm(m, &what, EXCHANGE_SAMPLES, NULL));
    *seconds = ghp_samples_summary(&what.samples).seconds;
    return GHP_OK;
}

/* Keeps the operations that take at most most_s, or the shortest one.
 *
 * mean_s   receives their mean seconds */
static enum ghp_status keep_short(struct small_step *s, const struct ghp_task *tasks, int n,
                                  double most_s, double *mean_s)
{
    double shortest_s = INFINITY, total_s = 0, task_s[GHP_OVERLAP_TASKS];
    int kept = 0;

    s->n_computes = s->tasks = s->segments = 1;
    for (int i = 0; i < n; i++) {
        s->computes[0] = tasks[i];
        GHP_TRY(time_round(s, NOTHING, &task_s[i])); /* cold: thrown away */
        GHP_TRY(time_round(s, NOTHING, &task_s[i]));
        shortest_s = fmin(shortest_s, task_s[i]);
    }
    for (int i = 0; i < n; i++) {
        if (task_s[i] > fmax(most_s, shortest_s)) continue;
        s->computes[kept++] = tasks[i];
        total_s += task_s[i];
    }
    s->n_computes = kept;
    *mean_s = total_s / kept;
    return GHP_OK;
}

/* Which computing makes a segment, how much of it, and how many of them a round. */
static enum ghp_status choose_lengths(struct small_step *s, const struct ghp_task *tasks, int n,
                                      double alone_s)
{
    double task_s;

    GHP_TRY(keep_short(s, tasks, n, longest_exchanges * alone_s, &task_s));
    task_s = fmax(task_s, 1e-9);
    s->tasks = (int)fmin(fmax(1, ceil(segment_exchanges * alone_s / task_s)), MOST_TASKS);
    s->segments =
        (int)fmin(fmax(LEAST_SEGMENTS, ceil(round_samples * s->m->sample_s / (s->tasks * task_s))),
                  MOST_SEGMENTS);
    return GHP_OK;
}

/* Rounds without anything stand on both sides of the others: a machine that becomes slower does so for all. */
static enum ghp_status take_rounds(struct small_step *s, const double alone_s[JOINTS],
                                   struct ghp_overlap *overlap)
{
    struct ghp_samples arrival = {.n = ROUNDS}, launch = {.n = ROUNDS};
    double before_s, after_s, exchange_s, reduction_s, shared_s;

    GHP_TRY(time_round(s, NOTHING, &before_s));
    for (int i = 0; i < ROUNDS; i++) {
        GHP_TRY(time_round(s, EXCHANGE, &exchange_s));
        GHP_TRY(time_round(s, REDUCTION, &reduction_s));
        GHP_TRY(time_round(s, NOTHING, &after_s));
        arrival.values[i] = exchange_s - (before_s + after_s) / 2 - alone_s[EXCHANGE];
        shared_s = alone_s[REDUCTION] * overlap->comm * (1 - 1 / overlap->compute);
        launch.values[i] = reduction_s - (before_s + after_s) / 2 - shared_s;
        before_s = after_s;
    }
    overlap->arrival_delay_s = fmax(0, ghp_samples_summary(&arrival).seconds);
    overlap->launch_delay_s = fmax(0, ghp_samples_summary(&launch).seconds);
    return GHP_OK;
}

enum ghp_status ghp_measure_arrival(const struct ghp_measure *m, const struct ghp_task *computes,
                                    int n, struct ghp_overlap *overlap)
{
    struct small_step s = {.m = m};
    double alone_s[JOINTS] = {0}, unused = 0;
    enum ghp_status status;

    overlap->arrival_delay_s = overlap->launch_delay_s = 0;
    if (m->size == 1 || ghp_measure_device(m).ops != NULL) return GHP_OK;
    GHP_TRY(time_alone(m, GHP_COMM_ALL_GATHER, &alone_s[EXCHANGE]));
    GHP_TRY(time_alone(m, GHP_COMM_ALL_REDUCE, &alone_s[REDUCTION]));
    status = step_open(&s);
    status = ghp_measure_max(m, status, &unused);
    if (status == GHP_OK)
        status = choose_lengths(&s, computes, n, fmax(alone_s[EXCHANGE], alone_s[REDUCTION]));
    if (status == GHP_OK) status = take_rounds(&s, alone_s, overlap);
    step_close(&s);
    return status;
}
