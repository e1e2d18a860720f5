/* ghp-test: timeout=120
 *
 * What the graphs mean that ghp hands to cuDNN (cuda/graph.c, cuda/attention_graph.c), without a GPU: in cuDNN's place
 * stand functions that keep descriptors, and each operation of a graph is done here as cuDNN's manual defines it, in
 * double. Tensors in memory are those that a pass has, of its types; their numbers are the reference's: attention,
 * forward and backward, causal or not, with grouped heads and with sums in one order; convolutions of each pass with
 * strides, padding, dilation and groups, with a bias and a ReLU, a ReLU's mask on the gradient, sums of the output. */
#include "tests/executor/op_case.h"
#include "tests/check.h"

#include "executor/backend/backend_private.h"
#include "executor/backend/cuda/graph_private.h"

#include "core/model/attention.h"

#include <math.h>

enum { ATTRIBUTES = 16, TENSORS = 128 };

/* ---- descriptors ---- */

struct attribute {
    cudnnBackendAttributeName_t name;
    int64_t n;
    void *values;
};

struct item {
    cudnnBackendDescriptorType_t type;
    int n;
    struct attribute attributes[ATTRIBUTES];
};

static cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made)
{
    struct item *item = ghp_alloc(1, sizeof *item);

    item->type = type;
    *made = item;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(cudnnBackendDescriptor_t descriptor)
{
    struct item *item = descriptor;

    for (int i = 0; i < item->n; i++)
        free(item->attributes[i].values);
    free(item);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64: return 8;
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    default: return 4;
    }
}

static cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    struct item *item = descriptor;
    struct attribute *a = &item->attributes[item->n++];

    *a = (struct attribute){name, n, ghp_alloc((size_t)n + 1, size_of(type))};
    memcpy(a->values, values, (size_t)n * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor)
{
    return descriptor != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

static const struct ghp_cudnn cudnn = {.cudnnBackendCreateDescriptor = create,
                                       .cudnnBackendDestroyDescriptor = destroy,
                                       .cudnnBackendSetAttribute = set,
                                       .cudnnBackendFinalize = finalize};

/* The values of an attribute; NULL: it has none. */
static const void *values_of(const struct item *item, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < item->n; i++)
        if (item->attributes[i].name == name) return item->attributes[i].values;
    return NULL;
}

static const struct item *item_of(const struct item *item, cudnnBackendAttributeName_t name)
{
    const cudnnBackendDescriptor_t *at = values_of(item, name);

    return at != NULL ? *at : NULL;
}

static int enum_of(const struct item *item, cudnnBackendAttributeName_t name)
{
    return *(const int *)values_of(item, name);
}

static void check_float(const struct item *options, cudnnBackendAttributeName_t arithmetic)
{
    CHECK_EQ(enum_of(options, arithmetic), CUDNN_DATA_FLOAT);
}

/* ---- tensors ---- */

struct tensor { /* a view of a block of numbers */
    const int64_t *dims, *strides;
    double *at;
};

/* A tensor is passed on in no memory, or in memory of the graph's precision, of float, or one number of the host. */
enum place { NOWHERE, NARROW, WIDE, BY_VALUE };

static double *blocks[TENSORS]; /* by their ids */
static int64_t elements[TENSORS];
static enum place places[TENSORS];
static bool bf16; /* the graph's precision */

static void make_block(int64_t id, int64_t n)
{
    blocks[id] = ghp_alloc((size_t)n, sizeof *blocks[id]);
    elements[id] = n;
    for (int64_t i = 0; i < n; i++)
        blocks[id][i] = (double)NAN;
}

static void check_place(const struct item *item, int64_t id)
{
    enum place place = places[id];

    CHECK_EQ(*(const bool *)values_of(item, CUDNN_ATTR_TENSOR_IS_VIRTUAL), place == NOWHERE);
    CHECK_EQ(*(const bool *)values_of(item, CUDNN_ATTR_TENSOR_IS_BY_VALUE), place == BY_VALUE);
    if (place != NOWHERE)
        CHECK_EQ(enum_of(item, CUDNN_ATTR_TENSOR_DATA_TYPE),
                 bf16 && place == NARROW ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT);
}

