/* profiler/measure_overlap.c - reductions on the communication thread beside computing, and beside exchanges. */
#include "profiler/measure_overlap.h"
#include "core/precision.h"
#include "executor/stream.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_BYTES = 4 << 20, /* as buckets of gradients are */
    ROUNDS = 5,              /* at most GHP_MAX_SAMPLES */
    ALONE_SAMPLES = 4, /* a measurement alone lasts as long as so many samples of an operation */
    LEAST_RUNS = 4,
    MOST_RUNS = 1000
};
static const double round_samples = 10; /* a round lasts as long as so many samples of an operation */

/* Reductions over all ranks on the communication stream, exchanges over all ranks on the computing one. */
struct traffic {
    const struct ghp_measure *m;
    struct ghp_team team; /* with whoever carries tensors */
    struct ghp_comm *comm; /* communication stream */
    struct ghp_comm *exchanges; /* compute stream */
    struct ghp_reduction sum;
    void *mine, *all; /* exchange */
    atomic_int done;           /* reductions of this round */
    double finished_s;         /* when the last of them was done; read after waiting for it */
};

static enum ghp_status reduce_once(void *context, int job)
{
    struct traffic *t = context;

    (void)job;
    GHP_TRY(t->team.carrier_ops->all_reduce(t->comm, &t->sum));
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
        GHP_TRY(t->team.carrier_ops->all_gather(t->exchanges, t->mine, t->all,
                                                MESSAGE_BYTES / t->m->size));
    return GHP_OK;
}

static enum ghp_status traffic_open(struct traffic *t)
{
    struct ghp_ranks ranks = {.first = 0, .count = t->m->size, .stride = 1};

    struct ghp_device device = ghp_measure_device(t->m);

    t->team = ghp_measure_carrier(t->m);
    GHP_TRY(t->team.carrier_ops->group(t->team.carrier, ranks, GHP_STREAM_COMM, &t->comm));
    GHP_TRY(t->team.carrier_ops->group(t->team.carrier, ranks, GHP_STREAM_COMPUTE, &t->exchanges));
    t->team.carrier_ops->label(t->comm, "reductions that overlap");
    t->team.carrier_ops->label(t->exchanges, "exchanges that overlap");
    GHP_TRY(ghp_device_allocate(device, MESSAGE_BYTES, &t->sum.out));
    t->sum.in = t->sum.out;
    t->sum.element_bytes = ghp_parameter_bytes(t->m->element_bytes);
    t->sum.elements = MESSAGE_BYTES / t->sum.element_bytes;
    t->sum.scratch_bytes = GHP_COMM_SEGMENT_BYTES;
    GHP_TRY(ghp_device_allocate(device, GHP_COMM_SEGMENT_BYTES, &t->sum.scratch));
    GHP_TRY(ghp_device_allocate(device, MESSAGE_BYTES, &t->mine));
    return ghp_device_allocate(device, MESSAGE_BYTES, &t->all);
}

static void traffic_close(struct traffic *t)
{
    struct ghp_device device = ghp_measure_device(t->m);

    ghp_device_release(device, t->all);
    ghp_device_release(device, t->mine);
    ghp_device_release(device, t->sum.scratch);
    ghp_device_release(device, t->sum.out);
}

/* Runs that last about a round. */
static int runs_in_round(const struct ghp_measure *m, double once_s)
{
    double runs = ceil(round_samples * m->sample_s / fmax(once_s, 1e-9));

    return (int)fmin(fmax(runs, LEAST_RUNS), MOST_RUNS);
}

/* Posts n reductions and computes until they are done: mean seconds of each kind of work.  Of computing it is the mean
 * over the ranks: on a shared core one rank gets more than its neighbour, which a step that all take together evens
 * out.  Reductions end together. */
static enum ghp_status round_compute(struct traffic *t, struct ghp_stream_thread *stream,
                                     struct ghp_task compute, int n, double mean_s[2])
{
    int64_t ticket = 0;
    int64_t computed = 0;
    double start_s = 0, rate = 0;
    enum ghp_status status = t->m->transport_ops->barrier(t->m->world);

