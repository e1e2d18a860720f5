/* ghp-test: np=3 np_full=4,5 timeout=300
 *
 * Mixes of weights with servers, what each must keep, and the fault that breaks it. One worker by `asp` and `ssp` is
 * SGD bit for bit, with one server and with several. By `asp` servers update as often as gradients come, and these lack
 * N - 1 updates in the mean, less what the ends cost. By `ssp` no worker is more than S + 1 steps ahead of the slowest.
 * By `easgd` an exchange keeps the sum of both sides' weights. By `aladdin` every message is counted at one trigger or
 * none yet, and without mixing the servers' weights are the workers' mean. Bytes are those of docs/synchronisers.md. */
#include "core/base/file.h"
#include "executor/mixing/mixer.h"
#include "executor/state/parameters.h"
#include "executor/train/others.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <math.h>
#include <stdlib.h>

static struct ghp_transport *transport;

struct run { /* how workers train, and what was found */
    const char *sync;
    int workers, servers;
    int64_t steps; /* of each; or, where they end together, of all over N */
    bool together;
    bool in_turn;  /* the last worker begins when the others have done all of theirs */
    double slow_s; /* of a step of the last worker, of the others a tenth; 0: what it takes */
    enum ghp_fault fault;
    /* found: of the first server; of this worker */
    struct ghp_mix_server_count served;
    struct ghp_mix_count mixed;
    int64_t own_steps, weight_bytes;
    double sum[2], moved; /* of all workers' weights and X, before and behind steps at rate 0 */
    double apart;         /* X from the workers' mean, over the norm */
    uint64_t hash;
};

static bool serves(struct bench *b, struct run *run, const struct ghp_work *work)
{
    struct ghp_mix_server *server = NULL;
    int number = b->work.rank - run->workers;

    if (number < 0) return false;
    if (number >= run->servers) return true;
    if (!CHECK_STATUS(ghp_mix_server_open(&b->exec, work, number, &server), GHP_OK)) return true;
    CHECK_EQ(ghp_mix_server_arena(server)->bytes, ghp_mix_server_program(server)->peak_bytes);
    CHECK_STATUS(ghp_mix_server_connect(server), GHP_OK);
    CHECK_STATUS(ghp_mix_server_run(server), GHP_OK);
    run->served = ghp_mix_server_counted(server);
    ghp_mix_server_close(server);
    return true;
}

/* ---- sums over all workers ---- */

static struct ghp_comm *all_workers(int n)
{
    struct ghp_comm *world = NULL;

    CHECK_STATUS(ghp_collectives_group(transport->host, (struct ghp_ranks){.count = n, .stride = 1},
                                       GHP_STREAM_COMPUTE, &world),
                 GHP_OK);
    world->label = "a test";
    return world;
}

static double sum_over(int workers, double mine)
{
    const struct ghp_word *words;
    double sum = 0;

    if (workers == 1) return mine;
    CHECK_STATUS(transport->control->ops->tell(transport->control, all_workers(workers),
                                               (struct ghp_word){.value = mine}, &words),
                 GHP_OK);
    for (int i = 0; i < workers; i++)
        sum += words[i].value;
    return sum;
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
    bool last = b->work.rank == run->workers - 1;

    if (last) sum_over(run->workers, 0);
    CHECK_STATUS(bench_steps(b, worker, 0, run->steps), GHP_OK);
    if (!last) sum_over(run->workers, 0);
}

static void train(struct bench *b, struct run *run)
{
    struct ghp_work work = b->work;
    struct ghp_worker *worker = NULL;
    struct ghp_split *splits;

    work.problem.workers = work.groups = run->workers;
    splits = case_splits(&b->model, work.problem, CASE_DATA, 0, 1);
    work.splits = splits;
    work.fault = run->fault;
    if (run->slow_s > 0)
        work.emulated_step_s = work.rank == run->workers - 1 ? run->slow_s : run->slow_s / 10;
    if (run->sync != NULL) CHECK_STATUS(ghp_sync_parse(run->sync, &work.sync), GHP_OK);
    if (run->servers > 0) work.sync.servers = run->servers;
    work.mixing = &ghp_mixing;
    if (serves(b, run, &work)) {
        free(splits);
        return;
    }
    if (CHECK_STATUS(ghp_worker_open(&b->exec, &work, &worker), GHP_OK)) {
        CHECK_STATUS(ghp_worker_connect(worker), GHP_OK);
        CHECK_STATUS(ghp_worker_allocate(worker), GHP_OK);
        CHECK_STATUS(ghp_parameters_init(worker, BENCH_SEED), GHP_OK);
        CHECK_EQ(ghp_worker_arena(worker)->bytes, ghp_worker_program(worker)->peak_bytes);
        run->own_steps = run->steps;
        if (run->together)
            steps_together(b, run, worker);
        else if (run->in_turn)
            steps_in_turn(b, run, worker);
        else
            CHECK_STATUS(bench_steps(b, worker, 0, run->steps), GHP_OK);
        run->mixed = ghp_worker_mixed(worker);
        run->weight_bytes = ghp_worker_program(worker)->buckets[0].bytes;
        if (run->sync != NULL && work.element_bytes == 8) note_sums(b, run, worker);
        if (run->workers == 1) run->hash = bench_fingerprint(worker);
    }
    ghp_worker_close(worker);
    free(splits);
}

/* ---- what each keeps ---- */

static void check_alone(struct bench *b, int servers)
{
    static const char *const same[] = {"asp", "ssp:0", "ssp:3", "ssp:2,free"};
    struct run one = {.workers = 1, .steps = 7};

    train(b, &one);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct run run = {.sync = same[i], .workers = 1, .servers = servers, .steps = 7};

        train(b, &run);
        CHECK(run.hash == one.hash);
    }
}

static bool is_worker(const struct bench *b, const struct run *run)
{
    return b->work.rank < run->workers;
}

static bool is_server(const struct bench *b, const struct run *run)
{
    return b->work.rank == run->workers;
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
        n = n - 1 == 4 ? 4 : n - 1 == 3 ? 3 : 2; /* workers that divide the batch */
        check_asp(&b, n, GHP_FAULT_NONE);
        check_asp(&b, n, GHP_FAULT_DROP_REDUCTION);
        check_ssp(&b, n, false, GHP_FAULT_NONE);
        check_ssp(&b, n, true, GHP_FAULT_NONE);
        check_ssp(&b, n, false, GHP_FAULT_DROP_REDUCTION);
        check_easgd(&b, n, GHP_FAULT_NONE);
        check_easgd(&b, n, GHP_FAULT_DROP_REDUCTION);
        check_aladdin(&b, n, 1, GHP_FAULT_NONE);
        check_aladdin(&b, n, 1, GHP_FAULT_NO_MIXING);
        check_aladdin(&b, n, 1, GHP_FAULT_DROP_REDUCTION);
    }
    bench_close(&b);
    ghp_transport_end(transport);
    return check_end();
}
