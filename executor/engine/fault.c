/* executor/engine/fault.c - see fault.h. */
#include "executor/engine/fault.h"

const char *const ghp_fault_names[GHP_FAULT_COUNT + 1] = {
#define GHP_FAULT_NAME(id, text, needs) text,
    GHP_FAULT_LIST(GHP_FAULT_NAME)
#undef GHP_FAULT_NAME
        NULL,
};

static const char *const needs_texts[GHP_FAULT_COUNT] = {
#define GHP_FAULT_NEEDS(id, text, needs) needs,
    GHP_FAULT_LIST(GHP_FAULT_NEEDS)
#undef GHP_FAULT_NEEDS
};

static bool has_instr(const struct ghp_program *program, enum ghp_instr_kind kind)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].kind == kind && program->instrs[i].ranks.count > 1) return true;
    return false;
}

static bool loads_several(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].kind == GHP_INSTR_LOAD && program->instrs[i].at.y >= 0 &&
            program->instrs[i].local.n > 1)
            return true;
    return false;
}

bool ghp_fault_is_slice(const struct ghp_instr *instr)
{
    return instr->kind == GHP_INSTR_RESHARD && (instr->step.op == GHP_RESHARD_SLICE_BATCH ||
                                                instr->step.op == GHP_RESHARD_SLICE_CHANNEL ||
                                                instr->step.op == GHP_RESHARD_SLICE_POSITION);
}

static bool slices(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (ghp_fault_is_slice(&program->instrs[i])) return true;
    return false;
}

static bool updates(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].kind == GHP_INSTR_UPDATE) return true;
    return false;
}

static bool has_bias(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].kind == GHP_INSTR_COMPUTE &&
            program->instrs[i].local.op == GHP_OP_BIAS)
            return true;
    return false;
}

/* Whether mixes take weights that no worker waits for. */
static bool draws_unasked(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].kind == GHP_INSTR_MIX && !(program->instrs[i].mix.traffic.waits > 0))
            return true;
    return false;
}

/* Whether mixes find leaders first, by messages of few bytes. */
static bool pulls_to_leaders(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].kind == GHP_INSTR_MIX &&
            program->instrs[i].mix.traffic.latencies > 0)
            return true;
    return false;
}

/* Whether it draws a dropout's masks of samples or channels that differ between workers. */
static bool draws_masks(const struct ghp_program *program, const struct ghp_instr *instr)
{
    const struct ghp_layout y = instr->layouts.y;

    return instr->kind == GHP_INSTR_COMPUTE && instr->local.op == GHP_OP_DROPOUT &&
           program->model->layers[instr->layer].norm.ratio > 0 && program->problem.workers > 1 &&
           !(y.kind == GHP_LAYOUT_FULL && y.tp_size == program->problem.workers);
}

int ghp_fault_bias_times(const struct ghp_program *program, const struct ghp_instr *instr)
{
    int before;

    if (instr->kind != GHP_INSTR_COMPUTE || instr->local.op != GHP_OP_BIAS) return 1;
    before = program->model->layers[instr->layer].inputs[0];
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *maker = &program->instrs[i];

        if (maker->kind == GHP_INSTR_COMPUTE && maker->layer == before &&
            maker->layouts.y.kind == GHP_LAYOUT_PARTIAL)
            return maker->layouts.y.tp_size;
    }
    return 1;
}

static bool has_effect(enum ghp_fault fault, const struct ghp_program *program)
{
    switch (fault) {
    case GHP_FAULT_DROP_REDUCTION:
        return has_instr(program, GHP_INSTR_ALL_REDUCE) ||
               has_instr(program, GHP_INSTR_REDUCE_SCATTER) ||
               has_instr(program, GHP_INSTR_AVERAGE) || has_instr(program, GHP_INSTR_PUSH) ||
               has_instr(program, GHP_INSTR_MIX);
    case GHP_FAULT_NO_MIXING: return draws_unasked(program);
    case GHP_FAULT_ROUNDED_PULL: return pulls_to_leaders(program);
    case GHP_FAULT_LOCAL_STATISTICS: return has_instr(program, GHP_INSTR_STAT_REDUCE);
    case GHP_FAULT_BIAS_TIMES_K:
        for (int i = 0; i < program->n_instrs; i++)
            if (ghp_fault_bias_times(program, &program->instrs[i]) > 1) return true;
        return false;
    case GHP_FAULT_RANK_MASKS:
        for (int i = 0; i < program->n_instrs; i++)
            if (draws_masks(program, &program->instrs[i])) return true;
        return false;
    case GHP_FAULT_SKIP_UPDATE: return updates(program);
    case GHP_FAULT_DOUBLE_SAMPLE: return loads_several(program);
    case GHP_FAULT_WRONG_PART: return slices(program);
    case GHP_FAULT_NO_BIAS_GRADIENT: return has_bias(program);
    case GHP_FAULT_NONE:
    case GHP_FAULT_OVERLOOK:
    case GHP_FAULT_GROUP_SCALE:
    case GHP_FAULT_COUNT: break;
    }
    return true;
}

enum ghp_status ghp_fault_check(enum ghp_fault fault, const struct ghp_program *program, int groups)
{
    bool effect = fault == GHP_FAULT_GROUP_SCALE ? groups > 1 : has_effect(fault, program);

    if (effect) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "the fault '%s' changes nothing in this plan: it needs %s; use another plan or fault",
        ghp_fault_names[fault], needs_texts[fault]);
}
