/* tests/executor/backend/onednn/test_onednn.c - the oneDNN backend against the reference backend in float: every
 * operation and pass, odd shapes, one and two threads, exact and fast; runs repeat bit for bit; every way that
 * the library offers for a convolution; opbench.
 *
 * Bound: a sum of m products that is rounded after each addition errs by about sqrt(m) eps of its root-mean-square
 * size, in the worst order by m eps; blocked sums stay near the former. Compared is the root-mean-square difference
 * over the tensor against its root-mean-square value: 4 + sqrt(m) eps for direct algorithms. Winograd's transforms of
 * tiles of 6 x 6 inputs multiply that by their norms, measured 4-8 times: 16 here. */
#include "tests/executor/op_case.h"
#include "tests/check.h"

#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/opbench/opbench.h"
#include "executor/backend/cpu/convolution/winograd.h"

#include <float.h>

static const struct ghp_backend_ops *const ops = &ghp_backend_onednn;
static struct ghp_backend *reference, *backends[4];

static void open_backends(void)
{
    struct ghp_backend_config configs[4];
    for (int i = 0; i < 4; i++)
        configs[i] =
            (struct ghp_backend_config){.element_bytes = 4, .threads = 1 + i % 2, .exact = i < 2};
    CHECK_STATUS(ghp_backend_reference.open(&configs[0], &reference), GHP_OK);
    for (int i = 0; i < 4; i++)
        if (!CHECK_STATUS(ops->open(&configs[i], &backends[i]), GHP_OK)) exit(1);
}

static void close_backends(void)
{
    ghp_backend_reference.close(reference);
    for (int i = 0; i < 4; i++)
        ops->close(backends[i]);
}

/* Products that one element of what a pass writes is summed from. */
static double products(const struct ghp_local *l, enum ghp_pass pass)
{
    int64_t places = l->window.r * l->window.s;
    if (l->op == GHP_OP_LINEAR)
        return (double)(pass == GHP_PASS_FORWARD         ? l->c
                        : pass == GHP_PASS_BACKWARD_DATA ? l->k
                                                         : l->n);
    if (l->op != GHP_OP_CONV2D) return (double)(l->n * l->h * l->w);
    if (pass == GHP_PASS_FORWARD) return (double)(l->c / l->window.groups * places);
    if (pass == GHP_PASS_BACKWARD_DATA) return (double)(l->k / l->window.groups * places);
    return (double)(l->n * l->p * l->q);
}

/* The bound of a batch norm's sums, which are in double. In BACKWARD_STATS the kernels round each term's xhat to float,
 * an error of eps at most in a term of 0.6 in the mean. */
static double stats_bound(const struct ghp_local *local, enum ghp_pass pass)
{
    double terms = (double)(local->n * local->h * local->w);
    return pass == GHP_PASS_BACKWARD_STATS ? sqrt(terms) * FLT_EPSILON : 1e-6;
}

/* The bound of the loss, which is a sum of doubles. The exponentials of a sequence's positions are floats, a few units
 * in the last place off, and so is the logarithm of their sum. */
static double metric_bound(const struct ghp_local *local)
{
    return local->h > 1 ? (double)(local->n * local->h) * 4.0 * FLT_EPSILON : 1e-9;
}

static void compare(const struct ghp_operand_set *got, const struct ghp_operand_set *right,
                    enum ghp_pass pass, const char *algorithm)
{
    struct op_tensor a[OP_MAX_TENSORS], b[OP_MAX_TENSORS];
    int n = op_case_written(got, pass, a);
    double bound = (4.0 + sqrt(products(&got->local, pass))) * FLT_EPSILON;
    op_case_written(right, pass, b);
    if (strstr(algorithm, "wino") != NULL) bound *= 16.0;
    for (int t = 0; t < n; t++) {
        double difference = 0.0, size = 0.0;
        for (int64_t i = 0; i < a[t].elements; i++) {
            double value = op_case_get(right, b[t].data, i);
            difference += pow(op_case_get(got, a[t].data, i) - value, 2.0);
            size += value * value;
        }
        if (!CHECK_NEAR(sqrt(difference), 0.0, bound * sqrt(size)))
            fprintf(stderr, "  in %s of %s by %s\n", a[t].name, op_case_text(&got->local, pass),
                    algorithm);
    }
}

