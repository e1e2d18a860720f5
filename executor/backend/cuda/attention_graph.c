/* executor/backend/cuda/attention_graph.c - the operations of an attention's pass, as cuDNN's engines for attention
 * know them.
 *
 * cuDNN has no operation of its own for causal attention before 9.21. Its engines recognize this composition of
 * products, softmax and mask instead, and run it as one kernel that stores no scores. Queries are {n, head, position,
 * channel} in memory of [n][position][head][channel]; keys and values may have fewer heads, a divisor. */
#include "executor/backend/cuda/graph_private.h"

struct builder {
    struct ghp_graph *g;
    struct ghp_graph_operations *operations;
    int64_t next_id;
    enum ghp_status status; /* of the first step that failed; the others after it do nothing */
    int64_t n, heads, kv_heads, positions, size;
};

typedef cudnnBackendDescriptor_t descriptor;

static bool step(struct builder *b, enum ghp_status status)
{
    if (b->status == GHP_OK) b->status = status;
    return b->status == GHP_OK;
}

/* ---- tensors ---- */

static descriptor tensor_of(struct builder *b, const struct ghp_graph_tensor *tensor)
{
    descriptor made = NULL;

    if (b->status == GHP_OK) step(b, ghp_graph_make_tensor(b->g, tensor, &made));
    return made;
}

/* A tensor of activations with `heads` heads. `transposed` exchanges positions and channels. */
static descriptor activations(struct builder *b, int64_t id, int64_t heads, bool transposed)
{
    int64_t s = b->positions, d = b->size;
    struct ghp_graph_tensor tensor = {
        .id = id,
        .type = CUDNN_DATA_BFLOAT16,
        .dims = {b->n, heads, transposed ? d : s, transposed ? s : d},
        .strides = {s * heads * d, d, transposed ? 1 : heads * d, transposed ? heads * d : 1}};

    if (id == 0) {
        tensor.id = b->next_id++;
        tensor.place = GHP_GRAPH_PASSING;
    }
    return tensor_of(b, &tensor);
}

/* A tensor {n, head, position, columns}, packed. id 0: in no memory. */
static descriptor packed(struct builder *b, int64_t id, cudnnDataType_t type, int64_t columns)
{
    int64_t s = b->positions;
    const struct ghp_graph_tensor tensor = {
        .id = id != 0 ? id : b->next_id++,
        .type = type,
        .place = id != 0 ? GHP_GRAPH_IN_MEMORY : GHP_GRAPH_PASSING,
        .dims = {b->n, b->heads, s, columns},
        .strides = {b->heads * s * columns, s * columns, columns, 1}};

    return tensor_of(b, &tensor);
}

static descriptor scores(struct builder *b, cudnnDataType_t type)
{
    return packed(b, 0, type, b->positions);
}

/* One number for each query, in no memory. */
static descriptor rows(struct builder *b)
{
    return packed(b, 0, CUDNN_DATA_FLOAT, 1);
}

static descriptor number(struct builder *b, int64_t id)
{
    const struct ghp_graph_tensor tensor = {.id = id,
                                            .type = CUDNN_DATA_FLOAT,
                                            .place = GHP_GRAPH_BY_VALUE,
                                            .dims = {1, 1, 1, 1},
                                            .strides = {1, 1, 1, 1}};

    return tensor_of(b, &tensor);
}

/* ---- operations ---- */

/* Makes an operation and appends it to the graph's. */
static void operation(struct builder *b, cudnnBackendDescriptorType_t type,
                      const struct ghp_cudnn_attribute *attributes, int n)
{
    descriptor made = NULL;

    if (b->status != GHP_OK || !step(b, ghp_graph_make(b->g, type, &made))) return;
    if (!step(b, ghp_cudnn_fill(b->g->cudnn, made, attributes, n))) return;
    GHP_ASSERT(b->operations->n < GHP_GRAPH_OPERATIONS);
    b->operations->items[b->operations->n++] = made;
}

/* What an operation is to do, as a descriptor. */
static descriptor config(struct builder *b, cudnnBackendDescriptorType_t type,
                         const struct ghp_cudnn_attribute *attributes, int n)
{
    descriptor made = NULL;

    if (b->status == GHP_OK && step(b, ghp_graph_make(b->g, type, &made)))
        step(b, ghp_cudnn_fill(b->g->cudnn, made, attributes, n));
    return made;
}

