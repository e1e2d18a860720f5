/* tests/core/plan/test_range.c - the range of a prediction by what it was made of: a rule of thumb, measurements, or
 * rates that somebody gave. */
#include "core/plan/range.h"

#include "core/cost/named_machine.h"
#include "core/cost/profile_peak.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

CHECK_TEST(range)
{
    struct ghp_prediction p = {.step_s = 0.2, .error_s = 0.001};
    struct ghp_machine machine = {0};
    struct ghp_profile peak = {0}, given = {0}, measured = {.n_ops = 1};
    char text[GHP_RANGE_TEXT_SIZE];

    CHECK_STATUS(ghp_machine_open("h100-sxm-8", &machine), GHP_OK);
    CHECK_STATUS(ghp_profile_peak(&machine, 8, ghp_precision_of(0), &peak), GHP_OK);
    CHECK_NEAR(ghp_prediction_range(&p, &peak).low_s, ghp_peak_range[0] * 0.2, 1e-12);
    CHECK_NEAR(ghp_prediction_range(&p, &peak).high_s, ghp_peak_range[1] * 0.2, 1e-12);
    /* the lab's error, or the prediction's own where that is greater */
    CHECK_NEAR(ghp_prediction_range(&p, &measured).low_s, 0.2 * (1 - 0.131), 1e-4);
    CHECK_NEAR(ghp_prediction_range(&p, &measured).high_s, 0.2 * (1 + 0.131), 1e-4);
    p.error_s = 0.05;
    CHECK_NEAR(ghp_prediction_range(&p, &measured).high_s, 0.2 + 2.44 * 0.05, 1e-12);
    /* a disturbed profile: its share is in the error, and is not a quartile */
    measured.disturbed = 0.24;
    CHECK_NEAR(ghp_prediction_range(&p, &measured).high_s, 0.2 + 0.65 * 0.24 * 0.2, 1e-12);
    p.error_s = 0.048 + 0.05;
    CHECK_NEAR(ghp_prediction_range(&p, &measured).high_s, 0.2 + 2.44 * 0.05, 1e-12);
    measured.disturbed = 0;
    p.error_s = 0.2;
    CHECK_NEAR(ghp_prediction_range(&p, &measured).low_s, 0, 0);
    p.error_s = 0.02; /* by laws that were fitted, not given */
    CHECK_NEAR(ghp_prediction_range(&p, &given).high_s, 0.2 + 2.44 * 0.02, 1e-12);
    p.error_s = 0;
    CHECK(isnan(ghp_prediction_range(&p, &given).low_s));
    CHECK(strcmp(ghp_range_format((struct ghp_step_range){0.0558, 0.191}, text),
                 "55.8 to 191 ms") == 0);
    CHECK(strcmp(ghp_range_format((struct ghp_step_range){1.04, 27.71}, text),
                 "1040 to 27710 ms") == 0);
    CHECK(strcmp(ghp_range_format((struct ghp_step_range){0, 4.2e-5}, text), "0.000 to 0.042 ms") ==
          0);
    CHECK(strcmp(ghp_range_format((struct ghp_step_range){NAN, NAN}, text), "not known") == 0);
    ghp_profile_release(&peak);
    ghp_machine_release(&machine);
    return check_end();
}
