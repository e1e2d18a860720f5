/* executor/backend/cuda/backend_cuda_private.h - what the files of the cuda backend share: the opened backend, the
 * prepared pass.
 *
 * A pass is run by cuDNN (cuda/conv.c, cuda/attention.c), by cuBLASLt (cuda/linear.c) or by ghp's own kernels
 * (cuda/native.h, kernels/row.h, cuda/direct.c). Everything is enqueued on the compute stream. What is kept in scratch
 * begins at multiples of GHP_CUDA_ALIGN_BYTES, however the arena placed scratch itself.
 *
 * To add an operation: its kernel and its row in a *.cu (kernels/row.h); if the host prepares something or a pass
 * fuses others, the row in a table of cuda/native.h. */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_BACKEND_CUDA_PRIVATE_H
#define GHP_EXECUTOR_BACKEND_CUDA_BACKEND_CUDA_PRIVATE_H

#include "executor/backend/backend_private.h"
#include "executor/backend/cuda/choice.h"
#include "executor/backend/cuda/graph.h"
#include "executor/backend/cuda/libraries.h"
#include "executor/backend/cuda/kernels/kernels.h"
#include "executor/backend/cuda/kernels/row.h"

#include <pthread.h>

enum { GHP_CUDA_ALIGN_BYTES = 256, GHP_CUDA_CANDIDATES = 8 };

struct ghp_cuda { /* ghp_backend.library */
    int device;
    int multiprocessors;                           /* of the GPU */
    cudaStream_t streams[GHP_DEVICE_STREAM_COUNT]; /* of lanes those that are used */
    const struct ghp_cudnn *cudnn;                 /* NULL until a convolution needs it */
    cudnnHandle_t cudnn_handle;
    const struct ghp_cublaslt *cublaslt; /* NULL until a linear layer needs it */
    cublasLtHandle_t cublaslt_handle;
    struct ghp_choices choices; /* made so far */
    bool recording;
    pthread_t recorder;
};

static inline struct ghp_cuda *ghp_cuda_of(struct ghp_backend *backend)
{
    return backend->library;
}

/* Makes the backend's GPU this thread's. */
enum ghp_status ghp_cuda_enter(struct ghp_backend *backend);

/* Opens the stream of a lane, once. */
enum ghp_status ghp_cuda_open_stream(struct ghp_backend *backend, enum ghp_device_stream stream);

/* struct ghp_backend_ops: square, update, update_all (update.c) */
enum ghp_status ghp_cuda_square(struct ghp_backend *backend, const struct ghp_square_sum *sum);
enum ghp_status ghp_cuda_update_one(struct ghp_backend *backend, const struct ghp_update *update);
enum ghp_status ghp_cuda_update_all(struct ghp_backend *backend, const struct ghp_update *updates,
                                    int n);
enum ghp_status ghp_cuda_need_cudnn(struct ghp_backend *backend);
enum ghp_status ghp_cuda_need_cublaslt(struct ghp_backend *backend);

static inline struct ghp_launch ghp_cuda_launch(struct ghp_backend *backend)
{
    return (struct ghp_launch){.stream = ghp_cuda_of(backend)->streams[GHP_DEVICE_STREAM_COMPUTE],
                               .bf16 = backend->config.element_bytes == 2};
}

extern const struct ghp_device_ops ghp_cuda_device;

struct ghp_cuda_kernel {
    struct ghp_kernel base;
    char algorithm[GHP_CHOICE_NAME_BYTES];
    struct ghp_kernel_spec fused; /* what the pass fuses; of tensors' formats there is one */
    /* of a convolution or linear layer, whether `run` leaves its bias and ReLU, the ReLU's mask or the sums of its
     * output to a kernel after it */
    bool epilogue;
    enum ghp_status (*run)(struct ghp_cuda_kernel *kernel, const struct ghp_kernel_arguments *args);
    /* ghp_backend_ops.run_all; NULL: one after the other */
    enum ghp_status (*run_all)(struct ghp_cuda_kernel *kernel, struct ghp_joint_run run);
    void (*release)(struct ghp_cuda_kernel *kernel); /* of `data`; NULL: free is enough */
    void *data;                                      /* owned; the file's that made the kernel */
    const struct ghp_cuda_row *row;                  /* of a pass that is a launch alone */
    const struct ghp_cuda_row *mask; /* a ReLU's backward pass, which it takes along */
    int64_t workspace_at;            /* in scratch */
};