static void must_init(struct ghp_operand_set *set, const struct ghp_local *local)
{
    if (!CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, set), GHP_OK)) exit(1);
    op_case_arguments(set);
}

/* Each pass starts from the reference's tensors, so that errors do not add up. */
static void check_passes(const struct ghp_local *local, const struct ghp_backend_ops *by,
                         struct ghp_backend *backend)
{
    static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD, GHP_PASS_BACKWARD_STATS,
                                          GHP_PASS_BACKWARD_WEIGHT, GHP_PASS_BACKWARD_DATA};
    struct ghp_operand_set right, got;
    char algorithm[64];
    must_init(&right, local);
    must_init(&got, local);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (!ghp_local_has_pass(local, order[i])) continue;
        memcpy(got.memory, right.memory, (size_t)right.bytes);
        op_case_run(&right, &ghp_backend_reference, reference, order[i], NULL);
        op_case_run(&got, by, backend, order[i], algorithm);
        compare(&got, &right, order[i], algorithm);
#if defined(__x86_64__)
        if (by == ops && (local->op == GHP_OP_CONV2D || local->op == GHP_OP_LINEAR))
            if (!CHECK(strcmp(algorithm, "loop") != 0))
                fprintf(stderr, "  in %s\n", op_case_text(local, order[i]));
#endif
        int64_t numbers = ghp_local_stats_bytes(local) / (int64_t)sizeof(double);
        for (int64_t c = 0; c < numbers; c++)
            CHECK_NEAR(got.args.at.stats[c], right.args.at.stats[c], stats_bound(local, order[i]));
        for (int m = 0; got.args.at.metrics != NULL && m < GHP_METRIC_COUNT; m++)
            CHECK_NEAR(got.args.at.metrics[m], right.args.at.metrics[m], metric_bound(local));
    }
    ghp_operand_set_release(&right);
    ghp_operand_set_release(&got);
}

/* The same kernel twice and another kernel of the same pass give the same bits. */
static void check_repeats(const struct ghp_local *local, struct ghp_backend *backend)
{
    struct ghp_operand_set once, again;
    must_init(&once, local);
    must_init(&again, local);
    op_case_run_all(&once, ops, backend);
    op_case_run_all(&again, ops, backend);
    if (!CHECK(memcmp(once.memory, again.memory, (size_t)once.bytes) == 0))
        fprintf(stderr, "  in %s\n", op_case_text(local, GHP_PASS_FORWARD));
    ghp_operand_set_release(&once);
    ghp_operand_set_release(&again);
}

/* Parts that compute every number alike give the same bits, however many they are. */
static void check_threads(const struct ghp_local *local)
{
    struct ghp_operand_set one, two;
    if (local->op != GHP_OP_ATTENTION && local->op != GHP_OP_ROTARY && local->op != GHP_OP_GELU &&
        local->op != GHP_OP_SILU)
        return;
    must_init(&one, local);
    must_init(&two, local);
    op_case_run_all(&one, ops, backends[0]);
    op_case_run_all(&two, ops, backends[1]);
    if (!CHECK(memcmp(one.memory, two.memory, (size_t)one.bytes) == 0))
        fprintf(stderr, "  in %s\n", op_case_text(local, GHP_PASS_FORWARD));
    ghp_operand_set_release(&one);
    ghp_operand_set_release(&two);
}

static struct ghp_local conv(int64_t n, int64_t c, int64_t size, int64_t k)
{
    struct ghp_window window = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, false};
    return op_case_conv((struct ghp_local){.op = GHP_OP_CONV2D,
                                           .n = n,
                                           .c = c,
                                           .h = size,
                                           .w = size,
                                           .k = k,
                                           .n_inputs = 1,
                                           .window = window});
}

