/* ghp-test: np=2 np_full=4 timeout=300
 *
 * Layer by layer: sound plans come out as rounding, on every network and backend, on a device too, and every deliberate
 * fault as a defect, in the tensor where it is made. With arguments, PLANS MODEL ..., it draws PLANS mixed plans of
 * each model by chance, and tries each fault in all kinds of plans; prints a table (bench/verdicts). */
#include "executor/train/verify/layerwise.h"
#include "executor/transport/device/staged.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"
#include "tests/executor/locked.h"

#include <math.h>
#include <stdlib.h>

static struct ghp_transport *transport;
static int workers;

/* A plan's steps held against one worker's. False where the fault cannot act. */
static bool judge(struct bench *b, const struct ghp_split *splits, struct ghp_layerwise *r)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_worker *worker = NULL;
    struct ghp_layerwise_request request = {.rank_plan = &rank_plan,
                                            .training_config = &b->training_config,
                                            .steps = BENCH_STEPS,
                                            .unit = ghp_precision_unit((struct ghp_precision){
                                                rank_plan.lowering.element_bytes, false})};

    rank_plan.splits = splits;
    if (ghp_rank_plan_open(&b->exec, &rank_plan, &worker) != GHP_OK) return false;
    CHECK_STATUS(ghp_worker_connect(worker), GHP_OK);
    CHECK_STATUS(ghp_worker_allocate(worker), GHP_OK);
    request.worker = worker;
    CHECK_STATUS(ghp_collectives_group(transport->host,
                                       (struct ghp_ranks){.count = workers, .stride = 1},
                                       GHP_STREAM_COMPUTE, &request.world),
                 GHP_OK);
    CHECK_STATUS(ghp_layerwise_run(&request, r), GHP_OK);
    ghp_worker_close(worker);
    return true;
}

static struct { /* of one network */
    int plans, faults, wrong;
    double most, least; /* ratio of a sound plan, of a fault */
} seen;

static void count(const struct bench *b, const struct ghp_layerwise *r, bool right)
{
    if (b->rank_plan.run.fault == GHP_FAULT_NONE) {
        seen.plans++;
        if (r->finding.ratio > seen.most) seen.most = r->finding.ratio;
    } else {
        seen.faults++;
        if (r->finding.ratio < seen.least) seen.least = r->finding.ratio;
    }
    if (!right) seen.wrong++;
}

static void say(const struct bench *b, const char *plan, const struct ghp_layerwise *r)
{
    const struct ghp_finding *f = &r->finding;

    fprintf(stderr, "%s by '%s', fault '%s': %s, ratio %.3g, step %d, %s '%s' of rank %d\n",
            b->model.name, plan, ghp_fault_names[b->rank_plan.run.fault],
            ghp_verdict_names[r->verdict], f->ratio, (int)f->step, ghp_traced_texts[f->kind],
            f->name, f->rank);
}

/* By one kind of plan: rounding without a fault, a defect with one. False where the fault cannot act. */
static bool check_plan(struct bench *b, enum case_kind kind, unsigned seed, enum ghp_fault fault)
{
    struct ghp_split *splits =
        case_splits(&b->model, b->rank_plan.lowering.problem, kind, seed, workers);
    enum ghp_verdict right = fault == GHP_FAULT_NONE ? GHP_VERDICT_ROUNDING : GHP_VERDICT_DEFECT;
    struct ghp_layerwise r;
    bool acts;

    b->rank_plan.run.fault = fault;
    acts = judge(b, splits, &r);
    if (acts && transport->control->rank == 0) count(b, &r, r.verdict == right);
    if (acts && transport->control->rank == 0 && !CHECK(r.verdict == right))
        say(b, case_name(kind), &r);
    if (acts && transport->control->rank == 0) CHECK(r.found && r.finding.rank >= 0);
    free(splits);
    return acts;
}

/* Each fault by the first kind of plan in which it can act; in full runs of two workers, of the small network,
 * by all. */
static void check_plans(struct bench *b)
{
    bool all = check_full() && workers == 2 && strstr(b->model.name, "lenet") != NULL;

    for (int kind = check_full() ? CASE_DATA : CASE_IN; kind <= CASE_MIXED; kind++)
        CHECK(check_plan(b, (enum case_kind)kind, 1, GHP_FAULT_NONE));
    for (int fault = 1; fault < GHP_FAULT_OVERLOOK; fault++) {
        bool acted = false;

        for (int kind = CASE_DATA; kind <= CASE_MIXED && (all || !acted); kind++)
            acted = check_plan(b, (enum case_kind)kind, 1, (enum ghp_fault)fault) || acted;
    }
}

static void check_model(const char *model, const char *backend, int element_bytes)
{
    struct bench b;

    CHECK_STATUS(bench_open(&b, transport, model, backend, element_bytes), GHP_OK);
    check_plans(&b);
    bench_close(&b);
}

/* Tensors that host code cannot touch are seen as copies. */
static void check_device(const char *model)
{
    const struct bench_numbers numbers = {.ops = &locked_backend, .element_bytes = 4};
    struct ghp_collectives *staged;
    struct bench b;

    CHECK_STATUS(bench_open_by(&b, transport, model, numbers), GHP_OK);
    CHECK_STATUS(ghp_staged_open(transport->host, ghp_exec_context_device(&b.exec), &staged),
                 GHP_OK);
    b.exec.collectives = staged;
    check_plans(&b);
    staged->ops->close(staged);
    bench_close(&b);
}

/* A row of the table. */
static void tabulate(const char *model, int plans)
{
    struct bench b;

    seen.plans = seen.faults = seen.wrong = 0;
    seen.most = 0;
    seen.least = INFINITY;
    CHECK_STATUS(bench_open(&b, transport, model, "onednn", 4), GHP_OK);
    for (int seed = 1; seed <= plans; seed++)
        check_plan(&b, CASE_MIXED, (unsigned)seed, GHP_FAULT_NONE);
    for (int fault = 1; fault < GHP_FAULT_OVERLOOK; fault++)
        for (int kind = CASE_DATA; kind <= CASE_MIXED; kind++)
            check_plan(&b, (enum case_kind)kind, 1, (enum ghp_fault)fault);
    if (transport->control->rank == 0)
        printf("%-16s %7d %6d %14.3g %7d %14.3g %6d\n", b.model.name, workers, seen.plans,
               seen.most, seen.faults, seen.least, seen.wrong);
    bench_close(&b);
}

CHECK_TEST(layerwise)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    for (int m = 2; m < argc; m++)
        tabulate(argv[m], (int)strtol(argv[1], NULL, 10));
    if (argc > 2) {
        ghp_transport_end(transport);
        return check_end();
    }
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", "onednn", 4);
    if (check_full()) check_device(GHP_SOURCE_DIR "/models/lenet5.json");
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", "onednn", 4);
    check_model(GHP_SOURCE_DIR "/tests/executor/tokens.json", "onednn", 4);
    if (check_full()) check_model(GHP_SOURCE_DIR "/models/small-resnet.json", "reference", 8);
    ghp_transport_end(transport);
    return check_end();
}
