/* tests/executor/backend/reference/test_reference.c - the reference backend: a kernel for every pass that an operation
 * has, forward against the definitions, gradients against finite differences of the forward pass in double, float
 * against double, and what else each operation promises. */
#include "tests/executor/op_case.h"
#include "tests/check.h"

#include <float.h>

static const struct ghp_backend_ops *const ops = &ghp_backend_reference;
static struct ghp_backend *doubles, *floats;

static void open_backends(void)
{
    CHECK_STATUS(
        ops->open(&(struct ghp_backend_config){.element_bytes = 8, .threads = 1}, &doubles),
        GHP_OK);
    CHECK_STATUS(ops->open(&(struct ghp_backend_config){.element_bytes = 4, .threads = 1}, &floats),
                 GHP_OK);
}

static void must_init(struct ghp_operand_set *set, const struct ghp_local *local, int element_bytes)
{
    if (!CHECK_STATUS(ghp_operand_set_init(local, element_bytes, GHP_OPERAND_SET_ALL, set), GHP_OK))
        exit(1);
    op_case_arguments(set);
}

/* Checks that every operation has a kernel for each of its passes, and a case below. */
static void check_rows(const struct ghp_local *cases, int n)
{
    for (int op = 0; op < GHP_OP_COUNT; op++) {
        const struct ghp_local local = {.op = (enum ghp_op)op,
                                        .n = 1,
                                        .c = 1,
                                        .h = 1,
                                        .w = 1,
                                        .k = 1,
                                        .p = 1,
                                        .q = 1,
                                        .window = {.r = 1, .s = 1, .groups = 1},
                                        .parts = ghp_op_all()[op]->is_loss ? 2 : 0};
        int passes = 0, tested = 0;

        for (int pass = 0; pass < GHP_PASS_COUNT; pass++) {
            bool has = ghp_local_has_pass(&local, (enum ghp_pass)pass);
            struct ghp_kernel *kernel = NULL;

            passes += has ? 1 : 0;
            if (!CHECK_STATUS(ops->prepare(doubles, &local, (enum ghp_pass)pass, &kernel),
                              has ? GHP_OK : GHP_ERR_INPUT))
                fprintf(stderr, "  in %s\n", op_case_text(&local, (enum ghp_pass)pass));
            if (kernel != NULL) ops->release(kernel);
            CHECK(ops->has(local.op, (enum ghp_pass)pass) == has);
        }
        for (int i = 0; ghp_backend_all()[i] != NULL; i++)
            CHECK(ghp_backend_has_op(ghp_backend_all()[i], local.op));
        for (int i = 0; i < n; i++)
            tested += cases[i].op == local.op ? 1 : 0;
        if (!CHECK((tested > 0) == (passes > 0)))
            fprintf(stderr, "  in %s\n", ghp_op_name(local.op));
    }
}

static bool trains_state(const struct ghp_local *local)
{
    return local->op == GHP_OP_BATCH_NORM;
}

/* Forward passes only, without changing running statistics. */
static void forward(struct ghp_operand_set *set, struct ghp_backend *backend)
{
    double before[2][64] = {{0}};
    for (int s = 0; trains_state(&set->local) && s < 2; s++)
        for (int64_t i = 0; i < set->local.c; i++)
            before[s][i] = op_case_get(set, set->args.at.state[s], i);
    if (ghp_local_has_pass(&set->local, GHP_PASS_STATS))
        op_case_run(set, ops, backend, GHP_PASS_STATS, NULL);
    op_case_run(set, ops, backend, GHP_PASS_FORWARD, NULL);
    for (int s = 0; trains_state(&set->local) && s < 2; s++)
        for (int64_t i = 0; i < set->local.c; i++)
            op_case_set(set, set->args.at.state[s], i, before[s][i]);
}

