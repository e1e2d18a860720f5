/* ghp-test: timeout=300
 * tests/planner/pipeline/test_load_balance.c - shares for workers of unlike speeds: on random instances no vector of
 * shares is faster than the one that is chosen by more than the part in a hundred that shares in proportion may cost; a
 * whole plan is not slower than with equal shares, holds when it is read again, and has equal ones if the workers are
 * alike; with many samples shares are in fours. */
#include "core/cost/simulate.h"
#include "core/cost/speeds.h"
#include "planner/make/make.h"
#include "planner/pipeline/load_balance.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

enum { CASES = 120, MOST_WORKERS = 4, MOST_LAYERS = 16, MOST_BATCH = 24 };

static const double worth = 0.01; /* planner/pipeline/load_balance.c: what proportion may cost */
static char model_path[64], plan_path[64];

struct truth {
    const struct random_case *c;
    struct ghp_lowering lowering;
    const double *speed;
    double least_s; /* over all vectors, all layers by data */
};

/* The step of the worker that needs longest, each lowered and simulated for this very vector. */
static double step_of(const struct truth *t, int64_t *shares)
{
    const struct ghp_staging staging = {.shares = shares, .speeds = t->speed};
    struct ghp_lowering lowering = t->lowering;
    struct ghp_split splits[MOST_LAYERS];
    double most_s = 0;

    lowering.staging = &staging;
    for (int v = 0; v < MOST_LAYERS; v++)
        splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    CHECK_STATUS(ghp_staging_check(&staging, lowering.model, lowering.problem), GHP_OK);
    for (int r = 0; r < lowering.problem.workers; r++) {
        struct ghp_program program = {0};
        struct ghp_timing timing = {0};

        if (!CHECK_STATUS(ghp_lower(&lowering, splits, r, &program), GHP_OK)) return INFINITY;
        CHECK_STATUS(ghp_simulate(&program, &t->c->profile, &timing), GHP_OK);
        most_s = fmax(most_s, timing.step_s);
        ghp_timing_release(&timing);
        ghp_program_release(&program);
    }
    return most_s;
}

/* All vectors of at least one sample each. */
static void every_vector(struct truth *t, int64_t *shares, int rank, int64_t left)
{
    int last = t->lowering.problem.workers - 1;

    if (rank == last || rank + 1 == MOST_WORKERS) {
        shares[rank] = left;
        t->least_s = fmin(t->least_s, step_of(t, shares));
        return;
    }
    for (int64_t n = 1; n <= left - (last - rank); n++) {
        shares[rank] = n;
        every_vector(t, shares, rank + 1, left - n);
    }
}

static bool all_data(const struct ghp_partition *a, int layers)
{
    for (int v = 0; v < layers; v++)
        if (a->splits[v].tp_size > 1) return false;
    return true;
}

static void check_find(const struct random_case *c, const double *speed, double even_s)
{
    int64_t shares[MOST_WORKERS];
    struct truth t = {.c = c,
                      .lowering = {.model = &c->model,
                                   .problem = c->problem,
                                   .element_bytes = c->profile.element_bytes},
                      .speed = speed,
                      .least_s = INFINITY};
    const struct ghp_partition_job job = {
        .lowering = &t.lowering, .profile = &c->profile, .deadline_s = INFINITY, .best_s = even_s};
    struct ghp_partition found;

    every_vector(&t, shares, 0, c->problem.global_batch);
    if (!CHECK_STATUS(ghp_load_balance_compute(&job, speed, &found), GHP_OK)) return;
    if (!found.found) {
        CHECK(t.least_s >= even_s * (1 - worth - 1e-9));
        return;
    }
    CHECK(found.step_s < even_s);
    CHECK(found.step_s * (1 - worth) <= t.least_s * (1 + 1e-9));
    if (all_data(&found, c->model.n_layers)) {
        CHECK(found.step_s >= t.least_s * (1 - 1e-9));
        CHECK_NEAR(step_of(&t, found.shares), found.step_s, 1e-12 * found.step_s);
    }
    ghp_partition_release(&found);
}

/* Two workers and many samples: shares are in proportion, or in fours and no others in fours are faster. Returns
 * whether they are in fours. */
static bool check_quantum(const struct random_case *c, const double *speed)
{
    enum { BATCH = 128, GRAIN = 4 };
    int64_t shares[2], dealt[2];
    struct truth t = {.c = c,
                      .lowering = {.model = &c->model,
                                   .problem = {2, BATCH},
                                   .element_bytes = c->profile.element_bytes},
                      .speed = speed,
                      .least_s = INFINITY};
    const struct ghp_partition_job job = {.lowering = &t.lowering,
                                          .profile = &c->profile,
                                          .deadline_s = INFINITY,
                                          .best_s = INFINITY};
    struct ghp_partition found;
    bool quanta = false;

    if (!CHECK_STATUS(ghp_load_balance_compute(&job, speed, &found), GHP_OK) || !CHECK(found.found))
        return false;
    ghp_speeds_deal(speed, 2, 1, BATCH, dealt);
    for (shares[0] = GRAIN; shares[0] < BATCH; shares[0] += GRAIN) {
        shares[1] = BATCH - shares[0];
        t.least_s = fmin(t.least_s, step_of(&t, shares));
    }
    CHECK(found.step_s * (1 - worth) <= t.least_s * (1 + 1e-9));
    CHECK_EQ(found.shares[0] + found.shares[1], BATCH);
    if (found.shares[0] != dealt[0]) {
        CHECK_EQ(found.shares[0] % GRAIN, 0);
        quanta = true;
    }
    ghp_partition_release(&found);
    return quanta;
}

