/* tests/executor/backend/test_kernel_spec.c - operations on blocked tensors against the reference on plain ones,
 * every way that a backend says it has.
 *
 * Bound of sums: as in test_onednn.c, 16 (4 + sqrt(m)) eps of the tensor's root-mean-square size, for Winograd among
 * the ways, and (4 + sqrt(places of the window)) eps for pools; what only moves or compares numbers is compared bit by
 * bit, and where channels keep apart blocked tensors have the bits of plain ones. A wrong place errs by the tensor's
 * size itself. */
#include "tests/check.h"
#include "tests/executor/op_case.h"

#include "executor/engine/kernel_spec.h"
#include "executor/platform/streaming_store.h"
#include "executor/state/weight_blocks.h"

#include <float.h>

enum { LANES = GHP_BLOCK_CHANNELS };

static const struct ghp_backend_ops *const ops = &ghp_backend_onednn;
static struct ghp_backend *reference, *exact, *fast;

/* ---- blocks of a tensor ---- */

struct image { /* of a tensor, n of them */
    int64_t n, c, pixels;
};

static void turn(float *at, struct image z, bool to_blocks)
{
    size_t bytes = (size_t)(z.n * z.c * z.pixels) * sizeof *at;
    float *from = ghp_alloc(bytes + 1, 1);
    memcpy(from, at, bytes);
    for (int64_t n = 0; n < z.n; n++)
        for (int64_t p = 0; p < z.pixels; p++)
            for (int64_t c = 0; c < z.c; c++) {
                int64_t plain = (n * z.pixels + p) * z.c + c;
                int64_t block =
                    ((n * (z.c / LANES) + c / LANES) * z.pixels + p) * LANES + c % LANES;
                if (to_blocks)
                    at[block] = from[plain];
                else
                    at[plain] = from[block];
            }
    free(from);
}

/* [k][c][places] and [k / 16][c / 16][places][16 of c][16 of k] */
static void turn_weights(float *at, const struct ghp_local *l, bool to_blocks)
{
    int64_t places = l->window.r * l->window.s, n = l->k * l->c * places, block = 0;
    float *from = ghp_alloc((size_t)n, sizeof *from);
    memcpy(from, at, (size_t)n * sizeof *from);
    for (int64_t k = 0; k < l->k; k += LANES)
        for (int64_t c = 0; c < l->c; c += LANES)
            for (int64_t place = 0; place < places; place++)
                for (int64_t i = 0; i < LANES; i++)
                    for (int64_t j = 0; j < LANES; j++) {
                        int64_t plain = ((k + j) * l->c + c + i) * places + place;
                        if (to_blocks)
                            at[block++] = from[plain];
                        else
                            at[plain] = from[block++];
                    }
    free(from);
}

static void turn_all(struct ghp_operand_set *set, struct ghp_kernel_spec spec, bool to_blocks)
{
    const struct ghp_local *l = &set->local;
    const struct ghp_tensors *at = &set->args.at;
    struct image x = {l->n, l->c, l->h * l->w}, y = {l->n, l->k, l->p * l->q};
    for (int i = 0; i < GHP_MAX_INPUTS && spec.x; i++) {
        if (at->x[i] != NULL) turn((float *)(uintptr_t)at->x[i], x, to_blocks);
        if (at->dx[i] != NULL) turn(at->dx[i], x, to_blocks);
    }
    if (spec.y && at->y != NULL) turn(at->y, y, to_blocks);
    if (spec.y && at->dy != NULL) turn(at->dy, y, to_blocks);
    if (spec.w && at->w[0] != NULL) turn_weights(at->w[0], l, to_blocks);
    if (spec.w && at->dw[0] != NULL) turn_weights(at->dw[0], l, to_blocks);
}

