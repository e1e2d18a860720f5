/* core/plan/profile_scale.c - scaled copies; the analytic model itself is profile_comm.c's. */
#include "core/plan/profile_scale.h"

#include "core/cost/profile_private.h"

#include <math.h>
#include <string.h>

/* The operations with their texts. */
static enum ghp_status copy_ops(const struct ghp_profile *from, struct ghp_profile *to)
{
    to->ops = ghp_alloc((size_t)from->n_ops, sizeof *to->ops);
    if (to->ops == NULL) return GHP_NO_MEMORY();
    to->max_ops = from->n_ops;
    for (int i = 0; i < from->n_ops; i++) {
        struct ghp_op_entry *op = &to->ops[i];

        *op = from->ops[i];
        op->key = strdup(from->ops[i].key);
        op->algorithm = strdup(from->ops[i].algorithm);
        to->n_ops = i + 1;
        if (op->key == NULL || op->algorithm == NULL) return GHP_NO_MEMORY();
    }
    return GHP_OK;
}

enum ghp_status ghp_profile_copy(const struct ghp_profile *from, struct ghp_profile *to)
{
    enum ghp_status status;

    GHP_TRY(ghp_profile_copy_head(from, to));
    GHP_TRY_GOTO(status, copy_ops(from, to), out);
    to->comms = ghp_alloc((size_t)from->n_comms, sizeof *to->comms);
    GHP_TRY_GOTO(status, to->comms == NULL ? GHP_NO_MEMORY() : GHP_OK, out);
    if (from->n_comms > 0)
        memcpy(to->comms, from->comms, (size_t)from->n_comms * sizeof *to->comms);
    to->n_comms = to->max_comms = from->n_comms;
    to->finalized = from->finalized;
    to->hash = from->hash;

out:
    if (status != GHP_OK) ghp_profile_release(to);
    return status;
}

static bool is_factor(double factor)
{
    return factor > 0 && isfinite(factor);
}

enum ghp_status ghp_profile_scale_link(struct ghp_profile *profile, enum ghp_link_kind which,
                                       double bandwidth_factor, double latency_factor)
{
    bool inter = which == GHP_LINK_INTER;
    struct ghp_link *link = inter ? &profile->machine.inter : &profile->machine.intra;
    const struct ghp_link old = *link;
    const struct ghp_link new = {old.latency_s * latency_factor,
                                 old.bandwidth_Bps * bandwidth_factor,
                                 old.asymptotic_Bps * bandwidth_factor};

    if (!is_factor(bandwidth_factor) || !(latency_factor >= 0) || !isfinite(latency_factor))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot scale a link by %g in bandwidth and %g in latency; give finite "
                        "factors, the bandwidth's above 0",
                        bandwidth_factor, latency_factor);
    if (!(old.bandwidth_Bps > 0))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the machine's link '%s' has no bandwidth, so nothing says how it scales; "
                        "set bandwidth_Bps in the machine",
                        inter ? "inter" : "intra");
    for (int i = 0; i < profile->n_comms; i++) {
        struct ghp_comm_entry *entry = &profile->comms[i];
        double old_s, new_s;

        if (ghp_profile_entry_crosses(profile, entry) != inter) continue;
        *link = old;
        old_s = ghp_profile_entry_analytic_s(profile, entry);
        *link = new;
        new_s = ghp_profile_entry_analytic_s(profile, entry);
        entry->seconds *= new_s / old_s;
        entry->source = GHP_SOURCE_ANALYTIC;
    }
    *link = new;
    profile->hash = 0;
    return GHP_OK;
}

enum ghp_status ghp_profile_scale_compute(struct ghp_profile *profile, double factor)
{
    if (!is_factor(factor))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot make operations %g times as fast; give a finite factor above 0",
                        factor);
    for (int i = 0; i < profile->n_ops; i++) {
        ghp_op_entry_scale(&profile->ops[i], 1 / factor);
        profile->ops[i].source = GHP_SOURCE_ANALYTIC;
    }
    profile->analytic.flops_per_s *= factor;
    profile->analytic.memory_Bps *= factor;
    profile->hash = 0;
    return GHP_OK;
}

enum ghp_link_kind ghp_profile_link_of(const struct ghp_profile *profile, struct ghp_ranks ranks,
                                       int workers)
{
    return ghp_machine_crosses(&profile->machine, ranks.count, ranks.stride, workers)
               ? GHP_LINK_INTER
               : GHP_LINK_INTRA;
}
