/* executor/engine/in_flight.c - see engine/in_flight.h. */
#include "executor/engine/in_flight.h"

#include "core/base/log.h"
#include "executor/platform/activity.h"
#include "executor/platform/backoff.h"

#include <stdlib.h>
#include <string.h>

/* A step on a device takes from tens of microseconds on; what was enqueued ahead keeps the device busy for a pause. */
static const struct ghp_backoff pauses = {.first_ns = 2000, .last_ns = 50000, .growth = 4};

/* one step of this many that run as graphs has its instructions timed */
enum { GHP_TIMED_EVERY = 16 };
enum { LANDING = GHP_METRIC_COUNT + 1 }; /* doubles of a step that come to the host */

struct half {
    struct ghp_device_event *done; /* after the step, never on a graph */
    /* of steps timed as a whole, and of those whose instructions are, too */
    struct ghp_device_graph *graphs[2];
    bool under_way, captured, skipped, timed;
    uint64_t step;
};

struct ghp_in_flight {
    struct ghp_in_flight_plan plan;
    struct ghp_device device;
    struct ghp_loader *loader; /* the weight owner's if that is better */
    struct ghp_timeline *timeline;
    int half; /* of the present step */
    struct half halves[GHP_HALVES];
    double *metrics; /* [GHP_HALVES][LANDING], pinned: metrics, then the sum of squares */
    /* [GHP_HALVES + 1], pinned: of each half, and of ghp_in_flight_set */
    struct ghp_step_hyperparameters *given;
    struct ghp_step_hyperparameters *hyperparameters; /* device */
    struct ghp_not_finite *not_finite;                /* device */
    bool captures, recording;
    int64_t steady; /* steps that were or could have been played */
    bool asks;      /* graphs are still recorded, here or by others that ask */
};

/* ---- opening ---- */

static enum ghp_status open_memory(struct ghp_in_flight *f)
{
    struct ghp_device d = f->device;
    const struct ghp_not_finite none = {.first = GHP_ALL_FINITE};
    void *metrics = NULL, *given = NULL, *hyperparameters = NULL, *not_finite = NULL;
    enum ghp_status status;

    status =
        d.ops->allocate_host(d.backend, GHP_HALVES * LANDING * (int64_t)sizeof(double), &metrics);
    f->metrics = metrics;
    if (status == GHP_OK) memset(metrics, 0, GHP_HALVES * LANDING * sizeof(double));
    if (status == GHP_OK)
        status =
            d.ops->allocate_host(d.backend, (GHP_HALVES + 1) * (int64_t)sizeof *f->given, &given);
    f->given = given;
    if (status == GHP_OK)
        status = d.ops->allocate(d.backend, (int64_t)sizeof *f->hyperparameters, &hyperparameters);
    f->hyperparameters = hyperparameters;
    if (status == GHP_OK) status = d.ops->allocate(d.backend, (int64_t)sizeof none, &not_finite);
    f->not_finite = not_finite;
    return status == GHP_OK ? ghp_device_write(d, not_finite, &none, (int64_t)sizeof none) : status;
}

static enum ghp_status open_loader(struct ghp_in_flight *f)
{
    const struct ghp_in_flight *weight_owner = f->plan.weight_owner;
    struct ghp_loader_plan plan = f->plan.loader;

    plan.device = f->device;
    if (weight_owner == NULL || !ghp_loader_is_double_buffered(weight_owner->loader))
        return ghp_loader_open(&plan, &f->loader);
    f->loader = weight_owner->loader;
    return GHP_OK;
}

enum ghp_status ghp_in_flight_open(const struct ghp_in_flight_plan *plan,
                                   struct ghp_in_flight **in_flight)
{
    enum ghp_status status = GHP_OK;
    struct ghp_in_flight *f = ghp_alloc(1, sizeof *f);

    *in_flight = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    f->plan = *plan;
    f->device = ghp_device_complete(ghp_exec_context_device(plan->exec));
    f->captures = plan->captures && f->device.ops->begin_capture != NULL;
    f->asks = f->device.ops->begin_capture != NULL && (f->captures || plan->agreeing > 1);
    GHP_TRY_GOTO(status, open_memory(f), fail);
    GHP_TRY_GOTO(status, ghp_timeline_open(f->device, plan->program, &f->timeline), fail);
    for (int i = 0; i < GHP_HALVES; i++)
        GHP_TRY_GOTO(status,
                     f->device.ops->event_open(f->device.backend, false, &f->halves[i].done), fail);
    GHP_TRY_GOTO(status, open_loader(f), fail);
    *in_flight = f;
    return GHP_OK;
fail:
    ghp_in_flight_close(f);
    return status;
}

