/* ghp-test: timeout=240
 *
 * What is costed is what runs: the program that a plan's costs are of, lowered by its profile, has the hash of the one
 * that a worker opens on a backend, for its own scratch and kernels. The example plans; and plans drawn by chance:
 * splits, stages, micro-batches, recomputed layers, bucket sizes, precisions, with fused kernels and without. */
#include "core/base/hash.h"
#include "core/plan/plan.h"
#include "executor/engine/worker.h"
#include "tests/check.h"
#include "tests/executor/cases.h"

#include <stdlib.h>

static const char *const networks[] = {GHP_SOURCE_DIR "/models/lenet5.json",
                                       GHP_SOURCE_DIR "/models/small-resnet.json",
                                       GHP_SOURCE_DIR "/tests/executor/blocks.json"};
static unsigned state = 20261u;
static int fused, staged, recomputed; /* plans that have it */

static int draw(int below)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)below);
}

/* What a worker of that rank opens; nobody is talked to before it connects. */
static uint64_t hash_opened(const struct ghp_plan *plan, struct ghp_exec_context exec, int rank,
                            uint64_t seed)
{
    struct ghp_transport nobody = {0};
    struct ghp_worker *worker = NULL;
    const struct ghp_work work = {.model = &plan->model,
                                  .splits = plan->splits,
                                  .problem = plan->problem,
                                  .rank = rank,
                                  .element_bytes = plan->profile.element_bytes,
                                  .bucket_bytes = plan->bucket_bytes,
                                  .groups = plan->groups,
                                  .threads = 1,
                                  .prefetch = plan->profile.prefetch,
                                  .staging = ghp_staging_or_none(&plan->staging)};
    uint64_t hash;

    exec.transport = &nobody;
    if (!CHECK_STATUS(ghp_worker_open(&exec, &work, &worker), GHP_OK)) return 0;
    hash = ghp_program_hash(ghp_worker_program(worker), seed);
    for (int i = 0; i < ghp_worker_program(worker)->n_instrs; i++)
        fused += ghp_worker_program(worker)->instrs[i].fusion.by >= 0;
    ghp_worker_close(worker);
    return hash;
}

/* Numbers that the plan is costed by: an analytic model, whose scratch (none) is not the backend's. */
static void check_plan(const struct ghp_plan *plan, const struct ghp_backend_ops *ops, bool exact)
{
    const struct ghp_backend_config config = {
        .element_bytes = plan->profile.element_bytes, .threads = 1, .exact = exact};
    const struct ghp_lowering how = ghp_plan_lowering(plan, &plan->profile);
    struct ghp_exec_context exec = {.backend_ops = ops};
    struct ghp_programs costed;
    uint64_t opened = GHP_HASH_SEED;

    if (!CHECK_STATUS(ghp_lower_all(&how, plan->splits, &costed), GHP_OK) ||
        !CHECK_STATUS(ops->open(&config, &exec.backend), GHP_OK))
        exit(1);
    for (int k = 0; k < costed.n; k++)
        opened = hash_opened(plan, exec, costed.of[k].rank, opened);
    CHECK(opened == ghp_programs_hash(&costed));
    if (plan->predicted.program_hash != 0) CHECK(opened == plan->predicted.program_hash);
    ops->close(exec.backend);
    ghp_programs_release(&costed);
}

static void check_example(const char *name)
{
    char path[512];
    struct ghp_plan plan;

    snprintf(path, sizeof path, GHP_SOURCE_DIR "/plans/vgg16-16-%s.plan.json", name);
    if (!CHECK_STATUS(ghp_plan_load(path, &plan), GHP_OK)) exit(1);
    CHECK(plan.predicted.program_hash != 0);
    check_plan(&plan, &ghp_backend_onednn, false);
    ghp_plan_release(&plan);
}

/* Two stages in each group, cut anywhere, or one; a few micro-batches; layers to recompute. */
static void draw_staging(struct ghp_plan *plan)
{
    const struct ghp_model *model = &plan->model;
    struct ghp_staging *s = &plan->staging;
    int cut;

    *s = (struct ghp_staging){.micro_batches = 1 + draw(3), .pipeline = (enum ghp_pipeline)draw(2)};
    do
        cut = 1 + draw(model->n_layers - 1);
    while (!ghp_stage_may_start(model, cut));
    if (draw(2) == 0) {
        s->n = 2;
        s->stage[0].workers = 1 + draw(plan->group_size - 1);
        s->stage[1].workers = plan->group_size - s->stage[0].workers;
        s->stage[1].first_layer = cut;
    }
    for (int v = 0; v < model->n_layers; v++)
        plan->recompute[v] = draw(3) == 0 && ghp_stage_may_recompute(&model->layers[v]);
    s->recompute = draw(2) == 0 ? plan->recompute : NULL;
}

/* Of each layer, one of those that its stage takes; false: a layer takes none (ghost batches do not come out). */
static bool draw_splits(struct ghp_plan *plan)
{
    const struct ghp_staging *s = &plan->staging;
    struct ghp_split choices[GHP_MAX_CHOICES];

    for (int v = 0; v < plan->model.n_layers; v++) {
        int stage = ghp_stage_of(s, v), taken = 0;
        int rank = ghp_stage_representative(s, stage, plan->problem);
        struct ghp_placement placement =
            ghp_placement_of(s, plan->model.n_layers, plan->problem, rank);
        int n =
            ghp_split_choices(&plan->model.layers[v], placement.problem, choices, GHP_MAX_CHOICES);

        for (int i = 0; i < n; i++)
            if (ghp_stage_takes_tp_size(s, stage, plan->problem, choices[i].tp_size))
                choices[taken++] = choices[i];
        if (taken == 0) return false;
        plan->splits[v] = choices[draw(2) == 0 ? 0 : draw(taken)];
    }
    return true;
}

/* Draws until a plan is sound. */
static void check_drawn(void)
{
    static const int precisions[] = {4, 4, 2, 8};
    static const int64_t buckets[] = {0, 20000, 1 << 20};
    int element_bytes = precisions[draw(4)], workers = 2 + 2 * draw(3);
    struct ghp_plan plan = {.problem = {workers, 12 * workers}, .group_size = workers, .groups = 1};

    case_model(networks[draw(3)], &plan.model);
    plan.splits = ghp_alloc((size_t)plan.model.n_layers, sizeof *plan.splits);
    plan.recompute = ghp_alloc((size_t)plan.model.n_layers, sizeof *plan.recompute);
    plan.bucket_bytes = buckets[draw(3)];
    CHECK_STATUS(ghp_profile_init(&plan.profile, "analytic", "fast", element_bytes), GHP_OK);
    plan.profile.analytic.flops_per_s = 1e11;
    plan.profile.prefetch = draw(2) == 0;
    CHECK_STATUS(ghp_profile_finalize(&plan.profile), GHP_OK);
    do
        draw_staging(&plan);
    while (ghp_staging_check(&plan.staging, &plan.model, plan.problem) != GHP_OK ||
           !draw_splits(&plan));
    staged += plan.staging.n > 1;
    recomputed += plan.staging.recompute != NULL;
    check_plan(&plan, element_bytes == 8 ? &ghp_backend_reference : &ghp_backend_onednn,
               draw(2) == 0);
    ghp_plan_release(&plan);
}

CHECK_TEST(program_hash)
{
    static const char *const examples[] = {"data", "ghp", "model", "owt"};
    int n = check_cases(200);

    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check_example(examples[i]);
    fused = 0;
    for (int i = 0; i < n; i++)
        check_drawn();
    CHECK(fused > n && staged > n / 5 && recomputed > n / 5);
    return check_end();
}
