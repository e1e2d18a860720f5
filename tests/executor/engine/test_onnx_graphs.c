/* tests/executor/engine/test_onnx_graphs.c - graphs whose nodes become several layers compute what their nodes mean: y
 * + y, y * y, differences of two tensors, sums of a tensor with itself, average pools that round up as PyTorch's do,
 * shared weights, tokens between positions, pixels regrouped into patches and back. The arithmetic is on small whole numbers, so all but means are exact. */
#include "tests/check.h"
#include "tests/executor/onnx_pass.h"
#include "tests/onnx_graph.h"

#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 2, MOST = 512 };

static char path[64];
static float samples[MOST];

/* Runs the graph on whole numbers, all unlike; its output, to be freed. */
static float *values_of(const char *output, int64_t n)
{
    const struct ghp_onnx_options options = {.output = output, .open_end = true};
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file;
    float *out = NULL;

    for (int i = 0; i < MOST; i++)
        samples[i] = (float)((i * 37 + 11) % 64 - 32);
    save(path, output);
    if (!CHECK_STATUS(ghp_onnx_file_open(path, &file), GHP_OK)) return NULL;
    if (CHECK_STATUS(ghp_onnx_import_graph(&file, &options, &import), GHP_OK) &&
        CHECK_EQ(ghp_onnx_elements(&import.output), n))
        out = onnx_pass_run(
            &(struct onnx_pass){.import = &import, .batch = BATCH, .samples = samples});
    ghp_onnx_import_release(&import);
    ghp_onnx_file_close(&file);
    return out;
}

static float relu(float x)
{
    return x > 0 ? x : 0;
}

/* One graph of a vector: Relu y, then `op` of the inputs named. */
static void check_join(const char *op, const char *a, const char *b, float (*expected)(float x))
{
    float *out;

    begin(13, BATCH, 4, 0, 0);
    node("Relu", "y", "x", NULL);
    node(op, "z", a, b);
    out = values_of("z", 4);
    for (int i = 0; out != NULL && i < BATCH * 4; i++)
        CHECK(out[i] == expected(samples[i]));
    free(out);
}

static float doubled(float x)
{
    return 2 * relu(x);
}

static float squared(float x)
{
    return relu(x) * relu(x);
}

static float below(float x)
{
    return x - relu(x);
}

static float above(float x)
{
    return relu(x) - x;
}

static float nothing(float x)
{
    return x - x;
}

/* One axis of a window: of which pixels, and of how many counted ones. */
struct reach {
    int64_t first, last, counted;
};

/* PyTorch's AvgPool2d along one axis: the window is cut at the padded image, and padding counts; what ceil_mode adds
 * after it does not. */
static struct reach reach_of(int64_t i, int64_t size, int64_t kernel, int64_t stride, int64_t pad)
{
    struct reach r = {i * stride - pad, i * stride - pad + kernel, 0};

    if (r.last > size + pad) r.last = size + pad;
    r.counted = r.last - r.first;
    if (r.first < 0) r.first = 0;
    if (r.last > size) r.last = size;
    return r;
}

/* AvgPool2d(kernel, stride, pad, ceil_mode=True) over one channel of size x size pixels. */
static void check_pool(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t count)
{
    const int64_t kernels[2] = {kernel, kernel}, strides[2] = {stride, stride};
    const int64_t pads[4] = {pad, pad, pad, pad};
    struct ghp_onnx_node *pool;
    float *out;

    begin(13, BATCH, 1, size, size);
    pool = node("AveragePool", "z", "x", NULL);
    list(pool, "kernel_shape", kernels, 2);
    list(pool, "strides", strides, 2);
    list(pool, "pads", pads, 4);
    number(pool, "ceil_mode", 1);
    number(pool, "count_include_pad", 1);
    out = values_of("z", count * count);
    for (int64_t n = 0; out != NULL && n < BATCH; n++)
        for (int64_t i = 0; i < count * count; i++) {
            struct reach h = reach_of(i / count, size, kernel, stride, pad);
            struct reach w = reach_of(i % count, size, kernel, stride, pad);
            double sum = 0;

            for (int64_t y = h.first; y < h.last; y++)
                for (int64_t x = w.first; x < w.last; x++)
                    sum += (double)samples[(n * size + y) * size + x];
            CHECK_NEAR(out[n * count * count + i], sum / (double)(h.counted * w.counted), 1e-5);
        }
    free(out);
}

