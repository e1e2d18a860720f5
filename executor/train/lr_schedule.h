/* executor/train/lr_schedule.h - the learning rate of a step.
 *
 *     warm-up, t < W            base (t + 1) / W
 *     constant                  base
 *     step                      base, base / 10 from half of the steps on, base / 100 from three quarters on
 *     cosine                    base (1 + cos(pi (t - W) / (T - W))) / 2
 *
 * with t from 0, T steps in all, W of them warm-up. */
#ifndef GHP_EXECUTOR_TRAIN_LR_SCHEDULE_H
#define GHP_EXECUTOR_TRAIN_LR_SCHEDULE_H

#include "core/base/status.h"

enum ghp_lr_schedule_kind {
    GHP_LR_SCHEDULE_CONSTANT,
    GHP_LR_SCHEDULE_STEP,
    GHP_LR_SCHEDULE_COSINE,
    GHP_LR_SCHEDULE_COUNT
};

/* NULL-terminated, in enum order */
extern const char *const ghp_lr_schedule_names[GHP_LR_SCHEDULE_COUNT + 1];

struct ghp_lr_schedule {
    enum ghp_lr_schedule_kind kind;
    double base;          /* learning rate */
    int64_t steps;        /* T >= 1 */
    int64_t warmup_steps; /* W, 0 .. T */
};

/* Local. Tested tests/executor/train/test_lr_schedule.c */
double ghp_lr_schedule_rate(struct ghp_lr_schedule schedule, int64_t step);

#endif
