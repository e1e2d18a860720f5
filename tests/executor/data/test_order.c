/* Shuffles: permutations, the same for the same seed, others for other epochs and seeds; the last partial batch is
 * left out. Shuffled once, every epoch has the first one's; not shuffled, the order of the files. */
#include "executor/data/order.h"
#include "tests/check.h"

CHECK_TEST(order)
{
    enum { N = 103, BATCH = 10 };
    struct ghp_order a, b, other;
    int differs = 0, differs_by_seed = 0;

    CHECK_STATUS(ghp_order_init(&a, N, BATCH, 3), GHP_OK);
    CHECK_STATUS(ghp_order_init(&b, N, BATCH, 3), GHP_OK);
    CHECK_STATUS(ghp_order_init(&other, N, BATCH, 4), GHP_OK);
    CHECK_EQ(ghp_order_steps(&a), 10);
    CHECK_EQ(ghp_order_epoch(&a, 9), 0);
    CHECK_EQ(ghp_order_epoch(&a, 10), 1);
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[N] = {0}, first = 0;

        for (int s = 0; s < 10; s++) {
            const int64_t *batch = ghp_order_batch(&a, epoch * 10 + s);
            const int64_t *again = ghp_order_batch(&b, epoch * 10 + s);
            const int64_t *seeded = ghp_order_batch(&other, epoch * 10 + s);

            for (int i = 0; i < BATCH; i++) {
                CHECK(batch[i] >= 0 && batch[i] < N);
                seen[batch[i]]++;
                CHECK_EQ(batch[i], again[i]);
                differs_by_seed += batch[i] != seeded[i];
                first += batch[i] == s * BATCH + i;
            }
        }
        for (int i = 0; i < N; i++)
            CHECK(seen[i] <= 1);
        differs += first < 20;
    }
    CHECK_EQ(differs, 3);
    CHECK(differs_by_seed > 200);
    CHECK_EQ(ghp_order_batch(&a, 0)[0],
             ghp_order_batch(&b, 0)[0]); /* back to an earlier epoch, as a resumed run does */
    other.seed = 3;
    other.shuffling = GHP_SHUFFLE_ONCE;
    for (int s = 0; s < 30; s++)
        CHECK_EQ(ghp_order_batch(&other, s)[3], ghp_order_batch(&a, s % 10)[3]);
    CHECK(ghp_order_batch(&a, 10)[3] != ghp_order_batch(&other, 10)[3] ||
          ghp_order_batch(&a, 11)[3] != ghp_order_batch(&other, 11)[3]);
    ghp_order_release(&other);
    CHECK_STATUS(ghp_order_init(&other, N, BATCH, 3), GHP_OK);
    other.shuffling = GHP_SHUFFLE_OFF;
    for (int s = 0; s < 30; s++)
        for (int i = 0; i < BATCH; i++)
            CHECK_EQ(ghp_order_batch(&other, s)[i], s % 10 * BATCH + i);
    ghp_order_release(&a);
    ghp_order_release(&b);
    ghp_order_release(&other);
    return check_end();
}
