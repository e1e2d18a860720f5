/* executor/data/order.h - which sample comes when: one shuffle an epoch, one for all of them, or none; the same for
 * every plan and worker count.
 *
 * An epoch is floor(n / B) steps: the last partial batch is left out of that epoch (another shuffle takes other samples
 * next time). Step t is batch t mod steps of epoch t / steps.
 *
 * An epoch's shuffle is drawn while the epoch before it runs, some draws a step, so that no step waits for a whole one;
 * if steps do not come in order, it is drawn when it is asked for. The result is the same. */
#ifndef GHP_EXECUTOR_DATA_ORDER_H
#define GHP_EXECUTOR_DATA_ORDER_H

#include "core/base/status.h"

enum ghp_shuffling {
    GHP_SHUFFLE_EPOCH, /* every epoch has a shuffle of its own */
    GHP_SHUFFLE_ONCE,  /* every epoch has the first one's */
    GHP_SHUFFLE_OFF    /* samples come in the order of the files */
};
extern const char *const ghp_shuffling_names[]; /* ends with NULL */

struct ghp_shuffle {  /* of one epoch */
    int64_t epoch;    /* -1: none yet */
    int64_t left;     /* draws to come; places above are final */
    int64_t *samples; /* [n], owned */
};

struct ghp_order {
    int64_t n, global_batch;
    uint64_t seed;
    enum ghp_shuffling shuffling;   /* set before the first batch */
    struct ghp_shuffle shuffles[2]; /* of even epochs, of odd ones */
};

/* 1 <= global_batch <= n. Local. Tested tests/executor/data/test_order.c */
enum ghp_status ghp_order_init(struct ghp_order *order, int64_t n, int64_t global_batch,
                               uint64_t seed);
void ghp_order_release(struct ghp_order *order); /* accepts a zeroed one */

int64_t ghp_order_steps(const struct ghp_order *order); /* of an epoch */
int64_t ghp_order_epoch(const struct ghp_order *order, int64_t step);
/* The B samples of a step, in global batch order; borrowed until the second call from now. Calls for a step and the
 * next in turns are cheap. */
const int64_t *ghp_order_batch(struct ghp_order *order, int64_t step);

#endif