/* Two nodes with one matrix: each computes with the file's values. */
static void check_shared(void)
{
    static const float swap[4] = {0, 1, 1, 0};
    float *out;

    begin(13, BATCH, 2, 0, 0);
    constant("w.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){2, 2}, swap);
    node("MatMul", "once", "x", "w.weight");
    node("MatMul", "twice", "once", "w.weight");
    out = values_of("twice", 2);
    for (int i = 0; out != NULL && i < BATCH * 2; i++)
        CHECK(out[i] == samples[i]);
    free(out);
}

/* Tokens of the file between the positions of a sequence, and after its channels. */
static void check_between(void)
{
    static const float token[4] = {100, 200, 300, 400};
    static const int64_t rows[3] = {0, 3, 4}, parts[2] = {1, 2}, batch[3] = {BATCH, 1, 1};
    float *out;

    begin(18, BATCH, 12, 0, 0);
    constant("rows", GHP_ONNX_INT64, 1, (int64_t[]){3}, rows);
    constant("parts", GHP_ONNX_INT64, 1, (int64_t[]){2}, parts);
    constant("batch", GHP_ONNX_INT64, 1, (int64_t[]){3}, batch);
    constant("token", GHP_ONNX_FLOAT, 3, (int64_t[]){1, 1, 4}, token);
    node("Reshape", "three", "x", "rows");
    number(node("Split", "first", "three", "parts"), "axis", 1);
    out_names[graph.n_nodes - 1][1] = "others";
    nodes[graph.n_nodes - 1].n_outputs = 2;
    node("Expand", "tokens", "token", "batch");
    number(node3("Concat", "joined", "first", "tokens", "others"), "axis", 1);
    node("Flatten", "y", "joined", NULL);
    out = values_of("y", 16);
    for (int i = 0; out != NULL && i < BATCH * 16; i++) {
        int at = i % 16 - (i % 16 < 4 ? 0 : 4);

        CHECK(out[i] == (i % 16 / 4 == 1 ? token[i % 4] : samples[i / 16 * 12 + at]));
    }
    free(out);
}

enum { C = 3, ROWS = 4, COLUMNS = 6, SIDE = 2, PATCHES = 6 };

/* An element of a sample of the image: pixel `pixel` of patch `patch`, by rows both. */
static int64_t place_in(int64_t channel, int64_t patch, int64_t pixel)
{
    int64_t row = patch / (COLUMNS / SIDE) * SIDE + pixel / SIDE,
            column = patch % (COLUMNS / SIDE) * SIDE + pixel % SIDE;

    return (channel * ROWS + row) * COLUMNS + column;
}

static void reshape(const char *out, const char *from, const char *sizes, int n,
                    const int64_t *dims)
{
    constant(sizes, GHP_ONNX_INT64, 1, (int64_t[]){n}, dims);
    node("Reshape", out, from, sizes);
}

/* MobileViT's patches: samples, channels and rows are one axis for a while. In the middle, channels of each pixel are
 * multiplied with a matrix, or the graph ends. */
static void check_regrouped(bool back)
{
    static const int64_t across[4] = {0, 2, 1, 3}, around[4] = {0, 3, 2, 1};
    static const int64_t regrouped[4] = {-1, SIDE, COLUMNS / SIDE, SIDE},
                         patches[4] = {-1, C, PATCHES, SIDE * SIDE}, windows[3] = {-1, PATCHES, C},
                         parted[4] = {-1, SIDE * SIDE, PATCHES, C},
                         rows[4] = {-1, COLUMNS / SIDE, SIDE, SIDE},
                         image[4] = {-1, C, ROWS, COLUMNS};
    static const float turned[C * C] = {0, 1, 0, 0, 0, 2, 1, 0, 0};
    float *out;

    begin(13, BATCH, C, ROWS, COLUMNS);
    reshape("regrouped", "x", "regrouped sizes", 4, regrouped);
    list(node("Transpose", "regrouped across", "regrouped", NULL), "perm", across, 4);
    reshape("patches", "regrouped across", "patches sizes", 4, patches);
    list(node("Transpose", "around", "patches", NULL), "perm", around, 4);
    if (back) {
        reshape("windows", "around", "windows sizes", 3, windows);
        constant("w.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){C, C}, turned);
        node("MatMul", "mixed", "windows", "w.weight");
        reshape("parted", "mixed", "parted sizes", 4, parted);
        list(node("Transpose", "back", "parted", NULL), "perm", around, 4);
        reshape("rows", "back", "rows sizes", 4, rows);
        list(node("Transpose", "rows across", "rows", NULL), "perm", across, 4);
        reshape("image", "rows across", "image sizes", 4, image);
        node("Relu", "end", "image", NULL);
    }
    node("Flatten", "y", back ? "end" : "around", NULL);
    out = values_of("y", C * ROWS * COLUMNS);
    for (int64_t i = 0; out != NULL && i < BATCH * C * ROWS * COLUMNS; i++) {
        int64_t n = i / (C * ROWS * COLUMNS), at = i % (C * ROWS * COLUMNS),
                pixel = at / C / PATCHES;
        const float *sample = samples + n * C * ROWS * COLUMNS;
        int64_t c = at / (ROWS * COLUMNS), rest = at % (ROWS * COLUMNS);

        CHECK(out[i] == (back ? relu((c == 2 ? 2 : 1) * sample[(c + 2) % 3 * ROWS * COLUMNS + rest])
                              : sample[place_in(at % C, at / C % PATCHES, pixel)]));
    }
    free(out);
}

/* nn.Unfold by tables of places, and nn.Fold of what it makes. */
static void check_unfolded(bool back)
{
    static const int64_t rows[4] = {0, 2, 1, 3}, columns[6] = {0, 2, 4, 1, 3, 5},
                         order[6] = {0, 1, 2, 4, 3, 5}, size[2] = {ROWS, COLUMNS},
                         block[2] = {SIDE, SIDE}, blocks[3] = {-1, C * SIDE * SIDE, PATCHES};
    float *out;

    begin(18, BATCH, C, ROWS, COLUMNS);
    constant("rows", GHP_ONNX_INT64, 2, (int64_t[]){2, 2}, rows);
    constant("columns", GHP_ONNX_INT64, 2, (int64_t[]){2, 3}, columns);
    constant("size", GHP_ONNX_INT64, 1, (int64_t[]){2}, size);
    constant("block", GHP_ONNX_INT64, 1, (int64_t[]){2}, block);
    number(node("Gather", "by rows", "x", "rows"), "axis", 2);
    number(node("Gather", "by both", "by rows", "columns"), "axis", 4);
    list(node("Transpose", "turned", "by both", NULL), "perm", order, 6);
    reshape("blocks", "turned", "blocks sizes", 3, blocks);
    node("Relu", "above", "blocks", NULL);
    list(node3("Col2Im", "folded", "above", "size", "block"), "strides", block, 2);
    node("Flatten", "y", back ? "folded" : "above", NULL);
    out = values_of("y", C * ROWS * COLUMNS);
    for (int64_t i = 0; out != NULL && i < BATCH * C * ROWS * COLUMNS; i++) {
        int64_t n = i / (C * ROWS * COLUMNS), at = i % (C * ROWS * COLUMNS);
        int64_t from = place_in(at / (ROWS * COLUMNS), at % PATCHES, at / PATCHES % (SIDE * SIDE));

        CHECK(out[i] == relu(samples[n * C * ROWS * COLUMNS + (back ? at : from)]));
    }
    free(out);
}

/* Blocks that overlap, places that no steps say. */
static void check_refused(void)
{
    static const int64_t size[2] = {4, 4}, block[2] = {2, 2}, places[4] = {0, 1, 2, 2};

    begin(18, BATCH, 4, 1, 9);
    constant("size", GHP_ONNX_INT64, 1, (int64_t[]){2}, size);
    constant("block", GHP_ONNX_INT64, 1, (int64_t[]){2}, block);
    reshape("three", "x", "sizes", 3, (const int64_t[]){-1, 4, 9});
    node3("Col2Im", "folded", "three", "size", "block");
    refused(path, "folded", GHP_ERR_INPUT, "use a stride as wide as the block");
    constant("places", GHP_ONNX_INT64, 2, (int64_t[]){2, 2}, places);
    number(node("Gather", "taken", "x", "places"), "axis", 3);
    refused(path, "taken", GHP_ERR_INPUT, "not evenly spaced along each of its axes");
}

CHECK_TEST(onnx_graphs)
{
    snprintf(path, sizeof path, "/tmp/ghp-graphs-%ld.onnx", (long)getpid());
    check_join("Add", "y", "y", doubled);
    check_join("Mul", "y", "y", squared);
    check_join("Sub", "x", "y", below);
    check_join("Sub", "y", "x", above);
    check_join("Sub", "x", "x", nothing);
    check_pool(4, 3, 2, 1, 3);
    check_pool(5, 3, 2, 1, 3);
    check_pool(6, 3, 2, 1, 4);
    check_pool(7, 2, 2, 0, 4);
    check_pool(6, 4, 3, 2, 3);
    check_shared();
    check_between();
    check_regrouped(false);
    check_regrouped(true);
    check_unfolded(false);
    check_unfolded(true);
    check_refused();
    unlink(path);
    return check_end();
}
