/* tests/executor/engine/test_onnx_patterns.c - operators that exporters write out in smaller ones become the one layer
 * that is meant, in each way that they are written, and compute what it means; what only looks like them does not. */
#include "tests/executor/onnx_meaning.h"

static const double epsilon = 0.25;
static const int64_t last[1] = {-1};
static const float biases[WIDE] = {0, 1, -2, 0.5f};

/* ---- activations ---- */

static double by_erf(const float *x, int i)
{
    return 0.5 * (double)x[i] * (1 + erf((double)x[i] / sqrt(2)));
}

static double by_tanh(const float *x, int i)
{
    double v = (double)x[i];

    return 0.5 * v * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
}

static double silu(const float *x, int i)
{
    return (double)x[i] / (1 + exp(-(double)x[i]));
}

static double hard_swish(const float *x, int i)
{
    return (double)x[i] * fmin(fmax((double)x[i] / 6 + 0.5, 0), 1);
}

static double hard_sigmoid(const float *x, int i)
{
    return fmin(fmax((double)x[i] / 6 + 0.5, 0), 1);
}

static double elu(const float *x, int i)
{
    return x[i] > 0 ? (double)x[i] : 0.5 * (exp((double)x[i]) - 1);
}

static double half(const float *x, int i)
{
    return 0.5 * (double)x[i];
}

static double opposite(const float *x, int i)
{
    return -(double)x[i];
}

static double divided(const float *x, int i)
{
    return (double)x[i] / (double)weights[i];
}

/* 1 + erf(x / sqrt 2) as 'factor', from a quotient or a product. */
static void put_erf_factor(const char *op, float by)
{
    begin(13, BATCH, WIDE, 0, 0);
    number_of("by", by);
    number_of("one", 1);
    number_of("half", 0.5f);
    node(op, "small", "x", "by");
    node("Erf", "erf", "small", NULL);
    node("Add", "factor", "erf", "one");
}

static void check_erf(void)
{
    put_erf_factor("Div", 1.4142135f); /* x (1 + erf) 0.5 */
    node("Mul", "both", "x", "factor");
    node("Mul", "y", "both", "half");
    means("y", GHP_OP_GELU, 1, by_erf);
    put_erf_factor("Mul", 0.70710678f); /* (0.5 x) (1 + erf), after an Identity */
    node("Mul", "halved", "half", "x");
    node("Identity", "same", "factor", NULL);
    node("Mul", "y", "halved", "same");
    means("y", GHP_OP_GELU, 1, by_erf);
    put_erf_factor("Div", 1.5f); /* another width */
    node("Mul", "both", "x", "factor");
    node("Mul", "y", "both", "half");
    refused(path, "y", GHP_ERR_INPUT, "(Erf, opset 13)");
    put_erf_factor("Div", 1.4142135f); /* without the half */
    node("Mul", "y", "x", "factor");
    refused(path, "y", GHP_ERR_INPUT, "(Erf, opset 13)");
}

/* The cube as 'cube'. */
static void put_cube(bool by_pow)
{
    begin(13, BATCH, WIDE, 0, 0);
    number_of("three", 3);
    number_of("part", 0.044715f);
    number_of("one", 1);
    number_of("half", 0.5f);
    number_of("root", 0.7978846f);
    if (by_pow) {
        node("Pow", "power", "x", "three");
    } else {
        node("Mul", "square", "x", "x");
        node("Mul", "power", "x", "square");
    }
    node("Mul", "cube", "power", "part");
}

static void check_tanh(void)
{
    for (int by_pow = 0; by_pow < 2; by_pow++) {
        put_cube(by_pow == 1);
        node("Add", "sum", by_pow ? "x" : "cube", by_pow ? "cube" : "x");
        node("Mul", "inner", "root", "sum");
        node("Tanh", "tanh", "inner", NULL);
        node("Add", "factor", "one", "tanh");
        node("Mul", "halved", "x", "half");
        node("Mul", "y", "halved", "factor");
        means("y", GHP_OP_GELU, 1, by_tanh);
    }
}

