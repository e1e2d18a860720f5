/* profiler/measure/overlap.c - reductions on the communication thread during computing, and during exchanges. */
#include "profiler/measure/overlap.h"
#include "core/base/clock.h"
#include "core/model/precision.h"
#include "executor/platform/task_thread.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    ROUNDS = 5,            /* at most GHP_MAX_SAMPLES; fewer with less effort */
    LONG_ROUNDS = 3,       /* of long reductions */
    ALONE_SAMPLES = 4,     /* samples of an operation that a measurement alone lasts as long as */
    CYCLES = 3,            /* all the computing in turns, at least so often a round */
    SHORT_EXCHANGES = 16,  /* a round */
    SHORT_BYTES = 1 << 10, /* of each rank: as statistics are */
    ROUND_SAMPLES = 10,    /* samples of an operation that a round lasts as long as; as ROUNDS */
    LEAST_RUNS = 4,
    MOST_RUNS = 1000
};
/* slowdown of a reduction from which on long ones are measured, too: what waits for the link alone has none at any
 * size */
static const double slow_reduction = 1.05;

/* Reductions of `bytes` bytes over all ranks on the communication stream, exchanges over all ranks on the computing
 * one. */
struct traffic {
    const struct ghp_measure *m;
    int64_t bytes;
    int64_t each;                        /* of an exchange, of each rank */
    struct ghp_collectives *collectives; /* of the transport that carries tensors */
    struct ghp_comm *comm;               /* communication stream */
    struct ghp_comm *exchanges;          /* compute stream */
    struct ghp_reduction sum;
    void *mine, *all;  /* exchange */
    atomic_int done;   /* reductions of this round */
    double finished_s; /* when the last of them was done; read after waiting for it */
};

static enum ghp_status reduce_once(void *context, int job)
{
    struct traffic *t = context;

    (void)job;
    GHP_TRY(t->comm->ops->all_reduce(t->comm, &t->sum));
    t->finished_s = ghp_now_s();
    atomic_fetch_add(&t->done, 1);
    return GHP_OK;
}

static enum ghp_status reduce_run(void *context, int64_t repeats)
{
    for (int64_t i = 0; i < repeats; i++)
        GHP_TRY(reduce_once(context, 0));
    return GHP_OK;
}

static enum ghp_status exchange_run(void *context, int64_t repeats)
{
    const struct traffic *t = context;

    for (int64_t i = 0; i < repeats; i++)
        GHP_TRY(t->exchanges->ops->all_gather(t->exchanges, t->mine, t->all, t->each));
    return GHP_OK;
}

static enum ghp_status traffic_open(struct traffic *t)
{
    struct ghp_ranks ranks = {.first = 0, .count = t->m->size, .stride = 1};

    struct ghp_device device = ghp_measure_device(t->m);

    t->each = t->bytes / t->m->size;
    t->collectives = ghp_measure_collectives(t->m);
    GHP_TRY(ghp_collectives_group(t->collectives, ranks, GHP_STREAM_COMM, &t->comm));
    GHP_TRY(ghp_collectives_group(t->collectives, ranks, GHP_STREAM_COMPUTE, &t->exchanges));
    t->comm->label = "reductions that overlap";
    t->exchanges->label = "exchanges that overlap";
    GHP_TRY(ghp_device_allocate(device, t->bytes, &t->sum.out));
    t->sum.in = t->sum.out;
    t->sum.element_bytes = ghp_parameter_bytes(t->m->element_bytes);
    t->sum.elements = t->bytes / t->sum.element_bytes;
    t->sum.scratch_bytes = GHP_COMM_SEGMENT_BYTES;
    GHP_TRY(ghp_device_allocate(device, GHP_COMM_SEGMENT_BYTES, &t->sum.scratch));
    GHP_TRY(ghp_device_allocate(device, t->bytes, &t->mine));
    return ghp_device_allocate(device, t->bytes, &t->all);
}