/* c = a b; returns c. */
static descriptor multiply(struct builder *b, descriptor left, descriptor right, descriptor product)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const struct ghp_cudnn_attribute own[] = {
        {CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type}};
    descriptor matmul = config(b, CUDNN_BACKEND_MATMUL_DESCRIPTOR, own, GHP_COUNT_OF(own));
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &matmul},
        {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &left},
        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &right},
        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &product}};

    operation(b, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, attributes, GHP_COUNT_OF(attributes));
    return product;
}

static descriptor reduce(struct builder *b, cudnnReduceTensorOp_t mode, descriptor x, descriptor y)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const struct ghp_cudnn_attribute own[] = {
        {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode},
        {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type}};
    descriptor reduction = config(b, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, own, GHP_COUNT_OF(own));
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &reduction},
        {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y}};

    operation(b, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, attributes,
              GHP_COUNT_OF(attributes));
    return y;
}

struct pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type; /* of the arithmetic; 0 is float */
    int64_t axis;         /* of GEN_INDEX */
    descriptor x, b, t;   /* b and t may be NULL */
};

static descriptor apply(struct builder *b, struct pointwise p, descriptor y)
{
    const struct ghp_cudnn_attribute own[] = {
        {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p.mode},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p.type},
        {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p.axis}};
    descriptor pointwise = config(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, own,
                                  p.mode == CUDNN_POINTWISE_GEN_INDEX ? 3 : 2);
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &pointwise},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p.x},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p.b},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p.t}};

    operation(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, attributes,
              p.t != NULL   ? 5
              : p.b != NULL ? 4
                            : 3);
    return y;
}

/* y = mode(x, other) in float; other NULL: of x alone. */
static descriptor map(struct builder *b, cudnnPointwiseMode_t mode, descriptor x, descriptor other,
                      descriptor y)
{
    return apply(b, (struct pointwise){.mode = mode, .type = CUDNN_DATA_FLOAT, .x = x, .b = other},
                 y);
}

static descriptor reshape(struct builder *b, descriptor x, descriptor y)
{
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y}};

    operation(b, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, attributes, GHP_COUNT_OF(attributes));
    return y;
}

/* x where a query sees the key, else the hidden keys' score. */
static descriptor hide_later(struct builder *b, descriptor x)
{
    struct pointwise row = {CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, 2, x, NULL, NULL};
    struct pointwise column = {CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, 3, x, NULL, NULL};
    struct pointwise sees = {CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0, NULL, NULL, NULL};
    struct pointwise select = {CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0, x, NULL, NULL};

    if (!b->g->request.local.heads.causal) return x;
    sees.x = apply(b, row, scores(b, CUDNN_DATA_INT32));
    sees.b = apply(b, column, scores(b, CUDNN_DATA_INT32));
    select.t = apply(b, sees, scores(b, CUDNN_DATA_BOOLEAN));
    select.b = number(b, GHP_GRAPH_HIDDEN);
    return apply(b, select, scores(b, CUDNN_DATA_FLOAT));
}

/* ---- passes ---- */

static void make_forward(struct builder *b)
{
    descriptor q = activations(b, GHP_GRAPH_QUERIES, b->heads, false);
    descriptor k = activations(b, GHP_GRAPH_KEYS, b->kv_heads, true);
    descriptor v = activations(b, GHP_GRAPH_VALUES, b->kv_heads, false);
    descriptor y = activations(b, GHP_GRAPH_RESULT, b->heads, false);
    descriptor logarithms = packed(b, GHP_GRAPH_LOGARITHMS, CUDNN_DATA_FLOAT, 1);
    descriptor score = multiply(b, q, k, scores(b, CUDNN_DATA_FLOAT)), most, total, p;

    score =
        map(b, CUDNN_POINTWISE_MUL, score, number(b, GHP_GRAPH_SCALE), scores(b, CUDNN_DATA_FLOAT));
    score = hide_later(b, score);
    most = reduce(b, CUDNN_REDUCE_TENSOR_MAX, score, rows(b));
    p = map(b, CUDNN_POINTWISE_SUB, score, most, scores(b, CUDNN_DATA_FLOAT));
    p = map(b, CUDNN_POINTWISE_EXP, p, NULL, scores(b, CUDNN_DATA_FLOAT));
    total = reduce(b, CUDNN_REDUCE_TENSOR_ADD, p, rows(b));
    map(b, CUDNN_POINTWISE_ADD, most, map(b, CUDNN_POINTWISE_LOG, total, NULL, rows(b)),
        logarithms);
    p = map(b, CUDNN_POINTWISE_DIV, p, total, scores(b, CUDNN_DATA_BFLOAT16));
    multiply(b, p, v, y);
}