/* Shapes at which the choice of algorithm turns, and where it must not. */
static void check_choices(void)
{
    const struct ghp_local large = conv(4, 32, 16, 48), tiny = conv(2, 32, 4, 32);
    struct ghp_operand_set set;
    char exact[64], fast[64];
    must_init(&set, &large);
    op_case_run(&set, ops, backends[0], GHP_PASS_FORWARD, exact);
    op_case_run(&set, ops, backends[2], GHP_PASS_FORWARD, fast);
    CHECK(strstr(exact, "wino") == NULL);
    fprintf(stderr, "exact: %s; fast: %s\n", exact, fast);
    ghp_operand_set_release(&set);
    for (int i = 0; i < 4; i++) {
        check_passes(&large, ops, backends[i]);
        check_passes(&tiny, ops, backends[i]);
    }
    check_repeats(&large, backends[1]);
    check_repeats(&tiny, backends[1]);
}

static enum ghp_status prepare_small_batch(struct ghp_backend *backend,
                                           const struct ghp_local *local, enum ghp_pass pass,
                                           struct ghp_kernel **kernel)
{
    return ops->prepare_as(backend, local, pass, GHP_CPU_KERNEL_SMALL_BATCH, kernel);
}

static enum ghp_status prepare_depthwise(struct ghp_backend *backend, const struct ghp_local *local,
                                         enum ghp_pass pass, struct ghp_kernel **kernel)
{
    return ops->prepare_as(backend, local, pass, GHP_CPU_KERNEL_DEPTHWISE, kernel);
}

static enum ghp_status prepare_winograd(struct ghp_backend *backend, const struct ghp_local *local,
                                        enum ghp_pass pass, struct ghp_kernel **kernel)
{
    return ops->prepare_as(backend, local, pass, GHP_WINOGRAD, kernel);
}

/* ---- every way that the library offers for a convolution ---- */

static const char *way;

static enum ghp_status prepare_way(struct ghp_backend *backend, const struct ghp_local *local,
                                   enum ghp_pass pass, struct ghp_kernel **kernel)
{
    return ops->prepare_as(backend, local, pass, way, kernel);
}

static void check_ways_of(const struct ghp_local *local, enum ghp_pass pass)
{
    struct ghp_backend_ops by_way = *ops;
    struct ghp_operand_set right, got;
    struct ghp_algorithms names;
    char algorithm[64];

    by_way.prepare = prepare_way;
    CHECK_STATUS(ops->algorithms(backends[2], local, pass, (struct ghp_kernel_spec){0}, &names),
                 GHP_OK);
    must_init(&right, local);
    must_init(&got, local);
    op_case_run(&right, &ghp_backend_reference, reference, pass, NULL);
    for (int i = 0; i < names.n; i++) {
        way = names.names[i];
        op_case_run(&got, &by_way, backends[2], pass, algorithm);
        compare(&got, &right, pass, algorithm);
    }
    ghp_operand_set_release(&right);
    ghp_operand_set_release(&got);
}

/* Channels that fill no vector of 8 or 16, windows with and without strides. */
static void check_ways(void)
{
    static const int64_t channels[] = {3, 4, 8, 12, 16, 20}, sizes[] = {7, 16};

    for (int i = 0; i < 2 * 6 * 6 * 3 * 2; i++) {
        int64_t size = sizes[i % 2], c = channels[i / 2 % 6], k = channels[i / 12 % 6],
                side = i / 72 % 3 == 0 ? 1 : 3, stride = i / 72 % 3 == 1 ? 1 : 1 + i / 216;
        struct ghp_local local = conv(6, c, size, k);

        local.window = (struct ghp_window){side,     side,     stride, stride, side / 2, side / 2,
                                           side / 2, side / 2, 1,      1,      1,        false};
        local = op_case_conv(local);
        check_ways_of(&local, GHP_PASS_FORWARD);
        check_ways_of(&local, GHP_PASS_BACKWARD_DATA);
        check_ways_of(&local, GHP_PASS_BACKWARD_WEIGHT);
    }
}

