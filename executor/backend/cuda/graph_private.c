/* executor/backend/cuda/graph_private.c - see graph_private.h: descriptors that a graph is made of. */
#include "executor/backend/cuda/graph_private.h"

enum ghp_status ghp_graph_make(struct ghp_graph *g, cudnnBackendDescriptorType_t type,
                               cudnnBackendDescriptor_t *made)
{
    GHP_ASSERT(g->n_owned < GHP_GRAPH_DESCRIPTORS);
    GHP_TRY(GHP_CUDNN(g->cudnn, cudnnBackendCreateDescriptor(type, made)));
    g->owned[g->n_owned++] = *made;
    return GHP_OK;
}

enum ghp_status ghp_cudnn_fill(const struct ghp_cudnn *cudnn, cudnnBackendDescriptor_t descriptor,
                               const struct ghp_cudnn_attribute *attributes, int n)
{
    for (int i = 0; i < n; i++) {
        const struct ghp_cudnn_attribute *a = &attributes[i];

        GHP_TRY(GHP_CUDNN(cudnn,
                          cudnnBackendSetAttribute(descriptor, a->name, a->type, a->n, a->values)));
    }
    return GHP_CUDNN(cudnn, cudnnBackendFinalize(descriptor));
}

enum ghp_status ghp_graph_make_tensor(struct ghp_graph *g, const struct ghp_graph_tensor *t,
                                      cudnnBackendDescriptor_t *made)
{
    int64_t alignment = 16;
    bool passing = t->place == GHP_GRAPH_PASSING, by_value = t->place == GHP_GRAPH_BY_VALUE;
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t->id},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->dims},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->strides},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &passing},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value}};

    GHP_TRY(ghp_graph_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, made));
    return ghp_cudnn_fill(g->cudnn, *made, attributes, GHP_COUNT_OF(attributes));
}
