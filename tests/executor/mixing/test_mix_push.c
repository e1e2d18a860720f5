/* ghp-test: np=4 np_full=3 timeout=120
 *
 * Stochastic gradient push. With `sgp` workers train to the weights of one process that trains all replicas in turn; a
 * left-out push is seen; a checkpoint continues to the bits of a training that nobody interrupted, and with another
 * synchroniser it is refused. One worker is SGD bit for bit.
 *
 * A mixer by itself, whose worker's weights nobody changes between two mixes, keeps the sum of all w and of all w z,
 * those of messages under way included, though steps move z by the rate / w. With 2^L workers, after L mixes with `sgp`
 * every z is the mean of the first ones; with overlap z tends to it, while w z is two thirds of it and one third is
 * under way. No message is taken more than TAU steps late. A mix sends all weights and 4 bytes. Faults break
 * each. */
#include "core/program/lower/lower.h"
#include "executor/mixing/flat.h"
#include "executor/mixing/mixer.h"
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct ghp_transport *transport;
static int workers;
static char folder[BENCH_FOLDER];

static double sum_over_all(double mine)
{
    return bench_sum(transport, workers, mine);
}

static double most_over_all(double mine)
{
    double most = 0;

    for (int i = 0; i < workers; i++)
        most = fmax(most, sum_over_all(i == transport->control->rank ? mine : 0));
    return most;
}

/* ---- a mixer by itself ---- */

struct walk {
    const char *sync;
    int element_bytes, steps;
    bool moves; /* steps take something off w z, of each worker another amount */
    enum ghp_fault fault;
    struct ghp_mix_numbers numbers;
    /* found */
    double all;  /* w of all, with messages under way, over N; less 1 */
    double own;  /* this worker's, before all has come */
    double sum;  /* w z of all when all has come, over what they should be; less 1 */
    double mean; /* the furthest z from the mean of the first ones, over it, before all has come */
    double part; /* w z of the same, over that mean */
    int64_t message_bytes; /* that a mix should send */
};

static double value(struct ghp_flat x, int64_t i)
{
    return x.element_bytes == 8 ? ((const double *)x.at)[i] : ((const float *)x.at)[i];
}

static void set_value(struct ghp_flat x, int64_t i, double to)
{
    if (x.element_bytes == 8)
        ((double *)x.at)[i] = to;
    else
        ((float *)x.at)[i] = (float)to;
}

static double first_value(int rank, int64_t i)
{
    return 1 + rank * .25 + (double)(i % 7) + (double)(i % 3 == rank % 3);
}

static double first_mean(int64_t i)
{
    double sum = 0;

    for (int r = 0; r < workers; r++)
        sum += first_value(r, i);
    return sum / workers;
}

/* In more digits than the values have, because the roundings of a double's sum would come near the limit. */
static double sum_of(struct ghp_flat x)
{
    long double sum = 0;

    for (int64_t i = 0; i < x.n; i++)
        sum += value(x, i);
    return (double)sum;
}

/* Everything is there no more than TAU steps late; and what is sent is counted. */
static void check_count(const struct walk *walk, struct ghp_sync sync, struct ghp_mixer *mixer,
                        int k)
{
    struct ghp_mix_count count = ghp_mixer_counted(mixer);

    CHECK_EQ(count.sent_bytes, (k + 1) * walk->message_bytes);
    CHECK(count.received_bytes >= (k + 1 - ghp_sync_staleness(sync)) * walk->message_bytes);
}

/* Mixes of this worker alone, each so long after the one before that messages may be under way. Returns what steps have
 * taken off. */
static double mix(struct walk *walk, const struct ghp_program *program, struct ghp_mixer *mixer,
                  struct ghp_flat z)
{
    const struct timespec pause = {.tv_nsec = 200000};
    int rank = transport->control->rank;
    double taken = 0;

    CHECK_STATUS(ghp_mixer_start(mixer), GHP_OK);
    for (int k = 0; k < walk->steps; k++) {
        struct ghp_step of = {.index = (uint64_t)k};
        double by = walk->moves ? (k % 5 + 1) * (rank + 1) / 256.0 : 0;

        double rate = ghp_mix_rate(program->mixing, &walk->numbers);

        for (int64_t i = 0; i < z.n && walk->moves; i++)
            set_value(z, i, value(z, i) - by * rate);
        taken += by * (double)z.n;
        CHECK_STATUS(ghp_mixer_mix(mixer, &of), GHP_OK);
        check_count(walk, program->method.sync, mixer, k);
        if (rank == k % workers) nanosleep(&pause, NULL);
    }
    return taken;
}

