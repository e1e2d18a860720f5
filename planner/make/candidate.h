/* planner/make/candidate.h - one whole plan, as numbers: splits, stages, buckets, recomputed layers, and what it is
 * predicted to take. Made once, from what a search returned, and never changed.
 *
 * Called by planner/make/make.h alone. Tested  tests/planner/make/test_make.c */
#ifndef GHP_PLANNER_MAKE_CANDIDATE_H
#define GHP_PLANNER_MAKE_CANDIDATE_H

#include "planner/make/context.h"

struct ghp_candidate {
    struct ghp_split *splits;   /* one a layer; owned; NULL: there is no such plan */
    struct ghp_staging staging; /* zeroed: none. Its lists are the next two */
    int64_t *shares;            /* one a worker, or NULL; owned */
    bool *recompute;            /* one a layer, or NULL; owned */
    int groups;
    int64_t bucket_bytes;
    struct ghp_sync sync; /* zeroed: the request's */
    struct ghp_prediction predicted;
};

/* That are tried if the request leaves it open, from each layer alone on. */
enum { GHP_CANDIDATE_BUCKET_SIZES = 11 };
extern const int64_t ghp_candidate_bucket_sizes[GHP_CANDIDATE_BUCKET_SIZES];

/* The fastest of the plans that a search kept, with the bucket size that is fastest of those tried if the request
 * leaves it open; each layer alone if that is as fast.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_candidate_of_search(const struct ghp_plan_context *context,
                                        const struct ghp_search_result *result,
                                        struct ghp_candidate *candidate);

/* The plan of a search over stages, or by trial or rules, with its fastest bucket size in the same way. */
enum ghp_status ghp_candidate_of_partition(const struct ghp_plan_context *context,
                                           const struct ghp_partition *partition,
                                           struct ghp_candidate *candidate);

/* The plan without stages of these splits and this bucket size.
 *
 * splits   one a layer; copied */
enum ghp_status ghp_candidate_of_splits(const struct ghp_plan_context *context,
                                        const struct ghp_split *splits, int64_t bucket_bytes,
                                        struct ghp_candidate *candidate);

/* A copy with lists of its own. */
enum ghp_status ghp_candidate_copy(const struct ghp_plan_context *context,
                                   const struct ghp_candidate *from, struct ghp_candidate *to);
void ghp_candidate_release(struct ghp_candidate *candidate); /* accepts a zeroed one */

/* Whether its bucket size was tried on top of a search with another. */
bool ghp_candidate_is_tuned(const struct ghp_plan_context *context,
                            const struct ghp_candidate *candidate);

/* Whether a worker's arena is within the limit, if there is one. */
bool ghp_candidate_fits(const struct ghp_plan_context *context, int64_t peak_bytes);

/* Layers that are not split by data. */
int ghp_candidate_split_layers(const struct ghp_plan_context *context,
                               const struct ghp_candidate *candidate);

#endif
