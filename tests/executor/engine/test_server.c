/* ghp-test: np=3 np_full=5 timeout=300
 *
 * Parameter servers: with `bsp` workers train like one worker, and to the same bits as with an all-reduce, with one
 * server and with several, whose shards begin inside tensors; with and without buckets, with batch norm, in double on
 * the reference backend and in float on the fast one, by SGD and by AdamW. Gradients that a server leaves out are seen. A
 * server's arena is its program's. A training continues from a checkpoint with servers, and from one with an
 * all-reduce, with moments, to the bits of a training that nobody interrupted. */
#include "executor/engine/server.h"
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <stdlib.h>

static struct ghp_transport *transport;
static char folder[BENCH_FOLDER];

struct run {     /* how a worker trains, and the steps before and after a checkpoint */
    int servers; /* 0: an all-reduce */
    int64_t bucket_bytes;
    int64_t first, end;
    bool loads, saves;
    struct ghp_snapshot *snapshot; /* of a verification, in place of the steps; or NULL */
};

static void serve(struct bench *b, const struct ghp_rank_plan *rank_plan)
{
    struct ghp_server *server = NULL;
    struct ghp_server_programs programs;
    int number = b->rank_plan.rank - rank_plan->lowering.problem.workers;

    if (!CHECK_STATUS(ghp_rank_plan_lower_server(&b->exec, rank_plan, number, &programs), GHP_OK) ||
        !CHECK_STATUS(ghp_server_open(&b->exec, &programs, rank_plan->run.fault, &server), GHP_OK))
        return;
    CHECK_EQ(ghp_server_arena(server)->bytes, ghp_server_program(server)->peak_bytes);
    CHECK_STATUS(ghp_server_connect(server), GHP_OK);
    CHECK_STATUS(ghp_server_run(server), GHP_OK);
    ghp_server_close(server);
}

static void steps(struct bench *b, const struct run *run, struct ghp_worker *worker)
{
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint = {.step = run->end,
                                        .global_batch = b->rank_plan.lowering.problem.global_batch,
                                        .samples = b->training_config.order.n};

    if (run->loads) CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, run->first, run->end), GHP_OK);
    checkpoint.step = run->end;
    if (run->saves) CHECK_STATUS(ghp_checkpoint_save(&kept, worker, checkpoint), GHP_OK);
}

/* A worker's, or a server's part; the fingerprint of weights and moments, of a server 0. */
static uint64_t train(struct bench *b, const struct run *run)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_worker *worker;
    struct ghp_split *splits = case_splits(&b->model, rank_plan.lowering.problem, CASE_DATA, 0, 1);
    uint64_t hash = 0;

    rank_plan.splits = splits;
    rank_plan.lowering.method.bucket_bytes = run->bucket_bytes;
    if (run->servers > 0)
        rank_plan.lowering.method.sync =
            (struct ghp_sync){.ops = &ghp_sync_bsp, .servers = run->servers};
    if (rank_plan.rank >= rank_plan.lowering.problem.workers) {
        if (rank_plan.rank < rank_plan.lowering.problem.workers + run->servers)
            serve(b, &rank_plan);
        free(splits);
        return 0;
    }
    if (CHECK_STATUS(bench_open_worker(b, &rank_plan, &worker), GHP_OK)) {
        if (run->snapshot != NULL)
            CHECK_STATUS(ghp_verify_train(worker, &b->training_config, BENCH_STEPS, run->snapshot),
                         GHP_OK);
        else
            steps(b, run, worker);
        hash = bench_fingerprint(worker);
    }
    ghp_worker_close(worker);
    free(splits);
    return hash;
}

/* Whether the weights and the first gradients are those of one worker; of a server true. */
static bool trains_like_one(struct bench *b, int servers, int64_t bucket_bytes)
{
    struct ghp_snapshot plan = {0};
    struct ghp_verification v = {0};
    struct run run = {.servers = servers, .bucket_bytes = bucket_bytes, .snapshot = &plan};
    bool passed = true;

    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    train(b, &run);
    if (b->rank_plan.rank < b->rank_plan.lowering.problem.workers) {
        CHECK_STATUS(ghp_verify_compare(
                         &plan, &b->alone,
                         (struct ghp_precision){b->rank_plan.lowering.element_bytes, false}, &v),
                     GHP_OK);
        passed = v.passed;
        ghp_verification_release(&v);
    }
    ghp_snapshot_release(&plan);
    return passed;
}

static void of_workers(struct bench *b, int n)
{
    b->rank_plan.lowering.problem.workers = b->rank_plan.run.groups = n;
}

/* By `least` workers or more, the other ranks are servers. */
static void check_model(const char *path, struct bench_numbers numbers,
                        const struct ghp_optimizer *optimizer, int least)
{
    int size = transport->control->size;
    struct bench b;

    if (!CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK)) return;
    b.training_config.optimizer = b.rank_plan.lowering.method.optimizer = optimizer;
    b.training_config.hyperparameters = ghp_optimizer_usual(optimizer);
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    for (int n = 1; n < size; n++) {
        struct run run = {.bucket_bytes = 20000, .end = BENCH_STEPS};
        uint64_t hash[2];

        of_workers(&b, n);
        if (b.rank_plan.lowering.problem.global_batch % n != 0 || (!check_full() && n < least))
            continue;
        CHECK(trains_like_one(&b, size - n, n == 1 ? 0 : 20000));
        hash[0] = train(&b, &run);
        run.servers = size - n;
        hash[1] = train(&b, &run);
        CHECK(hash[0] == hash[1]);
        b.rank_plan.run.fault = n > 1 ? GHP_FAULT_DROP_REDUCTION : GHP_FAULT_NONE;
        if (n > 1) CHECK(!trains_like_one(&b, size - n, 20000) || b.rank_plan.rank >= n);
        b.rank_plan.run.fault = GHP_FAULT_NONE;
    }
    bench_close(&b);
}

/* Without servers before or after the checkpoint, and with them on both sides. */
static void check_resume(struct ghp_comm *world, struct bench_numbers numbers)
{
    int size = transport->control->size;
    struct run all = {.servers = 1, .bucket_bytes = 20000, .end = BENCH_STEPS};
    uint64_t hash;
    struct bench b;

    if (!CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", numbers),
                      GHP_OK))
        return;
    of_workers(&b, size - 1);
    hash = train(&b, &all);
    for (int i = 0; i < 3; i++) {
        struct run before = all, behind = all;

        before.end = behind.first = 2;
        before.saves = behind.loads = true;
        if (i == 1) before.servers = 0;
        if (i == 2) behind.servers = 0;
        train(&b, &before);
        CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
        CHECK(train(&b, &behind) == hash);
        CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
    }
    bench_close(&b);
}

CHECK_TEST(server)
{
    const struct bench_numbers exact = {.ops = &ghp_backend_reference,
                                        .element_bytes = 8,
                                        .batch = 12},
                               fast = {.ops = &ghp_backend_onednn, .element_bytes = 4, .batch = 12};
    int workers;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", exact, &ghp_optimizer_sgd, 1);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", fast, &ghp_optimizer_sgd, 2);
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", fast, &ghp_optimizer_adamw, 1);
    bench_make_folder(transport, workers, "servers", folder);
    check_resume(bench_workers(transport, workers), fast);
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