static void traffic_close(struct traffic *t)
{
    struct ghp_device device = ghp_measure_device(t->m);

    ghp_device_release(device, t->all);
    ghp_device_release(device, t->mine);
    ghp_device_release(device, t->sum.scratch);
    ghp_device_release(device, t->sum.out);
}

/* Runs that last about so long. */
static int runs_in(double seconds, double once_s)
{
    double runs = ceil(seconds / fmax(once_s, 1e-9));

    return (int)fmin(fmax(runs, LEAST_RUNS), MOST_RUNS);
}

static double round_s(const struct ghp_measure *m)
{
    return ghp_measure_rounds(m, ROUND_SAMPLES) * m->sample_s;
}

/* Computing, task after task: which comes next, and what each takes alone. */
struct work {
    struct ghp_task tasks[GHP_OVERLAP_TASKS];
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
 * reduction. The slowdown is the mean over the ranks: on a shared core one rank gets more than its neighbour, which a
 * step that all take together evens out. Reductions end together. */
static enum ghp_status round_compute(struct traffic *t, struct ghp_task_thread *stream,
                                     struct work *work, int n, double result[2])
{
    int64_t ticket = 0;
    double start_s = 0, alone_s = 0, rate = 0;
    enum ghp_status status = ghp_control_barrier(t->m->transport->control, t->m->world);

    GHP_TRY(status);
    atomic_store(&t->done, 0);
    start_s = ghp_now_s();
    for (int i = 0; i < n; i++)
        ticket = ghp_task_thread_post(stream, i);
    do {
        status = work_on(work, &alone_s);
        if (status == GHP_OK)
            status = ghp_device_finish(ghp_measure_device(t->m), GHP_DEVICE_STREAM_COMPUTE);
    } while (status == GHP_OK && atomic_load(&t->done) < n);
    rate = alone_s / (ghp_now_s() - start_s);
    if (status == GHP_OK) status = ghp_task_thread_wait(stream, ticket);
    result[1] = (t->finished_s - start_s) / n;
    GHP_TRY(ghp_measure_mean(t->m, status, &rate));
    result[0] = 1 / rate;
    return ghp_measure_max(t->m, status, &result[1]);
}

/* Posts n reductions and makes `exchanges` exchanges meanwhile: seconds until both are done. */
static enum ghp_status round_link(struct traffic *t, struct ghp_task_thread *stream, int n,
                                  int exchanges, double *both_s)
{
    int64_t ticket = 0;
    double start_s = 0;
    enum ghp_status status = ghp_control_barrier(t->m->transport->control, t->m->world);

    GHP_TRY(status);
    start_s = ghp_now_s();
    for (int i = 0; i < n; i++)
        ticket = ghp_task_thread_post(stream, i);
    status = exchange_run(t, exchanges);
    if (status == GHP_OK) status = ghp_task_thread_wait(stream, ticket);
    *both_s = ghp_now_s() - start_s;
    return ghp_measure_max(t->m, status, both_s);
}

/* Posts n reductions and makes short exchanges meanwhile: mean seconds of those that ended before the reductions. The
 * first is not counted: it may come before the first reduction fills the link. */
static enum ghp_status round_queueing(struct traffic *t, struct ghp_task_thread *stream, int n,
                                      double *concurrent_s)
{
    int64_t ticket = 0;
    int counted = 0;
    enum ghp_status status = ghp_control_barrier(t->m->transport->control, t->m->world);

    *concurrent_s = 0;
    GHP_TRY(status);
    atomic_store(&t->done, 0);
    for (int i = 0; i < n; i++)
        ticket = ghp_task_thread_post(stream, i);
    for (int i = 0; i <= SHORT_EXCHANGES && status == GHP_OK; i++) {
        double start_s = ghp_now_s();

        status = exchange_run(t, 1);
        if (i == 0 || atomic_load(&t->done) == n) continue;
        *concurrent_s += ghp_now_s() - start_s;
        counted++;
    }
    if (status == GHP_OK) status = ghp_task_thread_wait(stream, ticket);
    if (counted > 0) *concurrent_s /= counted;
    return ghp_measure_mean(t->m, status, concurrent_s);
}

static double slowdown(const struct ghp_samples *rounds)
{
    return fmax(1, ghp_samples_summary(rounds).seconds);
}

/* ---- if a device transport enqueues: both streams filled at once, and events at their ends ---- */

struct span { /* of a stream's work */
    struct ghp_device_event *begin, *end;
};

static enum ghp_status span_open(struct ghp_device device, struct span *span)
{
    GHP_TRY(device.ops->event_open(device.backend, true, &span->begin));
    return device.ops->event_open(device.backend, true, &span->end);
}

static void span_close(struct ghp_device device, struct span *span)
{
    device.ops->event_close(device.backend, span->end);
    device.ops->event_close(device.backend, span->begin);
}

/* Runs n reductions in the communication stream, and at the same time what `fill` puts into the compute stream. Gives
 * the seconds of each. */
static enum ghp_status fill_both(struct traffic *t, int n, struct ghp_task fill, int64_t runs,
                                 double seconds[2])
{
    struct ghp_device d = ghp_measure_device(t->m);
    struct span compute = {0}, comm = {0};
    enum ghp_status status = ghp_control_barrier(t->m->transport->control, t->m->world);

    GHP_TRY_GOTO(status, span_open(d, &compute), done);
    GHP_TRY_GOTO(status, span_open(d, &comm), done);
    GHP_TRY_GOTO(status, d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMM, comm.begin), done);
    GHP_TRY_GOTO(status, reduce_run(t, n), done);
    GHP_TRY_GOTO(status, d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMM, comm.end), done);
    GHP_TRY_GOTO(status, d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, compute.begin),
                 done);
    GHP_TRY_GOTO(status, fill.run(fill.context, runs), done);
    GHP_TRY_GOTO(status, d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, compute.end),
                 done);
    GHP_TRY_GOTO(status, ghp_measure_finish(t->m, GHP_DEVICE_STREAM_COMPUTE), done);
    GHP_TRY_GOTO(status, ghp_measure_finish(t->m, GHP_DEVICE_STREAM_COMM), done);
    GHP_TRY_GOTO(status, d.ops->elapsed(d.backend, compute.begin, compute.end, &seconds[0]), done);
    status = d.ops->elapsed(d.backend, comm.begin, comm.end, &seconds[1]);
