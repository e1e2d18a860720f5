/* ghp-test: np=3 np_full=4,5 timeout=300
 *
 * Mixes of weights with servers, what each must keep, and the fault that breaks it. One worker by `asp` and `ssp` is
 * SGD bit for bit, with one server and with several. By `asp` servers update as often as gradients come, and these lack
 * N - 1 updates in the mean, less what the ends cost. By `ssp` no worker is more than S + 1 steps ahead of the slowest;
 * by `ssp:0` without momentum and decay the weights are those of one worker at the global batch.
 * By `easgd` an exchange keeps the sum of both sides' weights. By `aladdin` every message is counted at one trigger or
 * none yet, and without mixing the servers' weights are the workers' mean; one worker loses no step. Bytes are those of
 * docs/synchronisers.md.
 *
 * Without servers, one worker is SGD bit for bit, too. By `gosgd` all shares are 1 together, with messages under way
 * and without, and the sum of weights by shares is kept; messages are as many as chance lets expect, within 4 standard
 * deviations, and the same in each training; a checkpoint has the shares, so that workers who meet behind each step go
 * on from it as if nothing had been. By `ad-psgd` exchanges keep the sum of all weights, though steps come in between;
 * an active worker has one in each step, and bytes are those of the exchanges. */
#include "core/program/lower.h"
#include "core/base/file.h"
#include "executor/mixing/flat.h"
#include "executor/mixing/mixer.h"
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "executor/train/others.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct ghp_transport *transport;

struct run { /* how workers train, and what was found */
    const char *sync;
    int workers, servers;
    int64_t steps; /* of each; or, where they end together, of all over N */
    bool together;
    bool in_turn;  /* the last worker begins when the others have done all of theirs */
    bool like_one; /* found: whether the weights are those of b->alone */
    double weight; /* found: the weights' sum, each times another number */
    double slow_s; /* of a step of the last worker, of the others a tenth; 0: what it takes */
    enum ghp_fault fault;
    /* found: of the first server; of this worker */
    struct ghp_mix_server_count served;
    struct ghp_mix_count mixed;
    int64_t own_steps, weight_bytes;
    double sum[2], moved; /* of all workers' weights and X, before and behind steps at rate 0 */
    double apart;         /* X from the workers' mean, over the norm */
    bool gossips, by_share;
    double shares[2]; /* of all: with messages under way, and without */
    uint64_t hash;
};

static bool serves(struct bench *b, struct run *run, const struct ghp_rank_plan *rank_plan)
{
    struct ghp_mix_server *server = NULL;
    struct ghp_server_programs programs;
    int number = b->rank_plan.rank - run->workers;

    if (number < 0) return false;
    if (number >= run->servers) return true;
    if (!CHECK_STATUS(ghp_rank_plan_lower_server(&b->exec, rank_plan, number, &programs), GHP_OK) ||
        !CHECK_STATUS(ghp_mix_server_open(&b->exec, &programs, rank_plan->run.fault, &server),
                      GHP_OK))
        return true;
    CHECK_EQ(ghp_mix_server_arena(server)->bytes, ghp_mix_server_program(server)->peak_bytes);
    CHECK_STATUS(ghp_mix_server_connect(server), GHP_OK);
    CHECK_STATUS(ghp_mix_server_run(server), GHP_OK);
    run->served = ghp_mix_server_counted(server);
    ghp_mix_server_close(server);
    return true;
}

/* ---- sums over all workers ---- */

static double sum_over(int workers, double mine)
{
    return bench_sum(transport, workers, mine);
}

static const double *weights_of(struct ghp_worker *worker, int64_t *n)
{
    const struct ghp_program *program = ghp_worker_program(worker);

    *n = program->buckets[0].bytes / (int64_t)sizeof(double);
    return ghp_arena_at(ghp_worker_arena(worker), program, program->buckets[0].weights);
}

/* Of a worker's weights, each times another number, so that no change of two hides in the sum. */
static double weigh(struct ghp_worker *worker)
{
    int64_t n;
    const double *x = weights_of(worker, &n);
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i] * (1 + (double)(i % 17));
    return sum;
}

/* The workers' own and the servers'. */
static double weigh_all(struct ghp_worker *worker, int workers, double *of_x)
{
    double own = sum_over(workers, weigh(worker));

    CHECK_STATUS(ghp_worker_take_mean(worker), GHP_OK);
    *of_x = weigh(worker);
    CHECK_STATUS(ghp_worker_return_mean(worker), GHP_OK);
    sum_over(workers, 0); /* nobody goes on before all have read */
    return own;
}

