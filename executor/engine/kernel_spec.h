/* executor/engine/kernel_spec.h - how one operation's kernels may run, and the scratch that they take.
 *
 * Which of them a program gives an operation is core/program/memory_format.h's to decide. */
#ifndef GHP_EXECUTOR_ENGINE_KERNEL_SPEC_H
#define GHP_EXECUTOR_ENGINE_KERNEL_SPEC_H

#include "core/cost/profile.h"
#include "executor/opbench/opbench.h"

/* Whether the weights of an operation lie blocked, in steps and between them. */
bool ghp_backend_blocks_weights(const struct ghp_backend_ops *ops,
                                const struct ghp_backend *backend, const struct ghp_local *local);

/* The algorithm that an entry of a profile names for an operation in these formats; NULL (or no entry): none. */
const char *ghp_kernel_spec_algorithm(const struct ghp_op_entry *entry,
                                      struct ghp_kernel_spec spec);

/* The formats in which an operation may run, blocks wherever there can be any. */
struct ghp_kernel_spec ghp_kernel_spec_likely(const struct ghp_backend_ops *ops,
                                              const struct ghp_backend *backend,
                                              const struct ghp_local *local);

/* Whether the backend's convolutions make the sums of a batch norm's input. */
bool ghp_backend_sums(const struct ghp_backend_ops *ops, const struct ghp_backend *backend);

/* The same formats with what is fused; with sums only if the backend makes them. */
struct ghp_kernel_spec ghp_kernel_spec_with(struct ghp_kernel_spec spec, struct ghp_epilogue fused,
                                            bool sums);

/* Whether the backend may have a kernel that fuses a pass with others (core/program/fuse.h). */
bool ghp_backend_fuses(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                       enum ghp_op op, enum ghp_pass pass);

/* Which formats a program gives an operation is known only after its memory is laid out, so an operation's scratch is
 * the most that any of them takes: the i-th of GHP_KERNEL_SPEC_MAX, none with more blocks than `likely`; the second
 * half with a ReLU and (forward) a bias, for passes that take them along. One more makes sums. */
enum { GHP_KERNEL_SPEC_MAX = 8 };
struct ghp_kernel_spec ghp_kernel_spec_variant(struct ghp_kernel_spec likely, enum ghp_pass pass,
                                               int i);
/* How many of them a backend may have of a pass. */
int ghp_kernel_spec_variants(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                             enum ghp_op op, enum ghp_pass pass);

/* That scratch, for the pass by the algorithms that an entry names (NULL: the likeliest).
 *
 * Returns   GHP_OK; failures of preparing kernels
 * Local */
enum ghp_status ghp_kernel_spec_scratch(const struct ghp_backend_ops *ops,
                                        struct ghp_backend *backend,
                                        const struct ghp_opbench_task *task,
                                        const struct ghp_op_entry *entry, int64_t *bytes);

#endif
