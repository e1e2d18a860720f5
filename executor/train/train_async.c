/* executor/train/train_async.c - the training loop of asynchronous workers: none waits for another's step
 * (core/program/sync.h).
 *
 * Each takes its own steps, of its part of one global batch after the other, and all end when together they have used
 * as many samples as steps of all would use; learning rates follow that count. Each tells the others how far it is
 * (train/others.h). When an evaluation, a checkpoint or the end is due, or a worker was asked to end, they meet. A
 * synchroniser that keeps workers in step has them meet after the same number of steps each. A step of the training is
 * N steps of workers; its loss is the mean over all that became known since the step before. */
#include "executor/train/train_private.h"

#include "core/base/clock.h"
#include "executor/train/others.h"

#include <math.h>

static const double heartbeat_s = 0.5;

/* Steps and seconds from the news of a signal to the end, if all keep step, beyond the steps that a worker may be
 * ahead. Within that the news has to be everywhere. */
enum { STEPS_TO_END = 10 };
static const double news_s = 0.5;

struct async_run {
    struct ghp_training *t;
    struct ghp_others *peers;
    int workers;
    bool in_step;
    int64_t own;                 /* this worker's next step, from t->first_step on */
    int64_t noted;               /* the step whose result comes next */
    int64_t done;                /* steps of the training, when all met last */
    struct ghp_other_word shown; /* up to the last line */
    double beat_s;
};

/* Steps of the training that `all` steps of workers make. */
static int64_t steps_of(const struct async_run *f, int64_t all)
{
    int64_t steps = f->t->first_step + all / f->workers;

    return steps < f->t->steps ? steps : f->t->steps;
}

/* The next multiple of `of` after `done`, unless `due` comes first; `of` 0: none. */
static int64_t sooner(int64_t due, int64_t of, int64_t done)
{
    return of > 0 && (done / of + 1) * of < due ? (done / of + 1) * of : due;
}

/* The step at which all meet next. */
static int64_t next_due(const struct async_run *f)
{
    const struct ghp_training *t = f->t;
    int64_t due = t->steps, epoch = ghp_order_steps(&t->training_config->order);
    bool keeps = t->checkpoints.path != NULL;

    if (t->evaluates) due = sooner(sooner(due, epoch, f->done), t->evaluate_every, f->done);
    if (keeps) due = sooner(due, epoch * t->checkpoint_epochs, f->done);
    return keeps ? sooner(due, t->checkpoint_every, f->done) : due;
}

static bool is_due(const struct async_run *f, int64_t due)
{
    struct ghp_other_word all = ghp_others_all(f->peers);

    if (!f->in_step) return all.signal != 0 || f->t->first_step + all.steps / f->workers >= due;
    return f->own >= due || (all.ends_after > 0 && f->own - f->t->first_step >= all.ends_after);
}

/* This worker's results since the last time. */
static enum ghp_status note_own(struct async_run *f)
{
    struct ghp_other_word *mine = ghp_others_mine(f->peers);
    struct ghp_result r;

    if (!ghp_worker_result(f->t->worker, &r) || (int64_t)r.step != f->noted) return GHP_OK;
    f->noted++;
    mine->results++;
    mine->loss += r.loss * r.samples;
    mine->correct += r.correct;
    mine->samples += r.samples;
    return isfinite(r.loss) || ghp_divergence_overlooked(f->t)
               ? GHP_OK
               : ghp_divergence_fail(f->t, (int64_t)r.step);
}

/* A line of what became known, when that makes another step of the training. */
static void show(struct async_run *f)
{
    struct ghp_training *t = f->t;
    const struct ghp_order *order = &t->training_config->order;
    struct ghp_other_word all = ghp_others_all(f->peers);
    int64_t steps = steps_of(f, all.results) - t->first_step;
    double samples = all.samples - f->shown.samples;
    struct ghp_metrics_line line;

    if (steps <= t->losses.steps) return;
    line = (struct ghp_metrics_line){
        .step = t->first_step + steps - 1,
        .epoch = ghp_order_epoch(order, t->first_step + steps - 1),
        .loss = (all.loss - f->shown.loss) / samples, /* NaN: all labels are ignored */
        .of_numbers =
            ghp_model_label_outputs(ghp_worker_program(t->worker)->model).classes[0] == 0,
        .top1 = (all.correct - f->shown.correct) / samples,
        .images_per_s = t->seconds > 0 ? (double)(steps * order->global_batch) / t->seconds : 0,
        .learning_rate =
            ghp_lr_schedule_rate(t->training_config->schedule, t->first_step + steps - 1)};
    line.tokens_per_s =
        line.images_per_s * (double)ghp_model_tokens(ghp_worker_program(t->worker)->model);
    while (t->losses.steps < steps)
        ghp_losses_add(&t->losses, line.loss);
    f->shown = all;
    ghp_training_keep_line(t, &line);
}

static void beat(struct async_run *f)
{
    if (ghp_now_s() - f->beat_s < heartbeat_s) return;
    f->beat_s = ghp_now_s();
    f->t->heartbeat.step = steps_of(f, ghp_others_all(f->peers).steps);
    ghp_heartbeat_write(&f->t->heartbeat);
}

/* This worker's next step. Its rate is of the training's step, whosever the steps were. */
static struct ghp_step step_of(struct async_run *f, int64_t own)
{
    struct ghp_training_config *config = f->t->training_config;
    struct ghp_step step = ghp_training_config_step(config, own);
    int64_t at = steps_of(f, ghp_others_all(f->peers).steps), last = config->schedule.steps - 1;

