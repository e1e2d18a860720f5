/* ghp-test: np=3 np_full=1 timeout=60
 *
 * Importance sampling by workers: the norm of a worker's own gradient is that of one worker alone on the same sample,
 * to 1e-12, whatever the weight, with an all-reduce and a sharded update; gradients summed over workers are the
 * weighted mean. First each worker takes each of its samples once, no two workers the same; then those with long
 * gradients more often, and the weights make up for it. */
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <math.h>

static struct ghp_transport *transport;
static int workers, rank;

static double norm_of(const struct ghp_snapshot *s)
{
    double sum = 0;

    for (int j = 0; j < s->list.n_trained; j++)
        for (int64_t e = 0; e < s->list.items[j].param->elements; e++)
            sum += s->gradients[j][e] * s->gradients[j][e];
    return sqrt(sum);
}

/* The gradients of one sample, by a worker alone. */
static void gradients_alone(struct bench *b, const struct ghp_split *data, int64_t sample,
                            struct ghp_snapshot *of)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_worker *alone;
    struct ghp_step step = ghp_training_config_step(&b->training_config, 0);

    rank_plan.splits = data;
    rank_plan.lowering.problem = (struct ghp_problem){1, 1};
    rank_plan.rank = 0;
    rank_plan.lowering.method.optimizer = b->training_config.optimizer;
    if (!CHECK_STATUS(bench_open_worker(b, &rank_plan, &alone), GHP_OK)) return;
    step.samples = &sample;
    step.valid = 1;
    CHECK_STATUS(ghp_worker_step(alone, &step), GHP_OK);
    CHECK_STATUS(ghp_worker_settle(alone), GHP_OK);
    CHECK_STATUS(ghp_snapshot_gradients(of, alone), GHP_OK);
    ghp_worker_close(alone);
}

/* Worker i's weight is 1 + i. */
static void check_step(struct bench *b, const struct ghp_split *data, struct ghp_sync sync)
{
    struct ghp_worker *worker = NULL;
    struct ghp_step step = ghp_training_config_step(&b->training_config, 0);
    struct ghp_snapshot own = {0}, all = {0}, mean = {0};
    double off = 0;

    b->rank_plan.lowering.method.sync = sync;
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &own), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &all), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &mean), GHP_OK);
    if (CHECK_STATUS(bench_worker(b, data, &worker), GHP_OK)) {
        step.weight = 1 + rank;
        step.measures = true;
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        CHECK_STATUS(ghp_worker_settle(worker), GHP_OK);
        CHECK_STATUS(ghp_snapshot_gradients(&all, worker), GHP_OK);
        b->rank_plan.lowering.method.sync = (struct ghp_sync){0};
        for (int i = 0; i < workers; i++) {
            gradients_alone(b, data, step.samples[i], &own);
            if (i == rank)
                CHECK_NEAR(ghp_worker_own_norm(worker), norm_of(&own), 1e-12 * norm_of(&own));
            for (int j = 0; j < own.list.n_trained; j++)
                for (int64_t e = 0; e < own.list.items[j].param->elements; e++)
                    mean.gradients[j][e] = (i == 0 ? 0 : mean.gradients[j][e]) +
                                           (1 + i) * own.gradients[j][e] / workers;
        }
        for (int j = 0; j < own.list.n_trained; j++)
            for (int64_t e = 0; e < own.list.items[j].param->elements; e++)
                off = fmax(off, fabs(mean.gradients[j][e] - all.gradients[j][e]));
        CHECK(norm_of(&mean) > 0);
        if (rank == 0) CHECK_NEAR(off, 0, 1e-12 * norm_of(&mean));
        ghp_worker_close(worker);
    }
    ghp_snapshot_release(&own);
    ghp_snapshot_release(&all);
    ghp_snapshot_release(&mean);
}

static void check_choice(struct bench *b)
{
    enum { SAMPLES = 50, EPOCHS = 200 };
    struct ghp_sampling *sampling = NULL;
    struct ghp_sampling_request request = {
        .rank_plan = &b->rank_plan, .exec = &b->exec, .samples = SAMPLES, .seed = BENCH_SEED};
    int64_t own = (SAMPLES - rank + workers - 1) / workers, seen[SAMPLES] = {0};
    double weights = 0;
    struct ghp_step step = {0};

    if (!CHECK_STATUS(ghp_sampling_open(&request, &sampling), GHP_OK)) return;
    for (int64_t k = 0; k < own; k++) {
        step.index = (uint64_t)k;
        ghp_sampling_choose(sampling, &step);
        CHECK_EQ(step.samples[rank] % workers, rank);
        CHECK(step.measures);
        CHECK_NEAR(step.weight, (double)(own * workers) / SAMPLES, 1e-12);
        seen[step.samples[rank]]++;
    }
    for (int64_t i = 0; i < SAMPLES; i++)
        CHECK_EQ(seen[i], i % workers == rank);
    for (int64_t k = own; k < EPOCHS * own; k++) { /* nothing was learnt: all are alike */
        step.index = (uint64_t)k;
        ghp_sampling_choose(sampling, &step);
        weights += step.weight;
    }
    CHECK_NEAR(weights / (double)((EPOCHS - 1) * own), (double)(own * workers) / SAMPLES, 1e-9);
    ghp_sampling_close(sampling);
    b->rank_plan.lowering.problem.global_batch *= 2;
    CHECK_STATUS(ghp_sampling_open(&request, &sampling), GHP_ERR_INPUT);
    CHECK_MESSAGE("plan with --batch");
    b->rank_plan.lowering.problem.global_batch /= 2;
    request.ignores = true;
    CHECK_STATUS(ghp_sampling_open(&request, &sampling), GHP_ERR_INPUT);
    CHECK_MESSAGE("--ignore-label");
}

CHECK_TEST(sampling)
{
    struct bench b;
    struct ghp_split *data;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    rank = transport->control->rank;
    CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json",
                               (struct bench_numbers){.ops = ghp_backend_find("reference"),
                                                      .element_bytes = 8,
                                                      .batch = workers}),
                 GHP_OK);
    data = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    b.rank_plan.splits = data;
    check_step(&b, data, (struct ghp_sync){0});
    check_step(&b, data, (struct ghp_sync){.ops = &ghp_sync_sharded});
    b.rank_plan.lowering.method.sync = (struct ghp_sync){0};
    check_choice(&b);
    free(data);
    bench_close(&b);
    ghp_transport_end(transport);
    return check_end();
}