    GHP_TRY(status);
    atomic_store(&t->done, 0);
    start_s = ghp_measure_now_s();
    for (int i = 0; i < n; ++i) ticket = ghp_stream_post(stream, i);
    do {
        status = compute.run(compute.context, 1);
        if (status == GHP_OK)
            status = ghp_device_finish(ghp_measure_device(t->m), GHP_QUEUE_COMPUTE);
        computed += 1;
    } while (status == GHP_OK && atomic_load(&t->done) < n);
    rate = (double)computed / (ghp_measure_now_s() - start_s);
    if (status == GHP_OK) status = ghp_stream_wait(stream, ticket);
    mean_s[1] = (t->finished_s - start_s) / n;
    GHP_TRY(ghp_measure_mean(t->m, status, &rate));
    mean_s[0] = 1 / rate;
    return ghp_measure_max(t->m, status, &mean_s[1]);
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

/* ---- where a carrier enqueues: both queues filled at once, and marks at their ends ---- */

struct span { /* of a queue's work, from a common begin */
    struct ghp_mark *begin, *end;
};

static enum ghp_status span_open(struct ghp_device device, struct span *span)
{
    GHP_TRY(device.ops->mark_open(device.backend, true, &span->begin));
    return device.ops->mark_open(device.backend, true, &span->end);
}

static void span_close(struct ghp_device device, struct span *span)
{
    device.ops->mark_close(device.backend, span->end);
    device.ops->mark_close(device.backend, span->begin);
}

/* Enqueues the task's runs on its queue, in step with the other queue. */
static enum ghp_status span_fill(struct ghp_device device, struct span *span, struct ghp_task task,
                                 int64_t runs)
{
    enum ghp_queue queue = task.clock == GHP_CLOCK_COMM ? task.queue : GHP_QUEUE_COMPUTE;

    GHP_TRY(device.ops->set(device.backend, queue, span->begin));
    GHP_TRY(task.run(task.context, runs));
    return device.ops->set(device.backend, queue, span->end);
}

/* n reductions beside `runs` of another task: seconds of each. */
static enum ghp_status fill_both(struct traffic *t, struct ghp_task task, int64_t runs, int n,
                                 double seconds[2])
{
    struct ghp_device d = ghp_measure_device(t->m);
    struct ghp_task reduce = {
        .run = reduce_run, .context = t, .clock = GHP_CLOCK_COMM, .queue = GHP_QUEUE_COMM};
    struct span one = {0}, other = {0};
    enum ghp_status status = t->m->transport_ops->barrier(t->m->world);

    GHP_TRY_GOTO(status, span_open(d, &one), done);
    GHP_TRY_GOTO(status, span_open(d, &other), done);
    GHP_TRY_GOTO(status, span_fill(d, &other, reduce, n), done);
    GHP_TRY_GOTO(status, span_fill(d, &one, task, runs), done);
    GHP_TRY_GOTO(status, d.ops->finish(d.backend, GHP_QUEUE_COMPUTE), done);
    GHP_TRY_GOTO(status, d.ops->finish(d.backend, GHP_QUEUE_COMM), done);
    GHP_TRY_GOTO(status, d.ops->between(d.backend, one.begin, one.end, &seconds[0]), done);
    status = d.ops->between(d.backend, other.begin, other.end, &seconds[1]);
done:
    span_close(d, &other);
    span_close(d, &one);
    return status;
}

/* The same two means as round_compute. Computing goes on half as long again as the reductions, and what it did after
 * their end it did at the pace it has alone. */
static enum ghp_status enqueue_compute(struct traffic *t, struct ghp_task compute, int n,
                                       const double alone_s[2], double mean_s[2])
{
    double runs = ceil(1.5 * n * alone_s[1] / alone_s[0]), took_s[2] = {0, 0}, beside, rate;
    enum ghp_status status;

    runs = fmin(fmax(runs, LEAST_RUNS), 1e6);
    status = fill_both(t, compute, (int64_t)runs, n, took_s);
    beside = runs - fmax(took_s[0] - took_s[1], 0) / alone_s[0];
    rate = fmax(beside, 1) / fmin(fmax(took_s[1], 1e-9), fmax(took_s[0], 1e-9));
    mean_s[1] = took_s[1] / n;
    GHP_TRY(ghp_measure_mean(t->m, status, &rate));
    mean_s[0] = 1 / rate;
    return ghp_measure_max(t->m, status, &mean_s[1]);
}

static enum ghp_status enqueue_link(struct traffic *t, int n, int exchanges, double *both_s)
{
    struct ghp_task task = {.run = exchange_run,
                            .context = t,
                            .clock = GHP_CLOCK_COMM,
                            .queue = GHP_QUEUE_COMPUTE};
    double took_s[2] = {0, 0};
    enum ghp_status status = fill_both(t, task, exchanges, n, took_s);

