/* ghp-test: timeout=300
 *
 * The onednn backend in bfloat16 against the reference in float: every operation and pass at odd shapes and at those of
 * networks, one and two threads, exact and fast, weights plain and in blocks, with a bias and a ReLU along, by every
 * algorithm that the backend names, and by the loops that stand in for the library. Both get the same numbers
 * (weights excepted: rounded to bfloat16 by the backend), each pass starts from the reference's tensors, and what a
 * pass must not write stays as it is. Runs repeat bit for bit.
 *
 * Bound: greatest difference over greatest number, 2e-2, as on GPUs: a stored number is off by up to 4e-3 of itself,
 * and so is each weight; a wrong place or channel by the size of the numbers. What only moves or compares numbers:
 * none. */
#include "tests/check.h"
#include "tests/executor/op_case.h"
#include "tests/executor/twin_case.h"

#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/engine/kernel_spec.h"
#include "executor/state/weight_blocks.h"

static const struct ghp_backend_ops *const ops = &ghp_backend_onednn;
static struct ghp_backend *reference, *backends[4];
static const double bound = 2e-2;

static struct tally {
    int passes, cpu_kernels;
    double worst;
} tally;

/* One way to run a pass. */
struct variant {
    struct ghp_backend *backend;
    enum ghp_pass pass;
    const char *algorithm; /* NULL: the likeliest */
    struct ghp_kernel_spec spec;
};

/* Operations whose passes compute nothing. */
static bool moves_only(const struct ghp_local *l, enum ghp_pass pass)
{
    bool forward = pass == GHP_PASS_FORWARD;

    return l->op == GHP_OP_RELU || l->op == GHP_OP_CONCAT || l->op == GHP_OP_FLATTEN ||
           (forward && (l->op == GHP_OP_MAX_POOL || l->op == GHP_OP_VIEW || l->op == GHP_OP_PAD));
}

static void compare(const struct twin_case *c, const struct variant *variant, const char *algorithm)
{
    const struct ghp_local *l = &c->right.local;

    for (int i = 0; i < c->n; i++) {
        const struct twin_tensor *t = &c->tensors[i];
        double error = twin_case_error(c, t);
        bool sums = t->written && !moves_only(l, variant->pass);

        if (t->written && error > tally.worst) tally.worst = error;
        if (!CHECK(error <= (sums ? bound : 0)))
            fprintf(stderr, "  %s of %s by %s: %.3g\n", t->name, op_case_text(l, variant->pass),
                    algorithm, error);
    }
}

/* Weights or their gradient between the field's order and blocks. */
static void turn_weights(struct twin_case *c, float *w, bool into_blocks)
{
    const struct ghp_local *l = &c->right.local;
    struct ghp_param_descriptor descriptor = {.n_dims = 4,
                                              .dims = {l->k, l->c, l->window.r, l->window.s},
                                              .elements = ghp_local_weight_elements(l),
                                              .element_bytes = 4};
    size_t bytes = (size_t)descriptor.elements * sizeof *w;
    float *from = malloc(bytes);

    memcpy(from, w, bytes);
    if (into_blocks)
        ghp_weight_blocks_put(&descriptor, from, w);
    else
        ghp_weight_blocks_get(&descriptor, from, w);
    free(from);
}

static float bias_of(int64_t channel)
{
    return 0.25f * (float)(channel % 7 - 3);
}

/* What a fused kernel also does to its output. */
static void finish(struct twin_case *c, struct ghp_kernel_spec spec)
{
    const struct ghp_local *l = &c->right.local;
    float *y = c->right.args.at.y;

    for (int64_t i = 0; i < ghp_local_out_elements(l); i++) {
        if (spec.bias) y[i] += bias_of(i % l->k);
        if (spec.relu && !(y[i] > 0)) y[i] = 0;
    }
}

/* The reference's pass on the dy that the ReLU after a batch norm leaves. */
static void run_masked(struct twin_case *c, enum ghp_pass pass)
{
    int64_t n = ghp_local_out_elements(&c->right.local);
    float *y = c->right.args.at.y, *dy = c->right.args.at.dy;
    float *masked = ghp_alloc((size_t)n, sizeof *masked);

    for (int64_t i = 0; i < n; i++)
        masked[i] = y[i] > 0 ? dy[i] : 0;
    c->right.args.at.dy = masked;
    CHECK_STATUS(ghp_operand_set_run(&c->right, &ghp_backend_reference, reference, pass), GHP_OK);
    c->right.args.at.dy = dy;
    free(masked);
}

