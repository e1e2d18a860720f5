/* ghp-test: np=2 np_full=1,4 timeout=300
 *
 * A sharded update trains like one worker, and to the same bits as an all-reduce: by splits of every kind, with and
 * without buckets, in stages and micro-batches, in double on the reference backend and in float on the fast one, with
 * ghost batches too. Its momentum is the optimizer shards' alone, and the arena is the program's. A training continues
 * from either synchroniser's checkpoint with the other, under another plan, on fewer workers and on more: with
 * momentum, to the weights of a training that nobody interrupted.
 *
 * With `local`, workers' weights differ. They train to the weights and losses of one process that trains all replicas
 * in turn; averaged after each step, and without momentum, like one worker; one worker to the bits of SGD. A left-out
 * average is seen. A checkpoint has each worker's own, and continues to the bits of a training that nobody interrupted;
 * with another period it is refused. */
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

static const struct ghp_sync sharded = {.ops = &ghp_sync_sharded},
                             whole = {.ops = &ghp_sync_allreduce};
static struct ghp_transport *transport;
static int workers;
static char folder[BENCH_FOLDER];

static bool lies_in_shards(const struct ghp_program *program, const struct ghp_buffer *weight)
{
    for (int b = 0; b < program->n_buckets; b++)
        if (program->buckets[b].weights == weight->storage)
            return program->buckets[b].shard_bytes > 0;
    return false;
}

/* Momentum bytes of a program, and what they are by its buckets: an optimizer shard of each that has some, else all of
 * it. */
static void check_momentum(const struct ghp_program *program)
{
    int64_t bytes = 0, expected = 0;

    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (b->buffer_kind == GHP_BUFFER_MOMENT) bytes += b->bytes;
        if (b->buffer_kind == GHP_BUFFER_WEIGHT && !lies_in_shards(program, b))
            expected += b->bytes;
    }
    for (int b = 0; b < program->n_buckets; b++) {
        const struct ghp_bucket *bucket = &program->buckets[b];

        expected += bucket->shard_bytes;
        if (bucket->shard_bytes > 0)
            CHECK_EQ(bucket->shard_bytes * bucket->ranks.count, bucket->bytes);
    }
    CHECK_EQ(bytes, expected);
}

struct run { /* how a worker trains */
    const struct ghp_split *splits;
    const struct ghp_staging *staging;
    struct ghp_sync sync;
    int64_t bucket_bytes;
};

static bool open_worker(struct bench *b, struct run run, struct ghp_worker **worker)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;

    rank_plan.splits = run.splits;
    rank_plan.lowering.staging = run.staging;
    rank_plan.lowering.method.sync = run.sync;
    rank_plan.lowering.method.bucket_bytes = run.bucket_bytes;
    if (!CHECK_STATUS(bench_open_worker(b, &rank_plan, worker), GHP_OK)) return false;
    check_momentum(ghp_worker_program(*worker));
    return true;
}

/* Trains and compares with one worker; the fingerprint of all weights and momenta. */
static uint64_t train(struct bench *b, struct run run)
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
        fprintf(stderr, "%s by %s, buckets of %lld: e_w %.3g, e_g %.3g\n", b->model.name,
                run.sync.ops->name, (long long)run.bucket_bytes, v.weight_difference,
                v.gradient_difference);
    CHECK_STATUS(ghp_parameters_compare(worker, &plan.list, &different), GHP_OK);
    CHECK_EQ(different, -1);
    hash = bench_fingerprint(worker);
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    ghp_worker_close(worker);
    return hash;
}

static void check_same_bits(struct bench *b, struct run run)
{
    uint64_t shards, all;

    run.sync = sharded;
    shards = train(b, run);
    run.sync = whole;
    all = train(b, run);
    if (!CHECK(shards == all))
        fprintf(stderr, "%s, buckets of %lld: other bits\n", b->model.name,
                (long long)run.bucket_bytes);
}

/* By data with no buckets, several and one, by other splits with several. */
static void check_splits(struct bench *b, enum case_kind kind, unsigned seed)
{
    static const int64_t sizes[] = {20000, 0, INT64_C(1) << 40};
    struct ghp_split *splits =
        case_splits(&b->model, b->rank_plan.lowering.problem, kind, seed, workers);

    for (size_t i = 0; i < (kind == CASE_DATA ? sizeof sizes / sizeof sizes[0] : 1); i++)
        check_same_bits(b, (struct run){.splits = splits, .bucket_bytes = sizes[i]});
    free(splits);
}