/* ---- without servers ---- */

/* All workers' weights, each times its part of the sum, when nothing is under way. */
static double weigh_settled(struct ghp_worker *worker, int workers, bool by_share)
{
    double sum;

    CHECK_STATUS(ghp_worker_take_mean(worker), GHP_OK);
    CHECK_STATUS(ghp_worker_return_mean(worker), GHP_OK);
    sum = weigh(worker) * (by_share ? ghp_worker_mixed(worker).share : 1);
    return sum_over(workers, sum);
}

/* Steps at rate 0: weights change by mixes alone. */
static void still_steps(struct bench *b, int64_t first, int64_t end, struct ghp_worker *worker)
{
    for (int64_t k = first; k < end; k++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, k);

        step.hyperparameters = (struct ghp_hyperparameters){.learning_rate = 0};
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
}

static void note_gossip(struct bench *b, struct run *run, struct ghp_worker *worker)
{
    bool by_share = run->by_share;
    double before = weigh(worker);

    run->mixed = ghp_worker_mixed(worker);
    run->shares[0] =
        sum_over(run->workers, run->mixed.share + run->mixed.sent_share - run->mixed.taken_share);
    run->sum[0] = weigh_settled(worker, run->workers, by_share);
    run->shares[1] = sum_over(run->workers, ghp_worker_mixed(worker).share);
    still_steps(b, run->steps, 2 * run->steps, worker);
    run->sum[1] = weigh_settled(worker, run->workers, by_share);
    run->moved = fabs(weigh(worker) - before) / fabs(before);
    run->mixed = ghp_worker_mixed(worker);
}

/* ---- training ---- */

static void steps_together(struct bench *b, struct run *run, struct ghp_worker *worker)
{
    struct ghp_others *others = NULL;
    int64_t k = 0;

    if (!CHECK_STATUS(ghp_others_open(&b->exec, run->workers, &others), GHP_OK)) return;
    while (ghp_others_all(others).steps < run->steps * run->workers) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, k++);

        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        ghp_others_mine(others)->steps++;
        CHECK_STATUS(ghp_others_tell(others), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    CHECK_STATUS(ghp_others_meet(others), GHP_OK);
    CHECK(ghp_others_all(others).steps >= run->steps * run->workers);
    CHECK_NEAR(sum_over(run->workers, (double)k), (double)ghp_others_all(others).steps, 0);
    ghp_others_close(others);
    run->own_steps = k;
}

static void note_sums(struct bench *b, struct run *run, struct ghp_worker *worker)
{
    const struct ghp_hyperparameters none = {.learning_rate = 0};
    struct ghp_training_config still = b->training_config;
    double x[2], own[2];

    own[0] = weigh_all(worker, run->workers, &x[0]);
    run->apart = fabs(x[0] - own[0] / run->workers) / fabs(x[0]);
    still.hyperparameters = none;
    still.schedule.base = 0;
    for (int64_t k = 0; k < 4; k++) {
        struct ghp_step step = ghp_training_config_step(&still, run->own_steps + k);

        step.hyperparameters = none;
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    own[1] = weigh_all(worker, run->workers, &x[1]);
    run->moved = fabs(x[1] - x[0]) / fabs(x[0]);
    for (int i = 0; i < 2; i++)
        run->sum[i] = own[i] + x[i];
}

/* So that others are surely ahead of the last worker, if nobody holds them. */
static void steps_in_turn(struct bench *b, const struct run *run, struct ghp_worker *worker)
{
    bool last = b->rank_plan.rank == run->workers - 1;

    if (last) sum_over(run->workers, 0);
    CHECK_STATUS(bench_steps(b, worker, 0, run->steps), GHP_OK);
    if (!last) sum_over(run->workers, 0);
}

/* The weights against one worker's at the global batch. */
static bool weights_pass(struct bench *b, struct ghp_worker *worker)
{
    struct ghp_snapshot mixed = {0};
    struct ghp_verification v = {0};
    bool passed;

    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &mixed), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&mixed, worker), GHP_OK);
    for (int i = 0; i < mixed.list.n_params; i++)
        memcpy(mixed.gradients[i], b->alone.gradients[i],
               (size_t)mixed.list.items[i].param->elements * sizeof(double));
    CHECK_STATUS(
        ghp_verify_compare(&mixed, &b->alone,
                           (struct ghp_precision){b->rank_plan.lowering.element_bytes, false}, &v),
        GHP_OK);
    passed = v.passed;
    ghp_verification_release(&v);
    ghp_snapshot_release(&mixed);
    return passed;
}