/* Each term of a sum is rounded once: |error| <= terms eps max|term|; the largest cases have a few hundred terms. */
static void check_definition(const struct ghp_local *local)
{
    struct ghp_operand_set set;
    int64_t n = ghp_local_out_elements(local);
    double *y = ghp_alloc((size_t)n, sizeof *y);
    must_init(&set, local, 8);
    for (int training = 1; training >= 0; training--) {
        double worst = 0.0;
        set.args.training = training == 1;
        op_case_define(&set, y);
        forward(&set, doubles);
        for (int64_t i = 0; i < n; i++)
            worst = fmax(worst, fabs(op_case_get(&set, set.args.at.y, i) - y[i]));
        if (!CHECK_NEAR(worst, 0.0, 1e-12))
            fprintf(stderr, "  in %s\n", op_case_text(local, GHP_PASS_FORWARD));
    }
    free(y);
    ghp_operand_set_release(&set);
}

static void clear_metrics(struct ghp_operand_set *set)
{
    if (set->args.at.metrics != NULL)
        memset(set->args.at.metrics, 0, GHP_METRIC_COUNT * sizeof(double));
}

/* The scalar whose gradient the backward passes give when dy is the set's dy. */
static double objective(struct ghp_operand_set *set)
{
    forward(set, doubles);
    if (ghp_op_of(set->local.op)->is_loss) {
        double loss = set->args.at.metrics[GHP_METRIC_LOSS];
        clear_metrics(set);
        return loss * set->args.loss_scale;
    }
    double sum = 0.0;
    for (int64_t i = 0; i < ghp_local_out_elements(&set->local); i++)
        sum += op_case_get(set, set->args.at.y, i) * op_case_get(set, set->args.at.dy, i);
    return sum;
}

/* Central differences with step h: error h^2 f''' / 6 + eps |f| / h, about 1e-9 for f of order 10 and h = 1e-5. */
static void check_gradient(struct ghp_operand_set *set, void *tensor, const double *gradient,
                           int64_t n, const char *what)
{
    const double step = 1e-5;
    double worst = 0.0, scale = 1.0;
    int64_t every = n / 48 + 1;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(gradient[i]));
    for (int64_t i = 0; i < n; i += every) {
        double value = op_case_get(set, tensor, i);
        op_case_set(set, tensor, i, value + step);
        double above = objective(set);
        op_case_set(set, tensor, i, value - step);
        double below = objective(set);
        op_case_set(set, tensor, i, value);
        worst = fmax(worst, fabs((above - below) / (2.0 * step) - gradient[i]));
    }
    if (!CHECK_NEAR(worst / scale, 0.0, 2e-8))
        fprintf(stderr, "  in %s of %s\n", what, op_case_text(&set->local, GHP_PASS_FORWARD));
}

static void check_gradients(const struct ghp_local *local)
{
    struct ghp_operand_set set;
    must_init(&set, local, 8);
    forward(&set, doubles);
    clear_metrics(&set);
    op_case_run_all(&set, ops, doubles);
    clear_metrics(&set);
    if (ghp_local_has_pass(local, GHP_PASS_BACKWARD_DATA))
        for (int i = 0; i < ghp_operand_set_inputs(local); i++)
            check_gradient(&set, (void *)(uintptr_t)set.args.at.x[i], set.args.at.dx[i],
                           ghp_operand_set_input_elements(local, i), "dx");
    if (ghp_local_has_pass(local, GHP_PASS_BACKWARD_WEIGHT))
        for (int i = 0; i < ghp_operand_set_weights(local); i++)
            check_gradient(&set, set.args.at.w[i], set.args.at.dw[i],
                           ghp_local_weight_elements(local) / ghp_operand_set_weights(local), "dw");
    ghp_operand_set_release(&set);
}

