/* ghp-test: np=3 np_full=4 timeout=300
 *
 * Mixes of one worker's weights with another one's, what each must keep, and the fault that breaks it. One worker is
 * SGD bit for bit. With `gosgd` all sum weights are 1, with messages under way and without, and the sum of weights by
 * them is kept; messages are as many as chance lets expect, within 4 standard deviations, and the same in each
 * training; a checkpoint has the sum weights, so that workers that meet after each step continue from it as if
 * nothing had been. With `ad-psgd` exchanges keep the sum of all weights, though steps come in between; an active
 * worker has one in each step, and bytes are those of the exchanges. */
#include "core/program/lower/lower.h"
#include "executor/mixing/flat.h"
#include "executor/state/checkpoint.h"
#include "tests/check.h"
#include "tests/executor/cases.h"
#include "tests/executor/mixing/mix_run.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static struct ghp_transport *transport;

static void check_alone(struct bench *b)
{
    static const char *const all[] = {"gosgd:0.5", "ad-psgd"};
    struct mix_run one = {.workers = 1, .steps = 7};

    mix_train(b, &one);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct mix_run run = {.sync = all[i], .workers = 1, .steps = 7};

        mix_train(b, &run);
        CHECK(run.hash == one.hash);
    }
}

/* Returns   messages that this worker has sent */
static int64_t check_gosgd(struct bench *b, int workers, enum ghp_fault fault)
{
    struct mix_run run = {.sync = "gosgd:0.25",
                          .workers = workers,
                          .steps = 40,
                          .gossips = true,
                          .by_sum_weight = true,
                          .fault = fault};
    double sent, deviation;
    bool lost = fault == GHP_FAULT_DROP_REDUCTION;

    mix_train(b, &run);
    if (!mix_is_worker(b, &run)) return 0;
    CHECK((fabs(run.sum_weights[0] - 1) <= 1e-12) != lost);
    CHECK((fabs(run.sum_weights[1] - 1) <= 1e-12) != lost);
    CHECK((fabs(run.sum[1] - run.sum[0]) <= 1e-12 * fabs(run.sum[0])) == (fault == GHP_FAULT_NONE));
    CHECK_EQ(run.mixed.sent_bytes, run.mixed.exchanges * run.weight_bytes);
    sent = mix_sum(b, workers, (double)run.mixed.sent_bytes) / (double)run.weight_bytes;
    CHECK_NEAR(mix_sum(b, workers, (double)run.mixed.received_bytes) / (double)run.weight_bytes,
               sent, 0);
    deviation = sqrt(2 * 40 * workers * .25 * .75);
    CHECK((fabs(sent - 2 * 40 * workers * .25) <= 4 * deviation) != lost);
    return run.mixed.exchanges;
}

static void check_ad_psgd(struct bench *b, int workers, enum ghp_fault fault)
{
    struct mix_run run = {
        .sync = "ad-psgd", .workers = workers, .steps = 8, .gossips = true, .fault = fault};
    bool asked = fault != GHP_FAULT_NO_MIXING, active = b->rank_plan.rank % 2 == 1;

    mix_train(b, &run);
    if (!mix_is_worker(b, &run)) return;
    CHECK((fabs(run.sum[1] - run.sum[0]) <= 1e-12 * fabs(run.sum[0])) ==
          (fault != GHP_FAULT_DROP_REDUCTION));
    CHECK(fault != GHP_FAULT_NONE || run.mixed.exchanges == 0 || run.moved > 1e-9);
    CHECK_EQ(run.mixed.sent_bytes, run.mixed.exchanges * run.weight_bytes);
    CHECK_EQ(run.mixed.received_bytes, run.mixed.exchanges * run.weight_bytes);
    CHECK(!active || (run.mixed.exchanges == 2 * run.steps) == asked);
    CHECK_NEAR(mix_sum(b, workers, (double)run.mixed.exchanges),
               2 * mix_sum(b, workers, active ? (double)run.mixed.exchanges : 0), 0);
}

