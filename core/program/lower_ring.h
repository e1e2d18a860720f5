/* core/program/lower_ring.h - the instructions of an attention whose keys and values come in pieces (program/ring.h). */
#ifndef GHP_CORE_PROGRAM_LOWER_RING_H
#define GHP_CORE_PROGRAM_LOWER_RING_H

#include "core/program/lower_emitter.h"

/* One pass of the layer: its forward pass or its data gradients. */
enum ghp_status ghp_emit_ring(const struct ghp_emitter *e, int layer, struct ghp_split split,
                              enum ghp_pass pass);

#endif
