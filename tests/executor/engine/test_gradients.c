/* Gradients of whole networks are the loss's slopes: along each tensor's gradient g the loss falls by |g|^2, by a
 * central difference in double. That says what no comparison of two plans can, which share their program's mistakes:
 * that every gradient that flows into a tensor is added once, and read before another is added to it; and that
 * gradients are of the mean of the labels that are not ignored.
 *
 * Bound: steps of h = 1e-5 |g| leave h^2 of the third derivative and 1e-16 / h of rounding, some 1e-9 of the slope; a
 * lost or doubled gradient changes it by its own size. */
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"
#include "tests/onnx_graph.h"

#include <string.h>
#include <unistd.h>

static struct ghp_transport *transport;
static const float floats[36 * 36];

static struct ghp_split *splits;

/* Loss of the first step with tensor t moved by `by` times `along`; what the step leaves of the tensor goes to
 * `after`. */
static double loss_at(struct bench *b, const struct ghp_tensor *t, const double *along, double by,
                      double *before, double *after)
{
    struct ghp_worker *worker = NULL;
    struct ghp_result result = {0};
    int64_t n = t->param->elements;
    double *moved = ghp_alloc((size_t)n, sizeof *moved);

    CHECK_STATUS(bench_worker(b, splits, &worker), GHP_OK);
    CHECK_STATUS(ghp_parameters_gather(worker, t, GHP_BUFFER_WEIGHT, before), GHP_OK);
    for (int64_t i = 0; i < n; i++)
        moved[i] = before[i] + (along != NULL ? by * along[i] : 0);
    CHECK_STATUS(ghp_parameters_scatter(worker, t, GHP_BUFFER_WEIGHT, moved), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, 0, 1), GHP_OK);
    CHECK(ghp_worker_result(worker, &result));
    CHECK_STATUS(ghp_parameters_gather(worker, t, GHP_BUFFER_WEIGHT, after), GHP_OK);
    ghp_worker_close(worker);
    free(moved);
    return result.loss;
}

static void check_tensor(struct bench *b, const struct ghp_tensor *t)
{
    size_t n = (size_t)t->param->elements;
    double *before = ghp_alloc(n, sizeof *before), *after = ghp_alloc(n, sizeof *after),
           *g = ghp_alloc(n, sizeof *g);
    double rate = ghp_training_config_step(&b->training_config, 0).hyperparameters.learning_rate,
           square = 0, h, slope;

    loss_at(b, t, NULL, 0, before, after);
    for (size_t i = 0; i < n; i++) {
        g[i] = (before[i] - after[i]) / rate;
        square += g[i] * g[i];
    }
    if (b->model.layers[t->layer].fixed)
        CHECK(!(square > 0));
    else if (!CHECK(square > 1e-12))
        fprintf(stderr, "  of %s in %s\n", t->param->name, b->model.name);
    else {
        h = 1e-5 / sqrt(square);
        slope =
            (loss_at(b, t, g, h, before, after) - loss_at(b, t, g, -h, before, after)) / (2 * h);
        if (!CHECK_NEAR(slope / square, 1, 1e-6))
            fprintf(stderr, "  of %s in %s\n", t->param->name, b->model.name);
    }
    free(g);
    free(after);
    free(before);
}

static void check_model(const char *path, bool ignores)
{
    struct ghp_tensors_list list = {0};
    struct bench b;

    CHECK_STATUS(bench_open(&b, transport, path, "reference", 8), GHP_OK);
    if (ignores) bench_ignore(&b);
    b.training_config.hyperparameters = (struct ghp_hyperparameters){0};
    splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(ghp_tensors_list_init(&b.model, &list), GHP_OK);
    for (int i = 0; i < list.n; i++)
        if (!list.items[i].is_state) check_tensor(&b, &list.items[i]);
    ghp_tensors_release(&list);
    free(splits);
    bench_close(&b);
}

/* Which additions copy a gradient: only those whose inputs cannot share it. */
static void check_copies(void)
{
    static const char *const copying[] = {"later", "three", "twice"};
    struct bench b;
    struct ghp_worker *worker = NULL;
    int copies = 0;

    CHECK_STATUS(
        bench_open(&b, transport, GHP_SOURCE_DIR "/tests/executor/joins.json", "reference", 8),
        GHP_OK);
    splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
    const struct ghp_program *program = ghp_worker_program(worker);
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        bool expected = false;

        if (instr->kind != GHP_INSTR_COMPUTE || instr->local.op != GHP_OP_ADD || !instr->backward)
            continue;
        for (size_t c = 0; c < sizeof copying / sizeof copying[0]; c++)
            expected = expected || strcmp(b.model.layers[instr->layer].name, copying[c]) == 0;
        if (!CHECK(expected)) fprintf(stderr, "  %s\n", b.model.layers[instr->layer].name);
        copies++;
    }
    CHECK_EQ(copies, 3);
    ghp_worker_close(worker);
    free(splits);
    bench_close(&b);
}

/* A graph whose nodes become several layers: a difference of two tensors, y * y, y + y, PyTorch's
 * AvgPool2d(3, 2, 1, ceil_mode=True), and a matrix that two nodes share. */
static void check_graph(void)
{
    static const int64_t three[2] = {3, 3}, two[2] = {2, 2}, ones[4] = {1, 1, 1, 1};
    struct ghp_onnx_node *pool;
    char path[64];

    snprintf(path, sizeof path, "/tmp/ghp-gradients-%ld.onnx", (long)getpid());
    begin(13, -1, 2, 4, 4);
    constant("c.weight", GHP_ONNX_FLOAT, 4, (int64_t[]){4, 2, 3, 3}, floats);
    constant("m.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){36, 36}, floats);
    constant("fc.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){36, 5}, floats);
    list(node("Conv", "c", "x", "c.weight"), "pads", ones, 4);
    node("Tanh", "t", "c", NULL);
    node("Sub", "difference", "c", "t");
    node("Mul", "square", "difference", "difference");
    node("Add", "twice", "square", "square");
    node("Add", "joined", "twice", "c");
    pool = node("AveragePool", "pool", "joined", NULL);
    list(pool, "kernel_shape", three, 2);
    list(pool, "strides", two, 2);
    list(pool, "pads", ones, 4);
    number(pool, "ceil_mode", 1);
    pool->attributes[4] = (struct ghp_onnx_attribute){
        .name = "count_include_pad", .kind = GHP_ONNX_INT, .integer = 1};
    pool->n_attributes = 5;
    node("Flatten", "flat", "pool", NULL);
    node("MatMul", "m", "flat", "m.weight");
    node("Tanh", "n", "m", NULL);
    node("MatMul", "again", "n", "m.weight");
    node("MatMul", "y", "again", "fc.weight");
    save(path, "y");
    check_model(path, false);
    unlink(path);
}

CHECK_TEST(gradients)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    check_copies();
    check_model(GHP_SOURCE_DIR "/tests/executor/joins.json", false);
    check_model(GHP_BINARY_DIR "/tests/seeds/model/drawn.json", false);
    check_model(GHP_SOURCE_DIR "/tests/executor/tied.json", false);
    check_model(GHP_SOURCE_DIR "/tests/executor/again.json", false);
    check_model(GHP_SOURCE_DIR "/tests/executor/patches.json", false);
    check_model(GHP_SOURCE_DIR "/tests/executor/windows.json", false);
    check_model(GHP_SOURCE_DIR "/tests/executor/tokens.json", true);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", false);
    check_graph();
    ghp_transport_end(transport);
    return check_end();
}