/* What parameters are read and written by, against the walk above: no number is lost or moved elsewhere. */
static void check_weight_blocks(const struct ghp_local *l)
{
    struct ghp_param_descriptor descriptor = {.n_dims = 4,
                                              .dims = {l->k, l->c, l->window.r, l->window.s},
                                              .elements = l->k * l->c * l->window.r * l->window.s,
                                              .element_bytes = 4};
    size_t bytes = (size_t)descriptor.elements * sizeof(float);
    float *plain = ghp_alloc(bytes, 1), *nchw16c = ghp_alloc(bytes, 1),
          *right = ghp_alloc(bytes, 1);
    for (int64_t i = 0; i < descriptor.elements; i++)
        plain[i] = right[i] = (float)i;
    turn_weights(right, l, true);
    ghp_weight_blocks_put(&descriptor, plain, nchw16c);
    CHECK(memcmp(nchw16c, right, bytes) == 0);
    CHECK(memcmp(nchw16c, plain, bytes) != 0);
    ghp_weight_blocks_get(&descriptor, nchw16c, right);
    CHECK(memcmp(plain, right, bytes) == 0);
    free(plain);
    free(nchw16c);
    free(right);
}

/* ---- kernels ---- */

static double bias_of(int64_t channel)
{
    return 0.25 * (double)(channel % 7 - 3);
}

static float *make_bias(const struct ghp_local *l)
{
    float *bias = ghp_alloc((size_t)l->k, sizeof *bias);
    for (int64_t k = 0; k < l->k; k++)
        bias[k] = (float)bias_of(k);
    return bias;
}

/* What a fused kernel also does to its output, number by number on plain tensors. */
static void finish(struct ghp_operand_set *set, struct ghp_kernel_spec spec)
{
    const struct ghp_local *l = &set->local;
    float *y = set->args.at.y;
    for (int64_t i = 0; i < l->n * l->p * l->q * l->k; i++) {
        if (spec.bias) y[i] += (float)bias_of(i % l->k);
        if (spec.relu && !(y[i] > 0)) y[i] = 0;
    }
}

static void run_nchw16c(struct ghp_operand_set *set, enum ghp_pass pass, const char *algorithm,
                        struct ghp_kernel_spec spec)
{
    struct ghp_kernel *kernel = NULL;
    float *bias = spec.bias ? make_bias(&set->local) : NULL;
    if (!CHECK_STATUS(ops->prepare_nchw16c(fast, &set->local, pass, algorithm, spec, &kernel),
                      GHP_OK) ||
        !CHECK(kernel != NULL))
        exit(1);
    turn_all(set, spec, true);
    if (bias != NULL) set->args.at.w[1] = bias;
    set->args.at.scratch = ghp_operand_set_block(ops->scratch_bytes(kernel));
    CHECK_STATUS(ops->run(kernel, &set->args), GHP_OK);
    free(set->args.at.scratch);
    set->args.at.scratch = NULL;
    turn_all(set, spec, false);
    if (bias != NULL) set->args.at.w[1] = NULL;
    free(bias);
    ops->release(kernel);
}

static double products(const struct ghp_local *l, enum ghp_pass pass)
{
    int64_t places = l->window.r * l->window.s;
    if (l->op != GHP_OP_CONV2D) return (double)(l->n * l->h * l->w);
    if (pass == GHP_PASS_BACKWARD_WEIGHT) return (double)(l->n * l->p * l->q);
    return (double)((pass == GHP_PASS_FORWARD ? l->c : l->k) * places);
}

static double bound_of(const struct ghp_local *l, enum ghp_pass pass)
{
    bool sums =
        l->op == GHP_OP_CONV2D || l->op == GHP_OP_BATCH_NORM || pass == GHP_PASS_BACKWARD_WEIGHT;
    if (sums) return 16 * (4 + sqrt(products(l, pass))) * FLT_EPSILON;
    if (l->op == GHP_OP_GLOBAL_AVG_POOL) return (4 + sqrt((double)(l->h * l->w))) * FLT_EPSILON;
    if (l->op == GHP_OP_AVG_POOL || (l->op == GHP_OP_MAX_POOL && pass != GHP_PASS_FORWARD))
        return (4 + sqrt((double)(l->window.r * l->window.s))) * FLT_EPSILON;
    return 0;
}

static void compare(const struct ghp_operand_set *got, const struct ghp_operand_set *right,
                    enum ghp_pass pass, const char *name, double bound)
{
    struct op_tensor a[OP_MAX_TENSORS], b[OP_MAX_TENSORS];
    int n = op_case_written(got, pass, a);
    op_case_written(right, pass, b);
    for (int t = 0; t < n; t++) {
        double difference = 0, size = 0;
        for (int64_t i = 0; i < a[t].elements; i++) {
            double value = op_case_get(right, b[t].data, i);
            difference += pow(op_case_get(got, a[t].data, i) - value, 2);
            size += value * value;
        }
        CHECK(size > 0);
        if (!CHECK_NEAR(sqrt(difference), 0, bound * sqrt(size)))
            fprintf(stderr, "  in %s of %s by %s\n", a[t].name, op_case_text(&got->local, pass),
                    name);
    }
}