static void check_operators(void)
{
    struct ghp_onnx_node *at;

    begin(20, BATCH, WIDE, 0, 0);
    node("Gelu", "y", "x", NULL);
    means("y", GHP_OP_GELU, 1, by_erf);
    begin(20, BATCH, WIDE, 0, 0);
    at = node("Gelu", "y", "x", NULL);
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = "approximate", .kind = GHP_ONNX_TEXT, .text = "tanh"};
    means("y", GHP_OP_GELU, 1, by_tanh);
    begin(24, BATCH, WIDE, 0, 0);
    node("Swish", "y", "x", NULL);
    means("y", GHP_OP_SILU, 1, silu);
    begin(13, BATCH, WIDE, 0, 0);
    node("Sigmoid", "factor", "x", NULL);
    node("Mul", "y", "factor", "x");
    means("y", GHP_OP_SILU, 1, silu);
}

static void check_by_element(void)
{
    begin(14, BATCH, WIDE, 0, 0);
    node("HardSwish", "y", "x", NULL);
    means("y", GHP_OP_HARD_SWISH, 1, hard_swish);
    begin(13, BATCH, WIDE, 0, 0);
    put_real(node("HardSigmoid", "factor", "x", NULL), "alpha", 1.0 / 6);
    node("Mul", "y", "x", "factor");
    means("y", GHP_OP_HARD_SWISH, 1, hard_swish);
    begin(13, BATCH, WIDE, 0, 0);
    put_real(node("HardSigmoid", "y", "x", NULL), "alpha", 1.0 / 6);
    means("y", GHP_OP_ACTIVATION, 2, hard_sigmoid);
    begin(13, BATCH, WIDE, 0, 0); /* of another slope: three layers */
    put_real(node("HardSigmoid", "factor", "x", NULL), "alpha", 0);
    put_real(&nodes[0], "beta", 0.5);
    node("Mul", "y", "x", "factor");
    means("y", GHP_OP_ACTIVATION, 3, half);
    begin(13, BATCH, WIDE, 0, 0);
    put_real(node("Elu", "y", "x", NULL), "alpha", 0.5);
    means("y", GHP_OP_ACTIVATION, 1, elu);
    begin(13, BATCH, WIDE, 0, 0);
    node("Neg", "y", "x", NULL);
    means("y", GHP_OP_ACTIVATION, 1, opposite);
    begin(13, BATCH, WIDE, 0, 0);
    weights_of("by", weights);
    node("Div", "y", "x", "by");
    means("y", GHP_OP_CONV2D, 1, divided);
    begin(13, BATCH, WIDE, 0, 0);
    weights_of("by", biases); /* one of them is zero */
    node("Div", "y", "x", "by");
    refused(path, "y", GHP_ERR_INPUT, "divides by zero");
}

/* ---- dropout ---- */

static double same(const float *x, int i)
{
    return (double)x[i];
}

/* x times a mask over `kept`, as PyTorch's exporter writes a dropout in place; `shape`: whose shape the mask has. */
static void begin_dropout(float fraction, float kept, const char *shape)
{
    begin(20, BATCH, WIDE, 0, 0);
    number_of("zero", 0);
    number_of("factor", fraction);
    number_of("kept", kept);
    node("Shape", "shape", shape, NULL);
    node("Expand", "empty", "zero", "shape");
    node("RandomUniformLike", "drawn", "empty", NULL);
    node("CastLike", "probability", "factor", "drawn");
    node("Less", "sampled", "drawn", "probability");
    node("CastLike", "mask", "sampled", "empty");
    node("Div", "scaled", "mask", "kept");
    node("Mul", "y", "x", "scaled");
}

/* Random numbers of the sizes of the batch and a list: by ones, one element a sample. */
static void begin_drawn(int size)
{
    static const int64_t sizes[] = {1, 2, 3, 4}, one = 1;
    struct ghp_onnx_node *whole;

    begin(20, BATCH, WIDE, 0, 0);
    number_of("zero", 0);
    number_of("kept", 0.7f);
    constant("size", GHP_ONNX_INT64, 1, &one, &sizes[size - 1]);
    whole = node("Shape", "whole", "x", NULL);
    number(whole, "start", 0);
    number(whole, "end", 1);
    number(node("Concat", "sizes", "whole", "size"), "axis", 0);
    node("Expand", "empty", "zero", "sizes");
    node("RandomUniformLike", "drawn", "empty", NULL);
}

