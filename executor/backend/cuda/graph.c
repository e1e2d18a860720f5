/* executor/backend/cuda/graph.c - see cuda/graph.h. */
#include "executor/backend/cuda/graph_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- operations ---- */

struct tensor {
    int64_t id;
    int64_t dims[4]; /* n, c, h, w; of weights k, c, r, s */
};

/* What one operation of a graph hands to the next. */
static bool is_virtual(int64_t id)
{
    return id == GHP_GRAPH_PRODUCT || id == GHP_GRAPH_SUM;
}

/* Channels innermost, whatever the tensor is. */
static enum ghp_status make_tensor(struct ghp_graph *g, const struct tensor *t,
                                   cudnnBackendDescriptor_t *made)
{
    int64_t n = t->dims[0], c = t->dims[1], h = t->dims[2], w = t->dims[3];
    bool passing = is_virtual(t->id), sums = t->id == GHP_GRAPH_SUMS || t->id == GHP_GRAPH_SQUARES,
         wide = passing || sums || t->id == GHP_GRAPH_BIAS;
    const struct ghp_graph_tensor tensor = {
        .id = t->id,
        .type = g->request.bf16 && !wide ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT,
        .place = passing ? GHP_GRAPH_PASSING : GHP_GRAPH_IN_MEMORY,
        .dims = {n, c, h, w},
        .strides = {c * h * w, 1, w * c, c}};

    return ghp_graph_make_tensor(g, &tensor, made);
}

static enum ghp_status make_convolution(struct ghp_graph *g, cudnnBackendDescriptor_t *made)
{
    const struct ghp_window *w = &g->request.local.window;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = 2, strides[2] = {w->stride_h, w->stride_w},
            dilations[2] = {w->dilation_h, w->dilation_w}, before[2] = {w->pad_top, w->pad_left},
            after[2] = {w->pad_bottom, w->pad_right};
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after}};

    GHP_TRY(ghp_graph_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, made));
    return ghp_cudnn_fill(g->cudnn, *made, attributes, GHP_COUNT_OF(attributes));
}

/* How cuDNN names the three passes and their operands. */
struct naming {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

static struct naming naming_of(enum ghp_pass pass)
{
    static const struct naming forward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    static const struct naming data = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    static const struct naming weight = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

    return pass == GHP_PASS_FORWARD ? forward : pass == GHP_PASS_BACKWARD_DATA ? data : weight;
}

/* y: where the convolution leaves its result, of the forward pass; read by the others. x_id: of x, or its gradient,
 * which is made. */
static enum ghp_status make_conv_operation(struct ghp_graph *g, int64_t x_id,
                                           cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t *x,
                                           cudnnBackendDescriptor_t *operation)
{
    const struct ghp_local *l = &g->request.local;
    struct naming names = naming_of(g->request.pass);
    const struct tensor tx = {x_id, {l->n, l->c, l->h, l->w}};
    const struct tensor tw = {GHP_GRAPH_W,
                              {l->k, l->c / l->window.groups, l->window.r, l->window.s}};
    cudnnBackendDescriptor_t w, convolution;
    float one = 1, zero = 0;

    GHP_TRY(make_tensor(g, &tx, x));
    GHP_TRY(make_tensor(g, &tw, &w));
    GHP_TRY(make_convolution(g, &convolution));
    {
        const struct ghp_cudnn_attribute attributes[] = {
            {names.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, x},
            {names.w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w},
            {names.y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
            {names.convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution},
            {names.alpha, CUDNN_TYPE_FLOAT, 1, &one},
            {names.beta, CUDNN_TYPE_FLOAT, 1, &zero}};

        GHP_TRY(ghp_graph_make(g, names.type, operation));
        return ghp_cudnn_fill(g->cudnn, *operation, attributes, GHP_COUNT_OF(attributes));
    }
}

/* An output's tensor. */
static enum ghp_status make_output(struct ghp_graph *g, int64_t id, cudnnBackendDescriptor_t *made)
{
    const struct ghp_local *l = &g->request.local;
    const struct tensor tensor = {id, {l->n, l->k, l->p, l->q}};

    return make_tensor(g, &tensor, made);
}

/* An operation of each element, in float. */
static enum ghp_status make_pointwise(struct ghp_graph *g, cudnnPointwiseMode_t mode,
                                      const struct ghp_cudnn_attribute operands[3], int n,
                                      cudnnBackendDescriptor_t *operation)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t pointwise;
    const struct ghp_cudnn_attribute mode_attributes[] = {
        {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type}};
    struct ghp_cudnn_attribute attributes[4] = {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointwise}};

