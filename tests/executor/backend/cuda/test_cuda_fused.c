/* ghp-test: timeout=600 emulated=yes
 *
 * What the cuda backend's kernels fuse (core/program/fuse.h) against the reference's passes one by one, in float, tf32
 * and bf16: bias and ReLU after a convolution and a linear layer, a bias after a layer norm, an addition before one or
 * before an RMS norm, a ReLU after an addition and a batch norm, a batch norm's own sums and the addition after it,
 * backward passes of all these, a max pool after a ReLU, a sum of gradients and a convolution's gradient before one, a sum by the kernel that makes
 * the gradient, a loss's gradient in its forward pass; and a batch norm whose statistics move apart. Every kernel gets
 * the reference's tensors, and no tensor but those that the passes write may change.
 *
 * Bound: as in test_cuda_ops.c. Skipped without a GPU. */
#include "tests/executor/twin_case.h"
#include "tests/executor/op_case.h"
#include "tests/check.h"

#include "executor/backend/backend_private.h"
#include "executor/engine/kernel_spec.h"

#include <math.h>

static const struct ghp_backend_ops *ops;
static struct ghp_backend *reference, *backend;

static const struct setting {
    const char *name;
    int element_bytes;
    bool tf32;
    double bound;
} settings[] = {{"float", 4, false, 1e-4}, {"tf32", 4, true, 2e-3}, {"bf16", 2, false, 2e-2}},
  *setting;

static int kernels;

/* ---- tensors in addition to the set's ---- */

/* n numbers on the device: of the precision, or floats. Released by the caller. */
static void *put(const struct twin_case *c, const float *values, int64_t n, bool wide)
{
    struct ghp_device device = c->there.device;
    int64_t bytes = n * (wide ? 4 : setting->element_bytes);
    uint16_t *narrow = ghp_alloc((size_t)n, sizeof *narrow);
    void *made = NULL;

    for (int64_t i = 0; i < n; i++)
        narrow[i] = ghp_bf16_of(values[i]);
    CHECK_STATUS(ghp_device_allocate(device, bytes, &made), GHP_OK);
    CHECK_STATUS(
        ghp_device_write(device, made, bytes == 2 * n ? (void *)narrow : (void *)values, bytes),
        GHP_OK);
    free(narrow);
    return made;
}

/* Numbers that every precision holds, of both signs. */
static float *make(int64_t n)
{
    float *values = ghp_alloc((size_t)n, sizeof *values);

    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(i * i % 11 - 5) / 8;
    return values;
}

/* ---- one kernel compared with the reference ---- */

/* Runs the kernel on the reference's tensors of before the pass; `w1`, `x1`: more of them. */
static void run(struct twin_case *c, enum ghp_pass pass, struct ghp_kernel_spec fused, void *w1,
                const void *x1)
{
    struct ghp_tensors *at = &c->there.args.at, was = *at;
    struct ghp_kernel *kernel = NULL;

    CHECK_STATUS(ops->prepare_nchw16c(backend, &c->right.local, pass, NULL, fused, &kernel),
                 GHP_OK);
    if (!CHECK(kernel != NULL)) return;
    CHECK_STATUS(twin_case_send(c, pass), GHP_OK);
    if (w1 != NULL) at->w[1] = w1;
    if (x1 != NULL) at->x[1] = x1;
    CHECK_STATUS(twin_case_run(c, ops, kernel), GHP_OK);
    *at = was;
    CHECK_STATUS(twin_case_fetch(c), GHP_OK);
    ops->release(kernel);
    kernels++;
}

static void expect(struct twin_case *c, enum ghp_pass pass)
{
    CHECK_STATUS(ghp_operand_set_run(&c->right, &ghp_backend_reference, reference, pass), GHP_OK);
}

/* All tensors but one, which the reference's passes change and the kernel does not. */
static void compare(struct twin_case *c, const char *what, const char *but)
{
    for (int i = 0; i < c->n; i++) {
        const struct twin_tensor *t = &c->tensors[i];
        double error = strcmp(t->name, but) == 0 ? 0 : twin_case_error(c, t);

        if (!CHECK(error <= setting->bound))
            fprintf(stderr, "  %s of %s, %s: %.3g\n", t->name, what, setting->name, error);
    }
    twin_case_round(c);
}

static void apply_relu(float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = values[i] > 0 ? values[i] : 0;
}

