/* ghp-test: np=4 np_full=3 timeout=300
 *
 * `lsgd`, whose workers are pulled to leaders. All of a group have the same leader's weights, whose own pull leaves its
 * bits; ties go to the first worker; every worker names the same leaders; bytes are those of
 * docs/reference/synchronisers.md. Workers train to the weights of one process that trains the replicas in turn; one
 * worker trains to the bits of SGD; a training continues from its checkpoint to the bits of one that nobody
 * interrupted. Each is seen to fail with a fault. */
#include "core/base/hash.h"
#include "executor/mixing/mixer_private.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/mixing/in_step.h"

#include <stdio.h>
#include <stdlib.h>

static int workers;

/* A number that tells bits of all weights, or of a copy of them, apart. */
static double bits_of(struct ghp_worker *worker, enum ghp_buffer_kind kind)
{
    const struct ghp_model *model = ghp_worker_program(worker)->model;
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
static bool follow_one(const struct bench *b, struct ghp_worker *worker, enum ghp_buffer_kind kind,
                       int first, int count)
{
    double *own = ghp_alloc((size_t)workers, sizeof *own), given;
    const struct ghp_control_message *messages =
        in_step_tell(b, bits_of(worker, GHP_BUFFER_WEIGHT));
    bool same = true, kept = false;

    for (int i = 0; i < workers; i++)
        own[i] = messages[i].value;
    messages = in_step_tell(b, bits_of(worker, kind));
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
    worker = in_step_open(b, sync, fault, &splits);
    CHECK_STATUS(bench_steps(b, worker, 0, 2), GHP_OK);
    for (int g = 0; g < groups; g++)
        good = follow_one(b, worker, GHP_BUFFER_FIRST_COPY, g * size, size) && good;
    CHECK_STATUS(bench_steps(b, worker, 2, 8), GHP_OK);
    all = follow_one(b, worker, groups > 1 ? GHP_BUFFER_SECOND_COPY : GHP_BUFFER_FIRST_COPY, 0,
                     workers);
    CHECK((good && all) == (fault == GHP_FAULT_NONE));
    in_step_end(b, worker, splits);
}

/* Of 8 steps: the program's and docs/reference/synchronisers.md's bytes, by all workers together. */
static void check_leader_bytes(struct bench *b)
{
    int groups = workers % 2 == 0 ? 2 : 1, size = workers / groups;
    char sync[32];
    struct ghp_split *splits;
    struct ghp_worker *worker;
    struct ghp_mix_count count;
    const struct ghp_control_message *messages;
    double sent = 0, copies = groups > 1 ? 4 * (workers - groups) + workers - 1 : 4 * (size - 1);

    snprintf(sync, sizeof sync, "lsgd:%d,2", groups);
    worker = in_step_open(b, sync, GHP_FAULT_NONE, &splits);
    CHECK_STATUS(bench_steps(b, worker, 0, 8), GHP_OK);
    count = ghp_worker_mixed(worker);
    messages = in_step_tell(b, (double)count.sent_bytes);
    for (int i = 0; i < workers; i++)
        sent += messages[i].value;
    messages = in_step_tell(b, (double)count.received_bytes);
    for (int i = 0; i < workers; i++)
        sent -= messages[i].value / 2;
    CHECK_NEAR(2 * sent, copies * (double)ghp_worker_program(worker)->buckets[0].bytes, 0);
    for (int i = 0; i < ghp_worker_program(worker)->n_instrs; i++)
        if (ghp_worker_program(worker)->instrs[i].kind == GHP_INSTR_MIX)
            CHECK_NEAR(ghp_worker_program(worker)->instrs[i].mix.traffic.out * 8 * workers, copies,
                       1e-9);
    CHECK_EQ(count.mixes, 8);
    messages = in_step_tell(b, (double)count.led_most * 64 + (double)count.led_least);
    for (int i = 0; i < workers; i++)
        CHECK_NEAR(messages[i].value, messages[0].value, 0);
    CHECK(count.led_most > 0 && count.led_most <= 4);
    in_step_end(b, worker, splits);
}

static void check_all(struct bench *b)
{
    const char *leaders;

    workers = b->exec.transport->control->size;
    leaders = workers % 2 == 0 ? "lsgd:2,2" : "lsgd:1,2";
    check_leaders(b, GHP_FAULT_NONE);
    check_leaders(b, GHP_FAULT_DROP_REDUCTION);
    check_leaders(b, GHP_FAULT_ROUNDED_PULL);
    check_leader_bytes(b);
    CHECK(in_step_trains_like_reference(b, leaders, GHP_FAULT_NONE));
    CHECK(in_step_trains_like_reference(b, "lsgd:1,3", GHP_FAULT_NONE));
    CHECK(!in_step_trains_like_reference(b, leaders, GHP_FAULT_DROP_REDUCTION));
    in_step_check_resume(b, leaders, "dgd:ring", 3);
    in_step_check_resume(b, leaders, "dgd:ring", 9);
    in_step_check_lone(b, "lsgd:1,2");
}

CHECK_TEST(mix_leaders)
{
    check_ties();
    return in_step_run(&argc, &argv, GHP_SOURCE_DIR "/models/lenet5.json", check_all);
}
