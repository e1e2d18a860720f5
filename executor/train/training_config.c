/* executor/train/training_config.c - see train/training_config.h. */
#include "executor/train/training_config.h"

struct ghp_step ghp_training_config_step(struct ghp_training_config *training_config, int64_t step)
{
    return (struct ghp_step){.index = (uint64_t)step,
                             .data = training_config->data,
                             .set = GHP_DATA_TRAIN,
                             .samples = ghp_order_batch(&training_config->order, step),
                             .valid = training_config->order.global_batch,
                             .learning_rate = ghp_lr_schedule_rate(training_config->schedule, step),
                             .momentum = training_config->momentum,
                             .weight_decay = training_config->weight_decay};
}