/* What a ReLU lets through of dy, by its output. */
static void mask(struct ghp_operand_set *set)
{
    const float *y = set->args.at.y;
    float *dy = set->args.at.dy;

    for (int64_t i = 0; i < ghp_local_out_elements(&set->local); i++)
        if (!(y[i] > 0)) dy[i] = 0;
}

static void open_case(struct twin_case *c, const struct ghp_local *local)
{
    twin_case_open(c, ghp_backend_device(ops, backend), local, setting->element_bytes);
}

/* ---- the cases ---- */

static void check_product(const struct ghp_local *local, struct ghp_kernel_spec fused)
{
    struct twin_case c;
    float *bias = make(local->k);
    void *there;

    open_case(&c, local);
    there = put(&c, bias, local->k, true);
    run(&c, GHP_PASS_FORWARD, fused, there, NULL);
    expect(&c, GHP_PASS_FORWARD);
    float *y = c.right.args.at.y;
    int64_t n = ghp_local_out_elements(local);
    for (int64_t i = 0; fused.bias && i < n; i++)
        y[i] += bias[i % local->k];
    if (fused.relu) apply_relu(y, n);
    compare(&c, op_case_text(local, GHP_PASS_FORWARD), "");
    ghp_device_release(c.there.device, there);
    free(bias);
    twin_case_close(&c);
}

