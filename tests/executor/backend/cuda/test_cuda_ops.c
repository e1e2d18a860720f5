/* ghp-test: timeout=600 emulated=yes
 *
 * The cuda backend against the reference in float: every operation and pass at odd shapes and at those of networks, in
 * float, tf32 and bf16, exact and fast; on a real GPU also at the shapes of language models. Both get the same numbers
 * (in bf16: rounded to it), each pass starts from the reference's tensors, and what a pass must not write stays as it
 * is.
 *
 * Bound: greatest difference over greatest number, 1e-4 in float, 2e-3 in tf32 (10 bits: 5e-4 a product, and roots of
 * sums), 2e-2 in bf16 (8 bits: 4e-3 a stored number). Runs repeat bit for bit where results must. Skipped without a
 * GPU. */
#include "tests/executor/twin_case.h"
#include "tests/executor/op_case.h"
#include "tests/check.h"

#include "executor/backend/backend_private.h"

static const struct ghp_backend_ops *ops;
static struct ghp_backend *reference;

static const struct setting {
    const char *name;
    int element_bytes;
    bool tf32, exact;
    double bound;
} settings[] = {{"float, exact", 4, false, true, 1e-4},
                {"float", 4, false, false, 1e-4},
                {"tf32", 4, true, false, 2e-3},
                {"bf16, exact", 2, false, true, 2e-2},
                {"bf16", 2, false, false, 2e-2}};

static struct tally {
    int passes, direct;
    double worst;
} tally;

static void compare(const struct twin_case *c, enum ghp_pass pass, const struct setting *setting,
                    const char *algorithm)
{
    for (int i = 0; i < c->n; i++) {
        const struct twin_tensor *t = &c->tensors[i];
        double error = twin_case_error(c, t);

        if (t->written && error > tally.worst && setting->element_bytes == 4 && !setting->tf32)
            tally.worst = error;
        if (!CHECK(error <= (t->written ? setting->bound : 0)))
            fprintf(stderr, "  %s of %s, %s, by %s: %.3g\n", t->name,
                    op_case_text(&c->right.local, pass), setting->name, algorithm, error);
    }
}

/* A second kernel, by the name of the first, gives the same bits from the same tensors. */
static void check_repeats(struct twin_case *c, struct ghp_backend *backend, enum ghp_pass pass,
                          const char *algorithm)
{
    int64_t bytes = c->got.bytes;
    struct ghp_kernel *kernel = NULL;
    char *once = malloc((size_t)bytes);

    memcpy(once, c->got.memory, (size_t)bytes);
    if (CHECK_STATUS(ops->prepare_as(backend, &c->right.local, pass, algorithm, &kernel), GHP_OK)) {
        CHECK_TEXT(ops->algorithm(kernel), algorithm);
        CHECK_STATUS(twin_case_send(c, pass), GHP_OK);
        CHECK_STATUS(twin_case_run(c, ops, kernel), GHP_OK);
        CHECK_STATUS(twin_case_fetch(c), GHP_OK);
        if (!CHECK(memcmp(once, c->got.memory, (size_t)bytes) == 0))
            fprintf(stderr, "  %s by %s\n", op_case_text(&c->right.local, pass), algorithm);
        ops->release(kernel);
    }
    free(once);
}

static void check_pass(struct twin_case *c, struct ghp_backend *backend, enum ghp_pass pass,
                       const struct setting *setting)
{
    struct ghp_kernel *kernel = NULL;
    char algorithm[128];

    /* metrics are added to: zero both */
    if (c->right.args.at.metrics != NULL)
        memset(c->right.args.at.metrics, 0, GHP_METRIC_COUNT * sizeof(double));
    if (!CHECK_STATUS(ops->prepare(backend, &c->right.local, pass, &kernel), GHP_OK)) return;
    snprintf(algorithm, sizeof algorithm, "%s", ops->algorithm(kernel));
    CHECK_STATUS(twin_case_send(c, pass), GHP_OK);
    if (CHECK_STATUS(twin_case_run(c, ops, kernel), GHP_OK)) {
        CHECK_STATUS(twin_case_fetch(c), GHP_OK);
        CHECK_STATUS(ghp_operand_set_run(&c->right, &ghp_backend_reference, reference, pass),
                     GHP_OK);
        compare(c, pass, setting, algorithm);
        twin_case_round(c);
    }
    ops->release(kernel);
    tally.passes++;
    tally.direct += strcmp(algorithm, "direct") == 0;
}

