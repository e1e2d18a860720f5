/* tests/profiler/measure/test_measure.c - samples, means, and that a failure of one rank reaches all of them.
 * ghp-test: np=2 np_full=1,3 timeout=60 */
#include "profiler/measure/measure.h"
#include "tests/check.h"

#include <time.h>

static struct ghp_measure m;

static void test_quantiles(void)
{
    struct ghp_samples five = {5, {6, 1, 4, 2, 3}}, pair = {2, {3, 1}}, one = {1, {7}};
    struct ghp_samples disturbed = {5, {3, 1, 90, 2, 4}}, slower = {6, {1, 1, 1, 2, 2, 2}};
    struct ghp_timed timed = ghp_samples_summary(&five);

    CHECK_NEAR(timed.seconds, 16.0 / 5, 1e-15); /* quartiles 2 and 4: all lie within -1 and 7 */
    CHECK_NEAR(timed.spread, 2 / 3.2, 1e-15);
    CHECK_EQ(timed.samples, 5);
    CHECK_NEAR(timed.drift, 5.0 / 7, 1e-15);
    CHECK_NEAR(ghp_samples_summary(&disturbed).seconds, 2.5, 1e-15);
    CHECK_NEAR(ghp_samples_summary(&disturbed).drift, 3.0 / 5, 1e-15); /* without the 90 */
    CHECK_NEAR(ghp_samples_summary(&slower).drift, 1.0 / 3,
               1e-15); /* half of the time at half the speed */
    CHECK_NEAR(ghp_samples_summary(&pair).seconds, 2, 0);
    CHECK_NEAR(ghp_samples_summary(&one).seconds, 7, 0);
    CHECK_NEAR(ghp_samples_summary(&one).spread, 0, 0);
    CHECK_NEAR(ghp_samples_summary(&one).drift, 0, 0);
}

struct nap {
    int64_t runs;   /* so far */
    double seconds; /* of one */
    int fails_on;   /* rank, -1: none */
};

static enum ghp_status sleep_some(void *context, int64_t repeats)
{
    struct nap *nap = context;

    if (nap->fails_on == m.rank) return GHP_FAIL(GHP_ERR_BACKEND, "worn out; let it rest");
    nap->runs += repeats;
    for (int64_t i = 0; i < repeats; i++) {
        struct timespec pause = {.tv_nsec = (long)(nap->seconds * 1e9)};

        nanosleep(&pause, NULL);
    }
    return GHP_OK;
}

/* The slowest rank's time is everybody's, and all ranks do the same number of runs. */
static void test_task(void)
{
    static const struct ghp_effort effort = {.sample_s = 0.02, .min_samples = 3, .max_samples = 5};
    struct nap nap = {.seconds = m.rank == m.size - 1 ? 2e-3 : 1e-3, .fails_on = -1};
    struct ghp_timed timed = {0};
    double runs = 0, seconds = 0;

    CHECK_STATUS(
        ghp_measure_task(&m, (struct ghp_task){.run = sleep_some, .context = &nap}, effort, &timed),
        GHP_OK);
    CHECK(timed.seconds >= 2e-3);
    CHECK(timed.samples >= 3 && timed.samples <= 5);
    CHECK(nap.runs >= 2 + timed.samples && nap.runs <= 2 + timed.samples * 11);
    runs = (double)nap.runs;
    seconds = timed.seconds;
    CHECK_STATUS(ghp_measure_max(&m, GHP_OK, &runs), GHP_OK);
    CHECK_STATUS(ghp_measure_max(&m, GHP_OK, &seconds), GHP_OK);
    CHECK_NEAR(runs, (double)nap.runs, 0);
    CHECK_NEAR(seconds, timed.seconds, 0);
}

