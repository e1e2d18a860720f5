/* tests/onnx/test_import.c - graphs become the layers they mean; files that are damaged or hostile become errors: cut
 * at every length, with every byte changed, cyclic, of sizes beyond numbers, nested without end. */
#include "core/model/model_private.h"
#include "onnx/onnx.h"
#include "core/base/file.h"
#include "core/base/log.h"
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

/* A bias of zeros that is spread, as PyTorch's exporter gives convolutions without one, is none; one that the file
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
            struct ghp_onnx_text text = {"ghp.loss", cases[i].value};
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
            "node 'y' (Erf, opset 13) is of an operation that ghp has not");
    CHECK_MESSAGE("; use Relu, ");
    CHECK_MESSAGE("AveragePool");
    begin(13, -1, 4, 0, 0);
    node("Abs", "y", "x", NULL);
    refused(path, "y", GHP_ERR_INPUT, "is of an operation that ghp has for constants alone");
    CHECK_MESSAGE("; use Relu, ");
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
    node("Relu", "y", "p", NULL);
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
    for (int i = 0; i < 2; i++) { /* numbers that are no sizes */
        begin(13, -1, 4, 0, 0);
        constant("sizes", GHP_ONNX_FLOAT, 1, two, i == 0 ? (float[]){NAN, 4} : (float[]){.5f, 4});
        node("Reshape", "y", "x", "sizes");
        refused_at("y", "node 'y' (Reshape, opset 13) has ", "among whole numbers");
    }
    begin(13, -1, 4, 0, 0); /* what is behind the last node */
    constant("w", GHP_ONNX_FLOAT, 2, column, floats);
    node("MatMul", "y", "x", "w");
    refused_at("y", "the output 'y' ", "2 to 2^24 classes");
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

/* One field of a message: its number, and n bytes. */
static size_t put_field(unsigned char *at, int number, const void *bytes, size_t n)
{
    size_t k = 0;

    at[k++] = (unsigned char)(number << 3 | 2);
    for (size_t left = n; k == 1 || left > 0; left >>= 7)
        at[k++] = (unsigned char)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    memcpy(at + k, bytes, n);
    return k + n;
}

/* A tensor in a file of its own whose values are in another, at a path longer than paths may be; cut at 4095 bytes it
 * would name a file that is there. */
static void check_long_location(void)
{
    enum { CUT = 4095, ROOM = 2 * CUT };
    static unsigned char entry[ROOM], message[ROOM];
    static char location[ROOM];
    static const float two[2] = {1, 2};
    const char *folder = check_folder();
    char tensor_path[80], short_path[80];
    size_t n = 0, n_entry, at;
    struct ghp_onnx_file file;
    float values[2];

    snprintf(tensor_path, sizeof tensor_path, "%s/t", folder);
    snprintf(short_path, sizeof short_path, "%s/w", folder);
    at =
        CUT - strlen(folder) - 2; /* of the location's byte that comes last where the path is cut */
    for (size_t i = 0; i < at; i++)
        location[i] = i % 2 == at % 2 ? '.' : '/';
    if (location[0] == '/') location[0] = '.', location[1] = '/', location[2] = '/';
    snprintf(location + at, ROOM - at, "weights");
    n_entry = put_field(entry, 1, "location", 8);
    n_entry += put_field(entry + n_entry, 2, location, strlen(location));
    message[n++] = 1 << 3; /* dims: 2 */
    message[n++] = 2;
    message[n++] = 2 << 3; /* float */
    message[n++] = GHP_ONNX_FLOAT;
    n += put_field(message + n, 13, entry, n_entry);
    message[n++] = 14 << 3; /* held elsewhere */
    message[n++] = 1;
    CHECK_STATUS(ghp_file_write_atomic(tensor_path, message, n), GHP_OK);
    CHECK_STATUS(ghp_file_write_atomic(short_path, two, sizeof two), GHP_OK);
    if (CHECK_STATUS(ghp_onnx_file_open_tensor(tensor_path, &file), GHP_OK)) {
        CHECK_STATUS(ghp_onnx_tensor_floats(&file, file.tensors, values), GHP_ERR_IO);
        CHECK_MESSAGE("cannot read");
        ghp_onnx_file_close(&file);
    }
}

/* ---- hostile files ---- */

