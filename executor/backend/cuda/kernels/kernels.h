/* executor/backend/cuda/kernels/kernels.h - ghp's own kernels on GPUs: what cuDNN and cuBLASLt lack, and what is
 * bound by memory anyway.
 *
 * Each function enqueues its kernels on a stream and returns at once; nothing is allocated. Tensors are N,H,W,C in
 * float or bfloat16 (`launch.bf16`); weights, gradients of weights, statistics and sums are float or double as said.
 * Sums that cross blocks go through scratch and are added in a fixed order: the same bits every time.
 *
 * They are in kernels/elementwise.cu (sums, bias, dropout), kernels/update.cu (optimizers), kernels/norm.cu (sums
 * over channels, batch norm, lrn), kernels/pool.cu, kernels/move.cu (copies in another order) and kernels/conv.cu
 * (plain convolutions and linear layers, for shapes that no library takes). A pass that is only a launch is not
 * declared here: its row is next to its kernel (kernels/row.h). C11 and C++17 alike; tested by
 * tests/executor/backend/cuda/test_cuda_ops.c. */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_KERNELS_H
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_KERNELS_H

#include "core/optimizer/optimizer.h"
#include "executor/backend/cuda/kernels/runtime.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ghp_launch {
    cudaStream_t stream;
    bool bf16;     /* of activations and their gradients */
    bool adds;     /* a gradient dx is added to what is there; of those passes that say so */
    bool gradient; /* a loss's forward pass writes its gradient to y */
};

/* ---- element by element; out may be an input ---- */

enum ghp_elementwise { GHP_ELEMENTWISE_ADD, GHP_ELEMENTWISE_MUL, GHP_ELEMENTWISE_ADD_RELU };

struct ghp_elementwise_job {
    enum ghp_elementwise what;
    int64_t n;
    const void *a, *b;
    void *out;
};
cudaError_t ghp_launch_elementwise(struct ghp_launch launch, const struct ghp_elementwise_job *job);

/* to += from. */
cudaError_t ghp_launch_add_doubles(cudaStream_t stream, int64_t n, const double *from, double *to);

/* to += from; where y is not above 0: to = 0. */
cudaError_t ghp_launch_masked_sum(struct ghp_launch launch, int64_t n, void *to, const void *from,
                                  const void *y);

/* y[rows][c] = x + b; then a ReLU, if asked for. */
struct ghp_bias_job {
    int64_t rows, c;
    const void *x;
    const float *b; /* [c]; NULL: none */
    bool relu;
    void *y;
};
cudaError_t ghp_launch_bias(struct ghp_launch launch, const struct ghp_bias_job *job);

struct ghp_dropout_job {
    int64_t n, pixels, c, global_channels, first_channel, first_pixel, first_sample;
    uint64_t seed, step;
    uint32_t layer, threshold;
    int samples;  /* a sample's elements are all as its first */
    int channels; /* a channel's pixels are all as its first */
    float scale;
    const uint64_t *step_at; /* in device memory, in place of `step`; or NULL */
    const void *x;
    void *y;
};
cudaError_t ghp_launch_dropout(struct ghp_launch launch, const struct ghp_dropout_job *job);

/* Between float and bfloat16. */
cudaError_t ghp_launch_to_bf16(cudaStream_t stream, int64_t n, const float *from, void *to);
/* The same for two tensors in one launch. */
struct ghp_cast {
    int64_t n;
    const float *from;
    void *to;
};
cudaError_t ghp_launch_two_to_bf16(cudaStream_t stream, struct ghp_cast large,
                                   struct ghp_cast small);
cudaError_t ghp_launch_from_bf16(cudaStream_t stream, int64_t n, const void *from, float *to);

/* An optimizer's update of many tensors at once. */
struct ghp_update_tensor {
    float *w, *moment[GHP_MAX_MOMENTS]; /* as many as the optimizer has */
    const float *dw;
    void *w_bf16; /* gets w in bfloat16; NULL: nothing does */
    int64_t n;
    int decays;        /* 0: without weight decay */
    double rate_scale; /* times the learning rate */
    int layer;
};
/* given_at in device memory, in place of `given`; or NULL. squares there too: the sum of the squares of all gradients,
 * which are scaled down to clip_norm; or NULL. */
