/* core/cost/missing.h - what plans cost by laws because nobody measured it: ghp-plan names it, ghp-profile measures it.
 *
 * `ghp.wanted/1`: operations and collectives, those first that the most seconds of a plan's step hang on. An empty list
 * says that nothing unmeasured can change which plan is chosen (planner/make/missing.h).
 *
 * Tested  tests/core/cost/test_missing.c */
#ifndef GHP_CORE_COST_MISSING_H
#define GHP_CORE_COST_MISSING_H

#include "core/cost/profile.h"

/* So far seconds by a law, and those of a collective by another kind's table or by the analytic model, are mostly from
 * what is measured, as a fraction of them: docs/explanation/time-model.md 3. */
#define GHP_MISSING_LAW_ERROR 0.25
#define GHP_MISSING_COMM_ERROR 1.0

struct ghp_missing_item {
    bool is_comm;
    /* an operation */
    char key[GHP_KEY_BYTES];
    enum ghp_pass pass;
    /* a collective */
    enum ghp_comm_op op;
    int count, stride;
    int64_t bytes;
    double seconds;  /* of a step, in the plan that spends most on it */
    double so_far_s; /* in the plan that is being added */
};

struct ghp_missing {
    int n, max;
    struct ghp_missing_item *items;
};

/* Adds what a plan's programs are costed by and the profile has by a law. No law is the line through the two longest
 * collectives of a kind, for what is up to four times as long as the longest, of 1 MiB and more.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_missing_add(struct ghp_missing *missing, const struct ghp_profile *profile,
                                const struct ghp_program *programs, int n);

/* Sorts, the most seconds first, and drops the end of which all errors together are at most least_s. */
void ghp_missing_trim(struct ghp_missing *missing, double least_s);

enum ghp_status ghp_missing_save(const char *path, const struct ghp_missing *missing);
enum ghp_status ghp_missing_load(const char *path, struct ghp_missing *missing);
void ghp_missing_release(struct ghp_missing *missing); /* accepts a zeroed one */

#endif
