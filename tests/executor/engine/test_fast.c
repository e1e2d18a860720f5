/* ghp-test: np=2 np_full=1,4 timeout=120
 *
 * Fast numerics: plans train like one worker that computes by direct algorithms; weights that lie blocked between steps
 * are read and written in the field's order, and replicas hold the same bits; biases that convolutions fuse are updated
 * before they run: flushing after every step changes no bit. So do plans that say which tensors lie blocked, and have
 * what is exchanged among them. This holds for a plain network and for a residual one. The latter's batch norms take
 * additions and ReLUs along, and their sums too if no other worker shares them: with one worker, or with ghost batches
 * of each worker's own.
 *
 * Bounds of the first step's gradients: 1e-4 of a tensor's size. Winograd's transforms multiply by up to 25 what
 * cancels again, so its rounding errors are some ten times those of direct sums (3e-7 to 8e-7 of a tensor's size each
 * pass), and a gradient has gone through at most ten such passes; numbers at wrong places err by the tensor's size
 * itself. */
#include "executor/state/parameters.h"
#include "executor/train/verify/verify.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

static const double limit = 1e-4;
static struct ghp_transport *transport;
static bool differs; /* other algorithms did compute */

static void open_bench(const char *path, bool fast, struct bench *b)
{
    const struct bench_numbers numbers = {
        .ops = &ghp_backend_onednn, .element_bytes = 4, .fast = fast};

    if (!CHECK_STATUS(bench_open_by(b, transport, path, numbers), GHP_OK)) exit(1);
}

