/* executor/engine/worker/kinds.c - runs one instruction of a program: the table of how each kind runs. */
#include "executor/engine/worker_private.h"

#define KIND_DECLARE(id, name) extern const struct ghp_run_kind ghp_run_kind_##name;
GHP_INSTR_LIST(KIND_DECLARE)
#undef KIND_DECLARE

const struct ghp_run_kind *const ghp_run_kinds[GHP_INSTR_COUNT] = {
#define KIND_ENTRY(id, name) [GHP_INSTR_##id] = &ghp_run_kind_##name,
    GHP_INSTR_LIST(KIND_ENTRY)
#undef KIND_ENTRY
};

enum ghp_status ghp_worker_run(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_run_kind *kind = ghp_run_kinds[ghp_worker_instr(w, i)->kind];

    if (kind->failpoint > GHP_FAILPOINT_MPI) ghp_failpoint_reach(kind->failpoint);
    return kind->run != NULL ? kind->run(w, i, previous) : GHP_OK;
}

static enum ghp_status reduce(struct ghp_worker *w, int i)
{
    return ghp_run_kinds[ghp_worker_instr(w, i)->kind]->concurrent(w, i);
}

enum ghp_status ghp_worker_run_now(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    return ghp_worker_instr(w, i)->stream == GHP_STREAM_COMM ? reduce(w, i)
                                                             : ghp_worker_run(w, i, previous);
}

enum ghp_status ghp_worker_reduce(void *context, int i)
{
    struct ghp_worker *w = context;
    int half = w->prepared[i].half;

    GHP_TRY(ghp_in_flight_start(w->in_flight, half, i));
    GHP_TRY(reduce(w, i));
    return ghp_in_flight_finish(w->in_flight, half, i);
}
