/* executor/compare/guard.c - see compare/guard.h. */
#include "executor/compare/guard.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "core/plan/plan_set.h"
#include "executor/compare/candidates.h"
#include "executor/state/migrate.h"
#include "executor/train/session_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* One step of every turn warms up. The others are timed: for turn_s, within these limits. */
enum { PLANS = 2, ROUNDS = 6, LEAST_STEPS = 3, MOST_STEPS = 40, WARM_UP_STEPS = 1 };
static const double turn_s = 0.3;
/* Fraction by which a profile was disturbed, above which its plan and data parallelism may be the other way round,
 * however well either is predicted. */
static const double doubtful = 0.1;

const char *const ghp_guard_names[] = {"auto", "on", "off", NULL};

struct turns { /* while both are timed */
    struct ghp_guard *guard;
    struct ghp_training *training;
    struct ghp_session_plan *data; /* data parallelism */
    int64_t steps;                 /* timed ones of a turn */
    int64_t next;                  /* data parallelism's step */
    double seconds[ROUNDS][PLANS]; /* of a step */
    double *all;                   /* [workers][PLANS] */
    bool ends;                     /* a signal was noted */
};

/* ---- whether it can ---- */

static enum ghp_status check(const struct ghp_setup *s, const struct ghp_session_plan *e)
{
    struct ghp_session_plan described = *e;

    if (ghp_plan_is_data(&e->plan))
        return GHP_FAIL(GHP_ERR_USAGE, "'%s' is data parallelism already", e->path);
    if (ghp_exec_context_device(&s->exec).ops != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "backend '%s' has its own memory, which may not hold both",
                        s->exec.backend_ops->name);
    ghp_session_plan_describe(s, &described);
    if (!ghp_state_can_migrate(&described.rank_plan.lowering))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "the synchroniser or learning-rate scaling of '%s' has state of its own",
                        e->path);
    return GHP_OK;
}

/* ---- the data-parallel worker ---- */

static enum ghp_status load_data(struct ghp_setup *s, struct ghp_session_plan *e)
{
    e->path = s->session_plans[0].path;
    GHP_TRY(ghp_plan_load_for(e->path, s->size, &e->plan));
    GHP_TRY(ghp_plan_make_data(&e->plan));
    return ghp_plan_check(&e->plan);
}

/* Both arenas exist at once. */
static enum ghp_status check_memory(const struct turns *c)
{
    const struct ghp_setup *s = c->guard->setup;
    int64_t more = ghp_worker_program(c->data->worker)->peak_bytes;
    int64_t together = more + ghp_worker_program(c->training->worker)->peak_bytes;
    int64_t available = ghp_memory_available(), limit = (*c->guard->plan)->plan.memory_limit_bytes;
    char need[32], have[32];

    if (limit > 0 && together > limit)
        return GHP_FAIL(GHP_ERR_NO_MEMORY,
                        "both at once need %s a worker, more than the %s that it was planned for",
                        ghp_bytes_format((double)together, need, sizeof need),
                        ghp_bytes_format((double)limit, have, sizeof have));
    if (available < 0 || more <= available / s->here) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_NO_MEMORY,
        "data parallelism next to it needs %s more for each worker, and %s is left for %d",
        ghp_bytes_format((double)more, need, sizeof need),
        ghp_bytes_format((double)available, have, sizeof have), s->here);
}

/* With the training's state, which is at rest. */
static enum ghp_status open_data(struct turns *c)
{
    struct ghp_setup *s = c->guard->setup;

    s->n_session_plans = PLANS;
    c->all = ghp_alloc((size_t)s->size * PLANS, sizeof *c->all);
    GHP_TRY(ghp_setup_agree(s, c->all != NULL ? GHP_OK : GHP_NO_MEMORY(), "preparing a guard"));
    GHP_TRY(ghp_setup_agree(s, load_data(s, c->data), "preparing a guard"));
    GHP_TRY(ghp_session_plan_open(s, c->data));
    GHP_TRY(ghp_setup_agree(s, check_memory(c), "counting memory"));
    GHP_TRY(ghp_session_plan_allocate(s, c->data));
    return ghp_state_migrate(c->training->worker, c->data->worker);
}

