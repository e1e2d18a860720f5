/* executor/backend/cuda/kernels/row.h - passes that are only a launch, as rows next to their kernels. So one *.cu has
 * all that an operation needs on a GPU.
 *
 * A table in a *.cu is found by the build (cmake/GhpTables.cmake). Passes for which the host has something to
 * prepare, or that fuse others, have rows in C (cuda/native.h). */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_ROW_H
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_ROW_H

#include "executor/backend/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "executor/backend/backend.h"

struct ghp_cuda_row {
    enum ghp_op op;
    enum ghp_pass pass;
    /* Enqueues it. NULL ends a table. */
    cudaError_t (*launch)(struct ghp_launch launch, const struct ghp_local *local,
                          const struct ghp_kernel_arguments *args);
    int64_t (*scratch_bytes)(const struct ghp_local *local); /* NULL: none */
};

/* The rows of all files in this folder, NULL-terminated. */
extern const struct ghp_cuda_row *const ghp_cuda_row_tables[];

#ifdef __cplusplus
}
#endif

#endif