struct ghp_update_numbers {
    struct ghp_hyperparameters given;
    const struct ghp_hyperparameters *given_at;
    const double *squares;
    /* There too: told of what is not finite any more; step_at: whose gradients these are. All NULL: nobody asks. */
    double *poison;
    uint64_t *first;
    const uint64_t *step_at;
};
typedef cudaError_t ghp_launch_update_fn(cudaStream_t stream,
                                         const struct ghp_update_tensor *tensors, int n,
                                         const struct ghp_update_numbers *numbers);
#define GHP_LAUNCH_UPDATE(name) extern ghp_launch_update_fn ghp_launch_update_##name;
GHP_OPTIMIZER_LIST(GHP_LAUNCH_UPDATE)
#undef GHP_LAUNCH_UPDATE

/* *sum = squares of all numbers of n tensors; parts: n_parts doubles of scratch. */
struct ghp_square_tensor {
    const float *x;
    int64_t n;
};
struct ghp_square_parts {
    double *at;
    int n;
};
cudaError_t ghp_launch_square(cudaStream_t stream, const struct ghp_square_tensor *tensors, int n,
                              struct ghp_square_parts parts, double *sum);

/* ---- sums over channels: [rows][c] -> [c] ---- */

enum ghp_sum {
    GHP_SUM_BIAS,       /* sum of dy -> float out [c] */
    GHP_SUM_STATS,      /* sums of d = x - shift and d d -> double out [2 c] */
    GHP_SUM_BACK_STATS, /* sums of dy and dy xhat -> double out [2 c] */
    GHP_SUM_BACK_MASKED, /* the same for the part of dy that a ReLU after the batch norm lets through */
    GHP_SUM_SQUARES,     /* sums of x and x x -> float out [2 c] */
    GHP_SUM_COUNT
};

struct ghp_sum_job {
    enum ghp_sum what;
    int64_t rows, c;
    const void *x, *dy;
    const float *shift;          /* STATS: running mean */
    const float *mean, *inverse; /* BACK_STATS, BACK_MASKED */
    const float *gamma, *beta;   /* BACK_MASKED */
    const float *sums;           /* ghp_launch_given_stats: what GHP_SUM_SQUARES makes of x */
    void *out;
    void *scratch; /* ghp_sum_scratch bytes */
};
int64_t ghp_sum_scratch(int64_t rows, int64_t c);
cudaError_t ghp_launch_sum(struct ghp_launch launch, const struct ghp_sum_job *job);
/* What GHP_SUM_STATS makes, of job->sums: x is read only if they are not exact enough. No scratch. */
cudaError_t ghp_launch_given_stats(struct ghp_launch launch, const struct ghp_sum_job *job);

/* ---- normalisations ---- */

struct ghp_batch_norm_job {
    int64_t rows, c;
    const void *x, *dy;
    void *y, *dx;
    const float *gamma, *beta;
    float *running_mean, *running_variance; /* forward */
    float *stats_delta_mean,
        *stats_delta_variance; /* moved in their place; NULL: they move themselves */
    double stats_delta_share;
    bool stats_delta_adds; /* to what is there */
    const double *stats;   /* [2 c], reduced; NULL: running statistics */
    const float *sums;     /* forward: [2 c], in place of stats; may be saved; NULL: none */
    float *saved;          /* [2 c]: mean, inverse deviation */
    double count, mix, epsilon;
    float *scratch;    /* backward: [3 c] */
    const void *other; /* forward: added, as stored, before the ReLU; NULL: nothing */
    bool linear;       /* forward on running statistics: y = x scale alone */
    /* forward: applied; backward: it follows the batch norm, and dy is the gradient of its output */
    bool relu;
};
cudaError_t ghp_launch_norm_forward(struct ghp_launch launch, const struct ghp_batch_norm_job *job);
/* The first of its two kernels, if job->sums has the sums of x. */
cudaError_t ghp_launch_given_norm(struct ghp_launch launch, const struct ghp_batch_norm_job *job);
cudaError_t ghp_launch_norm_data(struct ghp_launch launch, const struct ghp_batch_norm_job *job);
/* stats NULL: zeros */
cudaError_t ghp_launch_norm_weight(cudaStream_t stream, int64_t c, const double *stats,
                                   float *dgamma, float *dbeta);