/* Inputs are the same numbers and sums are in double, so a float result is rounded a few times only. */
static void check_float(const struct ghp_local *local)
{
    struct ghp_operand_set a, b;
    must_init(&a, local, 4);
    must_init(&b, local, 8);
    op_case_run_all(&a, ops, floats);
    op_case_run_all(&b, ops, doubles);
    for (int pass = 0; pass < GHP_PASS_COUNT; pass++) {
        struct op_tensor ta[OP_MAX_TENSORS], tb[OP_MAX_TENSORS];
        if (!ghp_local_has_pass(local, (enum ghp_pass)pass)) continue;
        int n = op_case_written(&a, (enum ghp_pass)pass, ta);
        op_case_written(&b, (enum ghp_pass)pass, tb);
        for (int t = 0; t < n; t++) {
            double worst = 0.0, scale = 1e-30;
            for (int64_t i = 0; i < ta[t].elements; i++) {
                double exact = op_case_get(&b, tb[t].data, i);
                worst = fmax(worst, fabs(op_case_get(&a, ta[t].data, i) - exact));
                scale = fmax(scale, fabs(exact));
            }
            if (!CHECK_NEAR(worst / scale, 0.0, 16 * FLT_EPSILON))
                fprintf(stderr, "  in %s of %s\n", ta[t].name,
                        op_case_text(local, (enum ghp_pass)pass));
        }
    }
    ghp_operand_set_release(&a);
    ghp_operand_set_release(&b);
}

/* What may write over its input gives the same there. */
static void check_in_place(const struct ghp_local *local)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);
    struct ghp_operand_set apart, over;
    if (facts->in_place == NULL || !facts->in_place(ghp_shape_image(local->c, local->h, local->w)))
        return;
    must_init(&apart, local, 8);
    must_init(&over, local, 8);
    size_t bytes = (size_t)(ghp_local_out_elements(local) * 8);
    struct ghp_kernel *kernel = NULL;
    CHECK_STATUS(ops->prepare(doubles, local, GHP_PASS_FORWARD, &kernel), GHP_OK);
    over.args.at.y = (void *)(uintptr_t)over.args.at.x[0];
    CHECK_STATUS(ops->run(kernel, &apart.args), GHP_OK);
    CHECK_STATUS(ops->run(kernel, &over.args), GHP_OK);
    ops->release(kernel);
    CHECK(memcmp(apart.args.at.y, over.args.at.y, bytes) == 0);
    if (ghp_local_has_pass(local, GHP_PASS_BACKWARD_DATA)) {
        CHECK_STATUS(ops->prepare(doubles, local, GHP_PASS_BACKWARD_DATA, &kernel), GHP_OK);
        over.args.at.dx[0] = over.args.at.dy;
        CHECK_STATUS(ops->run(kernel, &apart.args), GHP_OK);
        CHECK_STATUS(ops->run(kernel, &over.args), GHP_OK);
        ops->release(kernel);
        CHECK(memcmp(apart.args.at.dx[0], over.args.at.dy, bytes) == 0);
    }
    ghp_operand_set_release(&apart);
    ghp_operand_set_release(&over);
}

/* A limit of `clip` that float has to round lets no gradient through, though y is then beyond it. */
static void check_rounded_limits(void)
{
    struct ghp_local local = {.op = GHP_OP_ACTIVATION,
                              .n = 1,
                              .c = 2,
                              .h = 1,
                              .w = 1,
                              .k = 2,
                              .p = 1,
                              .q = 1,
                              .n_inputs = 1,
                              .activation = {GHP_FUNCTION_CLIP, -0.7, 0.7}};
    struct ghp_operand_set set;
    must_init(&set, &local, 4);
    op_case_set(&set, (void *)(uintptr_t)set.args.at.x[0], 0, -1.0);
    op_case_set(&set, (void *)(uintptr_t)set.args.at.x[0], 1, 1.0);
    op_case_run_all(&set, ops, floats);
    CHECK((double)(float)0.7 < 0.7); /* else this shows nothing */
    CHECK_NEAR(op_case_get(&set, set.args.at.dx[0], 0), 0.0, 0.0);
    CHECK_NEAR(op_case_get(&set, set.args.at.dx[0], 1), 0.0, 0.0);
    ghp_operand_set_release(&set);
}

