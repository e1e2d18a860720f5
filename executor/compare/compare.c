/* executor/compare/compare.c - see compare/compare.h. */
#include "executor/compare/compare.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "executor/report/run_result.h"
#include "executor/opbench/speed_probe.h"
#include "executor/report/run_file.h"
#include "executor/train/session_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, TEXT_BYTES = 32, SIZING_STEPS = 1, SPEED_PROBE_JOBS = 2 };

struct bout { /* a comparison while it lasts */
    struct ghp_setup *setup;
    struct ghp_comparison *ab;
    struct ghp_host_load *host_load;
    struct ghp_speed_prober *prober;
    double *speed_probe[SPEED_PROBE_JOBS]; /* [rounds] seconds of each job, the workers' mean */
    struct ghp_training trainings[GHP_SESSION_PLANS]; /* one an entrant */
    int64_t next[GHP_SESSION_PLANS];                  /* step to run */
    double *all;                                      /* [workers][plans] */
};

int64_t ghp_compare_steps(const struct ghp_session_options *o)
{
    return o->ab_rounds * (o->ab_warmup_steps + o->ab_steps) + SIZING_STEPS;
}

/* ---- opening ---- */

static enum ghp_status make_tables(struct bout *b)
{
    const struct ghp_session_options *o = b->setup->options;
    struct ghp_comparison *ab = b->ab;
    size_t n = (size_t)b->setup->n_session_plans, rounds = (size_t)o->ab_rounds;

    ab->steps = o->ab_steps;
    ab->warmup_steps = o->ab_warmup_steps;
    ab->candidates.n = (int)n;
    ab->seconds = ghp_alloc(rounds * n, sizeof *ab->seconds);
    ab->order = ghp_alloc(rounds * n, sizeof *ab->order);
    ab->use = ghp_alloc(rounds, sizeof *ab->use);
    ab->turn_steps = ghp_alloc(n, sizeof *ab->turn_steps);
    ab->candidates.standings = ghp_alloc(n, sizeof *ab->candidates.standings);
    ab->candidates.seconds = ab->seconds;
    b->all = ghp_alloc((size_t)b->setup->size * n, sizeof *b->all);
    for (int job = 0; job < SPEED_PROBE_JOBS; job++)
        b->speed_probe[job] = ghp_alloc(rounds, sizeof *b->speed_probe[job]);
    if (ab->seconds == NULL || ab->order == NULL || ab->use == NULL || ab->turn_steps == NULL ||
        ab->candidates.standings == NULL || b->all == NULL || b->speed_probe[0] == NULL ||
        b->speed_probe[1] == NULL)
        return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        b->trainings[i].steps = ghp_compare_steps(o);
    }
    return GHP_OK;
}

/* All arenas exist at once: a limit that a plan was made for is overstepped with a warning, what the machine has is
 * not. */
static enum ghp_status check_memory(const struct bout *b)
{
    const struct ghp_setup *s = b->setup;
    int64_t together = 0, available = ghp_memory_available(), limit = 0;
    int here = ghp_host_load_here(b->host_load);
    char need[TEXT_BYTES], have[TEXT_BYTES];

    for (int i = 0; i < s->n_session_plans; i++) {
        const struct ghp_session_plan *e = &s->session_plans[i];

        together += ghp_worker_program(e->worker)->peak_bytes;
        if (e->plan.memory_limit_bytes > 0 && (limit == 0 || e->plan.memory_limit_bytes < limit))
            limit = e->plan.memory_limit_bytes;
    }
    ghp_bytes_format((double)together, need, sizeof need);
    if (available >= 0 && together > available / here)
        return GHP_FAIL(GHP_ERR_NO_MEMORY,
                        "the %d plans need %s a worker at once, and this machine has %s left for "
                        "%d worker(s); compare fewer plans at a time",
                        s->n_session_plans, need,
                        ghp_bytes_format((double)available, have, sizeof have), here);
    if (limit > 0 && together > limit)
        ghp_warn("the plans together take %s a worker, more than the %s that one of them was "
                 "limited to; where that limit is hard, run them one after the other",
                 need, ghp_bytes_format((double)limit, have, sizeof have));
    return GHP_OK;
}

static enum ghp_status open_all(struct bout *b)
{
    struct ghp_setup *s = b->setup;

    GHP_TRY(ghp_setup_agree(s, make_tables(b), "preparing the comparison"));
    GHP_TRY(ghp_host_load_open(s->session->transport->control, s->world, s->size, &b->host_load));
    for (int i = 0; i < s->n_session_plans; i++)
        GHP_TRY(ghp_session_plan_open(s, &s->session_plans[i]));
    GHP_TRY(ghp_setup_agree(s, check_memory(b), "counting memory"));
    for (int i = 0; i < s->n_session_plans; i++)
        GHP_TRY(ghp_session_plan_allocate(s, &s->session_plans[i]));
    return ghp_setup_agree(s,
                           ghp_speed_prober_open(s->exec.backend_ops, s->exec.backend, &b->prober),
                           "preparing to time the machine");
}