void ghp_in_flight_close(struct ghp_in_flight *f)
{
    struct ghp_device d;

    if (f == NULL) return;
    d = f->device;
    ghp_device_finish(d, GHP_DEVICE_STREAM_COMPUTE);
    for (int i = 0; i < GHP_HALVES; i++) {
        for (int timed = 0; timed < 2; timed++)
            if (f->halves[i].graphs[timed] != NULL)
                d.ops->graph_close(d.backend, f->halves[i].graphs[timed]);
        d.ops->event_close(d.backend, f->halves[i].done);
    }
    if (f->plan.weight_owner == NULL || f->loader != f->plan.weight_owner->loader)
        ghp_loader_close(f->loader);
    ghp_timeline_close(f->timeline);
    d.ops->release(d.backend, f->hyperparameters);
    d.ops->release(d.backend, f->not_finite);
    d.ops->release_host(d.backend, f->given);
    d.ops->release_host(d.backend, f->metrics);
    free(f);
}

/* ---- numbers ---- */

const struct ghp_step_hyperparameters *ghp_in_flight_hyperparameters(const struct ghp_in_flight *f)
{
    return f->hyperparameters;
}

struct ghp_not_finite *ghp_in_flight_not_finite(const struct ghp_in_flight *f)
{
    return f->not_finite;
}

enum ghp_status ghp_in_flight_read_not_finite(const struct ghp_in_flight *f,
                                              struct ghp_not_finite *found)
{
    return ghp_device_read(f->device, found, f->not_finite, (int64_t)sizeof *found);
}

static enum ghp_status send_hyperparameters(struct ghp_in_flight *f, int slot,
                                            const struct ghp_step_hyperparameters *hyperparameters)
{
    f->given[slot] = *hyperparameters;
    return ghp_device_copy(f->device, GHP_DEVICE_STREAM_COMPUTE,
                           (struct ghp_copy){f->hyperparameters, &f->given[slot],
                                             (int64_t)sizeof *hyperparameters, GHP_COPY_TO_DEVICE});
}

enum ghp_status ghp_in_flight_set(struct ghp_in_flight *f,
                                  const struct ghp_step_hyperparameters *hyperparameters)
{
    GHP_TRY(send_hyperparameters(f, GHP_HALVES, hyperparameters));
    return ghp_device_finish(f->device, GHP_DEVICE_STREAM_COMPUTE);
}

/* ---- a step ---- */

enum ghp_status ghp_in_flight_begin(struct ghp_in_flight *f, const struct ghp_supply *supply,
                                    const struct ghp_step_hyperparameters *hyperparameters)
{
    struct half *half;

    f->half = 1 - f->half;
    half = &f->halves[f->half];
    GHP_ASSERT(!half->under_way);
    half->step = supply->step;
    half->skipped = false;
    GHP_TRY(ghp_loader_begin(f->loader, f->half, supply));
    return send_hyperparameters(f, f->half, hyperparameters);
}

bool ghp_in_flight_captures(const struct ghp_in_flight *f)
{
    return f->captures;
}

int ghp_in_flight_half(const struct ghp_in_flight *f)
{
    return f->half;
}

bool ghp_in_flight_is_capturing(const struct ghp_in_flight *f)
{
    return f->recording;
}

/* Onto the half's graph of such steps; without one afterwards, nothing was enqueued and later steps go without. */
static enum ghp_status record(struct ghp_in_flight *f, enum ghp_status (*run)(void *context),
                              void *context)
{
    struct half *half = &f->halves[f->half];
    struct ghp_device d = f->device;
    enum ghp_status status = d.ops->begin_capture(d.backend), ended;

    if (status != GHP_OK) return status;
    f->recording = true;
    status = run(context);
    f->recording = false;
    ended = d.ops->end_capture(d.backend, &half->graphs[half->timed]);
    return status != GHP_OK ? status : ended;
}

