/* executor/train/lr_schedule.c - see train/lr_schedule.h. */
#include "executor/train/lr_schedule.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

const char *const ghp_lr_schedule_names[GHP_LR_SCHEDULE_COUNT + 1] = {
    "constant",  "step",        "cosine",  "linear",        "wsd",
    "quadratic", "exponential", "inverse", "inverse-epoch", NULL};

/* What an exponential schedule comes down to if nobody says. */
static const double usual_end = 0.01;

static double decayed(struct ghp_lr_schedule s, double done)
{
    static const double pi = 3.14159265358979323846;

    switch (s.kind) {
    case GHP_LR_SCHEDULE_COSINE: return s.least + (s.base - s.least) * 0.5 * (1 + cos(pi * done));
    case GHP_LR_SCHEDULE_QUADRATIC: return s.least + (s.base - s.least) * (1 - done) * (1 - done);
    case GHP_LR_SCHEDULE_EXPONENTIAL:
        return s.base * pow(s.least > 0 ? s.least / s.base : usual_end, done);
    default: return s.base - (s.base - s.least) * done;
    }
}

double ghp_lr_schedule_rate(struct ghp_lr_schedule s, int64_t step)
{
    int64_t begin = s.kind == GHP_LR_SCHEDULE_WSD ? s.steps - s.decay_steps : s.warmup_steps;

    if (step < s.warmup_steps) return s.base * (double)(step + 1) / (double)s.warmup_steps;
    switch (s.kind) {
    case GHP_LR_SCHEDULE_CONSTANT: return s.base;
    case GHP_LR_SCHEDULE_STEP:
        return (double)step >= s.at[1] * (double)s.steps   ? s.base / 100
               : (double)step >= s.at[0] * (double)s.steps ? s.base / 10
                                                           : s.base;
    case GHP_LR_SCHEDULE_INVERSE: return s.base / (double)(step - begin + 1);
    case GHP_LR_SCHEDULE_INVERSE_EPOCH:
        return s.base / (double)((step - begin) / (s.epoch_steps > 0 ? s.epoch_steps : 1) + 1);
    default: break;
    }
    if (step >= s.steps) return decayed(s, 1);
    if (step < begin) return s.base;
    return decayed(s, (double)(step - begin) / (double)(s.steps - begin));
}

/* Whether it decays to `least`. */
static bool decays(enum ghp_lr_schedule_kind kind)
{
    switch (kind) {
    case GHP_LR_SCHEDULE_CONSTANT:
    case GHP_LR_SCHEDULE_STEP:
    case GHP_LR_SCHEDULE_INVERSE:
    case GHP_LR_SCHEDULE_INVERSE_EPOCH: return false;
    default: return true;
    }
}

enum ghp_status ghp_lr_schedule_read_at(const char *text, struct ghp_lr_schedule *s)
{
    char *end = NULL;

    s->at[0] = 0.5;
    s->at[1] = 0.75;
    if (text == NULL) return GHP_OK;
    if (s->kind != GHP_LR_SCHEDULE_STEP)
        return GHP_FAIL(GHP_ERR_USAGE, "--step-at is for --lr-schedule step alone; leave it out");
    s->at[0] = strtod(text, &end);
    if (end != text && *end == ',') {
        text = end + 1;
        s->at[1] = strtod(text, &end);
        if (end != text && *end == '\0' && s->at[0] > 0 && s->at[0] <= s->at[1] && s->at[1] <= 1)
            return GHP_OK;
    }
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--step-at wants two parts of the steps, above 0, the second not below the "
                    "first and at most 1; write --step-at 0.5,0.75");
}

enum ghp_status ghp_lr_schedule_check(struct ghp_lr_schedule s)
{
    bool is_wsd = s.kind == GHP_LR_SCHEDULE_WSD;

    if (s.warmup_steps > s.steps)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "--warmup-steps %lld is longer than the training of %lld steps; use at most that many",
            (long long)s.warmup_steps, (long long)s.steps);
    if (s.least > 0 && !decays(s.kind))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--lr-min is for schedules that decay to it, and '%s' does not; give "
                        "--lr-schedule cosine, linear, quadratic, exponential or wsd",
                        ghp_lr_schedule_names[s.kind]);
    if (s.least > s.base)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--lr-min %g is above the learning rate %g; give less, or a higher --lr",
                        s.least, s.base);
    if ((s.decay_steps > 0) != is_wsd)
        return GHP_FAIL(GHP_ERR_USAGE, is_wsd ? "--lr-schedule wsd needs to know how long it "
                                                "decays; give --decay-steps N"
                                              : "--decay-steps is for --lr-schedule wsd alone; "
                                                "leave it out");
    if (s.decay_steps > s.steps - s.warmup_steps)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--decay-steps %lld does not fit after %lld steps of warm-up in %lld; use "
                        "at most %lld",
                        (long long)s.decay_steps, (long long)s.warmup_steps, (long long)s.steps,
                        (long long)(s.steps - s.warmup_steps));
    return GHP_OK;
}