/* ---- rounds ---- */

/* Keeps a finished step's loss; a training that diverged computes with other numbers, at another speed. */
static enum ghp_status note_loss(struct bout *b, int i)
{
    const struct ghp_session_plan *e = &b->setup->session_plans[i];
    struct ghp_training *t = &b->trainings[i];
    struct ghp_result r;

    do {
        if (!ghp_worker_result_of(e->worker, (uint64_t)t->losses.steps, &r)) return GHP_OK;
        ghp_losses_add(&t->losses, r.loss);
    } while (isfinite(r.loss));
    return GHP_FAIL(GHP_ERR_DIVERGED,
                    "by '%s' the loss or the weights are not finite after step %lld: the training "
                    "diverged; lower --lr or add --warmup-steps",
                    e->path, (long long)r.step);
}

static enum ghp_status run_step(struct bout *b, int i)
{
    struct ghp_training_config *training_config = &b->setup->training_config;
    struct ghp_worker *worker = b->setup->session_plans[i].worker;
    struct ghp_step step = ghp_training_config_step(training_config, b->next[i]++);

    ghp_training_config_hint(training_config, worker, b->next[i]);
    GHP_TRY(ghp_worker_step(worker, &step));
    return note_loss(b, i);
}

static enum ghp_status warm_up(struct bout *b, int i, int64_t steps)
{
    for (int64_t step = 0; step < steps; step++) {
        GHP_TRY(run_step(b, i));
        ghp_worker_skip_timings(b->setup->session_plans[i].worker);
    }
    return GHP_OK;
}

/* How many timed steps a plan's turns have: as many as asked for, fewer if they would take longer than a turn may.
 * All workers count by the slowest one's seconds. */
static enum ghp_status size_turn(struct bout *b, int i)
{
    struct ghp_setup *s = b->setup;
    double begin = ghp_now_s(), took, most;

    b->ab->turn_steps[i] = b->ab->steps;
    if (!(s->options->ab_turn_s > 0)) return GHP_OK;
    GHP_TRY(warm_up(b, i, SIZING_STEPS));
    took = (ghp_now_s() - begin) / SIZING_STEPS;
    s->world->label = "sizing a turn";
    GHP_TRY(s->world->ops->all_gather(s->world, &took, b->all, sizeof took));
    most = took;
    for (int r = 0; r < s->size; r++)
        most = fmax(most, b->all[r]);
    if (most * (double)b->ab->turn_steps[i] > s->options->ab_turn_s)
        b->ab->turn_steps[i] = (int64_t)fmax(1, s->options->ab_turn_s / most);
    return GHP_OK;
}

/* One plan's turn. Reductions of the last warm-up step are still under way when timing starts, those of the last timed
 * step when it ends: what lies between is whole periods. */
static enum ghp_status take_turn(struct bout *b, int round, int i)
{
    double begin, end;

    GHP_TRY(warm_up(b, i, b->ab->warmup_steps));
    if (b->ab->turn_steps[i] == 0) GHP_TRY(size_turn(b, i));
    begin = ghp_now_s();
    for (int64_t step = 0; step < b->ab->turn_steps[i]; step++)
        GHP_TRY(run_step(b, i));
    end = ghp_now_s();
    b->ab->seconds[round * b->ab->candidates.n + i] = (end - begin) / (double)b->ab->turn_steps[i];
    b->trainings[i].seconds += end - begin;
    GHP_TRY(ghp_worker_flush(b->setup->session_plans[i].worker));
    return note_loss(b, i);
}

/* Every worker timed the round; the mean of all counts. */
static enum ghp_status broadcast_round(struct bout *b, int round)
{
    struct ghp_setup *s = b->setup;
    int n = s->n_session_plans;
    double *seconds = &b->ab->seconds[round * n];

    s->world->label = "sharing a round's times";
    GHP_TRY(s->world->ops->all_gather(s->world, seconds, b->all, n * (int64_t)sizeof *seconds));
    for (int i = 0; i < n; i++) {
        seconds[i] = 0;
        for (int r = 0; r < s->size; r++)
            seconds[i] += b->all[r * n + i] / s->size;
    }
    return GHP_OK;
}

/* How fast the machine is in this round; there are as many numbers to share as plans, two at least. */
static enum ghp_status time_machine(struct bout *b, int round)
{
    struct ghp_setup *s = b->setup;
    struct ghp_speed_probe speed_probe = {0};
    double mine[SPEED_PROBE_JOBS];

