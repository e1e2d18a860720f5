/* tests/onnx/test_import.c - graphs become the layers they mean, with the names that these should have. */
#include "core/model/model_private.h"
#include "onnx/onnx.h"
#include "onnx/graph.h"
#include "onnx/read/constant.h"
#include "tests/check.h"
#include "tests/onnx_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];
static float floats[4096];

static void reads_as(const char *output, const char *layers)
{
    struct ghp_model model;
    const char *found;

    save(path, output);
    if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) return;
    found = strstr(model.text, "\"layers\":");
    CHECK_TEXT(found + 9, layers);
    ghp_model_release(&model);
}

/* ---- what graphs mean ---- */

static void check_fusions(void)
{
    static const int64_t pads[8] = {0, 0, 1, 2, 0, 0, 1, 2}, ones[4] = {1, 1, 1, 1};
    const int64_t matrix[2] = {8, 3}, three[1] = {3};

    begin(13, -1, 8, 0, 0); /* MatMul and Add are linear with its bias, called by its weights */
    constant("fc.weight", GHP_ONNX_FLOAT, 2, matrix, floats);
    constant("fc.bias", GHP_ONNX_FLOAT, 1, three, floats);
    node("MatMul", "product", "x", "fc.weight");
    node("Add", "y", "product", "fc.bias");
    reads_as("y", "[{\"name\":\"fc\",\"op\":\"linear\",\"features\":3,"
                  "\"transposed\":true},{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}");
    begin(13, 5, 2, 4,
          4); /* a pad of zeros goes into the convolution; a fixed batch is the batch */
    constant("pads", GHP_ONNX_INT64, 1, (int64_t[]){8}, pads);
    constant("w", GHP_ONNX_FLOAT, 4, (int64_t[]){2, 2, 3, 3}, floats);
    node("Pad", "padded", "x", "pads");
    list(node("Conv", "c", "padded", "w"), "pads", ones, 4);
    node("GlobalAveragePool", "m", "c", NULL);
    node("Squeeze", "y", "m", NULL);
    reads_as("y", "[{\"name\":\"c\",\"op\":\"conv2d\",\"channels\":2,\"kernel\":3,\"pad\":[2,3],"
                  "\"bias\":false},{\"name\":\"m\",\"op\":\"global_avg_pool\"},{\"name\":\"loss\","
                  "\"op\":\"softmax_cross_entropy\"}]}");
}

/* Linear layers over more than two axes, as exporters write them: a layer is called as its weight, which is turned
 * before, and a second one with that weight as its node. */
static void check_turned(void)
{
    static const int64_t square[2] = {8, 8}, turn[2] = {1, 0};

    begin(13, -1, 8, 0, 0);
    constant("fc.weight", GHP_ONNX_FLOAT, 2, square, floats);
    list(node("Transpose", "turned", "fc.weight", NULL), "perm", turn, 2);
    node("MatMul", "first", "x", "turned");
    node("MatMul", "y", "first", "turned");
    reads_as("y",
             "[{\"name\":\"fc\",\"op\":\"linear\",\"features\":8,\"bias\":false},{\"name\":\"y\","
             "\"op\":\"linear\",\"features\":8,\"bias\":false},{\"name\":\"loss\",\"op\":"
             "\"softmax_cross_entropy\"}]}");
}

/* A module's name of 150 letters stays whole: a checkpoint has to go back by it. */
static void check_long_name(void)
{
    static const int64_t square[2] = {8, 8};
    char name[160], layers[300];

    memset(name, 'a', 150);
    snprintf(name + 150, sizeof name - 150, ".weight");
    begin(13, -1, 8, 0, 0);
    constant(name, GHP_ONNX_FLOAT, 2, square, floats);
    node("MatMul", "y", "x", name);
    snprintf(layers, sizeof layers,
             "[{\"name\":\"%.150s\",\"op\":\"linear\",\"features\":8,\"transposed\":true,"
             "\"bias\":false},{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}",
             name);
    reads_as("y", layers);
}

/* A bias of zeros that is spread, as PyTorch's exporter gives convolutions without one, is left out; one that the file
 * holds is a parameter, whatever its values. */