static void check_graphs(void)
{
    static const int64_t huge[2] = {INT64_C(1) << 62, INT64_C(1) << 62};
    static const int64_t many[3] = {1 << 20, 1 << 20, 1 << 20};

    begin(13, -1, 4, 0, 0); /* cyclic */
    node("Relu", "a", "b", NULL);
    node("Relu", "b", "a", NULL);
    refused(path, "b", GHP_ERR_INPUT, "which no earlier node makes");
    begin(13, -1, 4, 0, 0); /* missing */
    node("MatMul", "y", "x", "nowhere");
    refused(path, "y", GHP_ERR_INPUT, "reads 'nowhere'");
    begin(13, -1, 4, 0, 0); /* sizes whose product is no number */
    constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){2}, huge);
    node("ConstantOfShape", "w", "shape", NULL);
    node("MatMul", "y", "x", "w");
    refused(path, "y", GHP_ERR_INPUT, "2^40");
    begin(13, -1, 4, 0, 0);
    constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){2}, huge);
    node("Reshape", "y", "x", "shape");
    refused(path, "y", GHP_ERR_INPUT, "shape of other size");
    begin(13, -1, 1 << 20, 1 << 20, 1 << 20);
    node("Relu", "y", "x", NULL);
    refused(path, "y", GHP_ERR_INPUT, "use smaller sizes");
    begin(13, -1, 1, 1, 1); /* repeated beyond all memory */
    constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){3}, many);
    node("Expand", "y", "x", "shape");
    refused(path, "y", GHP_ERR_INPUT, "does not fit");
    begin(13, -1, 4, 3, 3); /* a kernel beyond numbers */
    constant("w", GHP_ONNX_FLOAT, 4, (int64_t[]){1, 4, 1, 1}, floats);
    list(node("Conv", "y", "x", "w"), "strides", huge, 2);
    refused(path, "y", GHP_ERR_INPUT, "in strides");
}

/* Adding a network to itself over and over has paths without number. */
static void check_ladder(void)
{
    static char names[200][2][16];
    static struct ghp_onnx_node steps[400];
    struct ghp_model model;
    const float two = 2;

    begin(13, -1, 4, 0, 0);
    constant("two", GHP_ONNX_FLOAT, 0, NULL, &two);
    graph.nodes = steps;
    for (int i = 0; i < 200; i++) {
        static const char *in[200][2][2], *out[200][2][1];
        const char *from = i == 0 ? "x" : names[i - 1][1];

        for (int k = 0; k < 2; k++) {
            snprintf(names[i][k], sizeof names[i][k], "n%d.%d", i, k);
            in[i][k][0] = from;
            in[i][k][1] = k == 0 ? "two" : names[i][0];
            out[i][k][0] = names[i][k];
            steps[graph.n_nodes++] = (struct ghp_onnx_node){.name = names[i][k],
                                                            .op = k == 0 ? "Mul" : "Add",
                                                            .n_inputs = 2,
                                                            .inputs = in[i][k],
                                                            .n_outputs = 1,
                                                            .outputs = out[i][k]};
        }
    }
    save(path, names[199][1]);
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK);
    CHECK_EQ(model.n_layers, 402);
    ghp_model_release(&model);
}

/* Whatever the bytes, there is a model or a message. */
static void try_bytes(const char *bytes, size_t n, int *sound)
{
    struct ghp_model model;

    CHECK_STATUS(ghp_file_write_atomic(path, bytes, n), GHP_OK);
    if (ghp_onnx_load(path, &model) == GHP_OK)
        ++*sound;
    else
        CHECK(ghp_status_message()[0] != '\0');
    ghp_model_release(&model);
}

static void check_damage(void)
{
    char *bytes = NULL;
    size_t n = 0;
    int sound = 0;

    check_fusions(); /* leaves the second of its files */
    CHECK_STATUS(ghp_file_read(path, &bytes, &n), GHP_OK);
    CHECK(n > 200);
    for (size_t cut = 0; cut < n; cut++)
        try_bytes(bytes, cut, &sound);
    CHECK(sound < 3); /* at bounds between fields of the outermost message */
    for (size_t i = 0; i < n; i++) {
        const char kept = bytes[i];
        const int flips[] = {0xff, 0x80, 0x01, 0x10};

        for (size_t f = 0; f < sizeof flips / sizeof flips[0]; f++) {
            bytes[i] = (char)(kept ^ flips[f]);
            try_bytes(bytes, n, &sound);
        }
        bytes[i] = kept;
    }
    free(bytes);
}