/* The addition before a norm of rows, whose sum goes where the set has room for a gradient, and the bias after it. */
static void check_sum_normed(const struct ghp_local *local, bool biased)
{
    int64_t n = ghp_local_in_elements(local);
    float *other = make(n), *bias = make(local->k), *kept = ghp_alloc((size_t)n, sizeof *kept);
    struct twin_case c;
    void *there, *bias_there;

    open_case(&c, local);
    there = put(&c, other, n, false);
    bias_there = put(&c, bias, local->k, true);
    run(&c, GHP_PASS_FORWARD, (struct ghp_kernel_spec){.bias = biased, .add = true},
        biased ? bias_there : NULL, there);
    float *x = (float *)(uintptr_t)c.right.args.at.x[0], *sum = c.right.args.at.dx[0];
    memcpy(kept, x, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        sum[i] = x[i] += other[i];
    expect(&c, GHP_PASS_FORWARD);
    memcpy(x, kept, (size_t)n * sizeof *x);
    for (int64_t i = 0; biased && i < n; i++)
        ((float *)c.right.args.at.y)[i] += bias[i % local->k];
    compare(&c, op_case_text(local, GHP_PASS_FORWARD), "");
    ghp_device_release(c.there.device, bias_there);
    ghp_device_release(c.there.device, there);
    free(kept);
    free(bias);
    free(other);
    twin_case_close(&c);
}

static void check_add(int64_t channels, int64_t size)
{
    struct ghp_local local = twin_case_shape(GHP_OP_ADD, 5, channels, size);
    struct twin_case c;

    open_case(&c, &local);
    run(&c, GHP_PASS_FORWARD, (struct ghp_kernel_spec){.relu = true}, NULL, NULL);
    expect(&c, GHP_PASS_FORWARD);
    apply_relu(c.right.args.at.y, ghp_local_out_elements(&local));
    compare(&c, "an addition and a ReLU", "");
    twin_case_close(&c);
}

static void norm_forward(struct twin_case *c, struct ghp_kernel_spec fused, const float *other,
                         const void *there)
{
    const struct ghp_local *local = &c->right.local;
    int64_t n = ghp_local_out_elements(local);
    float *y = c->right.args.at.y;

    if (!fused.stats) expect(c, GHP_PASS_STATS);
    run(c, GHP_PASS_FORWARD, fused, NULL, fused.add ? there : NULL);
    if (fused.stats) expect(c, GHP_PASS_STATS);
    expect(c, GHP_PASS_FORWARD);
    for (int64_t i = 0; fused.add && i < n; i++)
        y[i] += other[i];
    if (fused.relu) apply_relu(y, n);
    compare(c, "a batch norm, forward", fused.stats ? "stats" : "");
}

/* The ReLU follows the batch norm, or the addition; then the backward passes do not do it. */
static void norm_back(struct twin_case *c, struct ghp_kernel_spec fused)
{
    fused.relu = fused.relu && !fused.add;
    fused.add = false;
    if (!fused.stats) {
        run(c, GHP_PASS_BACKWARD_STATS, fused, NULL, NULL);
        if (fused.relu) mask(&c->right);
        expect(c, GHP_PASS_BACKWARD_STATS);
        compare(c, "a batch norm's sums, backward", "dy");
    }
    run(c, GHP_PASS_BACKWARD_DATA, fused, NULL, NULL);
    if (fused.relu) mask(&c->right);
    if (fused.stats) expect(c, GHP_PASS_BACKWARD_STATS);
    expect(c, GHP_PASS_BACKWARD_DATA);
    compare(c, "a batch norm, backward", "dy");
}

static void check_norm(int64_t channels, int64_t size, struct ghp_kernel_spec fused)
{
    struct ghp_local local = twin_case_shape(GHP_OP_BATCH_NORM, 5, channels, size);
    int64_t n = ghp_local_out_elements(&local);
    float *other = make(n);
    struct twin_case c;
    void *there;

    open_case(&c, &local);
    there = put(&c, other, n, false);
    norm_forward(&c, fused, other, there);
    norm_back(&c, fused);
    ghp_device_release(c.there.device, there);
    free(other);
    twin_case_close(&c);
}

/* Without training: by the running statistics, whose sums nobody takes. */
static void check_norm_evaluates(void)
{
    struct ghp_local local = twin_case_shape(GHP_OP_BATCH_NORM, 5, 48, 6);
    struct twin_case c;

    open_case(&c, &local);
    c.right.args.training = c.there.args.training = false;
    run(&c, GHP_PASS_FORWARD, (struct ghp_kernel_spec){.stats = true, .relu = true}, NULL, NULL);
    expect(&c, GHP_PASS_FORWARD);
    apply_relu(c.right.args.at.y, ghp_local_out_elements(&local));
    for (int i = 0; i < c.n; i++) { /* `saved` stays as it was made */
        if (strcmp(c.tensors[i].name, "y") != 0) continue;
        CHECK(twin_case_error(&c, &c.tensors[i]) <= setting->bound);
    }
    twin_case_close(&c);
}

/* Statistics that move apart: what a ghost batch adds is noted separately. */
static void check_norm_stats_deltas(bool adds)
{
    struct ghp_local local = twin_case_shape(GHP_OP_BATCH_NORM, 5, 40, 6);
    float *stats_delta = make(local.c), got[2][40];
    struct twin_case c;
    void *there[2];

    open_case(&c, &local);
    expect(&c, GHP_PASS_STATS);
    for (int i = 0; i < 2; i++) {
        there[i] = put(&c, stats_delta, local.c, true);
        c.right.args.at.stats_delta[i] = ghp_alloc((size_t)local.c, sizeof(float));
        memcpy(c.right.args.at.stats_delta[i], stats_delta, (size_t)local.c * sizeof(float));
        c.there.args.at.stats_delta[i] = there[i];
    }
    c.right.args.stats_delta_share = c.there.args.stats_delta_share = 0.25;
    c.right.args.stats_delta_adds = c.there.args.stats_delta_adds = adds;
    run(&c, GHP_PASS_FORWARD, (struct ghp_kernel_spec){0}, NULL, NULL);
    expect(&c, GHP_PASS_FORWARD);
    compare(&c, "a batch norm whose statistics drift", "");
    for (int i = 0; i < 2; i++) {
        const float *right = c.right.args.at.stats_delta[i];

        CHECK_STATUS(ghp_device_read(c.there.device, got[i], there[i], (int64_t)sizeof got[i]),
                     GHP_OK);
        for (int64_t k = 0; k < local.c; k++)
            CHECK(fabsf(got[i][k] - right[k]) <= 1e-5f * (1 + fabsf(right[k])));
        CHECK(fabsf(right[0] - stats_delta[0]) > 1e-6f);
        ghp_device_release(c.there.device, there[i]);
        free(c.right.args.at.stats_delta[i]);
    }
    free(stats_delta);
    twin_case_close(&c);
}

static void check_mask(int64_t channels, int64_t stride)
{
    struct ghp_local local = twin_case_shape(GHP_OP_MAX_POOL, 5, channels, 6);
    struct twin_case c;
    int64_t n, closed = 0;

    local.window.stride_h = local.window.stride_w = stride;
    local = op_case_conv(local);
    open_case(&c, &local);
    float *x = (float *)(uintptr_t)c.right.args.at.x[0];
    n = ghp_local_in_elements(&local);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] > 0.8f ? x[i] : 0;
    run(&c, GHP_PASS_FORWARD, (struct ghp_kernel_spec){.relu = true}, NULL, NULL);
    expect(&c, GHP_PASS_FORWARD);
    compare(&c, "a max pool", "saved");
    for (int64_t i = 0; i < ghp_local_out_elements(&local); i++)
        closed += !(((const float *)c.right.args.at.y)[i] > 0);
    CHECK(closed > 0 && closed < ghp_local_out_elements(&local));
    /* its own places in, the ReLU's gradient out */
    memcpy(c.right.args.at.saved, c.got.args.at.saved, (size_t)ghp_local_saved_bytes(&local, 4));
    run(&c, GHP_PASS_BACKWARD_DATA, (struct ghp_kernel_spec){0}, NULL, NULL);
    expect(&c, GHP_PASS_FORWARD);
    expect(&c, GHP_PASS_BACKWARD_DATA);
    float *dx = c.right.args.at.dx[0];
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0 ? dx[i] : 0;
    compare(&c, "a max pool and a ReLU, backward", "saved");
    twin_case_close(&c);
}

