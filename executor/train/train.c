/* executor/train/train.c - see train.h. */
#include "executor/train/train_private.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/units.h"

#include <math.h>
#include <stdio.h>

/* A verification compares whole trainings: nothing ends it in order. */
struct ghp_stop *ghp_training_stop(struct ghp_training *t)
{
    return t->snapshot == NULL ? &t->stop : NULL;
}

int64_t ghp_training_warm_up(const struct ghp_training *t)
{
    int64_t n = t->steps - t->first_step;

    return n > 8 ? 3 : n > 2 ? 1 : 0;
}

enum { JUDGED_STEPS = 32 };
static const double long_s = 10; /* a training of more than that is said before it starts */

/* Says so where the first steps are beyond twice the prediction's error; they began at from_s of t->seconds. Then the
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

/* A line of metrics that cannot be written ends the file, not the training. */
static void keep_metrics(struct ghp_training *t, enum ghp_status written)
{
    if (written == GHP_OK) return;
    ghp_warn("no more metrics are kept: %s", ghp_status_message());
    ghp_metrics_close(t->metrics);
    t->metrics = NULL;
    t->metrics_lost = true;
}

/* The bar: what a step made and how long it took, beside what was predicted. */
static void show_progress(const struct ghp_training *t, const struct ghp_metrics_step *line)
{
    double step_s = ghp_step_timer_step_s(ghp_worker_step_timer(t->worker));
    bool tokens = line->tokens_per_s > 0;
    char took[96];

    if (!(step_s > 0)) { /* the timer has just forgotten the first steps */
        ghp_progress_step(t->losses.steps, "loss %.4f", line->loss);
        return;
    }
    if (t->predicted_step_s > 0)
        snprintf(took, sizeof took, "predicted %.4g | %.4g ms", 1e3 * t->predicted_step_s,
                 1e3 * step_s);
    else
        snprintf(took, sizeof took, "%.4g ms a step", 1e3 * step_s);
    ghp_progress_step(t->losses.steps, "loss %.4f, %.0f %s/s, %s", line->loss,
                      tokens ? line->tokens_per_s : line->images_per_s,
                      tokens ? "tokens" : "samples", took);
}

/* The same for TensorBoard's events. */
static void keep_events(struct ghp_training *t, enum ghp_status written)
{
    if (written == GHP_OK) return;
    ghp_warn("no more events are kept: %s", ghp_status_message());
    ghp_event_file_close(t->events);
    t->events = NULL;
    t->metrics_lost = true;
}

void ghp_training_keep_line(struct ghp_training *t, const struct ghp_metrics_step *line)
{
    show_progress(t, line);
    if (t->metrics != NULL) keep_metrics(t, ghp_metrics_step(t->metrics, line));
    if (t->events != NULL) keep_events(t, ghp_event_file_step(t->events, line));
}

static enum ghp_status note_result(struct ghp_training *t, struct ghp_result r)
{
    const struct ghp_step_timer *timer = ghp_worker_step_timer(t->worker);
    int64_t batch = t->training_config->order.global_batch;
    double step_s = ghp_step_timer_step_s(timer);
    struct ghp_metrics_step line;

    if (!isfinite(r.loss) && !ghp_divergence_overlooked(t))
        return ghp_divergence_fail(t, (int64_t)r.step);
    if (r.samples <= 0) r.loss = NAN; /* all labels are ignored: there is no mean */
    ghp_losses_add(&t->losses, r.loss);
    line = (struct ghp_metrics_step){
        .step = (int64_t)r.step,
        .epoch = ghp_order_epoch(&t->training_config->order, (int64_t)r.step),
        .loss = r.loss,
        .top1 = r.correct / r.samples,
        .images_per_s = step_s > 0 ? (double)batch / step_s : 0,
        .gradient_norm = r.gradient_norm,
        .learning_rate = ghp_lr_schedule_rate(t->training_config->schedule, (int64_t)r.step)};
    line.tokens_per_s =
        line.images_per_s * (double)ghp_model_tokens(ghp_worker_program(t->worker)->lowering.model);
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

enum ghp_status ghp_training_evaluate(struct ghp_training *t, int64_t done)
{
    int64_t epoch = ghp_order_epoch(&t->training_config->order, done - 1);

    struct ghp_evaluation evaluation;