/* Runs the kernel of that way on the reference's numbers; what it wrote is in `got` then, in the field's order. */
static void run(struct twin_case *c, const struct variant *variant, struct ghp_kernel *kernel)
{
    const struct ghp_local *l = &c->right.local;
    struct ghp_tensors *at = &c->there.args.at;
    float *bias = ghp_alloc((size_t)l->k, sizeof *bias);
    bool forward = variant->pass == GHP_PASS_FORWARD, nchw16c = variant->spec.w;

    for (int64_t k = 0; k < l->k; k++)
        bias[k] = bias_of(k);
    CHECK_STATUS(twin_case_send(c, variant->pass), GHP_OK);
    if (nchw16c) turn_weights(c, at->w[0], true);
    if (variant->spec.bias) at->w[1] = bias;
    CHECK_STATUS(twin_case_run(c, ops, kernel), GHP_OK);
    if (variant->spec.bias) at->w[1] = NULL;
    if (nchw16c) turn_weights(c, at->w[0], false);
    if (nchw16c && !forward && variant->pass == GHP_PASS_BACKWARD_WEIGHT)
        turn_weights(c, at->dw[0], false);
    CHECK_STATUS(twin_case_fetch(c), GHP_OK);
    free(bias);
}

/* A second kernel, by the name of the first, gives the same bits from the same tensors. */
static void check_repeats(struct twin_case *c, struct variant variant, const char *algorithm)
{
    char *once = malloc((size_t)c->got.bytes);
    struct ghp_kernel *kernel = NULL;

    memcpy(once, c->got.memory, (size_t)c->got.bytes);
    CHECK_STATUS(ops->prepare_nchw16c(variant.backend, &c->right.local, variant.pass, algorithm,
                                      variant.spec, &kernel),
                 GHP_OK);
    CHECK_TEXT(ops->algorithm(kernel), algorithm);
    run(c, &variant, kernel);
    if (!CHECK(memcmp(once, c->got.memory, (size_t)c->got.bytes) == 0))
        fprintf(stderr, "  %s by %s\n", op_case_text(&c->right.local, variant.pass), algorithm);
    ops->release(kernel);
    free(once);
}

static void check_variant(struct twin_case *c, struct variant variant)
{
    struct ghp_kernel *kernel = NULL;
    char algorithm[GHP_ALGORITHM_BYTES];

    if (c->right.args.at.metrics != NULL) /* added to */
        memset(c->right.args.at.metrics, 0, GHP_METRIC_COUNT * sizeof(double));
    if (!CHECK_STATUS(ops->prepare_nchw16c(variant.backend, &c->right.local, variant.pass,
                                           variant.algorithm, variant.spec, &kernel),
                      GHP_OK) ||
        !CHECK(kernel != NULL))
        return;
    snprintf(algorithm, sizeof algorithm, "%s", ops->algorithm(kernel));
    if (variant.algorithm != NULL) CHECK_TEXT(algorithm, variant.algorithm);
    run(c, &variant, kernel);
    ops->release(kernel);
    if (c->right.local.op == GHP_OP_CONV2D || c->right.local.op == GHP_OP_LINEAR)
        check_repeats(c, variant, algorithm);
    if (variant.spec.relu && variant.pass != GHP_PASS_FORWARD)
        run_masked(c, variant.pass);
    else
        CHECK_STATUS(
            ghp_operand_set_run(&c->right, &ghp_backend_reference, reference, variant.pass),
            GHP_OK);
    if (variant.pass == GHP_PASS_FORWARD) finish(c, variant.spec);
    compare(c, &variant, algorithm);
    twin_case_round(c);
    tally.passes++;
    tally.cpu_kernels += strcmp(algorithm, "loop") == 0 &&
                         (c->right.local.op == GHP_OP_CONV2D || c->right.local.op == GHP_OP_LINEAR);
}

