/* ghp-test: timeout=120
 *
 * What cuDNN offers for an H100 in bf16 and ghp does not run (docs/developers/gpu.md, "Left out", says why): the sums
 * that a batch norm takes of a convolution's output, made by the convolution's kernel. At resnet50's shapes cuDNN has an
 * engine, which is printed. A driver that runs nothing (tests/emulated/driver.c) takes the compiled kernels. Skipped
 * where cuDNN's library is not installed, or no driver's. */
#include "tests/check.h"
#include "tests/executor/backend/cuda/gpu_properties.h"

#include "executor/backend/cuda/graph_private.h"

#include <dlfcn.h>

typedef cudnnBackendDescriptor_t descriptor;

struct shape { /* a convolution without stride */
    int64_t c, side, k, window;
};

struct maker {
    struct ghp_graph *g;
    struct ghp_graph_operations operations;
    enum ghp_status status; /* of the first call that failed; the others after it do nothing */
    int64_t ids;            /* of tensors, so far */
};

enum { BATCH = 256 };

static const struct ghp_cudnn *cudnn;

static descriptor make(struct maker *m, cudnnBackendDescriptorType_t type,
                       const struct ghp_cudnn_attribute *attributes, int n)
{
    descriptor made = NULL;

    if (m->status == GHP_OK) m->status = ghp_graph_make(m->g, type, &made);
    if (m->status == GHP_OK) m->status = ghp_cudnn_fill(cudnn, made, attributes, n);
    return made;
}

static void operation(struct maker *m, cudnnBackendDescriptorType_t type,
                      const struct ghp_cudnn_attribute *attributes, int n)
{
    descriptor made = make(m, type, attributes, n);

    if (m->status == GHP_OK) m->operations.items[m->operations.n++] = made;
}

/* Channels innermost. */
static descriptor tensor(struct maker *m, cudnnDataType_t type, const int64_t dims[4])
{
    int64_t c = dims[1], h = dims[2], w = dims[3];
    const struct ghp_graph_tensor t = {.id = ++m->ids,
                                       .type = type,
                                       .dims = {dims[0], c, h, w},
                                       .strides = {c * h * w, 1, w * c, c}};
    descriptor made = NULL;

    if (m->status == GHP_OK) m->status = ghp_graph_make_tensor(m->g, &t, &made);
    return made;
}

/* A number for each channel. */
static descriptor channels(struct maker *m, int64_t c)
{
    return tensor(m, CUDNN_DATA_FLOAT, (const int64_t[]){1, c, 1, 1});
}

static descriptor image(struct maker *m, int64_t c, int64_t side)
{
    return tensor(m, CUDNN_DATA_BFLOAT16, (const int64_t[]){BATCH, c, side, side});
}

static void convolve(struct maker *m, const struct shape *s, descriptor x, descriptor y)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = 2, ones[2] = {1, 1}, pads[2] = {s->window / 2, s->window / 2};
    float one = 1, zero = 0;
    const struct ghp_cudnn_attribute own[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads}};
    descriptor how = make(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, own, GHP_COUNT_OF(own));
    descriptor w =
        tensor(m, CUDNN_DATA_BFLOAT16, (const int64_t[]){s->k, s->c, s->window, s->window});
    const struct ghp_cudnn_attribute forward[] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &how},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero}};

    operation(m, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, forward,
              GHP_COUNT_OF(forward));
}

/* y and the sums of its channels. */
static void make_stats(struct maker *m, const struct shape *s)
{
    cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    descriptor x = image(m, s->c, s->side), y = image(m, s->k, s->side);
    descriptor sum = channels(m, s->k), squares = channels(m, s->k);
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode},
        {CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &sum},
        {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &squares}};

    convolve(m, s, x, y);
    operation(m, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, attributes,
              GHP_COUNT_OF(attributes));
}

static void check_offered(const struct shape *s, struct ghp_graph_target target)
{
    const struct ghp_graph_rules rules = {true, false, INT64_C(1) << 30};
    struct ghp_graph_plans plans = {0};
    struct maker m = {.g = ghp_alloc(1, sizeof *m.g)};

    m.g->cudnn = cudnn;
    m.g->target = target;
    m.g->request.bf16 = true;
    make_stats(&m, s);
    const struct ghp_cudnn_attribute attributes[] = {{CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                      m.operations.n, m.operations.items}};
    m.g->graph =
        make(&m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, GHP_COUNT_OF(attributes));
    if (CHECK_STATUS(m.status, GHP_OK))
        CHECK_STATUS(ghp_graph_list(m.g, &rules, 1, &plans), GHP_OK);
    fprintf(stderr, "  %lld channels of %lld x %lld, %lld filters of %lld x %lld: %s\n",
            (long long)s->c, (long long)s->side, (long long)s->side, (long long)s->k,
            (long long)s->window, (long long)s->window,
            plans.n > 0 ? plans.items[0].name : "no engine");
    if (CHECK_EQ(plans.n, 1)) ghp_graph_plan_release(cudnn, &plans.items[0]);
    ghp_graph_close(m.g);
}

CHECK_TEST(cuda_offered)
{
    static const struct shape shapes[] = {{64, 56, 64, 3}, {512, 7, 2048, 1}};
    struct ghp_graph_target target = {NULL, NULL};

    if (ghp_cudnn_load(&cudnn) != GHP_OK) SKIP(ghp_status_message());
    if (dlopen("libcuda.so.1", RTLD_LAZY) == NULL)
        SKIP("no driver's library; run this test by ctest");
    CHECK_STATUS(ghp_graph_properties(cudnn, gpu_properties_h100, &target.properties), GHP_OK);
    fprintf(stderr, "H100, cuDNN %lld, resnet50 at batch %d in bf16, convolution and sums:\n",
            (long long)cudnn->cudnnGetVersion(), BATCH);
    for (int i = 0; i < GHP_COUNT_OF(shapes); i++)
        check_offered(&shapes[i], target);
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
    return check_end();
}
