/* ghp-test: timeout=180
 * tests/planner/search/test_exact.c - the plan is the best there is: on random instances every combination of splits is
 * lowered and simulated, and nothing is faster, with and without a limit on memory, and where parameters may be
 * sharded. A plan that was edited is refused by ghp_plan_verify. */
#include "core/cost/simulate.h"
#include "planner/make/make.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

enum { CASES = 200, TIED_CASES = 40, SHARDED_CASES = 80, MAX_CHOICES = 64 * GHP_SHARDING_COUNT };

static const double most_combinations = 3000;
static char model_path[64];

struct truth {
    int n;
    double *step_s;
    int64_t *peak;
};

/* Every other pair of seeds shards the update. */
static struct ghp_sync sync_of(uint64_t seed)
{
    return ghp_sync_at((int)(seed / 2 % 2));
}

/* The layer's splits, each with all shardings that are offered. */
static int choices_of(const struct random_case *c, int v, struct ghp_split choices[MAX_CHOICES])
{
    struct ghp_sharding_place place = {.model = &c->model, .layer = v, .problem = c->problem};
    struct ghp_split splits[64];
    int n = ghp_split_choices(&c->model.layers[v], c->problem, splits, 64), all = 0;

    for (int i = 0; i < n; i++)
        all += ghp_stage_shardings(&place, c->shardings, splits[i], &choices[all]);
    return all;
}

static double combinations(const struct random_case *c)
{
    struct ghp_split choices[MAX_CHOICES];
    double n = 1;

    for (int v = 0; v < c->model.n_layers; v++)
        n *= choices_of(c, v, choices);
    return n;
}

/* Every combination, in mixed radix. */
static void simulate_all(const struct random_case *c, struct ghp_sync sync, struct truth *truth)
{
    struct ghp_plan shell = {.model = c->model, .problem = c->problem, .method.sync = sync};
    struct ghp_lowering lowering = ghp_plan_lowering(&shell, &c->profile);
    struct ghp_split choices[16][MAX_CHOICES], splits[16];
    int n[16], at[16] = {0}, layers = c->model.n_layers;

    truth->n = (int)combinations(c);
    truth->step_s = calloc((size_t)truth->n, sizeof *truth->step_s);
    truth->peak = calloc((size_t)truth->n, sizeof *truth->peak);
    for (int v = 0; v < layers; v++)
        n[v] = choices_of(c, v, choices[v]);
    for (int k = 0; k < truth->n; k++) {
        struct ghp_program program;
        struct ghp_timing timing;
        int v = 0;

        for (int u = 0; u < layers; u++)
            splits[u] = choices[u][at[u]];
        truth->step_s[k] = INFINITY;
        truth->peak[k] = INT64_MAX;
        while (v < layers && ++at[v] == n[v])
            at[v++] = 0;
        if (ghp_split_check_tied(&c->model, splits) != GHP_OK) continue;
        if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
        CHECK_STATUS(ghp_simulate(&program, &c->profile, &timing), GHP_OK);
        truth->step_s[k] = timing.step_s;
        truth->peak[k] = program.peak_bytes;
        ghp_timing_release(&timing);
        ghp_program_release(&program);
    }
}

static double fastest(const struct truth *truth, int64_t limit)
{
    double best = INFINITY;

    for (int k = 0; k < truth->n; k++)
        if ((limit == 0 || truth->peak[k] <= limit) && truth->step_s[k] < best)
            best = truth->step_s[k];
    return best;
}

static int64_t smallest(const struct truth *truth)
{
    int64_t least = INT64_MAX;

    for (int k = 0; k < truth->n; k++)
        if (truth->peak[k] < least) least = truth->peak[k];
    return least;
}

/* A verified plan no longer holds once its cost, its memory or a split is edited. */
static void check_overrides(struct ghp_plan *plan, const struct ghp_profile *profile,
                            struct random_source *source)
{
    struct ghp_prediction said = plan->predicted, other;
    struct ghp_split choices[64];
    int layer = random_below(source, plan->model.n_layers);
    int n = ghp_split_choices(&plan->model.layers[layer], plan->problem, choices, 64);
    struct ghp_split kept = plan->splits[layer];
    struct ghp_lowering lowering = ghp_plan_lowering(plan, profile);

