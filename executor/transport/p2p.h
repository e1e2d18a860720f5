/* executor/transport/p2p.h - single messages between any two workers, in host memory.
 *
 * A message is posted and later found done. Sends and receives do not wait for each other, and nothing here waits: who
 * polls says how long that may take (executor/engine/p2p_thread.h). Messages of one tag between two workers arrive in
 * the order of posting; messages of several tags in any order.
 *
 * Call order: open -> post, poll ... -> close. One thread at a time uses a channel. Channels are apart from all
 * communicators, but not from each other: two that are used at the same time need tags of their own.
 *
 * Tested  tests/executor/transport/test_p2p.c, tests/executor/engine/test_p2p_thread.c */
#ifndef GHP_EXECUTOR_TRANSPORT_P2P_H
#define GHP_EXECUTOR_TRANSPORT_P2P_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct ghp_p2p_message { /* from one worker to one other */
    void *data;          /* read, or written */
    int64_t bytes;       /* at most GHP_P2P_MESSAGE_BYTES; equal on both sides */
    int peer;            /* rank */
    int tag;             /* >= 0 */
    bool receives;
};

enum { GHP_P2P_MESSAGE_BYTES = 1 << 30 };

struct ghp_p2p {
    const struct ghp_p2p_ops *ops;
};

struct ghp_channel { /* room for some messages at once */
    const struct ghp_p2p_ops *ops;
};

struct ghp_p2p_ops {
    /* A channel of `slots` messages. Collective over all workers. */
    enum ghp_status (*open)(struct ghp_p2p *p2p, int slots, struct ghp_channel **channel);
    /* The slot is empty; the message's data stay until it is done. Local. */
    enum ghp_status (*post)(struct ghp_channel *channel, int slot,
                            const struct ghp_p2p_message *message);
    /* done: the slot is empty again. Local. */
    enum ghp_status (*poll)(struct ghp_channel *channel, int slot, bool *done);
    void (*close)(struct ghp_channel *channel); /* no message is under way. Local */
};

#endif
