/* profiler/run/memory_formats.c - in which formats programs of the models can have each operation's tensors. */
#include "profiler/run/run_private.h"

#include "core/program/memory_format.h"
#include "executor/engine/kernels.h"

#include <stdlib.h>
#include <string.h>

/* The key of a work list's operation without its number of samples. */
struct family {
    char key[GHP_KEY_BYTES];
};

static void family_of(const struct ghp_local *local, struct family *family)
{
    struct ghp_local one = *local;

    one.n = 0;
    ghp_local_key(&one, family->key);
}

/* Both sides as blocked as any program has them: what lies blocked in one network may have to lie plain in another.
 * All but convolutions have both sides alike, also in passes that touch one only. */
static void mark(struct ghp_worklist *worklist, const struct family *families,
                 const struct ghp_instr *instr, struct ghp_nchw16c sides)
{
    const struct ghp_local *l = &instr->local;
    bool any = sides.x || sides.y;
    struct family family;

    if (l->op != GHP_OP_CONV2D)
        sides = (struct ghp_nchw16c){.x = any && l->h * l->w > 1, .y = any && l->p * l->q > 1};
    family_of(&instr->local, &family);
    for (int i = 0; i < worklist->n_ops; i++) {
        struct ghp_worklist_op *op = &worklist->ops[i];

        if (op->pass != instr->pass || strcmp(families[i].key, family.key) != 0) continue;
        op->variants[0].x = op->variants[0].x || sides.x;
        op->variants[0].y = op->variants[0].y || sides.y;
    }
}

static enum ghp_status mark_program(struct ghp_profiling *run, const struct family *families,
                                    struct ghp_program *program)
{
    struct ghp_kernels kernels;

    ghp_kernels_init(&kernels, run->m.backend_ops, run->m.backend, NULL);
    const struct ghp_format_source source = ghp_kernels_formats(&kernels);
    enum ghp_status status = ghp_program_possible_formats(program, &source);

    for (int i = 0; i < program->n_instrs && status == GHP_OK; i++)
        if (program->instrs[i].kind == GHP_INSTR_COMPUTE)
            mark(&run->worklist, families, &program->instrs[i],
                 ghp_instr_formats(program, &program->instrs[i]));
    ghp_kernels_release(&kernels);
    return status;
}

/* Programs of a model, each layer by one of its splits. */
struct splitting {
    const struct ghp_lowering lowering;
    struct ghp_split *splits, *choices; /* n_layers; GHP_MAX_CHOICES */
};

/* Every layer by its choice-th split, or its first if it has fewer: data, if it can take that. A tied one by what goes
 * with its owner's. Returns how many the layer with most of them has. */
static int choose_splits(struct splitting *s, int choice)
{
    const struct ghp_model *model = s->lowering.model;
    int most = 0;

    for (int v = 0; v < model->n_layers; v++) {
        int n =
            ghp_split_choices(&model->layers[v], s->lowering.problem, s->choices, GHP_MAX_CHOICES);

        s->splits[v] = n > 0 ? s->choices[choice < n ? choice : 0]
                             : (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        if (model->layers[v].tied != 0)
            s->splits[v] = ghp_split_of_tied(s->splits[ghp_model_owner(model, v)]);
        most = n > most ? n : most;
    }
    return most;
}

/* A convolution and a change of layout tie nothing across it, so it takes no more programs than a layer has splits to
 * see each layer under each among layers that let it lie blocked. */
static enum ghp_status mark_model(struct ghp_profiling *run, const struct family *families,
                                  const struct ghp_model *model)
{
    struct splitting s = {.lowering = {.model = model,
                                       .problem = {.workers = run->result->workers,
                                                   .global_batch = run->request->batches[0]},
                                       .element_bytes = run->m.element_bytes},
                          .splits = ghp_alloc((size_t)model->n_layers, sizeof *s.splits),
                          .choices = ghp_alloc(GHP_MAX_CHOICES, sizeof *s.choices)};
    enum ghp_status status = s.splits == NULL || s.choices == NULL ? GHP_NO_MEMORY() : GHP_OK;
    int n = 1;

    for (int choice = 0; choice < n && status == GHP_OK; choice++) {
        struct ghp_program program = {0};

        n = choose_splits(&s, choice);
        status = ghp_lower(&s.lowering, s.splits, 0, &program);
        if (status == GHP_OK) status = mark_program(run, families, &program);
        ghp_program_release(&program);
    }
    free(s.choices);
    free(s.splits);
    return status;
}

static void add_variant(struct ghp_worklist_op *op, bool x, bool y)
{
    if (x == op->variants[0].x && y == op->variants[0].y) return;
    op->variants[op->n_variants].x = x;
    op->variants[op->n_variants++].y = y;
}

/* All plain is always possible; a convolution may have one side alone blocked. */
static void list_variants(struct ghp_worklist_op *op)
{
    bool both = op->variants[0].x && op->variants[0].y;

    add_variant(op, false, false);
    if (!both || op->local.op != GHP_OP_CONV2D) return;
    add_variant(op, true, false);
    add_variant(op, false, true);
}

enum ghp_status ghp_profiling_memory_formats(struct ghp_profiling *run)
{
    const struct ghp_profiling_request *request = run->request;
    struct ghp_worklist *worklist = &run->worklist;
    struct family *families;
    enum ghp_status status = GHP_OK;

    if (run->m.backend_ops->can_block == NULL) return GHP_OK;
    families = ghp_alloc((size_t)worklist->n_ops + 1, sizeof *families);
    if (families == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < worklist->n_ops; i++)
        family_of(&worklist->ops[i].local, &families[i]);
    for (int i = 0; i < request->n_models && status == GHP_OK; i++)
        status = mark_model(run, families, &request->models[i]);
    free(families);
    for (int i = 0; i < worklist->n_ops && status == GHP_OK; i++) {
        struct ghp_worklist_op *op = &worklist->ops[i];

        list_variants(op);
        op->memory_formats = op->n_variants > 1 || op->local.op == GHP_OP_CONV2D;
    }
    return status;
}
