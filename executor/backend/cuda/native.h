/* executor/backend/cuda/native.h - private to executor/backend/cuda/backend_cuda*.c: the passes that ghp's own
 * kernels run, everything but convolutions and linear layers.
 *
 * A row of a table says which kernel runs a pass and how much scratch it takes; what has to be made once lies in the
 * kernel's `data`. Passes that are only a launch have their rows next to the kernel (kernels/row.h). */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_NATIVE_H
#define GHP_EXECUTOR_BACKEND_CUDA_NATIVE_H

#include "executor/backend/cuda/backend_cuda_private.h"

struct ghp_cuda_native {
    enum ghp_op op;
    enum ghp_pass pass;
    /* NULL ends a table */
    enum ghp_status (*run)(struct ghp_cuda_kernel *kernel, const struct ghp_kernel_arguments *args);
    int64_t (*scratch_bytes)(const struct ghp_local *local); /* NULL: none */
    enum ghp_status (*make)(struct ghp_cuda_kernel *kernel); /* once; or NULL */
};

/* The rows of all files in this folder, NULL-terminated; the build writes it (cmake/GhpTables.cmake). */
extern const struct ghp_cuda_native *const ghp_cuda_native_tables[];

static inline int64_t ghp_cuda_native_rows(const struct ghp_local *l)
{
    return l->n * l->h * l->w;
}

static inline cudaStream_t ghp_cuda_native_stream(const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_launch(kernel->base.backend).stream;
}

static inline enum ghp_status ghp_cuda_native_status(cudaError_t error,
                                                     const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_status(error, ghp_op_name(kernel->base.local.op));
}

/* Copies in device memory, after the work that is enqueued. */
enum ghp_status ghp_cuda_native_copy(const struct ghp_cuda_kernel *kernel, const void *from,
                                     void *to, int64_t elements);

/* Sums over rows: job says of what and where to. */
enum ghp_status ghp_cuda_native_sum(const struct ghp_cuda_kernel *kernel, struct ghp_sum_job job,
                                    const struct ghp_kernel_arguments *args);
int64_t ghp_cuda_native_sum_scratch(const struct ghp_local *local);

#endif