struct ghp_lrn_job {
    int64_t rows, c, size;
    float alpha, beta, k; /* alpha already over size */
    const void *x, *dy;
    void *y, *dx;
    float *scale; /* [rows][c]; forward may be NULL */
};
cudaError_t ghp_launch_lrn(struct ghp_launch launch, const struct ghp_lrn_job *job);
cudaError_t ghp_launch_lrn_back(struct ghp_launch launch, const struct ghp_lrn_job *job);

/* ---- pools ---- */

struct ghp_pool_job {
    int64_t n, c, h, w, p, q;
    int64_t r, s, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    bool count_pad;
    const void *x, *dy;
    void *y, *dx;
    /* max: [n][p][q][c] bytes, or int32 if the window has more than 255 places; forward may be NULL */
    void *argmax;
    /* max, forward: windows with nothing above 0 have no place, as for the gradient of a ReLU before the pool */
    bool masked;
};
cudaError_t ghp_launch_max_pool(struct ghp_launch launch, const struct ghp_pool_job *job);
cudaError_t ghp_launch_max_pool_back(struct ghp_launch launch, const struct ghp_pool_job *job);
cudaError_t ghp_launch_avg_pool(struct ghp_launch launch, const struct ghp_pool_job *job);
cudaError_t ghp_launch_avg_pool_back(struct ghp_launch launch, const struct ghp_pool_job *job);

/* ---- copies in another order ---- */

/* rows blocks of `bytes` each, from one stride to another [bytes]. */
struct ghp_block_copy {
    int64_t rows, bytes, from_stride, to_stride;
    const void *from;
    void *to;
};
cudaError_t ghp_launch_blocks(cudaStream_t stream, const struct ghp_block_copy *blocks);

/* to[n][b][a] = from[n][a][b], elements of 2 or 4 bytes. */
cudaError_t ghp_launch_transpose(cudaStream_t stream, int element_bytes, int64_t n, int64_t a,
                                 int64_t b, const void *from, void *to);

/* y[n][out] = x[n][table[out]], `nothing` if the table is negative. */
cudaError_t ghp_launch_gather(struct ghp_launch launch, int64_t n, int64_t in, int64_t out,
                              const int32_t *table, float nothing, const void *x, void *y);
/* dx[n][i] = sum of dy[n][list[j]], starts[i] <= j < starts[i + 1]. */
cudaError_t ghp_launch_scatter_add(struct ghp_launch launch, int64_t n, int64_t in, int64_t out,
                                   const int32_t *starts, const int32_t *list, const void *dy,
                                   void *dx);

/* ---- plain convolutions: weights float [k][r][s][c / groups], for shapes that no library takes ---- */

struct ghp_direct_job {
    int64_t n, c, h, w, k, p, q, groups;
    int64_t r, s, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    const void *x, *dy; /* as the pass reads */
    void *y, *dx;
    bool adds; /* to dx */
    const float *weights;
    const void *weights_bf16; /* read in their place; NULL: not there */
    float *dweights;
};
cudaError_t ghp_launch_direct_forward(struct ghp_launch launch, const struct ghp_direct_job *job);
cudaError_t ghp_launch_direct_data(struct ghp_launch launch, const struct ghp_direct_job *job);
cudaError_t ghp_launch_direct_weight(struct ghp_launch launch, const struct ghp_direct_job *job);

/* Does nothing for about so long. */
cudaError_t ghp_launch_delay(cudaStream_t stream, double seconds);

/* The dropout's random numbers, on the host: tested against executor/platform/random.h. */
void ghp_kernel_philox(uint64_t seed, const uint32_t counter[4], uint32_t out[4]);

#ifdef __cplusplus
}
#endif

#endif