/* ---- turns ---- */

/* Steps of the training. */
static enum ghp_status time_plan(struct turns *c, double *step_s)
{
    struct ghp_training *t = c->training;
    int64_t from;
    double begin_s;

    GHP_TRY(ghp_training_advance(t, t->done + WARM_UP_STEPS, &c->ends));
    if (!c->ends) ghp_worker_skip_timings(t->worker);
    from = t->done;
    begin_s = t->seconds;
    GHP_TRY(ghp_training_advance(t, t->done + c->steps, &c->ends));
    if (t->done > from) *step_s = (t->seconds - begin_s) / (double)(t->done - from);
    return ghp_training_pause(t);
}

/* A step of data parallelism, after which signals are looked for as after one of the training. */
static enum ghp_status step_data(struct turns *c, bool *noted)
{
    struct ghp_training_config *config = c->training->training_config;
    struct ghp_step step = ghp_training_config_step(config, c->next++);

    ghp_training_config_hint(config, c->data->worker, c->next);
    GHP_TRY(ghp_worker_step(c->data->worker, &step));
    return ghp_stop_check(&c->training->stop, noted);
}

static enum ghp_status time_data(struct turns *c, double *step_s)
{
    bool noted = false;
    double begin_s;

    for (int i = 0; i < WARM_UP_STEPS; i++)
        GHP_TRY(step_data(c, &noted));
    begin_s = ghp_now_s();
    for (int64_t i = 0; i < c->steps && !noted; i++)
        GHP_TRY(step_data(c, &noted));
    *step_s = (ghp_now_s() - begin_s) / (double)c->steps;
    return ghp_worker_flush(c->data->worker);
}

/* The mean of all workers counts. */
static enum ghp_status exchange(struct turns *c, double seconds[PLANS])
{
    struct ghp_setup *s = c->guard->setup;

    s->world->label = "sharing a round's times";
    GHP_TRY(s->world->ops->all_gather(s->world, seconds, c->all, PLANS * (int64_t)sizeof *seconds));
    for (int i = 0; i < PLANS; i++) {
        seconds[i] = 0;
        for (int r = 0; r < s->size; r++)
            seconds[i] += c->all[r * PLANS + i] / s->size;
    }
    return GHP_OK;
}

static enum ghp_status run_rounds(struct turns *c)
{
    for (int round = 0; round < ROUNDS && !c->ends; round++) {
        int order[PLANS];

        ghp_candidates_order(round, PLANS, order);
        for (int i = 0; i < PLANS && !c->ends; i++)
            GHP_TRY(order[i] == 0 ? time_plan(c, &c->seconds[round][0])
                                  : time_data(c, &c->seconds[round][1]));
        if (!c->ends) GHP_TRY(exchange(c, c->seconds[round]));
    }
    return GHP_OK;
}

/* ---- what follows ---- */

static void judge(struct turns *c)
{
    struct ghp_standing standings[PLANS];
    struct ghp_contest candidates = {
        .n = PLANS, .rounds = ROUNDS, .seconds = &c->seconds[0][0], .standings = standings};
    struct ghp_run_guard *found = &c->guard->found;

    ghp_candidates_evaluate(&candidates);
    found->step = c->training->done;
    found->plan_step_s = standings[0].measured_s;
    found->data_step_s = standings[1].measured_s;
    found->ratio = standings[1].ratio.median;
    found->ratio_low = standings[1].ratio.low;
    found->ratio_high = standings[1].ratio.high;
    found->switched = candidates.winner == 1 && candidates.certain;
    ghp_note("timed in turns: %.4g ms a step by the plan, %.4g by data parallelism; in a round "
             "that took %.3f [%.3f, %.3f] times as long: the training continues with %s",
             1e3 * found->plan_step_s, 1e3 * found->data_step_s, found->ratio, found->ratio_low,
             found->ratio_high,
             found->switched          ? "data parallelism"
             : found->ratio_low > 1.0 ? "the plan"
                                      : "the plan, since 1 is in the range");
}

/* The training's state passes into the data-parallel worker, and its own worker is closed. */
static enum ghp_status change_plan(struct turns *c)
{
    struct ghp_setup *s = c->guard->setup;
    struct ghp_training *t = c->training;
    struct ghp_session_plan *before = *c->guard->plan;

