/* executor/engine/p2p_thread.h - the transfer thread: carries messages between stages, concurrently with the thread
 * that computes.
 *
 * Whatever is posted is under way at once: sends and receives do not wait for each other, and a message is done when
 * all its messages are (and it is joined). It knows messages by number, not instructions. If a tensor is on a device, a
 * send starts when the tensor is in its bounce buffer (engine/bounce.h), and a receive is done when its copy to the
 * device has started.
 *
 * Call order: open -> post, wait ... -> close. One thread posts and waits; each message is waited for before it is
 * posted again.
 *
 * Tested    tests/executor/engine/test_p2p_thread.c, test_stages.c */
#ifndef GHP_EXECUTOR_ENGINE_P2P_THREAD_H
#define GHP_EXECUTOR_ENGINE_P2P_THREAD_H

#include "executor/engine/message.h"

struct ghp_p2p_thread;

struct ghp_p2p_thread_job { /* all borrowed */
    const struct ghp_control *control;
    struct ghp_channel *channel; /* with a slot for each slice of each message */
    const struct ghp_message *messages;
    int n;
    /* Told on the thread when a message is done; `name` gives a message's, for the watchdog. */
    enum ghp_status (*done)(void *context, int message);
    const char *(*name)(void *context, int message);
    void *context;
};

/* Starts the thread.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_p2p_thread_open(const struct ghp_p2p_thread_job *job,
                                    struct ghp_p2p_thread **p2p_thread);

/* Ends the thread; what is under way is left. Accepts NULL. */
void ghp_p2p_thread_close(struct ghp_p2p_thread *p2p_thread);

void ghp_p2p_thread_post(struct ghp_p2p_thread *p2p_thread, int message);

/* Waits until the message, as last posted, is done.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the message and the ranks that nothing came from, or that took nothing */
enum ghp_status ghp_p2p_thread_wait(struct ghp_p2p_thread *p2p_thread, int message);

#endif