static void check_no_bias(void)
{
    static const int64_t two[1] = {2};

    for (int held = 0; held < 2; held++) {
        begin(18, -1, 2, 1, 1);
        constant("w", GHP_ONNX_FLOAT, 4, (int64_t[]){2, 2, 1, 1}, floats);
        constant("b", GHP_ONNX_FLOAT, 1, two, floats);
        constant("zero", GHP_ONNX_FLOAT, 1, (int64_t[]){1}, floats);
        constant("two", GHP_ONNX_INT64, 1, (int64_t[]){1}, two);
        node("Expand", "spread", "zero", "two");
        node3("Conv", "c", "x", "w", held ? "b" : "spread");
        node("Flatten", "y", "c", NULL);
        reads_as(
            "y",
            held
                ? "[{\"name\":\"c\",\"op\":\"conv2d\",\"channels\":2,\"kernel\":1},{\"name\":"
                  "\"y\",\"op\":\"flatten\"},{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}"
                : "[{\"name\":\"c\",\"op\":\"conv2d\",\"channels\":2,\"kernel\":1,\"bias\":false},"
                  "{\"name\":\"y\",\"op\":\"flatten\"},{\"name\":\"loss\",\"op\":"
                  "\"softmax_cross_entropy\"}]}");
    }
}

/* Shape -> Gather -> Concat -> Reshape, as exporters flatten, with a symbolic batch. */
static void check_shape_arithmetic(void)
{
    static const int64_t zero = 0, minus[1] = {-1}, axes[1] = {0}, first[1] = {1};
    const char *concat[] = {"batch", "rest"};

    begin(13, -1, 2, 3, 4);
    constant("zero", GHP_ONNX_INT64, 0, NULL, &zero);
    constant("axes", GHP_ONNX_INT64, 1, first, axes);
    constant("rest", GHP_ONNX_INT64, 1, first, minus);
    node("Shape", "shape", "x", NULL);
    node("Gather", "n", "shape", "zero");
    node("Unsqueeze", "batch", "n", "axes");
    number(node("Concat", "wanted", concat[0], concat[1]), "axis", 0);
    node("Reshape", "flat", "x", "wanted");
    node("Softmax", "p", "flat", NULL);
    reads_as("p", "[{\"name\":\"flat\",\"op\":\"flatten\"},{\"name\":\"p\",\"op\":"
                  "\"softmax_cross_entropy\"}]}");
}

