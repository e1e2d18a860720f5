/* planner/search/memory.h - what each choice and each pair keeps in memory, and when: live bytes as a linear sum.
 *
 * When a tensor lives follows from what the instructions of the pieces access, by the table that the program's buffers
 * follow from (core/program/liveness.h); weights, gradients and moments live always, scratch at its own point. In-place
 * operations pass a buffer to the next layer, so each part of its life is attributed to the piece that decides it.
 * core/program/lower/lower.h decides what is overwritten, which gradient comes first and which one is another's buffer.
 *
 * The sum is the program's live bytes on chains, and never above them on any graph: if several consumers decide how
 * long a tensor lives, only the one that could keep it longest is counted. The receive segment of the communication
 * stream is counted in addition, once: the largest that any layer of the plan needs.
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