/* ---- a mixer by itself, whose worker's steps are known ---- */

static struct ghp_flat weights_at(const struct ghp_program *program, struct ghp_arena *arena)
{
    const struct ghp_bucket *bucket = &program->buckets[0];

    return (struct ghp_flat){ghp_arena_at(arena, program, bucket->weights),
                             bucket->bytes / (int64_t)sizeof(double), sizeof(double)};
}

/* Weights of this worker alone, then steps that take the same off each of them; each lasts so long that exchanges are
 * under way when the next one comes.
 *
 * Returns   the sum of all weights, with all that steps have taken off */
static double walk(struct ghp_mixer *mixer, int rank, int steps, struct ghp_flat x)
{
    const struct timespec pause = {.tv_nsec = 300000};
    double *at = x.at;
    long double sum = 0; /* of many alike, whose rounding would add up */

    for (int64_t i = 0; i < x.n; i++)
        at[i] = rank + (double)(i % 7);
    CHECK_STATUS(ghp_mixer_start(mixer), GHP_OK);
    for (int k = 0; k < steps; k++) {
        struct ghp_step of = {.index = (uint64_t)k};
        double by = (k + 1) * (rank + 1) / 64.0; /* sums are exact */

        for (int64_t i = 0; i < x.n; i++)
            at[i] -= by;
        sum += by * (double)x.n;
        CHECK_STATUS(ghp_mixer_mix(mixer, &of), GHP_OK);
        nanosleep(&pause, NULL);
    }
    CHECK_STATUS(ghp_mixer_settle(mixer), GHP_OK);
    for (int64_t i = 0; i < x.n; i++)
        sum += at[i];
    return (double)sum;
}

static void check_walk(struct bench *b, int workers, enum ghp_fault fault)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_program program = {0};
    struct ghp_arena arena = {0};
    struct ghp_mix_numbers numbers = {0};
    struct ghp_mixer *mixer = NULL;
    void *address[512];
    double sum, first = 0;

    if (rank_plan.rank >= workers) return;
    rank_plan.lowering.problem.workers = workers;
    rank_plan.run.fault = fault;
    CHECK_STATUS(ghp_sync_parse("ad-psgd", &rank_plan.lowering.method.sync), GHP_OK);
    rank_plan.splits = case_splits(&b->model, rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(ghp_lower(&(struct ghp_lowering){.model = rank_plan.lowering.model,
                                                  .problem = rank_plan.lowering.problem,
                                                  .element_bytes = 8,
                                                  .method.sync = rank_plan.lowering.method.sync},
                           rank_plan.splits, rank_plan.rank, &program),
                 GHP_OK);
    CHECK_STATUS(ghp_arena_open(ghp_exec_context_device(&b->exec), &program, NULL, NULL, &arena),
                 GHP_OK);
    CHECK(program.n_buffers <= 512);
    for (int i = 0; i < program.n_buffers; i++)
        address[i] = ghp_arena_at(&arena, &program, i);
    CHECK_STATUS(
        ghp_mixer_open(&(struct ghp_mixer_place){&b->exec, &rank_plan.run, &program, &numbers},
                       &mixer),
        GHP_OK);
    CHECK_STATUS(ghp_mixer_connect(mixer), GHP_OK);
    CHECK_STATUS(ghp_mixer_begin(mixer, address), GHP_OK);
    sum = mix_sum(b, workers, walk(mixer, rank_plan.rank, 60, weights_at(&program, &arena)));
    for (int64_t i = 0; i < weights_at(&program, &arena).n; i++)
        first += rank_plan.rank + (double)(i % 7);
    first = mix_sum(b, workers, first);
    CHECK((fabs(sum - first) <= 1e-12 * first) == (fault == GHP_FAULT_NONE));
    ghp_mixer_close(mixer);
    ghp_arena_close(&arena);
    ghp_program_release(&program);
    free((void *)(uintptr_t)rank_plan.splits);
}

