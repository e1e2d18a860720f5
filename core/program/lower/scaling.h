/* core/program/lower/scaling.h - what learning rates by norms need of a layer. */
#ifndef GHP_CORE_PROGRAM_LOWER_SCALING_H
#define GHP_CORE_PROGRAM_LOWER_SCALING_H

#include "core/program/lower/emitter.h"

/* Whether the learning rates' scaling can be had; splits NULL: not yet known.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the layer or the part of the plan, and what would do
 * Local. Tested tests/core/program/lower/test_scaling.c */
enum ghp_status ghp_lower_check_scaling(const struct ghp_lowering *lowering,
                                        const struct ghp_split *splits);

/* The norms of the gradients that a layer has just made of a micro-batch, before they are added to any. */
enum ghp_status ghp_emit_batch_norms(const struct ghp_emitter *e, int layer, struct ghp_split split,
                                     const struct ghp_local *local);

#endif