/* The loss that the metadata names. */
static void check_losses(void)
{
    static const struct {
        const char *value, *loss; /* as it is read; NULL: it is refused, and said */
        const char *said;
    } cases[] = {{"end", "{\"name\":\"end\",\"op\":\"softmax_cross_entropy\"}", NULL},
                 {"{\"op\": \"softmax_cross_entropy\", \"smoothing\": 0.5}",
                  "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\",\"smoothing\":0.5}", NULL},
                 {"{\"op\": \"binary_cross_entropy\", \"name\": \"yes\", \"multi_label\": true}",
                  "{\"name\":\"yes\",\"op\":\"binary_cross_entropy\",\"multi_label\":true}", NULL},
                 {"{\"op\": \"relu\"}", NULL, "unknown name 'relu'; use one of"},
                 {"{\"op\": \"hinge\", \"smoothing\": 0.5}", NULL, "unknown key 'smoothing'"},
                 {"{\"op\": ", NULL, "ghp.loss"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int softmax = 0; softmax < 2; softmax++) {
            struct ghp_onnx_metadatum text = {"ghp.loss", cases[i].value};
            bool taken = cases[i].loss != NULL && (softmax == 0 || i < 2);
            struct ghp_model model;

            begin(13, -1, 8, 0, 0);
            graph.texts = &text;
            graph.n_texts = 1;
            node("Relu", "y", "x", NULL);
            if (softmax) node("Softmax", i == 0 ? "end" : "loss", "y", NULL);
            save(path, !softmax ? "y" : i == 0 ? "end" : "loss");
            CHECK_STATUS(ghp_onnx_load(path, &model), taken    ? GHP_OK
                                                      : i >= 3 ? GHP_ERR_FORMAT
                                                               : GHP_ERR_INPUT);
            if (taken && !CHECK(strstr(model.text, cases[i].loss) != NULL))
                fprintf(stderr, "  it is %s\n", model.text);
            if (!taken) CHECK_MESSAGE(cases[i].said != NULL ? cases[i].said : "takes logits");
            ghp_model_release(&model);
        }
}

/* The number of samples is known in no file that leaves it open. */
static void check_batch_size(void)
{
    static const int64_t zero[1] = {0};

    begin(13, -1, 4, 0, 0);
    constant("zero", GHP_ONNX_INT64, 1, (int64_t[]){1}, zero);
    node("Shape", "shape", "x", NULL);
    node("Gather", "samples", "shape", "zero");
    number(node("Cast", "number", "samples", NULL), "to", GHP_ONNX_FLOAT);
    node("Mul", "y", "x", "number");
    refused(path, "y", GHP_ERR_INPUT, "computes with the number of samples");
}

static void check_unsupported(void)
{
    begin(13, -1, 4, 0, 0);
    node("Erf", "y", "x", NULL);
    refused(path, "y", GHP_ERR_INPUT,
            "node 'y' (Erf, opset 13) is of an operation that ghp does not support");
    CHECK_MESSAGE("; use Tanh, ");
    begin(13, -1, 4, 0, 0);
    node("Floor", "y", "x", NULL);
    refused(path, "y", GHP_ERR_INPUT, "is of an operation that ghp has for constants alone");
    CHECK_MESSAGE("in the data");
    begin(13, -1, 4, 0, 0);
    node("Bernoulli", "y", "x", NULL);
    refused(path, "y", GHP_ERR_INPUT, "use Dropout of single values");
    begin(13, -1, 4, 0, 0);
    number(node("Relu", "y", "x", NULL), "slope", 1);
    refused(path, "y", GHP_ERR_INPUT, "attribute 'slope'");
    begin(6, -1, 4, 0, 0);
    node("Relu", "y", "x", NULL);
    refused(path, "y", GHP_ERR_INPUT, "opset 6 is not supported");
    begin(13, -1, 4, 0, 0);
    list(node("Transpose", "y", "x", NULL), "perm", (int64_t[]){1, 0}, 2);
    refused(path, "y", GHP_ERR_INPUT, "moves the batch");
    begin(13, -1, 4, 0, 0);
    node("Softmax", "p", "x", NULL);
    node("Log", "y", "p", NULL);
    refused(path, "y", GHP_ERR_INPUT, "only at the end");
}

/* An ONNX file has no lines: what is wrong is at a node. The whole message, but for the path in front. */
static void refused_at(const char *output, const char *place, const char *remedy)
{
    char start[200];

    snprintf(start, sizeof start, "%s: %s", path, place);
    refused(path, output, GHP_ERR_INPUT, start);
    CHECK(strncmp(ghp_status_message(), start, strlen(start)) == 0);
    CHECK_MESSAGE(remedy);
}

static void check_places(void)
{
    static const int64_t two[2] = {2, 2}, pads[4] = {2, 2, 2, 2}, large[2] = {1 << 13, 1 << 13};
    const int64_t four[1] = {4}, column[2] = {4, 1};
    struct ghp_onnx_node *at;

    begin(13, -1, 4, 0, 0); /* what a description cannot say */
    constant("w", GHP_ONNX_FLOAT, 1, four, floats);
    node("Relu", "r", "x", NULL);
    at = node("BatchNormalization", "y", "r", "w");
    for (int i = 2; i < 5; i++)
        in_names[1][i] = "w";
    at->n_inputs = 5;
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = "epsilon", .kind = GHP_ONNX_REAL, .real = 2};
    refused_at("y", "node 'y' (BatchNormalization, opset 13), 'epsilon': 2 is out of range",
               "use a number from 1e-12 to 1");
    begin(13, -1, 2, 4, 4); /* what no layer can be */
    at = node("MaxPool", "p", "x", NULL);
    list(at, "kernel_shape", two, 2);
    list(at, "pads", pads, 4);
    refused_at(
        "p", "node 'p' (MaxPool, opset 13) becomes no layer: ", "padding smaller than the kernel");
    begin(13, -1, 4, 0, 0); /* what is said of a tensor */
    constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){2}, large);
    node("ConstantOfShape", "w", "shape", NULL);
    node("Add", "v", "w", "w");
    node("MatMul", "y", "x", "v");
    refused_at("y", "node 'v' (Add, opset 13) ", "fold it in the file");
    for (int i = 0; i < 2; i++) { /* numbers that are not sizes */
        begin(13, -1, 4, 0, 0);
        constant("sizes", GHP_ONNX_FLOAT, 1, two, i == 0 ? (float[]){NAN, 4} : (float[]){.5f, 4});
        node("Reshape", "y", "x", "sizes");
        refused_at("y", "node 'y' (Reshape, opset 13) has ", "among whole numbers");
    }
    begin(13, -1, 4, 0, 0); /* what is after the last node */
    constant("w", GHP_ONNX_FLOAT, 2, column, floats);
    node("MatMul", "y", "x", "w");
    refused_at("y", "the output 'y' ", "name it as 'loss' of ghp.export");
}

