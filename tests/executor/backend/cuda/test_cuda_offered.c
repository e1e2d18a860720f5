/* ghp-test: timeout=120
 *
 * What cuDNN offers for an H100 and ghp does not run (docs/results/gpu-estimates.md says why): the sums that a
 * batch norm's backward pass takes, made by the kernel of the next convolution's data gradient, after the ReLU's
 * backward pass, at one of resnet50's shapes. There is an engine in half precision alone, which is printed. A driver
 * that runs nothing (tests/emulated/driver.c) takes the compiled kernels. Skipped where cuDNN's library is not
 * installed, or no driver's. */
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
    cudnnDataType_t type;   /* of images and filters */
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
static descriptor tensor_in(struct maker *m, enum ghp_graph_place place, cudnnDataType_t type,
                            const int64_t dims[4])
{
    int64_t c = dims[1], h = dims[2], w = dims[3];
    const struct ghp_graph_tensor t = {.id = ++m->ids,
                                       .type = type,
                                       .place = place,
                                       .dims = {dims[0], c, h, w},
                                       .strides = {c * h * w, 1, w * c, c}};
    descriptor made = NULL;

    if (m->status == GHP_OK) m->status = ghp_graph_make_tensor(m->g, &t, &made);
    return made;
}

static descriptor tensor(struct maker *m, cudnnDataType_t type, const int64_t dims[4])
{
    return tensor_in(m, GHP_GRAPH_IN_MEMORY, type, dims);
}

/* A number for each channel. */
static descriptor channels(struct maker *m, int64_t c)
{
    return tensor(m, CUDNN_DATA_FLOAT, (const int64_t[]){1, c, 1, 1});
}

static descriptor image(struct maker *m, int64_t c, int64_t side)
{
    return tensor(m, m->type, (const int64_t[]){BATCH, c, side, side});
}

/* What one operation hands to another. */
static descriptor passing(struct maker *m, int64_t c, int64_t side)
{
    return tensor_in(m, GHP_GRAPH_PASSING, CUDNN_DATA_FLOAT,
                     (const int64_t[]){BATCH, c, side, side});
}

/* The data gradient of a convolution. */
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
    descriptor kind = make(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, own, GHP_COUNT_OF(own));
    descriptor w = tensor(m, m->type, (const int64_t[]){s->k, s->c, s->window, s->window});
    const struct ghp_cudnn_attribute data[] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &kind},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, &one},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, &zero}};

    operation(m, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, data,
              GHP_COUNT_OF(data));
}

/* out = mode(x, b), or of a ReLU's backward pass the gradient b where x is above 0. */
static void pointwise(struct maker *m, cudnnPointwiseMode_t mode, descriptor x, descriptor b,
                      descriptor out)
{
    bool relu = mode == CUDNN_POINTWISE_RELU_BWD;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const struct ghp_cudnn_attribute own[] = {
        {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type}};
    descriptor kind = make(m, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, own, GHP_COUNT_OF(own));
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &kind},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {relu ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b},
        {relu ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &out}};

    operation(m, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, attributes,
              GHP_COUNT_OF(attributes));
}

/* The data gradient, after it the backward pass of the ReLU after a batch norm, whose output is made again of its
 * input, and the sums of the batch norm's backward pass. */
static void make_backward_sums(struct maker *m, const struct shape *s)
{
    static const cudnnPointwiseMode_t modes[] = {CUDNN_POINTWISE_SUB, CUDNN_POINTWISE_MUL,
                                                 CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_ADD};
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    descriptor dy = image(m, s->k, s->side), x = image(m, s->c, s->side), before = x,
               gradient = passing(m, s->c, s->side), dx = image(m, s->c, s->side), sums[5], of[4];

    convolve(m, s, gradient, dy);
    for (int i = 0; i < 4; i++) { /* mean, inverse deviation, scale, bias */
        descriptor after = passing(m, s->c, s->side);

        of[i] = channels(m, s->c);
        pointwise(m, modes[i], before, of[i], after);
        before = after;
    }
    pointwise(m, CUDNN_POINTWISE_RELU_BWD, before, gradient, dx);
    for (int i = 0; i < 5; i++)
        sums[i] = channels(m, s->c);
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of[0]},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of[1]},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &of[2]},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &dx},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &sums[0]},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &sums[1]},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &sums[2]},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &sums[3]},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &sums[4]}};

    operation(m, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, attributes,
              GHP_COUNT_OF(attributes));
}

/* Prints the engine that cuDNN has at a shape; returns whether it has one. */
static bool is_offered(const struct shape *s, cudnnDataType_t type, struct ghp_graph_target target)
{
    const struct ghp_graph_rules rules = {true, false, INT64_C(1) << 30};
    struct ghp_graph_plans plans = {0};
    struct maker m = {.g = ghp_alloc(1, sizeof *m.g), .type = type};
    bool is;

    m.g->cudnn = cudnn;
    m.g->target = target;
    m.g->request.bf16 = true;
    make_backward_sums(&m, s);
    const struct ghp_cudnn_attribute attributes[] = {{CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, m.operations.n,
                                                      m.operations.items}};
    m.g->graph =
        make(&m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, GHP_COUNT_OF(attributes));
    if (CHECK_STATUS(m.status, GHP_OK))
        CHECK_STATUS(ghp_graph_list(m.g, &rules, 1, &plans), GHP_OK);
    is = plans.n > 0;
    fprintf(stderr, "  %lld channels of %lld x %lld, %lld filters of %lld x %lld, %s: %s\n",
            (long long)s->c, (long long)s->side, (long long)s->side, (long long)s->k,
            (long long)s->window, (long long)s->window,
            type == CUDNN_DATA_BFLOAT16 ? "bfloat16" : "half",
            is ? plans.items[0].name : "no engine");
    if (is) ghp_graph_plan_release(cudnn, &plans.items[0]);
    ghp_graph_close(m.g);
    return is;
}

CHECK_TEST(cuda_offered)
{
    static const struct shape shape = {64, 56, 64, 3};
    struct ghp_graph_target target = {NULL, NULL};

    if (ghp_cudnn_load(&cudnn) != GHP_OK) SKIP(ghp_status_message());
    if (dlopen("libcuda.so.1", RTLD_LAZY) == NULL)
        SKIP("no driver's library; run this test by ctest");
    CHECK_STATUS(ghp_graph_properties(cudnn, gpu_properties_h100, &target.properties), GHP_OK);
    fprintf(stderr, "H100, cuDNN %lld, resnet50 at batch %d, data gradient, ReLU and sums:\n",
            (long long)cudnn->cudnnGetVersion(), BATCH);
    CHECK(!is_offered(&shape, CUDNN_DATA_BFLOAT16, target));
    CHECK(is_offered(&shape, CUDNN_DATA_HALF, target));
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
    return check_end();
}
