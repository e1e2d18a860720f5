/* executor/train/training_config.c - see train/training_config.h. */
#include "executor/train/training_config.h"

/* The fraction of the steps that one worker would take, over which lena's gains rise. */
static const double ramp_fraction = 0.05;

struct ghp_step ghp_training_config_step(struct ghp_training_config *training_config, int64_t step)
{
    struct ghp_hyperparameters hyperparameters = training_config->hyperparameters;
    int64_t last = training_config->schedule.steps - 1;
    struct ghp_step result;

    hyperparameters.learning_rate =
        ghp_lr_schedule_rate(training_config->schedule, step < last ? step : last);
    hyperparameters.ramp =
        ramp_fraction * training_config->batches * (double)training_config->schedule.steps;
    if (training_config->optimizer->complete != NULL)
        training_config->optimizer->complete(&hyperparameters, step + 1);
    result = (struct ghp_step){.index = (uint64_t)step,
                               .epoch = ghp_order_epoch(&training_config->order, step),
                               .data = training_config->data,
                               .set = GHP_DATA_TRAIN,
                               .valid = training_config->order.global_batch,
                               .hyperparameters = hyperparameters};
    if (training_config->sampling != NULL)
        ghp_sampling_choose(training_config->sampling, &result);
    else
        result.samples = ghp_order_batch(&training_config->order, step);
    return result;
}

void ghp_training_config_hint(struct ghp_training_config *t, struct ghp_worker *worker,
                              int64_t step)
{
    struct ghp_step next;

    if (t->sampling != NULL || !ghp_worker_wants_hints(worker)) return;
    next = ghp_training_config_step(t, step);
    ghp_worker_hint(worker, &next);
}