/* Against the exact single worker. */
static void check_gradients(struct bench *b, const struct bench *exact,
                            const struct ghp_split *splits, const char *name)
{
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot plan = {0};
    struct ghp_verification v = {0};
    int different = 0;

    CHECK_STATUS(bench_worker(b, splits, &worker), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(ghp_verify_train(worker, &b->training_config, BENCH_STEPS, &plan), GHP_OK);
    CHECK_STATUS(ghp_verify_compare(&plan, &exact->alone, (struct ghp_precision){4, false}, &v),
                 GHP_OK);
    if (!CHECK(v.gradient_difference <= limit))
        for (int i = 0; i < v.n && transport->control->rank == 0; i++)
            fprintf(stderr, "    %s: %s %.3g\n", name, v.differences[i].name,
                    v.differences[i].gradient_difference);
    differs = differs || (v.gradient_difference > 0 && b != exact);
    CHECK_STATUS(ghp_parameters_compare(worker, &plan.list, &different), GHP_OK);
    CHECK_EQ(different, -1);
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    ghp_worker_close(worker);
}

static uint64_t train(struct bench *b, const struct ghp_split *splits, bool flushes)
{
    struct ghp_worker *worker = NULL;
    uint64_t hash;

    CHECK_STATUS(bench_worker(b, splits, &worker), GHP_OK);
    for (int t = 0; t < BENCH_STEPS; t++)
        if (flushes) CHECK_STATUS(bench_steps(b, worker, t, t + 1), GHP_OK);
    if (!flushes) CHECK_STATUS(bench_steps(b, worker, 0, BENCH_STEPS), GHP_OK);
    hash = bench_fingerprint(worker);
    ghp_worker_close(worker);
    return hash;
}

/* What is written is read back, bit by bit, and is what a worker with plain weights holds; in memory it lies
 * otherwise. */
static void check_order(struct bench *b, struct bench *exact, const struct ghp_split *splits)
{
    struct ghp_worker *fast = NULL, *plain = NULL;
    struct ghp_tensors_list list = {0};
    int nchw16c = 0;

    CHECK_STATUS(bench_worker(b, splits, &fast), GHP_OK);
    CHECK_STATUS(bench_worker(exact, splits, &plain), GHP_OK);
    CHECK_STATUS(ghp_tensors_list_init(&b->model, &list), GHP_OK);
    for (int i = 0; i < list.n; i++) {
        const struct ghp_tensor *t = &list.items[i];
        size_t bytes = (size_t)t->param->elements * sizeof(float);
        void *one = ghp_alloc(bytes, 1), *other = ghp_alloc(bytes, 1);
        int64_t here = 0;

        CHECK(!ghp_worker_blocks_weights(plain, t->layer));
        CHECK_STATUS(ghp_parameters_gather(fast, t, GHP_BUFFER_WEIGHT, one), GHP_OK);
        CHECK_STATUS(ghp_parameters_gather(plain, t, GHP_BUFFER_WEIGHT, other), GHP_OK);
        CHECK(memcmp(one, other, bytes) == 0);
        for (int64_t j = 0; j < t->param->elements; j++)
            ((float *)one)[j] = (float)j;
        CHECK_STATUS(ghp_parameters_scatter(fast, t, GHP_BUFFER_MOMENT, one), GHP_OK);
        CHECK_STATUS(ghp_parameters_gather(fast, t, GHP_BUFFER_MOMENT, other), GHP_OK);
        CHECK(memcmp(one, other, bytes) == 0);
        if (ghp_worker_blocks_weights(fast, t->layer)) {
            const float *w = ghp_worker_tensor(fast, GHP_BUFFER_WEIGHT, t->layer, t->slot, &here);
            const float *p = ghp_worker_tensor(plain, GHP_BUFFER_WEIGHT, t->layer, t->slot, NULL);

            CHECK(memcmp(w, p, (size_t)here * sizeof(float)) != 0);
            nchw16c++;
        }
        free(one);
        free(other);
    }
    CHECK(nchw16c > 0);
    ghp_tensors_release(&list);
    ghp_worker_close(plain);
    ghp_worker_close(fast);
}

/* All blocked that can be, and every second and third convolution's output with what lies as that does. */
static void check_said(struct bench *b, const struct bench *exact, const struct ghp_split *splits)
{
    const struct ghp_model *model = &b->model;
    struct ghp_worker *worker = NULL;
    bool nchw16c[32];

    GHP_ASSERT(model->n_layers <= 32);
    b->rank_plan.lowering.nchw16c = nchw16c;
    for (int every = 1; every <= 3; every++) {
        int convolutions = 0;

        for (int v = 0; v < model->n_layers; v++)
            nchw16c[v] = model->layers[v].op != GHP_OP_CONV2D || convolutions++ % every == 0;
        case_formats(model, NULL, nchw16c);
        if (b != exact) {
            check_gradients(b, exact, splits, "what a plan says");
        } else if (every == 1) { /* kernels on plain tensors alone */
            b->rank_plan.splits = splits;
            CHECK_STATUS(ghp_rank_plan_open(&b->exec, &b->rank_plan, &worker), GHP_ERR_INPUT);
            CHECK_MESSAGE("make the plan again with ghp-plan");
        }
    }
    b->rank_plan.lowering.nchw16c = NULL;
}

static void norm_over(struct bench *b, int ghost_batch)
{
    for (int l = 0; l < b->model.n_layers; l++)
        if (b->model.layers[l].op == GHP_OP_BATCH_NORM)
            b->model.layers[l].norm.ghost_batch = ghost_batch;
}

/* ghost: samples that each batch norm is over; 0: the global batch */
static void check_model(const char *path, int ghost_batch)
{
    struct bench fast, exact;

    open_bench(path, false, &exact);
    open_bench(path, true, &fast);
    norm_over(&exact, ghost_batch);
    norm_over(&fast, ghost_batch);
    CHECK_STATUS(bench_train_alone(&exact), GHP_OK);
    for (int kind = CASE_DATA; kind <= CASE_MIXED; kind++) {
        struct ghp_split *splits =
            case_splits(&fast.model, fast.rank_plan.lowering.problem, (enum case_kind)kind, 3,
                        fast.rank_plan.lowering.problem.workers);

        check_gradients(&fast, &exact, splits, case_name((enum case_kind)kind));
        if (kind == CASE_DATA) check_order(&fast, &exact, splits);
        CHECK(train(&fast, splits, false) == train(&fast, splits, true));
        check_said(&fast, &exact, splits);
        check_said(&exact, &exact, splits);
        free(splits);
    }
    CHECK(differs); /* of the first network: the second is too small for any but direct ones */
    bench_close(&fast);
    bench_close(&exact);
}

CHECK_TEST(fast)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    check_model(GHP_SOURCE_DIR "/tests/executor/blocks.json", 0);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 0);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 2);
    ghp_transport_end(transport);
    return check_end();
}
