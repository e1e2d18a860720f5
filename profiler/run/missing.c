/* profiler/run/missing.c - which of a work list a run measures: all, what data parallelism needs, or what ghp-plan
 * named (core/cost/missing.h). */
#include "profiler/run/run_private.h"

#include "core/cost/missing.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What rank 0 tells: the turn of each operation and collective; LEFT: not this time. */
enum { LEFT = INT_MAX };

/* Every plan has a rival that is data parallelism, whatever else is known. */
static void turns_of_data(const struct ghp_profiling *run, int *turns)
{
    const struct ghp_worklist *worklist = &run->worklist;

    for (int i = 0; i < worklist->n_ops; i++)
        turns[i] = worklist->ops[i].value == GHP_VALUE_DATA ? i : LEFT;
    for (int i = 0; i < worklist->n_comms; i++) {
        const struct ghp_worklist_comm *comm = &worklist->comms[i];
        bool reduces = comm->op == GHP_COMM_ALL_REDUCE && comm->count == run->m.size;

        turns[worklist->n_ops + i] = reduces ? i : LEFT;
    }
}

/* Wants the sizes of the collective's kind on both sides of the missing one. */
static void want_comm(const struct ghp_worklist *worklist, const struct ghp_missing_item *item,
                      int turn, int *turns)
{
    int below = -1, above = -1; /* work lists have sizes ascending */

    for (int i = 0; i < worklist->n_comms; i++) {
        const struct ghp_worklist_comm *comm = &worklist->comms[i];

        if (comm->op != item->op || comm->count != item->count || comm->stride != item->stride)
            continue;
        if (comm->bytes <= item->bytes) below = i;
        if (comm->bytes >= item->bytes && above < 0) above = i;
    }
    if (below >= 0) turns[below] = turn;
    if (above >= 0) turns[above] = turn;
}

static enum ghp_status turns_of_file(const struct ghp_profiling *run, int *turns)
{
    const struct ghp_worklist *worklist = &run->worklist;
    struct ghp_missing missing;

    GHP_TRY(ghp_missing_load(run->request->only, &missing));
    for (int i = 0; i < worklist->n_ops + worklist->n_comms; i++)
        turns[i] = LEFT;
    for (int w = 0; w < missing.n; w++) {
        const struct ghp_missing_item *item = &missing.items[w];

        if (item->is_comm) want_comm(worklist, item, w, turns + worklist->n_ops);
        for (int i = 0; i < worklist->n_ops && !item->is_comm; i++)
            if (worklist->ops[i].pass == item->pass && strcmp(worklist->ops[i].key, item->key) == 0)
                turns[i] = w;
    }
    ghp_missing_release(&missing);
    return GHP_OK;
}

static int by_turn(const void *a, const void *b)
{
    const struct ghp_worklist_op *x = a, *y = b;

    if (x->turn != y->turn) return x->turn < y->turn ? -1 : 1;
    if (x->pass != y->pass) return (int)x->pass - (int)y->pass;
    return strcmp(x->key, y->key);
}

static void take_turns(struct ghp_worklist *worklist, const int *turns)
{
    for (int i = 0; i < worklist->n_ops; i++) {
        worklist->ops[i].left = turns[i] == LEFT;
        worklist->ops[i].turn = turns[i];
        worklist->ops[i].named = turns[i] != LEFT;
    }
    for (int i = 0; i < worklist->n_comms; i++)
        worklist->comms[i].left = turns[worklist->n_ops + i] == LEFT;
    if (worklist->n_ops > 0)
        qsort(worklist->ops, (size_t)worklist->n_ops, sizeof *worklist->ops, by_turn);
}

enum ghp_status ghp_profiling_choose_missing(struct ghp_profiling *run)
{
    struct ghp_worklist *worklist = &run->worklist;
    size_t n = (size_t)worklist->n_ops + (size_t)worklist->n_comms;
    int *turns;
    enum ghp_status status = GHP_OK;

    if (run->request->only == NULL) return GHP_OK;
    turns = ghp_alloc(n + 1, sizeof *turns);
    if (turns == NULL) status = GHP_NO_MEMORY();
    if (status == GHP_OK && run->m.rank == 0) {
        if (strcmp(run->request->only, "data") == 0)
            turns_of_data(run, turns);
        else
            status = turns_of_file(run, turns);
    }
    status = ghp_measure_broadcast(&run->m, status, turns, (int64_t)((n + 1) * sizeof *turns));
    if (status == GHP_OK) take_turns(worklist, turns);
    free(turns);
    return status;
}