static void check_passes(struct twin_case *c, struct ghp_backend *backend,
                         const struct setting *setting)
{
    static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD, GHP_PASS_BACKWARD_STATS,
                                          GHP_PASS_BACKWARD_WEIGHT, GHP_PASS_BACKWARD_DATA};

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (ghp_local_has_pass(&c->right.local, order[i]))
            check_pass(c, backend, order[i], setting);
}

/* padding: columns at the end of a loss that are padding (core/model/vocabulary.h) */
static void check_with_padding(const struct ghp_local *local, struct ghp_backend *backend,
                               const struct setting *setting, int64_t padding)
{
    struct twin_case c;

    twin_case_open(&c, ghp_backend_device(ops, backend), local, setting->element_bytes);
    c.right.args.global_channels -= padding;
    c.got.args.global_channels = c.there.args.global_channels = c.right.args.global_channels;
    check_passes(&c, backend, setting);
    twin_case_close(&c);
}

/* Every second sample has two labels. */
static void check_two_labels(struct ghp_backend *backend, const struct setting *setting)
{
    enum { SAMPLES = 5 };
    const struct ghp_device device = ghp_backend_device(ops, backend);
    struct ghp_local local = twin_case_shape(GHP_OP_SOFTMAX_CE, SAMPLES, 40, 1);
    struct ghp_second_label seconds[SAMPLES];
    void *there = NULL;
    struct twin_case c;

    local.loss.smoothing = 0.125;
    for (int i = 0; i < SAMPLES; i++)
        seconds[i] = (struct ghp_second_label){39 - i, i % 2 == 0 ? 0.25 : 0};
    twin_case_open(&c, device, &local, setting->element_bytes);
    for (int i = 0; i < SAMPLES; i++) /* all are others */
        CHECK(c.right.args.at.labels[i] != seconds[i].label);
    CHECK_STATUS(ghp_device_allocate(device, (int64_t)sizeof seconds, &there), GHP_OK);
    CHECK_STATUS(ghp_device_write(device, there, seconds, (int64_t)sizeof seconds), GHP_OK);
    c.right.args.at.seconds = seconds;
    c.there.args.at.seconds = there;
    check_passes(&c, backend, setting);
    ghp_device_release(device, there);
    twin_case_close(&c);
}

/* Classes and outputs with weights, as the call says or, in a step, device memory; the same for all outputs or not. */
static void check_weights(struct ghp_backend *backend, const struct setting *setting, bool in_step,
                          bool own_labels)
{
    enum { CLASSES = 40, OUTPUTS = 2 };
    const struct ghp_device device = ghp_backend_device(ops, backend);
    struct ghp_local local = twin_case_shape(GHP_OP_SOFTMAX_CE, 5, CLASSES, 1);
    struct ghp_step_hyperparameters given = {
        .loss_scale = 0.125, .mean_weight = 1.75, .output_weights = {0.5, 3}};
    double classes[CLASSES];
    void *there = NULL, *step = NULL;
    struct twin_case c;

    local.h = local.p = OUTPUTS;
    local.loss = (struct ghp_loss){.outputs = OUTPUTS, .own_labels = own_labels, .weights = {1, 1}};
    for (int i = 0; i < CLASSES; i++)
        classes[i] = 0.5 + i % 4;
    twin_case_open(&c, device, &local, setting->element_bytes);
    CHECK_STATUS(ghp_device_allocate(device, (int64_t)sizeof classes, &there), GHP_OK);
    CHECK_STATUS(ghp_device_write(device, there, classes, (int64_t)sizeof classes), GHP_OK);
    CHECK_STATUS(ghp_device_allocate(device, (int64_t)sizeof given, &step), GHP_OK);
    CHECK_STATUS(ghp_device_write(device, step, &given, (int64_t)sizeof given), GHP_OK);
    c.right.args.class_weights = classes;
    c.right.args.loss_scale = given.loss_scale;
    c.right.args.mean_weight = given.mean_weight;
    c.right.args.output_weights = given.output_weights;
    c.there.args.class_weights = there;
    c.there.args.hyperparameters = in_step ? step : NULL;
    c.there.args.loss_scale = in_step ? 7 : given.loss_scale;
    c.there.args.mean_weight = in_step ? 7 : given.mean_weight;
    c.there.args.output_weights = in_step ? NULL : given.output_weights;
    check_passes(&c, backend, setting);
    ghp_device_release(device, step);
    ghp_device_release(device, there);
    twin_case_close(&c);
}

