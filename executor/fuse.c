/* executor/fuse.c - see fuse.h. */
#include "executor/fuse.h"

static const struct ghp_epilogue nothing = {-1, -1, -1};

/* ---- in a program ---- */

static bool is_forward(const struct ghp_instr *instr, enum ghp_op op)
{
    return instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_FORWARD &&
           instr->local.op == op;
}

static bool same_place(const struct ghp_program *program, int a, int b)
{
    return a >= 0 && b >= 0 && ghp_buffer_offset(program, a) == ghp_buffer_offset(program, b) &&
           program->buffers[a].elements == program->buffers[b].elements;
}

/* Works in place on what `conv` writes. */
static bool follows(const struct ghp_program *program, const struct ghp_instr *conv, int i,
                    enum ghp_op op)
{
    const struct ghp_instr *instr = &program->instrs[i];

    return i < program->n_instrs && is_forward(instr, op) && instr->micro == conv->micro &&
           same_place(program, conv->at.y, instr->at.x[0]) &&
           same_place(program, conv->at.y, instr->at.y);
}

struct ghp_epilogue ghp_fuse_find(const struct ghp_program *program, int conv)
{
    const struct ghp_instr *first = &program->instrs[conv];
    struct ghp_epilogue found = nothing;
    int next = conv + 1;

    if (!is_forward(first, GHP_OP_CONV2D)) return nothing;
    if (next < program->n_instrs && program->instrs[next].kind == GHP_INSTR_UPDATE)
        found.update = next++;
    if (next < program->n_instrs && follows(program, first, next, GHP_OP_BIAS))
        found.bias = next++;
    else if (found.update >= 0)
        return nothing;
    if (next < program->n_instrs && follows(program, first, next, GHP_OP_RELU)) found.relu = next;
    return found;
}

/* ---- in a model ---- */

/* The only reader of a layer's output, where it is of that kind; else -1. */
static int reader_of(const struct ghp_model *model, int layer, enum ghp_op op)
{
    const struct ghp_layer *l = &model->layers[layer];
    int next = l->n_consumers == 1 ? model->edges[l->out_edges[0]].to : -1;

    return next >= 0 && model->layers[next].op == op ? next : -1;
}

struct ghp_epilogue ghp_fuse_layers(const struct ghp_model *model, int conv)
{
    struct ghp_epilogue found = nothing;

    if (model->layers[conv].op != GHP_OP_CONV2D) return nothing;
    found.bias = reader_of(model, conv, GHP_OP_BIAS);
    found.relu = reader_of(model, found.bias >= 0 ? found.bias : conv, GHP_OP_RELU);
    return found;
}

static bool is_taken_along(const struct ghp_model *model, int layer)
{
    for (int i = 0; i < model->n_layers; i++) {
        struct ghp_epilogue epilogue = ghp_fuse_layers(model, i);

        if (epilogue.bias == layer || epilogue.relu == layer) return true;
    }
    return false;
}

bool ghp_fuse_always(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];

    if (l->op != GHP_OP_BIAS && l->op != GHP_OP_RELU) return false;
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *other = &model->layers[i];
        bool alike = other->op == l->op && other->out.h == l->out.h && other->out.w == l->out.w;

        if (alike && !is_taken_along(model, i)) return false;
    }
    return true;
}

struct ghp_formats ghp_fuse_formats(struct ghp_formats formats, struct ghp_epilogue epilogue)
{
    formats.bias = epilogue.bias >= 0;
    formats.relu = epilogue.relu >= 0;
    return formats;
}