/* Scratch is asked for in parts. */
static inline int64_t ghp_cuda_round(int64_t bytes)
{
    return (bytes + GHP_CUDA_ALIGN_BYTES - 1) / GHP_CUDA_ALIGN_BYTES * GHP_CUDA_ALIGN_BYTES;
}

/* Bytes of scratch that hold a given number of bytes from an aligned address on, wherever the scratch begins. */
static inline int64_t ghp_cuda_scratch(int64_t bytes)
{
    return bytes > 0 ? bytes + GHP_CUDA_ALIGN_BYTES - GHP_ALIGN_BYTES : 0;
}

static inline char *ghp_cuda_aligned(void *scratch)
{
    uintptr_t at = (uintptr_t)scratch;

    return (char *)((at + GHP_CUDA_ALIGN_BYTES - 1) / GHP_CUDA_ALIGN_BYTES * GHP_CUDA_ALIGN_BYTES);
}

static inline struct ghp_chosen ghp_cuda_chosen(const struct ghp_cuda_kernel *kernel)
{
    return (struct ghp_chosen){.local = &kernel->base.local,
                               .pass = kernel->base.pass,
                               .bias = kernel->fused.bias,
                               .relu = kernel->fused.relu,
                               .sums = kernel->fused.sums};
}

/* The multiprocessors that a product is to take; 0: as many as it likes. */
static inline int32_t ghp_cuda_multiprocessors(const struct ghp_cuda_kernel *kernel)
{
    struct ghp_backend *backend = kernel->base.backend;
    int reduce = backend->config.reduce_multiprocessors;
    bool alone = reduce == 0 || kernel->base.pass == GHP_PASS_FORWARD;

    return alone ? 0 : ghp_cuda_of(backend)->multiprocessors - reduce;
}

/* Runs the pass, with what it fuses. */
enum ghp_status ghp_cuda_kernel_run(struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args);

/* Scratch of the kernels that run the epilogue. */
int64_t ghp_cuda_epilogue_scratch(const struct ghp_cuda_kernel *kernel);

/* Fills in run, release, data, algorithm and base.scratch_bytes of a kernel whose base says what is asked for.
 *
 * wanted   name of the algorithm of an earlier kernel, or NULL */
enum ghp_status ghp_cuda_conv_prepare(struct ghp_cuda_kernel *kernel, const char *wanted);
enum ghp_status ghp_cuda_linear_prepare(struct ghp_cuda_kernel *kernel, const char *wanted);
enum ghp_status ghp_cuda_attention_prepare(struct ghp_cuda_kernel *kernel, const char *wanted);
/* Whether an attention in bf16 may run by a cuDNN of this version, if that has an engine for the card. */
bool ghp_cuda_attention_suits(const struct ghp_local *local, int64_t version);
bool ghp_cuda_native_has(enum ghp_op op, enum ghp_pass pass);
enum ghp_status ghp_cuda_native_prepare(struct ghp_cuda_kernel *kernel);
/* The row of a pass that is a launch alone; NULL: it has none. */
const struct ghp_cuda_row *ghp_cuda_native_row(enum ghp_op op, enum ghp_pass pass);
/* Whether ghp's own kernels take so much along in a pass. */
bool ghp_cuda_native_takes(enum ghp_op op, enum ghp_pass pass, struct ghp_kernel_spec fused);

#define GHP_CUDA_DIRECT "direct"
/* The plain kernels, which take every convolution and linear layer; under this name. */
void ghp_cuda_direct_prepare(struct ghp_cuda_kernel *kernel);

/* How many of a library's suggestions are worth a try, by the name that was asked for. */
int ghp_cuda_candidates(const char *wanted);

/* Several ways to run a conv2d or linear kernel, best first by the library's own opinion. */
struct ghp_cuda_candidate_list {
    int n;
    int64_t workspace_bytes[GHP_CUDA_CANDIDATES];
    void (*take)(struct ghp_cuda_kernel *kernel,
                 int candidate); /* the kernel runs by it from now on */
};
/* Times each on tensors of its own, with memory for as long as that takes, and takes the winner (cuda/choice.h). If
 * there is one candidate, if results must repeat, or if memory is short, the first is taken untimed.
 *
 * Returns   GHP_OK, and the winner or -1 if all failed; GHP_ERR_BACKEND */
enum ghp_status ghp_cuda_choose(struct ghp_cuda_kernel *kernel,
                                const struct ghp_cuda_candidate_list *candidates, int *winner);

#endif
