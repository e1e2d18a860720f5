/* tests/core/test_onnx.c - graphs become the layers they mean; files that are damaged or hostile become errors: cut at
 * every length, with every byte changed, cyclic, of sizes beyond numbers, nested without end. */
#include "core/model/model_private.h"
#include "onnx/onnx.h"
#include "core/base/file.h"
#include "onnx/import.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

/* A graph under construction: constants and nodes by name. */
static struct ghp_onnx_tensor tensors[16];
static struct ghp_onnx_node nodes[16];
static struct ghp_onnx_value ends[2];
static struct ghp_onnx_file graph;
static const char *in_names[16][4], *out_names[16][2];
static struct ghp_onnx_attribute attributes[16][4];
static float floats[4096];

static void begin(int64_t opset, int64_t batch, int64_t c, int64_t h, int64_t w)
{
    memset(attributes, 0, sizeof attributes);
    ends[0] = (struct ghp_onnx_value){
        .name = "x", .type = GHP_ONNX_FLOAT, .n_dims = h > 0 ? 4 : 2, .dims = {batch, c, h, w}};
    graph = (struct ghp_onnx_file){.name = "graph",
                                   .opset = opset,
                                   .nodes = nodes,
                                   .tensors = tensors,
                                   .inputs = ends,
                                   .outputs = ends + 1,
                                   .n_inputs = 1,
                                   .n_outputs = 1};
}

static void constant(const char *name, int type, int n_dims, const int64_t *dims,
                     const void *values)
{
    struct ghp_onnx_tensor *t = &tensors[graph.n_tensors++];

    *t = (struct ghp_onnx_tensor){
        .name = name, .type = type, .n_dims = n_dims, .elements = 1, .values = values};
    for (int i = 0; i < n_dims; i++) {
        t->dims[i] = dims[i];
        t->elements *= dims[i];
    }
}

static struct ghp_onnx_node *node(const char *op, const char *out, const char *a, const char *b)
{
    int i = graph.n_nodes++;

    in_names[i][0] = a;
    in_names[i][1] = b;
    out_names[i][0] = out;
    nodes[i] = (struct ghp_onnx_node){.name = out,
                                      .op = op,
                                      .n_inputs = b != NULL ? 2 : 1,
                                      .inputs = in_names[i],
                                      .n_outputs = 1,
                                      .outputs = out_names[i],
                                      .attributes = attributes[i]};
    return &nodes[i];
}

static void number(struct ghp_onnx_node *at, const char *name, int64_t value)
{
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_INT, .integer = value};
}

static void list(struct ghp_onnx_node *at, const char *name, const int64_t *values, int n)
{
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_INTS, .n = n, .ints = values};
}

static void save(const char *output)
{
    ends[1] = (struct ghp_onnx_value){
        .name = output, .type = GHP_ONNX_FLOAT, .n_dims = 2, .dims = {-1, 2}};
    CHECK_STATUS(ghp_onnx_file_save(path, &graph), GHP_OK);
}

static void refused(const char *output, enum ghp_status status, const char *said)
{
    struct ghp_model model;

    save(output);
    CHECK_STATUS(ghp_onnx_load(path, &model), status);
    CHECK_MESSAGE(said);
}

static void reads_as(const char *output, const char *layers)
{
    struct ghp_model model;
    const char *found;

    save(output);
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
    reads_as("y", "[{\"name\":\"fc\",\"op\":\"linear\",\"features\":3},{\"name\":\"loss\",\"op\":"
                  "\"softmax_cross_entropy\"}]}");
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

static void check_unsupported(void)
{
    begin(13, -1, 4, 0, 0);
    node("Erf", "y", "x", NULL);
    refused("y", GHP_ERR_INPUT, "node 'y' (Erf, opset 13) is of an operation that ghp has not");
    CHECK_MESSAGE("AveragePool");
    begin(13, -1, 4, 0, 0);
    number(node("Relu", "y", "x", NULL), "slope", 1);
    refused("y", GHP_ERR_INPUT, "attribute 'slope'");
    begin(6, -1, 4, 0, 0);
    node("Relu", "y", "x", NULL);
    refused("y", GHP_ERR_INPUT, "opset 6 is not supported");
    begin(13, -1, 4, 0, 0);
    list(node("Transpose", "y", "x", NULL), "perm", (int64_t[]){1, 0}, 2);
    refused("y", GHP_ERR_INPUT, "moves the batch");
    begin(13, -1, 4, 0, 0);
    node("Softmax", "p", "x", NULL);
    node("Relu", "y", "p", NULL);
    refused("y", GHP_ERR_INPUT, "only at the end");
}

/* ---- hostile files ---- */

static void check_graphs(void)
{
    static const int64_t huge[2] = {INT64_C(1) << 62, INT64_C(1) << 62};
    static const int64_t many[3] = {1 << 20, 1 << 20, 1 << 20};

    begin(13, -1, 4, 0, 0); /* cyclic */
    node("Relu", "a", "b", NULL);
    node("Relu", "b", "a", NULL);
    refused("b", GHP_ERR_INPUT, "which no earlier node makes");
    begin(13, -1, 4, 0, 0); /* missing */
    node("MatMul", "y", "x", "nowhere");
    refused("y", GHP_ERR_INPUT, "reads 'nowhere'");
    begin(13, -1, 4, 0, 0); /* sizes whose product is no number */
    constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){2}, huge);
    node("ConstantOfShape", "w", "shape", NULL);
    node("MatMul", "y", "x", "w");
    refused("y", GHP_ERR_INPUT, "2^40");
    begin(13, -1, 4, 0, 0);
    constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){2}, huge);
    node("Reshape", "y", "x", "shape");
    refused("y", GHP_ERR_INPUT, "shape of other size");
    begin(13, -1, 1 << 20, 1 << 20, 1 << 20);
    node("Relu", "y", "x", NULL);
    refused("y", GHP_ERR_INPUT, "use smaller sizes");
    begin(13, -1, 1, 1, 1); /* repeated beyond all memory */
    constant("shape", GHP_ONNX_INT64, 1, (int64_t[]){3}, many);
    node("Expand", "y", "x", "shape");
    refused("y", GHP_ERR_INPUT, "does not fit");
    begin(13, -1, 4, 3, 3); /* a kernel beyond numbers */
    constant("w", GHP_ONNX_FLOAT, 4, (int64_t[]){1, 4, 1, 1}, floats);
    list(node("Conv", "y", "x", "w"), "strides", huge, 2);
    refused("y", GHP_ERR_INPUT, "in strides");
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
    save(names[199][1]);
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

int main(void)
{
    snprintf(path, sizeof path, "/tmp/ghp-onnx-%ld.onnx", (long)getpid());
    CHECK(ghp_onnx_names("a/b.onnx") && !ghp_onnx_names(".onnx") && !ghp_onnx_names("onnx.json"));
    check_fusions();
    check_shape_arithmetic();
    check_shuffle();
    check_unsupported();
    check_graphs();
    check_ladder();
    check_damage();
    check_depth();
    unlink(path);
    return check_end();
}