static void check_local(const struct ghp_local *local, struct ghp_backend *backend,
                        const struct setting *setting)
{
    check_with_padding(local, backend, setting, 0);
}

static void check_exact(const struct ghp_local *local, struct ghp_backend *backend)
{
    static const enum ghp_pass passes[] = {GHP_PASS_FORWARD, GHP_PASS_BACKWARD_WEIGHT,
                                           GHP_PASS_BACKWARD_DATA};
    struct twin_case c;

    if (local->op != GHP_OP_CONV2D && local->op != GHP_OP_LINEAR) return;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        struct ghp_kernel *kernel = NULL;
        char algorithm[128];

        twin_case_open(&c, ghp_backend_device(ops, backend), local, 4);
        if (!CHECK_STATUS(ops->prepare(backend, local, passes[i], &kernel), GHP_OK)) return;
        snprintf(algorithm, sizeof algorithm, "%s", ops->algorithm(kernel));
        CHECK_STATUS(twin_case_send(&c, passes[i]), GHP_OK);
        CHECK_STATUS(twin_case_run(&c, ops, kernel), GHP_OK);
        CHECK_STATUS(twin_case_fetch(&c), GHP_OK);
        ops->release(kernel);
        check_repeats(&c, backend, passes[i], algorithm);
        twin_case_close(&c);
    }
}

/* Wide enough for vectors and several blocks: what the odd shapes never reach. */
static void check_wide(struct ghp_backend *backend, const struct setting *setting)
{
    static const enum ghp_op wide[] = {
        GHP_OP_CONV2D,     GHP_OP_BIAS, GHP_OP_RELU,    GHP_OP_MAX_POOL, GHP_OP_AVG_POOL,
        GHP_OP_BATCH_NORM, GHP_OP_LRN,  GHP_OP_DROPOUT, GHP_OP_ADD,      GHP_OP_MUL};
    struct ghp_local linear = twin_case_shape(GHP_OP_LINEAR, 16, 256, 1),
                     flat = twin_case_shape(GHP_OP_FLATTEN, 3, 40, 9),
                     loss = twin_case_shape(GHP_OP_SOFTMAX_CE, 33, 1000, 1);

    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        struct ghp_local l = twin_case_shape(wide[i], 5, 48, 12);

        check_local(&l, backend, setting);
        l.c = l.k = 264; /* more than a warp's vectors across */
        l.n = 2;
        if (wide[i] != GHP_OP_CONV2D) check_local(&l, backend, setting);
    }
    linear.k = 64;
    check_local(&linear, backend, setting);
    flat.k = 40 * 81;
    flat.p = flat.q = 1;
    check_local(&flat, backend, setting);
    check_local(&loss, backend, setting);
    check_with_padding(&loss, backend, setting, 47);
    loss.loss.smoothing = 0.125;
    check_with_padding(&loss, backend, setting, 47);
    check_two_labels(backend, setting);
    for (int way = 0; way < 4; way++)
        check_weights(backend, setting, way % 2 == 1, way / 2 == 1);
}

