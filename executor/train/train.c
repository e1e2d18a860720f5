/* executor/train/train.c - see train.h. */
#include "executor/train/train_private.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/units.h"

#include <math.h>
#include <stdio.h>

enum { JUDGED_STEPS = 32 };
static const double long_s = 10; /* a training of more than that is said before it starts */

/* Says so if the first steps are beyond twice the prediction's error; they began at from_s of t->seconds. Then the
 * guard is asked. */
static enum ghp_status judge(struct ghp_training *t, double from_s, bool *ends)
{
    double step_s = (t->seconds - from_s) / JUDGED_STEPS;
    bool beyond =
        t->predicted_error_s > 0 && fabs(step_s - t->predicted_step_s) > 2 * t->predicted_error_s;

    if (beyond)
        ghp_note("steps take %.4g ms, predicted were %.4g +- %.2g: other programs run, or the "
                 "machine is not as it was profiled",
                 1e3 * step_s, 1e3 * t->predicted_step_s, 1e3 * t->predicted_error_s);
    if (t->guard == NULL || *ends) return GHP_OK;
    return t->guard->act(t->guard, t, (struct ghp_training_doubt){beyond, step_s}, ends);
}

static enum ghp_status note_result(struct ghp_training *t, struct ghp_result r)
{
    const struct ghp_step_timer *timer = ghp_worker_step_timer(t->worker);
    int64_t batch = t->training_config->order.global_batch;
    double step_s = ghp_step_timer_step_s(timer);
    struct ghp_metrics_line line;

    if (!isfinite(r.loss) && !ghp_divergence_overlooked(t))
        return ghp_divergence_fail(t, (int64_t)r.step);
    if (r.samples <= 0) r.loss = NAN; /* all labels are ignored: there is no mean */
    ghp_losses_add(&t->losses, r.loss);
    line = (struct ghp_metrics_line){
        .step = (int64_t)r.step,
        .epoch = ghp_order_epoch(&t->training_config->order, (int64_t)r.step),
        .loss = r.loss,
        .of_numbers =
            ghp_model_label_outputs(ghp_worker_program(t->worker)->model).classes[0] == 0,
        .top1 = r.correct / r.samples,
        .images_per_s = step_s > 0 ? (double)batch / step_s : 0,
        .gradient_norm = r.gradient_norm,
        .learning_rate = ghp_lr_schedule_rate(t->training_config->schedule, (int64_t)r.step)};
    line.tokens_per_s =
        line.images_per_s * (double)ghp_model_tokens(ghp_worker_program(t->worker)->model);
    ghp_training_keep_line(t, &line);
    return GHP_OK;
}

/* Keeps the results of finished steps that are new. */
static enum ghp_status note_results(struct ghp_training *t)
{
    struct ghp_result r;

    while (ghp_worker_result_of(t->worker, (uint64_t)(t->first_step + t->losses.steps), &r))
        GHP_TRY(note_result(t, r));
    return GHP_OK;
}

/* What is due when `done` steps are done: everything here wants flushed weights and is left out of the step times.
 * *ends: a signal ends the training here, and perhaps an evaluation half-way. */
static enum ghp_status between_steps(struct ghp_training *t, int64_t done, bool *ends)
{
    bool last = done == t->steps, epoch = done % ghp_order_steps(&t->training_config->order) == 0;
    bool saves, evaluates;
    double begin_s;

    t->heartbeat.step = done;
    if (ghp_checkpoint_written(&t->checkpoints)) ghp_training_finish_save(t);
    begin_s = ghp_now_s();
    if (!last) GHP_TRY(ghp_stop_check(ghp_training_stop(t), ends));
    if (!last && ghp_stop_told(ghp_training_stop(t))) GHP_TRY(ghp_worker_reduce_results(t->worker));
    if (!last && t->snapshot == NULL) GHP_TRY(ghp_drift_look(&t->drift, t->worker, &t->stop, done));
    saves =
        (t->checkpoints.path != NULL && (last || *ends)) || ghp_training_saves(t, done - 1, done);
    t->owes_evaluation =
        t->evaluates && (last || epoch || ghp_training_passes(t->evaluate_every, done - 1, done));
    evaluates = t->owes_evaluation && !*ends;
    saves = saves || (evaluates && t->checkpoints.keep.best);
    if (saves || evaluates || last || *ends) GHP_TRY(ghp_worker_flush(t->worker));
    t->seconds += ghp_now_s() - begin_s; /* others may be slow, and are waited for here, too */
    if (!saves && !evaluates && !last && !*ends) return GHP_OK;
    GHP_TRY(note_results(t));
    GHP_TRY(ghp_divergence_look(t, done, saves || last || *ends));
    if (!saves && !evaluates) return GHP_OK;
    ghp_memory_pause(t->memory);
    if (evaluates) GHP_TRY(ghp_training_evaluate(t, done));
    *ends = t->stop.signal != 0;
    if (evaluates && !last && !*ends) GHP_TRY(ghp_training_stagnates(t, ends));
    if (saves || (*ends && t->checkpoints.path != NULL))
        GHP_TRY(ghp_training_save(t, done, last || *ends));
    ghp_memory_resume(t->memory);
    return GHP_OK;
}

