/* ghp-test: timeout=300
 * tests/planner/pipeline/test_partition.c - the best of all stages, micro-batches and splits: on random instances every
 * staging that core/sharding/stage.h takes, with every combination of splits, is lowered and simulated, and nothing is
 * faster than the plan, with and without a limit on memory, where operations take longer in company, and where
 * parameters may be sharded; every partition's programs end. The plan by rules is never faster, and what it loses is
 * printed. Descriptions of stages are read, or refused. */
#include "core/plan/profile_scale.h"
#include "core/cost/simulate.h"
#include "core/plan/space.h"
#include "planner/pipeline/partition.h"
#include "core/plan/staging_text.h"
#include "planner/pipeline/heuristic.h"
#include "planner/make/make.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <unistd.h>

enum { CASES = 100, MOST_STAGES = 3, MOST_MICRO_BATCHES = 4, MOST_LAYERS = 16, MOST_SPLITS = 64 };

static const double most_plans = 6000;
static const double most_combinations = 400; /* of splits, without stages */
static char model_path[64];

/* ---- every plan ---- */

struct every {
    const struct random_case *c;
    struct ghp_lowering lowering;
    int64_t limit_bytes; /* 0: none */
    bool counts;         /* only the number of plans */
    double n;
    double best_s;
    int64_t least_bytes, some_bytes; /* of all plans; of one of them */
    bool stages_win;                 /* the best has stages or micro-batches */
};

static void note_plan(struct every *e, const struct ghp_split *splits)
{
    struct ghp_programs programs = {0};
    struct ghp_timing timings[GHP_MAX_STAGES];
    int64_t peak;

    if (!CHECK_STATUS(ghp_lower_all(&e->lowering, splits, &programs), GHP_OK)) return;
    if (CHECK_STATUS(ghp_simulate_all(&programs, &e->c->profile, timings), GHP_OK)) {
        peak = ghp_programs_peak_bytes(&programs);
        if (peak < e->least_bytes) e->least_bytes = peak;
        if ((int)e->n % 7 == 3) e->some_bytes = peak;
        if ((e->limit_bytes == 0 || peak <= e->limit_bytes) && timings[0].step_s < e->best_s) {
            e->best_s = timings[0].step_s;
            e->stages_win = e->lowering.staging != NULL;
        }
        for (int i = 0; i < programs.n; i++)
            ghp_timing_release(&timings[i]);
    }
    ghp_programs_release(&programs);
}

/* All combinations of splits of one staging, in mixed radix. */
static void every_split(struct every *e, const struct ghp_staging *s)
{
    struct ghp_split choices[MOST_LAYERS][MOST_SPLITS * GHP_SHARDING_COUNT], splits[MOST_LAYERS],
        offered[MOST_SPLITS];
    int n[MOST_LAYERS], at[MOST_LAYERS] = {0}, layers = e->c->model.n_layers, v = 0;
    double product = 1;

    for (int l = 0; l < layers; l++) {
        int stage = ghp_stage_of(s, l), all;
        struct ghp_placement placement = ghp_placement_of(
            s, layers, e->c->problem, ghp_stage_representative(s, stage, e->c->problem));

        all = ghp_split_choices(&e->c->model.layers[l], placement.problem, offered, MOST_SPLITS);
        n[l] = 0;
        for (int i = 0; i < all; i++)
            if (ghp_stage_takes_tp_size(s, stage, e->c->problem, offered[i].tp_size))
                n[l] += ghp_stage_shardings(&(struct ghp_sharding_place){&e->c->model,
                                                                         ghp_staging_or_none(s), l,
                                                                         placement.problem},
                                            e->c->shardings, offered[i], &choices[l][n[l]]);
        product *= n[l];
    }
    if (e->counts || !(product > 0)) {
        e->n += product;
        return;
    }
    e->lowering.staging = ghp_staging_or_none(s);
    while (v < layers) {
        for (int l = 0; l < layers; l++)
            splits[l] = choices[l][at[l]];
        note_plan(e, splits);
        e->n++;
        for (v = 0; v < layers && ++at[v] == n[v]; v++)
            at[v] = 0;
    }
}

