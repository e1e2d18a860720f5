/* Parts of parameters: taken by each member and put back, they give the whole; where they lie, by index. */
#include "executor/state/shard.h"
#include "tests/check.h"

static void check_split(struct ghp_split split, int workers)
{
    struct ghp_param weight = {.n_dims = 4, .dims = {6, 4, 3, 2}, .elements = 144};
    double whole[144], again[144] = {0}, part[144];
    int64_t held = 0;

    for (int i = 0; i < 144; i++)
        whole[i] = i;
    for (int rank = 0; rank < workers; rank++) {
        struct ghp_shard shard = ghp_shard_of(split, rank, &weight);
        int64_t n = ghp_shard_elements(shard);

        ghp_shard_take(shard, 8, whole, part);
        ghp_shard_put(shard, 8, part, again);
        held += n;
        for (int64_t i = 0; i < n; i++) {
            int64_t k = (int64_t)part[i] / 24, c = (int64_t)part[i] / 6 % 4;

            if (split.kind == GHP_SPLIT_OUT)
                CHECK_EQ(k / (6 / split.tp_size), rank % split.tp_size);
            if (split.kind == GHP_SPLIT_IN) CHECK_EQ(c / (4 / split.tp_size), rank % split.tp_size);
        }
    }
    CHECK(memcmp(whole, again, sizeof(whole)) == 0);
    CHECK_EQ(held *
                 (split.kind == GHP_SPLIT_DATA || split.kind == GHP_SPLIT_FULL ? 1 : split.tp_size),
             144 * workers);
}

CHECK_TEST(shard)
{
    check_split((struct ghp_split){GHP_SPLIT_DATA, 1}, 4);
    check_split((struct ghp_split){GHP_SPLIT_FULL, 4}, 4);
    check_split((struct ghp_split){GHP_SPLIT_OUT, 2}, 4);
    check_split((struct ghp_split){GHP_SPLIT_OUT, 3}, 3);
    check_split((struct ghp_split){GHP_SPLIT_IN, 2}, 4);
    check_split((struct ghp_split){GHP_SPLIT_IN, 4}, 4);
    check_split((struct ghp_split){GHP_SPLIT_CHANNEL, 2}, 2);
    return check_end();
}