enum ghp_status ghp_training_advance(struct ghp_training *t, int64_t until, bool *ends)
{
    for (int64_t i = t->done; i < until && i < t->steps && !*ends; i++) {
        struct ghp_step step = ghp_training_config_step(t->training_config, i);
        double begin;

        if (i + 1 < t->steps) ghp_training_config_hint(t->training_config, t->worker, i + 1);
        begin = ghp_now_s();
        GHP_TRY(ghp_worker_step(t->worker, &step));
        if (t->training_config->sampling != NULL)
            ghp_sampling_learn(t->training_config->sampling, t->worker);
        GHP_TRY(ghp_worker_add_to_ema(t->worker));
        t->seconds += ghp_now_s() - begin;
        GHP_TRY(ghp_training_keep_gradients(t, i));
        GHP_TRY(note_results(t));
        GHP_TRY(between_steps(t, i + 1, ends));
        t->done = i + 1;
    }
    return GHP_OK;
}

enum ghp_status ghp_training_pause(struct ghp_training *t)
{
    GHP_TRY(ghp_worker_flush(t->worker));
    return note_results(t);
}

enum ghp_status ghp_training_take(struct ghp_training *t, const struct ghp_rank_plan *rank_plan,
                                  struct ghp_worker *worker)
{
    ghp_training_finish_save(t);
    ghp_checkpoint_release(&t->checkpoints); /* its image is of the first worker */
    t->worker = worker;
    t->rank_plan = rank_plan;
    ghp_drift_restart(&t->drift, t->done); /* its measure has the former worker's instructions */
    t->first_step = t->done;
    t->losses = (struct ghp_losses){0};
    t->seconds = 0;
    GHP_TRY(ghp_worker_settle(worker));
    ghp_step_timer_forget(ghp_worker_step_timer(worker));
    return GHP_OK;
}

/* An evaluation that a signal took from the run before. *ends: a signal takes it from this one, too. */
static enum ghp_status make_up(struct ghp_training *t, bool *ends)
{
    t->owes_evaluation = t->owes_evaluation && t->evaluates;
    if (!t->owes_evaluation) return GHP_OK;
    ghp_memory_pause(t->memory);
    GHP_TRY(ghp_training_evaluate(t, t->first_step));
    *ends = t->stop.signal != 0;
    if (!t->owes_evaluation && t->first_step == t->steps && t->checkpoints.path != NULL)
        GHP_TRY(ghp_training_save(t, t->steps, true)); /* which owes nothing */
    ghp_memory_resume(t->memory);
    return GHP_OK;
}

static enum ghp_status run_steps(struct ghp_training *t)
{
    int64_t warm = t->first_step + ghp_training_warm_up(t);
    bool ends = false;

    GHP_TRY(ghp_training_advance(t, warm, &ends));
    if (t->done == warm && warm > t->first_step && !ends) {
        double from_s = t->seconds;

        GHP_TRY(ghp_worker_settle(t->worker)); /* the other stream writes timings too */
        ghp_step_timer_forget(ghp_worker_step_timer(t->worker));
        GHP_TRY(ghp_training_advance(t, warm + JUDGED_STEPS, &ends));
        if (t->done == warm + JUDGED_STEPS) GHP_TRY(judge(t, from_s, &ends));
    }
    return ghp_training_advance(t, t->steps, &ends);
}

/* How long it may take, if somebody waits for it. */
static void say_length(const struct ghp_training *t)
{
    int64_t n = t->steps - t->first_step;
    double all_s = t->predicted_step_s * (double)n;
    char step[32], all[32];

    if (t->snapshot != NULL || all_s < long_s) return;
    ghp_progress_say("training %lld steps, predicted are %s each and %s in all", (long long)n,
                     ghp_seconds_format(t->predicted_step_s, step, sizeof step),
                     ghp_seconds_format(all_s, all, sizeof all));
}

enum ghp_status ghp_train(struct ghp_training *t)
{
    const struct ghp_exec_context *exec = ghp_worker_exec_context(t->worker);
    enum ghp_status status;
    bool ends = false;

    if (ghp_training_stop(t) != NULL)
        GHP_TRY(ghp_stop_begin(&t->stop, exec, ghp_worker_program(t->worker)->problem.workers));
    GHP_TRY(ghp_collectives_group(
        exec->transport->host,
        (struct ghp_ranks){.count = ghp_worker_program(t->worker)->problem.workers, .stride = 1},
        GHP_STREAM_COMPUTE, &t->world));
    t->heartbeat.of = t->steps;
    t->stop.heartbeat = &t->heartbeat;
    say_length(t);
    ghp_progress_begin("step", t->first_step, t->steps - t->first_step);
    t->done = t->first_step;
    status = make_up(t, &ends);
    if (status == GHP_OK && !ends && t->done < t->steps)
        status = ghp_sync_runs_free(ghp_worker_program(t->worker)->method.sync)
                     ? ghp_training_run_async(t)
                     : run_steps(t);
    ghp_stop_end(&t->stop);
    ghp_drift_release(&t->drift);
    GHP_TRY(status);
    ghp_progress_end();
    GHP_TRY(ghp_worker_flush(t->worker));
    if (!ghp_sync_runs_free(ghp_worker_program(t->worker)->method.sync)) GHP_TRY(note_results(t));
    if (t->snapshot == NULL) return GHP_OK;
    ghp_memory_pause(t->memory);
    t->snapshot->losses = t->losses;
    return ghp_snapshot_weights(t->snapshot, t->worker);
}
