/* core/program/lower/buffer_assignment.h - operands and buffers of a complete list of instructions. */
#ifndef GHP_CORE_PROGRAM_LOWER_BUFFER_ASSIGNMENT_H
#define GHP_CORE_PROGRAM_LOWER_BUFFER_ASSIGNMENT_H

#include "core/program/liveness.h"
#include "core/program/lower/bucket.h"

/* What instruction `index` accesses, inputs before outputs. Neighbours of a reshard's step are in the same list.
 * Local. Tested tests/planner/search/test_memory.c, tests/core/program/lower/test_lower.c */
void ghp_instr_accesses(const struct ghp_lowering *lowering, const struct ghp_program *program,
                        int index, struct ghp_accesses *accesses);

/* Returns   GHP_OK; what the scratch source returns
 * Tested    tests/planner/search/test_memory.c (both sums are equal on chains) */
enum ghp_status ghp_lower_scratch(const struct ghp_lowering *lowering,
                                  const struct ghp_instr *instr, struct ghp_instr_scratch *scratch);

/* Operands, buffers, buckets and lifetimes for a complete list of instructions. */
enum ghp_status ghp_buffers_assign(const struct ghp_lowering *lowering,
                                   const struct ghp_split *splits,
                                   const struct ghp_bucket_plan *buckets,
                                   struct ghp_program *program);

#endif