static void begin_depth(int size)
{
    begin_drawn(size);
    node("Less", "sampled", "drawn", "kept");
    number(node("Cast", "mask", "sampled", NULL), "to", GHP_ONNX_FLOAT);
    node("Div", "scaled", "mask", "kept");
    node("Mul", "y", "x", "scaled");
}

/* The same as transformers writes it: x over `kept` times the floor of that and a number. */
static void begin_floor(float kept)
{
    begin_drawn(1);
    number_of("factor", kept);
    node("Add", "raised", "drawn", "kept");
    node("Floor", "mask", "raised", NULL);
    node("Div", "scaled", "x", "factor");
    node("Mul", "y", "scaled", "mask");
}

static void drops_samples(void)
{
    struct ghp_model model;

    means("y", GHP_OP_DROPOUT, 1, same); /* outside of training */
    if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) return;
    CHECK(model.layers[1].norm.drop == GHP_DROP_SAMPLES);
    CHECK_NEAR(model.layers[1].norm.ratio, 0.3, 1e-7);
    ghp_model_release(&model);
}

static void check_depth(void)
{
    begin_depth(1);
    drops_samples();
    begin_floor(0.7f);
    drops_samples();
    begin_floor(0.6f); /* x is divided by something else */
    refused(path, "y", GHP_ERR_INPUT, "(RandomUniformLike, opset 20)");
    begin_depth(2); /* of parts of a sample */
    refused(path, "y", GHP_ERR_INPUT, "has a mask of another size than its input");
    begin_depth(WIDE); /* of its channels */
    means("y", GHP_OP_DROPOUT, 1, same);
}

static void check_dropout(void)
{
    struct ghp_model model;

    begin_dropout(0.7f, 0.7f, "x");
    means("y", GHP_OP_DROPOUT, 1, same); /* outside of training */
    if (CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) {
        CHECK_NEAR(model.layers[1].norm.ratio, 0.3, 1e-7); /* 0.7 is a float */
        ghp_model_release(&model);
    }
    begin_dropout(0.7f, 0.6f, "x"); /* not scaled by what is kept */
    refused(path, "y", GHP_ERR_INPUT, "(RandomUniformLike, opset 20)");
    begin_dropout(0.7f, 0.7f, "zero"); /* one number for all */
    refused(path, "y", GHP_ERR_INPUT, "(RandomUniformLike, opset 20)");
}

/* ---- norms ---- */

static double normed(const float *x, int i, bool centred)
{
    double mean = 0, square = 0;

    for (int k = 0; k < WIDE && centred; k++)
        mean += (double)x[k] / WIDE;
    for (int k = 0; k < WIDE; k++)
        square += ((double)x[k] - mean) * ((double)x[k] - mean) / WIDE;
    return ((double)x[i] - mean) / sqrt(square + epsilon) * (double)weights[i];
}

static double layer_norm(const float *x, int i)
{
    return normed(x, i, true);
}

static double biased_norm(const float *x, int i)
{
    return normed(x, i, true) + (double)biases[i];
}

static double rms_norm(const float *x, int i)
{
    return normed(x, i, false);
}

/* The graph that was begun is read, and not as a layer norm. */
static void no_layer_norm(void)
{
    struct ghp_model model;

    save(path, "y");
    if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) return;
    for (int i = 0; i < model.n_layers; i++)
        CHECK(model.layers[i].op != GHP_OP_LAYER_NORM);
    ghp_model_release(&model);
}

static void begin_norm(void)
{
    begin(13, BATCH, WIDE, 0, 0);
    number_of("two", 2);
    number_of("epsilon", (float)epsilon);
    number_of("one", 1);
    weights_of("n.weight", weights);
    weights_of("n.bias", biases);
}

/* sqrt(mean(of^2) + epsilon) as 'deviation'. */
static void put_deviation(const char *of, bool by_pow)
{
    node(by_pow ? "Pow" : "Mul", "square", of, by_pow ? "two" : of);
    list(node("ReduceMean", "variance", "square", NULL), "axes", last, 1);
    node("Add", "more", "variance", "epsilon");
    node("Sqrt", "deviation", "more", NULL);
}

