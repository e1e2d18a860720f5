/* tests/executor/mixing/in_step.c - see in_step.h. */
#include "tests/executor/mixing/in_step.h"

#include "executor/state/checkpoint.h"
#include "tests/check.h"
#include "tests/executor/cases.h"

#include <stdlib.h>

enum { STEPS = 10 };

static char folder[BENCH_FOLDER];

struct ghp_worker *in_step_open(struct bench *b, const char *sync, enum ghp_fault fault,
                                struct ghp_split **splits)
{
    struct ghp_worker *worker;

    b->rank_plan.lowering.method.sync = (struct ghp_sync){0};
    if (sync != NULL)
        CHECK_STATUS(ghp_sync_parse(sync, &b->rank_plan.lowering.method.sync), GHP_OK);
    b->rank_plan.run.fault = fault;
    b->rank_plan.run.mixing = &ghp_host_mixer;
    *splits = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    b->rank_plan.splits = *splits;
    CHECK_STATUS(bench_open_worker(b, &b->rank_plan, &worker), GHP_OK);
    return worker;
}

void in_step_end(struct bench *b, struct ghp_worker *worker, struct ghp_split *splits)
{
    ghp_worker_close(worker);
    free(splits);
    b->rank_plan.lowering.method.sync = (struct ghp_sync){0};
    b->rank_plan.run.fault = GHP_FAULT_NONE;
}

const struct ghp_control_message *in_step_tell(const struct bench *b, double mine)
{
    static struct ghp_control_message alone;
    struct ghp_transport *transport = b->exec.transport;
    const struct ghp_control_message *messages = &alone;

    alone.value = mine;
    CHECK_STATUS(transport->control->ops->tell(
                     transport->control, bench_workers(transport, transport->control->size),
                     (struct ghp_control_message){.value = mine}, &messages),
                 GHP_OK);
    return messages;
}

bool in_step_trains_like_reference(struct bench *b, const char *sync, enum ghp_fault fault)
{
    struct ghp_split *splits;
    struct ghp_worker *worker = in_step_open(b, sync, fault, &splits);
    bool passed = bench_trains_like_reference(b, worker, &b->rank_plan, STEPS);

    if (!passed && fault == GHP_FAULT_NONE) fprintf(stderr, "%s does not train like it\n", sync);
    in_step_end(b, worker, splits);
    return passed;
}

void in_step_check_lone(struct bench *b, const char *sync)
{
    const char *const both[] = {NULL, sync};
    struct bench lone = *b;
    uint64_t hash[2] = {0};

    lone.rank_plan.lowering.problem.workers = lone.rank_plan.run.groups = 1;
    lone.rank_plan.rank = 0;
    for (int i = 0; i < 2 && b->rank_plan.rank == 0; i++) {
        struct ghp_split *splits;
        struct ghp_worker *worker = in_step_open(&lone, both[i], GHP_FAULT_NONE, &splits);

        CHECK_STATUS(bench_steps(&lone, worker, 0, 5), GHP_OK);
        hash[i] = bench_fingerprint(worker);
        in_step_end(&lone, worker, splits);
    }
    CHECK(hash[0] == hash[1]);
}

void in_step_check_resume(struct bench *b, const char *sync, const char *other, int64_t at)
{
    const struct ghp_checkpoint now = {.step = at};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_split *splits;
    struct ghp_worker *worker = in_step_open(b, sync, GHP_FAULT_NONE, &splits);
    uint64_t whole_run;

    CHECK_STATUS(bench_steps(b, worker, 0, at), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_save(&kept, worker, now), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, at, STEPS), GHP_OK);
    whole_run = bench_fingerprint_replicas(worker);
    in_step_end(b, worker, splits);
    worker = in_step_open(b, sync, GHP_FAULT_NONE, &splits);
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
    CHECK_STATUS(bench_steps(b, worker, at, STEPS), GHP_OK);
    CHECK(bench_fingerprint_replicas(worker) == whole_run);
    in_step_end(b, worker, splits);
    worker = in_step_open(b, other, GHP_FAULT_NONE, &splits);
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_ERR_INPUT);
    in_step_end(b, worker, splits);
}

int in_step_run(int *argc, char ***argv, const char *model, void (*check)(struct bench *b))
{
    const struct bench_numbers exact = {
        .ops = &ghp_backend_reference, .element_bytes = 8, .batch = 12};
    struct ghp_transport *transport;
    struct bench b;

    if (!CHECK_STATUS(ghp_transport_start(argc, argv, 60, &transport), GHP_OK)) return 1;
    bench_make_folder(transport, transport->control->size, "in_step", folder);
    if (CHECK_STATUS(bench_open_by(&b, transport, model, exact), GHP_OK)) check(&b);
    bench_close(&b);
    bench_remove_folder(transport, transport->control->size, folder);
    ghp_transport_end(transport);
    return check_end();
}
