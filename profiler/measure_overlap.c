/* profiler/measure_overlap.c - reductions on the communication thread beside computing, and beside exchanges. */
#include "profiler/measure_overlap.h"
#include "executor/stream.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_BYTES = 4 << 20, /* as buckets of gradients are */
    ROUNDS = 5,              /* at most GHP_MAX_SAMPLES */
    ALONE_SAMPLES = 4, /* a measurement alone lasts as long as so many samples of an operation */
    CYCLES = 3,        /* all the computing in turns, at least so often a round */
    LEAST_RUNS = 4,
    MOST_RUNS = 1000
};
static const double round_samples = 10; /* a round lasts as long as so many samples of an operation */

/* Reductions over all ranks on the communication stream, exchanges over all ranks on the computing one. */
struct traffic {
    const struct ghp_measure *m;
    struct ghp_comm *comm; /* communication stream */
    struct ghp_reduction sum;
    unsigned char *mine, *all; /* exchange */
    atomic_int done;           /* reductions of this round */
    double finished_s;         /* when the last of them was done; read after waiting for it */
};

static enum ghp_status reduce_once(void *context, int job)
{
    struct traffic *t = context;

    (void)job;
    GHP_TRY(t->m->transport_ops->all_reduce(t->comm, &t->sum));
    t->finished_s = ghp_measure_now_s();
    atomic_fetch_add(&t->done, 1);
    return GHP_OK;
}

static enum ghp_status reduce_run(void *context, int64_t repeats)
{
    for (int64_t i = 0; i < repeats; ++i) GHP_TRY(reduce_once(context, 0));
    return GHP_OK;
}

static enum ghp_status exchange_run(void *context, int64_t repeats)
{
    const struct traffic *t = context;

    for (int64_t i = 0; i < repeats; ++i)
        GHP_TRY(t->m->transport_ops->all_gather(t->m->world, t->mine, t->all,
                                                MESSAGE_BYTES / t->m->size));
    return GHP_OK;
}

static enum ghp_status traffic_open(struct traffic *t)
{
    struct ghp_ranks ranks = {.first = 0, .count = t->m->size, .stride = 1};

    GHP_TRY(t->m->transport_ops->group(t->m->transport, ranks, GHP_STREAM_COMM, &t->comm));
    t->m->transport_ops->label(t->comm, "reductions that overlap");
    t->sum.out = ghp_alloc(MESSAGE_BYTES, 1);
    t->sum.in = t->sum.out;
    t->sum.elements = MESSAGE_BYTES / t->m->element_bytes;
    t->sum.element_bytes = t->m->element_bytes;
    t->sum.scratch = ghp_alloc(GHP_COMM_SEGMENT_BYTES, 1);
    t->sum.scratch_bytes = GHP_COMM_SEGMENT_BYTES;
    t->mine = ghp_alloc(MESSAGE_BYTES, 1);
    t->all = ghp_alloc(MESSAGE_BYTES, 1);
    if (t->sum.out == NULL || t->sum.scratch == NULL || t->mine == NULL || t->all == NULL)
        return GHP_NO_MEMORY();
    return GHP_OK;
}

static void traffic_close(struct traffic *t)
{
    free(t->all);
    free(t->mine);
    free(t->sum.scratch);
    free(t->sum.out);
}

/* Runs that last about so long. */
static int runs_in(double seconds, double once_s)
{
    double runs = ceil(seconds / fmax(once_s, 1e-9));

    return (int)fmin(fmax(runs, LEAST_RUNS), MOST_RUNS);
}

/* Computing, task after task: which comes next, and what each takes alone. */
struct work {
    const struct ghp_task *tasks;
    int n, next;
    double alone_s[GHP_OVERLAP_TASKS];
};

/* Runs the next task once; adds what it takes alone. */
static enum ghp_status work_on(struct work *work, double *alone_s)
{
    const struct ghp_task *task = &work->tasks[work->next];

    *alone_s += work->alone_s[work->next];
    work->next = (work->next + 1) % work->n;
    return task->run(task->context, 1);
}

/* Posts n reductions and computes until they are done: how much slower computing is than alone, and mean seconds of a
 * reduction.  The slowdown is the mean over the ranks: on a shared core one rank gets more than its neighbour, which a
 * step that all take together evens out.  Reductions end together. */
static enum ghp_status round_compute(struct traffic *t, struct ghp_stream_thread *stream,
                                     struct work *work, int n, double result[2])
{
    int64_t ticket = 0;
    double start_s = 0, alone_s = 0, rate = 0;
    enum ghp_status status = t->m->transport_ops->barrier(t->m->world);

