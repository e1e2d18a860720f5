/* executor/engine/worker/step.c - runs the steps of a worker. The order of everything is the program's; this file
 * adds only the rules of core/program/program.h: reductions and transfers run on the other streams, updates wait for
 * the previous step's, a flush runs them alone.
 *
 * A step is enqueued; what the host learns of it, it learns a step later (engine/in_flight.h). In host memory the
 * enqueued work is done at once. */
#include "executor/engine/worker_private.h"

#include "executor/platform/activity.h"

/* The compute stream continues when the reduction that the instruction waits for is done. A graph begins with all of
 * them done. */
static enum ghp_status wait_for(struct ghp_worker *w, int i)
{
    return i < 0 || w->comm_stream == NULL || ghp_in_flight_is_capturing(w->in_flight)
               ? GHP_OK
               : ghp_comm_stream_wait(w->comm_stream, i);
}

/* The last step's metrics are taken: clears the sums for the next. */
static enum ghp_status clear_metrics(struct ghp_worker *w)
{
    return ghp_device_clear(w->arena.device, GHP_DEVICE_STREAM_COMPUTE, w->address[w->metrics],
                            GHP_METRIC_COUNT * sizeof(double));
}

/* Waits for what the instruction waits for. */
static enum ghp_status enter(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    ghp_arena_visit(&w->arena, &w->program, instr->point);
    GHP_TRY(wait_for(w, instr->wait));
    if (instr->stream != GHP_STREAM_COMPUTE) return GHP_OK; /* its stream says when */
    ghp_pace_begin(w->pace, i);
    return ghp_in_flight_start(w->in_flight, ghp_in_flight_half(w->in_flight), i);
}

/* Whether others have done all of its work: the kernel that fuses it, or the first of the step's updates. */
static bool is_idle(const struct ghp_worker *w, int i)
{
    return ghp_worker_done_by_another(w, i) || w->prepared[i].updated;
}

static enum ghp_status leave(struct ghp_worker *w, int i, bool idle)
{
    if (ghp_worker_instr(w, i)->stream != GHP_STREAM_COMPUTE) return GHP_OK;
    ghp_pace_end(w->pace, i);
    if (idle) {
        ghp_in_flight_idle(w->in_flight, i);
        return GHP_OK;
    }
    return ghp_in_flight_finish(w->in_flight, ghp_in_flight_half(w->in_flight), i);
}

/* Whether it is left out: what finishes a step if nothing is pending; an average that is not due. */
static bool skips(const struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    return w->prepared[i].flushes &&
           (!w->updates_pending || (instr->period > 0 && !ghp_worker_averages(instr, previous)));
}

static enum ghp_status run_step(struct ghp_worker *w, const struct ghp_step *previous)
{
    w->collected = w->whole_kind = GHP_BUFFER_KIND_COUNT;
    w->updating = previous->index;
    ghp_worker_begin_updates(w);
    if (!w->updates_pending) GHP_TRY(ghp_worker_copy_weights(w));
    if (w->mixer != NULL && !w->updates_pending) GHP_TRY(w->run.mixing->start(w->mixer));
    for (int i = 0; i < w->program.n_instrs; i++) {
        bool idle = is_idle(w, i);
        enum ghp_status status;

        if (skips(w, i, previous)) continue;
        GHP_TRY(enter(w, i));
        if (i == w->metrics_boundary) GHP_TRY(clear_metrics(w));
        if (w->observer != NULL) GHP_TRY(ghp_worker_show_gradient(w, i));
        if (w->observer != NULL) GHP_TRY(ghp_worker_show_logits(w, i));
        if (w->step.measures && ghp_instr_reduces(ghp_worker_instr(w, i))) ghp_worker_measure(w, i);
        if (ghp_kind_of(ghp_worker_instr(w, i))->is_local) /* nothing but the watchdog names it */
            ghp_activity_begin(w->prepared[i].label, w->step.index);
        status = ghp_worker_run(w, i, previous);
        ghp_activity_end();
        GHP_TRY(status);
        if (w->observer != NULL) GHP_TRY(ghp_worker_show_output(w, i));
        GHP_TRY(leave(w, i, idle));
    }
    if (w->step.measures && w->own_squares < 0) ghp_worker_measure(w, -1);
    return GHP_OK;
}

struct enqueuing {
    struct ghp_worker *worker;
    const struct ghp_step *previous;
};