/* As `got`, but on plain tensors. */
static void check_plain_bits(const struct ghp_operand_set *got, enum ghp_pass pass,
                             struct ghp_kernel_spec spec)
{
    struct ghp_operand_set plain;
    spec.x = spec.y = false;
    if (!CHECK_STATUS(ghp_operand_set_init(&got->local, 4, GHP_OPERAND_SET_ALL, &plain), GHP_OK))
        exit(1);
    if (pass != GHP_PASS_FORWARD) run_nchw16c(&plain, GHP_PASS_FORWARD, NULL, spec);
    run_nchw16c(&plain, pass, NULL, spec);
    compare(got, &plain, pass, "plain tensors", 0);
    ghp_operand_set_release(&plain);
}

/* A pass by one way, after the reference's forward pass (in the same formats: what a pool saves is in their order). */
static void check_variant(const struct ghp_local *local, enum ghp_pass pass, const char *algorithm,
                          struct ghp_kernel_spec spec)
{
    struct ghp_operand_set right, got;
    if (!CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &right), GHP_OK) ||
        !CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &got), GHP_OK))
        exit(1);
    if (pass != GHP_PASS_FORWARD) {
        op_case_run(&right, &ghp_backend_reference, reference, GHP_PASS_FORWARD, NULL);
        run_nchw16c(&got, GHP_PASS_FORWARD, NULL, spec);
        if (local->op == GHP_OP_CONV2D) memcpy(got.args.at.y, right.args.at.y, 4); /* not read */
    }
    op_case_run(&right, &ghp_backend_reference, reference, pass, NULL);
    finish(&right, spec);
    run_nchw16c(&got, pass, algorithm, spec);
    compare(&got, &right, pass, algorithm == NULL ? "default" : algorithm, bound_of(local, pass));
    if (local->op != GHP_OP_CONV2D && pass != GHP_PASS_BACKWARD_WEIGHT)
        check_plain_bits(&got, pass, spec);
    ghp_operand_set_release(&right);
    ghp_operand_set_release(&got);
}

static void check_spec(const struct ghp_local *local, struct ghp_kernel_spec spec)
{
    for (int pass = 0; pass < GHP_PASS_COUNT; pass++) {
        struct ghp_algorithms names = {0};
        if (!ghp_local_has_pass(local, (enum ghp_pass)pass)) continue;
        if (ghp_kernel_spec_is_fused(spec) &&
            !ghp_backend_fuses(ops, fast, local->op, (enum ghp_pass)pass))
            continue;
        check_variant(local, (enum ghp_pass)pass, NULL, spec);
        CHECK_STATUS(ops->algorithms(fast, local, (enum ghp_pass)pass, spec, &names), GHP_OK);
        CHECK((names.n > 0) == (local->op == GHP_OP_CONV2D));
        for (int i = 0; i < names.n; i++) {
            struct ghp_kernel *kernel = NULL;
            ops->prepare_nchw16c(fast, local, (enum ghp_pass)pass, names.names[i], spec, &kernel);
            CHECK_TEXT(ops->algorithm(kernel), names.names[i]);
            ops->release(kernel);
            check_variant(local, (enum ghp_pass)pass, names.names[i], spec);
        }
    }
}

static struct ghp_local sized(enum ghp_op op, int64_t c, int64_t size, int64_t k)
{
    struct ghp_window window = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, false};
    struct ghp_local local = {.op = op,
                              .norm = {.epsilon = 1e-5, .momentum = 0.1},
                              .n = 3,
                              .c = c,
                              .h = size,
                              .w = size,
                              .k = k,
                              .n_inputs = op == GHP_OP_ADD ? 2 : 1,
                              .window = window};
    if (op == GHP_OP_CONV2D || op == GHP_OP_MAX_POOL || op == GHP_OP_AVG_POOL)
        return op_case_conv(local);
    bool flat = op == GHP_OP_FLATTEN, global = op == GHP_OP_GLOBAL_AVG_POOL;
    local.k = flat ? c * size * size : c;
    local.p = local.q = flat || global ? 1 : size;
    return local;
}

