/* executor/backend/cuda/graph_private.h - private to executor/backend/cuda/graph.c, attention_graph.c and
 * engine.c: a graph, and cuDNN's descriptors. */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_GRAPH_PRIVATE_H
#define GHP_EXECUTOR_BACKEND_CUDA_GRAPH_PRIVATE_H

#include "executor/backend/cuda/graph.h"

enum { GHP_GRAPH_DESCRIPTORS = 112, GHP_GRAPH_OPERATIONS = 32 };

struct ghp_graph {
    const struct ghp_cudnn *cudnn;
    struct ghp_graph_target target;
    struct ghp_graph_request request;
    cudnnBackendDescriptor_t graph; /* the last of owned */
    int n_owned;
    cudnnBackendDescriptor_t owned[GHP_GRAPH_DESCRIPTORS];
};

struct ghp_cudnn_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n;
    const void *values;
};

struct ghp_graph_operations {
    int n;
    cudnnBackendDescriptor_t items[GHP_GRAPH_OPERATIONS];
};

enum ghp_graph_place {
    GHP_GRAPH_IN_MEMORY,
    GHP_GRAPH_PASSING, /* from one operation to another, in no memory */
    GHP_GRAPH_BY_VALUE /* one number in the host's memory */
};

struct ghp_graph_tensor {
    int64_t id;
    cudnnDataType_t type;
    enum ghp_graph_place place;
    int64_t dims[4], strides[4];
};

/* Makes a descriptor that the graph owns. */
enum ghp_status ghp_graph_make(struct ghp_graph *g, cudnnBackendDescriptorType_t type,
                               cudnnBackendDescriptor_t *made);
enum ghp_status ghp_graph_make_tensor(struct ghp_graph *g, const struct ghp_graph_tensor *tensor,
                                      cudnnBackendDescriptor_t *made);

/* Makes the operations of an attention's pass (attention_graph.c). */
enum ghp_status ghp_graph_make_attention(struct ghp_graph *g,
                                         struct ghp_graph_operations *operations);

#define GHP_COUNT_OF(array) ((int)(sizeof array / sizeof((array)[0])))

/* Sets all of a descriptor's attributes, and finalizes it. */
enum ghp_status ghp_cudnn_fill(const struct ghp_cudnn *cudnn, cudnnBackendDescriptor_t descriptor,
                               const struct ghp_cudnn_attribute *attributes, int n);

#endif
