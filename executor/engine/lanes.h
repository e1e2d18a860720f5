/* executor/engine/lanes.h - carries messages between stages from device to device, by collectives that have lanes
 * (transport/collectives.h). Everything is enqueued, so steps with such messages can be recorded.
 *
 * A lane goes from one stage to another, inside a group, and has a stream of its own: its messages wait for each other
 * and for nothing else. lane_order.h says which messages share one. A message starts when the compute stream has come
 * to where it is posted, and strided slices are packed on the lane. The compute stream waits for it, and joins slices,
 * where the program waits. Without lanes messages go through host memory (engine/p2p_thread.h), to the same bits.
 *
 * Call order: open -> per message, once it is placed: start, finish, wait -> close. One thread.
 * Tested    tests/emulated/test_stages.sh */
#ifndef GHP_EXECUTOR_ENGINE_LANES_H
#define GHP_EXECUTOR_ENGINE_LANES_H

#include "executor/engine/message.h"

struct ghp_lanes;

struct ghp_lanes_job { /* all borrowed */
    const struct ghp_exec_context *exec;
    const struct ghp_message *messages;
    int n;
    const char *(*name)(void *context, int message); /* for failures */
    void *context;
};

/* Chooses the lanes with all other workers, makes their communicators, and connects the workers that exchange messages:
 * later calls block no more.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_COMM; GHP_ERR_BACKEND; GHP_ERR_INPUT (too many lanes)
 * Collective over all workers */
enum ghp_status ghp_lanes_open(const struct ghp_lanes_job *job, struct ghp_lanes **lanes);
void ghp_lanes_close(struct ghp_lanes *lanes); /* accepts NULL */

enum ghp_device_stream ghp_lanes_stream(const struct ghp_lanes *lanes, int message);

/* The message is under way from the compute stream's present state on. */
enum ghp_status ghp_lanes_start(struct ghp_lanes *lanes, int message);
/* What is enqueued on its lane until now is what `wait` waits for. */
enum ghp_status ghp_lanes_finish(struct ghp_lanes *lanes, int message);
/* The compute stream continues when the message, as last started, is done; a receive is in its tensor then. */
enum ghp_status ghp_lanes_wait(struct ghp_lanes *lanes, int message);

#endif