/* The worst status of all workers that record together. */
static enum ghp_status agree(const struct ghp_in_flight *f, enum ghp_status status)
{
    struct ghp_transport *transport = f->plan.exec->transport;
    struct ghp_ranks all = {.count = f->plan.agreeing, .stride = 1};
    struct ghp_comm *comm = NULL;

    if (all.count < 2) return status;
    GHP_TRY(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &comm));
    comm->label = "agreeing on graphs of steps";
    return ghp_control_agree(transport->control, comm, status);
}

/* Records the step. NCCL wants the calls of all ranks of a collective recorded or none, so all workers enqueue their
 * steps if one cannot record. */
static enum ghp_status record_together(struct ghp_in_flight *f,
                                       enum ghp_status (*run)(void *context), void *context)
{
    struct half *half = &f->halves[f->half];
    enum ghp_status status = GHP_ERR_BACKEND;

    if (f->captures) status = record(f, run, context);
    status = agree(f, status);
    if (status == GHP_OK) return GHP_OK;
    if (half->graphs[half->timed] != NULL)
        f->device.ops->graph_close(f->device.backend, half->graphs[half->timed]);
    half->graphs[half->timed] = NULL;
    if (status == GHP_ERR_COMM) return status;
    if (f->captures) ghp_note("steps are enqueued one by one: %s", ghp_status_message());
    f->captures = f->asks = false;
    return GHP_OK;
}

enum ghp_status ghp_in_flight_run(struct ghp_in_flight *f, bool steady,
                                  enum ghp_status (*run)(void *context), void *context)
{
    struct half *half = &f->halves[f->half];
    struct ghp_device d = f->device;

    half->timed = !f->asks || !steady || f->steady++ % GHP_TIMED_EVERY == 0;
    if (f->asks && steady && half->graphs[half->timed] == NULL)
        GHP_TRY(record_together(f, run, context));
    half->captured = f->captures && steady && half->graphs[half->timed] != NULL;
    if (half->captured) {
        ghp_timeline_again(f->timeline, f->half, half->timed);
        GHP_TRY(d.ops->launch_graph(d.backend, half->graphs[half->timed]));
    } else {
        half->timed = true;
        GHP_TRY(run(context));
    }
    half->under_way = true;
    ghp_loader_end(f->loader);
    return d.ops->record_event(d.backend, GHP_DEVICE_STREAM_COMPUTE, half->done);
}

enum ghp_status ghp_in_flight_load(struct ghp_in_flight *f, int micro, void *images, void *labels)
{
    return ghp_loader_load(f->loader, micro, images, labels);
}

const struct ghp_second_label *ghp_in_flight_seconds(const struct ghp_in_flight *f, int micro)
{
    return ghp_loader_seconds(f->loader, micro);
}

enum ghp_status ghp_in_flight_start(struct ghp_in_flight *f, int half, int instr)
{
    return instr == GHP_WHOLE_STEP ? ghp_timeline_begin(f->timeline, half, f->halves[half].timed)
                                   : ghp_timeline_start(f->timeline, half, instr);
}

enum ghp_status ghp_in_flight_finish(struct ghp_in_flight *f, int half, int instr)
{
    return instr == GHP_WHOLE_STEP ? ghp_timeline_end(f->timeline, half)
                                   : ghp_timeline_finish(f->timeline, half, instr);
}

void ghp_in_flight_idle(struct ghp_in_flight *f, int instr)
{
    ghp_timeline_idle(f->timeline, f->half, instr);
}

void ghp_in_flight_divert(struct ghp_in_flight *f, int instr, enum ghp_device_stream stream)
{
    ghp_timeline_divert(f->timeline, instr, stream);
}

enum ghp_status ghp_in_flight_posted(struct ghp_in_flight *f, int instr)
{
    return ghp_timeline_posted(f->timeline, f->half, instr);
}

enum ghp_status ghp_in_flight_metrics(struct ghp_in_flight *f, int half,
                                      enum ghp_device_stream stream, const void *metrics)
{
    return ghp_device_copy(f->device, stream,
                           (struct ghp_copy){f->metrics + half * LANDING, metrics,
                                             GHP_METRIC_COUNT * (int64_t)sizeof(double),
                                             GHP_COPY_TO_HOST});
}