/* All schedules, where the rest can be. */
static void every_pipeline(struct every *e, struct ghp_staging *s)
{
    for (int p = 0; p < (s->n > 1 ? GHP_PIPELINE_INTERLEAVED : 1); p++) {
        s->pipeline = (enum ghp_pipeline)p;
        if (ghp_staging_check(s, &e->c->model, e->c->problem) == GHP_OK) every_split(e, s);
    }
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Stage `i` and those after it, for `left` workers of a group: every cut, every worker count, and a smaller block_size
 * only if equal shares do not come out (the planner's space). */
static void every_stage(struct every *e, struct ghp_staging *s, int i, int left)
{
    int64_t samples = e->c->problem.global_batch / s->micro_batches /
                      (e->c->problem.workers / (left + (i > 0 ? ghp_staging_group(s, 0) : 0)));

    if (i > 0 && left == 0) every_pipeline(e, s);
    if (i == MOST_STAGES || left == 0) return;
    for (int l = i == 0 ? 0 : s->stage[i - 1].first_layer + 1; l < e->c->model.n_layers; l++) {
        if (i == 0 && l > 0) break;
        for (int k = 1; k <= left; k++) {
            if (i == 0 && k == left) continue; /* one stage: not here */
            for (int d = 1; d <= k; d++) {
                if (d != common_divisor(k, samples)) continue;
                s->n = i + 1;
                s->stage[i] = (struct ghp_stage){
                    .first_layer = l, .workers = k, .block_size = d == k ? 0 : d};
                every_stage(e, s, i + 1, left - k);
                s->n = i;
            }
        }
    }
}

static void every_plan(struct every *e)
{
    int workers = e->c->problem.workers;

    for (int u = 1; u <= MOST_MICRO_BATCHES; u *= 2) {
        struct ghp_staging s = {.n = 0, .micro_batches = u};

        every_pipeline(e, &s);
        for (int g = 1; g <= workers; g++)
            if (workers % g == 0 && e->c->problem.global_batch % ((int64_t)u * g) == 0)
                every_stage(e, &s, 0, workers / g);
    }
}

static struct every every_of(const struct random_case *c, int64_t limit_bytes, bool counts)
{
    struct ghp_plan shell = {.model = c->model, .problem = c->problem};
    struct every e = {.c = c,
                      .lowering = ghp_plan_lowering(&shell, &c->profile),
                      .limit_bytes = limit_bytes,
                      .counts = counts,
                      .best_s = INFINITY,
                      .least_bytes = INT64_MAX};

    e.lowering.model = &c->model;
    every_plan(&e);
    return e;
}

/* ---- the planner's plan of it ---- */

static struct ghp_plan_request request_of(const struct random_case *c, int64_t limit_bytes)
{
    return (struct ghp_plan_request){
        .model_path = model_path,
        .profile_path = "random",
        .profile = &c->profile,
        .problem = c->problem,
        .memory_bytes = limit_bytes,
        .shardings = c->shardings,
        .recompute = GHP_RECOMPUTE_MODE_NEVER,
        .time_limit_s = 120,
        .pipeline_mode = GHP_PIPELINE_MODE_AUTO,
        .decision_only = true,
        .space = {.max_stages = MOST_STAGES, .max_micro_batches = MOST_MICRO_BATCHES}};
}

/* Returns the least loss of the rules' plan, -1: it has none, or is kept whole where the plan must not be. */
static double loss_of_rules(const struct ghp_plan *plan, unsigned shardings, double best_s)
{
    if (shardings != 0 && (shardings & 1u << GHP_SHARDING_NONE) == 0) return -1;
    for (int b = 0; b < plan->n_baselines; b++)
        if (plan->baselines[b].strategy == GHP_STRATEGY_HEURISTIC && plan->baselines[b].feasible) {
            CHECK(plan->baselines[b].predicted.step_s >= best_s * (1 - 1e-9));
            return plan->baselines[b].predicted.step_s / best_s - 1;
        }
    return -1;
}

static double check_case(uint64_t seed, const struct random_case *c, const struct every *truth)
{
    struct ghp_plan_request request = request_of(c, truth->limit_bytes);
    struct ghp_plan plan;
    enum ghp_status status = ghp_plan_make(&request, &plan);
    double loss;

    if (!(truth->best_s < INFINITY)) {
        char least[48];

        CHECK_STATUS(status, GHP_ERR_INFEASIBLE);
        snprintf(least, sizeof least, "--memory %" PRId64 ",", truth->least_bytes);
        if (!CHECK_MESSAGE(least)) fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, c->text);
        if (status == GHP_OK) ghp_plan_release(&plan);
        return -1;
    }
    if (!CHECK_STATUS(status, GHP_OK)) return -1;
    if (!CHECK_NEAR(plan.predicted.step_s, truth->best_s, 1e-9 * truth->best_s) ||
        !CHECK(plan.certificate.gap <= 0))
        fprintf(stderr,
                "seed %" PRIu64 ", %d workers, batch %" PRId64 ", limit %" PRId64
                ", slow %d, shardings %x, status %s, stages win %d: %s\n",
                seed, c->problem.workers, c->problem.global_batch, truth->limit_bytes, c->slow,
                c->shardings, ghp_proof_name(plan.certificate.proof), truth->stages_win, c->text);
    CHECK(truth->limit_bytes == 0 || plan.predicted.peak_bytes <= truth->limit_bytes);
    CHECK_STATUS(ghp_plan_verify(&plan, &c->profile), GHP_OK);
    loss = loss_of_rules(&plan, c->shardings, truth->best_s);
    ghp_plan_release(&plan);
    return loss;
}

struct tally {
    int cases, won, limited, lost;
    double plans, loss_sum, loss_most;
};

static void try_case(uint64_t seed, const struct random_case *c, struct tally *tally)
{
    struct every truth = every_of(c, 0, false);
    double loss;

    random_case_write_model(model_path, c->text);
    loss = check_case(seed, c, &truth);
    tally->plans += truth.n;
    tally->won += truth.stages_win;
    if (loss >= 0) {
        tally->lost++;
        tally->loss_sum += loss;
        tally->loss_most = fmax(tally->loss_most, loss);
    }
    if (seed % 3 == 0) {
        int64_t limit = seed % 2 == 0 ? truth.least_bytes - 1 : truth.some_bytes;

        truth = every_of(c, limit, false);
        check_case(seed, c, &truth);
        tally->limited++;
    }
}

/* ---- descriptions ---- */

static void check_parse(void)
{
    struct ghp_model model = {0};
    struct ghp_staging s = {0};
    char text[128];

    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &model), GHP_OK)) return;
    CHECK_STATUS(ghp_staging_parse("3,fc1:1", &model, &s), GHP_OK);
    CHECK_EQ(s.n, 2);
    CHECK_EQ(s.stage[0].workers, 3);
    CHECK_EQ(s.stage[1].workers, 1);
    CHECK_TEXT(model.layers[s.stage[1].first_layer].name, "fc1");
    s.micro_batches = 4;
    CHECK_TEXT(ghp_staging_format(&s, &model, text, sizeof text),
               "3 + 1 from fc1, 4 micro-batches (1f1b)");
    CHECK_STATUS(ghp_staging_parse("", &model, &s), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_staging_parse("4", &model, &s), GHP_ERR_USAGE);
    CHECK_MESSAGE("one stage of 4 worker");
    CHECK_STATUS(ghp_staging_parse("fc1:1,3", &model, &s), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_staging_parse("3,fc77:1", &model, &s), GHP_ERR_USAGE);
    CHECK_MESSAGE("fc77");
    CHECK_STATUS(ghp_staging_parse("3,fc1:0", &model, &s), GHP_ERR_USAGE);
    ghp_model_release(&model);
}

