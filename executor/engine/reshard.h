/* executor/engine/reshard.h - runs one layout change: packs, sends, adds, unpacks, as the step's kind says.
 *
 * The kinds and their order are core/sharding/split.h's table; here each kind is one function. Operands come resolved
 * to addresses, so an exchange knows neither program nor arena. */
#ifndef GHP_EXECUTOR_ENGINE_RESHARD_H
#define GHP_EXECUTOR_ENGINE_RESHARD_H

#include "core/program/program.h"
#include "executor/backend/device.h"
#include "executor/transport/transport.h"

struct ghp_reshard_job {
    const struct ghp_instr *instr; /* RESHARD */
    struct ghp_problem problem;
    int rank;
    int element_bytes;
    struct ghp_comm *comm; /* of instr->ranks; NULL if the step sends nothing */
    const void *x; /* [n][h][w][c] in layout step.from; if blocked.x in blocks of channels */
    void *y;       /* in layout step.to; blocked.y */
    /* both alike if the step does not pack, neither if it has to do with positions; host memory alone */
    struct ghp_nchw16c nchw16c;
    /* packed copy of the whole tensor, if the step packs: split it lies as y, to be joined as x */
    void *scratch;
    void *receive; /* segment of a reduction */
    int64_t receive_bytes;
    struct ghp_device device; /* where all of them lie; zeroed: host memory */
};

/* Runs the step (on a device: enqueues it in the compute stream, as far as the transport does).
 *
 * Returns   GHP_OK; GHP_ERR_COMM; GHP_ERR_BACKEND
 * Collective over instr->ranks
 * Tested    tests/executor/engine/test_reshard.c */
enum ghp_status ghp_reshard_run(const struct ghp_reshard_job *reshard);

#endif
