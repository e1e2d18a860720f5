/* ghp-test: np=4 np_full=3 timeout=300
 *
 * `dgd`, whose workers take the weighted mean of their neighbours' weights. Mixing keeps the sum of all workers'
 * weights, and on the complete graph, without momentum, all go the way of one worker; bytes are those of
 * docs/reference/synchronisers.md. Workers train to the weights of one process that trains the replicas in turn; one
 * worker trains to the bits of SGD; a training continues from its checkpoint to the bits of one that nobody
 * interrupted. Each is seen to fail with a fault. */
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/mixing/in_step.h"

#include <math.h>
#include <string.h>

static int workers;

/* The sum of all workers' weights, each times another number. */
static double weigh_all(const struct bench *b, struct ghp_worker *worker)
{
    const struct ghp_bucket *bucket = &ghp_worker_program(worker)->buckets[0];
    const double *x =
        ghp_arena_at(ghp_worker_arena(worker), ghp_worker_program(worker), bucket->weights);
    const struct ghp_control_message *messages;
    double sum = 0;

    for (int64_t i = 0; i < bucket->bytes / (int64_t)sizeof *x; i++)
        sum += x[i] * (1 + (double)(i % 17));
    messages = in_step_tell(b, sum);
    sum = 0;
    for (int i = 0; i < workers; i++)
        sum += messages[i].value;
    return sum;
}

/* Steps at rate 0 mix alone: the sum stays, and workers come together. */
static void check_sum(struct bench *b, const char *sync, enum ghp_fault fault)
{
    struct ghp_split *splits;
    struct ghp_worker *worker = in_step_open(b, sync, fault, &splits);
    struct ghp_mix_count count;
    struct ghp_neighbours graph = b->rank_plan.lowering.method.sync.graph;
    double before, after;

    CHECK_STATUS(bench_steps(b, worker, 0, 3), GHP_OK);
    before = weigh_all(b, worker);
    for (int64_t k = 3; k < 6; k++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, k);

        step.hyperparameters = (struct ghp_hyperparameters){.learning_rate = 0};
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    after = weigh_all(b, worker);
    CHECK((fabs(after - before) <= 1e-12 * fabs(before)) == (fault == GHP_FAULT_NONE));
    count = ghp_worker_mixed(worker);
    CHECK_EQ(count.sent_bytes, 6 * ghp_neighbours_degree(&graph, workers, b->rank_plan.rank) *
                                   ghp_worker_program(worker)->buckets[0].bytes);
    CHECK_EQ(count.received_bytes, count.sent_bytes);
    in_step_end(b, worker, splits);
}

static void train_alone_without_momentum(struct bench *b)
{
    const struct ghp_hyperparameters usual = b->training_config.hyperparameters;

    b->training_config.hyperparameters.momentum = 0;
    CHECK_STATUS(bench_train_alone(b), GHP_OK);
    b->training_config.hyperparameters = usual;
}

/* Without momentum: the mean of all is what one worker makes of the mean gradient. */
static bool goes_like_one(struct bench *b, const char *sync, enum ghp_fault fault)
{
    const struct ghp_hyperparameters usual = b->training_config.hyperparameters;
    struct ghp_snapshot plan = {0};
    struct ghp_verification v = {0};
    struct ghp_split *splits;
    struct ghp_worker *worker;
    bool passed;

    b->training_config.hyperparameters.momentum = 0;
    worker = in_step_open(b, sync, fault, &splits);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, 0, BENCH_STEPS), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&plan, worker), GHP_OK);
    for (int i = 0; i < plan.list.n_trained; i++)
        memcpy(plan.gradients[i], b->alone.gradients[i],
               (size_t)plan.list.items[i].param->elements * sizeof(double));
    CHECK_STATUS(ghp_verify_compare(&plan, &b->alone, (struct ghp_precision){8, false}, &v),
                 GHP_OK);
    passed = v.weight_difference < 1e-5;
    b->training_config.hyperparameters = usual;
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    in_step_end(b, worker, splits);
    return passed;
}

static void check_all(struct bench *b)
{
    workers = b->exec.transport->control->size;
    check_sum(b, "dgd:ring", GHP_FAULT_NONE);
    check_sum(b, "dgd:complete", GHP_FAULT_NONE);
    if (workers > 2) check_sum(b, "dgd:ring", GHP_FAULT_DROP_REDUCTION);
    if (workers == 4) check_sum(b, "dgd:0-1,1-2,1-3", GHP_FAULT_NONE);
    train_alone_without_momentum(b);
    CHECK(goes_like_one(b, "dgd:complete", GHP_FAULT_NONE));
    CHECK(!goes_like_one(b, "dgd:complete", GHP_FAULT_DROP_REDUCTION));
    CHECK(in_step_trains_like_reference(b, "dgd:ring", GHP_FAULT_NONE));
    if (workers > 2) CHECK(!in_step_trains_like_reference(b, "dgd:ring", GHP_FAULT_DROP_REDUCTION));
    in_step_check_resume(b, "dgd:ring", "dgd:complete", 3);
    in_step_check_lone(b, "dgd:ring");
}

CHECK_TEST(mix_neighbours)
{
    return in_step_run(&argc, &argv, GHP_SOURCE_DIR "/models/lenet5.json", check_all);
}
