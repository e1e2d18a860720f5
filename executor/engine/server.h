/* executor/engine/server.h - a parameter server: a rank after the workers' ranks that has one part of every bucket's
 * weights, with their moments (core/program/lower/server.c), and updates them by what the workers push.
 *
 * It waits for all workers' gradients of a bucket, adds them in the workers' order, updates its shard by the
 * optimizer's own kernel, parameter by parameter, and sends it to each worker: the bits are those of a worker that
 * updates the same elements. A worker sends a header that announces what comes: a step with its hyperparameters,
 * followed by a push of every bucket; tensors that it wants or gives; its end. The server ends when all workers have.
 *
 * Call order: open -> connect -> run -> close. In host memory.
 *
 * Tested   tests/executor/engine/test_server.c */
#ifndef GHP_EXECUTOR_ENGINE_SERVER_H
#define GHP_EXECUTOR_ENGINE_SERVER_H

#include "executor/engine/worker.h"

/* A server waits for workers as long as the watchdog allows, a worker for a server that may wait for other workers
 * longer, and for other workers, who may wait for a server, longest: times the watchdog's limit. */
#define GHP_SERVED_PATIENCE 1.5
#define GHP_WORKER_PATIENCE 2.0

enum ghp_server_header_kind {
    GHP_SERVER_STEP, /* a push of every bucket follows */
    GHP_SERVER_READ, /* the worker waits for a tensor of every bucket, when its last step is done */
    GHP_SERVER_WRITE, /* a tensor of every bucket follows */
    GHP_SERVER_END
};

struct ghp_server_header { /* from a worker to each server */
    int64_t kind;          /* enum ghp_server_header_kind */
    int64_t tensor; /* READ, WRITE: enum ghp_buffer_kind, a weight, its gradient or a moment */
    struct ghp_hyperparameters hyperparameters; /* STEP: of the update */
};

/* The tags of headers and tensors. A bucket's push and pull have the bucket's number as their tag. */
static inline int ghp_server_header_tag(const struct ghp_program *program)
{
    return program->n_buckets;
}

static inline int ghp_server_tensor_tag(const struct ghp_program *program, int bucket)
{
    return program->n_buckets + 1 + bucket;
}

/* Messages that are waited for together. */
struct ghp_server_messages {
    struct ghp_channel *channel;
    const struct ghp_control *control;
    int first_slot;    /* of as many as there are messages */
    double limit_s;    /* of the wait */
    const char *label; /* what the failure says is waited for */
};

/* Posts n messages and waits for all.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the label and the ranks that are missing */
enum ghp_status ghp_server_exchange(const struct ghp_server_messages *exchange,
                                    const struct ghp_p2p_message *messages, int n);

/* The part of a parameter (a buffer of the layout) that lies in the server's shard of a bucket, as an update without
 * addresses: skipped receives where it begins in the shard [bytes]. No elements: none does. */
struct ghp_update ghp_server_part(const struct ghp_program *program, int bucket,
                                  const struct ghp_buffer *parameter,
                                  struct ghp_hyperparameters given, int64_t *skipped);
/* An update. If weights or moments are not finite after it, a weight is NaN: workers see it in the weights that they
 * get, with the layer, and no message is needed. */
enum ghp_status ghp_server_update(const struct ghp_exec_context *exec, struct ghp_update *update,
                                  int element_bytes);

/* A server's program, and a worker's, whose buffers say where parameters lie in buckets. */
struct ghp_server_programs {
    struct ghp_program own, layout;
};

struct ghp_server;

/* Allocates its memory.
 *
 * programs   taken over, whatever is returned
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_server_open(const struct ghp_exec_context *exec,
                                struct ghp_server_programs *programs, enum ghp_fault fault,
                                struct ghp_server **result);
void ghp_server_close(struct ghp_server *server); /* accepts NULL */

/* The channel. Collective over all workers and servers, who call ghp_worker_connect. */
enum ghp_status ghp_server_connect(struct ghp_server *server);

/* Serves until all workers have ended.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the workers whose gradients are missing while others' are there */
enum ghp_status ghp_server_run(struct ghp_server *server);

const struct ghp_program *ghp_server_program(const struct ghp_server *server);
const struct ghp_arena *ghp_server_arena(const struct ghp_server *server);

#endif
