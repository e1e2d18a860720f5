/* executor/engine/lane_order.c - see lane_order.h. */
#include "executor/engine/lane_order.h"

#include <stdbool.h>

static void set_lane(struct ghp_lane_message *list, int n, int32_t tag, int32_t lane)
{
    for (int i = 0; i < n; i++)
        if (list[i].tag == tag) list[i].lane = lane;
}

/* The next message of a lane from place i on, n: there is none. */
static int next_of(const struct ghp_lane_message *list, int n, int i, int32_t lane)
{
    while (i < n && list[i].lane != lane)
        i++;
    return i;
}

static bool is_in_order(const struct ghp_lane_message *sent,
                        const struct ghp_lane_message *received, int n, int32_t lane)
{
    int s = next_of(sent, n, 0, lane), r = next_of(received, n, 0, lane);

    while (s < n && r < n && sent[s].tag == received[r].tag && sent[s].micro == received[r].micro) {
        s = next_of(sent, n, s + 1, lane);
        r = next_of(received, n, r + 1, lane);
    }
    return s == n && r == n;
}

int ghp_lane_order(struct ghp_lane_message *sent, struct ghp_lane_message *received, int n)
{
    int32_t lanes = 0;

    for (int i = 0; i < n; i++)
        sent[i].lane = received[i].lane = -1;
    for (int i = 0; i < n; i++) {
        int32_t tag = received[i].tag, lane = -1;

        if (received[i].lane >= 0) continue;
        do {
            set_lane(sent, n, tag, ++lane);
            set_lane(received, n, tag, lane);
        } while (lane < lanes && !is_in_order(sent, received, n, lane));
        if (lane == lanes) lanes++;
    }
    return lanes;
}