/* x with its rows and columns exchanged, in bf16. */
static descriptor transposed_scores(struct builder *b, descriptor x)
{
    int64_t s = b->positions;
    const struct ghp_graph_tensor tensor = {.id = b->next_id++,
                                            .type = CUDNN_DATA_BFLOAT16,
                                            .place = GHP_GRAPH_PASSING,
                                            .dims = {b->n, b->heads, s, s},
                                            .strides = {b->heads * s * s, s * s, 1, s}};

    return reshape(b, x, tensor_of(b, &tensor));
}

/* The gradient of keys or values: the scores' transposed product with x, summed over the heads that share one. */
static void make_shared(struct builder *b, descriptor of_scores, descriptor x, int64_t id)
{
    descriptor left = transposed_scores(b, of_scores), dy = activations(b, id, b->kv_heads, false);

    if (b->heads == b->kv_heads)
        multiply(b, left, x, dy);
    else
        reduce(b, CUDNN_REDUCE_TENSOR_ADD,
               multiply(b, left, x, packed(b, 0, CUDNN_DATA_BFLOAT16, b->size)), dy);
}

static void make_backward(struct builder *b)
{
    descriptor q = activations(b, GHP_GRAPH_QUERIES, b->heads, false);
    descriptor k = activations(b, GHP_GRAPH_KEYS, b->kv_heads, true);
    descriptor v = activations(b, GHP_GRAPH_VALUES, b->kv_heads, true);
    descriptor y = activations(b, GHP_GRAPH_RESULT, b->heads, false);
    descriptor dy = activations(b, GHP_GRAPH_DRESULT, b->heads, false);
    descriptor dq = activations(b, GHP_GRAPH_DQUERIES, b->heads, false);
    descriptor logarithms = packed(b, GHP_GRAPH_LOGARITHMS, CUDNN_DATA_FLOAT, 1);
    descriptor scale = number(b, GHP_GRAPH_SCALE), means, p, slope, untransposed;

    means = map(b, CUDNN_POINTWISE_MUL, dy, y, packed(b, 0, CUDNN_DATA_FLOAT, b->size));
    means =
        reduce(b, CUDNN_REDUCE_TENSOR_ADD, means, packed(b, GHP_GRAPH_MEANS, CUDNN_DATA_FLOAT, 1));

    p = multiply(b, q, k, scores(b, CUDNN_DATA_FLOAT));
    p = map(b, CUDNN_POINTWISE_MUL, p, scale, scores(b, CUDNN_DATA_FLOAT));
    p = map(b, CUDNN_POINTWISE_SUB, p, logarithms, scores(b, CUDNN_DATA_FLOAT));
    p = hide_later(b, p);
    p = map(b, CUDNN_POINTWISE_EXP, p, NULL, scores(b, CUDNN_DATA_FLOAT));
    make_shared(b, p, dy, GHP_GRAPH_DVALUES);

    slope = multiply(b, dy, v, scores(b, CUDNN_DATA_FLOAT));
    slope = map(b, CUDNN_POINTWISE_SUB, slope, means, scores(b, CUDNN_DATA_FLOAT));
    slope = map(b, CUDNN_POINTWISE_MUL, slope, p, scores(b, CUDNN_DATA_FLOAT));
    slope = map(b, CUDNN_POINTWISE_MUL, slope, scale, scores(b, CUDNN_DATA_BFLOAT16));
    make_shared(b, slope, q, GHP_GRAPH_DKEYS);

    untransposed = reshape(b, k, activations(b, 0, b->kv_heads, false));
    if (b->g->request.exact) {
        multiply(b, slope, untransposed, dq);
        return;
    }
    map(b, CUDNN_POINTWISE_IDENTITY,
        multiply(b, slope, untransposed,
                 packed(b, GHP_GRAPH_QUERIES_SUM, CUDNN_DATA_FLOAT, b->size)),
        NULL, dq);
}

enum ghp_status ghp_graph_make_attention(struct ghp_graph *g,
                                         struct ghp_graph_operations *operations)
{
    const struct ghp_local *l = &g->request.local;
    struct builder b = {.g = g,
                        .operations = operations,
                        .next_id = GHP_GRAPH_ATTENTION_IDS,
                        .n = l->n,
                        .heads = l->heads.n,
                        .kv_heads = l->heads.n_kv,
                        .positions = l->h,
                        .size = l->heads.size};

    if (g->request.pass == GHP_PASS_FORWARD)
        make_forward(&b);
    else
        make_backward(&b);
    return b.status;
}
