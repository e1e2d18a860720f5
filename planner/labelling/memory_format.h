/* planner/labelling/memory_format.h - which layers' outputs lie blocked ([n][c / 16][h][w][16],
 * docs/explanation/cpu.md), so that a step's passes and the reorders in them take the least time together.
 *
 * What the profile says of an operation's formats is what can be: seconds for each pair (its inputs, its output) that
 * the backend has, reorders included. An operation other than a convolution has its inputs and its output alike, so
 * such operations tie layers into components; a convolution may have either format on either side, at its cost. That
 * makes a graph of components with costs of their own and of pairs, which planner/labelling/labelling.h solves exactly.
 * Gradients lie as what they are of, and what a reshard makes of a tensor as the tensor, wherever its slices of
 * channels are whole blocks: changing a layout costs the same in both formats, and between them
 * (executor/backend/pack.h).
 *
 * Plain in any case: what is loaded, and what passes between stages. */
#ifndef GHP_PLANNER_LABELLING_MEMORY_FORMAT_H
#define GHP_PLANNER_LABELLING_MEMORY_FORMAT_H

#include "core/cost/profile.h"
#include "core/program/lower/lower.h"

/* Decides for the programs that the splits make.
 *
 * how       its `nchw16c` is not read
 * blocked   one a layer, written
 * choice    receives whether the profile leaves any choice, and says enough of each convolution by data to decide:
 *           otherwise nothing is blocked and a plan says nothing
 *
 * Returns   GHP_OK; failures of lowering and costing; GHP_ERR_INFEASIBLE as planner/labelling/labelling.h
 * Local
 * Tested    tests/planner/labelling/test_memory_format.c */
enum ghp_status ghp_memory_format_decide(const struct ghp_lowering *lowering,
                                         const struct ghp_split *splits,
                                         const struct ghp_profile *profile, bool *nchw16c,
                                         bool *choice);

#endif
