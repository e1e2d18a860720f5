/* executor/engine/lane_order.h - which messages of one stage to another can go by one lane.
 *
 * A lane has no tags: what enters it first leaves it first, at the moment both sides have posted it. Both sides know
 * the messages' tags and micro-batches, but a stage may post its receives in another order than the other its sends.
 * Messages that both post in the same order share a lane. Then a lane never makes a message wait for one that either
 * side posts later, so stages wait for each other exactly as with tags (docs/explanation/stages.md 3).
 *
 * Tested    tests/executor/engine/test_lane_order.c */
#ifndef GHP_EXECUTOR_ENGINE_LANE_ORDER_H
#define GHP_EXECUTOR_ENGINE_LANE_ORDER_H

#include <stdint.h>

struct ghp_lane_message {
    int32_t tag, micro;
    int32_t lane; /* set by ghp_lane_order; all messages of a tag have the same */
};

/* Gives the messages of two lists lanes: each goes by the first in which its tag's order is the same in both lists.
 *
 * sent, received   [n] the same messages, each in the order in which that side posts them
 *
 * Returns   the number of lanes
 * Local */
int ghp_lane_order(struct ghp_lane_message *sent, struct ghp_lane_message *received, int n);

#endif
