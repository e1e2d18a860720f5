/* planner/search/memory.h - what each choice and each pair keeps in memory, and when: live bytes as a linear sum.
 *
 * A mirror of the lifetimes that core/program/buffer_assignment gives: weights, gradients and moments always;
 * activations from their forward point to their last reader; gradients from their maker to their reader; scratch at
 * its own point. In-place operations hand a buffer on, so each part of its life is attributed to the piece that
 * decides it. What is overwritten, which gradient comes first and which is another's buffer are asked of the functions
 * that the assignment asks (core/program/lower.h); only the points in between are counted here.
 *
 * The sum is the program's live bytes on chains, and never above them on any graph: where several consumers decide
 * how long a tensor lives, only the one that could keep it longest is counted.  Beside the sum stands the one receive
 * segment of the communication stream, the largest that any layer of the plan asks for.
 *
 * Tested  tests/planner/search/test_memory.c (against ghp_program_live) */
#ifndef GHP_PLANNER_SEARCH_MEMORY_H
#define GHP_PLANNER_SEARCH_MEMORY_H

#include "planner/search/instance.h"

/* Fills the spans and receive segments of an instance and sets has_memory.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; what the lowering's scratch source returns */
enum ghp_status ghp_memory_init(struct ghp_instance *instance);

#endif
