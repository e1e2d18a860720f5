/* executor/train/lr_schedule.h - the learning rate of a step.
 *
 *     warm-up, t < W            base (t + 1) / W
 *     constant                  base
 *     step                      base, base / 10 from at[0] of the steps on, base / 100 from at[1]
 *     cosine                    least + (base - least) (1 + cos(pi (t - W) / (T - W))) / 2
 *     linear                    base - (base - least) (t - W) / (T - W)
 *     wsd                       base; in the last D steps base - (base - least) (t - (T - D)) / D
 *     quadratic                 least + (base - least) (1 - (t - W) / (T - W))^2
 *     exponential               base (least / base)^((t - W) / (T - W)), a hundredth at the end if least is 0
 *     inverse                   base / (t - W + 1)
 *     inverse-epoch             base / (i + 1), i the epochs that are over, counted from step W
 *
 * with t from 0, T steps in all, W of them warm-up. wsd: warm-up, stable, decay. */
#ifndef GHP_EXECUTOR_TRAIN_LR_SCHEDULE_H
#define GHP_EXECUTOR_TRAIN_LR_SCHEDULE_H

#include "core/base/status.h"

#include <stdbool.h>

enum ghp_lr_schedule_kind {
    GHP_LR_SCHEDULE_CONSTANT,
    GHP_LR_SCHEDULE_STEP,
    GHP_LR_SCHEDULE_COSINE,
    GHP_LR_SCHEDULE_LINEAR,
    GHP_LR_SCHEDULE_WSD,
    GHP_LR_SCHEDULE_QUADRATIC,
    GHP_LR_SCHEDULE_EXPONENTIAL,
    GHP_LR_SCHEDULE_INVERSE,
    GHP_LR_SCHEDULE_INVERSE_EPOCH,
    GHP_LR_SCHEDULE_COUNT
};

/* NULL-terminated, in enum order */
extern const char *const ghp_lr_schedule_names[GHP_LR_SCHEDULE_COUNT + 1];

struct ghp_lr_schedule {
    enum ghp_lr_schedule_kind kind;
    double base;          /* learning rate */
    double least;         /* what a rate decays to, 0 .. base */
    int64_t steps;        /* T >= 1 */
    int64_t warmup_steps; /* W, 0 .. T */
    int64_t decay_steps;  /* D, 1 .. T - W, of wsd; else 0 */
    double at[2];         /* of step: parts of T, 0 < at[0] <= at[1] <= 1 */
    int64_t epoch_steps;  /* of one epoch, of inverse-epoch */
};

/* Local. Tested tests/executor/train/test_lr_schedule.c */
double ghp_lr_schedule_rate(struct ghp_lr_schedule schedule, int64_t step);

/* at, from "0.5,0.75"; NULL is that. Returns GHP_OK; GHP_ERR_USAGE. Local. */
enum ghp_status ghp_lr_schedule_read_at(const char *text, struct ghp_lr_schedule *schedule);

/* Whether its numbers go together. Returns GHP_OK; GHP_ERR_USAGE naming the option. Local. */
enum ghp_status ghp_lr_schedule_check(struct ghp_lr_schedule schedule);

#endif