done:
    span_close(d, &comm);
    span_close(d, &compute);
    return status;
}

struct amount { /* of computing: seconds that it takes alone */
    struct work *work;
    double alone_s;
};

static enum ghp_status fill_work(void *context, int64_t runs)
{
    struct amount *amount = context;

    for (int64_t i = 0; i < runs; i++)
        GHP_TRY(work_on(amount->work, &amount->alone_s));
    return GHP_OK;
}

/* As round_compute. Computing lasts longer than the reductions, and what it did after their end it did at its own
 * pace. */
static enum ghp_status enqueue_compute(struct traffic *t, struct work *work, int n, double reduce_s,
                                       double result[2])
{
    struct amount amount = {.work = work};
    double cycle_s = 0, took_s[2] = {0, 0}, rate = 0;
    int64_t runs;
    enum ghp_status status;

    for (int i = 0; i < work->n; i++)
        cycle_s += work->alone_s[i];
    runs = work->n * (int64_t)runs_in(1.5 * n * reduce_s, cycle_s);
    status = fill_both(t, n, (struct ghp_task){.run = fill_work, .context = &amount}, runs, took_s);
    if (status == GHP_OK)
        rate = (amount.alone_s - fmax(took_s[0] - took_s[1], 0)) / fmin(took_s[0], took_s[1]);
    rate = fmax(rate, 1e-3);
    result[1] = took_s[1] / n;
    GHP_TRY(ghp_measure_mean(t->m, status, &rate));
    result[0] = 1 / rate;
    return ghp_measure_max(t->m, status, &result[1]);
}