    GHP_TRY(ghp_state_migrate(t->worker, c->data->worker));
    GHP_TRY(ghp_training_take(t, &c->data->rank_plan, c->data->worker));
    if (s->rank == 0 && t->predicted_step_s > 0) {
        t->predicted_step_s = c->data->plan.predicted.step_s;
        t->predicted_error_s = c->data->plan.predicted.error_s;
    }
    ghp_session_plan_close(before);
    *c->guard->plan = c->data;
    return GHP_OK;
}

static enum ghp_status compare(struct turns *c)
{
    struct ghp_training *t = c->training;
    enum ghp_status status;

    GHP_TRY(ghp_training_pause(t));
    status = open_data(c);
    if (status != GHP_OK && status != GHP_ERR_COMM) {
        ghp_warn("the plan is kept, and not timed against data parallelism: %s",
                 ghp_status_message());
        ghp_session_plan_close(c->data);
        return GHP_OK;
    }
    GHP_TRY(status);
    GHP_TRY(run_rounds(c));
    if (!c->ends) judge(c);
    if (c->guard->found.switched) return change_plan(c);
    ghp_session_plan_close(c->data);
    return GHP_OK;
}

/* Steps of a turn, so that all turns of the training are in what is left of it; 0: they are not. */
static int64_t steps_of_turn(const struct ghp_training *t, double step_s)
{
    double steps = fmin(fmax(turn_s / step_s, LEAST_STEPS), MOST_STEPS);
    int64_t most = (t->steps - t->done) / ROUNDS - WARM_UP_STEPS;

    return most < LEAST_STEPS ? 0 : most < (int64_t)steps ? most : (int64_t)steps;
}

static enum ghp_status act(struct ghp_training_guard *base, struct ghp_training *t,
                           struct ghp_training_doubt doubt, bool *ends)
{
    struct ghp_guard *g = (struct ghp_guard *)base;
    struct ghp_setup *s = g->setup;
    struct ghp_control *control = s->session->transport->control;
    struct ghp_control_message mine = {.value = doubt.beyond || g->always ? doubt.step_s : 0};
    struct turns c = {.guard = g, .training = t, .data = &s->session_plans[1], .next = t->done};
    const struct ghp_control_message *messages;
    enum ghp_status status;

    s->world->label = "asking the guard";
    GHP_TRY(control->ops->tell(control, s->world, mine, &messages));
    if (!(messages[0].value > 0)) return GHP_OK;
    c.steps = steps_of_turn(t, messages[0].value);
    if (g->why_not[0] != '\0' || c.steps == 0) {
        ghp_note("the plan is kept, and not timed against data parallelism: %s",
                 g->why_not[0] != '\0' ? g->why_not : "too few steps are left");
        return GHP_OK;
    }
    ghp_memory_pause(t->memory);
    status = compare(&c);
    t->memory->exact = false; /* two arenas were there */
    ghp_memory_resume(t->memory);
    free(c.all);
    *ends = c.ends;
    return status;
}

enum ghp_status ghp_guard_open(struct ghp_setup *s, struct ghp_session_plan **plan, int64_t steps,
                               struct ghp_guard *g, bool *active)
{
    enum ghp_guard_choice choice = (enum ghp_guard_choice)s->options->guard;
    enum ghp_status status;

    *g = (struct ghp_guard){.base.act = act,
                            .setup = s,
                            .plan = plan,
                            .always = choice == GHP_GUARD_ON ||
                                      (*plan)->plan.profile.disturbed > doubtful};
    *active = choice == GHP_GUARD_ON || (choice == GHP_GUARD_AUTO && steps > GHP_GUARD_STEPS &&
                                         !ghp_plan_is_data(&(*plan)->plan));
    if (!*active) return GHP_OK;
    status = check(s, *plan);
    if (status == GHP_OK) return GHP_OK;
    if (choice == GHP_GUARD_ON)
        return GHP_FAIL(status, "--guard on has nothing to turn to: %s; leave it out",
                        ghp_status_message());
    snprintf(g->why_not, sizeof g->why_not, "%s", ghp_status_message());
    return GHP_OK;
}