    s->world->label = "timing the machine";
    GHP_TRY(ghp_control_barrier(s->session->transport->control, s->world));
    GHP_TRY(ghp_speed_prober_time(b->prober, &speed_probe));
    mine[0] = speed_probe.compute_s;
    mine[1] = speed_probe.memory_s;
    GHP_TRY(s->world->ops->all_gather(s->world, mine, b->all, sizeof mine));
    for (int job = 0; job < SPEED_PROBE_JOBS; job++)
        for (int r = 0; r < s->size; r++)
            b->speed_probe[job][round] += b->all[r * SPEED_PROBE_JOBS + job] / s->size;
    return GHP_OK;
}

static enum ghp_status run_rounds(struct bout *b)
{
    int rounds = (int)b->setup->options->ab_rounds, n = b->setup->n_session_plans;
    struct ghp_comparison *ab = b->ab;

    ghp_progress_begin("comparing", 0, rounds);
    for (int round = 0; round < rounds; round++) {
        int *order = &ab->order[round * n];

        ghp_candidates_order(round, n, order);
        GHP_TRY(time_machine(b, round));
        GHP_TRY(ghp_host_load_begin(b->host_load));
        for (int i = 0; i < n; i++)
            GHP_TRY(take_turn(b, round, order[i]));
        GHP_TRY(ghp_host_load_use(b->host_load, &ab->use[round]));
        GHP_TRY(broadcast_round(b, round));
        ab->all_use.foreign_s += ab->use[round].foreign_s;
        ab->all_use.capacity_s += ab->use[round].capacity_s;
        ab->candidates.rounds = round + 1;
        ghp_progress_step(round + 1, "%s", "");
    }
    ghp_progress_end();
    return GHP_OK;
}

/* ---- afterwards ---- */

/* "DIR/2-vgg.plan.run.json" of the second plan, "plans/vgg.plan.json". */
static enum ghp_status save_run(const struct bout *b, int i, const struct ghp_run *run)
{
    const char *path = b->setup->session_plans[i].path, *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);
    char file[PATH_BYTES];
    int n;

    if (length > 5 && strcmp(name + length - 5, ".json") == 0) length -= 5;
    n = snprintf(file, sizeof file, "%s/%d-%.*s.run.json", b->setup->options->run_folder, i + 1,
                 (int)length, name);
    if (n < 0 || n >= (int)sizeof file)
        return GHP_FAIL(GHP_ERR_USAGE, "the path '%s' is too long; name a shorter --run-dir",
                        b->setup->options->run_folder);
    return ghp_run_save(file, run, b->setup->session->tool);
}

static enum ghp_status save_runs(struct bout *b)
{
    struct ghp_setup *s = b->setup;

    for (int i = 0; s->options->run_folder != NULL && i < s->n_session_plans; i++) {
        struct ghp_run_result run_result = {0};
        enum ghp_status status =
            ghp_run_result_init(s, &s->session_plans[i], &b->trainings[i], &run_result);

        if (status == GHP_OK) {
            if (s->rank == 0) status = save_run(b, i, &run_result.run);
            status = ghp_setup_agree(s, status, "writing run files");
        }
        ghp_run_result_release(&run_result);
        GHP_TRY(status);
    }
    return GHP_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void judge_speed_probe(struct bout *b)
{
    double *const medians[SPEED_PROBE_JOBS] = {&b->ab->speed_probe.compute_s,
                                               &b->ab->speed_probe.memory_s};
    int rounds = b->ab->candidates.rounds;

    for (int job = 0; job < SPEED_PROBE_JOBS; job++) {
        qsort(b->speed_probe[job], (size_t)rounds, sizeof *b->speed_probe[job], ascending);
        *medians[job] = ghp_candidates_quantile(b->speed_probe[job], rounds, 0.5);
    }
}

enum ghp_status ghp_compare_run(struct ghp_setup *s, struct ghp_comparison *ab)
{
    struct bout b = {.setup = s, .ab = ab};
    enum ghp_status status = GHP_OK;

    GHP_TRY_GOTO(status, open_all(&b), done);
    ghp_note("comparing %d plans: %lld round(s) of %lld + %lld steps each", s->n_session_plans,
             (long long)s->options->ab_rounds, (long long)ab->warmup_steps, (long long)ab->steps);
    s->session->in_loop = true;
    GHP_TRY_GOTO(status, run_rounds(&b), done);
    s->session->in_loop = false;
    ghp_candidates_evaluate(&ab->candidates);
    judge_speed_probe(&b);
    GHP_TRY_GOTO(status, save_runs(&b), done);
done:
    for (int i = 0; i < s->n_session_plans && !s->session->in_loop; i++)
        ghp_session_plan_close(&s->session_plans[i]);
    ghp_speed_prober_close(b.prober);
    for (int job = 0; job < SPEED_PROBE_JOBS; job++)
        free(b.speed_probe[job]);
    ghp_host_load_close(b.host_load);
    free(b.all);
    return status;
}

void ghp_compare_release(struct ghp_comparison *ab)
{
    free(ab->candidates.standings);
    free(ab->turn_steps);
    free(ab->use);
    free(ab->order);
    free(ab->seconds);
    *ab = (struct ghp_comparison){0};
}