static void note(struct walk *walk, struct ghp_mixer *mixer, struct ghp_flat z, double taken)
{
    struct ghp_mix_count count = ghp_mixer_counted(mixer);
    long double sum = 0;
    double first;

    walk->own = count.sum_weight;
    walk->all =
        sum_over_all(count.sum_weight + count.sent_sum_weight - count.taken_sum_weight) / workers -
        1;
    for (int64_t i = 0; i < z.n; i++) {
        double mean = first_mean(i);

        walk->mean = fmax(walk->mean, fabs(value(z, i) / mean - 1));
        sum += mean;
    }
    first = (double)sum;
    walk->mean = most_over_all(walk->mean);
    walk->part = count.sum_weight * sum_of(z) / first;
    CHECK_STATUS(ghp_mixer_settle(mixer), GHP_OK);
    count = ghp_mixer_counted(mixer);
    CHECK_EQ(count.received_bytes, count.sent_bytes);
    walk->sum =
        sum_over_all(count.sum_weight * sum_of(z)) / (workers * first - sum_over_all(taken)) - 1;
}

static void use_mixer(const struct bench *b, struct walk *walk,
                      const struct ghp_rank_plan *rank_plan, struct ghp_program *program)
{
    struct ghp_arena arena = {0};
    struct ghp_mixer *mixer = NULL;
    const struct ghp_bucket *bucket = &program->buckets[0];
    struct ghp_flat z = {.n = bucket->bytes / walk->element_bytes,
                         .element_bytes = walk->element_bytes};
    void *address[512];

    CHECK_STATUS(ghp_arena_open(ghp_exec_context_device(&b->exec), program, NULL, NULL, &arena),
                 GHP_OK);
    CHECK(program->n_buffers <= 512);
    for (int i = 0; i < program->n_buffers; i++)
        address[i] = ghp_arena_at(&arena, program, i);
    z.at = address[bucket->weights];
    walk->message_bytes = bucket->bytes + 4;
    for (int64_t i = 0; i < z.n; i++)
        set_value(z, i, first_value(rank_plan->rank, i));
    CHECK_STATUS(
        ghp_mixer_open(
            &(struct ghp_mixer_place){&b->exec, &rank_plan->run, program, &walk->numbers}, &mixer),
        GHP_OK);
    CHECK_STATUS(ghp_mixer_connect(mixer), GHP_OK);
    CHECK_STATUS(ghp_mixer_begin(mixer, address), GHP_OK);
    note(walk, mixer, z, mix(walk, program, mixer, z));
    ghp_mixer_close(mixer);
    ghp_arena_close(&arena);
}

static void go(const struct bench *b, struct walk *walk)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_program program = {0};
    struct ghp_split *splits = case_splits(&b->model, rank_plan.lowering.problem, CASE_DATA, 0, 1);

    rank_plan.splits = splits;
    rank_plan.run.fault = walk->fault;
    walk->element_bytes = rank_plan.lowering.element_bytes;
    CHECK_STATUS(ghp_sync_parse(walk->sync, &rank_plan.lowering.method.sync), GHP_OK);
    CHECK_STATUS(ghp_lower(&(struct ghp_lowering){.model = rank_plan.lowering.model,
                                                  .problem = rank_plan.lowering.problem,
                                                  .element_bytes = rank_plan.lowering.element_bytes,
                                                  .method.sync = rank_plan.lowering.method.sync},
                           splits, rank_plan.rank, &program),
                 GHP_OK);
    use_mixer(b, walk, &rank_plan, &program);
    for (int i = 0; i < program.n_instrs; i++)
        if (program.instrs[i].kind == GHP_INSTR_MIX)
            CHECK_EQ(ghp_instr_sent_bytes(&program.instrs[i]), walk->message_bytes);
    ghp_program_release(&program);
    free(splits);
}

static bool is_power(void)
{
    return (workers & (workers - 1)) == 0;
}

static void check_sums(const struct bench *b, const char *sync, enum ghp_fault fault)
{
    double limit = b->rank_plan.lowering.element_bytes == 8 ? 1e-12 : 1e-5;

    /* Nothing moves: what is counted and not added has no sum of its own. */
    for (int moves = fault == GHP_FAULT_NO_MIXING; moves < 2; moves++) {
        struct walk walk = {.sync = sync, .steps = 60, .moves = moves, .fault = fault};

        go(b, &walk);
        CHECK((fabs(walk.all) <= 1e-12) == (fault != GHP_FAULT_DROP_REDUCTION));
        CHECK((fabs(walk.sum) <= limit) == (fault == GHP_FAULT_NONE));
    }
}

/* After L mixes. */
static void check_mean(const struct bench *b, enum ghp_fault fault)
{
    struct walk walk = {.sync = "sgp", .fault = fault};

    while (1 << walk.steps < workers)
        walk.steps++;
    if (!is_power()) return;
    go(b, &walk);
    CHECK((walk.mean <= 1e-6) == (fault == GHP_FAULT_NONE));
    CHECK((walk.own == 1) == (fault == GHP_FAULT_NONE));
}

static void check_overlap(const struct bench *b, enum ghp_fault fault)
{
    struct walk walk = {.sync = "sgp-overlap:1", .steps = 60, .fault = fault};
    bool good = fault == GHP_FAULT_NONE;

    go(b, &walk);
    if (is_power()) CHECK((walk.mean <= 1e-6) == good);
    CHECK((fabs(walk.own - 2.0 / 3) <= 1e-6) == (fault != GHP_FAULT_DROP_REDUCTION));
    if (is_power()) CHECK((fabs(walk.part - 2.0 / 3) <= 1e-6) == good);
}