static bool offers_for(struct ghp_backend *backend, const struct ghp_local *local,
                       enum ghp_pass pass, const char *name)
{
    struct ghp_algorithms names;
    bool found = false;
    CHECK_STATUS(ops->algorithms(backend, local, pass, (struct ghp_kernel_spec){0}, &names),
                 GHP_OK);
    for (int i = 0; i < names.n; i++)
        found = found || strcmp(names.names[i], name) == 0;
    return found;
}

static bool offers(struct ghp_backend *backend, const struct ghp_local *local, const char *name)
{
    return offers_for(backend, local, GHP_PASS_FORWARD, name);
}

/* Linear layers over few samples: tiles, what is left of rows, samples and columns, more than one chunk of columns, and
 * gradients large enough to be written past the caches. */
static void check_small_batch(void)
{
    static const int64_t sizes[][3] = {{1, 16, 3},    {3, 50, 9},      {4, 1024, 8}, {8, 1040, 40},
                                       {9, 2119, 17}, {32, 1100, 300}, {5, 7, 2},    {2, 4096, 72}};
    struct ghp_backend_ops small_batch = *ops;
    small_batch.prepare = prepare_small_batch;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ghp_local local = {.op = GHP_OP_LINEAR,
                                  .n = sizes[i][0],
                                  .c = sizes[i][1],
                                  .h = 1,
                                  .w = 1,
                                  .k = sizes[i][2],
                                  .p = 1,
                                  .q = 1,
                                  .n_inputs = 1};
        struct ghp_kernel *kernel = NULL;
        CHECK(offers(backends[2], &local, GHP_CPU_KERNEL_SMALL_BATCH) &&
              !offers(backends[0], &local, GHP_CPU_KERNEL_SMALL_BATCH));
        CHECK_STATUS(small_batch.prepare(backends[2], &local, GHP_PASS_FORWARD, &kernel), GHP_OK);
        CHECK_TEXT(ops->algorithm(kernel), GHP_CPU_KERNEL_SMALL_BATCH);
        ops->release(kernel);
        check_passes(&local, &small_batch, backends[2]);
        check_passes(&local, &small_batch, backends[3]);
        local.n = 33;
        CHECK(!offers(backends[2], &local, GHP_CPU_KERNEL_SMALL_BATCH));
    }
}

/* Windows that hang over each edge, or over both; strides and holes; nothing of it where a channel has several outputs
 * or a block is not whole. */
static void check_depthwise(void)
{
    static const struct {
        int64_t n, c, size, side, stride, dilation, pad;
    } cases[] = {{1, 16, 6, 3, 1, 1, 1},  {2, 48, 13, 3, 2, 1, 0}, {3, 96, 8, 5, 1, 1, 2},
                 {2, 32, 9, 5, 2, 1, 2},  {5, 16, 2, 5, 1, 1, 2},  {2, 64, 7, 7, 1, 1, 3},
                 {1, 16, 1, 7, 1, 1, 3},  {2, 16, 11, 3, 1, 2, 2}, {1, 32, 12, 7, 3, 1, 6},
                 {2, 144, 9, 5, 3, 2, 4}, {1, 16, 3, 7, 2, 1, 5}};
    struct ghp_backend_ops depthwise = *ops;
    depthwise.prepare = prepare_depthwise;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t side = cases[i].side, stride = cases[i].stride, pad = cases[i].pad;
        struct ghp_local local = conv(cases[i].n, cases[i].c, cases[i].size, cases[i].c);
        local.window = (struct ghp_window){.r = side,
                                           .s = side,
                                           .stride_h = stride,
                                           .stride_w = stride,
                                           .pad_top = pad,
                                           .pad_bottom = pad,
                                           .pad_left = pad,
                                           .pad_right = pad,
                                           .dilation_h = cases[i].dilation,
                                           .dilation_w = cases[i].dilation,
                                           .groups = local.c};
        local = op_case_conv(local);
        CHECK(offers_for(backends[2], &local, GHP_PASS_BACKWARD_WEIGHT, GHP_CPU_KERNEL_DEPTHWISE));
        CHECK(!offers_for(backends[0], &local, GHP_PASS_BACKWARD_WEIGHT, GHP_CPU_KERNEL_DEPTHWISE));
        CHECK(!offers(backends[2], &local, GHP_CPU_KERNEL_DEPTHWISE));
        check_passes(&local, &depthwise, backends[2]);
        check_passes(&local, &depthwise, backends[3]);
        local.k *= 2;
        CHECK(!offers_for(backends[2], &local, GHP_PASS_BACKWARD_WEIGHT, GHP_CPU_KERNEL_DEPTHWISE));
    }
}

