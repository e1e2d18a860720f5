/* executor/engine/worker_step.c - runs the steps of a worker. The order of everything is the program's; this file
 * adds only the rules of core/program/program.h: reductions and transfers run on the other streams, updates wait for
 * the previous step's, a flush runs them alone.
 *
 * On a device the same instructions are enqueued in the same order; what the host learns of a step it learns a step
 * later, from its flight (engine/in_flight.h). */
#include "executor/engine/worker_private.h"
#include "core/base/clock.h"

#include <string.h>

void ghp_worker_take_result(struct ghp_worker *w, uint64_t step, const double *m)
{
    w->result = (struct ghp_result){
        .step = step,
        .loss = m[GHP_METRIC_SAMPLES] > 0 ? m[GHP_METRIC_LOSS] / m[GHP_METRIC_SAMPLES] : 0,
        .correct = m[GHP_METRIC_CORRECT],
        .samples = m[GHP_METRIC_SAMPLES]};
    w->has_result = true;
}

/* The compute stream goes on when the reduction that the instruction waits for is done. A graph begins with all of them
 * done. */
static enum ghp_status wait_for(struct ghp_worker *w, int i)
{
    bool joined = w->in_flight != NULL && ghp_in_flight_is_capturing(w->in_flight);

    return i < 0 || w->comm_stream == NULL || joined ? GHP_OK
                                                     : ghp_comm_stream_wait(w->comm_stream, i);
}

/* The last step's metrics are complete: keeps them, and clears the sums for the next. */
static enum ghp_status turn_metrics(struct ghp_worker *w, const struct ghp_step *previous)
{
    if (w->in_flight == NULL && w->result_pending) {
        ghp_worker_take_result(w, previous->index, w->address[w->metrics]);
        w->result_pending = false;
    }
    return ghp_device_clear(w->arena.device, GHP_DEVICE_STREAM_COMPUTE, w->address[w->metrics],
                            GHP_METRIC_COUNT * sizeof(double));
}

struct moment { /* of an instruction, by the host's clock */
    double before_s, start_s;
};

/* Waits for what the instruction waits for. */
static enum ghp_status enter(struct ghp_worker *w, int i, struct moment *moment)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    moment->before_s = ghp_now_s();
    ghp_arena_visit(&w->arena, &w->program, instr->point);
    GHP_TRY(wait_for(w, instr->wait));
    moment->start_s = ghp_now_s();
    if (w->in_flight == NULL || instr->stream != GHP_STREAM_COMPUTE) return GHP_OK;
    return ghp_in_flight_start(w->in_flight, ghp_in_flight_bank(w->in_flight), i);
}

static enum ghp_status leave(struct ghp_worker *w, int i, struct moment moment)
{
    bool here = ghp_worker_instr(w, i)->stream == GHP_STREAM_COMPUTE; /* else its job says when */
    double begin = ghp_step_timer_start_s(w->timer), now_s = ghp_now_s();
    struct ghp_instr_timing timing = {.step = ghp_step_timer_step(w->timer),
                                      .start_s = moment.start_s - begin,
                                      .finish_s = now_s - begin};

    if (w->in_flight != NULL)
        return here ? ghp_in_flight_finish(w->in_flight, ghp_in_flight_bank(w->in_flight), i)
                    : GHP_OK;
    ghp_step_timer_wait(w->timer, i, (here ? moment.start_s : now_s) - moment.before_s);
    if (here) ghp_step_timer_record(w->timer, i, timing);
    return GHP_OK;
}

/* Whether it belongs to the updates by the step before. */
static bool updates(const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_UPDATE || instr->kind == GHP_INSTR_ALL_GATHER;
}

static enum ghp_status run_step(struct ghp_worker *w, const struct ghp_step *previous)
{
    w->collected = GHP_BUFFER_KIND_COUNT;
    ghp_worker_begin_updates(w);
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, i);
        struct moment moment;

        if (updates(instr) && !w->updates_pending) continue;
        GHP_TRY(enter(w, i, &moment));
        if (i == w->metrics_boundary) GHP_TRY(turn_metrics(w, previous));
        GHP_TRY(ghp_worker_run(w, i, previous));
        GHP_TRY(leave(w, i, moment));
    }
    return GHP_OK;
}

/* On a device. */
struct enqueuing {
    struct ghp_worker *worker;
    const struct ghp_step *previous;
};

static enum ghp_status enqueue_step(void *context)
{
    const struct enqueuing *e = context;
    struct ghp_worker *w = e->worker;
    int bank = ghp_in_flight_bank(w->in_flight);

    GHP_TRY(ghp_in_flight_start(w->in_flight, bank, GHP_WHOLE_STEP));
    GHP_TRY(run_step(w, e->previous));
    if (w->comm_stream != NULL && ghp_in_flight_captures(w->in_flight))
        GHP_TRY(ghp_comm_stream_join(w->comm_stream));
    return ghp_in_flight_finish(w->in_flight, bank, GHP_WHOLE_STEP);
}