    if (!f->in_step)
        step.hyperparameters.learning_rate =
            ghp_lr_schedule_rate(config->schedule, at < last ? at : last);
    return step;
}

static int64_t steps_to_end(const struct async_run *f)
{
    int64_t taken = f->own - f->t->first_step;
    double last = f->t->seconds > 0 ? news_s * (double)taken / f->t->seconds : 0;

    return last > STEPS_TO_END ? (int64_t)last : STEPS_TO_END;
}

/* If all keep step, they believe the first worker that says after how many steps all end: a later word could come when
 * some have ended, and then the others would wait for steps of theirs. */
static void note_signal(struct async_run *f)
{
    struct ghp_other_word *mine = ghp_others_mine(f->peers);
    int ahead = f->in_step ? ghp_sync_staleness(ghp_worker_program(f->t->worker)->method.sync) : 0;

    if (ghp_training_stop(f->t) == NULL || ghp_stop_noted() == 0 || mine->signal != 0) return;
    mine->signal = ghp_stop_noted();
    if (f->in_step && ghp_others_all(f->peers).ends_after == 0)
        mine->ends_after = mine->steps + ahead + steps_to_end(f);
}

static enum ghp_status take_step(struct async_run *f)
{
    struct ghp_training *t = f->t;
    struct ghp_step step = step_of(f, f->own);
    double begin_s;

    if (ghp_worker_wants_hints(t->worker)) {
        struct ghp_step next = step_of(f, f->own + 1);

        ghp_worker_hint(t->worker, &next);
    }
    begin_s = ghp_now_s();
    GHP_TRY(ghp_worker_step(t->worker, &step));
    GHP_TRY(ghp_training_keep_gradients(t, f->own));
    f->own++;
    ghp_others_mine(f->peers)->steps++;
    GHP_TRY(note_own(f));
    note_signal(f);
    GHP_TRY(ghp_others_tell(f->peers));
    t->seconds += ghp_now_s() - begin_s;
    if (f->own == t->first_step + ghp_training_warm_up(t)) {
        GHP_TRY(ghp_worker_settle(t->worker));
        GHP_TRY(note_own(f));
        ghp_step_timer_forget(ghp_worker_step_timer(t->worker));
    }
    show(f);
    beat(f);
    return GHP_OK;
}

/* The first worker's signal, which all know now. */
static void agree_on_signal(struct async_run *f)
{
    for (int i = 0; i < f->workers && f->t->stop.signal == 0; i++)
        if (ghp_others_of(f->peers, i)->signal != 0)
            ghp_stop_agree(&f->t->stop, (int)ghp_others_of(f->peers, i)->signal, i);
}

/* All are here: what is due. */
static enum ghp_status between_steps(struct async_run *f, bool *ends)
{
    struct ghp_training *t = f->t;
    int64_t epoch = ghp_order_steps(&t->training_config->order), before = f->done,
            every = t->evaluate_every;
    bool last, saves, evaluates, ended;
    double begin_s = ghp_now_s();

    GHP_TRY(ghp_worker_flush(t->worker));
    GHP_TRY(note_own(f));
    GHP_TRY(ghp_others_meet(f->peers));
    t->seconds += ghp_now_s() - begin_s;
    show(f);
    f->done = t->done = steps_of(f, ghp_others_all(f->peers).steps);
    agree_on_signal(f);
    last = f->done == t->steps;
    ended = f->done / epoch > before / epoch || (every > 0 && f->done / every > before / every);
    *ends = last || t->stop.signal != 0;
    t->heartbeat.step = f->done;
    ghp_training_finish_save(t);
    saves = (t->checkpoints.path != NULL && *ends) || ghp_training_saves(t, before, f->done);
    t->owes_evaluation = t->evaluates && (last || ended);
    evaluates = t->owes_evaluation && t->stop.signal == 0;
    saves = saves || (evaluates && t->checkpoints.keep.best);
    GHP_TRY(ghp_divergence_look(t, f->done, saves || *ends));
    if (!saves && !evaluates) return GHP_OK;
    ghp_memory_pause(t->memory);
    if (evaluates) GHP_TRY(ghp_training_evaluate(t, f->done));
    *ends = *ends || t->stop.signal != 0;
    if (evaluates && !*ends) GHP_TRY(ghp_training_stagnates(t, ends));
    if (saves || (*ends && t->checkpoints.path != NULL))
        GHP_TRY(ghp_training_save(t, f->done, *ends));
    ghp_memory_resume(t->memory);
    return GHP_OK;
}

enum ghp_status ghp_training_run_async(struct ghp_training *t)
{
    const struct ghp_program *program = ghp_worker_program(t->worker);
    struct async_run f = {.t = t,
                          .workers = program->problem.workers,
                          .in_step = ghp_sync_keeps_step(program->method.sync),
                          .own = t->first_step,
                          .noted = t->first_step,
                          .done = t->first_step,
                          .beat_s = ghp_now_s()};
    enum ghp_status status = GHP_OK;
    bool ends = false;

    GHP_TRY(ghp_others_open(ghp_worker_exec_context(t->worker), f.workers, &f.peers));
    while (!ends && status == GHP_OK) {
        int64_t due = next_due(&f);

        while (status == GHP_OK && !is_due(&f, due))
            status = take_step(&f);
        if (status == GHP_OK) status = between_steps(&f, &ends);
    }
    GHP_TRY(status);
    ghp_others_close(f.peers);
    return GHP_OK;
}