    GHP_TRY(status);
    atomic_store(&t->done, 0);
    start_s = ghp_measure_now_s();
    for (int i = 0; i < n; ++i) ticket = ghp_stream_post(stream, i);
    do status = work_on(work, &alone_s);
    while (status == GHP_OK && atomic_load(&t->done) < n);
    rate = alone_s / (ghp_measure_now_s() - start_s);
    if (status == GHP_OK) status = ghp_stream_wait(stream, ticket);
    result[1] = (t->finished_s - start_s) / n;
    GHP_TRY(ghp_measure_mean(t->m, status, &rate));
    result[0] = 1 / rate;
    return ghp_measure_max(t->m, status, &result[1]);
}

/* Posts n reductions and makes `exchanges` exchanges meanwhile: seconds until both are done. */
static enum ghp_status round_link(struct traffic *t, struct ghp_stream_thread *stream, int n,
                                  int exchanges, double *both_s)
{
    int64_t ticket = 0;
    double start_s = 0;
    enum ghp_status status = t->m->transport_ops->barrier(t->m->world);

    GHP_TRY(status);
    start_s = ghp_measure_now_s();
    for (int i = 0; i < n; ++i) ticket = ghp_stream_post(stream, i);
    status = exchange_run(t, exchanges);
    if (status == GHP_OK) status = ghp_stream_wait(stream, ticket);
    *both_s = ghp_measure_now_s() - start_s;
    return ghp_measure_max(t->m, status, both_s);
}

static double slowdown(const struct ghp_samples *rounds)
{
    return fmax(1, ghp_measure_summary(rounds).seconds);
}

static enum ghp_status alone(struct traffic *t, struct ghp_task task, double samples, double *seconds)
{
    struct ghp_samples one = {0};

    GHP_TRY(ghp_measure_more(t->m, task, samples * t->m->sample_s, 1, &one));
    *seconds = one.values[0];
    return GHP_OK;
}

/* What is done alone and what beside each other are measured in the same round: what disturbs it disturbs both sides of
 * its ratio. */
struct round {
    double compute, comm, link; /* slowdowns */
};

static enum ghp_status measure_round(struct traffic *t, struct ghp_stream_thread *stream,
                                     struct work *work, struct round *round)
{
    double reduce_s = 0, exchange_s = 0, cycle_s = 0, both_s = 0, beside[2] = {0}, a, b;
    int n, exchanges;

    for (int i = 0; i < work->n; ++i) {
        GHP_TRY(alone(t, work->tasks[i], (double)ALONE_SAMPLES / work->n, &work->alone_s[i]));
        cycle_s += work->alone_s[i];
    }
    GHP_TRY(alone(t, (struct ghp_task){reduce_run, t}, ALONE_SAMPLES, &reduce_s));
    GHP_TRY(alone(t, (struct ghp_task){exchange_run, t}, ALONE_SAMPLES, &exchange_s));
    n = runs_in(fmax(round_samples * t->m->sample_s, CYCLES * cycle_s), reduce_s);
    GHP_TRY(round_compute(t, stream, work, n, beside));
    round->compute = beside[0];
    round->comm = beside[1] / reduce_s;
    n = runs_in(round_samples * t->m->sample_s, reduce_s);
    exchanges = runs_in(round_samples * t->m->sample_s, exchange_s);
    GHP_TRY(round_link(t, stream, n, exchanges, &both_s));
    a = n * reduce_s;
    b = exchanges * exchange_s;
    round->link = (both_s - fabs(a - b)) / fmin(a, b);
    return GHP_OK;
}

static enum ghp_status rounds(struct traffic *t, struct ghp_stream_thread *stream, struct work *work,
                              struct ghp_overlap *overlap)
{
    struct ghp_samples compute = {.n = ROUNDS}, comm = compute, link = compute;

    for (int i = 0; i < ROUNDS; ++i) {
        struct round round = {0};

        GHP_TRY(measure_round(t, stream, work, &round));
        compute.values[i] = round.compute;
        comm.values[i] = round.comm;
        link.values[i] = round.link;
    }
    *overlap = (struct ghp_overlap){slowdown(&compute), slowdown(&comm), slowdown(&link)};
    return GHP_OK;
}

enum ghp_status ghp_measure_overlap(const struct ghp_measure *m, const struct ghp_task *computes, int n,
                                    struct ghp_overlap *overlap)
{
    struct traffic traffic = {.m = m};
    struct work work = {.tasks = computes, .n = n};
    struct ghp_stream_thread *stream = NULL;
    double unused = 0;
    enum ghp_status status = GHP_OK;

    GHP_ASSERT(n >= 1 && n <= GHP_OVERLAP_TASKS);
    *overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    if (m->size == 1) return GHP_OK;
    status = traffic_open(&traffic);
    if (status == GHP_OK) status = ghp_stream_open(MOST_RUNS, reduce_once, &traffic, &stream);
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    status = rounds(&traffic, stream, &work, overlap);
done:
    ghp_stream_close(stream);
    traffic_close(&traffic);
    return status;
}