static struct ghp_supply supply_of(const struct ghp_worker *w, const struct ghp_step *step)
{
    return (struct ghp_supply){.data = step->data,
                               .set = step->set,
                               .samples = step->samples,
                               .n = w->work.problem.global_batch,
                               .step = step->index};
}

static struct ghp_step_hyperparameters hyperparameters_of(uint64_t index,
                                                          const struct ghp_step *hyperparameters)
{
    return (struct ghp_step_hyperparameters){.step = index,
                                             .learning_rate = hyperparameters->learning_rate,
                                             .momentum = hyperparameters->momentum,
                                             .weight_decay = hyperparameters->weight_decay};
}

static enum ghp_status collect(struct ghp_worker *w, bool all)
{
    struct ghp_in_flight_results landed;

    GHP_TRY(ghp_in_flight_collect(w->in_flight, all, w->timer, &landed));
    for (int i = 0; i < landed.n; i++)
        ghp_worker_take_result(w, landed.step[i], landed.metrics[i]);
    return GHP_OK;
}

static enum ghp_status fly(struct ghp_worker *w, const struct ghp_step *previous)
{
    struct ghp_supply supply = supply_of(w, &w->step);
    struct ghp_step_hyperparameters hyperparameters = hyperparameters_of(w->step.index, previous);
    struct enqueuing enqueuing = {w, previous};

    GHP_TRY(ghp_in_flight_begin(w->in_flight, &supply, &hyperparameters));
    GHP_TRY(ghp_in_flight_run(w->in_flight, w->updates_pending, enqueue_step, &enqueuing));
    return collect(w, false);
}

enum ghp_status ghp_worker_step(struct ghp_worker *w, const struct ghp_step *step)
{
    struct ghp_step previous = w->step;

    w->step = *step;
    if (w->in_flight != NULL) {
        GHP_TRY(fly(w, &previous));
    } else {
        ghp_step_timer_begin(w->timer);
        GHP_TRY(run_step(w, &previous));
        ghp_step_timer_end(w->timer);
        w->result_pending = true;
    }
    w->updates_pending = w->work.lender == NULL;
    return GHP_OK;
}

enum ghp_hints ghp_worker_hints(const struct ghp_worker *w)
{
    return w->in_flight != NULL  ? GHP_HINTS_AFTER
           : w->prefetch != NULL ? GHP_HINTS_BEFORE
                                 : GHP_HINTS_NONE;
}

/* The step's first micro-batch, to be asked for when the present step has loaded its last. */
static void keep_next(struct ghp_worker *w, const struct ghp_step *next)
{
    int64_t *samples = (int64_t *)(uintptr_t)w->next.samples;

    memcpy(samples, next->samples, (size_t)w->program.placement.micro_batch * sizeof(*samples));
    w->next = supply_of(w, next);
    w->next.n = w->program.placement.micro_batch;
    w->next.samples = samples;
    w->has_next = true;
}

void ghp_worker_hint(struct ghp_worker *w, const struct ghp_step *next)
{
    struct ghp_supply supply = supply_of(w, next);

    if (w->in_flight != NULL) ghp_in_flight_hint(w->in_flight, &supply);
    if (w->prefetch != NULL) keep_next(w, next);
}

enum ghp_status ghp_worker_settle(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_worker_instr(w, i)->stream == GHP_STREAM_COMM) GHP_TRY(wait_for(w, i));
    ghp_arena_visit(&w->arena, &w->program, -1);
    if (w->in_flight != NULL) {
        GHP_TRY(collect(w, true));
        return ghp_device_finish(w->arena.device, GHP_DEVICE_STREAM_COMPUTE);
    }
    if (w->result_pending) ghp_worker_take_result(w, w->step.index, w->address[w->metrics]);
    w->result_pending = false;
    return GHP_OK;
}

enum ghp_status ghp_worker_flush(struct ghp_worker *w)
{
    struct ghp_step_hyperparameters hyperparameters = hyperparameters_of(w->step.index, &w->step);

    GHP_TRY(ghp_worker_settle(w));
    if (!w->updates_pending) return GHP_OK;
    if (w->in_flight != NULL) GHP_TRY(ghp_in_flight_set(w->in_flight, &hyperparameters));
    ghp_worker_begin_updates(w);
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_UPDATE)
            GHP_TRY(ghp_worker_update(w, i, &w->step));
    w->updates_pending = false;
    GHP_TRY(ghp_device_finish(w->arena.device, GHP_DEVICE_STREAM_COMPUTE));
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, i);

        if (instr->kind != GHP_INSTR_ALL_GATHER) continue;
        GHP_TRY(ghp_worker_gather_strips(w, i, instr->at.x[0], instr->at.y));
    }
    return ghp_device_finish(w->arena.device, GHP_DEVICE_STREAM_COMM);
}