static enum ghp_status make(const struct random_case *c, bool even, struct ghp_plan *plan)
{
    const struct ghp_plan_request request = {.model_path = model_path,
                                             .profile_path = "none",
                                             .profile = &c->profile,
                                             .problem = c->problem,
                                             .method.bucket_bytes = 0,
                                             .time_limit_s = 60,
                                             .load_balance = even ? GHP_LOAD_BALANCE_MODE_EQUAL
                                                                  : GHP_LOAD_BALANCE_MODE_BY_SPEED};

    return ghp_plan_make(&request, plan);
}

/* Returns whether shares were taken. */
static bool check_plan(const struct random_case *c, double even_s)
{
    struct ghp_plan plan, again;
    bool uneven;

    if (!CHECK_STATUS(make(c, false, &plan), GHP_OK)) return false;
    uneven = plan.shares != NULL;
    CHECK(plan.predicted.step_s <= even_s * (1 + 1e-9));
    CHECK_STATUS(ghp_plan_verify(&plan, &c->profile), GHP_OK);
    CHECK_STATUS(ghp_plan_save(plan_path, &plan), GHP_OK);
    if (CHECK_STATUS(ghp_plan_load(plan_path, &again), GHP_OK)) {
        CHECK_STATUS(ghp_plan_verify(&again, &c->profile), GHP_OK);
        for (int r = 0; uneven && r < c->problem.workers; r++)
            CHECK_EQ(again.shares[r], plan.shares[r]);
        ghp_plan_release(&again);
    }
    ghp_plan_release(&plan);
    return uneven;
}

static bool set_speeds(struct random_source *source, struct random_case *c)
{
    int n = c->problem.workers;
    double speeds[MOST_WORKERS], least = INFINITY, most = 0;

    for (int r = 0; r < n; r++) {
        speeds[r] = 1 + 0.5 * random_below(source, 5);
        least = fmin(least, speeds[r]);
        most = fmax(most, speeds[r]);
    }
    if (!(most > least)) return false;
    c->profile.speeds = (struct ghp_speeds){.n = n, .of = ghp_alloc((size_t)n, sizeof(double))};
    if (!CHECK(c->profile.speeds.of != NULL)) return false;
    for (int r = 0; r < n; r++)
        c->profile.speeds.of[r] = speeds[r] / least;
    return CHECK_STATUS(ghp_profile_finalize(&c->profile), GHP_OK);
}

/* Returns whether shares were taken. */
static bool check_case(struct random_case *c)
{
    struct ghp_plan even;
    double even_s;
    bool uneven;

    random_case_write_model(model_path, c->text);
    if (!CHECK_STATUS(make(c, true, &even), GHP_OK)) return false;
    CHECK(even.shares == NULL);
    even_s = even.predicted.step_s;
    ghp_plan_release(&even);
    check_find(c, c->profile.speeds.of, even_s);
    uneven = check_plan(c, even_s);
    return uneven;
}

/* Workers alike: nothing changes. */
static void check_alike(const struct random_case *c)
{
    struct ghp_plan plan;

    random_case_write_model(model_path, c->text);
    if (!CHECK_STATUS(make(c, false, &plan), GHP_OK)) return;
    CHECK(plan.shares == NULL);
    ghp_plan_release(&plan);
}

static void open_path(char *path, size_t n)
{
    int fd;

    snprintf(path, n, "/tmp/ghp-uneven-XXXXXX");
    fd = mkstemp(path);
    if (CHECK(fd >= 0)) close(fd);
}

CHECK_TEST(load_balance)
{
    struct random_source source = {.state = 1};
    int cases = 0, taken = 0, quanta = 0;

    open_path(model_path, sizeof model_path);
    open_path(plan_path, sizeof plan_path);
    for (uint64_t seed = 0; cases < check_cases(CASES); seed++) {
        struct random_case c;

        if (!CHECK_STATUS(random_case_make(seed, 400, &c), GHP_OK)) break;
        if (c.problem.workers > 1 && c.problem.workers <= MOST_WORKERS &&
            c.problem.global_batch <= MOST_BATCH && c.model.n_layers <= MOST_LAYERS) {
            if (cases % 10 == 0) check_alike(&c);
            if (set_speeds(&source, &c)) {
                cases++;
                taken += check_case(&c);
                if (c.problem.workers == 2) quanta += check_quantum(&c, c.profile.speeds.of);
            }
        }
        random_case_release(&c);
    }
    printf("%d instances; unequal shares are taken in %d; in fours, of 128 samples, in %d\n", cases,
           taken, quanta);
    CHECK(taken > 0 && taken < cases);
    CHECK(quanta > 0 || !check_full()); /* one instance in 40 */
    unlink(model_path);
    unlink(plan_path);
    return check_end();
}
