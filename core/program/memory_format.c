/* core/program/memory_format.c - see memory_format.h. */
#include "core/program/memory_format.h"

#include <stdlib.h>

struct choice {
    const struct ghp_program *program;
    const struct ghp_format_source *source;
    bool *can, *wants; /* of each buffer that is its own storage */
};

static int storage_of(const struct ghp_program *program, int buffer)
{
    while (buffer >= 0 && program->buffers[buffer].storage != buffer)
        buffer = program->buffers[buffer].storage;
    return buffer;
}

/* The tensors of an instruction's input and output side; none if each channel is one pixel, which lies alike in both
 * formats. What a pool saves lies as what it pools, forward and backward. */
struct sides {
    int n_x, n_y;
    int x[2 * GHP_MAX_INPUTS + 1], y[2];
};

static bool one_pixel(const struct ghp_instr *instr, bool input)
{
    const struct ghp_local *local = &instr->local;
    if (instr->kind == GHP_INSTR_RESHARD) return local->h * local->w == 1;
    return instr->kind == GHP_INSTR_COMPUTE &&
           (input ? local->h * local->w : local->p * local->q) == 1;
}

static struct sides sides_of(const struct ghp_program *program, const struct ghp_instr *instr)
{
    const struct ghp_operands *at = &instr->at;
    const int y[2] = {at->y, at->dy};
    bool has_x = !one_pixel(instr, true), has_y = !one_pixel(instr, false);
    struct sides sides = {0};
    for (int i = 0; i < GHP_MAX_INPUTS && has_x; i++) {
        if (at->x[i] >= 0) sides.x[sides.n_x++] = storage_of(program, at->x[i]);
        if (at->dx[i] >= 0) sides.x[sides.n_x++] = storage_of(program, at->dx[i]);
    }
    if (instr->kind == GHP_INSTR_COMPUTE && at->saved >= 0 && has_x)
        sides.x[sides.n_x++] = storage_of(program, at->saved);
    for (int i = 0; i < 2 && has_y; i++)
        if (y[i] >= 0) sides.y[sides.n_y++] = storage_of(program, y[i]);
    return sides;
}

static void forbid(struct choice *c, const int *buffers, int n)
{
    for (int i = 0; i < n; i++)
        c->can[buffers[i]] = false;
}

/* Which sides of an instruction can lie blocked, as far as it alone is concerned. */
static struct ghp_nchw16c able(const struct choice *c, const struct ghp_instr *instr)
{
    const struct ghp_local *local = &instr->local;
    int64_t x = local->c, y = local->k;
    switch (instr->kind) {
    case GHP_INSTR_ACCUMULATE: return (struct ghp_nchw16c){.x = true, .y = true};
    case GHP_INSTR_RESHARD:
        if (instr->step.from.kind == GHP_LAYOUT_SEQUENCE ||
            instr->step.to.kind == GHP_LAYOUT_SEQUENCE)
            return (struct ghp_nchw16c){0};
        x = ghp_layout_channels(instr->step.from, local->c);
        y = ghp_layout_channels(instr->step.to, local->c);
        break;
    case GHP_INSTR_COMPUTE:
        if (c->source->can(c->source->context, local)) break;
        return (struct ghp_nchw16c){0};
    default: return (struct ghp_nchw16c){0};
    }
    return (struct ghp_nchw16c){.x = ghp_whole_blocks(x), .y = ghp_whole_blocks(y)};
}

static void rule_out(struct choice *c, const struct ghp_instr *instr)
{
    const struct sides sides = sides_of(c->program, instr);
    const struct ghp_nchw16c can = able(c, instr);
    if (!can.x) forbid(c, sides.x, sides.n_x);
    if (!can.y) forbid(c, sides.y, sides.n_y);
}

/* Convolutions stand between components, and so do layout changes that pack. */
static bool ties(const struct ghp_instr *instr)
{
    if (instr->kind == GHP_INSTR_ACCUMULATE) return true;
    if (instr->kind == GHP_INSTR_RESHARD) return !ghp_reshard_packs(instr->step.op);
    return instr->kind == GHP_INSTR_COMPUTE && !ghp_op_of(instr->local.op)->chooses_format;
}

/* Both sides of an instruction become what one of them is: unable, or wanting. Returns whether anything changed. */
static bool spread(struct choice *c, const struct ghp_instr *instr)
{
    struct sides sides = sides_of(c->program, instr);
    int all[2 * GHP_MAX_INPUTS + 3], n = 0;
    bool can = true, wants = false, changed = false;
    if (!ties(instr)) return false;
    for (int i = 0; i < sides.n_x; i++)
        all[n++] = sides.x[i];
    for (int i = 0; i < sides.n_y; i++)
        all[n++] = sides.y[i];
    for (int i = 0; i < n; i++) {
        can = can && c->can[all[i]];
        wants = wants || c->wants[all[i]];
    }
    for (int i = 0; i < n; i++) {
        changed = changed || c->can[all[i]] != can || c->wants[all[i]] != wants;
        c->can[all[i]] = can;
        c->wants[all[i]] = wants;
    }
    return changed;
}

