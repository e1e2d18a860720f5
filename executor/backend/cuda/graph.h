/* executor/backend/cuda/graph.h - a pass of a convolution, with what it fuses, or of an attention as a graph of
 * cuDNN's operations, and the engines that can run it.
 *
 * Tensors are described by sizes and strides alone: activations N,H,W,C in memory, weights K,R,S,C. An *engine
 * configuration* is one of cuDNN's implementations with its knobs; its text ("eng62 2=4,13=0") says which, so that a
 * later run can ask for the same one.
 *
 * Everything but running needs no GPU: a graph can be made for a handle (a GPU that is there) or for properties of one
 * that is not.
 *
 * Tested tests/executor/backend/cuda/test_cuda_graph.c, for an H100 and an A100 that are not there */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_GRAPH_H
#define GHP_EXECUTOR_BACKEND_CUDA_GRAPH_H

#include "core/sharding/local.h"
#include "executor/backend/cuda/libraries.h"

enum { /* tensors of a convolution's graph */
       GHP_GRAPH_X = 1,
       GHP_GRAPH_W,
       GHP_GRAPH_Y,
       GHP_GRAPH_BIAS,
       GHP_GRAPH_PRODUCT, /* before the bias; and before the ReLU: in no memory */
       GHP_GRAPH_SUM,
       GHP_GRAPH_MASK, /* the output of the ReLU that made x */
       GHP_GRAPH_SUMS, /* float, of y's channels; and of their squares */
       GHP_GRAPH_SQUARES
};

enum { /* tensors of an attention's graph: activations are [n][position][head][channel] */
       GHP_GRAPH_QUERIES = 1,
       GHP_GRAPH_KEYS,
       GHP_GRAPH_VALUES,
       GHP_GRAPH_RESULT,
       GHP_GRAPH_LOGARITHMS, /* float [n][head][position]: of the sums of exponentials */
       GHP_GRAPH_SCALE,      /* one float in the host's memory, as is the next */
       GHP_GRAPH_HIDDEN,     /* the score of a key that a query does not see; if causal */
       /* of the backward pass */
       GHP_GRAPH_DRESULT,
       GHP_GRAPH_DQUERIES,
       GHP_GRAPH_DKEYS,
       GHP_GRAPH_DVALUES,
       GHP_GRAPH_MEANS,        /* float [n][head][position]: scratch */
       GHP_GRAPH_QUERIES_SUM,  /* float [n][head][position][channel]: scratch; unless exact */
       GHP_GRAPH_ATTENTION_IDS /* the first of the tensors that are in no memory */
};

struct ghp_graph_target {                /* one of both */
    cudnnHandle_t handle;                /* the GPU that is there; or NULL */
    cudnnBackendDescriptor_t properties; /* of one that is not */
};

struct ghp_graph_request {
    struct ghp_local local; /* conv2d; or attention, in bf16 */
    /* FORWARD: x, w -> y; BACKWARD_DATA: w, dy -> dx; BACKWARD_WEIGHT: x, dy -> dw */
    enum ghp_pass pass;
    bool bf16; /* all tensors but the bias and the sums; else float */
    /* FORWARD: y = relu(conv(x, w) + bias), as far as asked for; BACKWARD_DATA, relu: dx is 0 where mask is not above
     * 0 */
    bool bias, relu;
    bool sums;               /* FORWARD, without these: also the sums of y */
    bool exact;              /* BACKWARD_DATA of attention: the sums of dqueries have one order */
    int32_t multiprocessors; /* that an engine is to take, if it can be told; 0: all */
};

struct ghp_graph;

/* Describes the operations.
 *
 * cudnn, target   borrowed until close
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND if cuDNN refuses them; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_graph_open(const struct ghp_cudnn *cudnn, struct ghp_graph_target target,
                               const struct ghp_graph_request *request, struct ghp_graph **graph);
void ghp_graph_close(struct ghp_graph *graph); /* accepts NULL */

/* What an implementation may do. */
struct ghp_graph_rules {
    bool tensor_cores; /* of floats: round products (tf32); bfloat16 always may */
    bool repeatable;   /* the same bits every time, and no transforms (Winograd, FFT) */
    int64_t most_workspace_bytes;
};

enum { GHP_GRAPH_NAME_BYTES = 112, GHP_GRAPH_CANDIDATES = 8 };

struct ghp_graph_plan { /* an engine configuration, ready to run */
    cudnnBackendDescriptor_t plan;
    int64_t workspace_bytes;
    char name[GHP_GRAPH_NAME_BYTES];
};

struct ghp_graph_plans {
    int n;
    struct ghp_graph_plan items[GHP_GRAPH_CANDIDATES];
};

/* The first configurations of cuDNN's heuristics that follow the rules and are supported, best first.
 *
 * most    1 .. GHP_GRAPH_CANDIDATES
 * plans   released by the caller; n is 0 if none is left
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_graph_list(const struct ghp_graph *graph, const struct ghp_graph_rules *rules,
                               int most, struct ghp_graph_plans *plans);

/* The configuration of this name.
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND (not a name, or not available here) */
enum ghp_status ghp_graph_find(const struct ghp_graph *graph, const char *name,
                               struct ghp_graph_plan *plan);
void ghp_graph_plan_release(const struct ghp_cudnn *cudnn, struct ghp_graph_plan *plan);

enum { GHP_GRAPH_TENSORS = 13 };

/* The addresses of a run's tensors, by their ids. */
struct ghp_graph_tensors {
    int n;
    int64_t ids[GHP_GRAPH_TENSORS];
    const void *at[GHP_GRAPH_TENSORS];
    void *workspace;
};

static inline void ghp_graph_bind(struct ghp_graph_tensors *tensors, int64_t id, const void *at)
{
    tensors->ids[tensors->n] = id;
    tensors->at[tensors->n++] = at;
}

/* Enqueues the plan on the handle's stream. */
enum ghp_status ghp_graph_run(const struct ghp_graph *graph, const struct ghp_graph_plan *plan,
                              const struct ghp_graph_tensors *tensors);

/* Engine and knobs between text and numbers; pure text. */
struct ghp_engine {
    int64_t id;
    int n_knobs;
    int64_t types[32], values[32];
};
/* False if the text takes more than n bytes. */
bool ghp_engine_text(const struct ghp_engine *engine, char *text, size_t n);
bool ghp_engine_parse(const char *text, struct ghp_engine *engine);

/* Properties of a GPU that need not be there, from their JSON text as cuDNN writes it. */
enum ghp_status ghp_graph_properties(const struct ghp_cudnn *cudnn, const char *json,
                                     cudnnBackendDescriptor_t *properties);

#endif
