/* tests/executor/locked_private.h - private to tests/executor/locked*.c: a collective as a locked device's work. */
#ifndef GHP_TESTS_EXECUTOR_LOCKED_PRIVATE_H
#define GHP_TESTS_EXECUTOR_LOCKED_PRIVATE_H

#include "tests/executor/locked.h"

struct locked_collective {
    struct ghp_comm *comm; /* that carries it */
    enum ghp_comm_op op;
    struct ghp_reduction sum;
    const void *in;
    void *out;
    int64_t bytes;
};

/* Done at once, or put on the graph that is recorded. */
enum ghp_status locked_enqueue(struct ghp_backend *backend, struct locked_collective collective);

#endif
