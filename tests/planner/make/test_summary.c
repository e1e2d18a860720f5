/* ghp-test: timeout=120
 * tests/planner/make/test_summary.c - the objects that ghp-plan prints are whole, or an error: whichever allocation
 * fails. */
#include "inspect/summary.h"

#include "planner/sweep/sweep.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

static long allocations, fails_at; /* fails_at -1: none */

static void *failing_malloc(size_t n)
{
    return allocations++ == fails_at ? NULL : malloc(n);
}

typedef enum ghp_status print_fn(const void *what, json_t *options, FILE *out);

/* What is printed while allocation `at` fails; NULL if it says so. */
static char *print_with(print_fn *print, const void *what, long at)
{
    json_t *options = json_pack("{s:s}", "workers", "2");
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    enum ghp_status status;

    if (!CHECK(out != NULL)) return NULL;
    allocations = 0;
    fails_at = at;
    json_set_alloc_funcs(failing_malloc, free);
    status = print(what, options, out);
    json_set_alloc_funcs(malloc, free);
    fclose(out);
    if (status == GHP_OK) return text;
    CHECK_EQ(status, GHP_ERR_NO_MEMORY);
    CHECK_EQ(n, 0);
    free(text);
    return NULL;
}

/* Jansson grows with malloc alone: at every number of it there is an error, or the whole text. */
static void check_print(print_fn *print, const void *what, const char *name)
{
    char *whole = print_with(print, what, -1), *text;
    long n = allocations, short_ones = 0;

    if (!CHECK(whole != NULL)) return;
    CHECK(n > 20);
    for (long at = 0; at < n; at++) {
        text = print_with(print, what, at);
        short_ones += text != NULL && strcmp(text, whole) != 0;
        free(text);
    }
    if (!CHECK_EQ(short_ones, 0))
        fprintf(stderr, "%s: cut short without an error at %ld of %ld allocations\n", name,
                short_ones, n);
    free(whole);
}

static enum ghp_status print_plan(const void *what, json_t *options, FILE *out)
{
    return ghp_summary_json(what, options, out);
}

static enum ghp_status print_sweep(const void *what, json_t *options, FILE *out)
{
    return ghp_sweep_json(what, options, out);
}

static void test_plan(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = {.model_path = GHP_SOURCE_DIR "/models/lenet5.json",
                                       .profile_path = "analytic",
                                       .profile = profile,
                                       .problem = {4, 64},
                                       .time_limit_s = 30,
                                       .memory_bytes = 1 << 30,
                                       .simplify = true};
    struct ghp_overrides overrides = {0};
    struct ghp_plan plan;

    CHECK_STATUS(ghp_overrides_add(&overrides, "nodes", "1", "4"), GHP_OK);
    request.what_if = &overrides;
    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    check_print(print_plan, &plan, "plan");
    ghp_plan_release(&plan);
    ghp_overrides_release(&overrides);
}

static void test_sweep(void)
{
    struct ghp_sweep_plan good = {.feasible = true, .predicted = {.step_s = 1, .peak_bytes = 2}};
    struct ghp_sweep_point points[] = {
        {.workers = 1,
         .nodes = 1,
         .batch = 8,
         .plan = {good, good, {.reason = "model"}, good},
         .groups = 1,
         .group_size = 1,
         .splits = "data",
         .proof = GHP_PROOF_OPTIMAL},
        {.workers = 3, .batch = 8, .plan = {{.reason = "3 does not divide 8"}}}};
    struct ghp_sweep sweep = {
        .model = "m", .profile = "p", .batch = 8, .what_if = "nodes", .n = 2, .point = points};

    check_print(print_sweep, &sweep, "sweep");
}

CHECK_TEST(summary)
{
    struct ghp_profile profile;

    if (!CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK)) return check_end();
    test_plan(&profile);
    test_sweep();
    ghp_profile_release(&profile);
    return check_end();
}