/* The gradient where the probabilities would be; a label is ignored. parts: the number of parts that the
 * classes are divided into. */
static void check_loss(int64_t classes, int64_t positions, int parts, double smoothing)
{
    const struct ghp_local local =
        op_case_complete((struct ghp_local){.op = GHP_OP_SOFTMAX_CE,
                                            .n = 3,
                                            .c = classes,
                                            .h = positions,
                                            .parts = parts,
                                            .loss = {.smoothing = smoothing}});
    int64_t bytes = 3 * classes * positions * (int64_t)sizeof(float);
    float *was = ghp_alloc((size_t)bytes, 1), *dx;
    struct twin_case c;

    open_case(&c, &local);
    dx = c.right.args.at.dx[0];
    memcpy(was, dx, (size_t)bytes);
    ((int32_t *)(uintptr_t)c.right.args.at.labels)[1] = -1;
    memset(c.right.args.at.metrics, 0, GHP_METRIC_COUNT * sizeof(double));
    if (parts > 0) expect(&c, GHP_PASS_STATS);
    run(&c, GHP_PASS_FORWARD, (struct ghp_kernel_spec){.gradient = true}, NULL, NULL);
    expect(&c, GHP_PASS_FORWARD);
    expect(&c, GHP_PASS_BACKWARD_DATA);
    memcpy(c.right.args.at.y, dx, (size_t)bytes);
    memcpy(dx, was, (size_t)bytes);
    compare(&c, "a loss and its gradient", "");
    free(was);
    twin_case_close(&c);
}

/* A gradient that is added to what is there. */
static void check_added(const struct ghp_local *local)
{
    int64_t n = ghp_local_in_elements(local);
    float *there = make(n), *dx;
    struct twin_case c;

    open_case(&c, local);
    expect(&c, GHP_PASS_FORWARD);
    dx = c.right.args.at.dx[0];
    memcpy(dx, there, (size_t)n * sizeof *dx);
    c.adds = true;
    run(&c, GHP_PASS_BACKWARD_DATA, (struct ghp_kernel_spec){.add = true}, NULL, NULL);
    expect(&c, GHP_PASS_BACKWARD_DATA);
    for (int64_t i = 0; i < n; i++)
        dx[i] += there[i];
    compare(&c, op_case_text(local, GHP_PASS_BACKWARD_DATA), "");
    free(there);
    twin_case_close(&c);
}

/* The mask of the ReLU that made a convolution's input, on its gradient. */
static void check_masked_gradient(const struct ghp_local *local)
{
    int64_t n = ghp_local_in_elements(local), closed = 0;
    struct twin_case c;
    float *x, *dx;

    open_case(&c, local);
    x = (float *)(uintptr_t)c.right.args.at.x[0];
    for (int64_t i = 0; i < n; i++) {
        x[i] = x[i] > 0 ? x[i] : 0;
        closed += !(x[i] > 0);
    }
    CHECK(closed > 0 && closed < n);
    run(&c, GHP_PASS_BACKWARD_DATA, (struct ghp_kernel_spec){.relu = true}, NULL, NULL);
    expect(&c, GHP_PASS_BACKWARD_DATA);
    dx = c.right.args.at.dx[0];
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0 ? dx[i] : 0;
    compare(&c, op_case_text(local, GHP_PASS_BACKWARD_DATA), "");
    twin_case_close(&c);
}

