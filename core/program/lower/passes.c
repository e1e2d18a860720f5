/* core/program/lower/passes.c - what turns the list of instructions as emitted into the list that is costed and run.
 *
 * A program pass is a function program -> program. All of them run, in the order of one table, wherever a program is
 * lowered, so planner and executor have the same list (ghp_program_hash). To add one, write its function and a row. */
#include "core/program/fuse.h"
#include "core/program/lower/passes.h"
#include "core/program/memory_format.h"

struct program_pass {
    const char *name;
    enum ghp_status (*run)(const struct ghp_lowering *lowering, struct ghp_program *program);
};

static enum ghp_status choose_formats(const struct ghp_lowering *lowering,
                                      struct ghp_program *program)
{
    return ghp_program_choose_formats(lowering->model, program, &lowering->formats);
}

static enum ghp_status fuse(const struct ghp_lowering *lowering, struct ghp_program *program)
{
    return ghp_program_fuse(lowering->model, program);
}

static enum ghp_status find_siblings(const struct ghp_lowering *lowering,
                                     struct ghp_program *program)
{
    if (lowering->joins_products && !lowering->unplaced) ghp_program_find_siblings(program);
    return GHP_OK;
}

static enum ghp_status place(const struct ghp_lowering *lowering, struct ghp_program *program)
{
    return lowering->unplaced ? GHP_OK : ghp_program_place(program);
}

/* Updates first, then what takes their weights to other workers, or others' weights to this one. */
static enum ghp_status list_flush(const struct ghp_lowering *lowering, struct ghp_program *program)
{
    int n = program->n_instrs, *list;

    if (lowering->forward_only) return GHP_OK;
    list = program->flush = ghp_alloc((size_t)n + 1, sizeof *list);
    if (list == NULL) return GHP_NO_MEMORY();
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            const struct ghp_kind_facts *kind = ghp_kind_of(&program->instrs[i]);

            if (kind->of_updates && kind->is_local == (pass == 0)) list[program->n_flush++] = i;
        }
    return GHP_OK;
}

static const struct program_pass passes[] = {
    {"memory formats", choose_formats}, /* which buffers lie in blocks of channels */
    {"fusion", fuse},                   /* one kernel for several instructions */
    {"siblings", find_siblings},        /* products that may run at once */
    {"flush", list_flush},              /* what finishes the last step */
    {"placement", place},               /* where buffers lie in the arena */
};

enum ghp_status ghp_lower_run_passes(const struct ghp_lowering *lowering,
                                     struct ghp_program *program)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        enum ghp_status status = passes[i].run(lowering, program);

        if (status == GHP_OK) continue;
        ghp_status_prefix("%s", passes[i].name);
        return status;
    }
    return GHP_OK;
}
