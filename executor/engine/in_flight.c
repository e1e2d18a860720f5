/* executor/engine/in_flight.c - see engine/in_flight.h. */
#include "executor/engine/in_flight.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIRST_PAUSE_NS = 2000, LAST_PAUSE_NS = 50000 };

struct bank {
    struct ghp_mark *done; /* behind the step, never on a tape */
    struct ghp_tape *tape;
    bool under_way, taped;
    uint64_t step;
};

struct ghp_flight {
    struct ghp_flight_plan plan;
    struct ghp_device device;
    struct ghp_loader *loader;
    struct ghp_timeline *timeline;
    int bank; /* of the present step */
    struct bank banks[GHP_BANKS];
    double *metrics; /* [GHP_BANKS][GHP_METRIC_COUNT], pinned */
    /* [GHP_BANKS + 1], pinned: of each bank, and of ghp_flight_set */
    struct ghp_step_numbers *given;
    struct ghp_step_numbers *numbers; /* device */
    bool records, recording;
};

/* ---- opening ---- */

static enum ghp_status open_memory(struct ghp_flight *f)
{
    struct ghp_device d = f->device;
    void *metrics = NULL, *given = NULL, *numbers = NULL;
    enum ghp_status status;

    status = d.ops->allocate_host(d.backend, GHP_BANKS * GHP_METRIC_COUNT * (int64_t)sizeof(double),
                                  &metrics);
    f->metrics = metrics;
    if (status == GHP_OK)
        status =
            d.ops->allocate_host(d.backend, (GHP_BANKS + 1) * (int64_t)sizeof(*f->given), &given);
    f->given = given;
    if (status == GHP_OK)
        status = d.ops->allocate(d.backend, (int64_t)sizeof(*f->numbers), &numbers);
    f->numbers = numbers;
    return status;
}

enum ghp_status ghp_flight_open(const struct ghp_flight_plan *plan, struct ghp_flight **flight)
{
    enum ghp_status status = GHP_OK;
    struct ghp_flight *f = ghp_alloc(1, sizeof(*f));

    *flight = NULL;
    if (f == NULL) return GHP_NO_MEMORY();
    f->plan = *plan;
    f->device = ghp_team_device(plan->team);
    f->records = plan->records && f->device.ops->record != NULL;
    GHP_TRY_GOTO(status, open_memory(f), fail);
    GHP_TRY_GOTO(status, ghp_timeline_open(f->device, plan->program, &f->timeline), fail);
    for (int i = 0; i < GHP_BANKS; i++)
        GHP_TRY_GOTO(status, f->device.ops->mark_open(f->device.backend, false, &f->banks[i].done),
                     fail);
    if (plan->lender != NULL)
        f->loader = plan->lender->loader;
    else
        GHP_TRY_GOTO(status, ghp_loader_open(f->device, &plan->load, &f->loader), fail);
    *flight = f;
    return GHP_OK;
fail:
    ghp_flight_close(f);
    return status;
}

void ghp_flight_close(struct ghp_flight *f)
{
    struct ghp_device d;

    if (f == NULL) return;
    d = f->device;
    ghp_device_finish(d, GHP_QUEUE_COMPUTE);
    for (int i = 0; i < GHP_BANKS; i++) {
        if (f->banks[i].tape != NULL) d.ops->tape_close(d.backend, f->banks[i].tape);
        d.ops->mark_close(d.backend, f->banks[i].done);
    }
    if (f->plan.lender == NULL) ghp_loader_close(f->loader);
    ghp_timeline_close(f->timeline);
    d.ops->release(d.backend, f->numbers);
    d.ops->release_host(d.backend, f->given);
    d.ops->release_host(d.backend, f->metrics);
    free(f);
}

/* ---- numbers ---- */

const struct ghp_step_numbers *ghp_flight_numbers(const struct ghp_flight *f)
{
    return f->numbers;
}

static enum ghp_status send_numbers(struct ghp_flight *f, int slot,
                                    const struct ghp_step_numbers *numbers)
{
    f->given[slot] = *numbers;
    return ghp_device_copy(
        f->device, GHP_QUEUE_COMPUTE,
        (struct ghp_copy){f->numbers, &f->given[slot], (int64_t)sizeof(*numbers), GHP_WAY_IN});
}

enum ghp_status ghp_flight_set(struct ghp_flight *f, const struct ghp_step_numbers *numbers)
{
    GHP_TRY(send_numbers(f, GHP_BANKS, numbers));
    return ghp_device_finish(f->device, GHP_QUEUE_COMPUTE);
}

/* ---- a step ---- */

enum ghp_status ghp_flight_begin(struct ghp_flight *f, const struct ghp_supply *supply,
                                 const struct ghp_step_numbers *numbers)
{
    struct bank *bank;

    f->bank = 1 - f->bank;
    bank = &f->banks[f->bank];
    GHP_ASSERT(!bank->under_way);
    bank->step = supply->step;
    GHP_TRY(ghp_loader_supply(f->loader, f->bank, supply));
    GHP_TRY(ghp_loader_follow(f->loader, f->bank));
    return send_numbers(f, f->bank, numbers);
}

bool ghp_flight_records(const struct ghp_flight *f)
{
    return f->records;
}

int ghp_flight_bank(const struct ghp_flight *f)
{
    return f->bank;
}