/* GPT-2's and Llama's: positions, heads' sizes, channels and words as they are, of as few samples and heads as show
 * them. An emulated GPU would take hours. */
static void check_language_models(struct ghp_backend *backend, const struct setting *setting)
{
    const struct ghp_local shapes[] = {
        op_case_attention(1, 1024,
                          (struct ghp_heads){.size = 64, .n = 2, .n_kv = 2, .causal = true}),
        op_case_attention(1, 4096,
                          (struct ghp_heads){.size = 128, .n = 2, .n_kv = 1, .causal = true}),
        {.op = GHP_OP_LAYER_NORM, .n = 1, .c = 768, .h = 1024, .norm = {.epsilon = 1e-5}},
        {.op = GHP_OP_RMS_NORM, .n = 1, .c = 4096, .h = 256, .norm = {.epsilon = 1e-5}},
        {.op = GHP_OP_ROTARY,
         .n = 1,
         .c = 128,
         .h = 4096,
         .heads = {.size = 128, .turned = 128, .base = 1e4, .amplitude = 1}},
        {.op = GHP_OP_EMBEDDING, .n = 1, .c = 1, .h = 1024, .k = 768, .vocabulary = 50257},
        {.op = GHP_OP_POSITION_EMBEDDING, .n = 8, .c = 768, .h = 1024},
        {.op = GHP_OP_GELU, .n = 1, .c = 3072, .h = 1024},
        {.op = GHP_OP_SILU, .n = 1, .c = 11008, .h = 256},
        {.op = GHP_OP_MUL, .n = 1, .c = 11008, .h = 256, .n_inputs = 2},
        {.op = GHP_OP_LINEAR, .n = 1, .c = 768, .h = 128, .k = 3072},
        {.op = GHP_OP_LINEAR, .n = 1, .c = 768, .h = 16, .k = 50257},
        {.op = GHP_OP_SOFTMAX_CE, .n = 1, .c = 50257, .h = 128}};
    struct ghp_device_about about = {0};

    ghp_backend_device(ops, backend).ops->about(backend, &about);
    if (strcmp(about.name, "emulated GPU") == 0) return;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct ghp_local local = op_case_complete(shapes[i]);

        check_local(&local, backend, setting);
    }
}

/* Settings named on the command line, or all. */
static bool is_wanted(const struct setting *setting, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], setting->name) == 0) return true;
    return argc < 2;
}

CHECK_TEST(cuda_ops)
{
    struct ghp_backend_config plain = {.element_bytes = 4, .threads = 1, .exact = true};
    int n;
    const struct ghp_local *cases = op_case_all(&n);

    ops = ghp_backend_find("cuda");
    if (!CHECK(ops != NULL)) return check_end();
    if (ops->check() != GHP_OK) SKIP(ghp_status_message());
    CHECK_STATUS(ghp_backend_reference.open(&plain, &reference), GHP_OK);
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        const struct setting *setting = &settings[s];
        struct ghp_backend_config config = {.element_bytes = setting->element_bytes,
                                            .tf32 = setting->tf32,
                                            .threads = 1,
                                            .exact = setting->exact};
        struct ghp_backend *backend = NULL;

        if (!is_wanted(setting, argc, argv)) continue;
        if (!CHECK_STATUS(ops->open(&config, &backend), GHP_OK)) continue;
        tally = (struct tally){0};
        for (int i = 0; i < n; i += argc < 2 || check_full() ? 1 : 4) {
            check_local(&cases[i], backend, setting);
            if (setting->exact && setting->element_bytes == 4) check_exact(&cases[i], backend);
        }
        check_wide(backend, setting);
        check_language_models(backend, setting);
        fprintf(stderr, "%s: %d passes, %d by plain kernels%s", setting->name, tally.passes,
                tally.direct, setting->tf32 || setting->element_bytes == 2 ? "\n" : "");
        if (setting->element_bytes == 4 && !setting->tf32)
            fprintf(stderr, ", worst %.2g\n", tally.worst);
        ops->close(backend);
    }
    ghp_backend_reference.close(reference);
    return check_end();
}
