/* core/plan/space.c - what plans can ask for: pieces of every layer and edge, each distinct one visited once.
 *
 * Pieces are lowered for rank 0: the program is the same on all ranks but for which samples and channels it holds,
 * and those enter no cost. */
#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "core/plan/space.h"
#include "core/program/lower/points.h"

#include <stdlib.h>
#include <string.h>

/* The item equal to *wanted, a new copy of it if there is none. */
static enum ghp_status put(struct ghp_hash_table *found, uint64_t hash, const void *wanted,
                           void **item)
{
    size_t index;

    GHP_TRY(ghp_hash_table_put(found, hash, wanted, &index));
    *item = found->items + index * found->item_bytes;
    return GHP_OK;
}

/* A local operation with its key, by which it is compared. */
struct keyed {
    struct ghp_space_local item;
    char key[GHP_KEY_BYTES];
};

static bool same_local(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    return x->item.pass == y->item.pass && strcmp(x->key, y->key) == 0;
}

static bool same_comm(const void *a, const void *b)
{
    const struct ghp_space_comm *x = a, *y = b;

    return x->op == y->op && x->count == y->count && x->stride == y->stride && x->bytes == y->bytes;
}

struct space {
    struct ghp_lowering lowering;
    struct ghp_split *from, *to; /* GHP_MAX_CHOICES each */
    struct ghp_program piece;    /* the last one lowered */
    struct ghp_hash_table found; /* operations or collectives */
    enum ghp_status (*take)(struct space *space, const struct ghp_instr *instr,
                            struct ghp_split split);
};

static enum ghp_status take_local(struct space *space, const struct ghp_instr *instr,
                                  struct ghp_split split)
{
    struct keyed wanted = {0};
    uint64_t hash;
    void *item = NULL;

    if (instr->kind != GHP_INSTR_COMPUTE) return GHP_OK;
    wanted.item.local = instr->local;
    wanted.item.pass = instr->pass;
    wanted.item.layer = instr->layer;
    wanted.item.split = split;
    ghp_local_key(&instr->local, wanted.key);
    hash = ghp_hash(wanted.key, strlen(wanted.key), GHP_HASH_SEED);
    hash = ghp_hash(&instr->pass, sizeof instr->pass, hash);
    GHP_TRY(put(&space->found, hash, &wanted, &item));
    ((struct keyed *)item)->item.uses += 1;
    return GHP_OK;
}

static enum ghp_status take_comm(struct space *space, const struct ghp_instr *instr,
                                 struct ghp_split split)
{
    struct ghp_space_comm wanted = {0};
    void *item = NULL;

    (void)split;
    if (!ghp_instr_sends(instr)) return GHP_OK;
    wanted.op = instr->comm;
    wanted.count = instr->ranks.count;
    wanted.stride = instr->ranks.stride;
    wanted.bytes = instr->bytes;
    wanted.stream = instr->stream;
    const int64_t parts[] = {wanted.op, wanted.count, wanted.stride, wanted.bytes};

    GHP_TRY(put(&space->found, ghp_hash(parts, sizeof parts, GHP_HASH_SEED), &wanted, &item));
    ((struct ghp_space_comm *)item)->uses += 1;
    return GHP_OK;
}

static enum ghp_status take_piece(struct space *space, struct ghp_split split)
{
    enum ghp_status status = GHP_OK;

    for (int i = 0; i < space->piece.n_instrs && status == GHP_OK; i++)
        status = space->take(space, &space->piece.instrs[i], split);
    ghp_program_release(&space->piece);
    memset(&space->piece, 0, sizeof space->piece);
    return status;
}

static enum ghp_status take_layers(struct space *space)
{
    const struct ghp_model *model = space->lowering.model;

    for (int layer = 0; layer < model->n_layers; layer++) {
        int n = ghp_split_choices(&model->layers[layer], space->lowering.problem, space->from,
                                  GHP_MAX_CHOICES);

        for (int i = 0; i < n; i++) {
            GHP_TRY(ghp_lower_layer(&space->lowering, layer, space->from[i], 0, &space->piece));
            GHP_TRY(take_piece(space, space->from[i]));
        }
    }
    return GHP_OK;
}

