/* ghp-test: timeout=300 emulated=yes
 *
 * The sums of a batch norm's input that the convolution before it makes, on the cuda backend. They are those of its
 * output, by cuDNN or by ghp's kernels, and are made only if there is a place for them. The batch norm's statistics are
 * of the sums that it was given. It reads the tensor again for channels whose mean is far from 0. In float and bf16.
 * Skipped without a GPU. */
#include "tests/executor/op_case.h"
#include "tests/executor/twin_case.h"
#include "tests/check.h"

#include "executor/backend/backend_private.h"

#include <math.h>

static const double BOUND[] = {[2] = 2e-2, [4] = 1e-4}; /* by bytes of a number */

static const struct ghp_backend_ops *ops;
static struct ghp_backend *reference, *backend;
static int element_bytes;

static void run(struct twin_case *c, enum ghp_pass pass, struct ghp_kernel_spec fused)
{
    struct ghp_kernel *kernel = NULL;

    CHECK_STATUS(ops->prepare_nchw16c(backend, &c->right.local, pass, NULL, fused, &kernel),
                 GHP_OK);
    if (!CHECK(kernel != NULL)) return;
    CHECK_STATUS(twin_case_send(c, pass), GHP_OK);
    CHECK_STATUS(twin_case_run(c, ops, kernel), GHP_OK);
    CHECK_STATUS(twin_case_fetch(c), GHP_OK);
    ops->release(kernel);
}

static void expect(struct twin_case *c, enum ghp_pass pass)
{
    CHECK_STATUS(ghp_operand_set_run(&c->right, &ghp_backend_reference, reference, pass), GHP_OK);
}

/* The reference's pass, and all tensors but one compared with it. */
static void compare(struct twin_case *c, enum ghp_pass pass, const char *but)
{
    expect(c, pass);
    for (int i = 0; i < c->n; i++) {
        const struct twin_tensor *t = &c->tensors[i];
        double error = strcmp(t->name, but) == 0 ? 0 : twin_case_error(c, t);

        if (!CHECK(error <= BOUND[element_bytes]))
            fprintf(stderr, "  %s of %s: %.3g\n", t->name, op_case_text(&c->right.local, pass),
                    error);
    }
    twin_case_round(c);
}

static void open_case(struct twin_case *c, const struct ghp_local *local)
{
    twin_case_open(c, ghp_backend_device(ops, backend), local, element_bytes);
}

/* n floats on the device, and back. Released by the caller. */
static void *put(const struct twin_case *c, const float *values, int64_t n)
{
    void *made = NULL;

    CHECK_STATUS(ghp_device_allocate(c->there.device, n * 4, &made), GHP_OK);
    CHECK_STATUS(ghp_device_write(c->there.device, made, values, n * 4), GHP_OK);
    return made;
}

/* ---- making sums ---- */

enum { MOST_CHANNELS = 16 };

static void check_made(const struct ghp_local *local)
{
    const struct ghp_kernel_spec fused = {.sums = true};
    int64_t k = local->k, n = ghp_local_out_elements(local);
    double sum[MOST_CHANNELS] = {0}, squares[MOST_CHANNELS] = {0}, size[MOST_CHANNELS] = {0};
    float got[2 * MOST_CHANNELS] = {0};
    struct twin_case c;
    void *there;

    open_case(&c, local);
    c.there.args.at.sums = there = put(&c, got, 2 * k);
    run(&c, GHP_PASS_FORWARD, fused);
    for (int64_t i = 0; i < n; i++) {
        double y = (double)ghp_bf16_value(((const uint16_t *)c.got.args.at.y)[i]);

        sum[i % k] += y;
        squares[i % k] += y * y;
        size[i % k] += fabs(y);
    }
    CHECK_STATUS(ghp_device_read(c.there.device, got, there, 2 * k * 4), GHP_OK);
    for (int64_t i = 0; i < k; i++) { /* before or after y is rounded */
        CHECK(fabs((double)got[i] - sum[i]) <= 1e-3 * size[i]);
        CHECK(fabs((double)got[k + i] - squares[i]) <= 1e-3 * squares[i]);
    }
    compare(&c, GHP_PASS_FORWARD, "");
    c.there.args.at.sums = NULL;
    run(&c, GHP_PASS_FORWARD, fused);
    compare(&c, GHP_PASS_FORWARD, "");
    ghp_device_release(c.there.device, there);
    twin_case_close(&c);
}

/* ---- statistics of given sums ---- */

/* Sums of x + by, one after the other in float. */
static void sum_up(const struct twin_case *c, float by, float *sums)
{
    const struct ghp_local *l = &c->right.local;
    const float *x = c->right.args.at.x[0];

    memset(sums, 0, (size_t)(2 * l->c) * sizeof *sums);
    for (int64_t i = 0; i < ghp_local_in_elements(l); i++) {
        sums[i % l->c] += x[i] + by;
        sums[l->c + i % l->c] += (x[i] + by) * (x[i] + by);
    }
}