    if (!CHECK_STATUS(ghp_plan_verify(plan, profile), GHP_OK)) return;
    plan->predicted.step_s *= 0.99;
    plan->certificate.step_s *= 0.99;
    plan->certificate.bound_s *= 0.99;
    if (said.step_s > 1e-9) CHECK(ghp_plan_verify(plan, profile) != GHP_OK);
    plan->certificate.step_s /= 0.99;
    plan->certificate.bound_s /= 0.99;
    plan->predicted = said;
    plan->predicted.peak_bytes -= 64;
    CHECK(ghp_plan_verify(plan, profile) != GHP_OK);
    plan->predicted = said;
    plan->splits[layer] = choices[random_below(source, n)];
    if (ghp_split_check_tied(&plan->model, plan->splits) != GHP_OK) plan->splits[layer] = kept;
    CHECK_STATUS(ghp_plan_predict(&lowering, plan->splits, profile, &other), GHP_OK);
    if (other.peak_bytes != said.peak_bytes ||
        fabs(other.step_s - said.step_s) > 1e-6 * said.step_s)
        CHECK(ghp_plan_verify(plan, profile) != GHP_OK);
    plan->splits[layer] = kept;
}

static void check_case(uint64_t seed, const struct random_case *c, const struct truth *truth,
                       int64_t limit, struct random_source *source)
{
    struct ghp_plan_request request = {.model_path = model_path,
                                       .profile_path = "random",
                                       .profile = &c->profile,
                                       .problem = c->problem,
                                       .memory_bytes = limit,
                                       .shardings = c->shardings,
                                       .method.sync = sync_of(seed),
                                       .recompute = GHP_RECOMPUTE_MODE_NEVER,
                                       .time_limit_s = 60,
                                       .simplify = true};
    struct ghp_plan plan;
    double best = fastest(truth, limit);
    enum ghp_status status = ghp_plan_make(&request, &plan);

    if (!(best < INFINITY)) {
        char least[32];

        CHECK_STATUS(status, GHP_ERR_INFEASIBLE);
        snprintf(least, sizeof least, "--memory %" PRId64 ",", smallest(truth));
        if (!CHECK_MESSAGE(least)) fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, c->text);
        if (status == GHP_OK) ghp_plan_release(&plan);
        return;
    }
    if (!CHECK_STATUS(status, GHP_OK)) return;
    if (!CHECK_NEAR(plan.predicted.step_s, best, 1e-9 * best) || !CHECK(plan.certificate.gap <= 0))
        fprintf(stderr,
                "seed %" PRIu64 ", %d workers, batch %" PRId64 ", limit %" PRId64
                ", slow %d, shardings %x, status %s: %s\n",
                seed, c->problem.workers, c->problem.global_batch, limit, c->slow, c->shardings,
                ghp_proof_name(plan.certificate.proof), c->text);
    CHECK(limit == 0 || plan.predicted.peak_bytes <= limit);
    check_overrides(&plan, &c->profile, source);
    ghp_plan_release(&plan);
}

/* Without a limit on memory, and with limits that some plans break, or all. */
static void check_limits(uint64_t seed, const struct random_case *c)
{
    struct random_source source = {.state = seed};
    struct truth truth = {0};
    int64_t limit;

    random_case_write_model(model_path, c->text);
    simulate_all(c, sync_of(seed), &truth);
    check_case(seed, c, &truth, 0, &source);
    do
        limit = truth.peak[random_below(&source, truth.n)];
    while (limit == INT64_MAX);
    if (seed % 2 == 0) check_case(seed, c, &truth, limit, &source);
    if (seed % 16 == 1 || seed % 16 == 3)
        check_case(seed, c, &truth, smallest(&truth) - 1, &source);
    free(truth.step_s);
    free(truth.peak);
}

/* Sharded parameters, where they leave so few combinations that all can be simulated. */
static void check_sharded(uint64_t seed)
{
    struct random_source source = {.state = seed};
    struct random_case c;
    enum ghp_status status =
        seed % 4 == 0 ? random_case_tied(seed, 300, &c) : random_case_make(seed, 300, &c);

    if (!CHECK_STATUS(status, GHP_OK)) return;
    while (c.shardings == 0)
        c.shardings = random_case_shardings(&source);
    if (combinations(&c) <= 2 * most_combinations) check_limits(seed, &c);
    random_case_release(&c);
}

CHECK_TEST(exact)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0,
             last = argc > 1 ? first + 1 : (uint64_t)check_cases(CASES);
    int fd;

    snprintf(model_path, sizeof model_path, "/tmp/ghp-exact-XXXXXX");
    fd = mkstemp(model_path);
    if (!CHECK(fd >= 0)) return check_end();
    close(fd);
    for (uint64_t seed = first; seed < last; seed++) {
        struct random_case c;

        if (!CHECK_STATUS(random_case_make(seed, most_combinations, &c), GHP_OK)) break;
        check_limits(seed, &c);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; argc == 1 && seed < (uint64_t)check_cases(TIED_CASES); seed++) {
        struct random_case c;

        if (!CHECK_STATUS(random_case_tied(seed, most_combinations, &c), GHP_OK)) break;
        check_limits(seed, &c);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; argc == 1 && seed < (uint64_t)check_cases(SHARDED_CASES); seed++)
        check_sharded(20000 + seed);
    unlink(model_path);
    return check_end();
}
