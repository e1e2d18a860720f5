/* tests/onnx/test_hostile.c - files that are damaged or hostile become errors: cut at every length, with every byte
 * changed, cyclic, of sizes beyond numbers, nested without end. */
#include "core/base/file.h"
#include "core/model/model_private.h"
#include "onnx/graph.h"
#include "onnx/onnx.h"
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
    enum { SHORT = 4095, ROOM = 2 * SHORT };
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
    /* of the location's byte that comes last where the path is cut */
    at = SHORT - strlen(folder) - 2;
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
    begin(13, -1, 4, 0, 0); /* sizes whose product is not a number */
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
    FILE *file = fopen(path, "w"); /* without waiting for the disk, some thousand times */

    CHECK(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
    if (ghp_onnx_load(path, &model) == GHP_OK)
        ++*sound;
    else
        CHECK(ghp_status_message()[0] != '\0');
    ghp_model_release(&model);
}

static void check_damage(void)
{
    static const int64_t pads[8] = {0, 0, 1, 2, 0, 0, 1, 2}, ones[4] = {1, 1, 1, 1};
    char *bytes = NULL;
    size_t n = 0;
    int sound = 0;

    begin(13, 5, 2, 4, 4);
    constant("pads", GHP_ONNX_INT64, 1, (int64_t[]){8}, pads);
    constant("w", GHP_ONNX_FLOAT, 4, (int64_t[]){2, 2, 3, 3}, floats);
    node("Pad", "padded", "x", "pads");
    list(node("Conv", "c", "padded", "w"), "pads", ones, 4);
    node("GlobalAveragePool", "m", "c", NULL);
    node("Squeeze", "y", "m", NULL);
    save(path, "y");
    CHECK_STATUS(ghp_file_read(path, &bytes, &n), GHP_OK);
    CHECK(n > 200);
    for (size_t length = 0; length < n; length++)
        try_bytes(bytes, length, &sound);
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

CHECK_TEST(hostile)
{
    snprintf(path, sizeof path, "/tmp/ghp-onnx-hostile-%ld.onnx", (long)getpid());
    check_long_location();
    check_graphs();
    check_ladder();
    check_damage();
    check_depth();
    unlink(path);
    return check_end();
}
