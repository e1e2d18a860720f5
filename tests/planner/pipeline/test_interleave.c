/* ghp-test: timeout=120
 * tests/planner/pipeline/test_interleave.c - virtual stages by trial: of a chain of equal layers on two workers every
 * cut into as many parts is lowered and simulated, and none is faster by more than what one layer out of place costs.
 * Limits are kept, and a plan made with them says that they were found by trial and verifies. */
#include "planner/pipeline/interleave.h"

#include "core/base/clock.h"
#include "core/plan/plan.h"
#include "planner/make/make.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { LAYERS = 9, WORKERS = 2, BATCH = 32, MICRO_BATCHES = 8, MOST_CHUNKS = 4 };

static char model_path[64];

/* A product of 64 by 64 each. */
static bool write_chain(int layers, struct ghp_model *model)
{
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "{\"format\": \"ghp.model/1\", \"name\": \"chain\", \"input\": {\"channels\": "
                     "64}, \"layers\": [");

    for (int v = 0; v < layers; v++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "{\"name\": \"f%d\", \"op\": \"linear\", \"features\": 64, \"bias\": "
                      "false},",
                      v);
    snprintf(text + n, sizeof text - (size_t)n,
             "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}");
    random_case_write_model(model_path, text);
    return CHECK_STATUS(ghp_model_parse(text, "chain", model), GHP_OK);
}

struct every {
    const struct ghp_partition_job *job;
    const struct ghp_split *data;
    double best_s;
    int tried;
};

static void note(struct every *e, const struct ghp_staging *s)
{
    struct ghp_lowering lowering = *e->job->lowering;
    struct ghp_prediction p;

    if (ghp_staging_check(s, lowering.model, lowering.problem) != GHP_OK) return;
    lowering.staging = s;
    if (!CHECK_STATUS(ghp_plan_predict(&lowering, e->data, e->job->profile, &p), GHP_OK)) return;
    e->best_s = fmin(e->best_s, p.step_s);
    e->tried++;
}

/* Part `c` and those after it begin anywhere after `last`. */
static void every_cut(struct every *e, struct ghp_staging *s, int c, int last)
{
    int n_layers = e->job->lowering->model->n_layers;

    if (c == s->n * s->chunks) {
        note(e, s);
        return;
    }
    for (int v = last + 1; v < n_layers; v++) {
        if (c < s->n)
            s->stage[c].first_layer = v;
        else
            s->later_chunk[c - s->n] = v;
        every_cut(e, s, c + 1, v);
    }
}

static double brute_force(const struct ghp_partition_job *job, const struct ghp_split *data)
{
    struct every e = {.job = job, .data = data, .best_s = INFINITY};

    for (int u = 2; u <= MICRO_BATCHES; u *= 2)
        for (int chunks = 2; chunks <= MOST_CHUNKS; chunks++) {
            struct ghp_staging s = {.n = 2,
                                    .stage = {{.workers = 1}, {.workers = 1}},
                                    .chunks = chunks,
                                    .micro_batches = u,
                                    .pipeline = GHP_PIPELINE_INTERLEAVED};

            every_cut(&e, &s, 1, 0);
        }
    CHECK(e.tried > 1000);
    return e.best_s;
}

static void check_limits(struct ghp_partition_job job, const struct ghp_partition *best)
{
    struct ghp_partition found;

    job.best_s = best->step_s;
    if (CHECK_STATUS(ghp_interleave_compute(&job, &found), GHP_OK)) CHECK(!found.found);
    ghp_partition_release(&found);
    job.best_s = INFINITY;
    job.limit_bytes = best->peak_bytes - 1;
    if (CHECK_STATUS(ghp_interleave_compute(&job, &found), GHP_OK) && found.found)
        CHECK(found.peak_bytes <= job.limit_bytes && found.step_s >= best->step_s);
    ghp_partition_release(&found);
}

static void check_chain(const struct ghp_model *model, const struct ghp_profile *profile)
{
    struct ghp_problem problem = {WORKERS, BATCH};
    struct ghp_lowering lowering = ghp_lowering_of(model, problem, profile);
    struct ghp_partition_job job = {.lowering = &lowering,
                                    .profile = profile,
                                    .space = {.max_stages = 2, .max_micro_batches = MICRO_BATCHES},
                                    .deadline_s = ghp_now_s() + 60,
                                    .best_s = INFINITY};
    struct ghp_split data[LAYERS + 2];
    struct ghp_partition found;
    double best_s;

    for (int v = 0; v < model->n_layers; v++)
        data[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    if (!CHECK_STATUS(ghp_interleave_compute(&job, &found), GHP_OK) || !CHECK(found.found)) return;
    best_s = brute_force(&job, data);
    fprintf(stderr, "%d micro-batches of %d chunks a stage: %.3f us, the best of all %.3f us\n",
            found.staging.micro_batches, found.staging.chunks, 1e6 * found.step_s, 1e6 * best_s);
    CHECK(found.step_s >= best_s * (1 - 1e-12));
    CHECK(found.step_s <= best_s * (1 + 1.0 / LAYERS));
    check_limits(job, &found);
    ghp_partition_release(&found);
}

/* With two micro-batches a pipeline is long in filling, which virtual stages shorten. */
static void check_plan(const struct ghp_profile *profile)
{
    struct ghp_plan_request request = {.model_path = model_path,
                                       .profile_path = "analytic",
                                       .profile = profile,
                                       .problem = {4, BATCH},
                                       .space = {.max_stages = 2, .max_micro_batches = 2},
                                       .pipeline_mode = GHP_PIPELINE_MODE_AUTO,
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .time_limit_s = 60};
    struct ghp_plan plan;

    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    CHECK_EQ(plan.certificate.trial, GHP_TRIAL_INTERLEAVED);
    CHECK(plan.staging.chunks >= 2);
    CHECK(plan.predicted.step_s < plan.certificate.step_s);
    CHECK_EQ(plan.certificate.proof, GHP_PROOF_OPTIMAL);
    CHECK_STATUS(ghp_plan_verify(&plan, profile), GHP_OK);
    ghp_plan_release(&plan);
}

CHECK_TEST(interleave)
{
    struct ghp_profile profile;
    struct ghp_model model;
    int fd;

    snprintf(model_path, sizeof model_path, "/tmp/ghp-interleave-XXXXXX");
    fd = mkstemp(model_path);
    if (!CHECK(fd >= 0)) return check_end();
    close(fd);
    /* links are so slow that weights' reductions take longer than the computation */
    if (!CHECK_STATUS(analytic_profile(1e10, 5e8, 1e-7, &profile), GHP_OK)) return check_end();
    if (write_chain(LAYERS, &model)) check_chain(&model, &profile);
    ghp_model_release(&model);
    if (write_chain(16, &model)) check_plan(&profile);
    ghp_model_release(&model);
    ghp_profile_release(&profile);
    unlink(model_path);
    return check_end();
}
