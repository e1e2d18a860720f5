/* executor/state/broadcast.h - gives the bytes that one worker of a group has to the group's other workers.
 *
 * For what is read outside training (whole weights, for a checkpoint or a verification): stages hold different
 * layers, and everybody wants all of them. Blocking, one tensor at a time. */
#ifndef GHP_EXECUTOR_STATE_BROADCAST_H
#define GHP_EXECUTOR_STATE_BROADCAST_H

#include "executor/engine/worker.h"

/* Data of the first worker of a layer's stage, in each group, to all workers of that group outside the stage.
 *
 * data   [bytes] on every worker: read on workers of the stage, written on the others
 *
 * Returns   GHP_OK; GHP_ERR_COMM
 * Collective over all workers; nothing if there is one stage
 * Tested    tests/executor/engine/test_stages.c */
enum ghp_status ghp_broadcast_layer(struct ghp_worker *worker, int layer, void *data,
                                    int64_t bytes);

#endif