/* A few nodes can ask for any amount of memory: each here makes a constant four times as large as the one before. And
 * many constants that are small enough each are too much together. */
static void check_growing(void)
{
    enum { LINKS = 13 }; /* 4^13 elements are more than 2^24 */
    static const int64_t one[1] = {1};
    char made[LINKS + 1][8];
    struct ghp_onnx_import import = {0};
    double *values;

    begin(13, -1, 4, 0, 0);
    snprintf(made[0], sizeof made[0], "once");
    constant(made[0], GHP_ONNX_INT64, 1, one, one);
    for (int i = 0; i < LINKS; i++) {
        snprintf(made[i + 1], sizeof made[i + 1], "link%d", i);
        number(node("Concat", made[i + 1], made[i], made[i]), "axis", 0);
        in_names[i][2] = in_names[i][3] = made[i];
        nodes[i].n_inputs = 4;
    }
    node("Reshape", "y", "x", made[LINKS]);
    refused_at("y", "node 'link12' (Concat, opset 13) ", "67108864 elements");
    CHECK_MESSAGE("fold it in the file");
    for (int i = 0; i < 8; i++)
        CHECK_STATUS(ghp_onnx_room(&import, GHP_ONNX_MAX_FOLDED, &values), GHP_OK);
    CHECK_STATUS(ghp_onnx_room(&import, 1, &values), GHP_ERR_INPUT);
    CHECK_MESSAGE("fold them in the file");
    ghp_onnx_import_release(&import);
}

/* A graph's name need be no text. */
static void check_graph_name(void)
{
    static const char *const names[] = {"caf\xc3\xa9", "a\377b", "\xc0\xaf", "\xed\xa0\x80",
                                        "\xe2\x82"};
    static const char *const read[] = {"caf\xc3\xa9", "a_b", "__", "___", "__"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct ghp_model model;

        begin(13, -1, 4, 0, 0);
        graph.name = names[i];
        node("Relu", "y", "x", NULL);
        save(path, "y");
        if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) continue;
        CHECK_TEXT(model.name, read[i]);
        ghp_model_release(&model);
    }
}

/* Shuffled channels: one view, however many axes on the way. */
static void check_shuffle(void)
{
    static const int64_t apart[5] = {0, 2, 3, 2, 2}, together[4] = {0, 6, 2, 2};

    begin(13, -1, 6, 2, 2);
    constant("apart", GHP_ONNX_INT64, 1, (int64_t[]){5}, apart);
    constant("together", GHP_ONNX_INT64, 1, (int64_t[]){4}, together);
    node("Reshape", "a", "x", "apart");
    list(node("Transpose", "b", "a", NULL), "perm", (int64_t[]){0, 2, 1, 3, 4}, 5);
    node("Reshape", "c", "b", "together");
    node("Flatten", "y", "c", NULL);
    reads_as("y", "[{\"name\":\"c\",\"op\":\"view\",\"channels\":6,\"height\":2,\"width\":2,"
                  "\"sizes\":[3,2,2,2],\"strides\":[4,12,2,1]},{\"name\":\"y\",\"op\":\"flatten\"},"
                  "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}");
}

/* Functions of each element, and sums, of an image with its channels last: of the image as it is, without views. */
static void check_channels_last(void)
{
    begin(13, -1, 6, 2, 3);
    list(node("Transpose", "t", "x", NULL), "perm", (int64_t[]){0, 2, 3, 1}, 4);
    node("Relu", "r", "t", NULL);
    node("Sigmoid", "s", "r", NULL);
    node("Add", "a", "r", "s");
    list(node("Transpose", "b", "a", NULL), "perm", (int64_t[]){0, 3, 1, 2}, 4);
    node("Flatten", "y", "b", NULL);
    reads_as("y",
             "[{\"name\":\"r\",\"op\":\"relu\"},{\"name\":\"s\",\"op\":\"activation\",\"function\":"
             "\"sigmoid\"},{\"name\":\"a\",\"op\":\"add\",\"inputs\":[\"r\",\"s\"]},"
             "{\"name\":\"y\",\"op\":\"flatten\"},"
             "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}");
}

/* ---- names ---- */

static const char loss_text[] = "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

/* The same with the loss at the end. */
static void layers_are(const char *output, const char *layers)
{
    char text[1024];

    snprintf(text, sizeof text, "%s%s", layers, loss_text);
    reads_as(output, text);
}