static struct tensor tensor_of(const struct item *item)
{
    struct tensor t = {.dims = values_of(item, CUDNN_ATTR_TENSOR_DIMENSIONS),
                       .strides = values_of(item, CUDNN_ATTR_TENSOR_STRIDES)};
    int64_t id = *(const int64_t *)values_of(item, CUDNN_ATTR_TENSOR_UNIQUE_ID), n = 1;

    GHP_ASSERT(id < TENSORS);
    check_place(item, id);
    for (int d = 0; d < 4; d++)
        n += (t.dims[d] - 1) * t.strides[d];
    if (blocks[id] == NULL) make_block(id, n);
    CHECK(n <= elements[id]);
    t.at = blocks[id];
    return t;
}

static struct tensor operand(const struct item *operation, cudnnBackendAttributeName_t name)
{
    return tensor_of(item_of(operation, name));
}

/* values NULL: the graph makes them. */
static void give(int64_t id, enum place place, const float *values, int64_t n)
{
    make_block(id, n);
    places[id] = place;
    for (int64_t i = 0; i < n && values != NULL; i++)
        blocks[id][i] = (double)values[i];
}

static void clear_blocks(void)
{
    for (int i = 0; i < TENSORS; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
        places[i] = NOWHERE;
    }
}

/* The number of t that belongs to place i of a tensor of sizes `of`: a size of 1 is stretched, and so are heads that
 * several of `of` share. */
static double *number(struct tensor t, const int64_t of[4], const int64_t i[4])
{
    int64_t at = 0;

    for (int d = 0; d < 4; d++)
        at += i[d] * t.dims[d] / of[d] * t.strides[d];
    return &t.at[at];
}

/* The next place of a tensor of these sizes; false after the last one. */
static bool next(const int64_t of[4], int64_t i[4])
{
    for (int d = 3; d >= 0; d--) {
        if (++i[d] < of[d]) return true;
        i[d] = 0;
    }
    return false;
}

static void fill(struct tensor t, double value)
{
    int64_t i[4] = {0};

    do {
        *number(t, t.dims, i) = value;
    } while (next(t.dims, i));
}

/* ---- operations ---- */