static void check_norms(void)
{
    for (int way = 0; way < 3; way++) {
        begin_norm();
        list(node("ReduceMean", "mean", "x", NULL), "axes", last, 1);
        node("Sub", "centred", "x", "mean");
        put_deviation("centred", way > 0);
        node("Div", "normed", "centred", "deviation");
        node("Mul", "y", "normed", "n.weight");
        if (way == 2) node("Add", "z", "n.bias", "y");
        means(way == 2 ? "z" : "y", GHP_OP_LAYER_NORM, way == 2 ? 2 : 1,
              way == 2 ? biased_norm : layer_norm);
    }
    for (int way = 0; way < 3; way++) {
        begin_norm();
        put_deviation("x", way != 1);
        if (way == 1) node("Reciprocal", "inverse", "deviation", NULL);
        if (way == 2) node("Div", "inverse", "one", "deviation");
        node(way == 0 ? "Div" : "Mul", "normed", "x", way == 0 ? "deviation" : "inverse");
        node("Mul", "y", "n.weight", "normed");
        means("y", GHP_OP_RMS_NORM, 1, rms_norm);
    }
    begin_norm(); /* the mean of something else */
    node("Relu", "other", "x", NULL);
    list(node("ReduceMean", "mean", "other", NULL), "axes", last, 1);
    node("Sub", "centred", "x", "mean");
    put_deviation("centred", true);
    node("Div", "normed", "centred", "deviation");
    node("Mul", "y", "normed", "n.weight");
    no_layer_norm();
}

/* ---- norms over one axis of several ---- */

enum { SIDE = 2, CUBE = SIDE * SIDE * SIDE };

static const float cube_weights[SIDE] = {3, -0.5f};

/* x over the root of its mean square along an axis of SIDE x SIDE x SIDE values, times `by`. */
static void begin_cube(int axis, int n_dims, const int64_t *dims, const float *by)
{
    static int64_t axes[1];

    axes[0] = axis;
    begin(13, BATCH, SIDE, SIDE, SIDE);
    number_of("two", 2);
    number_of("epsilon", (float)epsilon);
    constant("n.weight", GHP_ONNX_FLOAT, n_dims, dims, by);
    node("Pow", "square", "x", "two");
    list(node("ReduceMean", "variance", "square", NULL), "axes", axes, 1);
    node("Add", "more", "variance", "epsilon");
    node("Sqrt", "deviation", "more", NULL);
    node("Div", "normed", "x", "deviation");
    node("Mul", "y", "normed", "n.weight");
}

/* The same along axis 1, as PyTorch's exporter writes it without optimize: constants are given their axes by nodes. */
static void begin_cube_unfolded(void)
{
    static const int64_t one[1] = {1}, any[1] = {-1}, behind[2] = {1, 2};

    begin(18, BATCH, SIDE, SIDE, SIDE);
    number_of("two", 2);
    number_of("epsilon", (float)epsilon);
    constant("n.weight", GHP_ONNX_FLOAT, 1, (int64_t[]){SIDE}, cube_weights);
    constant("one", GHP_ONNX_INT64, 1, (int64_t[]){1}, one);
    constant("any", GHP_ONNX_INT64, 1, (int64_t[]){1}, any);
    constant("behind", GHP_ONNX_INT64, 1, (int64_t[]){2}, behind);
    node("Reshape", "axes", "one", "any");
    node("Unsqueeze", "weight", "n.weight", "behind");
    node("Pow", "square", "x", "two");
    node("ReduceMean", "variance", "square", "axes");
    node("Add", "more", "variance", "epsilon");
    node("Sqrt", "root", "more", NULL);
    node("Reciprocal", "inverse", "root", NULL);
    node("Mul", "normed", "x", "inverse");
    node("CastLike", "typed", "normed", "x");
    node("Mul", "y", "typed", "weight");
}

/* Element i of a sample of SIDE x SIDE x SIDE, normed along an axis of which `step` is the stride. */
static double cube_norm(const float *x, int i, int step)
{
    int at = i / step % SIDE, first = i - at * step;
    double square = 0;

    for (int k = 0; k < SIDE; k++)
        square += (double)x[first + k * step] * (double)x[first + k * step] / SIDE;
    return (double)x[i] / sqrt(square + epsilon) * (double)cube_weights[at];
}

