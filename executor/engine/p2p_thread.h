/* executor/engine/p2p_thread.h - the transfer thread: carries parcels between stages beside the thread that computes.
 *
 * Whatever is posted is under way at once: sends and receives do not wait for each other, and a parcel is done when all
 * its messages are (and it is joined). It knows parcels by number, not instructions.
 *
 * Call order: open -> post, wait ... -> close. One thread posts and waits; each parcel is waited for before it is posted
 * again.
 *
 * Tested    tests/executor/engine/test_p2p_thread.c, test_stages.c */
#ifndef GHP_EXECUTOR_ENGINE_P2P_THREAD_H
#define GHP_EXECUTOR_ENGINE_P2P_THREAD_H

#include "executor/engine/message.h"

struct ghp_courier;

struct ghp_courier_job { /* all borrowed */
    const struct ghp_transport_ops *ops;
    struct ghp_transport *transport;
    struct ghp_mailbox *mailbox; /* with a slot for each piece of each parcel */
    const struct ghp_parcel *parcels;
    int n;
    /* Told on the thread when a parcel is done; `name` gives a parcel's, for the watchdog. */
    void (*done)(void *context, int parcel);
    const char *(*name)(void *context, int parcel);
    void *context;
};

/* Starts the thread.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_courier_open(const struct ghp_courier_job *job, struct ghp_courier **courier);

/* Ends the thread; what is under way is left. Accepts NULL. */
void ghp_courier_close(struct ghp_courier *courier);

void ghp_courier_post(struct ghp_courier *courier, int parcel);

/* Waits until the parcel, as last posted, is done.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the parcel and the ranks that nothing came from, or that took nothing */
enum ghp_status ghp_courier_wait(struct ghp_courier *courier, int parcel);

#endif
