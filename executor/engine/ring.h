/* executor/engine/ring.h - runs an attention whose keys and values come in blocks: computes one and adds it up, and
 * passes blocks on, as core/program/ring.h says. In host memory. */
#ifndef GHP_EXECUTOR_ENGINE_RING_H
#define GHP_EXECUTOR_ENGINE_RING_H

#include "executor/backend/backend.h"
#include "executor/transport/collectives.h"

struct ghp_ring_job {
    const struct ghp_instr *instr;
    int member;  /* of the ring: whose block number 0 is */
    bool causal; /* the layer */
    int element_bytes;
    void *ring; /* the operand */

    /* ---- of a COMPUTE ---- */
    const struct ghp_backend_ops *ops;
    struct ghp_backend *backend;
    struct ghp_kernel *kernel;

    /* ---- of a SHIFT ---- */
    struct ghp_comm *comm;
};

/* Whether the split can be run there. Returns GHP_ERR_INPUT naming what can. */
enum ghp_status ghp_ring_check(struct ghp_device device, const char *layer, int blocks);

/* One block.
 *
 * args   of the whole layer: its own keys and values, its outputs
 *
 * Returns   what the kernel does */
enum ghp_status ghp_ring_compute(const struct ghp_ring_job *job,
                                 const struct ghp_kernel_arguments *args);
/* The way of a block to the next worker.
 *
 * Returns   what the collective does
 * Collective over the ring */
enum ghp_status ghp_ring_shift(const struct ghp_ring_job *job, const struct ghp_tensors *at);

#endif