static enum ghp_status enqueue_step(void *context)
{
    const struct enqueuing *e = context;
    struct ghp_worker *w = e->worker;
    int half = ghp_in_flight_half(w->in_flight);

    GHP_TRY(ghp_in_flight_start(w->in_flight, half, GHP_WHOLE_STEP));
    GHP_TRY(run_step(w, e->previous));
    if (w->comm_stream != NULL && ghp_in_flight_captures(w->in_flight))
        GHP_TRY(ghp_comm_stream_join(w->comm_stream));
    return ghp_in_flight_finish(w->in_flight, half, GHP_WHOLE_STEP);
}

static struct ghp_supply supply_of(const struct ghp_worker *w, const struct ghp_step *step)
{
    return (struct ghp_supply){.data = step->data,
                               .set = step->set,
                               .samples = step->samples,
                               .n = w->program.problem.global_batch,
                               .epoch = step->epoch,
                               .step = step->index};
}

/* The hyperparameters of the present step, with the rates of the step whose gradient an update takes. */
static struct ghp_step_hyperparameters hyperparameters_of(const struct ghp_worker *w,
                                                          const struct ghp_step *update)
{
    struct ghp_step_hyperparameters given = {.step = w->step.index,
                                             .loss_scale = w->loss_scale,
                                             .mean_weight = w->mean_weight,
                                             .update = update->hyperparameters,
                                             .update_step = update->index};

    memcpy(given.output_weights, w->output_weights, sizeof given.output_weights);
    return given;
}

/* What each output of a loss counts next to the first, of whose labels `base` are not ignored: by its weight, and over
 * its own labels if it has some. Outputs that share their labels are left out of evaluations but for the first, as
 * modules leave them out. */
static void weigh_outputs(struct ghp_worker *w, const int64_t *labels, int64_t base)
{
    const struct ghp_model *model = w->program.model;
    const struct ghp_loss *loss = &model->layers[model->n_layers - 1].loss;

    for (int i = 0; i < loss->outputs; i++) {
        w->output_weights[i] = loss->weights[i];
        if (w->step.output > 0)
            w->output_weights[i] = i == w->step.output - 1;
        else if (loss->own_labels)
            w->output_weights[i] *= labels[i] > 0 ? (double)base / (double)labels[i] : 0;
        else if (w->run.weight_owner != NULL)
            w->output_weights[i] = i == 0;
    }
}

/* The loss is the mean over all labels of the step that are not ignored, by the weights of their classes, on
 * whichever worker they are. If workers' weights differ, it is over a worker's own labels. */
static enum ghp_status scale_loss(struct ghp_worker *w)
{
    const struct ghp_step *step = &w->step;
    const struct ghp_label_outputs outputs = ghp_model_label_outputs(w->program.model);
    int replicas = w->program.replicas;
    bool evaluates = w->run.weight_owner != NULL; /* no gradients */
    int64_t of[GHP_MAX_INPUTS] = {0}, own = w->program.problem.global_batch / replicas, labels;
    const int64_t *samples = step->samples + (replicas > 1 ? w->program.rank * own : 0);
    double weight;

    if (!evaluates || outputs.n > 1)
        GHP_TRY(ghp_data_count_labels(step->data, step->set, samples, evaluates ? step->valid : own,
                                      outputs, of));
    labels = outputs.n > 1 && of[0] == 0 ? 1 : of[0];
    weigh_outputs(w, of, labels);
    if (evaluates) return GHP_OK;
    weight = (double)labels;
    if (w->run.class_weights != NULL)
        GHP_TRY(ghp_data_weigh_labels(step->data, step->set, samples, own, w->run.class_weights,
                                      &weight));
    w->mean_weight = labels > 0 ? weight / (double)labels : 1;
    w->loss_scale = labels > 0 ? 1.0 / weight : 0;
    if (step->weight > 0) w->loss_scale *= step->weight;
    w->own_squares = -1;
    if (w->run.fault == GHP_FAULT_GROUP_SCALE) w->loss_scale *= w->run.groups;
    return GHP_OK;
}

static enum ghp_status collect(struct ghp_worker *w, bool all)
{
    struct ghp_in_flight_results landed;

    GHP_TRY(ghp_in_flight_collect(w->in_flight, all, w->timer, &landed));
    for (int i = 0; i < landed.n && !ghp_worker_keeps_metrics(w); i++)
        ghp_worker_take_result(w, landed.step[i], landed.metrics[i], landed.squares[i]);
    return GHP_OK;
}

