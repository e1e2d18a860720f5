/* ghp-test: timeout=300 emulated=yes
 *
 * Several products by one kernel, at once (executor/backend/cuda/linear.c), give the bits of single ones, in float and
 * bf16: forward with a bias, a bias and a ReLU, or neither, and of weights' gradients; with tensors at equal distances,
 * at others, backwards, and with scratch for all or for one. Nothing else changes. `exact` has none. Skipped without a
 * GPU. */
#include "tests/check.h"
#include "tests/executor/op_case.h"

#include "executor/backend/backend_private.h"

enum { PRODUCTS = 3, APART = 256 };

static const struct ghp_backend_ops *ops;
static struct ghp_backend *backend;
static int element_bytes;

struct memory { /* all tensors, on the device, and what is to be there before a pass */
    char *at, *before;
    int64_t bytes;
};

static int64_t take(struct memory *m, int64_t bytes)
{
    int64_t at = m->bytes;

    m->bytes += (bytes + APART - 1) / APART * APART;
    return at;
}

/* Numbers of both signs that every precision holds. */
static void fill(const struct memory *m, int64_t at, int64_t n, int64_t bytes)
{
    for (int64_t i = 0; i < n; i++) {
        float value = (float)((i * i + at / APART) % 11 - 5) / 8;
        uint16_t narrow = ghp_bf16_of(value);

        memcpy(m->before + at + i * bytes, bytes == 2 ? (void *)&narrow : (void *)&value,
               (size_t)bytes);
    }
}

/* The places of all tensors: those of one product, `step` bytes from those of the one before it. */
struct layout {
    int64_t x, scratch, w, w_bf16, bias, bias_bf16, y, dy, dw, end;
};

static struct layout lay_out(const struct ghp_local *local, int64_t scratch_bytes, struct memory *m)
{
    int64_t weights = ghp_local_weight_elements(local), e = element_bytes;
    struct layout l = {.x = take(m, ghp_local_in_elements(local) * e),
                       .scratch = take(m, PRODUCTS * ghp_align(scratch_bytes)),
                       .w = take(m, weights * 4),
                       .w_bf16 = take(m, weights * 2),
                       .bias = take(m, local->k * 4),
                       .bias_bf16 = take(m, local->k * 2),
                       .y = take(m, ghp_local_out_elements(local) * e),
                       .dy = take(m, ghp_local_out_elements(local) * e),
                       .dw = take(m, weights * 4)};

    l.end = m->bytes;
    m->bytes += PRODUCTS * (l.end - l.w) + APART;
    return l;
}

static struct ghp_kernel_arguments arguments_of(const struct memory *m, const struct layout *l,
                                                int64_t moved, int64_t scratch)
{
    bool bf16 = element_bytes == 2;
    char *own = m->at + moved;

    return (struct ghp_kernel_arguments){
        .training = true,
        .at = {.x = {m->at + l->x},
               .w = {own + l->w, own + l->bias},
               .w_bf16 = {bf16 ? own + l->w_bf16 : NULL, bf16 ? own + l->bias_bf16 : NULL},
               .y = own + l->y,
               .dy = own + l->dy,
               .dw = {own + l->dw},
               .scratch = m->at + l->scratch + scratch}};
}

/* How the products lie: in a row, the last a bit farther, the first and the last changed. */
enum order { EVEN, UNEVEN, BACKWARDS, ORDERS };

static void place(const struct memory *m, const struct layout *l, enum order order, int64_t scratch,
                  struct ghp_kernel_arguments args[PRODUCTS])
{
    int64_t step = l->end - l->w;

    for (int i = 0; i < PRODUCTS; i++) {
        int row = order == BACKWARDS ? PRODUCTS - 1 - i : i;
        int64_t farther = order == UNEVEN && i == PRODUCTS - 1 ? APART : 0;

        args[i] = arguments_of(m, l, row * step + farther, i * scratch);
    }
}

static void fill_all(const struct ghp_local *local, const struct memory *m, const struct layout *l,
                     const struct ghp_kernel_arguments args[PRODUCTS])
{
    memset(m->before, 0x3f, (size_t)m->bytes);
    fill(m, l->x, ghp_local_in_elements(local), element_bytes);
    for (int i = 0; i < PRODUCTS; i++) {
        const struct ghp_tensors *at = &args[i].at;
        int64_t moved = (char *)at->y - m->at - l->y;

        fill(m, l->w + moved, ghp_local_weight_elements(local), 4);
        fill(m, l->w_bf16 + moved, ghp_local_weight_elements(local), 2);
        fill(m, l->bias + moved, local->k, 4);
        fill(m, l->bias_bf16 + moved, local->k, 2);
        fill(m, l->dy + moved, ghp_local_out_elements(local), element_bytes);
    }
}

/* What is in memory after them, but for scratch. */
static char *run(struct ghp_kernel *kernel, const struct memory *m, const struct layout *l,
                 struct ghp_joint_run joint, bool at_once)
{
    struct ghp_device device = ghp_backend_device(ops, backend);
    char *after = ghp_alloc((size_t)m->bytes, 1);

