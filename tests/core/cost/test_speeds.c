/* tests/core/cost/test_speeds.c - speeds relative to the slowest, shares in proportion, and what they mean to
 * placements and programs. */
#include "core/program/program.h"
#include "core/cost/speeds.h"
#include "core/cost/stragglers.h"
#include "core/sharding/stage.h"
#include "tests/check.h"

enum { WORKERS = 6 };

static void test_slow(void)
{
    struct ghp_speeds speeds = {0}, copy;
    double slower;

    CHECK_STATUS(ghp_speeds_copy(&speeds, &copy), GHP_OK);
    CHECK_EQ(copy.n, 0);
    CHECK(ghp_speeds_of(&speeds, 3) == NULL);
    CHECK_STATUS(ghp_speeds_slow(&speeds, 3, 1, 2, &slower), GHP_OK);
    CHECK_NEAR(slower, 2, 0);
    CHECK_NEAR(speeds.of[0], 2, 0);
    CHECK_NEAR(speeds.of[1], 1, 0);
    CHECK_STATUS(ghp_speeds_slow(&speeds, 3, 0, 1.5, &slower),
                 GHP_OK); /* still ahead of worker 1 */
    CHECK_NEAR(slower, 1, 1e-15);
    CHECK_NEAR(speeds.of[0], 4.0 / 3, 1e-15);
    CHECK_STATUS(ghp_speeds_slow(&speeds, 3, 0, 2, &slower), GHP_OK); /* now slower than it */
    CHECK_NEAR(slower, 1.5, 1e-15);
    CHECK_NEAR(speeds.of[1], 1.5, 1e-15);
    CHECK_NEAR(speeds.of[2], 3, 1e-15);
    CHECK(ghp_speeds_of(&speeds, 3) == speeds.of);
    CHECK(ghp_speeds_of(&speeds, 2) == NULL);
    CHECK_STATUS(ghp_speeds_copy(&speeds, &copy), GHP_OK);
    CHECK_EQ(copy.n, 3);
    CHECK_NEAR(copy.of[2], 3, 1e-15);
    ghp_speeds_release(&copy);
    ghp_speeds_release(&speeds);
}

static void test_stragglers(void)
{
    static const char *const wrong[] = {"",     "3",       "3:",    "3:0.5", "3:1001", "3:2,",
                                        "-1:2", "3:2,3:4", "3:nan", "3:2x",  "x:2",    "3:2;4:2"};
    char text[GHP_STRAGGLERS_TEXT_BYTES];
    struct ghp_stragglers s;

    if (!CHECK_STATUS(ghp_stragglers_parse("3:2,0:1.5", &s), GHP_OK)) return;
    CHECK_EQ(s.n, 2);
    CHECK_NEAR(ghp_stragglers_factor(&s, 3), 2, 0);
    CHECK_NEAR(ghp_stragglers_factor(&s, 0), 1.5, 0);
    CHECK_NEAR(ghp_stragglers_factor(&s, 1), 1, 0);
    CHECK(strcmp(ghp_stragglers_format(&s, text),
                 "worker 3 takes 2 times as long, worker 0 1.5 times") == 0);
    CHECK_STATUS(ghp_stragglers_check(&s, 4), GHP_OK);
    CHECK_STATUS(ghp_stragglers_check(&s, 3), GHP_ERR_USAGE);
    CHECK_MESSAGE("but the 3 workers are numbered 0 to 2");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_STATUS(ghp_stragglers_parse(wrong[i], &s), GHP_ERR_USAGE);
}

/* All samples are dealt, blocks are alike, and none is further from its due than one sample, unless that is because one
 * is the least. */
static void check_deal(const double *speed, int block, int64_t samples)
{
    int64_t shares[WORKERS], sum = 0;
    double all = 0;

    for (int b = 0; b < WORKERS / block; b++)
        all += ghp_speeds_block(speed, block, b) * block;
    ghp_speeds_deal(speed, WORKERS, block, samples, shares);
    for (int r = 0; r < WORKERS; r++) {
        double due = (double)samples / all * ghp_speeds_block(speed, block, r / block);

        sum += shares[r];
        CHECK(shares[r] >= 1);
        CHECK_EQ(shares[r], shares[r / block * block]);
        if ((double)samples >= all) /* the slowest are due one, too */
            CHECK(fabs((double)shares[r] - due) < 1 + 1e-9);
    }
    CHECK_EQ(sum, samples);
}

static void test_deal(void)
{
    static const double some[WORKERS] = {2, 2, 1, 1.5, 2, 1},
                        extreme[WORKERS] = {1, 1, 1, 1, 1, 900},
                        alike[WORKERS] = {1, 1, 1, 1, 1, 1};
    int64_t shares[2];

    for (int block = 1; block <= 3; block++)
        for (int64_t samples = WORKERS; samples <= 120; samples += 6) {
            check_deal(some, block, samples);
            check_deal(extreme, block, samples);
            check_deal(alike, block, samples);
        }
    ghp_speeds_deal((const double[]){2, 1}, 2, 1, 128, shares);
    CHECK_EQ(shares[0], 85);
    CHECK_EQ(shares[1], 43);
    CHECK(ghp_speeds_differ(some, WORKERS, 1));
    CHECK(ghp_speeds_differ(some, WORKERS, 2));
    CHECK(!ghp_speeds_differ(some, WORKERS, 3)); /* the slowest of each is 1 */
    CHECK(!ghp_speeds_differ(alike, WORKERS, 1));
}

/* Who stands for a stage: the one that needs longest; who is fullest: the one with most samples. */
static void test_placements(void)
{
    const double speeds[] = {2, 1};
    const struct ghp_problem whole = {2, 12};
    int64_t shares[] = {7, 5};
    struct ghp_staging s = {.shares = shares, .speeds = speeds};
    struct ghp_instr compute = {.kind = GHP_INSTR_COMPUTE}, reshard = {.kind = GHP_INSTR_RESHARD};

    CHECK_EQ(ghp_stage_representative(&s, 0, whole), 1);
    CHECK_EQ(ghp_stage_fullest(&s, 0, whole), 0);
    CHECK_NEAR(ghp_placement_of(&s, 3, whole, 0).speed, 2, 0);
    CHECK_NEAR(ghp_placement_of(&s, 3, whole, 1).speed, 1, 0);
    shares[0] = 8; /* as long as the other: the slower one stands */
    shares[1] = 4;
    CHECK_EQ(ghp_stage_representative(&s, 0, whole), 1);
    shares[0] = 9;
    shares[1] = 3;
    CHECK_EQ(ghp_stage_representative(&s, 0, whole), 0);
    s.shares = NULL; /* equal shares: everybody waits for the slowest, whose costs a profile has */
    CHECK_NEAR(ghp_placement_of(&s, 3, whole, 0).speed, 1, 0);
    CHECK_EQ(ghp_stage_representative(&s, 0, whole), 0);
    CHECK_NEAR(ghp_instr_speed(&compute, 2), 2, 0);
    CHECK_NEAR(ghp_instr_speed(&reshard, 2), 1, 0);
    CHECK_NEAR(ghp_instr_speed(&compute, 0), 1, 0);
}

CHECK_TEST(speeds)
{
    test_slow();
    test_stragglers();
    test_deal();
    test_placements();
    return check_end();
}
