/* planner/build/staged.h - a plan's stages and micro-batches, once they are decided: groups, buckets, prediction,
 * costs.
 *
 * Called by planner/build/build.h alone, which says when. */
#ifndef GHP_PLANNER_BUILD_STAGED_H
#define GHP_PLANNER_BUILD_STAGED_H

#include "planner/build/request.h"

enum { GHP_BUILD_BUCKET_SIZES = 11 };

/* Tried where the request leaves it open [bytes]; the first: each layer alone. */
extern const int64_t ghp_build_bucket_sizes[GHP_BUILD_BUCKET_SIZES];

/* The staging that the request gives; n and micro_batches 0: none.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (cannot be read, or does not fit --groups) */
enum ghp_status ghp_staged_given(const struct ghp_plan_request *request,
                                 const struct ghp_model *model, struct ghp_staging *staging);

/* Takes the partition's staging and splits into the plan: groups, the fastest bucket size tried, prediction.
 *
 * how   without staging; its bucket size is taken where the request gives one
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_staged_adopt(const struct ghp_plan_request *request,
                                 const struct ghp_lowering *how,
                                 const struct ghp_partition *partition, struct ghp_plan *plan);

/* Takes the entries that the plan's programs ask for: of every worker whose shapes differ from the others' of its
 * stage.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; errors of lowering */
enum ghp_status ghp_staged_subset(const struct ghp_profile *profile, struct ghp_plan *plan);

#endif
