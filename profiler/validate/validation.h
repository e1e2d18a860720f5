/* profiler/validate/validation.h - how well a profile prices collectives that are not in it.
 *
 * A plan asks for sizes between those that were measured, and, for other worker counts, for groups that were not. Here
 * both are measured and held against their prices:
 *     sizes    between each two neighbouring sizes of a table (op, count, stride) the geometric middle, and another one
 *              at a place that changes from gap to gap (an all-reduce's is not a multiple of the ranks);
 *     groups   the same messages priced by a copy of the profile without their table, its links fitted again, and
 *              groups that the profile has no table for, such as 3 of 4 ranks.
 * Measured as a profile is: all groups of a kind at once, samples in rounds that lie apart. In a shuffled order, so
 * that neither drift nor the end of the time falls on one kind. No file is written.
 *
 *     collect -> predict (rank 0) -> measure -> rows, sums, table          ghp_validation_run does all but the table
 *
 * Tested  tests/profiler/validate/test_validation.c, tests/tools/profile/test_validation.sh */
#ifndef GHP_PROFILER_VALIDATE_VALIDATION_H
#define GHP_PROFILER_VALIDATE_VALIDATION_H

#include "core/base/json.h"
#include "executor/platform/binding.h"
#include "executor/transport/transport.h"
#include "profiler/worklist/worklist.h"

enum ghp_validation_kind { GHP_VALIDATION_SIZE, GHP_VALIDATION_GROUP, GHP_VALIDATION_COUNT };

/* One collective that the profile did not measure. */
struct ghp_validation_trial {
    struct ghp_worklist_comm comm;     /* samples: what was measured */
    bool costed[GHP_VALIDATION_COUNT]; /* kinds that it is a trial of */
    double predicted_s
        [GHP_VALIDATION_COUNT]; /* by the whole profile; without the table of its (op, count, stride) */
};

struct ghp_validation {
    int n, max;
    struct ghp_validation_trial *trials;
};

/* Errors of one kind in one range of sizes. */
struct ghp_validation_sum {
    int n;       /* trials measured */
    double mean; /* of |predicted / measured - 1| */
    double worst;
    int worst_trial; /* -1: none */
};

struct ghp_validation_request {
    const char *profile_path; /* read by rank 0 */
    enum ghp_bind_mode bind;
    double sample_s; /* how long one sample lasts, > 0; twice as long if workers share cores */
    double budget_s; /* for all measuring, > 0 */
};

struct ghp_validation_result {
    int ranks, nodes;
    bool oversubscribed;
    double seconds;
    struct ghp_validation validation; /* rank 0's has predictions; released by the caller */
};

/* What there is to try of a sealed profile, in shuffled order (the same every time). From 1 KiB to the table's end.
 *
 * ranks   that will measure, >= 1; groups that do not fit into them are left out
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; nothing to try leaves held->n at 0
 * Local */
enum ghp_status ghp_validation_collect(const struct ghp_profile *profile, int ranks,
                                       struct ghp_validation *validation);

/* Prices every trial; `costed` says by which kinds.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (no table of the operation left and a link without bandwidth); GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_validation_predict(const struct ghp_profile *profile,
                                       struct ghp_validation *validation);

/* Frees it; accepts a zeroed one. */
void ghp_validation_release(struct ghp_validation *validation);

/* All of it.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (measured with other ranks or nodes, or without collectives); failures of reading,
 *           pricing and the transport. All ranks fail together.
 * Collective over all ranks */
enum ghp_status ghp_validation_run(const struct ghp_validation_request *request,
                                   struct ghp_transport *transport,
                                   struct ghp_validation_result *result);

/* predicted / measured - 1; 0 if it was not measured. Local. */
double ghp_validation_error(const struct ghp_validation_trial *trial,
                            enum ghp_validation_kind kind);

/* Sum over the measured trials of a kind with from <= bytes < to. Local. */
struct ghp_validation_sum ghp_validation_sum_of(const struct ghp_validation *validation,
                                                enum ghp_validation_kind kind, int64_t from,
                                                int64_t to);

/* A row a trial and kind, sorted, then the sums.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_validation_print(struct ghp_validation_result *result, const char *profile_path,
                                     FILE *out);

/* The same as an object that the caller releases; NULL without memory. Local. */
json_t *ghp_validation_json(struct ghp_validation_result *result, const char *profile_path);

#endif
