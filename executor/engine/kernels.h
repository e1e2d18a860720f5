/* executor/engine/kernels.h - the prepared kernels of a program: one per distinct (local operation, pass, formats),
 * shared by all layers that need it, by the algorithms that the profile names.
 *
 * It is also the lowering's source of scratch bytes, so that a buffer is as large as the very kernel that uses it asks
 * for, in whatever formats (core/program/memory_format.h); with a profile it insists that the profile says the same.
 * Preparing needs no tensors and no arena. */
#ifndef GHP_EXECUTOR_ENGINE_KERNELS_H
#define GHP_EXECUTOR_ENGINE_KERNELS_H

#include "core/program/program.h"
#include "core/cost/profile.h"
#include "executor/backend/backend.h"

struct ghp_kernels {
    const struct ghp_backend_ops *ops; /* borrowed */
    struct ghp_backend *backend;       /* borrowed */
    const struct ghp_profile *profile; /* borrowed; NULL: the backend's word is enough */
    int n, max;
    struct ghp_kernel_entry *entries; /* owned */
};

/* A program with the kernels that it was lowered for. */
struct ghp_executable {
    struct ghp_kernels kernels;
    struct ghp_program program;
};

void ghp_kernels_init(struct ghp_kernels *kernels, const struct ghp_backend_ops *ops,
                      struct ghp_backend *backend, const struct ghp_profile *profile);
void ghp_kernels_release(struct ghp_kernels *kernels); /* accepts a zeroed one */

/* The kernel of a pass in these formats, prepared on first use; owned by `kernels`. NULL if there is none that
 * fuses. */
enum ghp_status ghp_kernels_find(struct ghp_kernels *kernels, const struct ghp_local *local,
                                 enum ghp_pass pass, struct ghp_kernel_spec spec,
                                 struct ghp_kernel **kernel);

/* The source of scratch bytes for a lowering: what the backend asks for, or what was profiled if that is more. Borrows
 * `kernels`. */
struct ghp_scratch_source ghp_kernels_scratch(struct ghp_kernels *kernels);

/* The source of formats for a lowering: what the backend can do with blocked tensors. Borrows `kernels`. */
struct ghp_format_source ghp_kernels_formats(struct ghp_kernels *kernels);

/* The formats of a COMPUTE's tensors in its program. */
struct ghp_kernel_spec ghp_kernels_spec(const struct ghp_kernels *kernels,
                                        const struct ghp_program *program,
                                        const struct ghp_instr *instr);

#endif