/* Micro-batches in one stage; and two stages, of which the first has replicas that share an update. */
static void check_stages(struct bench *b)
{
    struct ghp_split *splits =
        case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    struct ghp_staging s = {.micro_batches = 2};
    int middle = 1;

    check_same_bits(b, (struct run){.splits = splits, .staging = &s, .bucket_bytes = 20000});
    while (middle < b->model.n_layers / 2 || !ghp_stage_may_start(&b->model, middle))
        middle++;
    s.n = 2;
    s.micro_batches = workers == 3 ? 3 : 2; /* of which each worker has as many samples */
    s.stage[0].workers = workers == 3 ? 2 : 1;
    s.stage[1].workers = 1;
    s.stage[1].first_layer = middle;
    if (workers > 2) check_same_bits(b, (struct run){.splits = splits, .staging = &s});
    free(splits);
}

static void check_model(const char *path, int ghost_batch, struct bench_numbers numbers)
{
    bool norms = false; /* over the global batch, so no micro-batches */
    struct bench b;

    if (!CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK)) return;
    for (int l = 0; l < b.model.n_layers; l++) {
        if (b.model.layers[l].op != GHP_OP_BATCH_NORM) continue;
        b.model.layers[l].norm.ghost_batch = ghost_batch;
        norms = true;
    }
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    check_splits(&b, CASE_DATA, 0);
    if (ghost_batch == 0) {
        check_splits(&b, CASE_MIXED, 1);
        if (check_full()) check_splits(&b, CASE_OUT, 0);
        if (check_full()) check_splits(&b, CASE_IN, 0);
    }
    if (!norms) check_stages(&b);
    bench_close(&b);
}

/* Whether the weights alone are those of one worker that nobody interrupted. */
static bool weights_pass(struct bench *b, struct ghp_worker *worker)
{
    struct ghp_snapshot plan = {0};
    struct ghp_verification v = {0};
    bool passed;

    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&plan, worker), GHP_OK);
    for (int i = 0; i < plan.list.n_trained; i++)
        memcpy(plan.gradients[i], b->alone.gradients[i],
               (size_t)plan.list.items[i].param->elements * sizeof(double));
    CHECK_STATUS(
        ghp_verify_compare(&plan, &b->alone,
                           (struct ghp_precision){b->rank_plan.lowering.element_bytes, false}, &v),
        GHP_OK);
    passed = v.passed;
    if (!passed && b->rank_plan.rank == 0) fprintf(stderr, "e_w %.3g\n", v.weight_difference);
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    return passed;
}

/* ---- checkpoints ---- */

struct resumption {
    struct ghp_sync first, second;
    int from, to; /* workers before and after: the first ranks; the others look on */
};

/* What one of the first ranks says, for all; no one continues before it was said. */
static uint64_t heard_from_first(struct ghp_comm *world, uint64_t said)
{
    uint64_t *all = ghp_alloc((size_t)workers, sizeof *all);

    CHECK_STATUS(world->ops->all_gather(world, &said, all, (int64_t)sizeof said), GHP_OK);
    said = all[0];
    free(all);
    return said;
}

static void of_workers(struct bench *b, int n)
{
    b->rank_plan.lowering.problem.workers = b->rank_plan.run.groups = n;
}

/* Two steps, and a checkpoint of them; returns the fingerprint of weights and momenta. */
static uint64_t train_first(struct bench *b, const struct resumption *r)
{
    const struct ghp_checkpoint now = {.step = 2,
                                       .global_batch = b->rank_plan.lowering.problem.global_batch,
                                       .samples = b->training_config.order.n};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_worker *worker = NULL;
    struct ghp_split *splits;
    uint64_t saved = 0;

    of_workers(b, r->from);
    if (b->rank_plan.rank >= r->from) return 0;
    splits = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_MIXED, 2, r->from);
    if (open_worker(b, (struct run){.splits = splits, .sync = r->first, .bucket_bytes = 20000},
                    &worker)) {
        CHECK_STATUS(bench_steps(b, worker, 0, 2), GHP_OK);
        saved = bench_fingerprint(worker);
        CHECK_STATUS(ghp_checkpoint_save(&kept, worker, now), GHP_OK);
    }
    ghp_worker_close(worker);
    free(splits);
    return saved;
}

