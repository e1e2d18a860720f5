/* ghp-test: np=3 np_full=4 timeout=300
 *
 * Sharded gradients and parameters train like one worker: each kind on all layers, and kinds drawn for each layer,
 * under splits by data and mixed ones, in micro-batches, with layers recomputed, with adamw, with clipped gradients,
 * with tied weights, in double on the reference backend and in float on the fast one, with reductions during the step
 * and as late as can be. With one batch a step they come to the same bits as an all-reduce, if nothing is clipped. The
 * arena takes what the program says, less with each kind. An evaluation counts alike, and a training continues from a
 * checkpoint of sharded parameters without them, and the other way. */
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "executor/train/evaluate.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

static struct ghp_transport *transport;
static int workers;
static char folder[BENCH_FOLDER];

struct run { /* how a worker trains */
    const char *name;
    int64_t peak_bytes; /* out: of the arena */
    struct ghp_split *splits;
    const struct ghp_staging *staging;
    bool late;
};

static int count(const struct ghp_program *program, enum ghp_instr_kind kind)
{
    int n = 0;

    for (int i = 0; i < program->n_instrs; i++)
        n += program->instrs[i].kind == kind;
    return n;
}

static struct ghp_rank_plan rank_plan_of(const struct bench *b, const struct run *run)
{
    struct ghp_rank_plan rank_plan = bench_rank_plan(b, run->splits);

    rank_plan.lowering.staging = run->staging;
    rank_plan.run.reduces_late = run->late;
    return rank_plan;
}

static bool open_worker(struct bench *b, struct run *run, struct ghp_worker **worker)
{
    struct ghp_rank_plan rank_plan = rank_plan_of(b, run);

    if (!CHECK_STATUS(bench_open_worker(b, &rank_plan, worker), GHP_OK)) return false;
    run->peak_bytes = ghp_worker_program(*worker)->peak_bytes;
    CHECK_EQ(ghp_worker_arena(*worker)->bytes, run->peak_bytes);
    return true;
}

/* Trains and compares with one worker; the fingerprint of all weights and moments. */
static uint64_t train(struct bench *b, struct run *run)
{
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot plan = {0};
    struct ghp_verification v = {0};
    int different = 0;
    uint64_t hash;

    if (!open_worker(b, run, &worker)) return 0;
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(ghp_verify_train(worker, &b->training_config, BENCH_STEPS, &plan), GHP_OK);
    CHECK_STATUS(
        ghp_verify_compare(&plan, &b->alone,
                           (struct ghp_precision){b->rank_plan.lowering.element_bytes, false}, &v),
        GHP_OK);
    if (!CHECK(v.passed) && transport->control->rank == 0)
        fprintf(stderr, "%s, %s: e_w %.3g, e_g %.3g\n", b->model.name, run->name,
                v.weight_difference, v.gradient_difference);
    CHECK_STATUS(ghp_parameters_compare(worker, &plan.list, &different), GHP_OK);
    CHECK_EQ(different, -1);
    hash = bench_fingerprint(worker);
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    ghp_worker_close(worker);
    return hash;
}

static void shard(struct bench *b, enum ghp_param_sharding sharding, unsigned seed, struct run *run)
{
    struct ghp_problem problem = b->rank_plan.lowering.problem;

    case_shard(&b->model, problem, sharding, seed, run->splits);
    run->name = sharding < GHP_SHARDING_COUNT ? ghp_param_sharding_names[sharding] : "drawn";
}

/* Each kind on all layers, then draws; `bits`: all have those of the all-reduce. */
static void check_kinds(struct bench *b, struct run run, bool bits)
{
    unsigned draws = check_full() ? 3 : 1;
    uint64_t whole;

    shard(b, GHP_SHARDING_NONE, 0, &run);
    whole = train(b, &run);
    for (unsigned i = 0; i < GHP_SHARDING_COUNT - 1 + draws; i++) {
        unsigned drawn = GHP_SHARDING_COUNT - 1;
        uint64_t hash;

        shard(b, i < drawn ? (enum ghp_param_sharding)(i + 1) : GHP_SHARDING_COUNT, i, &run);
        run.late = i % 2 == 1;
        hash = train(b, &run);
        if (bits && !CHECK(hash == whole) && transport->control->rank == 0)
            fprintf(stderr, "%s, %s: other bits\n", b->model.name, run.name);
    }
}

static void check_splits(struct bench *b, enum case_kind kind, unsigned seed, bool bits)
{
    struct run run = {
        .splits = case_splits(&b->model, b->rank_plan.lowering.problem, kind, seed, workers)};

    check_kinds(b, run, bits);
    free(run.splits);
}