    memcpy(attributes + 1, operands, (size_t)n * sizeof *operands);
    GHP_TRY(ghp_graph_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &pointwise));
    GHP_TRY(ghp_cudnn_fill(g->cudnn, pointwise, mode_attributes, GHP_COUNT_OF(mode_attributes)));
    GHP_TRY(ghp_graph_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, operation));
    return ghp_cudnn_fill(g->cudnn, *operation, attributes, n + 1);
}

/* y = mode(x, b); b NULL: of x alone. */
static enum ghp_status make_forward(struct ghp_graph *g, cudnnPointwiseMode_t mode,
                                    cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                    cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t *operation)
{
    const struct ghp_cudnn_attribute operands[3] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b}};

    return make_pointwise(g, mode, operands, b != NULL ? 3 : 2, operation);
}

/* dx: the gradient, where the mask is above 0. */
static enum ghp_status make_mask(struct ghp_graph *g, cudnnBackendDescriptor_t gradient,
                                 cudnnBackendDescriptor_t *operation)
{
    const struct ghp_local *l = &g->request.local;
    const struct tensor tx = {GHP_GRAPH_X, {l->n, l->c, l->h, l->w}},
                        tmask = {GHP_GRAPH_MASK, {l->n, l->c, l->h, l->w}};
    cudnnBackendDescriptor_t dx, mask;
    const struct ghp_cudnn_attribute operands[3] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &mask},
        {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &gradient},
        {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &dx}};

    GHP_TRY(make_tensor(g, &tx, &dx));
    GHP_TRY(make_tensor(g, &tmask, &mask));
    return make_pointwise(g, CUDNN_POINTWISE_RELU_BWD, operands, 3, operation);
}

/* The sums of y's channels, and of their squares. */
static enum ghp_status make_sums(struct ghp_graph *g, cudnnBackendDescriptor_t y,
                                 cudnnBackendDescriptor_t *operation)
{
    const struct tensor of_sums = {GHP_GRAPH_SUMS, {1, g->request.local.k, 1, 1}},
                        of_squares = {GHP_GRAPH_SQUARES, {1, g->request.local.k, 1, 1}};
    cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t sums, squares;
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode},
        {CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &sums},
        {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &squares}};

    GHP_TRY(make_tensor(g, &of_sums, &sums));
    GHP_TRY(make_tensor(g, &of_squares, &squares));
    GHP_TRY(ghp_graph_make(g, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, operation));
    return ghp_cudnn_fill(g->cudnn, *operation, attributes, GHP_COUNT_OF(attributes));
}

static enum ghp_status make_backward(struct ghp_graph *g, struct ghp_graph_operations *o)
{
    cudnnBackendDescriptor_t y, x;

    GHP_TRY(make_output(g, GHP_GRAPH_Y, &y));
    GHP_TRY(make_conv_operation(g, g->request.relu ? GHP_GRAPH_PRODUCT : GHP_GRAPH_X, y, &x,
                                &o->items[o->n++]));
    return g->request.relu ? make_mask(g, x, &o->items[o->n++]) : GHP_OK;
}