/* The step whose updates are pending, with the rate at which they are made. */
static struct ghp_step pending_of(const struct ghp_worker *w)
{
    struct ghp_step step = w->step;

    if (w->mixer != NULL)
        step.hyperparameters.learning_rate *= ghp_mix_rate(w->program.mixing, &w->mix_numbers);
    return step;
}

enum ghp_status ghp_worker_step(struct ghp_worker *w, const struct ghp_step *step)
{
    struct ghp_step previous = pending_of(w);
    struct ghp_supply supply = supply_of(w, step);
    struct ghp_step_hyperparameters hyperparameters;
    struct enqueuing enqueuing = {w, &previous};

    w->step = *step;
    ghp_pace_step(w->pace);
    GHP_TRY(scale_loss(w));
    hyperparameters = hyperparameters_of(w, &previous);
    GHP_TRY(ghp_in_flight_begin(w->in_flight, &supply, &hyperparameters));
    GHP_TRY(ghp_in_flight_run(w->in_flight, w->updates_pending && w->observer == NULL, enqueue_step,
                              &enqueuing));
    GHP_TRY(collect(w, false));
    w->updates_pending = w->run.weight_owner == NULL;
    return GHP_OK;
}

bool ghp_worker_wants_hints(const struct ghp_worker *w)
{
    return ghp_loader_prefetches(ghp_in_flight_loader(w->in_flight));
}

void ghp_worker_hint(struct ghp_worker *w, const struct ghp_step *next)
{
    struct ghp_supply supply = supply_of(w, next);

    ghp_loader_hint(ghp_in_flight_loader(w->in_flight), &supply);
}

struct ghp_prefetch_count ghp_worker_prefetched(const struct ghp_worker *w)
{
    return ghp_loader_prefetched(ghp_in_flight_loader(w->in_flight));
}

void ghp_worker_skip_timings(struct ghp_worker *w)
{
    ghp_in_flight_skip(w->in_flight);
}

static enum ghp_status finish_reductions(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_worker_instr(w, i)->stream == GHP_STREAM_COMM) GHP_TRY(wait_for(w, i));
    return GHP_OK;
}

enum ghp_status ghp_worker_reduce_results(struct ghp_worker *w)
{
    if (w->kept_metrics == 0) return GHP_OK;
    GHP_TRY(finish_reductions(w));
    if (!w->sums_metrics) GHP_TRY(ghp_worker_sum_kept(w));
    ghp_worker_take_kept(w);
    return GHP_OK;
}

enum ghp_status ghp_worker_settle(struct ghp_worker *w)
{
    GHP_TRY(finish_reductions(w));
    GHP_TRY(ghp_worker_reduce_results(w));
    for (int m = 0; m < w->n_messages && w->lanes == NULL; m++)
        GHP_TRY(ghp_p2p_thread_wait(w->p2p_thread, m));
    ghp_arena_visit(&w->arena, &w->program, -1);
    GHP_TRY(collect(w, true));
    return ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMPUTE);
}

enum ghp_status ghp_worker_flush(struct ghp_worker *w)
{
    struct ghp_step of = pending_of(w);
    struct ghp_step_hyperparameters hyperparameters = hyperparameters_of(w, &of);

    GHP_TRY(ghp_worker_settle(w));
    if (!w->updates_pending) return GHP_OK;
    GHP_TRY(ghp_in_flight_set(w->in_flight, &hyperparameters));
    w->updating = of.index;
    ghp_worker_begin_updates(w);
    for (int k = 0; k < w->program.n_flush; k++) {
        int i = w->program.flush[k];

        if (ghp_worker_instr(w, i)->kind != GHP_INSTR_UPDATE) /* what others get is there */
            GHP_TRY(ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMPUTE));
        if (!skips(w, i, &of)) GHP_TRY(ghp_worker_run_now(w, i, &of));
    }
    w->updates_pending = false;
    GHP_TRY(ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMPUTE));
    return ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMM);
}

enum ghp_status ghp_worker_add_to_ema(struct ghp_worker *w)
{
    if (w->ema == NULL) return GHP_OK;
    GHP_TRY(ghp_worker_flush(w));
    ghp_worker_feed_ema(w);
    return GHP_OK;
}
