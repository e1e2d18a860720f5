/* executor/train/lr_schedule.c - see train/lr_schedule.h. */
#include "executor/train/lr_schedule.h"

#include <math.h>
#include <stddef.h>

const char *const ghp_lr_schedule_names[GHP_LR_SCHEDULE_COUNT + 1] = {"constant", "step", "cosine",
                                                                      NULL};

double ghp_lr_schedule_rate(struct ghp_lr_schedule s, int64_t step)
{
    static const double pi = 3.14159265358979323846;

    if (step < s.warmup_steps) return s.base * (double)(step + 1) / (double)s.warmup_steps;
    switch (s.kind) {
    case GHP_LR_SCHEDULE_STEP:
        return 4 * step >= 3 * s.steps ? s.base / 100 : 2 * step >= s.steps ? s.base / 10 : s.base;
    case GHP_LR_SCHEDULE_COSINE:
        if (step >= s.steps) return 0;
        return s.base * 0.5 *
               (1 + cos(pi * (double)(step - s.warmup_steps) / (double)(s.steps - s.warmup_steps)));
    case GHP_LR_SCHEDULE_CONSTANT:
    case GHP_LR_SCHEDULE_COUNT: break;
    }
    return s.base;
}