/* Micro-batches, without and with layers recomputed. */
static void check_micro_batches(struct bench *b)
{
    struct run run = {.splits =
                          case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1)};
    bool *recompute = ghp_alloc((size_t)b->model.n_layers, sizeof *recompute);
    struct ghp_staging s = {.micro_batches = 2};

    run.staging = &s;
    check_kinds(b, run, false);
    for (int v = 1; v < b->model.n_layers - 1; v++)
        recompute[v] = ghp_stage_may_recompute(&b->model.layers[v]) && v % 3 != 0;
    s.recompute = recompute;
    check_kinds(b, run, false);
    free(recompute);
    free(run.splits);
}

/* With a moment more, and with clipped gradients: their norm is summed up in another order. */
static void check_optimizer(struct bench *b, bool bits)
{
    struct ghp_hyperparameters *h = &b->training_config.hyperparameters;
    struct ghp_method *method = &b->rank_plan.lowering.method;

    b->training_config.optimizer = method->optimizer = &ghp_optimizer_adamw;
    *h = ghp_optimizer_usual(&ghp_optimizer_adamw);
    h->epsilon = 1e-3; /* or a gradient that is rounding alone moves weights as far as any */
    b->training_config.schedule =
        (struct ghp_lr_schedule){.base = 0.001, .steps = BENCH_STEPS, .warmup_steps = 2};
    CHECK_STATUS(bench_train_alone(b), GHP_OK);
    check_splits(b, CASE_DATA, 0, bits);
    method->clip_norm = b->training_config.hyperparameters.clip_norm = 0.1;
    CHECK_STATUS(bench_train_alone(b), GHP_OK);
    check_splits(b, CASE_MIXED, 2, false);
}

static void check_model(const char *path, struct bench_numbers numbers, bool divides)
{
    struct bench b;

    if (!CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK)) return;
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    check_splits(&b, CASE_DATA, 0, true);
    check_splits(&b, CASE_MIXED, 1, true);
    if (divides) check_micro_batches(&b);
    check_optimizer(&b, true);
    bench_close(&b);
}

/* Within groups of two of four workers, each of which has all: sums over groups come after those within. */
static void check_groups(void)
{
    const struct bench_numbers numbers = {.ops = &ghp_backend_reference, .element_bytes = 8};
    struct ghp_worker *worker = NULL;
    struct run run = {0};
    struct bench b;

    CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/tests/executor/tied.json", numbers),
                 GHP_OK);
    b.rank_plan.lowering.method.shard_within = 2;
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    check_splits(&b, CASE_DATA, 0, false);
    check_splits(&b, CASE_MIXED, 1, false);
    check_micro_batches(&b);
    check_optimizer(&b, false);
    run.splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    shard(&b, GHP_SHARDING_PASS, 0, &run);
    if (open_worker(&b, &run, &worker)) {
        const struct ghp_program *program = ghp_worker_program(worker);

        CHECK(count(program, GHP_INSTR_SHARD_REDUCE) > 0);
        CHECK_EQ(count(program, GHP_INSTR_SHARD_REDUCE), count(program, GHP_INSTR_REDUCE_SCATTER));
        for (int i = 0; i < program->n_instrs; i++) {
            const struct ghp_ranks *ranks = &program->instrs[i].ranks;
            int rank = transport->control->rank;

            if (program->instrs[i].kind == GHP_INSTR_GATHER)
                CHECK(ranks->count == 2 && ranks->first == rank / 2 * 2 && ranks->stride == 1);
            if (program->instrs[i].kind == GHP_INSTR_SHARD_REDUCE)
                CHECK(ranks->count == 2 && ranks->first == rank % 2 && ranks->stride == 2);
        }
        ghp_worker_close(worker);
    }
    free(run.splits);
    bench_close(&b);
}

