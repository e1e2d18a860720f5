/* executor/train/drift.c - see train/drift.h. */
#include "executor/train/drift.h"

#include "core/base/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_STEPS = 16 };
static const double every_s = 10;                /* from one look to the next */
static const double slower = 1.25, faster = 0.8; /* steps, times as long, that are a change */
static const double main_part = 0.5;             /* of the difference is enough to be named */
static const char *const term_names[GHP_DRIFT_TERMS] = {
    "forward", "backward", "update", "samples", "reshard", "reduction", "transfer"};

static double growth(const struct ghp_drift_part *part)
{
    return part->now_s - part->before_s;
}

static double times(const struct ghp_drift_part *part)
{
    return part->before_s > 0 ? part->now_s / part->before_s : 0;
}

/* ---- what all make of it ---- */

struct ghp_drift_finding ghp_drift_find(const struct ghp_drift_message *messages, int n)
{
    struct ghp_drift_finding f = {.before_s = messages[0].before_s, .now_s = messages[0].now_s};
    double enough_s = main_part * (f.now_s - f.before_s);
    int most = 0, least = 0;

    if (!(f.before_s > 0) || (f.now_s < slower * f.before_s && f.now_s > faster * f.before_s))
        return f;
    f.place = GHP_DRIFT_ELSEWHERE;
    if (f.now_s < f.before_s) return f;
    for (int i = 1; i < n; i++) {
        if (growth(&messages[i].computing) > growth(&messages[most].computing)) most = i;
        if (growth(&messages[i].exchanging) < growth(&messages[least].exchanging)) least = i;
    }
    if (growth(&messages[most].computing) >= enough_s) {
        f.place = GHP_DRIFT_WORKER;
        f.worker = most;
        f.part = messages[most].computing;
        for (int i = 0; i < n; i++)
            if (i != most && times(&messages[i].computing) > f.others_times)
                f.others_times = times(&messages[i].computing);
    } else if (growth(&messages[least].exchanging) >= enough_s) {
        f.place = GHP_DRIFT_LINK;
        f.worker = least;
        f.part = messages[least].exchanging;
    }
    return f;
}

/* ---- what one worker tells ---- */

/* The term that an instruction belongs to; GHP_DRIFT_TERMS: it only waits. */
static enum ghp_drift_term term_of(const struct ghp_instr *instr)
{
    const enum ghp_phase phase = ghp_instr_phase(instr);
    const struct ghp_kind_facts *kind = ghp_kind_of(instr);

    if (kind->cost == GHP_COST_NOTHING) return GHP_DRIFT_TERMS;
    if (instr->stream == GHP_STREAM_TRANSFER) return GHP_DRIFT_TRANSFER;
    if (phase == GHP_PHASE_RESHARD) return GHP_DRIFT_RESHARD;
    if (!kind->is_local) return GHP_DRIFT_REDUCTION;
    if (phase == GHP_PHASE_LOAD) return GHP_DRIFT_SAMPLES;
    if (phase == GHP_PHASE_UPDATE) return GHP_DRIFT_UPDATE;
    return phase == GHP_PHASE_FORWARD ? GHP_DRIFT_FORWARD : GHP_DRIFT_BACKWARD;
}

/* Adds each instruction's seconds to its part, and those of a layer's term to `terms`. */
static void add_all(const struct ghp_program *program, const double *seconds, double *terms,
                    double parts[2])
{
    for (int i = 0; i < program->n_instrs; i++) {
        enum ghp_drift_term term = term_of(&program->instrs[i]);
        int layer = program->instrs[i].layer;

        if (term == GHP_DRIFT_TERMS) continue;
        parts[term > GHP_DRIFT_SAMPLES] += seconds[i];
        if (layer >= 0) terms[layer * GHP_DRIFT_TERMS + (int)term] += seconds[i];
    }
}

/* The term of these that has grown most. */
static void name_most(const double *before, const double *now, int n_layers,
                      struct ghp_drift_part *part, bool exchanges)
{
    double most_s = 0;

    part->layer = -1;
    for (int i = 0; i < n_layers * GHP_DRIFT_TERMS; i++) {
        if ((i % GHP_DRIFT_TERMS > GHP_DRIFT_SAMPLES) != exchanges || now[i] - before[i] <= most_s)
            continue;
        most_s = now[i] - before[i];
        part->layer = i / GHP_DRIFT_TERMS;
        part->term = i % GHP_DRIFT_TERMS;
    }
}

static enum ghp_status compare(const struct ghp_drift *d, struct ghp_worker *worker,
                               const double *now_s, struct ghp_drift_message *message)
{
    const struct ghp_program *program = ghp_worker_program(worker);
    int n_layers = ghp_worker_program(worker)->model->n_layers, n = n_layers * GHP_DRIFT_TERMS;
    double *terms = ghp_alloc(2 * (size_t)n, sizeof *terms), before[2] = {0}, now[2] = {0};

    if (terms == NULL) return GHP_NO_MEMORY();
    add_all(program, d->before_s, terms, before);
    add_all(program, now_s, terms + n, now);
    message->computing = (struct ghp_drift_part){before[0], now[0], -1, 0};
    message->exchanging = (struct ghp_drift_part){before[1], now[1], -1, 0};
    name_most(terms, terms + n, n_layers, &message->computing, false);
    name_most(terms, terms + n, n_layers, &message->exchanging, true);
    free(terms);
    return GHP_OK;
}

/* ---- looking ---- */

