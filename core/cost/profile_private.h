/* core/cost/profile_private.h - which entries a cost is made of: one answer for costing and for the part a plan
 * carries.
 *
 * Interpolation points are the entries that a cost is computed from, and it is computed from them alone. A profile that
 * holds just these entries gives the same points, hence the same seconds, bit for bit. */
#ifndef GHP_CORE_COST_PROFILE_PRIVATE_H
#define GHP_CORE_COST_PROFILE_PRIVATE_H

#include "core/cost/profile.h"
#include "core/model/padding.h"

struct ghp_op_interpolation {
    int n; /* entries: 0 analytic model, 1 exact or proportional, 2 affine */
    const struct ghp_op_entry *entry[2]; /* ascending in samples */
    int64_t samples[2];
};

/* A collective is read off the table of its own kind, or of another operation over the same groups, or of other groups;
 * there at the size that loads the link as much. */
struct ghp_comm_interpolation {
    int n; /* entries: 0 analytic model, 1 exact or below the table, 2 between, or the last two for what is beyond it */
    bool own;                              /* of the kind that was asked for */
    const struct ghp_comm_entry *entry[2]; /* ascending in bytes */
    int64_t bytes;                         /* at which the table is read */
    double factor;                         /* of the seconds read there */
};

/* The entries that a pass of a local operation is costed by. */
struct ghp_op_interpolation ghp_profile_op_points(const struct ghp_profile *profile,
                                                  const struct ghp_local *local,
                                                  enum ghp_pass pass);

/* The entries that a collective (ranks.count > 1, bytes > 0) is costed by. */
struct ghp_comm_interpolation ghp_profile_comm_points(const struct ghp_profile *profile,
                                                      enum ghp_comm_op op, int64_t bytes,
                                                      struct ghp_ranks ranks, int workers);

/* The entries that a transfer is costed by. */
enum ghp_status ghp_profile_transfer_points(const struct ghp_profile *profile,
                                            const struct ghp_transfer *transfer,
                                            struct ghp_comm_interpolation *points);

/* Sorts the entries. Returns   GHP_OK; GHP_ERR_INPUT: two are of the same thing */
enum ghp_status ghp_profile_sort(struct ghp_profile *profile);

/* Everything of a profile but its entries; not finalized. Returns   GHP_OK; GHP_ERR_NO_MEMORY (`to` is zeroed) */
enum ghp_status ghp_profile_copy_head(const struct ghp_profile *from, struct ghp_profile *to);

/* Whether groups of `count` ranks at `stride` have members on several nodes. */
bool ghp_machine_crosses(const struct ghp_machine *machine, int count, int stride, int workers);

/* The same of a measured entry, as its groups lay while it was measured; and its seconds by the ring model. */
bool ghp_profile_entry_crosses(const struct ghp_profile *profile,
                               const struct ghp_comm_entry *entry);
double ghp_profile_entry_analytic_s(const struct ghp_profile *profile,
                                    const struct ghp_comm_entry *entry);

/* What of an exchange with the servers takes longest decides: the slowest port, a server's that many workers use or a
 * worker's own; or a node's outer link, which its workers share.
 *
 *     max(1, N / S) * bytes / bandwidth + latency
 *
 * Source   docs/explanation/time-model.md 3 */
struct ghp_exchange {
    int n;
    struct ghp_exchanged {
        int64_t bytes;
        struct ghp_ranks ranks;
        int workers;
    } of[2];
};
struct ghp_exchange ghp_profile_exchange(const struct ghp_instr *instr, int workers);

#endif