/* All meet after each step, so that time decides nothing. */
static void steps_meeting(struct bench *b, struct ghp_worker *worker, int64_t first, int64_t end)
{
    for (int64_t k = first; k < end; k++) {
        CHECK_STATUS(bench_steps(b, worker, k, k + 1), GHP_OK);
        CHECK_STATUS(ghp_worker_settle_mixes(worker), GHP_OK);
    }
}

/* The order in which two messages came is rounding. */
static void check_gosgd_resumed(struct bench *b, int workers)
{
    const struct ghp_checkpoint now = {.step = 4};
    struct ghp_rank_plan rank_plan = b->rank_plan;
    char path[BENCH_FOLDER];
    struct ghp_checkpoint_folder folder = {.path = path};
    double whole = 0;

    if (rank_plan.rank >= workers) return;
    rank_plan.lowering.problem.workers = rank_plan.run.groups = workers;
    rank_plan.splits = case_splits(&b->model, rank_plan.lowering.problem, CASE_DATA, 0, 1);
    rank_plan.run.mixing = &ghp_host_mixer;
    CHECK_STATUS(ghp_sync_parse("gosgd:0.5", &rank_plan.lowering.method.sync), GHP_OK);
    bench_make_folder(transport, workers, "mixing", path);
    for (int resumed = 0; resumed < 2; resumed++) {
        struct ghp_checkpoint found = {0};
        struct ghp_worker *worker = mix_open_worker(b, &rank_plan);

        if (worker == NULL) return;
        if (resumed) CHECK_STATUS(ghp_checkpoint_load(&folder, worker, &found), GHP_OK);
        if (!resumed) steps_meeting(b, worker, 0, now.step);
        if (!resumed) CHECK_STATUS(ghp_checkpoint_save(&folder, worker, now), GHP_OK);
        CHECK(mix_sum(b, workers, fabs(workers * ghp_worker_mixed(worker).sum_weight - 1)) > .1);
        CHECK_NEAR(mix_sum(b, workers, ghp_worker_mixed(worker).sum_weight), 1, 1e-12);
        steps_meeting(b, worker, now.step, 3 * now.step);
        if (resumed) CHECK_NEAR(mix_weigh(worker), whole, 1e-12 * fabs(whole));
        whole = mix_weigh(worker);
        ghp_worker_close(worker);
    }
    bench_remove_folder(transport, workers, path);
    free((void *)(uintptr_t)rank_plan.splits);
}

static void check_gossip(struct bench *b, int n)
{
    int64_t sent = check_gosgd(b, n, GHP_FAULT_NONE);

    CHECK_EQ(check_gosgd(b, n, GHP_FAULT_NO_MIXING), sent); /* chance is the same */
    check_gosgd(b, n, GHP_FAULT_DROP_REDUCTION);
    check_gosgd_resumed(b, n);
    check_ad_psgd(b, n, GHP_FAULT_NONE);
    check_ad_psgd(b, n, GHP_FAULT_DROP_REDUCTION);
    check_ad_psgd(b, n, GHP_FAULT_NO_MIXING);
    check_walk(b, n, GHP_FAULT_NONE);
    check_walk(b, n, GHP_FAULT_DROP_REDUCTION);
}

CHECK_TEST(mix_gossip)
{
    const struct bench_numbers exact = {.ops = &ghp_backend_reference,
                                        .element_bytes = 8,
                                        .batch = 12},
                               fast = {.ops = &ghp_backend_onednn, .element_bytes = 4, .batch = 12};
    struct bench b;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    if (CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", fast),
                     GHP_OK))
        check_alone(&b);
    bench_close(&b);
    if (CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", exact),
                     GHP_OK))
        check_gossip(&b, transport->control->size);
    bench_close(&b);
    ghp_transport_end(transport);
    return check_end();
}
