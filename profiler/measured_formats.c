/* profiler/measured_formats.c - in which formats programs of the models can have each operation's tensors. */
#include "profiler/measured_private.h"

#include "executor/formats.h"

#include <stdlib.h>
#include <string.h>

/* What an agenda's operation is called beside its samples. */
struct family {
    char key[GHP_KEY_BYTES];
};

static void family_of(const struct ghp_local *local, struct family *family)
{
    struct ghp_local one = *local;

    one.n = 0;
    ghp_local_key(&one, family->key);
}

/* Both sides as blocked as any program has them: what lies blocked in one network may have to lie plain in another. All but
 * convolutions have both sides alike, also in passes that touch one only. */
static void mark(struct ghp_agenda *agenda, const struct family *families,
                 const struct ghp_instr *instr, struct ghp_blocked sides)
{
    const struct ghp_local *l = &instr->local;
    bool any = sides.x || sides.y;
    struct family family;

    if (l->op != GHP_OP_CONV2D)
        sides = (struct ghp_blocked){.x = any && l->h * l->w > 1, .y = any && l->p * l->q > 1};
    family_of(&instr->local, &family);
    for (int i = 0; i < agenda->n_ops; ++i) {
        struct ghp_agenda_op *op = &agenda->ops[i];

        if (op->pass != instr->pass || strcmp(families[i].key, family.key) != 0) continue;
        op->ways[0].x = op->ways[0].x || sides.x;
        op->ways[0].y = op->ways[0].y || sides.y;
    }
}

static enum ghp_status mark_program(struct ghp_measuring *run, const struct family *families,
                                    const struct ghp_program *program)
{
    bool *possible = ghp_alloc((size_t)program->n_buffers + 1, sizeof *possible);
    enum ghp_status status = possible == NULL ? GHP_NO_MEMORY()
                                              : ghp_formats_possible(program, run->m.backend_ops,
                                                                     run->m.backend, possible);

    for (int i = 0; i < program->n_instrs && status == GHP_OK; ++i)
        if (program->instrs[i].kind == GHP_INSTR_COMPUTE)
            mark(&run->agenda, families, &program->instrs[i],
                 ghp_formats_sides(program, &program->instrs[i], possible));
    free(possible);
    return status;
}

/* Splits by channels are left plain (core/formats.h): one worker's program has all there is. */
static enum ghp_status mark_model(struct ghp_measuring *run, const struct family *families,
                                  const struct ghp_model *model)
{
    const struct ghp_lowering how = {
        .model = model,
        .extent = {.workers = 1, .global_batch = run->request->batches[0]},
        .element_bytes = run->m.element_bytes};
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);
    struct ghp_program program = {0};
    enum ghp_status status = splits == NULL ? GHP_NO_MEMORY() : GHP_OK;

    for (int v = 0; v < model->n_layers && status == GHP_OK; ++v)
        splits[v] = (struct ghp_split){GHP_SPLIT_DATA, 1};
    if (status == GHP_OK) status = ghp_lower(&how, splits, 0, &program);
    if (status == GHP_OK) status = mark_program(run, families, &program);
    ghp_program_release(&program);
    free(splits);
    return status;
}

static void add_way(struct ghp_agenda_op *op, bool x, bool y)
{
    if (x == op->ways[0].x && y == op->ways[0].y) return;
    op->ways[op->n_ways].x = x;
    op->ways[op->n_ways++].y = y;
}

/* All plain is always possible; a convolution may have one side alone blocked. */
static void list_ways(struct ghp_agenda_op *op)
{
    bool both = op->ways[0].x && op->ways[0].y;

    add_way(op, false, false);
    if (!both || op->local.op != GHP_OP_CONV2D) return;
    add_way(op, true, false);
    add_way(op, false, true);
}

enum ghp_status ghp_measuring_formats(struct ghp_measuring *run)
{
    const struct ghp_measured_request *request = run->request;
    struct ghp_agenda *agenda = &run->agenda;
    struct family *families;
    enum ghp_status status = GHP_OK;

    if (run->m.backend_ops->can_block == NULL) return GHP_OK;
    families = ghp_alloc((size_t)agenda->n_ops + 1, sizeof *families);
    if (families == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < agenda->n_ops; ++i)
        family_of(&agenda->ops[i].local, &families[i]);
    for (int i = 0; i < request->n_models && status == GHP_OK; ++i)
        status = mark_model(run, families, &request->models[i]);
    free(families);
    for (int i = 0; i < agenda->n_ops && status == GHP_OK; ++i) {
        struct ghp_agenda_op *op = &agenda->ops[i];

        list_ways(op);
        op->formats = op->n_ways > 1 || op->local.op == GHP_OP_CONV2D;
    }
    return status;
}