/* Later calls add to what earlier ones took, up to the room there is. */
static void test_more(void)
{
    struct nap nap = {.seconds = 1e-3, .fails_on = -1};
    struct ghp_samples samples = {0};

    CHECK_STATUS(ghp_measure_more(&m, (struct ghp_task){.run = sleep_some, .context = &nap}, 2e-3,
                                  2, &samples),
                 GHP_OK);
    CHECK_EQ(samples.n, 2);
    CHECK_STATUS(ghp_measure_more(&m, (struct ghp_task){.run = sleep_some, .context = &nap}, 2e-3,
                                  3, &samples),
                 GHP_OK);
    CHECK_EQ(samples.n, 5);
    CHECK_STATUS(ghp_measure_more(&m, (struct ghp_task){.run = sleep_some, .context = &nap}, 2e-3,
                                  9, &samples),
                 GHP_OK);
    CHECK_EQ(samples.n, GHP_MAX_SAMPLES);
    for (int i = 0; i < samples.n; i++)
        CHECK(samples.values[i] >= 1e-3);
}

static void test_failure(void)
{
    static const struct ghp_effort effort = {.sample_s = 0.01, .min_samples = 3, .max_samples = 3};
    struct nap nap = {.seconds = 1e-4, .fails_on = m.size - 1};
    struct ghp_timed timed = {0};
    enum ghp_status expected = m.rank == m.size - 1 ? GHP_ERR_BACKEND : GHP_ERR_COMM;

    CHECK_STATUS(
        ghp_measure_task(&m, (struct ghp_task){.run = sleep_some, .context = &nap}, effort, &timed),
        expected);
    CHECK_EQ(ghp_measure_is_echo(), m.rank != m.size - 1);
    CHECK_MESSAGE(m.rank == m.size - 1 ? "worn out" : "see its message");
}

/* Work of workers of unlike speeds, that nobody waits in: the last rank is twice as slow, but was not disturbed in this
 * sample; it is the others' seconds that say what it takes. */
static void test_unlike(void)
{
    struct nap nap = {.seconds = m.rank == m.size - 1 ? 1e-4 : 1e-3, .fails_on = -1};
    struct ghp_task task = {.run = sleep_some, .context = &nap, .alone = true};
    struct ghp_samples samples = {0}, waited = {0};

    if (m.size == 1) return;
    m.speed = m.rank == m.size - 1 ? 1 : 2;
    m.fastest = 2;
    CHECK_STATUS(ghp_measure_more(&m, task, 2e-3, 2, &samples), GHP_OK);
    task.alone = false;
    CHECK_STATUS(ghp_measure_more(&m, task, 2e-3, 2, &waited), GHP_OK);
    m.speed = m.fastest = 0;
    for (int i = 0; i < samples.n; i++)
        CHECK(samples.values[i] >= 2e-3);
    for (int i = 0; i < waited.n; i++)
        CHECK(waited.values[i] >= 1e-3);
}

static void test_part(void)
{
    int words[3] = {m.rank, 10 + m.rank, 20 + m.rank};

    CHECK_STATUS(ghp_measure_broadcast(&m, GHP_OK, words, (int64_t)sizeof words), GHP_OK);
    CHECK_EQ(words[0], 0);
    CHECK_EQ(words[1], 10);
    CHECK_EQ(words[2], 20);
    if (m.rank == 0) (void)GHP_FAIL(GHP_ERR_IO, "disk full; empty it");
    CHECK_STATUS(
        ghp_measure_broadcast(&m, m.rank == 0 ? GHP_ERR_IO : GHP_OK, words, (int64_t)sizeof words),
        m.rank == 0 ? GHP_ERR_IO : GHP_ERR_COMM);
}

CHECK_TEST(measure)
{
    struct ghp_ranks all = {.stride = 1};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 30, &m.transport), GHP_OK))
        return check_end();
    m.rank = m.transport->control->rank;
    m.size = m.transport->control->size;
    all.count = m.size;
    CHECK_STATUS(ghp_collectives_group(m.transport->host, all, GHP_STREAM_COMPUTE, &m.world),
                 GHP_OK);
    test_quantiles();
    test_task();
    test_more();
    test_failure();
    test_unlike();
    test_part();
    ghp_transport_end(m.transport);
    return check_end();
}
