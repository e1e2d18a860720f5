/* ghp-test: timeout=300
 * tests/planner/recompute/test_recompute.c - layers recomputed if the memory binds: on random instances, plans and
 * limits the set found is as fast as the best of all sets; a whole plan is not slower than with all layers kept, fits,
 * holds when it is read again, and a plan that is refused for its memory names an arena that would do. */
#include "core/cost/simulate.h"
#include "planner/make/make.h"
#include "planner/recompute/recompute.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

enum { CASES = 150, MOST_LAYERS = 16, MOST_OPTIONS = 8 };

static char model_path[64], plan_path[64];

struct truth {
    const struct random_case *c;
    struct ghp_lowering lowering;
    struct ghp_staging staging;
    struct ghp_split splits[MOST_LAYERS];
    int options[MOST_LAYERS], n; /* layers that may be recomputed */
    int sets;
    double step_s[1 << MOST_OPTIONS];
    int64_t peak_bytes[1 << MOST_OPTIONS];
};

static void judge(struct truth *t, int set)
{
    bool recomputed[MOST_LAYERS] = {false};
    struct ghp_staging staging = t->staging;
    struct ghp_lowering lowering = t->lowering;
    struct ghp_programs programs = {0};
    struct ghp_timing timings[GHP_MAX_STAGES];

    for (int i = 0; i < t->n; i++)
        recomputed[t->options[i]] = set >> i & 1;
    staging.recompute = set > 0 ? recomputed : NULL;
    lowering.staging = ghp_staging_or_none(&staging);
    t->step_s[set] = INFINITY;
    t->peak_bytes[set] = INT64_MAX;
    if (!CHECK_STATUS(ghp_lower_all(&lowering, t->splits, &programs), GHP_OK)) return;
    t->peak_bytes[set] = ghp_programs_peak_bytes(&programs);
    if (CHECK_STATUS(ghp_simulate_all(&programs, &t->c->profile, timings), GHP_OK))
        t->step_s[set] = timings[0].step_s;
    for (int k = 0; k < programs.n; k++)
        ghp_timing_release(&timings[k]);
    ghp_programs_release(&programs);
}

static void judge_all(struct truth *t)
{
    const struct ghp_model *model = t->lowering.model;

    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *l = &model->layers[v];

        if (l->op != GHP_OP_INPUT && l->op != GHP_OP_BATCH_NORM && l->op != GHP_OP_SOFTMAX_CE &&
            !ghp_op_in_place(l))
            t->options[t->n++] = v;
    }
    if (t->n > MOST_OPTIONS) return;
    t->sets = 1 << t->n;
    for (int set = 0; set < t->sets; set++)
        judge(t, set);
}

static double least_within(const struct truth *t, int64_t limit)
{
    double least_s = INFINITY;

    for (int set = 0; set < t->sets; set++)
        if (t->peak_bytes[set] <= limit) least_s = fmin(least_s, t->step_s[set]);
    return least_s;
}

/* Returns whether layers are recomputed in the best set that fits. */
static bool check_limit(const struct truth *t, int64_t limit)
{
    const struct ghp_partition_job job = {.lowering = &t->lowering,
                                          .profile = &t->c->profile,
                                          .limit_bytes = limit,
                                          .deadline_s = INFINITY,
                                          .best_s = INFINITY};
    double least_s = least_within(t, limit);
    struct ghp_recompute found;
    bool any = false;

    if (CHECK_STATUS(
            ghp_recompute_compute(&job, &t->staging, t->splits, GHP_RECOMPUTE_FIRST, &found),
            GHP_OK)) {
        CHECK(!found.found || found.step_s >= least_s * (1 - 1e-9));
        ghp_recompute_release(&found);
    }
    if (!CHECK_STATUS(
            ghp_recompute_compute(&job, &t->staging, t->splits, GHP_RECOMPUTE_ALL, &found), GHP_OK))
        return false;
    CHECK(found.proven);
    CHECK(found.found == isfinite(least_s));
    if (found.found) {
        CHECK_NEAR(found.step_s, least_s, 1e-9 * least_s);
        CHECK(found.peak_bytes <= limit);
        for (int v = 0; v < t->lowering.model->n_layers; v++)
            any = any || found.recompute[v];
    }
    ghp_recompute_release(&found);
    return any;
}

/* ---- whole plans ---- */

