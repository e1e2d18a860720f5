/* ghp-test: np=3 np_full=5 timeout=300
 *
 * Mixes of weights with servers, what each must keep, and the fault that breaks it. One worker with `asp` and `ssp` is
 * SGD bit for bit, with one server and with several. With `asp` servers update as often as gradients come, and these
 * lack N - 1 updates in the mean, less what the ends cost. With `ssp` no worker is more than S + 1 steps ahead of the
 * slowest; with `ssp:0` without momentum and decay the weights are those of one worker at the global batch. With
 * `easgd` an exchange keeps the sum of both sides' weights. With `aladdin` every message is counted at one trigger or
 * none yet, and without mixing the servers' weights are the workers' mean; one worker loses no step. Bytes are those of
 * docs/reference/synchronisers.md. */
#include "tests/check.h"
#include "tests/executor/mixing/mix_run.h"

#include <math.h>

static struct ghp_transport *transport;

static void check_alone(struct bench *b, int servers)
{
    static const char *const same[] = {"asp", "ssp:0", "ssp:3", "ssp:2,free"};
    struct mix_run one = {.workers = 1, .steps = 7};

    mix_train(b, &one);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct mix_run run = {.sync = same[i], .workers = 1, .servers = servers, .steps = 7};

        mix_train(b, &run);
        CHECK(run.hash == one.hash);
    }
}

static void check_asp(struct bench *b, int workers, enum ghp_fault fault)
{
    struct mix_run run = {.sync = "asp",
                          .workers = workers,
                          .servers = 1,
                          .steps = 60,
                          .together = true,
                          .slow_s = .005,
                          .fault = fault};
    double stale;

    mix_train(b, &run);
    if (mix_is_server(b, &run)) {
        stale = run.served.stale / (double)run.served.received;
        CHECK((run.served.versions == run.served.received) == (fault == GHP_FAULT_NONE));
        CHECK(fault != GHP_FAULT_NONE || (stale <= workers - 1 && stale >= .95 * (workers - 1)));
    }
    if (!mix_is_worker(b, &run)) return;
    CHECK_EQ(run.mixed.sent_bytes, run.own_steps * run.weight_bytes);
    CHECK_EQ(run.mixed.received_bytes, run.own_steps * run.weight_bytes);
}

static void check_ssp(struct bench *b, int workers, bool free, enum ghp_fault fault)
{
    struct mix_run run = {.sync = free ? "ssp:2,free" : "ssp:2",
                          .workers = workers,
                          .servers = 1,
                          .steps = 25,
                          .slow_s = .02,
                          .fault = fault};

    if (fault != GHP_FAULT_NONE) {
        run.steps = 6;
        run.slow_s = 0;
        run.in_turn = true;
    }
    mix_train(b, &run);
    if (mix_is_server(b, &run) && !free)
        CHECK((run.served.most_gap <= 3) == (fault == GHP_FAULT_NONE));
    if (mix_is_server(b, &run)) CHECK_EQ(run.served.versions, run.served.received);
    if (!mix_is_worker(b, &run)) return;
    CHECK_EQ(run.mixed.sent_bytes, run.steps * run.weight_bytes);
    if (free) CHECK_EQ(run.mixed.received_bytes, run.steps / 3 * run.weight_bytes);
}

/* Without decay, which servers take from weights that others' gradients have moved already. */
static void check_ssp_zero(struct bench *b, int workers, enum ghp_fault fault)
{
    const struct ghp_hyperparameters usual = b->training_config.hyperparameters;
    struct mix_run run = {.sync = "ssp:0",
                          .workers = workers,
                          .servers = 1,
                          .steps = BENCH_STEPS,
                          .in_turn = fault != GHP_FAULT_NONE,
                          .like_one = true,
                          .fault = fault};

    b->training_config.hyperparameters.momentum = b->training_config.hyperparameters.weight_decay =
        0;
    ghp_snapshot_release(&b->alone);
    CHECK_STATUS(bench_train_alone(b), GHP_OK);
    mix_train(b, &run);
    if (mix_is_worker(b, &run)) CHECK(run.like_one == (fault == GHP_FAULT_NONE));
    b->training_config.hyperparameters = usual;
}