/* A convolution with another window. */
static struct ghp_local square(struct ghp_local conv, int64_t side, int64_t pad)
{
    conv.window = (struct ghp_window){side, side, 1, 1, pad, pad, pad, pad, 1, 1, 1, false};
    return op_case_conv(conv);
}

/* What a ReLU lets through of dy, by its output. */
static void mask(struct ghp_operand_set *set)
{
    const float *y = set->args.at.y;
    float *dy = set->args.at.dy;
    for (int64_t i = 0; i < ghp_local_out_elements(&set->local); i++)
        if (!(y[i] > 0)) dy[i] = 0;
}

/* What the addition after a batch norm adds. */
static float *make_other(const struct ghp_local *local)
{
    int64_t n = ghp_local_out_elements(local);
    float *other = ghp_alloc((size_t)n, sizeof *other);
    for (int64_t i = 0; i < n; i++)
        other[i] = (float)bias_of(i * i % 11);
    return other;
}

/* What is fused in one pass of a batch norm. */
static struct ghp_kernel_spec in_pass(struct ghp_kernel_spec spec, const struct ghp_local *local,
                                      enum ghp_pass pass)
{
    bool forward = pass == GHP_PASS_FORWARD;
    spec.relu = spec.relu && ghp_backend_fuses(ops, fast, local->op, pass) &&
                (forward || !spec.add); /* else the ReLU does not follow the batch norm */
    spec.stats = spec.stats && (forward || pass == GHP_PASS_BACKWARD_DATA);
    spec.add = spec.add && forward;
    return spec;
}

static void forward_norm(struct ghp_operand_set *right, struct ghp_kernel_spec now,
                         const float *other)
{
    float *y = right->args.at.y;
    op_case_run(right, &ghp_backend_reference, reference, GHP_PASS_FORWARD, NULL);
    for (int64_t i = 0; now.add && i < ghp_local_out_elements(&right->local); i++)
        y[i] += other[i];
    finish(right, now);
    if (now.relu && !now.add) mask(right);
}

/* All passes of a batch norm in the order of training, each after what the one before it made in the same format:
 * with what is fused, against the same passes with the others between them. With statistics of its own there is no
 * STATS, and BACKWARD_DATA runs in the place of BACKWARD_STATS. */
static void check_norm(const struct ghp_local *local, struct ghp_kernel_spec spec)
{
    static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD, GHP_PASS_BACKWARD_STATS,
                                          GHP_PASS_BACKWARD_WEIGHT, GHP_PASS_BACKWARD_DATA};
    struct ghp_operand_set right, got;
    float *other = make_other(local);
    if (!CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &right), GHP_OK) ||
        !CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &got), GHP_OK))
        exit(1);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        bool forward = order[i] == GHP_PASS_FORWARD,
             sums = order[i] == GHP_PASS_STATS || order[i] == GHP_PASS_BACKWARD_STATS;
        enum ghp_pass by =
            spec.stats && order[i] == GHP_PASS_BACKWARD_STATS ? GHP_PASS_BACKWARD_DATA : order[i];
        struct ghp_kernel_spec now = in_pass(spec, local, by);
        if (forward)
            forward_norm(&right, now, other);
        else
            op_case_run(&right, &ghp_backend_reference, reference, order[i], NULL);
        if (now.add) got.args.at.x[1] = other;
        if (!spec.stats || order[i] == GHP_PASS_BACKWARD_WEIGHT || forward || by != order[i])
            run_nchw16c(&got, by, NULL, now);
        got.args.at.x[1] = NULL;
        if (!(spec.stats && sums && by == order[i]))
            compare(&got, &right, order[i], now.stats ? "loop with its sums" : "loop",
                    bound_of(local, order[i]));
    }
    free(other);
    ghp_operand_set_release(&right);
    ghp_operand_set_release(&got);
}