static void say(const struct ghp_drift_finding *f, const struct ghp_model *model)
{
    int layer = (int)f->part.layer;
    char where[160] = "", others[64] = "";

    if (layer >= 0)
        snprintf(where, sizeof where, "; most of the difference is in layer '%s', %s",
                 model->layers[layer].name, term_names[(int)f->part.term]);
    if (f->others_times > 0)
        snprintf(others, sizeof others, ", the others at most %.1f times", f->others_times);
    if (f->now_s < f->before_s)
        ghp_note("steps take %.4g ms, %.4g before", 1e3 * f->now_s, 1e3 * f->before_s);
    else if (f->place == GHP_DRIFT_WORKER)
        ghp_warn("steps take %.4g ms, %.4g before: worker %d computes %.1f times as long%s%s",
                 1e3 * f->now_s, 1e3 * f->before_s, f->worker, times(&f->part), others, where);
    else if (f->place == GHP_DRIFT_LINK)
        ghp_warn("steps take %.4g ms, %.4g before: exchanges take %.1f times as long, also for "
                 "worker %d, which waits least for others%s",
                 1e3 * f->now_s, 1e3 * f->before_s, times(&f->part), f->worker, where);
    else
        ghp_warn("steps take %.4g ms, %.4g before, neither for computing nor for exchanges: see "
                 "what else the machines do",
                 1e3 * f->now_s, 1e3 * f->before_s);
}

/* Writes the finding for programs that watch from outside. A worker is slower than the others by what it grew more than
 * they did. */
static void tell(const struct ghp_drift_finding *f, struct ghp_heartbeat *heartbeat)
{
    struct ghp_beat_change *change = &heartbeat->change;
    bool worker = f->place == GHP_DRIFT_WORKER;

    change->number++;
    change->cause = worker                       ? GHP_BEAT_SLOW_WORKER
                    : f->place == GHP_DRIFT_LINK ? GHP_BEAT_SLOW_LINKS
                                                 : GHP_BEAT_OTHER;
    change->worker = f->worker;
    change->times = times(&f->part) / (worker && f->others_times > 1 ? f->others_times : 1);
    change->now_s = f->now_s;
    change->before_s = f->before_s;
}

/* The present means become the measure. */
static void measure_anew(struct ghp_drift *d, const double *now_s, double step_s, int n)
{
    for (int i = 0; i < n; i++)
        d->before_s[i] = now_s[i];
    d->step_s = step_s;
    d->found = GHP_DRIFT_NONE;
}

static enum ghp_status look(struct ghp_drift *d, struct ghp_worker *worker,
                            const struct ghp_stop *stop, double *now_s,
                            struct ghp_drift_message *messages)
{
    const struct ghp_step_timer *timer = ghp_worker_step_timer(worker);
    int n = ghp_worker_program(worker)->n_instrs, steps = d->steps;
    struct ghp_drift_message mine = {.before_s = d->step_s,
                                     .now_s = ghp_step_timer_recent_s(timer, -1, steps)};
    struct ghp_comm *world = stop->world;
    struct ghp_drift_finding finding;

    for (int i = 0; i < n; i++)
        now_s[i] = ghp_step_timer_recent_s(timer, i, steps);
    GHP_TRY(compare(d, worker, now_s, &mine));
    messages[0] = mine;
    world->label = "comparing steps with those before";
    if (world->ranks.count > 1)
        GHP_TRY(world->ops->all_gather(world, &mine, messages, (int64_t)sizeof mine));
    finding = ghp_drift_find(messages, world->ranks.count);
    if (!(messages[0].before_s > 0)) {
        measure_anew(d, now_s, mine.now_s, n);
    } else if (finding.place != GHP_DRIFT_NONE && d->found != GHP_DRIFT_NONE) {
        say(&finding, ghp_worker_program(worker)->model);
        tell(&finding, stop->heartbeat);
        measure_anew(d, now_s, mine.now_s, n);
    } else {
        d->found = finding.place;
    }
    return GHP_OK;
}

enum ghp_status ghp_drift_look(struct ghp_drift *d, struct ghp_worker *worker,
                               const struct ghp_stop *stop, int64_t done)
{
    int n = ghp_worker_program(worker)->n_instrs;
    enum ghp_status status = GHP_OK;
    struct ghp_drift_message *messages;
    double *now_s;

    if (stop->told_s - d->looked_s < every_s || done - d->looked < LEAST_STEPS) return GHP_OK;
    d->looked_s = stop->told_s;
    d->steps =
        done - d->looked < GHP_STEP_TIMER_STEPS ? (int)(done - d->looked) : GHP_STEP_TIMER_STEPS;
    d->looked = done;
    if (d->before_s == NULL) d->before_s = ghp_alloc((size_t)n, sizeof *d->before_s);
    now_s = ghp_alloc((size_t)n, sizeof *now_s);
    messages = ghp_alloc((size_t)stop->world->ranks.count, sizeof *messages);
    if (d->before_s == NULL || now_s == NULL || messages == NULL) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = look(d, worker, stop, now_s, messages);
    free(messages);
    free(now_s);
    return status;
}

void ghp_drift_restart(struct ghp_drift *d, int64_t done)
{
    double looked_s = d->looked_s;

    ghp_drift_release(d);
    d->looked_s = looked_s;
    d->looked = done;
}

void ghp_drift_release(struct ghp_drift *d)
{
    free(d->before_s);
    *d = (struct ghp_drift){0};
}
