/* ghp-test: np=4 np_full=2,3 timeout=300
 *
 * Workers whose weights mix in step, without servers. By `lsgd`: all of a group have the same leader's weights, whose
 * own pull leaves its bits; ties go to the first worker; every worker names the same leaders; bytes are those of
 * docs/synchronisers.md. By `dgd`: mixing keeps the sum of all workers' weights, and on the complete graph, without
 * momentum, all go the way of one worker. Both train to the weights of one process that trains the replicas in turn;
 * one worker trains to the bits of SGD; a training goes on from its checkpoint to the bits of one that nobody
 * interrupted. Each is seen to fail with a fault. */
#include "core/base/hash.h"
#include "executor/mixing/mixer_private.h"
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 10 };

static struct ghp_transport *transport;
static struct ghp_comm *world;
static int workers;
static char folder[BENCH_FOLDER];

/* Room of its own for splits, which the worker borrows. */
static struct ghp_worker *open(struct bench *b, const char *sync, enum ghp_fault fault,
                               struct ghp_split **splits)
{
    struct ghp_worker *worker;

    b->rank_plan.lowering.method.sync = (struct ghp_sync){0};
    if (sync != NULL)
        CHECK_STATUS(ghp_sync_parse(sync, &b->rank_plan.lowering.method.sync), GHP_OK);
    b->rank_plan.run.fault = fault;
    b->rank_plan.run.mixing = &ghp_mixing;
    *splits = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    b->rank_plan.splits = *splits;
    CHECK_STATUS(bench_open_worker(b, &b->rank_plan, &worker), GHP_OK);
    return worker;
}

static void end(struct bench *b, struct ghp_worker *worker, struct ghp_split *splits)
{
    ghp_worker_close(worker);
    free(splits);
    b->rank_plan.lowering.method.sync = (struct ghp_sync){0};
    b->rank_plan.run.fault = GHP_FAULT_NONE;
}

/* What every worker says; nobody goes on before all have. */
static const struct ghp_control_message *tell(double mine)
{
    static struct ghp_control_message alone;
    const struct ghp_control_message *messages = &alone;

    alone.value = mine;
    CHECK_STATUS(transport->control->ops->tell(transport->control, world,
                                               (struct ghp_control_message){.value = mine},
                                               &messages),
                 GHP_OK);
    return messages;
}

/* A number that tells bits of all weights, or of a copy of them, apart. */
static double bits_of(struct ghp_worker *worker, enum ghp_buffer_kind kind)
{
    const struct ghp_model *model = ghp_worker_program(worker)->lowering.model;
    uint64_t hash = GHP_HASH_SEED;

    for (int l = 0; l < model->n_layers; l++)
        for (int p = 0; p < model->layers[l].n_params; p++) {
            int64_t n = 0;
            const void *at = ghp_worker_tensor(worker, kind, l, p, &n);

            CHECK(at != NULL);
            hash = ghp_hash(at, (size_t)n * sizeof(double), hash);
        }
    return (double)(hash >> 12);
}

/* ---- lsgd ---- */

static void check_ties(void)
{
    const struct ghp_control_message losses[6] = {{.value = 3}, {.value = 2}, {.value = 2},
                                                  {.value = 1}, {.value = 1}, {.value = 4}};

    CHECK_EQ(ghp_mixer_leader(losses, 0, 3), 1);
    CHECK_EQ(ghp_mixer_leader(losses, 3, 3), 3);
    CHECK_EQ(ghp_mixer_leader(losses, 0, 6), 3);
    CHECK_EQ(ghp_mixer_leader(losses, 5, 1), 5);
}

/* Whether `count` workers from `first` on have one leader, whose weights are still what it gave them. */
static bool follow_one(struct ghp_worker *worker, enum ghp_buffer_kind kind, int first, int count)
{
    double *own = ghp_alloc((size_t)workers, sizeof *own), given;
    const struct ghp_control_message *messages = tell(bits_of(worker, GHP_BUFFER_WEIGHT));
    bool same = true, kept = false;

    for (int i = 0; i < workers; i++)
        own[i] = messages[i].value;
    messages = tell(bits_of(worker, kind));
    given = messages[first].value;
    for (int i = first; i < first + count; i++) {
        same = same && messages[i].value == given;
        kept = kept || own[i] == given;
    }
    free(own);
    return same && kept;
}

static void check_leaders(struct bench *b, enum ghp_fault fault)
{
    int groups = workers == 4 ? 2 : 1,
        size = workers / groups; /* alone in a group a worker shows nothing */
    char sync[32];
    struct ghp_split *splits;
    struct ghp_worker *worker;
    bool all, good = true;

    snprintf(sync, sizeof sync, "lsgd:%d,2", groups);
    worker = open(b, sync, fault, &splits);
    CHECK_STATUS(bench_steps(b, worker, 0, 2), GHP_OK);
    for (int g = 0; g < groups; g++)
        good = follow_one(worker, GHP_BUFFER_FIRST_COPY, g * size, size) && good;
    CHECK_STATUS(bench_steps(b, worker, 2, 8), GHP_OK);
    all =
        follow_one(worker, groups > 1 ? GHP_BUFFER_SECOND_COPY : GHP_BUFFER_FIRST_COPY, 0, workers);
    CHECK((good && all) == (fault == GHP_FAULT_NONE));
    end(b, worker, splits);
}