static struct ghp_worker *open_worker(struct bench *b, const struct ghp_rank_plan *rank_plan)
{
    struct ghp_worker *worker;

    return CHECK_STATUS(bench_open_worker(b, rank_plan, &worker), GHP_OK) ? worker : NULL;
}

static void train(struct bench *b, struct run *run)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_worker *worker;
    struct ghp_split *splits;

    rank_plan.lowering.problem.workers = rank_plan.run.groups = run->workers;
    splits = case_splits(&b->model, rank_plan.lowering.problem, CASE_DATA, 0, 1);
    rank_plan.splits = splits;
    rank_plan.run.fault = run->fault;
    if (run->slow_s > 0)
        rank_plan.run.emulated_step_s =
            rank_plan.rank == run->workers - 1 ? run->slow_s : run->slow_s / 10;
    if (run->sync != NULL)
        CHECK_STATUS(ghp_sync_parse(run->sync, &rank_plan.lowering.method.sync), GHP_OK);
    if (run->servers > 0) rank_plan.lowering.method.sync.servers = run->servers;
    rank_plan.run.mixing = &ghp_mixing;
    if (serves(b, run, &rank_plan)) {
        free(splits);
        return;
    }
    worker = open_worker(b, &rank_plan);
    if (worker != NULL) {
        CHECK_EQ(ghp_worker_arena(worker)->bytes, ghp_worker_program(worker)->peak_bytes);
        run->own_steps = run->steps;
        if (run->together)
            steps_together(b, run, worker);
        else if (run->in_turn)
            steps_in_turn(b, run, worker);
        else
            CHECK_STATUS(bench_steps(b, worker, 0, run->steps), GHP_OK);
        if (run->sync != NULL && rank_plan.lowering.element_bytes == 8) run->weight = weigh(worker);
        if (run->like_one) run->like_one = weights_pass(b, worker);
        run->mixed = ghp_worker_mixed(worker);
        run->weight_bytes = ghp_worker_program(worker)->buckets[0].bytes;
        if (run->gossips)
            note_gossip(b, run, worker);
        else if (run->sync != NULL && rank_plan.lowering.element_bytes == 8)
            note_sums(b, run, worker);
        if (run->workers == 1) run->hash = bench_fingerprint(worker);
    }
    ghp_worker_close(worker);
    free(splits);
}

/* ---- what each keeps ---- */

static void check_alone(struct bench *b, int servers)
{
    static const char *const same[] = {"asp", "ssp:0", "ssp:3", "ssp:2,free"}, *const gossip[] = {
                                                                                   "gosgd:0.5",
                                                                                   "ad-psgd"};
    struct run one = {.workers = 1, .steps = 7};

    train(b, &one);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct run run = {.sync = same[i], .workers = 1, .servers = servers, .steps = 7};

        train(b, &run);
        CHECK(run.hash == one.hash);
    }
    for (size_t i = 0; i < sizeof gossip / sizeof *gossip; i++) {
        struct run run = {.sync = gossip[i], .workers = 1, .steps = 7};

        train(b, &run);
        CHECK(run.hash == one.hash);
    }
}

static bool is_worker(const struct bench *b, const struct run *run)
{
    return b->rank_plan.rank < run->workers;
}

static bool is_server(const struct bench *b, const struct run *run)
{
    return b->rank_plan.rank == run->workers;
}

static void check_asp(struct bench *b, int workers, enum ghp_fault fault)
{
    struct run run = {.sync = "asp",
                      .workers = workers,
                      .servers = 1,
                      .steps = 60,
                      .together = true,
                      .slow_s = .005,
                      .fault = fault};
    double stale;

    train(b, &run);
    if (is_server(b, &run)) {
        stale = run.served.stale / (double)run.served.received;
        CHECK((run.served.versions == run.served.received) == (fault == GHP_FAULT_NONE));
        CHECK(fault != GHP_FAULT_NONE || (stale <= workers - 1 && stale >= .95 * (workers - 1)));
    }
    if (!is_worker(b, &run)) return;
    CHECK_EQ(run.mixed.sent_bytes, run.own_steps * run.weight_bytes);
    CHECK_EQ(run.mixed.received_bytes, run.own_steps * run.weight_bytes);
}