/* Blocked or plain; statistics by themselves, fused, with an addition; with a ReLU or without. */
static void check_norms(void)
{
    static const int64_t channels[] = {48, 150, 7};
    const int64_t all = (int64_t)(sizeof channels / sizeof channels[0]);
    for (int64_t i = 0; i < all * 12; i++) {
        int64_t c = channels[i / 12], fused = i / 4 % 3;
        const struct ghp_kernel_spec spec = {.x = i % 2 > 0,
                                             .y = i % 2 > 0,
                                             .relu = i / 2 % 2 > 0,
                                             .stats = fused > 0,
                                             .add = fused > 1};
        const struct ghp_local norm = sized(GHP_OP_BATCH_NORM, c, 5, c);
        if (!spec.x || ghp_whole_blocks(c)) check_norm(&norm, spec);
    }
    for (int i = 0; i < 4; i++) { /* large enough to be written past the caches */
        const struct ghp_local norm = sized(GHP_OP_BATCH_NORM, 64, 40, 64);
        CHECK(ghp_local_in_elements(&norm) * 4 >= GHP_STREAMING_STORE_BYTES);
        check_norm(&norm, (struct ghp_kernel_spec){
                              .x = true, .y = true, .relu = i > 1, .stats = i % 2, .add = i % 2});
    }
    struct ghp_kernel *kernel = NULL;
    const struct ghp_local norm = sized(GHP_OP_BATCH_NORM, 48, 5, 48);
    CHECK_STATUS(ops->prepare_nchw16c(fast, &norm, GHP_PASS_FORWARD, NULL,
                                      (struct ghp_kernel_spec){.add = true}, &kernel),
                 GHP_OK);
    CHECK(kernel == NULL); /* shared sums are not there any more where the other half is */
}

/* A max pool that takes the backward pass of the ReLU before it along, against the pool on plain tensors and the ReLU:
 * bit by bit, for both add the same numbers. Windows with nothing above 0 are among them. */
static void check_mask(const struct ghp_local *local, struct ghp_kernel_spec spec)
{
    struct ghp_operand_set right, got;
    if (!CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &right), GHP_OK) ||
        !CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &got), GHP_OK))
        exit(1);
    float *x = (float *)(uintptr_t)right.args.at.x[0], *dx = right.args.at.dx[0];
    int64_t n = ghp_local_in_elements(local), stopped = 0, closed = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] > 0.4f ? x[i] : 0;
    memcpy((float *)(uintptr_t)got.args.at.x[0], x, (size_t)n * sizeof *x);
    op_case_run(&right, ops, exact, GHP_PASS_FORWARD, NULL);
    op_case_run(&right, ops, exact, GHP_PASS_BACKWARD_DATA, NULL);
    for (int64_t i = 0; i < n; i++) {
        stopped += !(x[i] > 0) && dx[i] != 0;
        dx[i] = x[i] > 0 ? dx[i] : 0;
    }
    for (int64_t i = 0; i < ghp_local_out_elements(local); i++)
        closed += !(((float *)right.args.at.y)[i] > 0);
    CHECK(stopped > 0 && closed > 0 && closed < ghp_local_out_elements(local));
    run_nchw16c(&got, GHP_PASS_FORWARD, NULL, spec);
    CHECK(memcmp(got.args.at.y, right.args.at.y,
                 (size_t)ghp_local_out_elements(local) * sizeof(float)) == 0);
    spec.relu = false;
    run_nchw16c(&got, GHP_PASS_BACKWARD_DATA, NULL, spec);
    compare(&got, &right, GHP_PASS_BACKWARD_DATA, "the pool", 0);
    ghp_operand_set_release(&right);
    ghp_operand_set_release(&got);
}

/* Windows side by side, and over one another; tensors in blocks, plain, of few channels; small, and large enough to
 * be written past the caches. */
static void check_gates(void)
{
    static const int64_t sizes[][2] = {{48, 6}, {7, 6}, {64, 48}};
    for (int i = 0; i < 12; i++) {
        const int64_t *size = sizes[i / 4];
        struct ghp_local pool = sized(GHP_OP_MAX_POOL, size[0], size[1], size[0]);
        const struct ghp_kernel_spec spec = {.x = i & 1, .y = i & 1, .relu = true};
        if (i & 2) pool.window = (struct ghp_window){2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, false};
        pool = op_case_conv(pool);
        if (!spec.x)
            check_variant(&pool, GHP_PASS_BACKWARD_DATA, NULL, (struct ghp_kernel_spec){0});
        if (!spec.x || ghp_whole_blocks(size[0])) check_mask(&pool, spec);
    }
    CHECK(ghp_backend_fuses(ops, fast, GHP_OP_MAX_POOL, GHP_PASS_FORWARD));
    CHECK(!ghp_backend_fuses(ops, exact, GHP_OP_MAX_POOL, GHP_PASS_FORWARD));
}