bool ghp_flight_recording(const struct ghp_flight *f)
{
    return f->recording;
}

/* Onto the bank's tape; without one afterwards, nothing was enqueued and later steps go without. */
static enum ghp_status record(struct ghp_flight *f, enum ghp_status (*run)(void *context),
                              void *context)
{
    struct bank *bank = &f->banks[f->bank];
    struct ghp_device d = f->device;
    enum ghp_status status = d.ops->record(d.backend), ended;

    if (status != GHP_OK) return status;
    f->recording = true;
    status = run(context);
    f->recording = false;
    ended = d.ops->recorded(d.backend, &bank->tape);
    return status != GHP_OK ? status : ended;
}

enum ghp_status ghp_flight_run(struct ghp_flight *f, bool steady,
                               enum ghp_status (*run)(void *context), void *context)
{
    struct bank *bank = &f->banks[f->bank];
    struct ghp_device d = f->device;

    if (f->records && steady && bank->tape == NULL && record(f, run, context) != GHP_OK) {
        ghp_note("steps are enqueued one by one: %s", ghp_status_message());
        f->records = false;
    }
    bank->taped = f->records && steady && bank->tape != NULL;
    if (bank->taped) {
        ghp_timeline_again(f->timeline, f->bank);
        GHP_TRY(d.ops->play(d.backend, bank->tape));
    } else {
        GHP_TRY(run(context));
    }
    bank->under_way = true;
    return d.ops->set(d.backend, GHP_QUEUE_COMPUTE, bank->done);
}

enum ghp_status ghp_flight_load(struct ghp_flight *f, void *images, void *labels)
{
    return ghp_loader_take(f->loader, f->bank, images, labels);
}

enum ghp_status ghp_flight_start(struct ghp_flight *f, int bank, int instr)
{
    return instr == GHP_WHOLE_STEP ? ghp_timeline_begin(f->timeline, bank)
                                   : ghp_timeline_start(f->timeline, bank, instr);
}

enum ghp_status ghp_flight_finish(struct ghp_flight *f, int bank, int instr)
{
    return instr == GHP_WHOLE_STEP ? ghp_timeline_end(f->timeline, bank)
                                   : ghp_timeline_finish(f->timeline, bank, instr);
}

enum ghp_status ghp_flight_metrics(struct ghp_flight *f, int bank, enum ghp_queue queue,
                                   const void *metrics)
{
    return ghp_device_copy(f->device, queue,
                           (struct ghp_copy){f->metrics + bank * GHP_METRIC_COUNT, metrics,
                                             GHP_METRIC_COUNT * (int64_t)sizeof(double),
                                             GHP_WAY_OUT});
}

/* ---- afterwards ---- */

/* What a wait is for, for the watchdog. */
static const char *label_of(const struct ghp_flight *f, int bank)
{
    int instr = -1;

    if (f->banks[bank].taped || ghp_timeline_pending(f->timeline, bank, &instr) != GHP_OK ||
        instr < 0 || instr >= f->plan.program->n_instrs)
        return "a step";
    return f->plan.label(f->plan.context, instr);
}

static enum ghp_status is_done(struct ghp_flight *f, int b, bool *done)
{
    struct bank *bank = &f->banks[b];
    int instr = -1;

    GHP_TRY(f->device.ops->passed(f->device.backend, bank->done, done));
    if (!*done || bank->taped) return GHP_OK;
    GHP_TRY(ghp_timeline_pending(f->timeline, b, &instr));
    *done = instr < 0;
    return GHP_OK;
}

static enum ghp_status await(struct ghp_flight *f, int b)
{
    const struct ghp_team *team = f->plan.team;
    double begin_s = ghp_now_s();
    long pause_ns = FIRST_PAUSE_NS;
    bool done = false;

    for (;;) {
        GHP_TRY(is_done(f, b, &done));
        if (done) return GHP_OK;
        if (team->carrier_ops->check != NULL)
            GHP_TRY(team->carrier_ops->check(team->carrier, ghp_now_s() - begin_s,
                                             label_of(f, b)));
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        if (pause_ns < LAST_PAUSE_NS) pause_ns += pause_ns / 4;
    }
}

static enum ghp_status collect_bank(struct ghp_flight *f, int b, struct ghp_stopwatch *watch,
                                    struct ghp_landed *landed)
{
    struct bank *bank = &f->banks[b];

    if (!bank->under_way) return GHP_OK;
    GHP_TRY(await(f, b));
    GHP_TRY(ghp_timeline_take(f->timeline, b, watch));
    memcpy(landed->metrics[landed->n], f->metrics + b * GHP_METRIC_COUNT,
           sizeof(landed->metrics[0]));
    landed->step[landed->n++] = bank->step;
    bank->under_way = false;
    return GHP_OK;
}

enum ghp_status ghp_flight_collect(struct ghp_flight *f, bool all, struct ghp_stopwatch *watch,
                                   struct ghp_landed *landed)
{
    landed->n = 0;
    GHP_TRY(collect_bank(f, 1 - f->bank, watch, landed));
    return all ? collect_bank(f, f->bank, watch, landed) : GHP_OK;
}

void ghp_flight_hint(struct ghp_flight *f, const struct ghp_supply *next)
{
    ghp_loader_hint(f->loader, 1 - f->bank, next);
}