/* A part of the samples, positions and channels has the whole's mask. */
static void check_dropout_parts(void)
{
    struct ghp_local whole = {GHP_OP_DROPOUT,        4, 12, 3, 2, 12, 3, 2, .n_inputs = 1,
                              .norm = {.ratio = 0.5}};
    struct ghp_local part = whole;
    struct ghp_operand_set a, b;
    int64_t kept = 0;
    part.n = 2;
    part.c = part.k = 5;
    part.h = part.p = 2;
    must_init(&a, &whole, 8);
    must_init(&b, &part, 8);
    a.args.layer = b.args.layer = 3;
    a.args.step = b.args.step = 9;
    a.args.first_sample = 8;
    b.args.first_sample = 10;
    a.args.first_position = 3;
    b.args.first_position = 4;
    b.args.first_channel = 6;
    b.args.global_channels = 12;
    op_case_run(&a, ops, doubles, GHP_PASS_FORWARD, NULL);
    op_case_run(&b, ops, doubles, GHP_PASS_FORWARD, NULL);
    for (int64_t n = 0; n < 2; n++)
        for (int64_t pixel = 0; pixel < 4; pixel++)
            for (int64_t c = 0; c < 5; c++) {
                bool zero_a =
                    op_case_get(&a, a.args.at.y, ((n + 2) * 6 + 2 + pixel) * 12 + 6 + c) == 0.0;
                bool zero_b = op_case_get(&b, b.args.at.y, (n * 4 + pixel) * 5 + c) == 0.0;
                CHECK_EQ(zero_a, zero_b);
                kept += zero_a ? 0 : 1;
            }
    CHECK(kept > 10 && kept < 30);
    ghp_operand_set_release(&a);
    ghp_operand_set_release(&b);
}

/* Statistics whose mean is a thousand deviations away keep their digits, and running statistics are mixed as
 * promised. */
static void check_norm_statistics(void)
{
    struct ghp_local local = {GHP_OP_BATCH_NORM,
                              8,
                              1,
                              4,
                              4,
                              1,
                              4,
                              4,
                              .n_inputs = 1,
                              .norm = {.epsilon = 0.0, .momentum = 0.25}};
    struct ghp_operand_set set;
    must_init(&set, &local, 8);
    double *x = (double *)(uintptr_t)set.args.at.x[0], mean = 0.0, variance = 0.0;
    for (int i = 0; i < 128; i++) {
        x[i] += 1000.0;
        mean += x[i] / 128.0;
    }
    for (int i = 0; i < 128; i++)
        variance += (x[i] - mean) * (x[i] - mean) / 127.0;
    op_case_set(&set, set.args.at.state[0], 0, 1000.0);
    op_case_set(&set, set.args.at.state[1], 0, 3.0);
    op_case_run(&set, ops, doubles, GHP_PASS_STATS, NULL);
    op_case_run(&set, ops, doubles, GHP_PASS_FORWARD, NULL);
    CHECK_NEAR(op_case_get(&set, set.args.at.saved, 0), mean, 1e-12);
    CHECK_NEAR(op_case_get(&set, set.args.at.saved, 1), 1.0 / sqrt(variance * 127.0 / 128.0),
               1e-12);
    CHECK_NEAR(op_case_get(&set, set.args.at.state[0], 0), 750.0 + 0.25 * mean, 1e-12);
    CHECK_NEAR(op_case_get(&set, set.args.at.state[1], 0), 2.25 + 0.25 * variance, 1e-12);
    ghp_operand_set_release(&set);
}

/* Sums of two halves, added, give what the whole gives: what STAT_REDUCE relies on. */
static void check_norm_halves(void)
{
    struct ghp_local whole = {GHP_OP_BATCH_NORM,
                              6,
                              5,
                              2,
                              2,
                              5,
                              2,
                              2,
                              .n_inputs = 1,
                              .norm = {.epsilon = 1e-5, .momentum = 0.1}};
    struct ghp_local half = whole;
    struct ghp_operand_set a, b;
    double sum[10] = {0.0};
    half.n = 3;
    must_init(&a, &whole, 8);
    must_init(&b, &half, 8);
    op_case_run(&a, ops, doubles, GHP_PASS_STATS, NULL);
    for (int part = 0; part < 2; part++) {
        memcpy((void *)(uintptr_t)b.args.at.x[0], (const double *)a.args.at.x[0] + part * 60,
               60 * sizeof(double));
        op_case_run(&b, ops, doubles, GHP_PASS_STATS, NULL);
        for (int i = 0; i < 10; i++)
            sum[i] += b.args.at.stats[i];
    }
    for (int i = 0; i < 10; i++)
        CHECK_NEAR(sum[i], a.args.at.stats[i], 1e-13);
    ghp_operand_set_release(&a);
    ghp_operand_set_release(&b);
}