/* Tiles that hang over the image's edges, more than are taken at once, whole chunks of channels and what is left of
 * them, each padding; nothing of it where an image has holes, strides, groups or part of a block. */
static void check_winograd(void)
{
    static const struct {
        int64_t n, c, size, k, side, pad;
    } cases[] = {{1, 16, 6, 16, 3, 1},  {2, 32, 13, 48, 3, 0},  {5, 64, 16, 80, 3, 1},
                 {1, 144, 9, 64, 3, 2}, {1, 16, 5, 16, 5, 0},   {3, 64, 11, 96, 5, 2},
                 {9, 80, 7, 16, 5, 1},  {2, 16, 10, 112, 5, 4}, {1, 128, 3, 144, 5, 3}};
    struct ghp_backend_ops winograd = *ops;
    winograd.prepare = prepare_winograd;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t side = cases[i].side, pad = cases[i].pad;
        struct ghp_local local = conv(cases[i].n, cases[i].c, cases[i].size, cases[i].k);
        local.window = (struct ghp_window){side, side, 1, 1, pad, pad, pad, pad, 1, 1, 1, false};
        local = op_case_conv(local);
        CHECK(!offers(backends[0], &local, GHP_WINOGRAD));
        if (!offers(backends[2], &local, GHP_WINOGRAD)) {
            fprintf(stderr, "this processor has neither AVX-512 nor AVX2: no Winograd's tiles\n");
            return;
        }
        struct ghp_kernel *kernel = NULL;
        CHECK_STATUS(winograd.prepare(backends[2], &local, GHP_PASS_FORWARD, &kernel), GHP_OK);
        CHECK_TEXT(ops->algorithm(kernel), GHP_WINOGRAD);
        ops->release(kernel);
        check_passes(&local, &winograd, backends[2]);
        check_passes(&local, &winograd, backends[3]);
        local.window.stride_w = 2;
        CHECK(!offers(backends[2], &local, GHP_WINOGRAD));
        local.window.stride_w = 1;
        local.window.dilation_h = 2;
        CHECK(!offers(backends[2], &local, GHP_WINOGRAD));
        local.window.dilation_h = 1;
        local.k += 8;
        CHECK(!offers(backends[2], &local, GHP_WINOGRAD));
    }
}

static void check_update(const struct ghp_optimizer *optimizer)
{
    enum { N = 40001, TENSORS = 1 + GHP_MAX_MOMENTS };
    float *block = ghp_alloc((1 + 2 * TENSORS) * (size_t)N, sizeof *block);
    float *dw = block, *w = dw + N, *v = w + N, *w1 = w + TENSORS * N, *v1 = w1 + N;
    struct ghp_update update = {.optimizer = optimizer,
                                .w = w,
                                .moment = {v, v + N},
                                .dw = dw,
                                .elements = N,
                                .given = ghp_optimizer_usual(optimizer)};
    struct ghp_update other = update;
    for (int i = 0; i < N; i++) {
        w[i] = w1[i] = (float)(i % 101) * 0.01f;
        v[i] = v1[i] = (float)(i % 37) * 0.1f - 1.0f;
        v[N + i] = v1[N + i] = (float)(i % 41) * 0.1f;
        dw[i] = (float)(i % 53) * 0.02f - 0.5f;
    }
    other.w = w1;
    other.moment[0] = v1;
    other.moment[1] = v1 + N;
    for (int step = 0; step < 2; step++) { /* without and with decay */
        update.decays = other.decays = step == 1;
        update.given.weight_decay = 0.01;
        if (optimizer->complete != NULL) optimizer->complete(&update.given, 3 + step);
        other.given = update.given;
        CHECK_STATUS(ops->update(backends[1], &update), GHP_OK);
        CHECK_STATUS(ghp_backend_reference.update(reference, &other), GHP_OK);
        CHECK(memcmp(w, w1, TENSORS * N * sizeof *w) == 0);
    }
    CHECK_STATUS(ops->accumulate(backends[1], w, dw, (struct ghp_buffer_extent){N, 4}), GHP_OK);
    for (int i = 0; i < N; i += 1000)
        CHECK_NEAR(w[i], w1[i] + dw[i], 0.0);
    CHECK_STATUS(ops->accumulate_masked(backends[1], &(struct ghp_masked_sum){w1, dw, v, {N, 4}}),
                 GHP_OK);
    for (int i = 0; i < N; i++)
        CHECK(w1[i] == (v[i] > 0 ? w[i] : 0));
    free(block);
}

