/* core/plan/range.c - see range.h. */
#include "core/plan/range.h"

#include "core/cost/profile_peak.h"

#include <math.h>
#include <stdio.h>

/* Of 264 plans by quick profiles of the lab the mean error was 5.7 %, and the 95th percentile three times that, as of
 * exponentially distributed sizes; nine tenths of such sizes lie below ln 10 = 2.3 times their mean
 * (docs/how-to/lab.md). */
static const double lab_mean_error = 0.057, mean_to_nine_tenths = 2.302585;

/* An error is half an interquartile range; nine tenths of normal errors lie within 2.44 of these. */
static const double quartile_to_nine_tenths = 2.44;

/* `disturbed` is half the span of what fixed jobs took, and no quartile. Of 66 plans by profiles disturbed by 13 to 65 %
 * the errors of nine tenths were at most this part of it (docs/results/lab.md). */
static const double disturbed_to_nine_tenths = 0.65;

struct ghp_step_range ghp_prediction_range(const struct ghp_prediction *predicted,
                                           const struct ghp_profile *profile)
{
    double step_s = predicted->step_s, disturbed_s = profile->disturbed * step_s;
    double own_error_s = fmax(0, predicted->error_s - disturbed_s);
    double half_s =
        fmax(mean_to_nine_tenths * lab_mean_error * step_s, quartile_to_nine_tenths * own_error_s);

    half_s = fmax(half_s, disturbed_to_nine_tenths * disturbed_s);

    if (ghp_profile_is_peak(profile))
        return (struct ghp_step_range){ghp_peak_range[0] * step_s, ghp_peak_range[1] * step_s};
    /* a plan that no entry fits has laws alone, whose error is known if they were fitted */
    if (profile->n_ops == 0 && !(own_error_s > 1e-9 * step_s))
        return (struct ghp_step_range){NAN, NAN};
    return (struct ghp_step_range){fmax(0, step_s - half_s), step_s + half_s};
}

/* Digits after the point that show three of a number's own, or all before the point. */
static int decimals(double number)
{
    return number >= 100 ? 0 : number >= 10 ? 1 : number >= 1 ? 2 : 3;
}

const char *ghp_range_format(struct ghp_step_range range, char text[GHP_RANGE_TEXT_SIZE])
{
    double low = 1e3 * range.low_s, high = 1e3 * range.high_s;

    if (isnan(range.low_s))
        snprintf(text, GHP_RANGE_TEXT_SIZE, "not known");
    else
        snprintf(text, GHP_RANGE_TEXT_SIZE, "%.*f to %.*f ms", decimals(low), low, decimals(high),
                 high);
    return text;
}

void ghp_range_put(json_t *object, struct ghp_step_range range, bool *failed)
{
    if (!isnan(range.low_s))
        ghp_json_put(object, "range_s", json_pack("[f, f]", range.low_s, range.high_s), failed);
}