static void run_product(const struct item *o)
{
    struct tensor a = operand(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                  b = operand(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                  c = operand(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    int64_t i[4] = {0};

    CHECK_EQ(a.dims[3], b.dims[2]);
    check_float(item_of(o, CUDNN_ATTR_OPERATION_MATMUL_DESC), CUDNN_ATTR_MATMUL_COMP_TYPE);
    do {
        double sum = 0;

        for (int64_t k = 0; k < a.dims[3]; k++) {
            const int64_t left[4] = {i[0], i[1], i[2], k}, right[4] = {i[0], i[1], k, i[3]};
            const int64_t of_left[4] = {c.dims[0], c.dims[1], c.dims[2], a.dims[3]},
                          of_right[4] = {c.dims[0], c.dims[1], b.dims[2], c.dims[3]};

            sum += *number(a, of_left, left) * *number(b, of_right, right);
        }
        *number(c, c.dims, i) = sum;
    } while (next(c.dims, i));
}

static void run_reduction(const struct item *o)
{
    struct tensor x = operand(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
                  y = operand(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const struct item *options = item_of(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    int mode = enum_of(options, CUDNN_ATTR_REDUCTION_OPERATOR);
    bool most = mode == CUDNN_REDUCE_TENSOR_MAX;
    int64_t i[4] = {0};

    CHECK(most || mode == CUDNN_REDUCE_TENSOR_ADD);
    check_float(options, CUDNN_ATTR_REDUCTION_COMP_TYPE);
    fill(y, most ? -HUGE_VAL : 0);
    do {
        double *to = number(y, x.dims, i), value = *number(x, x.dims, i);

        *to = !most ? *to + value : value > *to ? value : *to;
    } while (next(x.dims, i));
}

/* x, b and t: numbers at one place; `index`: of it, along the axis. */
static double apply(int mode, double x, double b, double t, double index)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_EXP: return exp(x);
    case CUDNN_POINTWISE_LOG: return log(x);
    case CUDNN_POINTWISE_IDENTITY: return x;
    case CUDNN_POINTWISE_RELU_FWD: return x > 0 ? x : 0;
    case CUDNN_POINTWISE_GEN_INDEX: return index;
    case CUDNN_POINTWISE_CMP_GE: return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT: return t > 0 ? x : b;
    default: CHECK(!"an operation that is known"); return 0;
    }
}

static void run_pointwise(const struct item *o)
{
    const struct item *options = item_of(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                      *b = item_of(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                      *t = item_of(o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    int mode = enum_of(options, CUDNN_ATTR_POINTWISE_MODE);
    const int64_t *axis = values_of(options, CUDNN_ATTR_POINTWISE_AXIS);
    struct tensor x = operand(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC), y, dy;
    int64_t i[4] = {0};

    if (mode != CUDNN_POINTWISE_GEN_INDEX && mode != CUDNN_POINTWISE_CMP_GE)
        check_float(options, CUDNN_ATTR_POINTWISE_MATH_PREC);
    if (mode == CUDNN_POINTWISE_RELU_BWD) {
        dy = operand(o, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC);
        y = operand(o, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC);
        do {
            *number(y, y.dims, i) = *number(x, y.dims, i) > 0 ? *number(dy, y.dims, i) : 0;
        } while (next(y.dims, i));
        return;
    }
    y = operand(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    do {
        *number(y, y.dims, i) = apply(
            mode, *number(x, y.dims, i), b != NULL ? *number(tensor_of(b), y.dims, i) : 0,
            t != NULL ? *number(tensor_of(t), y.dims, i) : 0, axis != NULL ? (double)i[*axis] : 0);
    } while (next(y.dims, i));
}

/* The same numbers, seen by other sizes and strides. */
static void run_reshape(const struct item *o)
{
    struct tensor x = operand(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
                  y = operand(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    int64_t n = 1;

    for (int d = 0; d < 4; d++)
        n *= y.dims[d];
    memcpy(y.at, x.at, (size_t)n * sizeof *y.at);
}

static void run_sums(const struct item *o)
{
    struct tensor x = operand(o, CUDNN_ATTR_OPERATION_GENSTATS_XDESC),
                  sums = operand(o, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC),
                  squares = operand(o, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC);
    int64_t i[4] = {0};

    check_float(o, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC);
    fill(sums, 0);
    fill(squares, 0);
    do {
        double value = *number(x, x.dims, i);

        *number(sums, x.dims, i) += value;
        *number(squares, x.dims, i) += value * value;
    } while (next(x.dims, i));
}

struct conv_names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, options, alpha, beta;
};

#define NAME(pass, of) CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##of
#define NAMES(type, pass, x, w, y)                                                                 \
    {                                                                                              \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##type##_DESCRIPTOR, NAME(pass, x), NAME(pass, w),     \
            NAME(pass, y), NAME(pass, CONV_DESC), NAME(pass, ALPHA), NAME(pass, BETA)              \
    }

static const struct conv_names conv_names[] = {NAMES(FORWARD, FORWARD, X, W, Y),
                                               NAMES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
                                               NAMES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY)};

/* Each product of a convolution joins a number of x, of w and of y: the third sums products of the others. */
static void run_convolution(const struct item *o, const struct conv_names *names)
{
    const struct item *options = item_of(o, names->options);
    const int64_t *stride = values_of(options, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                  *dilation = values_of(options, CUDNN_ATTR_CONVOLUTION_DILATIONS),
                  *before = values_of(options, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                  *after = values_of(options, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    struct tensor x = operand(o, names->x), w = operand(o, names->w), y = operand(o, names->y);
    int64_t filters = y.dims[1] / (x.dims[1] / w.dims[1]), i[4] = {0};
    struct tensor made = names == &conv_names[0] ? y : names == &conv_names[1] ? x : w;

    check_float(options, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    CHECK_EQ(enum_of(options, CUDNN_ATTR_CONVOLUTION_CONV_MODE), CUDNN_CROSS_CORRELATION);
    CHECK(*(const float *)values_of(o, names->alpha) == 1 &&
          *(const float *)values_of(o, names->beta) == 0);
    for (int d = 0; d < 2; d++) {
        int64_t over = x.dims[2 + d] + before[d] + after[d] - dilation[d] * (w.dims[2 + d] - 1) - 1;

        CHECK_EQ(y.dims[2 + d], over / stride[d] + 1);
    }
    fill(made, 0);
    do { /* a place of y */
        int64_t j[4] = {0}, of_w[4] = {1, w.dims[1], w.dims[2], w.dims[3]};

        do { /* a place of one filter */
            int64_t h = i[2] * stride[0] + j[2] * dilation[0] - before[0],
                    v = i[3] * stride[1] + j[3] * dilation[1] - before[1];
            const int64_t from[4] = {i[0], i[1] / filters * w.dims[1] + j[1], h, v},
                          by[4] = {i[1], j[1], j[2], j[3]};
            double *px, *pw = number(w, w.dims, by), *py = number(y, y.dims, i);

            if (h < 0 || h >= x.dims[2] || v < 0 || v >= x.dims[3]) continue;
            px = number(x, x.dims, from);
            if (made.at == y.at) *py += *px * *pw;
            if (made.at == x.at) *px += *py * *pw;
            if (made.at == w.at) *pw += *px * *py;
        } while (next(of_w, j));
    } while (next(y.dims, i));
}

static void run_operation(const struct item *o)
{
    for (size_t n = 0; n < sizeof conv_names / sizeof conv_names[0]; n++)
        if (o->type == conv_names[n].type) run_convolution(o, &conv_names[n]);
    if (o->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) run_product(o);
    if (o->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) run_reduction(o);
    if (o->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) run_pointwise(o);
    if (o->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) run_reshape(o);
    if (o->type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR) run_sums(o);
}

static void run_graph(const struct ghp_graph_request *request)
{
    const struct ghp_graph_target target = {NULL, NULL};
    struct ghp_graph *graph = NULL;

    bf16 = request->bf16;
    if (!CHECK_STATUS(ghp_graph_open(&cudnn, target, request, &graph), GHP_OK)) return;
    const struct attribute *operations = ((const struct item *)graph->graph)->attributes;
    CHECK_EQ(operations->name, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < operations->n; i++)
        run_operation(((const cudnnBackendDescriptor_t *)operations->values)[i]);
    ghp_graph_close(graph);
}

/* ---- compared with the reference ---- */

static struct ghp_backend *reference;

static void compare(int64_t id, const float *right, int64_t n, const char *what)
{
    double most = 1e-30, worst = 0;

    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)right[i]));
        worst = fmax(worst, fabs(blocks[id][i] - (double)right[i]));
        if (isnan(blocks[id][i])) worst = HUGE_VAL;
    }
    if (!CHECK(worst <= 1e-5 * most)) fprintf(stderr, "  %s: %.3g\n", what, worst / most);
}

static void run_reference(struct ghp_operand_set *set, enum ghp_pass pass)
{
    CHECK_STATUS(ghp_operand_set_run(set, &ghp_backend_reference, reference, pass), GHP_OK);
}

static void check_attention(int64_t positions, struct ghp_heads heads)
{
    const struct ghp_local local = op_case_attention(2, positions, heads);
    int64_t rows = 2 * positions, queries = rows * local.k;
    const float scale = (float)ghp_attention_scale(&heads), hidden = -1e30f;
    struct ghp_operand_set set;

    CHECK_STATUS(ghp_operand_set_init(&local, 4, GHP_OPERAND_SET_ALL, &set), GHP_OK);
    run_reference(&set, GHP_PASS_FORWARD);
    run_reference(&set, GHP_PASS_BACKWARD_DATA);
    const struct ghp_tensors *at = &set.args.at;
    for (int way = 0; way < 3; way++) { /* forward; backward; with sums in one order */
        const struct ghp_graph_request request = {.local = local,
                                                  .pass = way > 0 ? GHP_PASS_BACKWARD_DATA
                                                                  : GHP_PASS_FORWARD,
                                                  .bf16 = true,
                                                  .exact = way > 1};

        for (int i = 0; i < 3; i++)
            give(GHP_GRAPH_QUERIES + i, NARROW, at->x[i], rows * local.slice[i]);
        give(GHP_GRAPH_SCALE, BY_VALUE, &scale, 1);
        give(GHP_GRAPH_HIDDEN, BY_VALUE, &hidden, 1);
        give(GHP_GRAPH_RESULT, NARROW, way > 0 ? at->y : NULL, queries);
        give(GHP_GRAPH_LOGARITHMS, WIDE, way > 0 ? at->saved : NULL, rows * heads.n);
        give(GHP_GRAPH_DRESULT, NARROW, at->dy, queries);
        for (int i = 0; i < 3; i++)
            give(GHP_GRAPH_DQUERIES + i, NARROW, NULL, rows * local.slice[i]);
        give(GHP_GRAPH_MEANS, WIDE, NULL, rows * heads.n);
        if (way == 1) give(GHP_GRAPH_QUERIES_SUM, WIDE, NULL, queries);
        run_graph(&request);
        compare(GHP_GRAPH_RESULT, at->y, queries, "y");
        compare(GHP_GRAPH_LOGARITHMS, at->saved, rows * heads.n, "saved");
        for (int i = 0; i < 3 && way > 0; i++)
            compare(GHP_GRAPH_DQUERIES + i, at->dx[i], rows * local.slice[i],
                    op_case_text(&local, request.pass));
        clear_blocks();
    }
    ghp_operand_set_release(&set);
}

/* [k][c][r][s] as [k][r][s][c]. */
static float *turned(const struct ghp_local *l, const float *w)
{
    int64_t c = l->c / l->window.groups, area = l->window.r * l->window.s;
    float *made = ghp_alloc((size_t)(l->k * c * area), sizeof *made);

    for (int64_t k = 0; k < l->k; k++)
        for (int64_t i = 0; i < c; i++)
            for (int64_t p = 0; p < area; p++)
                made[(k * area + p) * c + i] = w[(k * c + i) * area + p];
    return made;
}

/* What the forward graph fuses, of y as the reference has it. */
static void fuse(const struct ghp_graph_request *r, const float *bias, float *y, float *sums)
{
    const struct ghp_local *l = &r->local;
    int64_t n = l->n * l->p * l->q * l->k;

    for (int64_t i = 0; i < n; i++) {
        if (r->bias) y[i] += bias[i % l->k];
        if (r->relu && y[i] < 0) y[i] = 0;
        if (r->sums) sums[i % l->k] += y[i];
        if (r->sums) sums[l->k + i % l->k] += y[i] * y[i];
    }
}

static void check_forward(struct ghp_operand_set *set, struct ghp_graph_request request)
{
    const struct ghp_local *l = &request.local;
    const struct ghp_tensors *at = &set->args.at;
    float *w = turned(l, at->w[0]), *bias = ghp_alloc((size_t)l->k, sizeof *bias),
          *sums = ghp_alloc(2 * (size_t)l->k, sizeof *sums);

    for (int64_t i = 0; i < l->k; i++)
        bias[i] = (float)(i % 3 - 1) / 4;
    run_reference(set, GHP_PASS_FORWARD);
    fuse(&request, bias, at->y, sums);
    give(GHP_GRAPH_X, NARROW, at->x[0], ghp_local_in_elements(l));
    give(GHP_GRAPH_W, NARROW, w, ghp_local_weight_elements(l));
    give(GHP_GRAPH_BIAS, WIDE, bias, l->k);
    give(GHP_GRAPH_Y, NARROW, NULL, ghp_local_out_elements(l));
    give(GHP_GRAPH_SUMS, WIDE, NULL, l->k);
    give(GHP_GRAPH_SQUARES, WIDE, NULL, l->k);
    run_graph(&request);
    compare(GHP_GRAPH_Y, at->y, ghp_local_out_elements(l), op_case_text(l, request.pass));
    if (request.sums) compare(GHP_GRAPH_SUMS, sums, l->k, "sums");
    if (request.sums) compare(GHP_GRAPH_SQUARES, sums + l->k, l->k, "squares");
    clear_blocks();
    free(sums);
    free(bias);
    free(w);
}

static void check_backward(struct ghp_operand_set *set, struct ghp_graph_request request)
{
    const struct ghp_local *l = &request.local;
    const struct ghp_tensors *at = &set->args.at;
    bool data = request.pass == GHP_PASS_BACKWARD_DATA;
    int64_t n = ghp_local_in_elements(l), weights = ghp_local_weight_elements(l);
    const float *x = at->x[0];
    float *w = turned(l, at->w[0]);

    if (!data) memset(at->dw[0], 0, (size_t)weights * sizeof(float));
    run_reference(set, request.pass);
    for (int64_t i = 0; i < n && request.relu; i++)
        if (!(x[i] > 0)) ((float *)at->dx[0])[i] = 0;
    give(GHP_GRAPH_X, NARROW, data ? NULL : x, n);
    give(GHP_GRAPH_W, NARROW, data ? w : NULL, weights);
    give(GHP_GRAPH_MASK, NARROW, x, n);
    give(GHP_GRAPH_Y, NARROW, at->dy, ghp_local_out_elements(l));
    run_graph(&request);
    if (data) {
        compare(GHP_GRAPH_X, at->dx[0], n, op_case_text(l, request.pass));
    } else {
        float *dw = turned(l, at->dw[0]);

        compare(GHP_GRAPH_W, dw, weights, op_case_text(l, request.pass));
        free(dw);
    }
    clear_blocks();
    free(w);
}

static void check_convolution(const struct ghp_local *local)
{
    struct ghp_graph_request request = {.local = *local, .pass = GHP_PASS_FORWARD};
    struct ghp_operand_set set;

    CHECK_STATUS(ghp_operand_set_init(local, 4, GHP_OPERAND_SET_ALL, &set), GHP_OK);
    for (int way = 0; way < 4; way++) {
        request.bf16 = request.bias = (way & 1) > 0;
        request.relu = (way & 2) > 0;
        check_forward(&set, request);
    }
    request.bias = request.relu = false;
    request.sums = true;
    check_forward(&set, request);
    request.sums = false;
    request.pass = GHP_PASS_BACKWARD_WEIGHT;
    check_backward(&set, request);
    request.pass = GHP_PASS_BACKWARD_DATA;
    check_backward(&set, request);
    request.relu = true;
    check_backward(&set, request);
    ghp_operand_set_release(&set);
}

CHECK_TEST(cuda_meaning)
{
    const struct ghp_backend_config plain = {.element_bytes = 4, .threads = 1, .exact = true};
    const struct ghp_local *cases;
    int n;

    CHECK_STATUS(ghp_backend_reference.open(&plain, &reference), GHP_OK);
    check_attention(7, (struct ghp_heads){.size = 8, .n = 3, .n_kv = 3, .causal = true});
    check_attention(5, (struct ghp_heads){.size = 16, .n = 4, .n_kv = 2, .causal = true});
    check_attention(6, (struct ghp_heads){.size = 8, .n = 4, .n_kv = 1, .causal = false});
    cases = op_case_all(&n);
    for (int i = 0; i < n; i++)
        if (cases[i].op == GHP_OP_CONV2D) check_convolution(&cases[i]);
    ghp_backend_reference.close(reference);
    return check_end();
}