static void ask(struct choice *c, const struct ghp_instr *instr)
{
    const struct sides sides = sides_of(c->program, instr);
    if (instr->kind != GHP_INSTR_COMPUTE) return;
    const struct ghp_op_facts *op = ghp_op_of(instr->local.op);
    if (op->wants_blocks == NULL || !op->wants_blocks(&instr->local, instr->pass)) return;
    for (int i = 0; i < sides.n_x; i++)
        c->wants[sides.x[i]] = true;
    for (int i = 0; i < sides.n_y; i++)
        c->wants[sides.y[i]] = true;
}

/* Only what layers hand to each other, what becomes of it in a layout change, and what pools save of it. */
static void allow(struct choice *c)
{
    const struct ghp_program *program = c->program;
    for (int i = 0; i < program->n_buffers; i++) {
        enum ghp_buffer_kind buffer_kind = program->buffers[i].buffer_kind;
        c->can[i] = buffer_kind == GHP_BUFFER_OUTPUT || buffer_kind == GHP_BUFFER_EDGE_GRADIENT ||
                    buffer_kind == GHP_BUFFER_EDGE_INPUT ||
                    buffer_kind == GHP_BUFFER_EDGE_GRADIENT_OUT || buffer_kind == GHP_BUFFER_SAVED;
    }
    for (int i = 0; i < program->n_instrs; i++) /* between two steps */
        if (program->instrs[i].kind == GHP_INSTR_RESHARD) c->can[program->instrs[i].at.y] = true;
}

/* As the instructions say; what is between two steps of a reshard as what is before them. */
static void want_requested(struct choice *c)
{
    for (int i = 0; i < c->program->n_instrs; i++) {
        const struct ghp_instr *instr = &c->program->instrs[i];
        const struct sides sides = sides_of(c->program, instr);
        bool reshards = instr->kind == GHP_INSTR_RESHARD;
        bool x = instr->nchw16c.x,
             y = reshards ? sides.n_x > 0 && c->wants[sides.x[0]] : instr->nchw16c.y;
        for (int k = 0; k < sides.n_x && x; k++)
            c->wants[sides.x[k]] = true;
        for (int k = 0; k < sides.n_y && y; k++)
            c->wants[sides.y[k]] = true;
    }
}

/* After it is decided which buffers are wanted blocked. */
static void settle(struct choice *c)
{
    const struct ghp_program *program = c->program;
    bool changed = true;
    allow(c);
    for (int i = 0; i < program->n_instrs; i++)
        rule_out(c, &program->instrs[i]);
    while (changed) {
        changed = false;
        for (int i = 0; i < program->n_instrs; i++)
            changed = spread(c, &program->instrs[i]) || changed;
    }
}

static bool is_requested(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].nchw16c.requested) return true;
    return false;
}

static void want(struct choice *c)
{
    if (is_requested(c->program)) {
        want_requested(c);
        return;
    }
    for (int i = 0; i < c->program->n_instrs; i++)
        ask(c, &c->program->instrs[i]);
}

/* all: whatever can be blocked is. */
static enum ghp_status choose(struct ghp_program *program, const struct ghp_format_source *source,
                              bool all)
{
    size_t n = (size_t)program->n_buffers;
    struct choice c = {.program = program, .source = source};
    enum ghp_status status = GHP_OK;
    for (size_t i = 0; i < n; i++)
        program->buffers[i].nchw16c = false;
    if (source->can == NULL) return GHP_OK;
    c.can = ghp_alloc(n + 1, sizeof *c.can);
    c.wants = ghp_alloc(n + 1, sizeof *c.wants);
    if (c.can == NULL || c.wants == NULL) status = GHP_NO_MEMORY();
    if (status == GHP_OK && !all) want(&c);
    if (status == GHP_OK) settle(&c);
    for (size_t i = 0; i < n && status == GHP_OK; i++) {
        int storage = storage_of(program, (int)i);
        program->buffers[i].nchw16c = c.can[storage] && (all || c.wants[storage]);
    }
    free(c.can);
    free(c.wants);
    return status;
}

/* Whether the buffers of an instruction lie as it says. */
static bool holds(const struct ghp_program *program, const struct ghp_instr *instr)
{
    const struct sides sides = sides_of(program, instr);
    const struct ghp_nchw16c lie = ghp_instr_formats(program, instr);
    return (sides.n_x == 0 || lie.x == instr->nchw16c.x) &&
           (sides.n_y == 0 || lie.y == instr->nchw16c.y);
}

enum ghp_status ghp_program_choose_formats(const struct ghp_model *model,
                                           struct ghp_program *program,
                                           const struct ghp_format_source *source)
{
    GHP_TRY(choose(program, source, false));
    for (int i = 0; i < program->n_instrs && source->can != NULL; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        if (instr->nchw16c.requested && !holds(program, instr))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' cannot have its tensors in the memory formats that the "
                            "plan is costed with; make the plan again with ghp-plan",
                            model->layers[instr->layer].name);
    }
    return GHP_OK;
}

enum ghp_status ghp_program_possible_formats(struct ghp_program *program,
                                             const struct ghp_format_source *source)
{
    return choose(program, source, true);
}

struct ghp_nchw16c ghp_instr_formats(const struct ghp_program *program,
                                     const struct ghp_instr *instr)
{
    const struct sides sides = sides_of(program, instr);
    return (struct ghp_nchw16c){.requested = true,
                                .x = sides.n_x > 0 && program->buffers[sides.x[0]].nchw16c,
                                .y = sides.n_y > 0 && program->buffers[sides.y[0]].nchw16c};
}