/* Nodes that become several layers: the one that makes the output is called as the node, its helpers after it. */
static void check_helper_names(void)
{
    const int64_t three[2] = {3, 3}, two[2] = {2, 2}, ones[4] = {1, 1, 1, 1};
    struct ghp_onnx_node *pool;

    begin(13, -1, 4, 0, 0);
    node("Relu", "r", "x", NULL);
    node("Sub", "/Sub", "x", "r");
    layers_are("/Sub", "[{\"name\":\"r\",\"op\":\"relu\"},{\"name\":\"/Sub.negated\",\"op\":"
                       "\"activation\",\"function\":\"affine\",\"alpha\":-1.0},{\"name\":"
                       "\"/Sub\",\"op\":\"add\",\"inputs\":[\"input\",\"/Sub.negated\"]},");
    begin(13, -1, 4, 0, 0);
    node("Relu", "y", "x", NULL);
    node("Add", "z", "y", "y");
    layers_are("z", "[{\"name\":\"y\",\"op\":\"relu\"},{\"name\":\"z.copy\",\"op\":\"view\","
                    "\"channels\":4,\"sizes\":[4],\"strides\":[1]},{\"name\":\"z\",\"op\":"
                    "\"add\",\"inputs\":[\"y\",\"z.copy\"]},");
    begin(13, -1, 4, 0, 0);
    node("Relu", "y", "x", NULL);
    node("Mul", "z", "y", "y");
    layers_are("z", "[{\"name\":\"y\",\"op\":\"relu\"},{\"name\":\"z.copy\",\"op\":\"view\","
                    "\"channels\":4,\"sizes\":[4],\"strides\":[1]},{\"name\":\"z\",\"op\":"
                    "\"mul\",\"inputs\":[\"y\",\"z.copy\"]},");
    begin(13, -1, 4, 4, 4); /* PyTorch's AvgPool2d(3, 2, 1, ceil_mode=True) */
    pool = node("AveragePool", "p", "x", NULL);
    list(pool, "kernel_shape", three, 2);
    list(pool, "strides", two, 2);
    list(pool, "pads", ones, 4);
    number(pool, "ceil_mode", 1);
    pool->attributes[pool->n_attributes++] = (struct ghp_onnx_attribute){
        .name = "count_include_pad", .kind = GHP_ONNX_INT, .integer = 1};
    node("Flatten", "f", "p", NULL);
    layers_are("f", "[{\"name\":\"p.padded\",\"op\":\"pad\",\"pad\":1},{\"name\":\"p\",\"op\":"
                    "\"avg_pool\",\"kernel\":3,\"stride\":2,\"pad\":[0,0,1,1],\"count_pad\":false},"
                    "{\"name\":\"f\",\"op\":\"flatten\"},");
}

/* Whatever the file calls its nodes and tensors: no two layers and no two of their tensors have one name. */
static void check_clashes(void)
{
    static char first[201], second[201], layers[600];
    const int64_t square[2] = {4, 4}, four[1] = {4};

    begin(13, -1, 4, 0, 0); /* named as what ghp adds */
    node("Relu", "input", "x", NULL);
    node("Relu", "loss", "input", NULL);
    reads_as("loss", "[{\"name\":\"input_1\",\"op\":\"relu\"},{\"name\":\"loss\",\"op\":\"relu\"},"
                     "{\"name\":\"loss_2\",\"op\":\"softmax_cross_entropy\"}]}");
    begin(13, -1, 4, 0, 0); /* alike where names are cut; alike in letters that layers may have */
    memset(first, 'a', 200);
    memset(second, 'a', 200);
    first[199] = '1';
    node("Relu", first, "x", NULL);
    node("Relu", second, first, NULL);
    node("Relu", "b c", second, NULL);
    node("Relu", "b:c", "b c", NULL);
    snprintf(layers, sizeof layers,
             "[{\"name\":\"%.184s\",\"op\":\"relu\"},{\"name\":\"%.184s_1\",\"op\":\"relu\"},"
             "{\"name\":\"b_c\",\"op\":\"relu\"},{\"name\":\"b_c_2\",\"op\":\"relu\"},",
             first, second);
    layers_are("b:c", layers);
    begin(13, -1, 4, 0, 0); /* tensors: 'a.weight' of the layers 'a' and 'a.weight' */
    constant("m", GHP_ONNX_FLOAT, 2, square, floats);
    constant("n", GHP_ONNX_FLOAT, 2, square, floats);
    node("MatMul", "a", "x", "m");
    node("MatMul", "a.weight", "a", "n");
    layers_are("a.weight",
               "[{\"name\":\"a\",\"op\":\"linear\",\"features\":4,\"bias\":false},{"
               "\"name\":\"a.weight_1\",\"op\":\"linear\",\"features\":4,\"bias\":false},");
    begin(13, -1, 4, 0, 0); /* a bias whose name another node has */
    constant("m", GHP_ONNX_FLOAT, 2, square, floats);
    constant("c", GHP_ONNX_FLOAT, 1, four, floats);
    node("Relu", "g.bias", "x", NULL);
    struct ghp_onnx_node *gemm = node("Gemm", "g", "g.bias", "m");
    in_names[1][2] = "c";
    gemm->n_inputs = 3;
    layers_are("g", "[{\"name\":\"g.bias\",\"op\":\"relu\"},{\"name\":\"g\",\"op\":\"linear\","
                    "\"features\":4,\"bias\":false},{\"name\":\"g.bias_1\",\"op\":\"bias\"},");
}

