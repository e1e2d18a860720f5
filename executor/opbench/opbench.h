/* executor/opbench/opbench.h - one pass of one local operation on its own: buffers, kernel, run; what the profiler
 * times.
 *
 * In training the rest of the step passes through the caches between two runs of an operation: what the run before it
 * wrote (its input, its output's gradient) is still there, all else, weights too, is not. A bench does the same with
 * copies of its tensors, and of its scratch, that runs take in turns.
 *
 * It has no clock: who times decides when and how often. Inputs are seeded random numbers, the same on every backend;
 * passes that read what earlier passes wrote (indices, means) get it from those passes, run once at opening. Operations
 * that may overwrite their input do so, as in training.
 *
 * Call order: open -> run ... run -> close. Tests that look at tensors use executor/backend/operands.h. */
#ifndef GHP_EXECUTOR_OPBENCH_OPBENCH_H
#define GHP_EXECUTOR_OPBENCH_OPBENCH_H

#include "executor/backend/backend.h"

struct ghp_opbench;

/* Host memory that benches, one open at a time, lay their copies in: pages are new to the first one only. */
struct ghp_opbench_memory { /* zeroed: none yet */
    char *block;
    int64_t bytes;
};
void ghp_opbench_memory_release(struct ghp_opbench_memory *memory);

/* One pass of an operation, and what surrounds it. */
struct ghp_opbench_task {
    struct ghp_local local;
    enum ghp_pass pass; /* one that ghp_local_has_pass grants */
    /* memory that passes through the caches between two runs, >= 0; 0: none, all stays where it is */
    int64_t other_bytes;
    struct ghp_opbench_memory *memory; /* borrowed until close; NULL: the bench's own */
};

/* Allocates the buffers of one pass, fills them and prepares the kernel.
 *
 * ops, backend   borrowed until close
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY (the caller may continue with smaller shapes); GHP_ERR_INPUT (no such pass);
 *           GHP_ERR_BACKEND
 * Local
 * Tested    tests/executor/backend/onednn/test_onednn.c */
enum ghp_status ghp_opbench_open(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                                 const struct ghp_opbench_task *task, struct ghp_opbench **bench);

/* Continues with another algorithm of the same pass and in these formats, on the same tensors (backend.h:
 * prepare_nchw16c); without what formats.bias and relu ask for if no kernel takes it along. What lies in the tensors
 * are the same numbers at other places.
 *
 * Returns   as open; after a failure only close is left */
enum ghp_status ghp_opbench_switch(struct ghp_opbench *bench, struct ghp_backend *backend,
                                   const char *algorithm, struct ghp_kernel_spec spec);

/* Runs the pass `repeats` >= 0 times, one after the other. Local. */
enum ghp_status ghp_opbench_run(struct ghp_opbench *bench, int repeats);

/* Bytes that a bench of this pass allocates at most, in addition to the scratch of one run. */
int64_t ghp_opbench_bytes(const struct ghp_opbench_task *task, int element_bytes);
const char *ghp_opbench_algorithm(const struct ghp_opbench *bench); /* borrowed until close */
void ghp_opbench_close(struct ghp_opbench *bench);                  /* accepts NULL */

#endif
