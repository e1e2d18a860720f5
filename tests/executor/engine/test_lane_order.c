/* Which messages share a lane: all if both sides post them in one order, else as few lanes as it takes to have one
 * order in each. Lists drawn by chance keep the order of each tag's micro-batches, as schedules do. */
#include "executor/engine/lane_order.h"
#include "tests/check.h"

enum { TAGS = 5, MICROS = 6, N = TAGS * MICROS };

static unsigned state = 17;

static int draw(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)n);
}

/* All micro-batches of all tags, those of a tag in order. jumps: how far tags may be ahead of each other. */
static void draw_list(struct ghp_lane_message *list, int jumps)
{
    int next[TAGS] = {0};

    for (int n = 0; n < N;) {
        int tag = draw(TAGS), least = MICROS;

        for (int t = 0; t < TAGS; t++)
            least = next[t] < least ? next[t] : least;
        if (next[tag] == MICROS || next[tag] > least + jumps) continue;
        list[n++] = (struct ghp_lane_message){tag, next[tag]++, 0};
    }
}

/* The place of a lane's k-th message; N: it has fewer. */
static int place_of(const struct ghp_lane_message *list, int lane, int k)
{
    int i = 0;

    for (; i < N; i++)
        if (list[i].lane == lane && k-- == 0) break;
    return i;
}

static int check_lists(struct ghp_lane_message *sent, struct ghp_lane_message *received)
{
    int lanes = ghp_lane_order(sent, received, N), of[TAGS], all = 0;

    CHECK(lanes >= 1 && lanes <= TAGS);
    for (int t = 0; t < TAGS; t++)
        of[t] = -1;
    for (int i = 0; i < N; i++) {
        int tag = sent[i].tag;

        CHECK(of[tag] < 0 || of[tag] == sent[i].lane);
        of[tag] = sent[i].lane;
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ(received[i].lane, of[received[i].tag]);
    for (int lane = 0; lane < lanes; lane++)
        for (int k = 0; k < N; k++) {
            int s = place_of(sent, lane, k), r = place_of(received, lane, k);

            CHECK_EQ(s == N, r == N);
            if (s == N) break;
            CHECK_EQ(sent[s].tag, received[r].tag);
            CHECK_EQ(sent[s].micro, received[r].micro);
            all++;
        }
    CHECK_EQ(all, N);
    return lanes;
}

static void check_drawn(void)
{
    struct ghp_lane_message sent[N], received[N];
    int several = 0;

    for (int k = 0; k < 300; k++) {
        draw_list(sent, k % 4);
        draw_list(received, k % 3);
        several += check_lists(sent, received) > 1;
        memcpy(received, sent, sizeof sent);
        CHECK_EQ(check_lists(sent, received), 1);
    }
    CHECK(several > 100);
}

/* Two tensors that cross a boundary, made in one order and read in the other. */
static void check_crossing(void)
{
    struct ghp_lane_message sent[] = {{4, 0, 0}, {2, 0, 0}, {4, 1, 0}, {2, 1, 0}},
                            received[] = {{2, 0, 0}, {4, 0, 0}, {2, 1, 0}, {4, 1, 0}};

    CHECK_EQ(ghp_lane_order(sent, received, 4), 2);
    CHECK_EQ(received[0].lane, 0);
    CHECK_EQ(received[1].lane, 1);
    CHECK_EQ(sent[0].lane, 1);
    CHECK_EQ(ghp_lane_order(sent, received, 0), 0);
}

CHECK_TEST(lane_order)
{
    check_crossing();
    check_drawn();
    return check_end();
}
