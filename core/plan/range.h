/* core/plan/range.h - the range that holds the measured step with 90 %, by what a prediction was made of.
 *
 * What was measured on the machine itself errs as in the lab; the rule of thumb for a machine that nobody measured errs
 * as on published runs. Rates that somebody gave have no error to go by.
 *
 * Source  docs/explanation/time-model.md, "The range with 90 %"
 * Tested  tests/core/plan/test_range.c */
#ifndef GHP_CORE_PLAN_RANGE_H
#define GHP_CORE_PLAN_RANGE_H

#include "core/base/json.h"
#include "core/plan/plan.h"

struct ghp_step_range { /* NAN: not known */
    double low_s, high_s;
};

/* profile   that the prediction was made by, or a plan's part of it */
struct ghp_step_range ghp_prediction_range(const struct ghp_prediction *predicted,
                                           const struct ghp_profile *profile);

/* "55.8 to 191 ms", or "not known". Returns text. */
enum { GHP_RANGE_TEXT_SIZE = 64 };
const char *ghp_range_format(struct ghp_step_range range, char text[GHP_RANGE_TEXT_SIZE]);

/* Sets the key range_s of an object; leaves it out if the range is not known. */
void ghp_range_put(json_t *object, struct ghp_step_range range, bool *failed);

#endif