static void check_loss(void)
{
    struct ghp_local local = {GHP_OP_SOFTMAX_CE, 3, 4, 1, 1, 4, 1, 1, .n_inputs = 1};
    struct ghp_operand_set set;
    must_init(&set, &local, 8);
    const double logits[12] = {1000.0, 0.0, 0.0, 0.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 5.0};
    const int32_t labels[3] = {0, 1, 0};
    memcpy((void *)(uintptr_t)set.args.at.x[0], logits, sizeof logits);
    memcpy((void *)(uintptr_t)set.args.at.labels, labels, sizeof labels);
    set.args.valid_samples = 2;
    set.args.at.metrics[GHP_METRIC_SAMPLES] = 7.0;
    op_case_run(&set, ops, doubles, GHP_PASS_FORWARD, NULL);
    CHECK_NEAR(set.args.at.metrics[GHP_METRIC_LOSS], log(2.0 + exp(-1.0) + exp(-2.0)), 1e-14);
    CHECK_NEAR(set.args.at.metrics[GHP_METRIC_CORRECT], 1.0, 0.0); /* of equals the first wins */
    CHECK_NEAR(set.args.at.metrics[GHP_METRIC_SAMPLES], 9.0, 0.0);
    ghp_operand_set_release(&set);
}

/* A negative label has no loss, no gradient and does not count. */
static void check_ignored(void)
{
    struct ghp_local local = {GHP_OP_SOFTMAX_CE, 2, 4, 3, 1, 4, 3, 1, .n_inputs = 1};
    struct ghp_operand_set set;
    must_init(&set, &local, 8);
    op_case_run_all(&set, ops, doubles);
    CHECK_NEAR(set.args.at.metrics[GHP_METRIC_SAMPLES], 5.0, 0.0);
    for (int row = 0; row < 6; row++) {
        double size = 0.0;
        for (int64_t c = 0; c < 4; c++)
            size += fabs(op_case_get(&set, set.args.at.dx[0], row * 4 + c));
        CHECK_EQ(size > 0.0, row != 1);
    }
    ghp_operand_set_release(&set);
}

static void check_update(void)
{
    double w[3] = {1.0, -2.0, 0.5}, v[3] = {0.25, 0.0, -1.0}, dw[3] = {0.5, 1.0, -0.25};
    struct ghp_update update = {
        .optimizer = &ghp_optimizer_sgd,
        .w = w,
        .moment = {v},
        .dw = dw,
        .elements = 3,
        .decays = true,
        .given = {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01}};
    CHECK_STATUS(ops->update(doubles, &update), GHP_OK);
    CHECK_NEAR(v[0], 0.9 * 0.25 + 0.5 + 0.01, 1e-15);
    CHECK_NEAR(w[0], 1.0 - 0.1 * (0.9 * 0.25 + 0.51), 1e-15);
    CHECK_NEAR(v[2], -0.9 - 0.25 + 0.005, 1e-15);
    float to[2] = {1.0f, 2.0f}, from[2] = {0.5f, -1.0f};
    CHECK_STATUS(ops->accumulate(floats, to, from, (struct ghp_buffer_extent){2, 4}), GHP_OK);
    CHECK_NEAR(to[0], 1.5, 0.0);
    CHECK_NEAR(to[1], 1.0, 0.0);
}