/* Two products with one weight, called so, and what the metadata says of it; what it is read as, or what is refused. */
static void check_two(const char *const names[2], const char *shared, const float *values,
                      const char *refusal)
{
    struct ghp_onnx_metadatum text = {"ghp.shared", shared};
    struct ghp_model model;

    begin(13, -1, 4, 0, 0);
    constant("fc.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){4, 4}, values);
    node("MatMul", "first", "x", "fc.weight")->name = names[0];
    node("MatMul", "y", "first", "fc.weight")->name = names[1];
    graph.texts = &text;
    graph.n_texts = shared != NULL;
    save(path, "y");
    if (CHECK_STATUS(ghp_onnx_load(path, &model), refusal != NULL ? GHP_ERR_INPUT : GHP_OK) &&
        refusal == NULL) {
        CHECK_EQ(model.layers[2].tied, 2);
        ghp_model_release(&model);
    }
    if (refusal != NULL) CHECK(strstr(ghp_status_message(), refusal) != NULL);
}

/* Layers that share a tensor train one, unless an exporter may have put equal tensors of two modules together. */
static void check_shared(void)
{
    static const int64_t square[2] = {4, 4};
    static const float values[16] = {1, 2};
    static const char *const again[2] = {"/a/fc/MatMul", "/a/fc_1/MatMul"},
                             *const others[2] = {"/a.0/fc/MatMul", "/a.1/fc/MatMul"},
                             *const unknown[2] = {"first", "y"};
    char said[512];

    check_two(again, NULL, values, NULL);
    check_two(again, NULL, floats, NULL);
    check_two(unknown, NULL, values, NULL);
    check_two(others, "[\"fc.weight\"]", values, NULL);
    check_two(others, "[\"fc\"]", values, "name it in the metadata 'ghp.shared'");
    check_two(others, NULL, values, "they are of different modules");
    check_two(others, "fc.weight", values, "is not a list of names");
    begin(13, -1, 4, 0, 0);
    constant("fc.weight", GHP_ONNX_FLOAT, 2, square, values);
    node("MatMul", "first", "x", "fc.weight");
    list(node("Transpose", "turned", "fc.weight", NULL), "perm", (int64_t[]){1, 0}, 2);
    node("MatMul", "y", "first", "turned");
    save(path, "y");
    struct ghp_model model;
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "in layers that use it alike") != NULL);
    begin(13, -1, 4, 0, 0); /* of one number: equal by chance */
    constant("fc.weight", GHP_ONNX_FLOAT, 2, square, floats);
    node("MatMul", "first", "x", "fc.weight");
    node("MatMul", "y", "first", "fc.weight");
    said_reading(path, "y", said, sizeof said);
    CHECK_TEXT(said, "");
}

CHECK_TEST(import)
{
    snprintf(path, sizeof path, "/tmp/ghp-onnx-%ld.onnx", (long)getpid());
    CHECK(ghp_onnx_names("a/b.onnx") && !ghp_onnx_names(".onnx") && !ghp_onnx_names("onnx.json"));
    check_fusions();
    check_turned();
    check_long_name();
    check_no_bias();
    check_shape_arithmetic();
    check_shuffle();
    check_channels_last();
    check_losses();
    check_batch_size();
    check_unsupported();
    check_places();
    check_growing();
    check_graph_name();
    check_helper_names();
    check_clashes();
    check_shared();
    unlink(path);
    return check_end();
}