/* Graphs inside attributes inside nodes inside graphs; far more than the stack would hold. */
static void check_depth(void)
{
    enum { LEVELS = 60000, ROOM = LEVELS * 20 };
    unsigned char *bytes = ghp_alloc(ROOM, 1), *at = bytes + ROOM;
    static const unsigned char tags[3] = {6 << 3 | 2, 5 << 3 | 2,
                                          1 << 3 | 2}; /* g, attribute, node */
    struct ghp_model model;
    int level = 0;

    for (; level < LEVELS && at - bytes > 32; level++) {
        size_t n = (size_t)(bytes + ROOM - at);
        unsigned char varint[8];
        int k = 0;

        for (; k == 0 || n > 0; n >>= 7)
            varint[k++] = (unsigned char)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
        at -= k;
        memcpy(at, varint, (size_t)k);
        *--at = level == LEVELS - 1 ? 7 << 3 | 2 : tags[(level + 1) % 3];
    }
    CHECK_STATUS(ghp_file_write_atomic(path, at, (size_t)(bytes + ROOM - at)), GHP_OK);
    CHECK_STATUS(ghp_onnx_load(path, &model), GHP_ERR_FORMAT);
    CHECK_MESSAGE("levels deep");
    free(bytes);
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

/* ---- names ---- */

static const char loss_text[] = "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";

/* The same with the loss behind. */
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
    static char first[128], second[128];
    const int64_t square[2] = {4, 4}, four[1] = {4};

    begin(13, -1, 4, 0, 0); /* named as what ghp adds */
    node("Relu", "input", "x", NULL);
    node("Relu", "loss", "input", NULL);
    reads_as("loss", "[{\"name\":\"input_1\",\"op\":\"relu\"},{\"name\":\"loss\",\"op\":\"relu\"},"
                     "{\"name\":\"loss_2\",\"op\":\"softmax_cross_entropy\"}]}");
    begin(13, -1, 4, 0, 0); /* alike where names are cut; alike in letters that layers may have */
    memset(first, 'a', 100);
    memset(second, 'a', 100);
    first[99] = '1';
    node("Relu", first, "x", NULL);
    node("Relu", second, first, NULL);
    node("Relu", "b c", second, NULL);
    node("Relu", "b:c", "b c", NULL);
    layers_are(
        "b:c",
        "[{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaa\",\"op\":\"relu\"},{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_1\",\"op\":\"relu\"},{\"name\":\"b_c\",\"op\":"
        "\"relu\"},{\"name\":\"b_c_2\",\"op\":\"relu\"},");
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

/* Nodes that share a tensor: each trains a copy, and a warning says whose. */
static void check_shared(void)
{
    const int64_t square[2] = {4, 4};
    const float values[16] = {1, 2};
    char said[512], expected[512];

    begin(13, -1, 4, 0, 0);
    constant("fc.weight", GHP_ONNX_FLOAT, 2, square, values);
    node("MatMul", "first", "x", "fc.weight");
    node("MatMul", "second", "first", "fc.weight");
    node("MatMul", "third", "second", "fc.weight");
    layers_are("third", "[{\"name\":\"fc\",\"op\":\"linear\",\"features\":4,\"transposed\":true,"
                        "\"bias\":false},{\"name\":\"fc_1\",\"op\":\"linear\",\"features\":4,"
                        "\"transposed\":true,\"bias\":false},{\"name\":\"fc_2\",\"op\":\"linear\","
                        "\"features\":4,\"transposed\":true,\"bias\":false},");
    said_reading(path, "third", said, sizeof said);
    snprintf(expected, sizeof expected,
             "test: warning: %s: nodes 'first' and 'second' share the tensor 'fc.weight', and 1 "
             "more node "
             "shares one; ghp trains a copy for each: they will differ\n",
             path);
    CHECK_TEXT(said, expected);
    begin(13, -1, 4, 0, 0);
    constant("fc.weight", GHP_ONNX_FLOAT, 2, square, values);
    node("MatMul", "y", "x", "fc.weight");
    said_reading(path, "y", said, sizeof said);
    CHECK_TEXT(said, "");
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
    check_no_bias();
    check_shape_arithmetic();
    check_shuffle();
    check_losses();
    check_batch_size();
    check_unsupported();
    check_places();
    check_growing();
    check_graph_name();
    check_long_location();
    check_graphs();
    check_ladder();
    check_helper_names();
    check_clashes();
    check_shared();
    check_damage();
    check_depth();
    unlink(path);
    return check_end();
}
