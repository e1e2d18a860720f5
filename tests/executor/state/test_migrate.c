/* ghp-test: np=2 np_full=1,4 timeout=120
 *
 * A training that passes half-way into another plan's worker, in memory, has the same bits there, weights, statistics
 * and moments, and continues to where an uninterrupted one ends; optimizer shards of a sharded update are filled,
 * too. */
#include "executor/state/migrate.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

static struct ghp_transport *transport;

static void check_migrate(const char *sync)
{
    struct bench b;
    struct ghp_split *before, *after;
    struct ghp_worker *from = NULL, *to = NULL;
    struct ghp_snapshot migrated = {0};
    struct ghp_verification v = {0};
    struct ghp_step step;
    uint64_t fingerprint;

    CHECK_STATUS(
        bench_open(&b, transport, GHP_SOURCE_DIR "/models/small-resnet.json", "reference", 8),
        GHP_OK);
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    CHECK_STATUS(ghp_sync_parse(sync, &b.rank_plan.lowering.method.sync), GHP_OK);
    before = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_OUT, 0,
                         b.rank_plan.lowering.problem.workers);
    after = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(bench_worker(&b, before, &from), GHP_OK);
    step = ghp_training_config_step(&b.training_config, 0);
    CHECK_STATUS(ghp_snapshot_init(&b.model, true, &migrated), GHP_OK);
    CHECK_STATUS(ghp_worker_step(from, &step), GHP_OK);
    CHECK_STATUS(ghp_worker_settle(from), GHP_OK);
    CHECK_STATUS(ghp_snapshot_gradients(&migrated, from), GHP_OK);
    CHECK_STATUS(bench_steps(&b, from, 1, 2), GHP_OK);
    CHECK(ghp_state_can_migrate(&b.rank_plan.lowering));

    CHECK_STATUS(bench_worker(&b, after, &to), GHP_OK);
    CHECK_STATUS(bench_steps(&b, to, 0, 1), GHP_OK); /* its own weights and moments go */
    fingerprint = bench_fingerprint(from);
    CHECK(bench_fingerprint(to) != fingerprint);
    CHECK_STATUS(ghp_state_migrate(from, to), GHP_OK);
    CHECK(bench_fingerprint(to) == fingerprint);
    CHECK(bench_fingerprint(from) == fingerprint);
    CHECK_STATUS(bench_steps(&b, to, 2, BENCH_STEPS), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&migrated, to), GHP_OK);
    CHECK_STATUS(ghp_verify_compare(&migrated, &b.alone, (struct ghp_precision){8, false}, &v),
                 GHP_OK);
    CHECK(v.passed);
    ghp_verification_release(&v);
    ghp_snapshot_release(&migrated);
    ghp_worker_close(from);
    ghp_worker_close(to);
    free(after);
    free(before);
    bench_close(&b);
}

/* Replicas of their own, and rates that learn. */
static void check_cannot(void)
{
    struct ghp_lowering lowering = {.problem = {.workers = 2, .global_batch = 8}};

    CHECK(ghp_state_can_migrate(&lowering));
    CHECK_STATUS(ghp_sync_parse("local:2", &lowering.method.sync), GHP_OK);
    CHECK(!ghp_state_can_migrate(&lowering));
    CHECK_STATUS(ghp_sync_parse("asp", &lowering.method.sync), GHP_OK);
    CHECK(!ghp_state_can_migrate(&lowering));
}

CHECK_TEST(migrate)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    check_migrate("allreduce");
    check_migrate("sharded");
    check_cannot();
    ghp_transport_end(transport);
    return check_end();
}