/* Entries of their own for operations: what the analytic model says times a factor, a part of it due to company,
 * which may cost less than others; both the same for all numbers of samples, since the planner takes it that more
 * samples never take less. */
struct furnishing {
    uint64_t seed;
    const struct ghp_profile *analytic;
    struct ghp_profile *profile;
};

static struct random_source source_of(const struct furnishing *f,
                                      const struct ghp_space_local *item)
{
    struct ghp_local family = item->local;
    struct random_source source = {f->seed + (uint64_t)item->pass};
    char key[GHP_KEY_BYTES];

    family.n = 0;
    ghp_local_key(&family, key);
    for (const char *at = key; *at != '\0'; at++)
        source.state = (source.state ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return source;
}

static enum ghp_status furnish_one(void *context, const struct ghp_space_local *item)
{
    struct furnishing *f = context;
    struct random_source source = source_of(f, item);
    struct ghp_op_entry entry = {.pass = item->pass};
    struct ghp_cost cost;
    char key[GHP_KEY_BYTES];

    GHP_TRY(ghp_profile_op(f->analytic, &item->local, item->pass, &cost));
    ghp_local_key(&item->local, key);
    entry.key = key;
    entry.seconds = cost.seconds * random_between(&source, 0.5, 2);
    entry.contention = 0.8 - random_between(&source, 0.05, 1.3);
    return ghp_profile_add_op(f->profile, &entry);
}

/* Operations whose seconds depend on who else runs them: with stages they take less. */
static void furnish(uint64_t seed, struct random_case *c)
{
    struct ghp_profile analytic;
    struct furnishing f = {.seed = seed, .analytic = &analytic, .profile = &c->profile};

    if (!CHECK_STATUS(ghp_profile_copy(&c->profile, &analytic), GHP_OK)) return;
    CHECK_STATUS(ghp_profile_finalize(&analytic), GHP_OK);
    CHECK_STATUS(ghp_space_locals(&c->model, c->problem, furnish_one, &f), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&c->profile), GHP_OK);
    ghp_profile_release(&analytic);
}