/* From the checkpoint to the end, and the weights against those of one worker that nobody interrupted. */
static void train_second(struct bench *b, const struct resumption *r, uint64_t saved)
{
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_worker *worker = NULL;
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_split *splits;

    of_workers(b, r->to);
    if (b->rank_plan.rank >= r->to) return;
    splits = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_OWT, 0, r->to);
    if (!open_worker(b, (struct run){.splits = splits, .sync = r->second}, &worker)) return;
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
    CHECK_EQ(checkpoint.step, 2);
    CHECK(bench_fingerprint(worker) == saved); /* momenta too */
    CHECK_STATUS(bench_steps(b, worker, 2, BENCH_STEPS), GHP_OK);
    if (!CHECK(weights_pass(b, worker)) && b->rank_plan.rank == 0)
        fprintf(stderr, "%s on %d workers, then %s on %d\n", r->first.ops->name, r->from,
                r->second.ops->name, r->to);
    ghp_worker_close(worker);
    free(splits);
}

static void check_resume(struct bench *b, struct ghp_comm *world, const struct resumption *r)
{
    train_second(b, r, heard_from_first(world, train_first(b, r)));
    CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
}

/* By either synchroniser after the other, on as many workers, on fewer and on more. */
static void check_resumptions(struct ghp_comm *world)
{
    const struct bench_numbers numbers = {
        .ops = &ghp_backend_reference, .element_bytes = 8, .batch = 24};
    struct bench b;

    CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/small-resnet.json", numbers),
                 GHP_OK);
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    check_resume(&b, world, &(struct resumption){whole, sharded, workers, workers});
    for (int n = check_full() || workers == 1 ? 1 : workers - 1; n <= workers; n++) {
        if (n > 1 && n < workers - 1) continue;
        check_resume(&b, world, &(struct resumption){sharded, sharded, workers, n});
        check_resume(&b, world, &(struct resumption){sharded, whole, workers, n});
        if (n == workers) continue;
        check_resume(&b, world, &(struct resumption){sharded, sharded, n, workers});
        check_resume(&b, world, &(struct resumption){whole, sharded, n, workers});
    }
    bench_close(&b);
}

/* ---- workers whose weights differ ---- */

static struct ghp_sync local(int period)
{
    return (struct ghp_sync){.ops = &ghp_sync_local, .argument = period};
}

/* Losses of steps that were summed together are those of each step. */
static void check_losses(const struct ghp_losses *plan, const struct ghp_losses *reference,
                         double limit)
{
    CHECK_EQ(plan->steps, BENCH_STEPS);
    CHECK_EQ(plan->n, reference->n);
    for (int i = 0; i < plan->n && i < reference->n; i++)
        CHECK_NEAR(plan->kept[i], reference->kept[i], limit * reference->kept[i]);
}

/* Trains by the period, and compares with what one process makes of the same. */
static bool trains_like_reference(struct bench *b, int period, enum ghp_fault fault)
{
    struct ghp_split *splits =
        case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot plan = {0}, reference = {0};
    struct ghp_verification v = {0};
    bool passed;

    b->rank_plan.lowering.method.sync = local(period);
    b->rank_plan.run.fault = fault;
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &reference), GHP_OK);
    if (open_worker(b, (struct run){.splits = splits, .sync = local(period), .bucket_bytes = 20000},
                    &worker))
        CHECK_STATUS(ghp_verify_train(worker, &b->training_config, BENCH_STEPS, &plan), GHP_OK);
    CHECK_STATUS(
        ghp_verify_alone(&b->exec, &b->rank_plan, &b->training_config, BENCH_STEPS, &reference),
        GHP_OK);
    for (int i = 0; i < plan.list.n_trained && b->rank_plan.rank > 0;
         i++) /* of the first replica */
        memcpy(plan.gradients[i], reference.gradients[i],
               (size_t)plan.list.items[i].param->elements * sizeof(double));
    CHECK_STATUS(
        ghp_verify_compare(&plan, &reference,
                           (struct ghp_precision){b->rank_plan.lowering.element_bytes, false}, &v),
        GHP_OK);
    passed = v.passed;
    if (fault == GHP_FAULT_NONE)
        check_losses(&plan.losses, &reference.losses,
                     b->rank_plan.lowering.element_bytes == 8 ? 1e-12 : 1e-5);
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    ghp_snapshot_release(&reference);
    ghp_worker_close(worker);
    free(splits);
    b->rank_plan.lowering.method.sync = (struct ghp_sync){0};
    b->rank_plan.run.fault = GHP_FAULT_NONE;
    return passed;
}

