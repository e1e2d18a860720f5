/* profiler/validate/validation.h - how well a profile prices collectives that are not in it.
 *
 * A plan asks for sizes between those that were measured, and, for other worker counts, for groups that were not.  Here
 * both are measured and held against their prices:
 *     sizes    between each two neighbouring sizes of a table (op, count, stride) the geometric middle, and another one
 *              at a place that changes from gap to gap (an all-reduce's is no multiple of the ranks);
 *     groups   the same messages priced by a copy of the profile without their table, its links fitted anew, and groups
 *              that the profile has no table for, such as 3 of 4 ranks.
 * Measured as a profile is: all groups of a kind at once, samples in rounds that lie apart.  In a shuffled order, so that
 * neither drift nor the end of the time falls on one kind.  No file is written.
 *
 *     collect -> predict (rank 0) -> measure -> rows, sums, table          ghp_held_out_run does all but the table
 *
 * Tested  tests/profiler/validate/test_held_out.c, tests/tools/profile/test_held_out.sh */
#ifndef GHP_PROFILER_VALIDATE_VALIDATION_H
#define GHP_PROFILER_VALIDATE_VALIDATION_H

#include "core/base/json.h"
#include "executor/platform/binding.h"
#include "executor/transport/transport.h"
#include "profiler/worklist/worklist.h"

enum ghp_held_out_kind { GHP_HELD_OUT_SIZE, GHP_HELD_OUT_GROUP, GHP_HELD_OUT_COUNT };

/* One collective that the profile did not measure. */
struct ghp_held_out_trial {
    struct ghp_agenda_comm comm; /* samples: what was measured */
    bool priced[GHP_HELD_OUT_COUNT]; /* kinds that it is a trial of */
    double predicted_s[GHP_HELD_OUT_COUNT]; /* by the whole profile; without the table of its (op, count, stride) */
};

struct ghp_held_out {
    int n, max;
    struct ghp_held_out_trial *trials;
};

/* Errors of one kind in one range of sizes. */
struct ghp_held_out_sum {
    int n;       /* trials measured */
    double mean; /* of |predicted / measured - 1| */
    double worst;
    int worst_trial; /* -1: none */
};

struct ghp_held_out_request {
    const char *profile_path; /* read by rank 0 */
    enum ghp_bind_mode bind;
    double sample_s; /* how long one sample lasts, > 0; twice as long where workers share cores */
    double budget_s; /* for all measuring, > 0 */
};

struct ghp_held_out_result {
    int ranks, nodes;
    bool oversubscribed;
    double seconds;
    struct ghp_held_out held; /* rank 0's has predictions; released by the caller */
};

/* What there is to try of a sealed profile, in shuffled order (the same every time).  From 1 KiB to the table's end.
 *
 * ranks   that will measure, >= 1; groups that do not fit into them are left out
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; nothing to try leaves held->n at 0
 * Local */
enum ghp_status ghp_held_out_collect(const struct ghp_profile *profile, int ranks,
                                     struct ghp_held_out *held);

/* Prices every trial; `priced` says by which kinds.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (no table of the operation left and a link without bandwidth); GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_held_out_predict(const struct ghp_profile *profile, struct ghp_held_out *held);

/* Frees it; accepts a zeroed one. */
void ghp_held_out_release(struct ghp_held_out *held);

/* All of it.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (measured with other ranks or nodes, or without collectives); failures of reading,
 *           pricing and the transport. All ranks fail together.
 * Collective over all ranks */
enum ghp_status ghp_held_out_run(const struct ghp_held_out_request *request,
                                 const struct ghp_transport_ops *transport_ops,
                                 struct ghp_transport *transport,
                                 struct ghp_held_out_result *result);

/* predicted / measured - 1; 0 where it was not measured.  Local. */
double ghp_held_out_error(const struct ghp_held_out_trial *trial, enum ghp_held_out_kind kind);

/* Sum over the measured trials of a kind with from <= bytes < to.  Local. */
struct ghp_held_out_sum ghp_held_out_sum(const struct ghp_held_out *held,
                                         enum ghp_held_out_kind kind, int64_t from, int64_t to);

/* A row a trial and kind, sorted, then the sums.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_held_out_print(struct ghp_held_out_result *result, const char *profile_path,
                                   FILE *out);

/* The same as an object that the caller releases; NULL without memory.  Local. */
json_t *ghp_held_out_json(struct ghp_held_out_result *result, const char *profile_path);

#endif