/* `always`: even if there are too many plans for a quick test, or nothing to share out. */
static void try_seed(uint64_t seed, bool always, struct tally *tally)
{
    struct random_case c;
    double n;

    if (!CHECK_STATUS(random_case_make(seed, most_combinations, &c), GHP_OK)) return;
    if (seed % 4 == 1) c.shardings = random_case_shardings(&(struct random_source){.state = seed});
    n = every_of(&c, 0, true).n;
    if (always || (n <= most_plans && c.problem.workers > 1)) {
        tally->cases++;
        if (seed % 3 == 0) furnish(seed, &c);
        try_case(seed, &c, tally);
    }
    random_case_release(&c);
}

CHECK_TEST(partition)
{
    /* the first bound counted labels in the stage that loads the input */
    static const uint64_t former = 100182;
    struct tally tally = {0};
    int fd;

    check_parse();
    snprintf(model_path, sizeof model_path, "/tmp/ghp-allocate-XXXXXX");
    fd = mkstemp(model_path);
    if (!CHECK(fd >= 0)) return check_end();
    close(fd);
    if (argc > 1) {
        try_seed(strtoull(argv[1], NULL, 10), true, &tally);
    } else {
        try_seed(former, true, &tally);
        for (uint64_t seed = 0; tally.cases <= check_cases(CASES); seed++)
            try_seed(seed, false, &tally);
    }
    printf("%d instances, %.0f plans; stages or micro-batches are best in %d; %d with a limit\n",
           tally.cases, tally.plans, tally.won, tally.limited);
    printf("rules: loss %.2f %% in the mean of %d, %.2f %% at most\n",
           tally.lost > 0 ? 100 * tally.loss_sum / tally.lost : 0, tally.lost,
           100 * tally.loss_most);
    CHECK(argc > 1 || (tally.won > 0 && tally.won < tally.cases));
    unlink(model_path);
    return check_end();
}