/* The norm that was begun, along an axis, against its definition. */
static void check_axis(int axis)
{
    const struct ghp_onnx_options options = {.output = "y", .open_end = true};
    float cubes[BATCH * CUBE], *out;
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file;
    int step = axis == 1 ? SIDE * SIDE : axis == 2 ? SIDE : 1;

    for (int i = 0; i < BATCH * CUBE; i++)
        cubes[i] = (float)((i * 37 + 11) % 64 - 32) / 8;
    save(path, "y");
    if (!CHECK_STATUS(ghp_onnx_file_open(path, &file), GHP_OK)) return;
    if (CHECK_STATUS(ghp_onnx_import_graph(&file, &options, &import), GHP_OK)) {
        out =
            onnx_pass_run(&(struct onnx_pass){.import = &import, .batch = BATCH, .samples = cubes});
        for (int i = 0; i < BATCH * CUBE; i++) {
            double wanted = cube_norm(cubes + i / CUBE * CUBE, i % CUBE, step);

            /* a float has 6e-8, and some ten of them are rounded on the way */
            CHECK_NEAR((double)out[i], wanted, 1e-6 * (1 + fabs(wanted)));
        }
        free(out);
    }
    ghp_onnx_import_release(&import);
    ghp_onnx_file_close(&file);
}

static void check_norm_axes(void)
{
    for (int axis = 1; axis < 4; axis++) {
        begin_cube(axis, 4 - axis, (int64_t[]){SIDE, 1, 1}, cube_weights);
        check_axis(axis);
    }
    begin_cube_unfolded();
    check_axis(1);
    begin_cube(1, 1, (int64_t[]){SIDE}, cube_weights); /* along the last axis, as many */
    refused(path, "y", GHP_ERR_INPUT,
            "norms axis 1, and then multiplies by something else than one");
    begin_cube(-1, 3, (int64_t[]){SIDE, 1, 1}, cube_weights);
    refused(path, "y", GHP_ERR_INPUT, "norms axis 3, and then");
    begin_cube(-1, 0, NULL, cube_weights); /* one number */
    refused(path, "y", GHP_ERR_INPUT,
            "for each of the 2 places there; give the norm such a weight");
}

static void check_norm_operators(void)
{
    for (int rms = 0; rms < 2; rms++) {
        struct ghp_onnx_node *at;

        begin_norm();
        graph.opset = 23;
        at = node(rms ? "RMSNormalization" : "LayerNormalization", "y", "x", "n.weight");
        if (!rms) in_names[0][at->n_inputs++] = "n.bias";
        at->attributes[at->n_attributes++] =
            (struct ghp_onnx_attribute){.name = "epsilon", .kind = GHP_ONNX_REAL, .real = epsilon};
        means("y", rms ? GHP_OP_RMS_NORM : GHP_OP_LAYER_NORM, rms ? 1 : 2,
              rms ? rms_norm : biased_norm);
    }
}

/* ---- vectors over their lengths ---- */

static double unit(const float *x, int i)
{
    double square = 0;

    for (int k = 0; k < WIDE; k++)
        square += (double)x[k] * (double)x[k];
    return square > 0 ? (double)x[i] / sqrt(square) : 0;
}

static void check_units(void)
{
    for (int max = 0; max < 2; max++) {
        begin(13, BATCH, WIDE, 0, 0);
        number_of("least", 1e-12f);
        list(node("ReduceL2", "length", "x", NULL), "axes", last, 1);
        node(max ? "Max" : "Clip", "clipped", "length", "least");
        node("Div", "y", "x", "clipped");
        means("y", GHP_OP_RMS_NORM, 2, unit);
    }
    begin(13, BATCH, WIDE, 0, 0);
    node("LpNormalization", "y", "x", NULL);
    means("y", GHP_OP_RMS_NORM, 2, unit);
    begin(13, BATCH, WIDE, 0, 0);
    number(node("LpNormalization", "y", "x", NULL), "p", 1);
    refused(path, "y", GHP_ERR_INPUT, "divides by another norm than the root of a sum");
}

CHECK_TEST(onnx_patterns)
{
    begin_meanings("patterns");
    check_erf();
    check_tanh();
    check_operators();
    check_by_element();
    check_dropout();
    check_depth();
    check_norms();
    check_norm_axes();
    check_norm_operators();
    check_units();
    unlink(path);
    return check_end();
}