    CHECK_STATUS(ghp_device_write(device, m->at, m->before, m->bytes), GHP_OK);
    if (at_once) CHECK_STATUS(ops->run_all(kernel, joint), GHP_OK);
    for (int i = 0; i < joint.n && !at_once; i++)
        CHECK_STATUS(ops->run(kernel, &joint.args[i]), GHP_OK);
    CHECK_STATUS(ghp_device_finish(device, GHP_DEVICE_STREAM_COMPUTE), GHP_OK);
    CHECK_STATUS(ghp_device_read(device, after, m->at, m->bytes), GHP_OK);
    memset(after + l->scratch, 0, (size_t)(l->w - l->scratch));
    return after;
}

static void compare(const struct ghp_local *local, enum ghp_pass pass, struct ghp_kernel_spec fused)
{
    struct ghp_device device = ghp_backend_device(ops, backend);
    struct ghp_kernel *kernel = NULL;
    struct memory m = {NULL, NULL, 0};
    void *base = NULL;

    CHECK_STATUS(ops->prepare_nchw16c(backend, local, pass, NULL, fused, &kernel), GHP_OK);
    if (!CHECK(kernel != NULL)) return;
    CHECK(ops->joins(kernel));
    const int64_t scratch = ghp_align(ops->scratch_bytes(kernel));
    const struct layout l = lay_out(local, scratch, &m);
    m.before = ghp_alloc((size_t)m.bytes, 1);
    CHECK_STATUS(ghp_device_allocate(device, m.bytes, &base), GHP_OK);
    m.at = base;
    for (int variant = 0; variant < 2 * ORDERS; variant++) {
        struct ghp_kernel_arguments args[PRODUCTS];
        const struct ghp_joint_run joint = {args, PRODUCTS,
                                            variant < ORDERS ? PRODUCTS * scratch : scratch};
        char *right, *got;

        place(&m, &l, (enum order)(variant % ORDERS), scratch, args);
        fill_all(local, &m, &l, args);
        right = run(kernel, &m, &l, joint, false);
        got = run(kernel, &m, &l, joint, true);
        CHECK(memcmp(right, m.before, (size_t)m.bytes) != 0);
        if (!CHECK(memcmp(got, right, (size_t)m.bytes) == 0))
            fprintf(stderr, "  variant %d of pass %s, %d bytes\n", variant, ghp_pass_name(pass),
                    element_bytes);
        free(right);
        free(got);
    }
    ops->release(kernel);
    ghp_device_release(device, m.at);
    free(m.before);
}

/* A linear layer over 15 positions. */
static struct ghp_local linear(int64_t c, int64_t k)
{
    return op_case_complete(
        (struct ghp_local){.op = GHP_OP_LINEAR, .n = 3, .c = c, .h = 5, .k = k});
}

static void check_setting(void)
{
    const struct ghp_local locals[] = {linear(24, 16), linear(16, 33)}; /* 33: no bias within */

    for (size_t i = 0; i < sizeof locals / sizeof locals[0]; i++) {
        compare(&locals[i], GHP_PASS_FORWARD, (struct ghp_kernel_spec){0});
        compare(&locals[i], GHP_PASS_FORWARD, (struct ghp_kernel_spec){.bias = true});
        compare(&locals[i], GHP_PASS_FORWARD, (struct ghp_kernel_spec){.bias = true, .relu = true});
        compare(&locals[i], GHP_PASS_BACKWARD_WEIGHT, (struct ghp_kernel_spec){0});
    }
}

/* Whether a backend of the configuration joins products. */
static bool joins(struct ghp_backend_config config)
{
    const struct ghp_local local = linear(24, 16);
    struct ghp_backend *opened = NULL;
    struct ghp_kernel *kernel = NULL;
    bool does;

    CHECK_STATUS(ops->open(&config, &opened), GHP_OK);
    CHECK_STATUS(ops->prepare(opened, &local, GHP_PASS_FORWARD, &kernel), GHP_OK);
    does = ops->joins(kernel);
    ops->release(kernel);
    ops->close(opened);
    return does;
}

CHECK_TEST(cuda_siblings)
{
    static const struct {
        const char *name;
        int element_bytes;
    } settings[] = {{"float", 4}, {"bf16", 2}};

    ops = ghp_backend_find("cuda");
    if (!CHECK(ops != NULL)) return check_end();
    if (ops->check() != GHP_OK) SKIP(ghp_status_message());
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        struct ghp_backend_config config = {.element_bytes = settings[s].element_bytes,
                                            .threads = 1};

        if (argc > 1 && strcmp(argv[1], settings[s].name) != 0) continue;
        element_bytes = config.element_bytes;
        CHECK_STATUS(ops->open(&config, &backend), GHP_OK);
        check_setting();
        setenv("GHP_EMULATED_SINGLE", "1", 1); /* an emulated cuBLASLt takes no batches */
        check_setting();
        unsetenv("GHP_EMULATED_SINGLE");
        ops->close(backend);
        config.exact = true;
        CHECK(!joins(config));
    }
    return check_end();
}