static void check_all_added(void)
{
    struct ghp_local locals[] = {
        twin_case_shape(GHP_OP_LINEAR, 9, 64, 1),      twin_case_shape(GHP_OP_LINEAR, 3, 5, 1),
        twin_case_shape(GHP_OP_LAYER_NORM, 5, 768, 1), twin_case_shape(GHP_OP_LAYER_NORM, 3, 7, 2),
        twin_case_shape(GHP_OP_RMS_NORM, 3, 4104, 1),  twin_case_shape(GHP_OP_RMS_NORM, 9, 48, 1)};

    for (size_t i = 0; i < sizeof locals / sizeof locals[0]; i++)
        check_added(&locals[i]);
}

/* to += from where y lets it through, on vectors and what is left of them. */
static void check_masked_sum(int64_t n)
{
    struct ghp_local any = twin_case_shape(GHP_OP_RELU, 1, 8, 1);
    struct twin_case c;
    float *values = make(3 * n);
    int64_t bytes = n * setting->element_bytes;
    uint16_t *got = ghp_alloc((size_t)n, sizeof(float));
    void *there[3];

    open_case(&c, &any);
    for (int i = 0; i < 3; i++)
        there[i] = put(&c, values + i * n, n, false);
    CHECK_STATUS(
        ops->accumulate_masked(
            backend,
            &(struct ghp_masked_sum){there[0], there[1], there[2], {n, setting->element_bytes}}),
        GHP_OK);
    CHECK_STATUS(ghp_device_read(c.there.device, got, there[0], bytes), GHP_OK);
    for (int64_t i = 0; i < n; i++) {
        float right = values[2 * n + i] > 0 ? values[i] + values[n + i] : 0;

        CHECK(right == (setting->element_bytes == 2 ? ghp_bf16_value(got[i])
                                                    : ((const float *)(void *)got)[i]));
    }
    for (int i = 0; i < 3; i++)
        ghp_device_release(c.there.device, there[i]);
    free(got);
    free(values);
    twin_case_close(&c);
}

static void check_doubles(void)
{
    struct ghp_device device = ghp_backend_device(ops, backend);
    double values[2][5] = {{1, -2, 1e-9, 0, 1e300}, {0.5, 2, 1, -1, 1e300}}, got[5];
    void *there[2] = {NULL, NULL};

    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(ghp_device_allocate(device, sizeof values[i], &there[i]), GHP_OK);
        CHECK_STATUS(ghp_device_write(device, there[i], values[i], sizeof values[i]), GHP_OK);
    }
    CHECK_STATUS(ops->accumulate(backend, there[0], there[1], (struct ghp_buffer_extent){5, 8}),
                 GHP_OK);
    CHECK_STATUS(ghp_device_read(device, got, there[0], sizeof got), GHP_OK);
    for (int i = 0; i < 5; i++)
        CHECK(got[i] == values[0][i] + values[1][i]);
    for (int i = 0; i < 2; i++)
        ghp_device_release(device, there[i]);
}

/* What nothing fuses comes out as no kernel, and exact algorithms take nothing. */
static void check_refusals(struct ghp_backend *exact)
{
    static const struct wish {
        enum ghp_op op;
        enum ghp_pass pass;
        struct ghp_kernel_spec fused;
    } request[] = {{GHP_OP_LINEAR, GHP_PASS_BACKWARD_DATA, {.relu = true}},
                   {GHP_OP_CONV2D, GHP_PASS_BACKWARD_DATA, {.bias = true}},
                   {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, {.add = true}},
                   {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, {.bias = true}},
                   {GHP_OP_RMS_NORM, GHP_PASS_FORWARD, {.bias = true}},
                   {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_STATS, {.stats = true}},
                   {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, {.add = true}},
                   {GHP_OP_CONV2D, GHP_PASS_BACKWARD_DATA, {.add = true}},
                   {GHP_OP_AVG_POOL, GHP_PASS_FORWARD, {.relu = true}},
                   {GHP_OP_HINGE, GHP_PASS_FORWARD, {.gradient = true}}};

    for (size_t i = 0; i < sizeof request / sizeof request[0]; i++) {
        struct ghp_local local = twin_case_shape(request[i].op, 2, 8, 4);
        struct ghp_kernel *kernel = NULL;

        CHECK_STATUS(
            ops->prepare_nchw16c(backend, &local, request[i].pass, NULL, request[i].fused, &kernel),
            GHP_OK);
        CHECK(kernel == NULL);
    }
    CHECK(ghp_backend_fuses(ops, backend, GHP_OP_CONV2D, GHP_PASS_FORWARD));
    CHECK(ghp_backend_fuses(ops, backend, GHP_OP_LINEAR, GHP_PASS_FORWARD));
    CHECK(ghp_backend_fuses(ops, backend, GHP_OP_CONV2D, GHP_PASS_BACKWARD_DATA));
    CHECK(!ghp_backend_fuses(ops, exact, GHP_OP_CONV2D, GHP_PASS_BACKWARD_DATA));
    CHECK(!ghp_backend_fuses(ops, backend, GHP_OP_CONV2D, GHP_PASS_BACKWARD_WEIGHT));
    CHECK(!ghp_backend_fuses(ops, backend, GHP_OP_AVG_POOL, GHP_PASS_FORWARD));
    CHECK(ghp_backend_fuses(ops, backend, GHP_OP_RELU, GHP_PASS_BACKWARD_DATA));
    CHECK(ghp_backend_fuses(ops, backend, GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD));
    CHECK(!ghp_backend_fuses(ops, exact, GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD));
    CHECK(!ghp_backend_fuses(ops, exact, GHP_OP_CONV2D, GHP_PASS_FORWARD));
    CHECK(!ghp_backend_fuses(ops, exact, GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA));
    CHECK(ops->adds(backend, GHP_OP_LINEAR) && !ops->adds(exact, GHP_OP_LINEAR));
    CHECK(!ops->adds(backend, GHP_OP_CONV2D));
}

