/* profiler/measure/measure.c - samples, means, and what the ranks tell each other. */
#include "profiler/measure/measure.h"
#include "core/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples that spread more than this are not trusted yet. */
static const double calm_spread = 0.03;
static const int64_t max_repeats = 1000000;
static const double near_fastest = 0.9; /* so near to the fastest worker's speed counts as that */
static const double head_start_s = 100e-6; /* of the host before a device */

/* What the ranks say that did not fail themselves. */
static const char echo[] = "see its message";

bool ghp_measure_is_echo(void)
{
    return strstr(ghp_status_message(), echo) != NULL;
}

/* All ranks' messages, or the failure of any of them. Takes no memory, of which a rank may be short. */
static enum ghp_status hear(const struct ghp_measure *m, enum ghp_status status, double value,
                            const struct ghp_control_message **all)
{
    struct ghp_control_message mine = {.value = value, .status = status};
    enum ghp_status result =
        m->transport->control->ops->tell(m->transport->control, m->world, mine, all);

    for (int r = 0; r < m->size && result == GHP_OK; r++)
        if ((*all)[r].status != GHP_OK)
            result =
                status != GHP_OK ? status : GHP_FAIL(GHP_ERR_COMM, "worker %d failed; %s", r, echo);
    return result;
}

enum ghp_status ghp_measure_max(const struct ghp_measure *m, enum ghp_status status, double *value)
{
    const struct ghp_control_message *all;

    GHP_TRY(hear(m, status, *value, &all));
    for (int r = 0; r < m->size; r++)
        if (all[r].value > *value) *value = all[r].value;
    return GHP_OK;
}

enum ghp_status ghp_measure_mean(const struct ghp_measure *m, enum ghp_status status, double *value)
{
    const struct ghp_control_message *all;
    double sum = 0;

    GHP_TRY(hear(m, status, *value, &all));
    for (int r = 0; r < m->size; r++)
        sum += all[r].value;
    *value = sum / m->size;
    return GHP_OK;
}

enum ghp_status ghp_measure_late(const struct ghp_measure *m, bool *late)
{
    double over = m->rates_until_s > 0 && ghp_now_s() > m->rates_until_s;

    GHP_TRY(ghp_measure_max(m, GHP_OK, &over));
    *late = over > 0;
    return GHP_OK;
}

enum ghp_status ghp_measure_broadcast(const struct ghp_measure *m, enum ghp_status status,
                                      void *bytes, int64_t n)
{
    unsigned char *all = ghp_alloc((size_t)m->size, (size_t)n);
    double unused = 0;

    if (status == GHP_OK && all == NULL) status = GHP_NO_MEMORY();
    status = ghp_measure_max(m, status, &unused);
    if (status == GHP_OK) status = m->world->ops->all_gather(m->world, bytes, all, n);
    if (status == GHP_OK) memcpy(bytes, all, (size_t)n);
    free(all);
    return status;
}

/* ---- by a device's events ---- */

enum { MOST_CAPTURED = 512 };

struct marked {
    const struct ghp_measure *m;
    struct ghp_device device;
    enum ghp_device_stream stream;
    struct ghp_device_event *begin, *end;
    struct ghp_device_graph *graph; /* of `taped` runs; NULL: none */
    int64_t captured;
};

/* A graph of the task's runs: as training plays them, without the host between them. Without one the runs are
 * enqueued. */
static void record(struct marked *by, struct ghp_task task, int64_t repeats)
{
    const struct ghp_device_ops *ops = by->device.ops;
    enum ghp_status status, ended;

    if (task.clock != GHP_CLOCK_COMPUTE || ops->begin_capture == NULL || repeats < 2) return;
    by->captured = repeats < MOST_CAPTURED ? repeats : MOST_CAPTURED;
    if (ops->begin_capture(by->device.backend) != GHP_OK) return;
    status = task.run(task.context, by->captured);
    ended = ops->end_capture(by->device.backend, &by->graph);
    if (status == GHP_OK && ended == GHP_OK) return;
    if (ended == GHP_OK) ops->graph_close(by->device.backend, by->graph);
    by->graph = NULL;
}

/* Enqueues at least `repeats` runs between the events; *runs receives their number. */
static enum ghp_status enqueue_runs(struct marked *by, struct ghp_task task, int64_t repeats,
                                    int64_t *runs)
{
    const struct ghp_device_ops *ops = by->device.ops;

    *runs = 0;
    if (by->graph == NULL) {
        *runs = repeats;
        return task.run(task.context, repeats);
    }
    for (; *runs < repeats; *runs += by->captured)
        GHP_TRY(ops->launch_graph(by->device.backend, by->graph));
    return GHP_OK;
}