/* Known values: x times the normal distribution at x. */
static void check_gelu(void)
{
    const struct ghp_local gelu = {GHP_OP_GELU, 1, 3, 1, 1, 3, 1, 1, .n_inputs = 1};
    const double x[] = {1.0, -1.0, 0.0};
    struct ghp_operand_set set;
    must_init(&set, &gelu, 8);
    for (int i = 0; i < 3; i++)
        op_case_set(&set, (void *)(uintptr_t)set.args.at.x[0], i, x[i]);
    forward(&set, doubles);
    CHECK_NEAR(op_case_get(&set, set.args.at.y, 0), 0.8413447460685429, 2e-16);
    CHECK_NEAR(op_case_get(&set, set.args.at.y, 1), -0.15865525393145705, 2e-16);
    CHECK_NEAR(op_case_get(&set, set.args.at.y, 2), 0.0, 0.0);
    ghp_operand_set_release(&set);
}

/* Of (1, 3) the mean is 2 and the variance 1; of (3, 4) the mean square is 12.5. */
static void check_position_norms(void)
{
    const struct ghp_norm norm = {.epsilon = 1e-5};
    const double x[2][2] = {{1.0, 3.0}, {3.0, 4.0}};
    const double y[2][2] = {{-2.0 / sqrt(1.0 + 1e-5), 0.5 / sqrt(1.0 + 1e-5)},
                            {6.0 / sqrt(12.5 + 1e-5), 2.0 / sqrt(12.5 + 1e-5)}};
    for (int op = 0; op < 2; op++) {
        const struct ghp_local local = {op == 0 ? GHP_OP_LAYER_NORM : GHP_OP_RMS_NORM,
                                        1,
                                        2,
                                        1,
                                        1,
                                        2,
                                        1,
                                        1,
                                        .n_inputs = 1,
                                        .norm = norm};
        struct ghp_operand_set set;
        must_init(&set, &local, 8);
        for (int i = 0; i < 2; i++) {
            op_case_set(&set, (void *)(uintptr_t)set.args.at.x[0], i, x[op][i]);
            op_case_set(&set, set.args.at.w[0], i, i == 0 ? 2.0 : 0.5);
        }
        forward(&set, doubles);
        for (int i = 0; i < 2; i++)
            CHECK_NEAR(op_case_get(&set, set.args.at.y, i), y[op][i], 1e-15);
        ghp_operand_set_release(&set);
    }
}

static void check_refusals(void)
{
    struct ghp_backend *none = NULL;
    struct ghp_kernel *kernel = NULL;
    struct ghp_local relu = {GHP_OP_RELU, 1, 1, 1, 1, 1, 1, 1, .n_inputs = 1};
    CHECK_STATUS(ops->open(&(struct ghp_backend_config){.element_bytes = 2, .threads = 1}, &none),
                 GHP_ERR_INPUT);
    CHECK_MESSAGE("use 4 or 8");
    CHECK_STATUS(ops->prepare(doubles, &relu, GHP_PASS_BACKWARD_WEIGHT, &kernel), GHP_ERR_INPUT);
    CHECK_MESSAGE("relu");
    CHECK(ghp_backend_find("reference") == ops);
    CHECK(ghp_backend_find("no such backend") == NULL);
}

CHECK_TEST(reference)
{
    int n;
    const struct ghp_local *cases = op_case_all(&n);
    open_backends();
    check_rows(cases, n);
    for (int i = 0; i < n; i += check_full() ? 1 : 3) {
        check_definition(&cases[i]);
        check_gradients(&cases[i]);
        check_float(&cases[i]);
        check_in_place(&cases[i]);
    }
    check_rounded_limits();
    check_dropout_parts();
    check_norm_statistics();
    check_norm_halves();
    check_loss();
    check_ignored();
    op_case_divided(ops, doubles, 8, 1e-14);
    op_case_two_labels(ops, doubles, 8, 1e-14);
    op_case_outputs(ops, doubles, 8, 1e-14);
    check_update();
    check_gelu();
    check_position_norms();
    check_refusals();
    ops->close(doubles);
    ops->close(floats);
    return check_end();
}