/* On its own tensors, and on copies taken in turns: three and a part, so that they come round. */
static void check_opbench(const struct ghp_local *local)
{
    for (int i = 0; i < 2 * GHP_PASS_COUNT; i++) {
        struct ghp_opbench_task task = {.local = *local, .pass = (enum ghp_pass)(i / 2)};
        struct ghp_opbench *bench = NULL;
        int64_t alone = ghp_opbench_bytes(&task, 4);

        if (!ghp_local_has_pass(local, task.pass)) continue;
        CHECK(alone > 0);
        if (i % 2 == 1) {
            task.other_bytes = 3 * alone + 1;
            CHECK_EQ(ghp_opbench_bytes(&task, 4), 4 * alone + task.other_bytes);
        }
        if (!CHECK_STATUS(ghp_opbench_open(ops, backends[2], &task, &bench), GHP_OK)) continue;
        CHECK_STATUS(ghp_opbench_run(bench, 9), GHP_OK);
        CHECK(strlen(ghp_opbench_algorithm(bench)) > 0);
        ghp_opbench_close(bench);
    }
    ghp_opbench_close(NULL);
}

static void check_refusals(void)
{
    struct ghp_backend *none = NULL;
    CHECK(!ops->has_precision(8));
    CHECK_STATUS(ops->open(&(struct ghp_backend_config){.element_bytes = 8, .threads = 1}, &none),
                 GHP_ERR_INPUT);
    CHECK_MESSAGE("--backend reference");
    CHECK_STATUS(ops->open(&(struct ghp_backend_config){.element_bytes = 4, .threads = 0}, &none),
                 GHP_ERR_INPUT);
    CHECK(ghp_backend_find("onednn") == ops);
}

CHECK_TEST(onednn)
{
    int n;
    const struct ghp_local *cases = op_case_all(&n);
    struct ghp_backend three = {
        .config = {.element_bytes = 4,
                   .threads = 3,
                   .exact = true}}; /* the loops that stand in for the library, cut in three */
    struct ghp_backend_ops loops = *ops;
    loops.prepare = ghp_cpu_kernel_prepare;
    open_backends();
    check_ways();
    for (int i = 0; i < n; i++) {
        for (int b = 0; b < 4; b++)
            check_passes(&cases[i], ops, backends[b]);
        if (cases[i].op != GHP_OP_CONV_TRANSPOSE) /* has a convolution's */
            check_passes(&cases[i], &loops, &three);
        check_repeats(&cases[i], backends[0]);
        check_repeats(&cases[i], backends[1]);
        check_threads(&cases[i]);
        check_opbench(&cases[i]);
    }
    for (int b = 0; b < 4; b++) {
        op_case_divided(ops, backends[b], 4, 8 * FLT_EPSILON);
        op_case_two_labels(ops, backends[b], 4, 8 * FLT_EPSILON);
        op_case_outputs(ops, backends[b], 4, 8 * FLT_EPSILON);
    }
    check_choices();
    check_small_batch();
    check_depthwise();
    check_winograd();
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        check_update(ghp_optimizer_at(i));
    check_refusals();
    close_backends();
    return check_end();
}