/* The loops that stand in for the library where it refuses. */
static void check_cpu_kernel(struct twin_case *c, struct ghp_backend *backend, enum ghp_pass pass)
{
    const struct ghp_local *l = &c->right.local;
    struct ghp_kernel *kernel = NULL;
    struct variant variant = {.backend = backend, .pass = pass};

    if (l->op != GHP_OP_CONV2D && l->op != GHP_OP_LINEAR) return;
    if (!CHECK_STATUS(ghp_cpu_kernel_prepare(backend, l, pass, &kernel), GHP_OK)) return;
    run(c, &variant, kernel);
    ops->release(kernel);
    CHECK_STATUS(ghp_operand_set_run(&c->right, &ghp_backend_reference, reference, pass), GHP_OK);
    compare(c, &variant, "loop");
}

/* The pass by the likeliest way, and by all that have a name. */
static void check_pass(struct twin_case *c, struct ghp_backend *backend, enum ghp_pass pass)
{
    const struct ghp_local *l = &c->right.local;
    const struct ghp_kernel_spec likely = ghp_kernel_spec_likely(ops, backend, l);
    struct ghp_algorithms names = {0};
    struct variant variant = {.backend = backend, .pass = pass, .spec = likely};

    CHECK(!likely.x && !likely.y);
    CHECK_STATUS(ops->algorithms(backend, l, pass, likely, &names), GHP_OK);
    for (int i = 0; i < names.n; i++) {
        variant.algorithm = names.names[i];
        check_variant(c, variant);
    }
    variant.algorithm = NULL;
    if (ghp_backend_fuses(ops, backend, l->op, pass) && names.n > 0) {
        variant.spec.bias = variant.spec.relu = true;
        check_variant(c, variant);
    }
    bool takes =
        l->op != GHP_OP_RELU && l->op != GHP_OP_MAX_POOL; /* others: check_mask, test_fast */
    if (ghp_backend_fuses(ops, backend, l->op, pass) && names.n == 0 && takes) {
        variant.spec.relu = true;
        check_variant(c, variant);
    }
    check_cpu_kernel(c, backend, pass);
    variant.spec = (struct ghp_kernel_spec){0};
    check_variant(c, variant); /* last: later passes read what it left in `right` */
}

static void run_pool(struct ghp_backend *backend, struct ghp_operand_set *set,
                     struct ghp_kernel_spec spec)
{
    struct ghp_kernel *kernel = NULL;

    if (!CHECK_STATUS(
            ops->prepare_nchw16c(backend, &set->local, GHP_PASS_FORWARD, NULL, spec, &kernel),
            GHP_OK) ||
        !CHECK(kernel != NULL))
        exit(1);
    set->args.at.scratch = ghp_operand_set_block(ops->scratch_bytes(kernel));
    CHECK_STATUS(ops->run(kernel, &set->args), GHP_OK);
    free(set->args.at.scratch);
    set->args.at.scratch = NULL;
    ops->release(kernel);
}

/* A max pool that takes the ReLU before it along saves what it saves without, but no place where y is not above 0. */
static void check_mask(struct ghp_backend *backend)
{
    const struct ghp_local local = {.op = GHP_OP_MAX_POOL,
                                    .n = 2,
                                    .c = 20,
                                    .h = 6,
                                    .w = 6,
                                    .k = 20,
                                    .p = 3,
                                    .q = 3,
                                    .n_inputs = 1,
                                    .window = {2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, false}};
    struct ghp_operand_set plain, masked;
    int64_t n = ghp_local_out_elements(&local), closed = 0;

    if (!CHECK_STATUS(ghp_operand_set_init(&local, 2, GHP_OPERAND_SET_ALL, &plain), GHP_OK) ||
        !CHECK_STATUS(ghp_operand_set_init(&local, 2, GHP_OPERAND_SET_ALL, &masked), GHP_OK))
        exit(1);
    for (int64_t i = 0; i < ghp_local_in_elements(&local); i++) /* some windows without a sign */
        if (i % 3 != 0 || i < ghp_local_in_elements(&local) / 2)
            ((uint16_t *)(uintptr_t)plain.args.at.x[0])[i] |= 0x8000;
    memcpy(masked.memory, plain.memory, (size_t)plain.bytes);
    run_pool(backend, &plain, (struct ghp_kernel_spec){0});
    run_pool(backend, &masked, (struct ghp_kernel_spec){.relu = true});
    for (int64_t i = 0; i < n; i++) {
        uint16_t y = ((uint16_t *)plain.args.at.y)[i];
        bool above = (y & 0x8000) == 0 && y != 0;

        CHECK_EQ(((uint16_t *)masked.args.at.y)[i], y);
        CHECK_EQ(((uint8_t *)masked.args.at.saved)[i],
                 above ? ((uint8_t *)plain.args.at.saved)[i] : 255);
        closed += !above;
    }
    CHECK(closed > 0 && closed < n);
    ghp_operand_set_release(&plain);
    ghp_operand_set_release(&masked);
}