static enum ghp_status make(const struct random_case *c, int64_t limit, bool keep,
                            struct ghp_plan *plan)
{
    const struct ghp_plan_request request = {.model_path = model_path,
                                             .profile_path = "none",
                                             .profile = &c->profile,
                                             .problem = c->problem,
                                             .memory_bytes = limit,
                                             .time_limit_s = 60,
                                             .recompute = keep ? GHP_RECOMPUTE_MODE_NEVER
                                                               : GHP_RECOMPUTE_MODE_AUTO};

    return ghp_plan_make(&request, plan);
}

/* Returns whether the plan has layers recomputed. */
static bool check_plan(const struct truth *t, int64_t limit)
{
    struct ghp_plan plan, kept, again;
    double kept_s = INFINITY;
    bool recomputed;

    if (make(t->c, limit, true, &kept) == GHP_OK) {
        kept_s = kept.predicted.step_s;
        ghp_plan_release(&kept);
    }
    if (!CHECK_STATUS(make(t->c, limit, false, &plan), GHP_OK)) return false;
    CHECK(plan.predicted.step_s <= kept_s * (1 + 1e-9));
    CHECK(plan.predicted.step_s <=
          least_within(t, limit) * (1 + 1e-9)); /* t is a data-parallel plan */
    CHECK(plan.predicted.peak_bytes <= limit);
    CHECK_STATUS(ghp_plan_verify(&plan, &t->c->profile), GHP_OK);
    CHECK_STATUS(ghp_plan_save(plan_path, &plan), GHP_OK);
    if (CHECK_STATUS(ghp_plan_load(plan_path, &again), GHP_OK)) {
        CHECK_STATUS(ghp_plan_verify(&again, &t->c->profile), GHP_OK);
        ghp_plan_release(&again);
    }
    recomputed = plan.recompute != NULL;
    ghp_plan_release(&plan);
    return recomputed;
}

static void open_path(char *path, size_t n)
{
    int fd;

    snprintf(path, n, "/tmp/ghp-remake-XXXXXX");
    fd = mkstemp(path);
    if (CHECK(fd >= 0)) close(fd);
}

struct tally {
    int cases, recomputed, plans;
};

static void try_case(uint64_t seed, const struct random_case *c, struct tally *tally)
{
    struct truth t = {.c = c,
                      .lowering = {.model = &c->model,
                                   .problem = c->problem,
                                   .element_bytes = c->profile.element_bytes}};
    int64_t least = INT64_MAX;

    if (c->model.n_layers > MOST_LAYERS) return;
    for (int v = 0; v < c->model.n_layers; v++)
        t.splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    t.staging.micro_batches = seed % 3 == 0 ? 2 : 1;
    if (c->problem.global_batch % (t.staging.micro_batches * c->problem.workers) != 0 ||
        ghp_staging_check(&t.staging, &c->model, c->problem) != GHP_OK)
        t.staging.micro_batches = 1;
    judge_all(&t);
    if (t.sets < 2) return;
    tally->cases++;
    for (int set = 0; set < t.sets; set++)
        if (t.peak_bytes[set] < least) least = t.peak_bytes[set];
    for (int i = 0; i < 4; i++) /* from the least arena to that with all layers kept */
        tally->recomputed += check_limit(&t, least + (t.peak_bytes[0] - least) * i / 3);
    check_limit(&t, least - 1);
    if (t.staging.micro_batches > 1) return;
    random_case_write_model(model_path, c->text);
    tally->plans += check_plan(&t, least + (t.peak_bytes[0] - least) / 2);
}

CHECK_TEST(recompute)
{
    struct tally tally = {0};

    open_path(model_path, sizeof model_path);
    open_path(plan_path, sizeof plan_path);
    for (uint64_t seed = 0; tally.cases < check_cases(CASES); seed++) {
        struct random_case c;

        if (!CHECK_STATUS(random_case_make(seed, 400, &c), GHP_OK)) break;
        try_case(seed, &c, &tally);
        random_case_release(&c);
    }
    printf("%d instances; layers are recomputed in %d of %d best sets, and in %d plans\n",
           tally.cases, tally.recomputed, 4 * tally.cases, tally.plans);
    CHECK(tally.recomputed > 0 && tally.plans > 0);
    unlink(model_path);
    unlink(plan_path);
    return check_end();
}