    GHP_TRY(ghp_evaluate(t->worker, t->training_config->data, GHP_DATA_TEST, ghp_training_stop(t),
                         &evaluation));
    t->owes_evaluation = !evaluation.complete;
    if (!evaluation.complete) return GHP_OK;
    t->evaluation = evaluation;
    t->has_evaluation = true;
    t->evaluated = done;
    if (t->metrics != NULL)
        keep_metrics(t, ghp_metrics_evaluation(t->metrics, done, epoch, &t->evaluation));
    if (t->events != NULL)
        keep_events(t, ghp_event_file_evaluation(t->events, done, &t->evaluation));
    return GHP_OK;
}

void ghp_training_finish_save(struct ghp_training *t)
{
    int64_t step = 0;

    if (!ghp_checkpoint_under_way(&t->checkpoints)) return;
    if (ghp_checkpoint_finish(&t->checkpoints, &step) == GHP_OK)
        t->heartbeat.kept = step;
    else
        ghp_warn("no checkpoint after %lld steps: %s", (long long)step, ghp_status_message());
    ghp_heartbeat_write(&t->heartbeat);
}

enum ghp_status ghp_training_save(struct ghp_training *t, int64_t done, bool last)
{
    const struct ghp_order *order = &t->training_config->order;
    struct ghp_checkpoint checkpoint = {.step = done,
                                        .seed = order->seed,
                                        .global_batch = order->global_batch,
                                        .samples = order->n,
                                        .owes_evaluation = t->owes_evaluation,
                                        .evaluated = t->has_evaluation && t->evaluated == done,
                                        .test_loss = t->evaluation.loss};
    enum ghp_status status;

    ghp_training_finish_save(t);
    t->checkpoints.beside = t->asynchronous && !last;
    status = ghp_checkpoint_save(&t->checkpoints, t->worker, checkpoint);
    t->checkpoint_lost = status != GHP_OK;
    if (status == GHP_OK && !ghp_checkpoint_under_way(&t->checkpoints)) t->heartbeat.kept = done;
    ghp_heartbeat_write(&t->heartbeat);
    if (status != GHP_ERR_IO) return status;
    ghp_warn("no checkpoint after %lld steps: %s", (long long)done, ghp_status_message());
    return GHP_OK;
}

static bool passes(int64_t every, int64_t before, int64_t done)
{
    return every > 0 && done / every > before / every;
}

bool ghp_training_saves(const struct ghp_training *t, int64_t before, int64_t done)
{
    int64_t epoch = ghp_order_steps(&t->training_config->order);

    return t->checkpoints.path != NULL && (passes(epoch * t->checkpoint_epochs, before, done) ||
                                           passes(t->checkpoint_every, before, done));
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
    if (!last && ghp_stop_told(ghp_training_stop(t))) GHP_TRY(ghp_worker_share_results(t->worker));
    if (!last && t->snapshot == NULL) GHP_TRY(ghp_drift_look(&t->drift, t->worker, &t->stop, done));
    saves =
        (t->checkpoints.path != NULL && (last || *ends)) || ghp_training_saves(t, done - 1, done);
    t->owes_evaluation =
        t->evaluates && (last || epoch || passes(t->evaluate_every, done - 1, done));
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
    if (saves) GHP_TRY(ghp_training_save(t, done, last || *ends));
    ghp_memory_resume(t->memory);
    return GHP_OK;
}

enum ghp_status ghp_training_keep_gradients(struct ghp_training *t, int64_t step)
{
    if (t->snapshot == NULL || step != t->first_step) return GHP_OK;
    GHP_TRY(ghp_worker_settle(t->worker));
    ghp_memory_pause(t->memory);
    GHP_TRY(ghp_snapshot_gradients(t->snapshot, t->worker));
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

enum ghp_status ghp_training_take(struct ghp_training *t, struct ghp_worker *worker)
{
    ghp_training_finish_save(t);
    ghp_checkpoint_release(&t->checkpoints); /* its image is of the first worker */
    t->worker = worker;
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
    if (!t->owes_evaluation && t->first_step == t->steps)
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

/* How long it may take, where somebody waits for it. */
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
        status = ghp_sync_runs_free(ghp_worker_program(t->worker)->lowering.method.sync)
                     ? ghp_training_run_async(t)
                     : run_steps(t);
    ghp_stop_end(&t->stop);
    ghp_drift_release(&t->drift);
    GHP_TRY(status);
    ghp_progress_end();
    GHP_TRY(ghp_worker_flush(t->worker));
    if (!ghp_sync_runs_free(ghp_worker_program(t->worker)->lowering.method.sync))
        GHP_TRY(note_results(t));
    if (t->snapshot == NULL) return GHP_OK;
    ghp_memory_pause(t->memory);
    t->snapshot->losses = t->losses;
    return ghp_snapshot_weights(t->snapshot, t->worker);
}