static enum ghp_status enqueue_link(struct traffic *t, int n, int exchanges, double *both_s)
{
    struct ghp_task task = {.run = exchange_run, .context = t};
    double took_s[2] = {0, 0};
    enum ghp_status status = fill_both(t, n, task, exchanges, took_s);

    *both_s = fmax(took_s[0], took_s[1]);
    return ghp_measure_max(t->m, status, both_s);
}

static enum ghp_status alone(struct traffic *t, struct ghp_task task, double samples,
                             double *seconds)
{
    struct ghp_samples one = {0};

    GHP_TRY(ghp_measure_more(t->m, task, samples * t->m->sample_s, 1, &one));
    *seconds = one.values[0];
    return GHP_OK;
}

/* How long a short exchange waits during a reduction, without the slowdown by which it shares the link; may be below 0
 * by chance. */
static enum ghp_status measure_queueing(struct traffic *t, struct ghp_task_thread *stream, int n,
                                        double link, double *queueing_delay_s)
{
    const int64_t each = t->each;
    const struct ghp_task task = {
        .run = exchange_run, .context = t, .stream = GHP_DEVICE_STREAM_COMPUTE};
    double alone_s = 0, concurrent_s = 0;
    enum ghp_status status;

    if (t->each > SHORT_BYTES) t->each = SHORT_BYTES;
    status = alone(t, task, 1, &alone_s);
    if (status == GHP_OK) status = round_queueing(t, stream, n, &concurrent_s);
    t->each = each;
    *queueing_delay_s = concurrent_s - link * alone_s;
    return status;
}

/* Work alone and work at the same time as other work are measured in the same round, so that a disturbance affects both
 * sides of their ratio. */
struct round {
    double compute, comm, link; /* slowdowns */
    double queueing_delay_s;    /* overlap.queueing_delay_s */
};

static enum ghp_status measure_round(struct traffic *t, struct ghp_task_thread *stream,
                                     struct work *work, struct round *round)
{
    bool enqueues = t->collectives->ops->enqueues;
    struct ghp_task reduce = {.run = reduce_run,
                              .context = t,
                              .clock = enqueues ? GHP_CLOCK_COMM : GHP_CLOCK_HOST,
                              .stream = GHP_DEVICE_STREAM_COMM};
    struct ghp_task exchange = {.run = exchange_run,
                                .context = t,
                                .clock = reduce.clock,
                                .stream = GHP_DEVICE_STREAM_COMPUTE};
    double reduce_s = 0, reshard_s = 0, cycle_s = 0, both_s = 0, concurrent[2] = {0}, a, b;
    int n, exchanges;

    for (int i = 0; i < work->n; i++) {
        GHP_TRY(alone(t, work->tasks[i], (double)ALONE_SAMPLES / work->n, &work->alone_s[i]));
        cycle_s += work->alone_s[i];
    }
    GHP_TRY(alone(t, reduce, ALONE_SAMPLES, &reduce_s));
    n = runs_in(fmax(round_s(t->m), ghp_measure_rounds(t->m, CYCLES) * cycle_s), reduce_s);
    GHP_TRY(enqueues ? enqueue_compute(t, work, n, reduce_s, concurrent)
                     : round_compute(t, stream, work, n, concurrent));
    round->compute = concurrent[0];
    round->comm = concurrent[1] / reduce_s;
    if (t->bytes > GHP_OVERLAP_BYTES) return GHP_OK; /* of long ones, no more is asked for */
    GHP_TRY(alone(t, exchange, ALONE_SAMPLES, &reshard_s));
    n = runs_in(round_s(t->m), reduce_s);
    exchanges = runs_in(round_s(t->m), reshard_s);
    GHP_TRY(enqueues ? enqueue_link(t, n, exchanges, &both_s)
                     : round_link(t, stream, n, exchanges, &both_s));
    a = n * reduce_s;
    b = exchanges * reshard_s;
    round->link = (both_s - fabs(a - b)) / fmin(a, b);
    if (enqueues) return GHP_OK; /* a device's streams are not the link's */
    return measure_queueing(t, stream, n, fmax(1, round->link), &round->queueing_delay_s);
}

