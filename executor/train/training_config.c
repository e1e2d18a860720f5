/* executor/train/training_config.c - see train/training_config.h. */
#include "executor/train/training_config.h"

struct ghp_step ghp_recipe_step(struct ghp_recipe *recipe, int64_t step)
{
    return (struct ghp_step){.index = (uint64_t)step,
                             .data = recipe->data,
                             .set = GHP_DATA_TRAIN,
                             .samples = ghp_order_batch(&recipe->order, step),
                             .valid = recipe->order.global_batch,
                             .learning_rate = ghp_schedule_rate(recipe->schedule, step),
                             .momentum = recipe->momentum,
                             .weight_decay = recipe->weight_decay};
}
