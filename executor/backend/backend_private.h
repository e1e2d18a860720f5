/* executor/backend/backend_private.h - what backends share: the opened backend and the prepared pass. */
#ifndef GHP_EXECUTOR_BACKEND_BACKEND_PRIVATE_H
#define GHP_EXECUTOR_BACKEND_BACKEND_PRIVATE_H

#include "executor/backend/backend.h"

struct ghp_cpu_kernel; /* executor/backend/cpu/kernels_cpu.h */

struct ghp_backend {
    struct ghp_backend_config config;
    void *library; /* the library's handles; NULL for reference */
};

struct ghp_kernel {              /* first member of a backend's own kernel, if it has one */
    struct ghp_backend *backend; /* borrowed */
    struct ghp_local local;
    enum ghp_pass pass;
    const struct ghp_cpu_kernel *cpu_kernel; /* NULL: `run`, or the library, computes */
    void (*run)(const struct ghp_kernel *kernel,
                const struct ghp_kernel_arguments *args); /* or NULL */
    struct ghp_kernel *turned; /* of conv_transpose: the convolution's pass that does it; or NULL */
    int parts;
    int64_t scratch_bytes;
    const char *algorithm; /* static, or owned by the backend's own kernel */
};

struct ghp_range; /* executor/platform/parallel.h */

/* An optimizer's update on a processor; NULL if the backend has no such numbers. Returns 0, or NaN if a weight or
 * a moment is not finite afterwards: x - x summed over them, which costs less than a comparison each. */
struct ghp_update_kernel {
    const struct ghp_optimizer *optimizer; /* NULL ends a table */
    float (*run_float)(const struct ghp_update *update, struct ghp_range at);
    double (*run_double)(const struct ghp_update *update, struct ghp_range at);
    /* In two halves: the moments and the direction's squares, then the weights, as `run` returns; or NULL. */
    void (*direct_float)(const struct ghp_update *update, const struct ghp_direction_squares *to);
    void (*direct_double)(const struct ghp_update *update, const struct ghp_direction_squares *to);
    float (*move_float)(const struct ghp_update *update, struct ghp_range at);
    double (*move_double)(const struct ghp_update *update, struct ghp_range at);
};

/* Passes on what a kernel of an update returned, from any thread. */
void ghp_update_judge(const struct ghp_update *update, double sum);

/* What an update on a processor multiplies its gradients by: what it says or, at most 1, what brings their norm down to
 * what is given. */
double ghp_update_scale(const struct ghp_update *update);

/* The row of an optimizer among these tables; NULL: there is none. */
const struct ghp_update_kernel *
ghp_update_kernel_find(const struct ghp_update_kernel *const *tables,
                       const struct ghp_optimizer *optimizer);

/* A pass of a conv_transpose is one of the convolution of its output: forward its gradient's, and back. Sets up the
 * backend's kernel of that as kernel->turned, which the backend runs with turned arguments and releases with the
 * kernel.
 *
 * Returns  GHP_OK; GHP_ERR_NO_MEMORY; what ops->prepare returns */
enum ghp_status ghp_kernel_prepare_turned(const struct ghp_backend_ops *ops,
                                          struct ghp_backend *backend,
                                          const struct ghp_local *local, enum ghp_pass pass,
                                          struct ghp_kernel **kernel);
/* Inputs for outputs, and the other way. */
struct ghp_kernel_arguments ghp_kernel_arguments_turned(const struct ghp_kernel_arguments *args);

/* The vtable entries that are the same for every backend on a processor. */
int64_t ghp_kernel_scratch_bytes(const struct ghp_kernel *kernel);
const char *ghp_kernel_algorithm(const struct ghp_kernel *kernel);

#endif
