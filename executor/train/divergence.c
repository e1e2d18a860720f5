/* executor/train/divergence.c - a training whose numbers are not finite any more: how that is seen, and what is said.
 *
 * A ReLU turns NaN into 0, so a loss may look well long after the weights are gone. Every update therefore looks at
 * what it writes (struct ghp_not_finite); what it finds is in the next step's loss, which all workers that sum it
 * check. Before weights are saved, and at the end, all of them are looked at.
 *
 * The failure names the first step, by its number from 0, whose update wrote such a number, and the first layer in the
 * network's order that it wrote one in; a sample that was not finite before it was trained on is told apart from a
 * training that diverged.
 *
 * Tested   tests/tools/learn/test_divergence.sh */
#include "core/base/finite.h"
#include "executor/state/parameters.h"
#include "executor/train/train_private.h"

#include <math.h>
#include <stdlib.h>

static const double answer_s = 2; /* for what others found, if some may train on */

/* ---- who found what ---- */

/* The first of what all workers found, as a message that is exact up to 2^53: steps up to 2^29. */
static enum ghp_status first_of_all(const struct ghp_training *t, uint64_t *first)
{
    struct ghp_control *control = ghp_worker_exec_context(t->worker)->transport->control;
    const struct ghp_control_message mine = {.value = *first < GHP_ALL_FINITE ? (double)*first
                                                                              : INFINITY};
    const struct ghp_control_message *messages = &mine;

    if (t->world->ranks.count > 1) {
        t->world->label = "finding where the training diverged";
        GHP_TRY(control->ops->tell(control, t->world, mine, &messages));
    }
    for (int i = 0; i < t->world->ranks.count; i++)
        if (messages[i].value < (double)*first) *first = (uint64_t)messages[i].value;
    return GHP_OK;
}

/* Asks the others for their first step that is not finite. If only some workers may have seen the loss, the others are
 * not waited for long, and are then left out. */
static void ask_others(const struct ghp_training *t, uint64_t *first)
{
    struct ghp_control *control = ghp_worker_exec_context(t->worker)->transport->control;
    double patience = control->patience;

    if (ghp_sync_runs_free(ghp_worker_program(t->worker)->method.sync)) return;
    if (control->watchdog_s * patience > answer_s)
        control->patience = answer_s / control->watchdog_s;
    (void)first_of_all(t, first);
    control->patience = patience;
}

/* ---- why ---- */

/* The first sample of a step that is not finite; -1: none is. Tokens are always finite. */
static enum ghp_status find_sample(const struct ghp_training *t, int64_t step, int64_t *sample)
{
    struct ghp_training_config *config = t->training_config;
    struct ghp_shape shape = ghp_worker_program(t->worker)->model->layers[0].out;
    int64_t elements = ghp_shape_elements(shape);
    enum ghp_status status = GHP_OK;
    struct ghp_step of;
    void *image;

    *sample = -1;
    if (config->sampling != NULL || ghp_model_tokens(ghp_worker_program(t->worker)->model) > 0)
        return GHP_OK;
    of = ghp_training_config_step(config, step);
    image = ghp_alloc((size_t)elements, sizeof(float));
    if (image == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < config->order.global_batch && *sample < 0 && status == GHP_OK; i++) {
        status = ghp_data_images(config->data, &(struct ghp_batch){.set = GHP_DATA_TRAIN,
                                                                   .epoch = of.epoch,
                                                                   .samples = &of.samples[i],
                                                                   .n = 1,
                                                                   .channels = shape.c,
                                                                   .element_bytes = sizeof(float),
                                                                   .images = image});
        if (status == GHP_OK && !ghp_are_finite(image, elements, sizeof(float)))
            *sample = of.samples[i];
    }
    free(image);
    return status;
}

static const char *remedy_of(const struct ghp_training *t, int64_t step)
{
    const struct ghp_training_config *config = t->training_config;
    int64_t last = config->schedule.steps - 1;
    double rate = ghp_lr_schedule_rate(config->schedule, step < last ? step : last);

    if (rate <= 0)
        return "the network overflows by a rate of 0; give other weights with --init, or smaller "
               "samples with --normalise";
    if (step == t->first_step)
        return "the training diverged in its first step; lower --lr or, if that changes nothing, "
               "give other weights with --init or smaller samples with --normalise";
    return ghp_worker_program(t->worker)->method.clip_norm > 0
               ? "the training diverged; lower --lr, add --warmup-steps or lower --clip-norm"
               : "the training diverged; lower --lr, add --warmup-steps or plan with --clip-norm";
}

/* `first` GHP_ALL_FINITE: of the loss of `step` alone. */
static enum ghp_status fail(struct ghp_training *t, int64_t step, uint64_t first)
{
    const struct ghp_model *model = ghp_worker_program(t->worker)->model;
    bool known = first < GHP_ALL_FINITE;
    int layer = known ? ghp_not_finite_layer(first) : model->n_layers - 1;
    int64_t sample;

    ghp_training_finish_save(t); /* of steps before: it is sound */
    if (known) step = (int64_t)ghp_not_finite_step(first);
    if (find_sample(t, step, &sample) == GHP_OK && sample >= 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "sample %lld of the training set has numbers that are not finite, and step "
                        "%lld trains on it; correct it or leave it out",
                        (long long)sample, (long long)step);
    if (known)
        return GHP_FAIL(GHP_ERR_DIVERGED, "the weights of '%s' are not finite after step %lld: %s",
                        model->layers[layer].name, (long long)step, remedy_of(t, step));
    return GHP_FAIL(GHP_ERR_DIVERGED, "the loss of '%s' is not finite in step %lld: %s",
                    model->layers[layer].name, (long long)step, remedy_of(t, step));
}

enum ghp_status ghp_divergence_fail(struct ghp_training *t, int64_t step)
{
    struct ghp_not_finite found = {.first = GHP_ALL_FINITE};

    GHP_TRY(ghp_worker_not_finite(t->worker, &found));
    ask_others(t, &found.first);
    return fail(t, step, found.first);
}

bool ghp_divergence_overlooked(const struct ghp_training *t)
{
    return ghp_worker_run_options(t->worker)->fault == GHP_FAULT_OVERLOOK;
}

enum ghp_status ghp_divergence_look(struct ghp_training *t, int64_t done, bool all)
{
    struct ghp_not_finite found = {.first = GHP_ALL_FINITE};
    int layer = -1;

    if (ghp_divergence_overlooked(t)) return GHP_OK;
    GHP_TRY(ghp_worker_not_finite(t->worker, &found));
    if (all && found.first == GHP_ALL_FINITE) GHP_TRY(ghp_parameters_not_finite(t->worker, &layer));
    if (layer >= 0) found.first = ghp_not_finite_key((uint64_t)(done - 1), layer);
    GHP_TRY(first_of_all(t, &found.first));
    return found.first == GHP_ALL_FINITE ? GHP_OK : fail(t, done - 1, found.first);
}