static void check_easgd(struct bench *b, int workers, enum ghp_fault fault)
{
    struct mix_run run = {
        .sync = "easgd:2", .workers = workers, .servers = 1, .steps = 9, .fault = fault};
    bool kept;

    mix_train(b, &run);
    if (!mix_is_worker(b, &run)) return;
    kept = fabs(run.sum[1] - run.sum[0]) <= 1e-12 * fabs(run.sum[0]);
    CHECK(kept == (fault == GHP_FAULT_NONE));
    CHECK(fault != GHP_FAULT_NONE || run.moved > 1e-9); /* something was exchanged */
    CHECK_EQ(run.mixed.sent_bytes, 9 / 2 * run.weight_bytes);
    CHECK_EQ(run.mixed.received_bytes, 9 / 2 * run.weight_bytes);
}

static void check_aladdin(struct bench *b, int workers, int servers, enum ghp_fault fault)
{
    struct mix_run run = {
        .sync = "aladdin:2", .workers = workers, .servers = servers, .steps = 9, .fault = fault};
    bool good = fault != GHP_FAULT_DROP_REDUCTION;

    mix_train(b, &run);
    if (mix_is_server(b, &run)) {
        CHECK((run.served.received == run.served.triggered + run.served.left) == good);
        CHECK(run.served.most_count < 2 && run.served.versions > 0);
    }
    if (!mix_is_worker(b, &run)) return;
    CHECK_EQ(run.mixed.sent_bytes, 9 * run.weight_bytes);
    CHECK(run.mixed.received_bytes <= 9 / 2 * run.weight_bytes);
    CHECK((run.apart < 1e-12) == (fault == GHP_FAULT_NO_MIXING));
}

/* One worker by itself is SGD where X comes within a step, which time decides for all but a few: no step is lost. */
static void check_aladdin_alone(struct bench *b)
{
    struct mix_run one = {.sync = "asp", .workers = 1, .servers = 1, .steps = 30}, none = one,
                   run = one;

    run.sync = "aladdin:2";
    run.slow_s = .02;
    none.steps = 0;
    mix_train(b, &none);
    mix_train(b, &one);
    mix_train(b, &run);
    if (mix_is_worker(b, &run))
        CHECK_NEAR(run.weight, one.weight, .05 * fabs(one.weight - none.weight));
}

CHECK_TEST(mix_served)
{
    const struct bench_numbers exact = {.ops = &ghp_backend_reference,
                                        .element_bytes = 8,
                                        .batch = 12},
                               fast = {.ops = &ghp_backend_onednn, .element_bytes = 4, .batch = 12};
    struct bench b;
    int n;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    n = transport->control->size;
    if (CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", fast),
                     GHP_OK))
        check_alone(&b, n - 1);
    bench_close(&b);
    if (CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", exact),
                     GHP_OK)) {
        n = n - 1 == 4 ? 4 : n - 1 == 3 ? 3 : 2; /* workers that divide the batch */
        check_asp(&b, n, GHP_FAULT_NONE);
        check_asp(&b, n, GHP_FAULT_DROP_REDUCTION);
        check_ssp(&b, n, false, GHP_FAULT_NONE);
        check_ssp(&b, n, true, GHP_FAULT_NONE);
        check_ssp(&b, n, false, GHP_FAULT_DROP_REDUCTION);
        check_ssp_zero(&b, n, GHP_FAULT_NONE);
        check_ssp_zero(&b, n, GHP_FAULT_DROP_REDUCTION);
        check_easgd(&b, n, GHP_FAULT_NONE);
        check_easgd(&b, n, GHP_FAULT_DROP_REDUCTION);
        check_aladdin_alone(&b);
        check_aladdin(&b, n, 1, GHP_FAULT_NONE);
        check_aladdin(&b, n, 1, GHP_FAULT_NO_MIXING);
        check_aladdin(&b, n, 1, GHP_FAULT_DROP_REDUCTION);
    }
    bench_close(&b);
    ghp_transport_end(transport);
    return check_end();
}