static void check_setting(void)
{
    static const int64_t channels[] = {48, 7}; /* vectors, and none */
    struct ghp_local products[] = {
        twin_case_shape(GHP_OP_CONV2D, 3, 16, 7), twin_case_shape(GHP_OP_CONV2D, 2, 7, 5),
        twin_case_shape(GHP_OP_LINEAR, 9, 64, 1), twin_case_shape(GHP_OP_LINEAR, 3, 5, 1)};
    /* a warp a row, and a block */
    const struct ghp_local norms[] = {twin_case_shape(GHP_OP_LAYER_NORM, 5, 768, 1),
                                      twin_case_shape(GHP_OP_LAYER_NORM, 3, 7, 2)};

    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        for (int fused = 1; fused < 4; fused++)
            check_product(&products[i], (struct ghp_kernel_spec){.bias = (fused & 1) > 0,
                                                                 .relu = (fused & 2) > 0});
    check_masked_gradient(&products[0]);
    check_masked_gradient(&products[1]);
    for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
        struct ghp_local rms = norms[i];

        rms.op = GHP_OP_RMS_NORM;
        check_product(&norms[i], (struct ghp_kernel_spec){.bias = true});
        check_sum_normed(&norms[i], true);
        check_sum_normed(&rms, false);
    }
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        check_add(channels[i], 6);
        check_mask(channels[i], 1);
        check_mask(channels[i], 2);
        for (int variant = 0; variant < 6; variant++)
            check_norm(channels[i], 6,
                       (struct ghp_kernel_spec){
                           .relu = variant & 1, .stats = variant / 2 > 0, .add = variant / 2 > 1});
    }
    check_loss(48, 5, 0, 0);
    check_loss(4099, 1, 0, 0.125);
    check_loss(7, 2, 3, 0);
    check_loss(7, 2, 3, 0.125);
    check_all_added();
    check_norm_evaluates();
    check_norm_stats_deltas(false);
    check_norm_stats_deltas(true);
    check_masked_sum(1000);
    check_masked_sum(1003);
}

/* Settings named on the command line, or all. */
static bool is_wanted(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], setting->name) == 0) return true;
    return argc < 2;
}

CHECK_TEST(cuda_fused)
{
    struct ghp_backend_config plain = {.element_bytes = 4, .threads = 1, .exact = true};
    struct ghp_backend *exact = NULL;

    ops = ghp_backend_find("cuda");
    if (!CHECK(ops != NULL)) return check_end();
    if (ops->check() != GHP_OK) SKIP(ghp_status_message());
    CHECK_STATUS(ghp_backend_reference.open(&plain, &reference), GHP_OK);
    CHECK_STATUS(ops->open(&plain, &exact), GHP_OK);
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        struct ghp_backend_config config = {
            .element_bytes = settings[s].element_bytes, .tf32 = settings[s].tf32, .threads = 1};

        setting = &settings[s];
        if (!is_wanted(argc, argv)) continue;
        if (!CHECK_STATUS(ops->open(&config, &backend), GHP_OK)) continue;
        kernels = 0;
        check_setting();
        check_doubles();
        check_refusals(exact);
        fprintf(stderr, "%s: %d kernels\n", setting->name, kernels);
        ops->close(backend);
    }
    ops->close(exact);
    ghp_backend_reference.close(reference);
    return check_end();
}