static void check_local(const struct ghp_local *local, struct ghp_backend *backend)
{
    static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD, GHP_PASS_BACKWARD_STATS,
                                          GHP_PASS_BACKWARD_WEIGHT, GHP_PASS_BACKWARD_DATA};
    struct twin_case c;

    twin_case_open(&c, ghp_backend_device(ops, backend), local, 2);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (ghp_local_has_pass(local, order[i])) check_pass(&c, backend, order[i]);
    twin_case_close(&c);
}

/* As networks have them: whole blocks of channels, images large and small, unfolding among the ways. */
static void check_usual(struct ghp_backend *backend)
{
    struct ghp_local conv = twin_case_shape(GHP_OP_CONV2D, 3, 32, 14);
    struct ghp_local small = twin_case_shape(GHP_OP_CONV2D, 4, 64, 4);
    struct ghp_local linear = twin_case_shape(GHP_OP_LINEAR, 16, 256, 1);

    conv.k = 48;
    linear.k = 64;
    check_local(&conv, backend);
    check_local(&small, backend);
    check_local(&linear, backend);
}

static void check_sums(void)
{
    uint16_t to[3], from[3];

    for (int i = 0; i < 3; i++) {
        to[i] = ghp_bf16_of(1.0f + (float)i);
        from[i] = ghp_bf16_of(0.5f);
    }
    CHECK_STATUS(ops->accumulate(backends[0], to, from, (struct ghp_buffer_extent){3, 2}), GHP_OK);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(ghp_bf16_value(to[i]), 1.5 + i, 0);
    float w[2] = {1, 2}, v[2] = {0, 0}, dw[2] = {0x1.000002p0f, 1};
    const struct ghp_update update = {.optimizer = &ghp_optimizer_sgd,
                                      .w = w,
                                      .moment = {v},
                                      .dw = dw,
                                      .elements = 2,
                                      .given = {.learning_rate = 0.5}};
    CHECK_STATUS(ops->update(backends[0], &update), GHP_OK);
    CHECK_NEAR(w[0], 1 - 0.5 * 0x1.000002p0, 0); /* weights keep all their digits */
    CHECK_STATUS(ops->accumulate(backends[0], w, dw, (struct ghp_buffer_extent){2, 4}), GHP_OK);
    CHECK_NEAR(w[1], 2.5, 0);
    uint16_t y[3] = {ghp_bf16_of(0.5f), 0, ghp_bf16_of(-1.0f)};
    CHECK_STATUS(ops->accumulate_masked(backends[0], &(struct ghp_masked_sum){to, from, y, {3, 2}}),
                 GHP_OK);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(ghp_bf16_value(to[i]), i == 0 ? 2 : 0, 0);
}

CHECK_TEST(bf16)
{
    const struct ghp_backend_config plain = {.element_bytes = 4, .threads = 1, .exact = true};
    int n;
    const struct ghp_local *cases = op_case_all(&n);

    CHECK(ops->has_precision(2));
    for (int i = 0; i < 4; i++) {
        struct ghp_backend_config config = {
            .element_bytes = 2, .threads = 1 + i % 2, .exact = i < 2};
        enum ghp_status status = ops->open(&config, &backends[i]);

        if (status == GHP_ERR_BACKEND) {
            CHECK_MESSAGE("--precision float");
            SKIP(ghp_status_message());
        }
        if (!CHECK_STATUS(status, GHP_OK)) return check_end();
    }
    CHECK_STATUS(ghp_backend_reference.open(&plain, &reference), GHP_OK);
    for (int b = 0; b < 4; b++) {
        for (int i = 0; i < n; i++)
            check_local(&cases[i], backends[b]);
        check_usual(backends[b]);
    }
    check_mask(backends[2]);
    check_mask(backends[3]);
    check_sums();
    fprintf(stderr, "%d passes, %d of conv2d and linear by loops, worst %.2g\n", tally.passes,
            tally.cpu_kernels, tally.worst);
    for (int b = 0; b < 4; b++)
        ops->close(backends[b]);
    ghp_backend_reference.close(reference);
    return check_end();
}