/* The sum of loss and counts at a step's end belongs to the whole program, not to a piece. */
static enum ghp_status take_metrics(struct space *space)
{
    const struct ghp_model *model = space->lowering.model;
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];
    int n = ghp_split_choices(loss, space->lowering.problem, space->from, GHP_MAX_CHOICES);

    for (int i = 0; i < n; i++) {
        struct ghp_instr instr = {.kind = GHP_INSTR_METRIC_REDUCE};

        ghp_instr_sum_metrics(&instr,
                              ghp_ranks_replica(0, ghp_split_sharers(space->from[i]),
                                                space->lowering.problem.workers),
                              ghp_sync_metric_period(space->lowering.method.sync));
        GHP_TRY(space->take(space, &instr, space->from[i]));
    }
    return GHP_OK;
}

static enum ghp_status take_edges(struct space *space)
{
    const struct ghp_model *model = space->lowering.model;

    for (int edge = 0; edge < model->n_edges; edge++) {
        const struct ghp_layer *producer = &model->layers[model->edges[edge].from];
        const struct ghp_layer *consumer = &model->layers[model->edges[edge].to];
        int n = ghp_split_choices(producer, space->lowering.problem, space->from, GHP_MAX_CHOICES);
        int m = ghp_split_choices(consumer, space->lowering.problem, space->to, GHP_MAX_CHOICES);

        for (int i = 0; i < n; i++) {
            for (int j = 0; j < m; j++) {
                GHP_TRY(ghp_lower_edge(&space->lowering, edge, space->from[i], space->to[j], 0,
                                       &space->piece));
                GHP_TRY(take_piece(space, space->from[i]));
            }
        }
    }
    return GHP_OK;
}

static enum ghp_status space_open(struct space *space, const struct ghp_model *model,
                                  struct ghp_problem problem, int element_bytes)
{
    GHP_TRY(ghp_problem_check(problem));
    space->lowering.model = model;
    space->lowering.problem = problem;
    space->lowering.element_bytes = element_bytes;
    space->from = ghp_alloc(GHP_MAX_CHOICES, sizeof *space->from);
    space->to = ghp_alloc(GHP_MAX_CHOICES, sizeof *space->to);
    if (space->from == NULL || space->to == NULL) return GHP_NO_MEMORY();
    return GHP_OK;
}

static void space_close(struct space *space)
{
    ghp_program_release(&space->piece);
    ghp_hash_table_release(&space->found);
    free(space->to);
    free(space->from);
}

enum ghp_status ghp_space_locals(const struct ghp_model *model, struct ghp_problem problem,
                                 ghp_space_local_fn *visit, void *context)
{
    struct space space = {.take = take_local,
                          .found = {.item_bytes = sizeof(struct keyed), .same = same_local}};
    enum ghp_status status = GHP_OK;

    GHP_TRY_GOTO(status, space_open(&space, model, problem, 4), done);
    GHP_TRY_GOTO(status, take_layers(&space), done);
    for (size_t i = 0; i < space.found.n && status == GHP_OK; i++)
        status = visit(context, &((const struct keyed *)(const void *)space.found.items)[i].item);
done:
    space_close(&space);
    return status;
}

enum ghp_status ghp_space_comms(const struct ghp_model *model, struct ghp_problem problem,
                                int element_bytes, ghp_space_comm_fn *visit, void *context)
{
    struct space space = {
        .take = take_comm,
        .found = {.item_bytes = sizeof(struct ghp_space_comm), .same = same_comm}};
    enum ghp_status status = GHP_OK;

    GHP_TRY_GOTO(status, space_open(&space, model, problem, element_bytes), done);
    GHP_TRY_GOTO(status, take_layers(&space), done);
    GHP_TRY_GOTO(status, take_edges(&space), done);
    GHP_TRY_GOTO(status, take_metrics(&space), done);
    for (size_t i = 0; i < space.found.n && status == GHP_OK; i++)
        status =
            visit(context, &((const struct ghp_space_comm *)(const void *)space.found.items)[i]);
done:
    space_close(&space);
    return status;
}
