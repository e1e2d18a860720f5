/* planner/make/formats.h - which tensors of plans lie blocked (planner/labelling/memory_format.h).
 *
 * They are decided before a search, for data parallelism, so that all plans it compares have the same formats, and the
 * proof holds for them. If the plan found passes blocked tensors between stages, it is planned again with formats
 * that suit its stages, and after that with none (build/build.c).
 *
 * Tested  tests/planner/make/test_formats.c */
#ifndef GHP_PLANNER_MAKE_FORMATS_H
#define GHP_PLANNER_MAKE_FORMATS_H

#include "core/cost/profile.h"
#include "core/program/lower/lower.h"

/* The best formats for splits; a network with more tied at once than can be decided exactly keeps to the executor's own
 * rule.
 *
 * how       with the plan's stages
 * splits    one a layer; NULL: all by data
 * nchw16c   one a layer, owned by the caller; NULL: there is no choice
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; failures of lowering and costing */
enum ghp_status ghp_formats_decide(const struct ghp_lowering *lowering,
                                   const struct ghp_split *splits,
                                   const struct ghp_profile *profile, bool **nchw16c);

#endif
