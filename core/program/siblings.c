/* core/program/siblings.c - products of one tensor, which may run at once: see fuse.h. */
#include "core/program/fuse_private.h"

#include <string.h>

enum { NEAR_INSTRS = 16 };

static bool is_product(const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_COMPUTE && instr->local.op == GHP_OP_LINEAR &&
           (instr->pass == GHP_PASS_FORWARD || instr->pass == GHP_PASS_BACKWARD_WEIGHT);
}

/* Whether the product `b` reads the same tensor as `a`, and is alike otherwise. */
static bool are_alike(const struct ghp_instr *a, const struct ghp_instr *b)
{
    const struct ghp_epilogue *does = &a->fusion.does, *other = &b->fusion.does;

    return is_product(b) && b->layer != a->layer && b->pass == a->pass && b->micro == a->micro &&
           b->recompute == a->recompute && b->at.x[0] == a->at.x[0] &&
           (does->bias < 0) == (other->bias < 0) && (does->relu < 0) == (other->relu < 0) &&
           ghp_local_equal(&a->local, &b->local);
}

/* The operands that an instruction may write. */
static struct ghp_operands written_by(const struct ghp_instr *instr)
{
    struct ghp_operands at = instr->at, written;
    unsigned writes;

    if (instr->kind != GHP_INSTR_COMPUTE) return at;
    writes = ghp_op_of(instr->local.op)->passes[instr->pass].writes;
    memset(&written, 0xff, sizeof written);
    if (writes & GHP_AT_Y) written.y = at.y;
    if (writes & GHP_AT_SAVED) written.saved = at.saved;
    if (writes & GHP_AT_STATS) written.stats = at.stats;
    if (writes & GHP_AT_DX) memcpy(written.dx, at.dx, sizeof at.dx);
    if (writes & GHP_AT_DW) memcpy(written.dw, at.dw, sizeof at.dw);
    return written;
}

/* Whether one of the operands has memory in common with a buffer. */
static bool has_common_memory(const struct ghp_program *program, const struct ghp_operands *at,
                              int buffer)
{
    struct ghp_buffer_place place = ghp_place_of(program, buffer);
    int ids[sizeof *at / sizeof(int)]; /* it holds nothing else */

    memcpy(ids, at, sizeof ids);
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        if (ids[k] < 0) continue;
        const struct ghp_buffer_place other = ghp_place_of(program, ids[k]);

        if (other.storage == place.storage &&
            other.offset < place.offset + program->buffers[buffer].bytes &&
            place.offset < other.offset + program->buffers[ids[k]].bytes)
            return true;
    }
    return false;
}

/* Whether no instruction between i and `there` writes what i has in this buffer, or reads what i writes there. */
static bool is_left_alone(const struct ghp_program *program, int i, int there, int buffer)
{
    const struct ghp_operands written = written_by(&program->instrs[i]);
    bool writes = has_common_memory(program, &written, buffer);
    int end = i < there ? there : i;

    for (int k = (i < there ? i : there) + 1; k < end; k++) {
        const struct ghp_instr *between = &program->instrs[k];
        const struct ghp_operands others = written_by(between);

        if (between->fusion.by == i) continue; /* done with it */
        if (has_common_memory(program, writes ? &between->at : &others, buffer)) return false;
    }
    return true;
}

/* Whether instruction i may run at the place of another: its tensors live there, too. */
static bool may_run_at(const struct ghp_program *program, int i, int there)
{
    const struct ghp_operands *at = &program->instrs[i].at;
    int ids[sizeof *at / sizeof(int)], point = program->instrs[there].point;

    memcpy(ids, at, sizeof ids);
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        if (ids[k] < 0 || ids[k] == at->scratch) continue;
        if (!ghp_lives_at(program, ids[k], point) || !is_left_alone(program, i, there, ids[k]))
            return false;
    }
    return true;
}

static bool may_run_at_once(const struct ghp_program *program, const int *of, int n)
{
    int there = program->instrs[of[0]].backward ? of[0] : of[n - 1];
    bool may = true;

    for (int k = 0; k < n; k++)
        may = may && may_run_at(program, of[k], there);
    return may;
}

/* They know each other, and all have their scratch where they run at once. */
static void join(struct ghp_program *program, const int *of, int n)
{
    for (int k = 0; k < n; k++) {
        struct ghp_fusion *fusion = &program->instrs[of[k]].fusion;

        fusion->first = of[0];
        fusion->next = k + 1 < n ? of[k + 1] : -1;
    }
    for (int k = 0; k < n; k++)
        if (program->instrs[of[k]].at.scratch >= 0)
            ghp_keep_at(program, program->instrs[of[k]].at.scratch,
                        program->instrs[ghp_siblings_at(program, of[0])].point);
}

void ghp_program_find_siblings(struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++) {
        int of[GHP_MOST_SIBLINGS] = {i}, n = 1;

        if (!is_product(&program->instrs[i]) || program->instrs[i].fusion.first >= 0) continue;
        for (int j = i + 1;
             j < program->n_instrs && j <= of[n - 1] + NEAR_INSTRS && n < GHP_MOST_SIBLINGS; j++)
            if (are_alike(&program->instrs[i], &program->instrs[j])) of[n++] = j;
        while (n > 1 && !may_run_at_once(program, of, n))
            n--;
        if (n > 1) join(program, of, n);
    }
}

int ghp_siblings_at(const struct ghp_program *program, int first)
{
    if (program->instrs[first].backward) return first;
    while (program->instrs[first].fusion.next >= 0)
        first = program->instrs[first].fusion.next;
    return first;
}
