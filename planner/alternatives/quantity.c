/* planner/alternatives/quantity.c - one place that knows which field a quantity is. */
#include "planner/alternatives/quantity.h"

#include "core/plan/profile_scale.h"

static bool is_link(enum ghp_quantity quantity)
{
    return quantity <= GHP_QUANTITY_INTRA_LATENCY;
}

static bool is_latency(enum ghp_quantity quantity)
{
    return quantity == GHP_QUANTITY_INTER_LATENCY || quantity == GHP_QUANTITY_INTRA_LATENCY;
}

static enum ghp_link_kind link_kind(enum ghp_quantity quantity)
{
    return quantity == GHP_QUANTITY_INTER_BANDWIDTH || quantity == GHP_QUANTITY_INTER_LATENCY
               ? GHP_LINK_INTER
               : GHP_LINK_INTRA;
}

static double link_value(const struct ghp_machine *machine, enum ghp_quantity quantity)
{
    const struct ghp_link *link =
        link_kind(quantity) == GHP_LINK_INTER ? &machine->inter : &machine->intra;

    return is_latency(quantity) ? link->latency_s : link->bandwidth_Bps;
}

double ghp_quantity_nominal(const struct ghp_plan *plan, enum ghp_quantity quantity)
{
    if (quantity == GHP_QUANTITY_COMPUTE) return 1;
    if (quantity == GHP_QUANTITY_BATCH) return (double)plan->problem.global_batch;
    if (quantity == GHP_QUANTITY_MEMORY) return (double)plan->memory_limit_bytes;
    return link_value(&plan->profile.machine, quantity);
}

enum ghp_status ghp_quantity_scale_profile(struct ghp_profile *profile, enum ghp_quantity quantity,
                                           double factor)
{
    if (quantity == GHP_QUANTITY_COMPUTE) return ghp_profile_scale_compute(profile, factor);
    GHP_ASSERT(is_link(quantity));
    return ghp_profile_scale_link(profile, link_kind(quantity), is_latency(quantity) ? 1 : factor,
                                  is_latency(quantity) ? factor : 1);
}

bool ghp_quantity_matters(const struct ghp_program *program, const struct ghp_profile *profile,
                          enum ghp_quantity quantity)
{
    const struct ghp_machine *machine = &profile->machine;
    enum ghp_link_kind kind = link_kind(quantity);

    if (!is_link(quantity)) return true;
    if (!(link_value(machine, quantity) > 0)) return false;
    if (!((kind == GHP_LINK_INTER ? machine->inter : machine->intra).bandwidth_Bps > 0))
        return false;
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];

        if (ghp_instr_sends(instr) &&
            ghp_profile_link_of(profile, instr->ranks, program->problem.workers) == kind)
            return true;
    }
    return false;
}