static void check_ssp(struct bench *b, int workers, bool free, enum ghp_fault fault)
{
    struct run run = {.sync = free ? "ssp:2,free" : "ssp:2",
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
    train(b, &run);
    if (is_server(b, &run) && !free) CHECK((run.served.most_gap <= 3) == (fault == GHP_FAULT_NONE));
    if (is_server(b, &run)) CHECK_EQ(run.served.versions, run.served.received);
    if (!is_worker(b, &run)) return;
    CHECK_EQ(run.mixed.sent_bytes, run.steps * run.weight_bytes);
    if (free) CHECK_EQ(run.mixed.received_bytes, run.steps / 3 * run.weight_bytes);
}

/* Without decay, which servers take from weights that others' gradients have moved already. */
static void check_ssp_zero(struct bench *b, int workers, enum ghp_fault fault)
{
    const struct ghp_hyperparameters usual = b->training_config.hyperparameters;
    struct run run = {.sync = "ssp:0",
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
    train(b, &run);
    if (is_worker(b, &run)) CHECK(run.like_one == (fault == GHP_FAULT_NONE));
    b->training_config.hyperparameters = usual;
}

static void check_easgd(struct bench *b, int workers, enum ghp_fault fault)
{
    struct run run = {
        .sync = "easgd:2", .workers = workers, .servers = 1, .steps = 9, .fault = fault};
    bool kept;

    train(b, &run);
    if (!is_worker(b, &run)) return;
    kept = fabs(run.sum[1] - run.sum[0]) <= 1e-12 * fabs(run.sum[0]);
    CHECK(kept == (fault == GHP_FAULT_NONE));
    CHECK(fault != GHP_FAULT_NONE || run.moved > 1e-9); /* something was exchanged */
    CHECK_EQ(run.mixed.sent_bytes, 9 / 2 * run.weight_bytes);
    CHECK_EQ(run.mixed.received_bytes, 9 / 2 * run.weight_bytes);
}

static void check_aladdin(struct bench *b, int workers, int servers, enum ghp_fault fault)
{
    struct run run = {
        .sync = "aladdin:2", .workers = workers, .servers = servers, .steps = 9, .fault = fault};
    bool good = fault != GHP_FAULT_DROP_REDUCTION;

    train(b, &run);
    if (is_server(b, &run)) {
        CHECK((run.served.received == run.served.triggered + run.served.left) == good);
        CHECK(run.served.most_count < 2 && run.served.versions > 0);
    }
    if (!is_worker(b, &run)) return;
    CHECK_EQ(run.mixed.sent_bytes, 9 * run.weight_bytes);
    CHECK(run.mixed.received_bytes <= 9 / 2 * run.weight_bytes);
    CHECK((run.apart < 1e-12) == (fault == GHP_FAULT_NO_MIXING));
}

/* One worker by itself is SGD where X comes within a step, which time decides for all but a few: no step is lost. */
static void check_aladdin_alone(struct bench *b)
{
    struct run one = {.sync = "asp", .workers = 1, .servers = 1, .steps = 30}, none = one,
               run = one;

    run.sync = "aladdin:2";
    run.slow_s = .02;
    none.steps = 0;
    train(b, &none);
    train(b, &one);
    train(b, &run);
    if (is_worker(b, &run))
        CHECK_NEAR(run.weight, one.weight, .05 * fabs(one.weight - none.weight));
}

/* Returns   messages that this worker has sent */
static int64_t check_gosgd(struct bench *b, int workers, enum ghp_fault fault)
{
    struct run run = {.sync = "gosgd:0.25",
                      .workers = workers,
                      .steps = 40,
                      .gossips = true,
                      .by_share = true,
                      .fault = fault};
    double sent, deviation;
    bool lost = fault == GHP_FAULT_DROP_REDUCTION;

    train(b, &run);
    if (!is_worker(b, &run)) return 0;
    CHECK((fabs(run.shares[0] - 1) <= 1e-12) != lost);
    CHECK((fabs(run.shares[1] - 1) <= 1e-12) != lost);
    CHECK((fabs(run.sum[1] - run.sum[0]) <= 1e-12 * fabs(run.sum[0])) == (fault == GHP_FAULT_NONE));
    CHECK_EQ(run.mixed.sent_bytes, run.mixed.exchanges * run.weight_bytes);
    sent = sum_over(workers, (double)run.mixed.sent_bytes) / (double)run.weight_bytes;
    CHECK_NEAR(sum_over(workers, (double)run.mixed.received_bytes) / (double)run.weight_bytes, sent,
               0);
    deviation = sqrt(2 * 40 * workers * .25 * .75);
    CHECK((fabs(sent - 2 * 40 * workers * .25) <= 4 * deviation) != lost);
    return run.mixed.exchanges;
}

static void check_ad_psgd(struct bench *b, int workers, enum ghp_fault fault)
{
    struct run run = {
        .sync = "ad-psgd", .workers = workers, .steps = 8, .gossips = true, .fault = fault};
    bool asked = fault != GHP_FAULT_NO_MIXING, active = b->rank_plan.rank % 2 == 1;

    train(b, &run);
    if (!is_worker(b, &run)) return;
    CHECK((fabs(run.sum[1] - run.sum[0]) <= 1e-12 * fabs(run.sum[0])) ==
          (fault != GHP_FAULT_DROP_REDUCTION));
    CHECK(fault != GHP_FAULT_NONE || run.mixed.exchanges == 0 || run.moved > 1e-9);
    CHECK_EQ(run.mixed.sent_bytes, run.mixed.exchanges * run.weight_bytes);
    CHECK_EQ(run.mixed.received_bytes, run.mixed.exchanges * run.weight_bytes);
    CHECK(!active || (run.mixed.exchanges == 2 * run.steps) == asked);
    CHECK_NEAR(sum_over(workers, (double)run.mixed.exchanges),
               2 * sum_over(workers, active ? (double)run.mixed.exchanges : 0), 0);
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
    CHECK_STATUS(ghp_arena_open(ghp_exec_context_device(&b->exec), &program, NULL, &arena), GHP_OK);
    CHECK(program.n_buffers <= 512);
    for (int i = 0; i < program.n_buffers; i++)
        address[i] = ghp_arena_at(&arena, &program, i);
    CHECK_STATUS(
        ghp_mixer_open(&(struct ghp_mixer_place){&b->exec, &rank_plan.run, &program, &numbers},
                       &mixer),
        GHP_OK);
    CHECK_STATUS(ghp_mixer_connect(mixer), GHP_OK);
    CHECK_STATUS(ghp_mixer_begin(mixer, address), GHP_OK);
    sum = sum_over(workers, walk(mixer, rank_plan.rank, 60, weights_at(&program, &arena)));
    for (int64_t i = 0; i < weights_at(&program, &arena).n; i++)
        first += rank_plan.rank + (double)(i % 7);
    first = sum_over(workers, first);
    CHECK((fabs(sum - first) <= 1e-12 * first) == (fault == GHP_FAULT_NONE));
    ghp_mixer_close(mixer);
    ghp_arena_close(&arena);
    ghp_program_release(&program);
    free((void *)(uintptr_t)rank_plan.splits);
}

/* All meet behind each step, so that time decides nothing. */
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
    rank_plan.run.mixing = &ghp_mixing;
    CHECK_STATUS(ghp_sync_parse("gosgd:0.5", &rank_plan.lowering.method.sync), GHP_OK);
    bench_make_folder(transport, workers, "mixing", path);
    for (int resumed = 0; resumed < 2; resumed++) {
        struct ghp_checkpoint found = {0};
        struct ghp_worker *worker = open_worker(b, &rank_plan);

        if (worker == NULL) return;
        if (resumed) CHECK_STATUS(ghp_checkpoint_load(&folder, worker, &found), GHP_OK);
        if (!resumed) steps_meeting(b, worker, 0, now.step);
        if (!resumed) CHECK_STATUS(ghp_checkpoint_save(&folder, worker, now), GHP_OK);
        CHECK(sum_over(workers, fabs(workers * ghp_worker_mixed(worker).share - 1)) > .1);
        CHECK_NEAR(sum_over(workers, ghp_worker_mixed(worker).share), 1, 1e-12);
        steps_meeting(b, worker, now.step, 3 * now.step);
        if (resumed) CHECK_NEAR(weigh(worker), whole, 1e-12 * fabs(whole));
        whole = weigh(worker);
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

CHECK_TEST(mixing)
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
        check_gossip(&b, n == 5 ? 4 : n); /* workers that divide the batch */
        n = n - 1 == 4 ? 4 : n - 1 == 3 ? 3 : 2;
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