static enum ghp_status run_marked(struct marked *by, struct ghp_task task, int64_t repeats,
                                  double *seconds)
{
    const struct ghp_device_ops *ops = by->device.ops;
    struct ghp_backend *backend = by->device.backend;
    int64_t runs = repeats;

    GHP_TRY(ops->event_open(backend, true, &by->begin));
    GHP_TRY(ops->event_open(backend, true, &by->end));
    record(by, task, repeats);
    GHP_TRY(ghp_measure_finish(by->m, by->stream));
    if (by->stream == GHP_DEVICE_STREAM_COMPUTE) GHP_TRY(ops->delay(backend, head_start_s));
    GHP_TRY(ops->record_event(backend, by->stream, by->begin));
    GHP_TRY(enqueue_runs(by, task, repeats, &runs));
    GHP_TRY(ops->record_event(backend, by->stream, by->end));
    GHP_TRY(ghp_measure_finish(by->m, by->stream));
    GHP_TRY(ops->elapsed(backend, by->begin, by->end, seconds));
    *seconds /= (double)runs;
    return GHP_OK;
}

static enum ghp_status sample_marked(const struct ghp_measure *m, struct ghp_task task,
                                     int64_t repeats, double *seconds)
{
    struct marked by = {.m = m,
                        .device = ghp_measure_device(m),
                        .stream =
                            task.clock == GHP_CLOCK_COMM ? task.stream : GHP_DEVICE_STREAM_COMPUTE};
    enum ghp_status status = run_marked(&by, task, repeats, seconds);

    if (by.graph != NULL) by.device.ops->graph_close(by.device.backend, by.graph);
    by.device.ops->event_close(by.device.backend, by.end);
    by.device.ops->event_close(by.device.backend, by.begin);
    return status;
}

/* What a rank's own seconds say of the slowest worker's: those of the fastest count, others say less. */
static double of_slowest(const struct ghp_measure *m, struct ghp_task task, double seconds)
{
    if (!task.alone || !(m->fastest > 1)) return seconds;
    return m->speed >= near_fastest * m->fastest ? seconds * m->speed : 0;
}

/* The slowest rank's mean over `repeats` runs; all ranks begin as they leave the last exchange, so together. */
static enum ghp_status sample(const struct ghp_measure *m, struct ghp_task task, int64_t repeats,
                              double *seconds)
{
    double start_s = ghp_now_s();
    enum ghp_status status;

    if (task.clock != GHP_CLOCK_HOST) {
        status = sample_marked(m, task, repeats, seconds);
    } else {
        status = task.run(task.context, repeats);
        *seconds = (ghp_now_s() - start_s) / (double)repeats;
    }
    *seconds = of_slowest(m, task, *seconds);
    return ghp_measure_max(m, status, seconds);
}

/* Runs that make a sample of the wanted length, by the seconds of one. */
static int64_t repeats_for(double sample_s, double once_s)
{
    double wanted = ceil(sample_s / fmax(once_s, 1e-9));

    return wanted < (double)max_repeats ? (int64_t)fmax(wanted, 1) : max_repeats;
}

enum ghp_status ghp_measure_on(const struct ghp_measure *m, struct ghp_task task, double sample_s,
                               int more, struct ghp_samples *samples)
{
    double once_s = ghp_samples_summary(samples).seconds;

    for (int i = 0; i < more && samples->n < GHP_MAX_SAMPLES; i++) {
        GHP_TRY(sample(m, task, repeats_for(sample_s, once_s), &samples->values[samples->n]));
        /* a first run may have had a shared core to itself */
        once_s = samples->values[samples->n++];
    }
    return GHP_OK;
}

enum ghp_status ghp_measure_cold(const struct ghp_measure *m, struct ghp_task task, double *seconds)
{
    GHP_TRY(ghp_control_barrier(m->transport->control, m->world));
    return sample(m, task, 1, seconds);
}

int ghp_measure_rounds(const struct ghp_measure *m, int usual)
{
    double rounds = m->effort > 0 ? round(m->effort * usual) : usual;

    return rounds > 1 ? (int)rounds : 1;
}

enum ghp_status ghp_measure_warm(const struct ghp_measure *m, struct ghp_task task, double sample_s,
                                 int more, struct ghp_samples *samples)
{
    double once_s = 0;

    if (samples->n == 0 && more > 0) {
        GHP_TRY(sample(m, task, 1, &once_s));
        if (repeats_for(sample_s, once_s) > 1) /* else it is a sample itself */
            GHP_TRY(sample(m, task, repeats_for(sample_s, once_s), &once_s));
        samples->values[samples->n++] = once_s;
        --more;
    }
    return ghp_measure_on(m, task, sample_s, more, samples);
}

enum ghp_status ghp_measure_more(const struct ghp_measure *m, struct ghp_task task, double sample_s,
                                 int more, struct ghp_samples *samples)
{
    double cold_s; /* thrown away */

    GHP_TRY(ghp_measure_cold(m, task, &cold_s));
    return ghp_measure_warm(m, task, sample_s, more, samples);
}

enum ghp_status ghp_measure_task(const struct ghp_measure *m, struct ghp_task task,
                                 struct ghp_effort effort, struct ghp_timed *timed)
{
    struct ghp_samples samples = {0};

    GHP_TRY(ghp_measure_more(m, task, effort.sample_s, effort.min_samples, &samples));
    *timed = ghp_samples_summary(&samples);
    while (samples.n < effort.max_samples && timed->spread > calm_spread) {
        GHP_TRY(ghp_measure_more(m, task, effort.sample_s, 1, &samples));
        *timed = ghp_samples_summary(&samples);
    }
    return GHP_OK;
}
