/* executor/backend/cuda/graph_private.h - private to executor/backend/cuda/graph.c and cuda/engine.c: a graph, and
 * cuDNN's descriptors. */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_GRAPH_PRIVATE_H
#define GHP_EXECUTOR_BACKEND_CUDA_GRAPH_PRIVATE_H

#include "executor/backend/cuda/graph.h"

enum { GHP_GRAPH_DESCRIPTORS = 16 };

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

#define GHP_COUNT_OF(array) ((int)(sizeof array / sizeof((array)[0])))

/* Sets all of a descriptor's attributes, and finalizes it. */
enum ghp_status ghp_cudnn_fill(const struct ghp_cudnn *cudnn, cudnnBackendDescriptor_t descriptor,
                               const struct ghp_cudnn_attribute *attributes, int n);

#endif