static enum ghp_status make_operations(struct ghp_graph *g, struct ghp_graph_operations *o)
{
    const struct ghp_graph_request *r = &g->request;
    const struct tensor bias_of = {GHP_GRAPH_BIAS, {1, r->local.k, 1, 1}};
    cudnnBackendDescriptor_t product, sum, x, y, bias;

    if (r->pass != GHP_PASS_FORWARD) return make_backward(g, o);
    GHP_TRY(make_output(g, GHP_GRAPH_Y, &y));
    product = sum = y;
    if (r->bias || r->relu) GHP_TRY(make_output(g, GHP_GRAPH_PRODUCT, &product));
    GHP_TRY(make_conv_operation(g, GHP_GRAPH_X, product, &x, &o->items[o->n++]));
    if (r->bias) {
        if (r->relu) GHP_TRY(make_output(g, GHP_GRAPH_SUM, &sum));
        GHP_TRY(make_tensor(g, &bias_of, &bias));
        GHP_TRY(make_forward(g, CUDNN_POINTWISE_ADD, product, bias, sum, &o->items[o->n++]));
        product = sum;
    }
    if (r->sums) return make_sums(g, y, &o->items[o->n++]);
    if (!r->relu) return GHP_OK;
    return make_forward(g, CUDNN_POINTWISE_RELU_FWD, product, NULL, y, &o->items[o->n++]);
}

static enum ghp_status build(struct ghp_graph *g)
{
    struct ghp_graph_operations o = {0};

    GHP_TRY(g->request.local.op == GHP_OP_ATTENTION ? ghp_graph_make_attention(g, &o)
                                                    : make_operations(g, &o));
    GHP_TRY(ghp_graph_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph));
    {
        const struct ghp_cudnn_attribute attributes[] = {
            {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, o.n, o.items},
            {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->target.handle}};

        return ghp_cudnn_fill(g->cudnn, g->graph, attributes, g->target.handle != NULL ? 2 : 1);
    }
}

enum ghp_status ghp_graph_open(const struct ghp_cudnn *cudnn, struct ghp_graph_target target,
                               const struct ghp_graph_request *request, struct ghp_graph **graph)
{
    struct ghp_graph *g = ghp_alloc(1, sizeof *g);
    enum ghp_status status;

    *graph = NULL;
    if (g == NULL) return GHP_NO_MEMORY();
    g->cudnn = cudnn;
    g->target = target;
    g->request = *request;
    status = build(g);
    if (status == GHP_OK)
        *graph = g;
    else
        ghp_graph_close(g);
    return status;
}

void ghp_graph_close(struct ghp_graph *g)
{
    if (g == NULL) return;
    while (g->n_owned > 0)
        g->cudnn->cudnnBackendDestroyDescriptor(g->owned[--g->n_owned]);
    free(g);
}

/* ---- running ---- */

enum ghp_status ghp_graph_run(const struct ghp_graph *g, const struct ghp_graph_plan *plan,
                              const struct ghp_graph_tensors *t)
{
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, t->n, t->ids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, t->n, t->at},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &t->workspace}};
    cudnnBackendDescriptor_t pack = NULL;
    enum ghp_status status;

    GHP_TRY(GHP_CUDNN(g->cudnn,
                      cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack)));
    status = ghp_cudnn_fill(g->cudnn, pack, attributes, GHP_COUNT_OF(attributes));
    if (status == GHP_OK)
        status = GHP_CUDNN(g->cudnn, cudnnBackendExecute(g->target.handle, plan->plan, pack));
    g->cudnn->cudnnBackendDestroyDescriptor(pack);
    return status;
}

enum ghp_status ghp_graph_properties(const struct ghp_cudnn *cudnn, const char *json,
                                     cudnnBackendDescriptor_t *properties)
{
    const struct ghp_cudnn_attribute attributes[] = {{CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                                      CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1,
                                                      json}};

    GHP_TRY(GHP_CUDNN(
        cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, properties)));
    return ghp_cudnn_fill(cudnn, *properties, attributes, 1);
}
