/* tests/executor/engine/test_onnx_graphs.c - graphs whose nodes become several layers compute what their nodes mean: y
 * + y, y * y, differences of two tensors, sums of a tensor with itself, average pools that round up as PyTorch's do,
 * shared weights. The arithmetic is on small whole numbers, so all but means are exact. */
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
    unlink(path);
    return check_end();
}