/* One worker by itself, on each rank. */
static void check_lone(struct bench *b)
{
    struct bench lone = *b;
    struct ghp_split *splits =
        case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    uint64_t hash[2] = {0};

    of_workers(&lone, 1);
    lone.rank_plan.rank = 0;
    for (int i = 0; i < 2 && b->rank_plan.rank == 0; i++) {
        struct run run = {.splits = splits, .sync = i == 0 ? local(3) : whole};
        struct ghp_worker *worker = NULL;

        if (!open_worker(&lone, run, &worker)) break;
        CHECK_STATUS(bench_steps(&lone, worker, 0, BENCH_STEPS), GHP_OK);
        hash[i] = bench_fingerprint(worker);
        ghp_worker_close(worker);
    }
    CHECK(hash[0] == hash[1]);
    free(splits);
}

/* Without momentum the mean of all weights after each step is what one worker makes of the mean gradient. */
static void check_each_step(struct bench *b)
{
    const struct ghp_hyperparameters usual = b->training_config.hyperparameters;
    struct ghp_split *splits =
        case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    struct ghp_worker *worker = NULL;

    b->training_config.hyperparameters.momentum = 0;
    CHECK_STATUS(bench_train_alone(b), GHP_OK);
    if (open_worker(b, (struct run){.splits = splits, .sync = local(1)}, &worker)) {
        CHECK_STATUS(bench_steps(b, worker, 0, BENCH_STEPS), GHP_OK);
        CHECK(weights_pass(b, worker));
    }
    b->training_config.hyperparameters = usual;
    ghp_worker_close(worker);
    free(splits);
}

/* From a checkpoint between two averages. */
static void check_local_resume(struct bench *b)
{
    const struct ghp_checkpoint now = {.step = 2};
    struct ghp_split *splits =
        case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    struct run run = {.splits = splits, .sync = local(3)};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_worker *worker = NULL;
    uint64_t whole_run = 0;

    if (open_worker(b, run, &worker)) {
        CHECK_STATUS(bench_steps(b, worker, 0, 2), GHP_OK);
        CHECK_STATUS(ghp_checkpoint_save(&kept, worker, now), GHP_OK);
        CHECK_STATUS(bench_steps(b, worker, 2, BENCH_STEPS), GHP_OK);
        whole_run = bench_fingerprint_replicas(worker);
    }
    ghp_worker_close(worker);
    worker = NULL;
    if (open_worker(b, run, &worker)) {
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
        CHECK_STATUS(bench_steps(b, worker, 2, BENCH_STEPS), GHP_OK);
        CHECK(bench_fingerprint_replicas(worker) == whole_run);
    }
    ghp_worker_close(worker);
    worker = NULL;
    for (int i = 0; i < 2 && workers > 1; i++) {
        run.sync = i == 0 ? local(2) : whole;
        if (open_worker(b, run, &worker))
            CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_ERR_INPUT);
        ghp_worker_close(worker);
        worker = NULL;
    }
    free(splits);
}

static void check_local(const char *path, struct bench_numbers numbers)
{
    bool norms =
        strstr(path, "resnet") != NULL; /* one worker's statistics are the global batch's */
    struct bench b;

    if (!CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK)) return;
    CHECK(trains_like_reference(&b, 3, GHP_FAULT_NONE));
    if (workers > 1) CHECK(!trains_like_reference(&b, 2, GHP_FAULT_DROP_REDUCTION));
    check_lone(&b);
    if (!norms) check_each_step(&b);
    if (norms) check_local_resume(&b);
    bench_close(&b);
}

CHECK_TEST(sync)
{
    const struct bench_numbers exact = {.ops = &ghp_backend_reference, .element_bytes = 8},
                               fast = {.ops = &ghp_backend_onednn, .element_bytes = 4};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", 0, exact);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 0, exact);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 2, exact);
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", 0, fast);
    bench_make_folder(transport, workers, "sync", folder);
    check_resumptions(bench_workers(transport, workers));
    check_local(GHP_SOURCE_DIR "/models/lenet5.json", exact);
    check_local(GHP_SOURCE_DIR "/models/small-resnet.json", fast);
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