/* Of 8 steps: the program's and docs/synchronisers.md's bytes, by all workers together. */
static void check_leader_bytes(struct bench *b)
{
    int groups = workers % 2 == 0 ? 2 : 1, size = workers / groups;
    char sync[32];
    struct ghp_split *splits;
    struct ghp_worker *worker;
    struct ghp_mix_count count;
    const struct ghp_control_message *messages;
    double sent = 0, pieces = groups > 1 ? 4 * (workers - groups) + workers - 1 : 4 * (size - 1);

    snprintf(sync, sizeof sync, "lsgd:%d,2", groups);
    worker = open(b, sync, GHP_FAULT_NONE, &splits);
    CHECK_STATUS(bench_steps(b, worker, 0, 8), GHP_OK);
    count = ghp_worker_mixed(worker);
    messages = tell((double)count.sent_bytes);
    for (int i = 0; i < workers; i++)
        sent += messages[i].value;
    messages = tell((double)count.received_bytes);
    for (int i = 0; i < workers; i++)
        sent -= messages[i].value / 2;
    CHECK_NEAR(2 * sent, pieces * (double)ghp_worker_program(worker)->buckets[0].bytes, 0);
    for (int i = 0; i < ghp_worker_program(worker)->n_instrs; i++)
        if (ghp_worker_program(worker)->instrs[i].kind == GHP_INSTR_MIX)
            CHECK_NEAR(ghp_worker_program(worker)->instrs[i].mix.traffic.out * 8 * workers, pieces,
                       1e-9);
    CHECK_EQ(count.mixes, 8);
    messages = tell((double)count.led_most * 64 + (double)count.led_least);
    for (int i = 0; i < workers; i++)
        CHECK_NEAR(messages[i].value, messages[0].value, 0);
    CHECK(count.led_most > 0 && count.led_most <= 4);
    end(b, worker, splits);
}

/* ---- dgd ---- */

/* Of each worker's weights, each times another number, over all workers. */
static double weigh_all(struct ghp_worker *worker)
{
    const struct ghp_bucket *bucket = &ghp_worker_program(worker)->buckets[0];
    const double *x =
        ghp_arena_at(ghp_worker_arena(worker), ghp_worker_program(worker), bucket->weights);
    const struct ghp_control_message *messages;
    double sum = 0;

    for (int64_t i = 0; i < bucket->bytes / (int64_t)sizeof *x; i++)
        sum += x[i] * (1 + (double)(i % 17));
    messages = tell(sum);
    sum = 0;
    for (int i = 0; i < workers; i++)
        sum += messages[i].value;
    return sum;
}

/* Steps at rate 0 mix alone: the sum stays, and workers come together. */
static void check_sum(struct bench *b, const char *sync, enum ghp_fault fault)
{
    struct ghp_split *splits;
    struct ghp_worker *worker = open(b, sync, fault, &splits);
    struct ghp_mix_count count;
    struct ghp_graph graph = b->rank_plan.lowering.method.sync.graph;
    double before, after;

    CHECK_STATUS(bench_steps(b, worker, 0, 3), GHP_OK);
    before = weigh_all(worker);
    for (int64_t k = 3; k < 6; k++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, k);

        step.hyperparameters = (struct ghp_hyperparameters){.learning_rate = 0};
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    after = weigh_all(worker);
    CHECK((fabs(after - before) <= 1e-12 * fabs(before)) == (fault == GHP_FAULT_NONE));
    count = ghp_worker_mixed(worker);
    CHECK_EQ(count.sent_bytes, 6 * ghp_graph_degree(&graph, workers, b->rank_plan.rank) *
                                   ghp_worker_program(worker)->buckets[0].bytes);
    CHECK_EQ(count.received_bytes, count.sent_bytes);
    end(b, worker, splits);
}

static void train_alone_without_momentum(struct bench *b)
{
    const struct ghp_hyperparameters usual = b->training_config.hyperparameters;

    b->training_config.hyperparameters.momentum = 0;
    CHECK_STATUS(bench_train_alone(b), GHP_OK);
    b->training_config.hyperparameters = usual;
}

