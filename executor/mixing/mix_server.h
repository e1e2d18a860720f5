/* executor/mixing/mix_server.h - a server with whose weights workers mix theirs (core/program/sync/mixing.c): a rank
 * after the workers' ranks that has one part of all weights, X, and serves each worker when it comes.
 *
 *     asp      g of worker i:  v_i, X by the optimizer at 1 / N of the rate; X goes back
 *     ssp      the same; X goes back when it is asked for, and by the clock when the slowest worker is near enough
 *     easgd    x of worker i:  e = alpha (x - X);  X += e;  x - e goes back, alpha = 0.9 / N
 *     aladdin  step s of worker i:  G += s, c_i += 1;  at c_i = PI:  X -= G / N, G = 0, c_i = 0; X goes back with
 *              alpha = 1 - 1 / sqrt(N PI). `printed`: the step that triggers is counted but not added, the divisor is
 *              c, the messages since the last update, and so is what stands for N PI
 *
 * A worker says in a header what comes: gradients, weights or a step of its own, and whether it waits for X; tensors
 * between steps; its end. The server ends when all workers have. In host memory.
 *
 * Call order: open -> connect -> run -> close.
 *
 * Source   docs/reference/synchronisers.md
 * Tested   tests/executor/mixing/test_mix_served.c */
#ifndef GHP_EXECUTOR_MIXING_MIX_SERVER_H
#define GHP_EXECUTOR_MIXING_MIX_SERVER_H

#include "executor/engine/server.h"

enum ghp_mix_header_kind {
    GHP_MIX_PUSH,   /* gradients, weights or a step follow */
    GHP_MIX_READ,   /* it waits for a tensor, between steps: of X with all that has come */
    GHP_MIX_WRITE,  /* a tensor follows, between steps; weights count until anyone has pushed */
    GHP_MIX_SETTLE, /* between steps: it waits until all that it sent is taken in */
    GHP_MIX_END
};

struct ghp_mix_header { /* from a worker to each server */
    int64_t kind;       /* enum ghp_mix_header_kind */
    int64_t tensor;     /* READ, WRITE: enum ghp_buffer_kind, a weight or a moment */
    int64_t pulls;      /* PUSH: not 0: the worker waits for X */
    struct ghp_hyperparameters hyperparameters; /* PUSH: of the update */
};

struct ghp_mix_answer { /* next to X */
    double alpha;       /* aladdin: what of X the worker's weights become */
    int64_t slowest;    /* ssp: steps of the slowest worker */
};

/* Tags of the messages between a worker and a server, and between workers. */
enum ghp_mix_tag {
    GHP_MIX_TAG_WORD,
    GHP_MIX_TAG_PUSH,
    GHP_MIX_TAG_X,
    GHP_MIX_TAG_ANSWER,
    GHP_MIX_TAG_TENSOR,
    GHP_MIX_TAG_SUM_WEIGHT, /* between workers: by how much X counts */
    GHP_MIX_TAG_PEERS,      /* executor/train/others.h */
    GHP_MIX_TAGS
};

struct ghp_mix_server;

struct ghp_mix_server_count {
    int64_t received, versions; /* messages; updates of X */
    double stale;               /* sum over the messages of the updates since their worker had X */
    int64_t most_gap;           /* steps that a worker was ever ahead of the slowest */
    int64_t triggered, left; /* aladdin: messages counted at triggers; those since the last one */
    int64_t most_count;      /* aladdin: the largest c_i that was left standing */
};

/* Allocates its memory.
 *
 * programs   taken over, whatever is returned
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_mix_server_open(const struct ghp_exec_context *exec,
                                    struct ghp_server_programs *programs, enum ghp_fault fault,
                                    struct ghp_mix_server **result);
void ghp_mix_server_close(struct ghp_mix_server *server); /* accepts NULL */

/* The channel. Collective over all workers and servers, who call ghp_worker_connect. */
enum ghp_status ghp_mix_server_connect(struct ghp_mix_server *server);

/* Serves until all workers have ended.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the workers that others wait for, by the clock */
enum ghp_status ghp_mix_server_run(struct ghp_mix_server *server);

const struct ghp_program *ghp_mix_server_program(const struct ghp_mix_server *server);
const struct ghp_arena *ghp_mix_server_arena(const struct ghp_mix_server *server);
struct ghp_mix_server_count ghp_mix_server_counted(const struct ghp_mix_server *server);

#endif
