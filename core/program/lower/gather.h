/* core/program/lower/gather.h - when sharded weights are gathered, and reductions of sharded gradients waited for. */
#ifndef GHP_CORE_PROGRAM_LOWER_GATHER_H
#define GHP_CORE_PROGRAM_LOWER_GATHER_H

#include "core/program/lower/emitter.h"

/* Inserts into a complete list without operands: before each use of sharded weights their gather, with the update
 * before the first use in a step, and after each reduction of gradients that do not last the wait for it.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/executor/train/test_sharding.c, tests/core/program/test_kinds.c */
enum ghp_status ghp_emit_gathers(const struct ghp_emitter *e);

#endif
