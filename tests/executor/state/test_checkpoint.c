/* ghp-test: np=2 np_full=1,4 timeout=120
 *
 * A training that stops half-way under one plan and goes on under another ends where an uninterrupted one does; a
 * checkpoint of another model is refused by the first tensor that differs. */
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <unistd.h>

static struct ghp_transport *transport;
static char folder[64];

static void check_resume(void)
{
    struct bench b;
    struct ghp_split *before, *after;
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot resumed = {0};
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_verification v = {0};
    struct ghp_step step;

    CHECK_STATUS(
        bench_open(&b, transport, GHP_SOURCE_DIR "/models/small-resnet.json", "reference", 8),
        GHP_OK);
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    before = case_splits(&b.model, b.work.problem, CASE_MIXED, 2, b.work.problem.workers);
    after = case_splits(&b.model, b.work.problem, CASE_OUT, 0, b.work.problem.workers);
    CHECK_STATUS(bench_worker(&b, before, &worker), GHP_OK);
    step = ghp_training_config_step(&b.training_config, 0);
    CHECK_STATUS(ghp_snapshot_init(&b.model, true, &resumed), GHP_OK);
    CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    CHECK_STATUS(ghp_worker_settle(worker), GHP_OK);
    CHECK_STATUS(ghp_snapshot_gradients(&resumed, worker), GHP_OK);
    CHECK_STATUS(bench_steps(&b, worker, 1, 2), GHP_OK);
    CHECK_STATUS(
        ghp_checkpoint_save(folder, worker,
                            (struct ghp_checkpoint){.step = 2,
                                                    .seed = UINT64_MAX,
                                                    .global_batch = b.work.problem.global_batch,
                                                    .samples = b.training_config.order.n}),
        GHP_OK);
    ghp_worker_close(worker);

    CHECK_STATUS(bench_worker(&b, after, &worker), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_load(folder, worker, &checkpoint), GHP_OK);
    CHECK_EQ(checkpoint.step, 2);
    CHECK(checkpoint.seed == UINT64_MAX);
    CHECK_EQ(checkpoint.global_batch, b.work.problem.global_batch);
    CHECK_EQ(checkpoint.samples, b.training_config.order.n);
    CHECK_STATUS(bench_steps(&b, worker, 2, BENCH_STEPS), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&resumed, worker), GHP_OK);
    CHECK_STATUS(ghp_verify_compare(&resumed, &b.alone, (struct ghp_precision){8, false}, &v),
                 GHP_OK);
    CHECK(v.passed);
    ghp_verification_release(&v);
    ghp_snapshot_release(&resumed);
    ghp_worker_close(worker);
    free(after);
    free(before);
    bench_close(&b);
}

static void check_other_model(void)
{
    struct bench b;
    struct ghp_split *splits;
    struct ghp_worker *worker = NULL;
    struct ghp_checkpoint checkpoint;

    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 4),
                 GHP_OK);
    splits = case_splits(&b.model, b.work.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_load(folder, worker, &checkpoint), GHP_ERR_INPUT);
    CHECK_MESSAGE("conv1.weight");
    CHECK_STATUS(ghp_checkpoint_load("/nowhere", worker, &checkpoint), GHP_ERR_IO);
    CHECK_STATUS(ghp_checkpoint_save("/dev/null/here", worker, (struct ghp_checkpoint){.step = 1}),
                 GHP_ERR_IO);
    CHECK_MESSAGE("/dev/null/here");
    ghp_worker_close(worker);
    free(splits);
    bench_close(&b);
}

/* What a killed run leaves half-written is gone when the next one starts; other files stay. */
static void check_leftovers(void)
{
    char path[512], host[256] = "", names[2][320] = {"", "checkpoint.safetensors.tmp-x"};

    CHECK(gethostname(host, sizeof(host) - 1) == 0);
    /* more than Linux counts processes to */
    snprintf(names[0], sizeof(names[0]), "checkpoint.safetensors.tmp-%s-2000000000", host);
    CHECK_STATUS(ghp_checkpoint_prepare(folder), GHP_OK);
    for (int i = 0; i < 2; i++) {
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        file = fopen(path, "w");
        CHECK(file != NULL && fputs("half", file) >= 0 && fclose(file) == 0);
    }
    CHECK_STATUS(ghp_checkpoint_prepare(folder), GHP_OK);
    CHECK(unlink(path) == 0);
    snprintf(path, sizeof(path), "%s/%s", folder, names[0]);
    CHECK(access(path, F_OK) != 0);
    CHECK_STATUS(ghp_checkpoint_prepare("/dev/null/here"), GHP_ERR_IO);
}

CHECK_TEST(checkpoint)
{
    struct ghp_comm *world = NULL;
    long id = (long)getpid();
    char path[96];
    long *ids;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    ids = ghp_alloc((size_t)transport->control->size, sizeof(*ids));
    CHECK_STATUS(
        ghp_collectives_group(transport->host,
                              (struct ghp_ranks){.count = transport->control->size, .stride = 1},
                              GHP_STREAM_COMPUTE, &world),
        GHP_OK);
    CHECK_STATUS(world->ops->all_gather(world, &id, ids, (int64_t)sizeof(id)), GHP_OK);
    snprintf(folder, sizeof(folder), "/tmp/ghp-test-checkpoint-%ld", ids[0]);
    if (transport->control->rank == 0) check_leftovers();
    CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
    check_resume();
    check_other_model();
    CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
    if (transport->control->rank == 0) {
        snprintf(path, sizeof(path), "%s/checkpoint.safetensors", folder);
        CHECK(unlink(path) == 0);
        CHECK(rmdir(folder) == 0); /* nothing else was left there */
    }
    free(ids);
    ghp_transport_end(transport);
    return check_end();
}
