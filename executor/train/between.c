/* executor/train/between.c - see train_private.h. */
#include "executor/train/train_private.h"

#include "core/base/log.h"

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

/* A line of metrics that cannot be written ends the file, not the training. */
static void keep_metrics(struct ghp_training *t, enum ghp_status written)
{
    if (written == GHP_OK) return;
    ghp_warn("no more metrics are kept: %s", ghp_status_message());
    ghp_metrics_close(t->metrics);
    t->metrics = NULL;
    t->metrics_lost = true;
}

/* The bar: what a step made and how long it took, compared with the prediction. */
static void show_progress(const struct ghp_training *t, const struct ghp_metrics_line *line)
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

/* As keep_metrics, for TensorBoard's events. */
static void keep_events(struct ghp_training *t, enum ghp_status written)
{
    if (written == GHP_OK) return;
    ghp_warn("no more events are kept: %s", ghp_status_message());
    ghp_event_file_close(t->events);
    t->events = NULL;
    t->metrics_lost = true;
}

void ghp_training_keep_line(struct ghp_training *t, const struct ghp_metrics_line *line)
{
    show_progress(t, line);
    if (t->metrics != NULL) keep_metrics(t, ghp_metrics_step(t->metrics, line));
    if (t->events != NULL) keep_events(t, ghp_event_file_step(t->events, line));
}

/* Tells anyone who watches the training what was evaluated. */
static void say_evaluation(const struct ghp_training *t)
{
    const struct ghp_evaluation *e = &t->evaluation;
    const char *set = t->evaluates_all ? "all" : "test";

    if (e->of_numbers)
        ghp_progress_report("after %lld steps: loss %.6g, absolute error %.6g on %s samples",
                            (long long)t->evaluated, e->loss, e->absolute_error, set);
    else
        ghp_progress_report("after %lld steps: loss %.6g, accuracy %.4f on %s samples",
                            (long long)t->evaluated, e->loss, e->accuracy, set);
}

enum ghp_status ghp_training_evaluate(struct ghp_training *t, int64_t done)
{
    int64_t epoch = ghp_order_epoch(&t->training_config->order, done - 1);

    struct ghp_evaluation_request request = {.data = t->training_config->data,
                                             .set =
                                                 t->evaluates_all ? GHP_DATA_TRAIN : GHP_DATA_TEST,
                                             .detail = t->evaluation_detail,
                                             .stop = ghp_training_stop(t),
                                             .rank_plan = t->rank_plan};
    struct ghp_evaluation evaluation;
    enum ghp_status status = ghp_evaluate(t->worker, request, &evaluation);

    if (status == GHP_OK) t->owes_evaluation = !evaluation.complete;
    if (status != GHP_OK || !evaluation.complete) {
        ghp_evaluation_release(&evaluation);
        return status;
    }
    ghp_evaluation_release(&t->evaluation);
    t->evaluation = evaluation;
    t->has_evaluation = true;
    t->evaluated = done;
    say_evaluation(t);
    if (t->metrics != NULL)
        keep_metrics(t, ghp_metrics_evaluation(t->metrics, done, epoch, &t->evaluation));
    if (t->events != NULL)
        keep_events(t, ghp_event_file_evaluation(t->events, done, &t->evaluation));
    return GHP_OK;
}

enum ghp_status ghp_training_stagnates(struct ghp_training *t, bool *ends)
{
    struct ghp_control *control = ghp_worker_exec_context(t->worker)->transport->control;
    const struct ghp_control_message *messages;
    struct ghp_control_message mine = {.status = GHP_OK};

    if (t->patience == 0) return GHP_OK;
    if (t->least_step == 0 || t->evaluation.loss < t->least_loss) {
        t->least_loss = t->evaluation.loss;
        t->least_step = t->evaluated;
        t->not_lower = 0;
    } else {
        t->not_lower++;
    }
    mine.value = t->not_lower >= t->patience;
    t->world->label = "stopping early";
    GHP_TRY(control->ops->tell(control, t->world, mine, &messages));
    *ends = messages[0].value != 0;
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
    t->checkpoints.concurrent = t->asynchronous && !last;
    status = ghp_checkpoint_save(&t->checkpoints, t->worker, checkpoint);
    t->checkpoint_lost = status != GHP_OK;
    if (status == GHP_OK && !ghp_checkpoint_under_way(&t->checkpoints)) t->heartbeat.kept = done;
    ghp_heartbeat_write(&t->heartbeat);
    if (status != GHP_ERR_IO) return status;
    ghp_warn("no checkpoint after %lld steps: %s", (long long)done, ghp_status_message());
    return GHP_OK;
}

bool ghp_training_passes(int64_t every, int64_t before, int64_t done)
{
    return every > 0 && done / every > before / every;
}

bool ghp_training_saves(const struct ghp_training *t, int64_t before, int64_t done)
{
    int64_t epoch = ghp_order_steps(&t->training_config->order);

    return t->checkpoints.path != NULL &&
           (ghp_training_passes(epoch * t->checkpoint_epochs, before, done) ||
            ghp_training_passes(t->checkpoint_every, before, done));
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