/* Keeps tasks that a few rounds hold together, at least the first: what takes longer is slow enough to be typical
 * alone. */
static enum ghp_status choose_tasks(struct traffic *t, struct work *work)
{
    double most_s = ghp_measure_rounds(t->m, CYCLES) * round_s(t->m), cycle_s = 0;
    int n = 0;

    for (int i = 0; i < work->n; i++) {
        GHP_TRY(alone(t, work->tasks[i], 1, &work->alone_s[n]));
        if (n > 0 && cycle_s + work->alone_s[n] > most_s) continue;
        cycle_s += work->alone_s[n];
        work->tasks[n++] = work->tasks[i];
    }
    work->n = n;
    return GHP_OK;
}

static enum ghp_status rounds(struct traffic *t, struct ghp_task_thread *stream, struct work *work,
                              struct ghp_overlap *overlap)
{
    int n = ghp_measure_rounds(t->m, t->bytes > GHP_OVERLAP_BYTES ? LONG_ROUNDS : ROUNDS);
    struct ghp_samples compute = {.n = n}, comm = compute, link = compute, queueing = compute;

    GHP_TRY(choose_tasks(t, work));
    for (int i = 0; i < n; i++) {
        struct round round = {0};

        GHP_TRY(measure_round(t, stream, work, &round));
        compute.values[i] = round.compute;
        comm.values[i] = round.comm;
        link.values[i] = round.link;
        queueing.values[i] = round.queueing_delay_s;
    }
    *overlap =
        (struct ghp_overlap){.compute = slowdown(&compute),
                             .comm = slowdown(&comm),
                             .link = slowdown(&link),
                             .queueing_delay_s = fmax(0, ghp_samples_summary(&queueing).seconds)};
    return GHP_OK;
}

/* Measures the slowdowns with reductions of `bytes` bytes. */
static enum ghp_status measure_with(const struct ghp_measure *m, const struct ghp_task *computes,
                                    int n, int64_t bytes, struct ghp_overlap *overlap)
{
    struct traffic traffic = {.m = m, .bytes = bytes};
    struct work work = {.n = n};
    struct ghp_task_thread *stream = NULL;
    double unused = 0;
    enum ghp_status status;

    memcpy(work.tasks, computes, (size_t)n * sizeof *computes);
    status = traffic_open(&traffic);
    if (status == GHP_OK) status = ghp_task_thread_open(MOST_RUNS, reduce_once, &traffic, &stream);
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    status = rounds(&traffic, stream, &work, overlap);
done:
    ghp_task_thread_close(stream);
    traffic_close(&traffic);
    return status;
}

enum ghp_status ghp_measure_overlap(const struct ghp_measure *m, const struct ghp_task *computes,
                                    int n, struct ghp_overlap *overlap)
{
    struct ghp_overlap of_long = {0};
    double most; /* the same on all ranks */
    bool late;

    GHP_ASSERT(n >= 1 && n <= GHP_OVERLAP_TASKS);
    *overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    if (m->size == 1) return GHP_OK;
    GHP_TRY(measure_with(m, computes, n, GHP_OVERLAP_BYTES, overlap));
    most = overlap->comm;
    GHP_TRY(ghp_measure_max(m, GHP_OK, &most));
    GHP_TRY(ghp_measure_late(m, &late));
    if (late || most < slow_reduction) return GHP_OK;
    GHP_TRY(measure_with(m, computes, n, GHP_OVERLAP_LONG_BYTES, &of_long));
    overlap->comm_long = of_long.comm;
    return GHP_OK;
}