/* Without momentum: the mean of all is what one worker makes of the mean gradient. */
static bool goes_like_one(struct bench *b, const char *sync, enum ghp_fault fault)
{
    const struct ghp_hyperparameters usual = b->training_config.hyperparameters;
    struct ghp_snapshot plan = {0};
    struct ghp_verification v = {0};
    struct ghp_split *splits;
    struct ghp_worker *worker;
    bool passed;

    b->training_config.hyperparameters.momentum = 0;
    worker = open(b, sync, fault, &splits);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, 0, BENCH_STEPS), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&plan, worker), GHP_OK);
    for (int i = 0; i < plan.list.n_params; i++)
        memcpy(plan.gradients[i], b->alone.gradients[i],
               (size_t)plan.list.items[i].param->elements * sizeof(double));
    CHECK_STATUS(ghp_verify_compare(&plan, &b->alone, (struct ghp_precision){8, false}, &v),
                 GHP_OK);
    passed = v.weight_difference < 1e-5;
    b->training_config.hyperparameters = usual;
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    end(b, worker, splits);
    return passed;
}

/* ---- both ---- */

static bool trains_like_reference(struct bench *b, const char *sync, enum ghp_fault fault)
{
    struct ghp_split *splits;
    struct ghp_worker *worker = open(b, sync, fault, &splits);
    bool passed = bench_trains_like_reference(b, worker, &b->rank_plan, STEPS);

    if (!passed && fault == GHP_FAULT_NONE) fprintf(stderr, "%s does not train like it\n", sync);
    end(b, worker, splits);
    return passed;
}

static void check_lone(struct bench *b)
{
    static const char *const syncs[] = {NULL, "lsgd:1,2", "dgd:ring"};
    struct bench lone = *b;
    uint64_t hash[3] = {0};

    lone.rank_plan.lowering.problem.workers = lone.rank_plan.run.groups = 1;
    lone.rank_plan.rank = 0;
    for (int i = 0; i < 3 && b->rank_plan.rank == 0; i++) {
        struct ghp_split *splits;
        struct ghp_worker *worker = open(&lone, syncs[i], GHP_FAULT_NONE, &splits);

        CHECK_STATUS(bench_steps(&lone, worker, 0, 5), GHP_OK);
        hash[i] = bench_fingerprint(worker);
        end(&lone, worker, splits);
    }
    CHECK(hash[0] == hash[1] && hash[0] == hash[2]);
}

static void check_resume(struct bench *b, const char *sync, int64_t at)
{
    const struct ghp_checkpoint now = {.step = at};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_split *splits;
    struct ghp_worker *worker = open(b, sync, GHP_FAULT_NONE, &splits);
    uint64_t whole_run;

    CHECK_STATUS(bench_steps(b, worker, 0, at), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_save(&kept, worker, now), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, at, STEPS), GHP_OK);
    whole_run = bench_fingerprint_replicas(worker);
    end(b, worker, splits);
    worker = open(b, sync, GHP_FAULT_NONE, &splits);
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, at, STEPS), GHP_OK);
    CHECK(bench_fingerprint_replicas(worker) == whole_run);
    end(b, worker, splits);
    worker = open(b, strncmp(sync, "dgd", 3) == 0 ? "dgd:complete" : "dgd:ring", GHP_FAULT_NONE,
                  &splits);
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_ERR_INPUT);
    end(b, worker, splits);
}

static void check_all(struct bench *b)
{
    const char *leaders = workers % 2 == 0 ? "lsgd:2,2" : "lsgd:1,2";

    check_leaders(b, GHP_FAULT_NONE);
    check_leaders(b, GHP_FAULT_DROP_REDUCTION);
    check_leaders(b, GHP_FAULT_ROUNDED_PULL);
    check_leader_bytes(b);
    CHECK(trains_like_reference(b, leaders, GHP_FAULT_NONE));
    CHECK(trains_like_reference(b, "lsgd:1,3", GHP_FAULT_NONE));
    CHECK(!trains_like_reference(b, leaders, GHP_FAULT_DROP_REDUCTION));
    check_resume(b, leaders, 3);
    check_resume(b, leaders, 9);
    check_sum(b, "dgd:ring", GHP_FAULT_NONE);
    check_sum(b, "dgd:complete", GHP_FAULT_NONE);
    if (workers > 2) check_sum(b, "dgd:ring", GHP_FAULT_DROP_REDUCTION);
    if (workers == 4) check_sum(b, "dgd:0-1,1-2,1-3", GHP_FAULT_NONE);
    train_alone_without_momentum(b);
    CHECK(goes_like_one(b, "dgd:complete", GHP_FAULT_NONE));
    CHECK(!goes_like_one(b, "dgd:complete", GHP_FAULT_DROP_REDUCTION));
    CHECK(trains_like_reference(b, "dgd:ring", GHP_FAULT_NONE));
    if (workers > 2) CHECK(!trains_like_reference(b, "dgd:ring", GHP_FAULT_DROP_REDUCTION));
    check_resume(b, "dgd:ring", 3);
    check_lone(b);
}

CHECK_TEST(leaders)
{
    const struct bench_numbers exact = {
        .ops = &ghp_backend_reference, .element_bytes = 8, .batch = 12};
    struct bench b;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    world = bench_workers(transport, workers);
    check_ties();
    bench_make_folder(transport, workers, "leaders", folder);
    if (CHECK_STATUS(bench_open_by(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", exact),
                     GHP_OK))
        check_all(&b);
    bench_close(&b);
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
