/* ghp-test: timeout=180
 * tests/planner/alternatives/test_sensitivity.c - the range in which a plan stays: planned anew just inside each end
 * the plan is as good as the new one, just outside the new one is better. */
#include "planner/sweep/sensitivity.h"

#include "core/plan/profile_edit.h"
#include "planner/alternatives/quantity.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

/* By how much a plan made for this value is faster than the plan there; NAN: the plan does not fit. */
static double better_s(const struct ghp_wishes *made_by, const struct ghp_plan *plan,
                       enum ghp_quantity quantity, double value)
{
    struct ghp_wishes wishes = *made_by;
    struct ghp_profile scaled;
    struct ghp_prediction own = {0};
    struct ghp_lowering how;
    struct ghp_plan other;
    double found = NAN;

    CHECK_STATUS(ghp_profile_copy(made_by->profile, &scaled), GHP_OK);
    wishes.profile = &scaled;
    wishes.decision_only = true;
    if (quantity == GHP_QUANTITY_BATCH)
        wishes.extent.global_batch = llround(value);
    else if (quantity == GHP_QUANTITY_MEMORY)
        wishes.memory_bytes = llround(value);
    else
        CHECK_STATUS(ghp_quantity_scale_profile(&scaled, quantity,
                                                value / ghp_quantity_nominal(plan, quantity)),
                     GHP_OK);
    how = ghp_plan_lowering(plan, &scaled);
    how.extent = wishes.extent;
    CHECK_STATUS(ghp_plan_predict(&how, plan->splits, &scaled, &own), GHP_OK);
    if (wishes.memory_bytes == 0 || own.peak_bytes <= wishes.memory_bytes) {
        if (CHECK_STATUS(ghp_make_plan(&wishes, &other), GHP_OK)) {
            found = own.step_s - other.predicted.step_s;
            ghp_plan_release(&other);
        }
    }
    ghp_profile_release(&scaled);
    return found;
}

/* A value just beyond an end, which was found to a thousandth. */
static double beyond(const struct ghp_plan *plan, enum ghp_quantity quantity, double end, bool up)
{
    double workers = plan->extent.workers, value = end * (up ? 1.003 : 1 / 1.003);

    if (quantity == GHP_QUANTITY_MEMORY) return up ? ceil(value) : end - 1;
    if (quantity != GHP_QUANTITY_BATCH) return value;
    return up ? fmax(ceil(value / workers), end / workers + 1) * workers
              : fmin(floor(value / workers), end / workers - 1) * workers;
}

/* Checks both ends of each range; the number of ends. */
static int check_ends(const struct ghp_wishes *wishes, const struct ghp_plan *plan)
{
    double rounding_s = 3e-9 * plan->predicted.step_s; /* plans this near are equal to the search */
    int ends = 0;

    for (int i = 0; i < plan->n_sensitivity; ++i) {
        const struct ghp_sensitivity *s = &plan->sensitivity[i];

        CHECK_NEAR(s->nominal, ghp_quantity_nominal(plan, s->quantity), 0);
        for (int up = 0; up < 2; ++up) {
            double end = up ? s->high : s->low, out_s;
            const char *text = up ? s->above : s->below;

            CHECK((text == NULL) == isnan(end));
            if (isnan(end)) continue;
            ++ends;
            if (s->quantity != GHP_QUANTITY_MEMORY || s->nominal > 0)
                CHECK(up ? end >= s->nominal : end <= s->nominal);
            CHECK(text[0] != '\0' && strstr(text, "time limit") == NULL);
            CHECK(better_s(wishes, plan, s->quantity, end) <= rounding_s);
            out_s = better_s(wishes, plan, s->quantity, beyond(plan, s->quantity, end, up == 1));
            if (!CHECK(isnan(out_s) || out_s > 0))
                fprintf(stderr, "%s, end %d, %g\n", ghp_quantity_name(s->quantity), up, end);
        }
    }
    return ends;
}

static void test_network(void)
{
    struct ghp_profile profile;
    struct ghp_plan plan;

    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    struct ghp_wishes wishes = {.model_path = GHP_SOURCE_DIR "/models/vgg16.json",
                                .profile_path = "analytic",
                                .profile = &profile,
                                .extent = {16, 1024},
                                .keep_layers = true,
                                .time_limit_s = 600,
                                .simplify = true};
    if (!CHECK_STATUS(ghp_make_plan(&wishes, &plan), GHP_OK)) return;
    CHECK_STATUS(ghp_sensitivity_find(&wishes, &plan), GHP_OK);
    CHECK_EQ(plan.n_sensitivity, 5); /* every node has one worker: no link inside */
    CHECK(check_ends(&wishes, &plan) >= 6);
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
}

/* With a limit that the fastest plan breaks a higher limit is worth something: the range has an upper end. */
static void test_limit(void)
{
    struct ghp_profile profile;
    struct ghp_plan plan;

    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    struct ghp_wishes wishes = {.model_path = GHP_SOURCE_DIR "/models/lenet5.json",
                                .profile_path = "analytic",
                                .profile = &profile,
                                .extent = {2, 64},
                                .keep_layers = true,
                                .time_limit_s = 40,
                                .simplify = true};
    if (!CHECK_STATUS(ghp_make_plan(&wishes, &plan), GHP_OK)) return;
    wishes.memory_bytes = plan.predicted.peak_bytes - 1;
    ghp_plan_release(&plan);
    if (!CHECK_STATUS(ghp_make_plan(&wishes, &plan), GHP_OK)) return;
    CHECK_STATUS(ghp_sensitivity_find(&wishes, &plan), GHP_OK);
    const struct ghp_sensitivity *memory = &plan.sensitivity[plan.n_sensitivity - 1];
    CHECK_EQ(memory->quantity, GHP_QUANTITY_MEMORY);
    CHECK_NEAR(memory->low, plan.predicted.peak_bytes, 0);
    /* a limit of one byte more lets the fastest plan in */
    CHECK(memory->high >= (double)wishes.memory_bytes &&
          memory->high <= 1.001 * (double)wishes.memory_bytes);
    CHECK(check_ends(&wishes, &plan) >= 2);
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
}

CHECK_TEST(sensitivity)
{
    test_network();
    test_limit();
    return check_end();
}
