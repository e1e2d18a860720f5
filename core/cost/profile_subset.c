/* core/cost/profile_subset.c - the part of a profile that a program needs. */
#include "core/cost/profile_private.h"

#include <string.h>

enum ghp_status ghp_profile_copy_head(const struct ghp_profile *from, struct ghp_profile *to)
{
    struct ghp_profile head = *from;

    *to = (struct ghp_profile){0};
    head.n_ops = head.max_ops = head.n_comms = head.max_comms = 0;
    head.ops = NULL;
    head.comms = NULL;
    head.finalized = false;
    head.hash = 0;
    head.backend = strdup(from->backend != NULL ? from->backend : "");
    head.numerics = strdup(from->numerics != NULL ? from->numerics : "");
    head.created = strdup(from->created != NULL ? from->created : "");
    head.host = strdup(from->host != NULL ? from->host : "");
    head.data = from->data != NULL ? strdup(from->data) : NULL;
    head.machine = (struct ghp_machine){0};
    head.speeds = (struct ghp_speeds){0};
    if (ghp_speeds_copy(&from->speeds, &head.speeds) != GHP_OK ||
        ghp_machine_copy(&from->machine, &head.machine) != GHP_OK || head.backend == NULL ||
        head.numerics == NULL || head.created == NULL || head.host == NULL ||
        (head.data == NULL && from->data != NULL)) {
        ghp_profile_release(&head);
        return GHP_NO_MEMORY();
    }
    *to = head;
    return GHP_OK;
}

static enum ghp_status add_exchange(const struct ghp_profile *profile,
                                    const struct ghp_instr *instr, int workers,
                                    struct ghp_profile *subset)
{
    struct ghp_exchange exchange = ghp_profile_exchange(instr, workers);

    for (int i = 0; i < exchange.n; i++) {
        const struct ghp_exchanged *e = &exchange.of[i];
        struct ghp_comm_interpolation points =
            ghp_profile_comm_points(profile, GHP_COMM_TRANSFER, e->bytes, e->ranks, e->workers);

        for (int p = 0; p < points.n; p++)
            GHP_TRY(ghp_profile_add_comm(subset, points.entry[p]));
    }
    return GHP_OK;
}

/* Adds the entries that cost one instruction. */
static enum ghp_status add_needed(const struct ghp_profile *profile, const struct ghp_instr *instr,
                                  int workers, struct ghp_profile *subset)
{
    if (instr->kind == GHP_INSTR_COMPUTE) {
        struct ghp_op_interpolation points =
            ghp_profile_op_points(profile, &instr->local, instr->pass);

        for (int i = 0; i < points.n; i++)
            GHP_TRY(ghp_profile_add_op(subset, points.entry[i]));
    } else if (instr->kind == GHP_INSTR_SEND) {
        struct ghp_comm_interpolation points;

        GHP_TRY(ghp_profile_transfer_points(profile, &instr->transfer, &points));
        for (int i = 0; i < points.n; i++)
            GHP_TRY(ghp_profile_add_comm(subset, points.entry[i]));
    } else if (ghp_instr_mixes(instr)) {
        struct ghp_instr one = *instr;

        one.servers = one.ranks.count = 1;
        GHP_TRY(add_exchange(profile, &one, workers, subset));
    } else if (ghp_instr_is_served(instr)) {
        GHP_TRY(add_exchange(profile, instr, workers, subset));
    } else if (ghp_instr_sends(instr) && instr->bytes > 0) {
        struct ghp_comm_interpolation points =
            ghp_profile_comm_points(profile, instr->comm, instr->bytes, instr->ranks, workers);

        for (int i = 0; i < points.n; i++)
            GHP_TRY(ghp_profile_add_comm(subset, points.entry[i]));
    }
    return GHP_OK;
}

enum ghp_status ghp_profile_subset(const struct ghp_profile *profile,
                                   const struct ghp_program *program, struct ghp_profile *subset)
{
    return ghp_profile_subset_of(profile, program, 1, subset);
}

enum ghp_status ghp_profile_subset_of(const struct ghp_profile *profile,
                                      const struct ghp_program *programs, int n,
                                      struct ghp_profile *subset)
{
    enum ghp_status status;

    GHP_TRY(ghp_profile_copy_head(profile, subset));
    for (int k = 0; k < n; k++)
        for (int i = 0; i < programs[k].n_instrs; i++)
            GHP_TRY_GOTO(
                status,
                add_needed(profile, &programs[k].instrs[i], programs[k].problem.workers, subset),
                out);
    status = ghp_profile_finalize(subset);

out:
    if (status != GHP_OK) ghp_profile_release(subset);
    return status;
}