/* The forward pass writes its statistics over the sums. Those of x + by show what it reads: the tensor, for the `again`
 * channels of the one access that has a mean far from 0; of the others the sums. */
static void check_kept(struct twin_case *c, float by, int64_t again)
{
    int64_t channels = c->right.local.c, bytes = 2 * channels * 4;
    void *saved = c->there.args.at.saved;
    float *got = ghp_alloc((size_t)bytes, 1);

    sum_up(c, by, got);
    c->there.args.at.sums = c->there.args.at.saved = put(c, got, 2 * channels);
    run(c, GHP_PASS_FORWARD, (struct ghp_kernel_spec){.stats = true, .sums = true});
    expect(c, GHP_PASS_STATS);
    if (by == 0)
        compare(c, GHP_PASS_FORWARD, "saved");
    else
        expect(c, GHP_PASS_FORWARD);
    CHECK_STATUS(ghp_device_read(c->there.device, got, c->there.args.at.saved, bytes), GHP_OK);
    const float *right = c->right.args.at.saved;
    for (int64_t i = 0; i < channels; i++) {
        float mean = right[i] + (i >= again ? by : 0);

        CHECK(fabsf(got[i] - mean) <= 1e-5f * (1 + fabsf(mean)));
        CHECK(fabsf(got[channels + i] - right[channels + i]) <= 1e-3f * right[channels + i]);
    }
    ghp_device_release(c->there.device, c->there.args.at.saved);
    c->there.args.at.saved = saved;
    c->there.args.at.sums = NULL;
    free(got);
}

static void check_given(int64_t channels)
{
    struct ghp_local local = twin_case_shape(GHP_OP_BATCH_NORM, 5, channels, 6);
    int64_t access = channels % 8 == 0 ? 16 / element_bytes : 1;
    float *sums = ghp_alloc((size_t)(2 * channels), sizeof *sums);
    struct twin_case c;

    open_case(&c, &local);
    float *x = (float *)(uintptr_t)c.right.args.at.x[0];
    for (int64_t i = 0; i < ghp_local_in_elements(&local); i += channels)
        x[i] = (float)(1000 + i * i % 5 * 4); /* as bfloat16 has them */
    sum_up(&c, 0, sums);
    c.there.args.at.sums = put(&c, sums, 2 * channels);
    run(&c, GHP_PASS_STATS, (struct ghp_kernel_spec){.sums = true});
    compare(&c, GHP_PASS_STATS, "");
    ghp_device_release(c.there.device, c.there.args.at.sums);
    check_kept(&c, 0, access);
    check_kept(&c, 0.25f, access);
    free(sums);
    twin_case_close(&c);
}

static bool is_refused(enum ghp_op op, struct ghp_kernel_spec fused)
{
    struct ghp_local local = twin_case_shape(op, 2, 8, 4);
    struct ghp_kernel *kernel = NULL;

    CHECK_STATUS(ops->prepare_nchw16c(backend, &local, GHP_PASS_FORWARD, NULL, fused, &kernel),
                 GHP_OK);
    if (kernel != NULL) ops->release(kernel);
    return kernel == NULL;
}

static void check_precision(void)
{
    const struct ghp_local eights = twin_case_shape(GHP_OP_CONV2D, 3, 16, 7),
                           odd = twin_case_shape(GHP_OP_CONV2D, 2, 7, 5);

    CHECK_EQ(ops->sums(backend), element_bytes == 2);
    CHECK(is_refused(GHP_OP_CONV2D, (struct ghp_kernel_spec){.bias = true, .sums = true}));
    CHECK(is_refused(GHP_OP_LINEAR, (struct ghp_kernel_spec){.sums = true}));
    check_given(48);
    check_given(7);
    if (!ops->sums(backend)) return;
    check_made(&eights);
    check_made(&odd);
}

CHECK_TEST(cuda_sums)
{
    const struct ghp_backend_config plain = {.element_bytes = 4, .threads = 1, .exact = true};

    ops = ghp_backend_find("cuda");
    if (!CHECK(ops != NULL)) return check_end();
    if (ops->check() != GHP_OK) SKIP(ghp_status_message());
    CHECK_STATUS(ghp_backend_reference.open(&plain, &reference), GHP_OK);
    for (int i = 0; i < 3; i++) {
        struct ghp_backend_config config = {
            .element_bytes = i > 0 ? 2 : 4, .threads = 1, .exact = i > 1};

        element_bytes = config.element_bytes;
        if (argc > 1 && strcmp(argv[1], i > 0 ? "bf16" : "float") != 0) continue;
        if (!CHECK_STATUS(ops->open(&config, &backend), GHP_OK)) continue;
        if (config.exact)
            CHECK(!ops->sums(backend));
        else
            check_precision();
        ops->close(backend);
    }
    ghp_backend_reference.close(reference);
    return check_end();
}