/* Bytes of each kind; gathers of each. */
static void check_memory(void)
{
    const struct bench_numbers numbers = {.ops = &ghp_backend_reference, .element_bytes = 8};
    int64_t peak[GHP_SHARDING_COUNT];
    int gathers[GHP_SHARDING_COUNT];
    struct ghp_worker *worker = NULL;
    struct run run = {0};
    struct bench b;

    CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/gpt-nano.json", numbers),
                 GHP_OK);
    run.splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    for (int k = 0; k < GHP_SHARDING_COUNT; k++) {
        shard(&b, (enum ghp_param_sharding)k, 0, &run);
        if (!open_worker(&b, &run, &worker)) continue;
        peak[k] = run.peak_bytes;
        gathers[k] = count(ghp_worker_program(worker), GHP_INSTR_GATHER);
        ghp_worker_close(worker);
        worker = NULL;
    }
    CHECK_EQ(gathers[GHP_SHARDING_NONE] + gathers[GHP_SHARDING_GRADIENTS], 0);
    CHECK_EQ(gathers[GHP_SHARDING_STEP], gathers[GHP_SHARDING_MICRO_BATCH]);
    CHECK(gathers[GHP_SHARDING_PASS] > gathers[GHP_SHARDING_STEP]);
    CHECK(peak[GHP_SHARDING_GRADIENTS] < peak[GHP_SHARDING_NONE]);
    CHECK(peak[GHP_SHARDING_STEP] < peak[GHP_SHARDING_NONE]);
    CHECK(peak[GHP_SHARDING_PASS] < peak[GHP_SHARDING_STEP]);
    CHECK(peak[GHP_SHARDING_PASS] < peak[GHP_SHARDING_GRADIENTS]);
    free(run.splits);
    bench_close(&b);
}

/* ---- evaluations and checkpoints ---- */

static struct ghp_evaluation evaluate(struct bench *b, struct run *run)
{
    struct ghp_rank_plan rank_plan = rank_plan_of(b, run);
    struct ghp_evaluation evaluation = {0};
    struct ghp_worker *worker = NULL;
    uint64_t before;

    if (!open_worker(b, run, &worker)) return evaluation;
    CHECK_STATUS(bench_steps(b, worker, 0, 2), GHP_OK);
    before = bench_fingerprint(worker);
    CHECK_STATUS(ghp_evaluate(worker,
                              (struct ghp_evaluation_request){
                                  .data = b->data, .set = GHP_DATA_TEST, .rank_plan = &rank_plan},
                              &evaluation),
                 GHP_OK);
    CHECK(bench_fingerprint(worker) == before);
    ghp_worker_close(worker);
    return evaluation;
}

/* Two steps under one sharding and the rest under another, to the bits of a training that nobody interrupted. */
static uint64_t resume(struct bench *b, struct run *run, enum ghp_param_sharding first,
                       enum ghp_param_sharding second)
{
    const struct ghp_checkpoint now = {.step = 2,
                                       .global_batch = b->rank_plan.lowering.problem.global_batch,
                                       .samples = b->training_config.order.n};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_worker *worker = NULL;
    uint64_t hash = 0;

    shard(b, first, 0, run);
    if (!open_worker(b, run, &worker)) return 0;
    CHECK_STATUS(bench_steps(b, worker, 0, 2), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_save(&kept, worker, now), GHP_OK);
    ghp_worker_close(worker);
    worker = NULL;
    shard(b, second, 0, run);
    if (!open_worker(b, run, &worker)) return 0;
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, 2, BENCH_STEPS), GHP_OK);
    hash = bench_fingerprint(worker);
    ghp_worker_close(worker);
    return hash;
}

static void check_between_steps(void)
{
    struct ghp_evaluation whole, sharded;
    struct run run = {0};
    uint64_t hash;
    struct bench b;

    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "onednn", 4),
                 GHP_OK);
    bench_shorten_test_set(&b, 13);
    run.splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    whole = evaluate(&b, &run);
    for (int k = GHP_SHARDING_GRADIENTS; k < GHP_SHARDING_COUNT; k++) {
        shard(&b, (enum ghp_param_sharding)k, 0, &run);
        sharded = evaluate(&b, &run);
        CHECK(sharded.loss == whole.loss && sharded.accuracy == whole.accuracy);
    }
    hash = resume(&b, &run, GHP_SHARDING_NONE, GHP_SHARDING_NONE);
    CHECK(resume(&b, &run, GHP_SHARDING_PASS, GHP_SHARDING_NONE) == hash);
    CHECK(resume(&b, &run, GHP_SHARDING_NONE, GHP_SHARDING_PASS) == hash);
    CHECK(resume(&b, &run, GHP_SHARDING_GRADIENTS, GHP_SHARDING_STEP) == hash);
    free(run.splits);
    bench_close(&b);
}

CHECK_TEST(sharding)
{
    const struct bench_numbers exact = {.ops = &ghp_backend_reference, .element_bytes = 8},
                               quick = {.ops = &ghp_backend_onednn, .element_bytes = 4};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    check_model(GHP_SOURCE_DIR "/tests/executor/tied.json", exact, true);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", exact, false);
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", quick, true);
    if (workers == 4) check_groups();
    check_memory();
    bench_make_folder(transport, workers, "sharding", folder);
    check_between_steps();
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