static void check_kernels(void)
{
    static const enum ghp_op apart[] = {GHP_OP_BIAS,           GHP_OP_RELU, GHP_OP_MAX_POOL,
                                        GHP_OP_AVG_POOL,       GHP_OP_ADD,  GHP_OP_FLATTEN,
                                        GHP_OP_GLOBAL_AVG_POOL};
    const struct ghp_local convs[] = {
        sized(GHP_OP_CONV2D, 32, 18, 48), sized(GHP_OP_CONV2D, 3, 9, 16),
        sized(GHP_OP_CONV2D, 64, 4, 32), square(sized(GHP_OP_CONV2D, 80, 7, 32), 5, 2)};
    for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
        struct ghp_kernel_spec likely = ghp_kernel_spec_likely(ops, fast, &convs[i]);
        CHECK_EQ(likely.w, ghp_backend_blocks_weights(ops, fast, &convs[i]));
        CHECK(!ghp_backend_blocks_weights(ops, exact, &convs[i]));
        if (likely.w) check_weight_blocks(&convs[i]);
        for (int v = 0; v < GHP_KERNEL_SPEC_MAX; v++) {
            struct ghp_kernel_spec spec = ghp_kernel_spec_variant(likely, GHP_PASS_FORWARD, v);
            check_spec(&convs[i], spec);
            spec.w = false;
            if (likely.w) check_spec(&convs[i], spec);
            spec.relu = false;
            if (spec.bias) check_spec(&convs[i], spec);
        }
    }
    CHECK(ghp_backend_blocks_weights(ops, fast, &convs[0]));
    CHECK(!ghp_backend_blocks_weights(ops, fast, &convs[1])); /* 3 channels do not fill a block */
    CHECK(ghp_backend_fuses(ops, fast, GHP_OP_CONV2D, GHP_PASS_FORWARD));
    CHECK(!ghp_backend_fuses(ops, fast, GHP_OP_CONV2D, GHP_PASS_BACKWARD_DATA));
    CHECK(!ghp_backend_fuses(ops, exact, GHP_OP_CONV2D, GHP_PASS_FORWARD));
    for (int v = 0; v < 4; v++) {
        const struct ghp_kernel_spec spec = {.x = v & 1, .y = v & 1, .relu = v / 2};
        const struct ghp_local sum = sized(GHP_OP_ADD, 48, 5, 48);
        check_variant(&sum, GHP_PASS_FORWARD, NULL, spec);
    }
    check_norms();
    check_gates();
    CHECK(!ghp_backend_fuses(ops, exact, GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA));
    CHECK(ops->can_block(fast, &(struct ghp_local){.op = GHP_OP_BATCH_NORM}));
    CHECK(!ops->can_block(exact, &(struct ghp_local){.op = GHP_OP_BATCH_NORM}));
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        const struct ghp_local local = sized(apart[i], 48, 5, 48);
        bool ends = apart[i] == GHP_OP_FLATTEN || apart[i] == GHP_OP_GLOBAL_AVG_POOL;
        CHECK(ops->can_block(fast, &local));
        CHECK(!ops->can_block(exact, &local));
        check_spec(&local, (struct ghp_kernel_spec){.x = true, .y = !ends});
    }
    struct ghp_local tiled = sized(GHP_OP_MAX_POOL, 48, 6, 48);
    tiled.window = (struct ghp_window){2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, false};
    tiled = op_case_conv(tiled);
    check_spec(&tiled, (struct ghp_kernel_spec){.x = true, .y = true});
}

CHECK_TEST(kernel_spec)
{
    const struct ghp_backend_config configs[] = {{.element_bytes = 4, .threads = 1, .exact = true},
                                                 {.element_bytes = 4, .threads = 2}};
    if (!CHECK_STATUS(ghp_backend_reference.open(&configs[0], &reference), GHP_OK) ||
        !CHECK_STATUS(ops->open(&configs[0], &exact), GHP_OK) ||
        !CHECK_STATUS(ops->open(&configs[1], &fast), GHP_OK))
        return 1;
    check_kernels();
    ops->close(fast);
    ops->close(exact);
    ghp_backend_reference.close(reference);
    return check_end();
}