enum ghp_status ghp_in_flight_squares(struct ghp_in_flight *f, const void *squares)
{
    return ghp_device_copy(f->device, GHP_DEVICE_STREAM_COMPUTE,
                           (struct ghp_copy){f->metrics + f->half * LANDING + GHP_METRIC_COUNT,
                                             squares, (int64_t)sizeof(double), GHP_COPY_TO_HOST});
}

/* ---- afterwards ---- */

/* The instruction that a wait is for; -1: a step, of which no more is known. */
static int pending_of(const struct ghp_in_flight *f, int half)
{
    int instr = -1;

    if (f->halves[half].captured || ghp_timeline_pending(f->timeline, half, &instr) != GHP_OK ||
        instr >= f->plan.program->n_instrs)
        return -1;
    return instr;
}

static const char *label_of(const struct ghp_in_flight *f, int instr)
{
    return instr < 0 ? "a step" : f->plan.label(f->plan.context, instr);
}

/* The watchdog names a kernel that does not end. What waits for other workers has a limit of its own. */
static void name(const struct ghp_in_flight *f, int half, int instr, const char **named)
{
    bool local = instr < 0 || ghp_kind_of(&f->plan.program->instrs[instr])->is_local;
    const char *label = local ? label_of(f, instr) : NULL;

    if (label != *named) ghp_activity_begin(label, f->halves[half].step);
    *named = label;
}

static enum ghp_status is_done(struct ghp_in_flight *f, int b, bool *done)
{
    struct half *half = &f->halves[b];
    int instr = -1;

    GHP_TRY(f->device.ops->query_event(f->device.backend, half->done, done));
    if (!*done || half->captured) return GHP_OK;
    GHP_TRY(ghp_timeline_pending(f->timeline, b, &instr));
    *done = instr < 0;
    return GHP_OK;
}

static enum ghp_status look_until_done(struct ghp_in_flight *f, int b, const char **named)
{
    const struct ghp_exec_context *exec = f->plan.exec;
    struct ghp_backoff_wait wait = ghp_backoff_begin(&pauses);
    bool names = !ghp_device_is_host(ghp_exec_context_device(exec)) &&
                 !exec->collectives->ops->enqueues; /* then `check` has a limit */
    bool done = false;

    for (;;) {
        int instr;

        GHP_TRY(is_done(f, b, &done));
        if (done) return GHP_OK;
        instr = pending_of(f, b);
        if (names) name(f, b, instr, named);
        GHP_TRY(exec->collectives->ops->check(exec->collectives, ghp_backoff_waited_s(&wait),
                                              label_of(f, instr)));
        ghp_backoff_pause(&wait);
    }
}

static enum ghp_status await(struct ghp_in_flight *f, int b)
{
    const char *named = NULL;
    enum ghp_status status = look_until_done(f, b, &named);

    if (named != NULL) ghp_activity_end();
    return status;
}

static enum ghp_status collect_half(struct ghp_in_flight *f, int b, struct ghp_step_timer *timer,
                                    struct ghp_in_flight_results *landed)
{
    struct half *half = &f->halves[b];

    if (!half->under_way) return GHP_OK;
    GHP_TRY(await(f, b));
    GHP_TRY(ghp_timeline_take(f->timeline, b, timer));
    if (half->skipped) ghp_step_timer_skip(timer);
    memcpy(landed->metrics[landed->n], f->metrics + b * LANDING, sizeof landed->metrics[0]);
    landed->squares[landed->n] = f->metrics[b * LANDING + GHP_METRIC_COUNT];
    landed->step[landed->n++] = half->step;
    half->under_way = false;
    return GHP_OK;
}

enum ghp_status ghp_in_flight_collect(struct ghp_in_flight *f, bool all,
                                      struct ghp_step_timer *timer,
                                      struct ghp_in_flight_results *landed)
{
    landed->n = 0;
    GHP_TRY(collect_half(f, 1 - f->half, timer, landed));
    return all ? collect_half(f, f->half, timer, landed) : GHP_OK;
}

void ghp_in_flight_skip(struct ghp_in_flight *f)
{
    f->halves[f->half].skipped = true;
}

struct ghp_loader *ghp_in_flight_loader(const struct ghp_in_flight *f)
{
    return f->loader;
}