static void check_mixers(const struct bench *b)
{
    static const char *const all[] = {"sgp", "sgp-overlap:1", "sgp-overlap:3"};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check_sums(b, all[i], GHP_FAULT_NONE);
        check_sums(b, all[i], GHP_FAULT_DROP_REDUCTION);
    }
    check_sums(b, "sgp-overlap:1", GHP_FAULT_NO_MIXING);
    check_mean(b, GHP_FAULT_NONE);
    check_mean(b, GHP_FAULT_DROP_REDUCTION);
    check_overlap(b, GHP_FAULT_NONE);
    check_overlap(b, GHP_FAULT_DROP_REDUCTION);
    check_overlap(b, GHP_FAULT_NO_MIXING);
}

/* ---- training ---- */

static bool open_worker(struct bench *b, const char *sync, enum ghp_fault fault,
                        struct ghp_worker **worker)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;

    rank_plan.splits = case_splits(&b->model, rank_plan.lowering.problem, CASE_DATA, 0, 1);
    rank_plan.run.mixing = &ghp_host_mixer;
    rank_plan.run.fault = fault;
    if (sync != NULL) CHECK_STATUS(ghp_sync_parse(sync, &rank_plan.lowering.method.sync), GHP_OK);
    return CHECK_STATUS(bench_open_worker(b, &rank_plan, worker), GHP_OK);
}

/* Trains with sgp, and compares with what one process makes of the same. */
static bool trains_like_reference(struct bench *b, enum ghp_fault fault)
{
    struct ghp_rank_plan like = b->rank_plan;
    struct ghp_worker *worker;
    bool passed;

    like.splits = case_splits(&b->model, like.lowering.problem, CASE_DATA, 0, 1);
    like.lowering.method.sync.ops = &ghp_sync_sgp;
    passed = open_worker(b, "sgp", fault, &worker) &&
             bench_trains_like_reference(b, worker, &like, BENCH_STEPS);
    ghp_worker_close(worker);
    free((void *)(uintptr_t)like.splits);
    return passed;
}

static void check_resume(struct bench *b, const char *sync)
{
    const struct ghp_checkpoint now = {.step = 3};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_worker *worker;
    uint64_t whole_run = 0;

    if (open_worker(b, sync, GHP_FAULT_NONE, &worker)) {
        CHECK_STATUS(bench_steps(b, worker, 0, 3), GHP_OK);
        CHECK_STATUS(ghp_checkpoint_save(&kept, worker, now), GHP_OK);
        CHECK_STATUS(bench_steps(b, worker, 3, 6), GHP_OK);
        whole_run = bench_fingerprint_replicas(worker);
    }
    ghp_worker_close(worker);
    if (open_worker(b, sync, GHP_FAULT_NONE, &worker)) {
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
        CHECK_STATUS(bench_steps(b, worker, 3, 6), GHP_OK);
        CHECK(bench_fingerprint_replicas(worker) == whole_run);
    }
    ghp_worker_close(worker);
    if (open_worker(b, "sgp-overlap:2", GHP_FAULT_NONE, &worker))
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_ERR_INPUT);
    ghp_worker_close(worker);
}

/* One worker by itself, on each rank. */
static void check_lone(const struct bench *b)
{
    static const char *const all[] = {NULL, "sgp", "sgp-overlap:1", "sgp-overlap:3"};
    struct bench lone = *b;
    uint64_t hash[4] = {0};

    lone.rank_plan.lowering.problem.workers = lone.rank_plan.run.groups = 1;
    lone.rank_plan.rank = 0;
    for (int i = 0; i < 4 && b->rank_plan.rank == 0; i++) {
        struct ghp_worker *worker;

        if (!open_worker(&lone, all[i], GHP_FAULT_NONE, &worker)) break;
        CHECK_STATUS(bench_steps(&lone, worker, 0, BENCH_STEPS), GHP_OK);
        hash[i] = bench_fingerprint(worker);
        CHECK(hash[i] == hash[0]);
        ghp_worker_close(worker);
    }
}

static void check_training(struct bench_numbers numbers)
{
    struct bench b;

    if (CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", numbers),
                     GHP_OK)) {
        CHECK(trains_like_reference(&b, GHP_FAULT_NONE));
        CHECK(!trains_like_reference(&b, GHP_FAULT_DROP_REDUCTION));
        check_resume(&b, "sgp");
        check_resume(&b, "sgp-overlap:1");
        check_lone(&b);
        check_mixers(&b);
    }
    bench_close(&b);
}

CHECK_TEST(mix_push)
{
    const struct bench_numbers exact = {.ops = &ghp_backend_reference, .element_bytes = 8},
                               fast = {.ops = &ghp_backend_onednn, .element_bytes = 4};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    bench_make_folder(transport, workers, "push", folder);
    check_training(exact);
    check_training(fast);
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