    *both_s = fmax(took_s[0], took_s[1]);
    return ghp_measure_max(t->m, status, both_s);
}

/* What each kind of work costs alone, measured anew in each round: what disturbs a round disturbs both sides of its ratio. */
struct alone {
    double compute_s, reduce_s, exchange_s;
};

static enum ghp_status measure_alone(struct traffic *t, struct ghp_task compute,
                                     struct alone *alone)
{
    enum ghp_clock clock = t->team.carrier_ops->queues ? GHP_CLOCK_COMM : GHP_CLOCK_HOST;
    struct ghp_task tasks[] = {
        compute,
        {.run = reduce_run, .context = t, .clock = clock, .queue = GHP_QUEUE_COMM},
        {.run = exchange_run, .context = t, .clock = clock, .queue = GHP_QUEUE_COMPUTE}};
    double *results[] = {&alone->compute_s, &alone->reduce_s, &alone->exchange_s};

    for (int i = 0; i < 3; ++i) {
        struct ghp_samples samples = {0};

        GHP_TRY(ghp_measure_more(t->m, tasks[i], ALONE_SAMPLES * t->m->sample_s, 1, &samples));
        *results[i] = samples.values[0];
    }
    return GHP_OK;
}

static enum ghp_status rounds(struct traffic *t, struct ghp_stream_thread *stream,
                              struct ghp_task compute, struct ghp_overlap *overlap)
{
    struct ghp_samples on_compute = {.n = ROUNDS}, on_comm = on_compute, on_link = on_compute;

    for (int i = 0; i < ROUNDS; ++i) {
        struct alone alone = {0};
        double mean_s[2] = {0}, both_s = 0, a, b;
        int n, exchanges;

        GHP_TRY(measure_alone(t, compute, &alone));
        n = runs_in_round(t->m, alone.reduce_s);
        exchanges = runs_in_round(t->m, alone.exchange_s);
        if (t->team.carrier_ops->queues)
            GHP_TRY(enqueue_compute(
                t, compute, n, (const double[2]){alone.compute_s, alone.reduce_s}, mean_s));
        else
            GHP_TRY(round_compute(t, stream, compute, n, mean_s));
        on_compute.values[i] = mean_s[0] / alone.compute_s;
        on_comm.values[i] = mean_s[1] / alone.reduce_s;
        if (t->team.carrier_ops->queues)
            GHP_TRY(enqueue_link(t, n, exchanges, &both_s));
        else
            GHP_TRY(round_link(t, stream, n, exchanges, &both_s));
        a = n * alone.reduce_s;
        b = exchanges * alone.exchange_s;
        on_link.values[i] = (both_s - fabs(a - b)) / fmin(a, b);
    }
    overlap->compute = slowdown(&on_compute);
    overlap->comm = slowdown(&on_comm);
    overlap->link = slowdown(&on_link);
    return GHP_OK;
}

enum ghp_status ghp_measure_overlap(const struct ghp_measure *m, struct ghp_task compute,
                                    struct ghp_overlap *overlap)
{
    struct traffic traffic = {.m = m};
    struct ghp_stream_thread *stream = NULL;
    double unused = 0;
    enum ghp_status status = GHP_OK;

    *overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    if (m->size == 1) return GHP_OK;
    status = traffic_open(&traffic);
    if (status == GHP_OK) status = ghp_stream_open(MOST_RUNS, reduce_once, &traffic, &stream);
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    status = rounds(&traffic, stream, compute, overlap);
done:
    ghp_stream_close(stream);
    traffic_close(&traffic);
    return status;
}
