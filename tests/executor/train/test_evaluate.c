/* ghp-test: np=2 np_full=1,3 timeout=120
 *
 * Evaluation counts every sample once though the batch does not divide them, gives the same under every plan, and
 * leaves the training as it was. */
#include "executor/train/evaluate.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

/* Its hits are those of its accuracy, and the same as another plan's. */
static void check_hits(const struct ghp_evaluation *e, const struct ghp_evaluation *first)
{
    int64_t labels = 0, top1 = 0;

    CHECK_EQ(e->hits.all.labels, e->samples);
    CHECK_NEAR((double)e->hits.all.top1, e->accuracy * (double)e->samples, 1e-9);
    CHECK(e->hits.all.top5 > e->hits.all.top1 && e->hits.all.top5 < e->samples);
    for (int c = 0; c < e->hits.classes; c++) {
        labels += e->hits.of_class[c].labels;
        top1 += e->hits.of_class[c].top1;
        CHECK_EQ(e->hits.of_class[c].top5, first->hits.of_class[c].top5);
    }
    CHECK_EQ(labels, e->samples);
    CHECK_EQ(top1, e->hits.all.top1);
}

CHECK_TEST(evaluate)
{
    struct ghp_transport *transport = NULL;
    struct ghp_evaluation first = {0}, again;
    struct ghp_evaluation_request request = {.set = GHP_DATA_TEST, .detail = GHP_HITS_CLASSES};
    struct bench b;
    uint64_t uninterrupted = 0;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    CHECK_STATUS(
        bench_open(&b, transport, GHP_SOURCE_DIR "/models/small-resnet.json", "reference", 8),
        GHP_OK);
    request.data = b.data;
    for (int kind = CASE_DATA; kind <= CASE_IN; kind++) {
        struct ghp_split *splits =
            case_splits(&b.model, b.rank_plan.lowering.problem, (enum case_kind)kind, 0,
                        b.rank_plan.lowering.problem.workers);
        struct ghp_rank_plan rank_plan = bench_rank_plan(&b, splits);
        struct ghp_worker *worker = NULL;
        uint64_t before;

        CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
        CHECK_STATUS(bench_steps(&b, worker, 0, 2), GHP_OK);
        before = bench_fingerprint(worker);
        request.rank_plan = &rank_plan;
        CHECK_STATUS(ghp_evaluate(worker, request, &again), GHP_OK);
        CHECK(bench_fingerprint(worker) == before);
        CHECK_EQ(again.samples, ghp_data_count(b.data, GHP_DATA_TEST));
        if (kind == CASE_DATA) first = again;
        CHECK_NEAR(again.loss, first.loss, 1e-12);
        CHECK_NEAR(again.accuracy, first.accuracy, 1e-12);
        check_hits(&again, &first);
        if (kind != CASE_DATA) ghp_evaluation_release(&again);
        CHECK_STATUS(bench_steps(&b, worker, 2, BENCH_STEPS), GHP_OK);
        if (kind == CASE_DATA) { /* the same without an evaluation between */
            uninterrupted = bench_fingerprint(worker);
            ghp_worker_close(worker);
            CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
            CHECK_STATUS(bench_steps(&b, worker, 0, BENCH_STEPS), GHP_OK);
            CHECK(bench_fingerprint(worker) == uninterrupted);
        }
        ghp_worker_close(worker);
        free(splits);
    }
    ghp_evaluation_release(&first);
    bench_close(&b);
    ghp_transport_end(transport);
    return check_end();
}
