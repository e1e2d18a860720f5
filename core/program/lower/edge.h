/* core/program/lower/edge.h - the instructions of one edge: reshards, and the addition of further gradients. */
#ifndef GHP_CORE_PROGRAM_LOWER_EDGE_H
#define GHP_CORE_PROGRAM_LOWER_EDGE_H

#include "core/program/lower/emitter.h"

/* `from`: the producer's layouts as this stage sees them. */
enum ghp_status ghp_emit_edge_forward(const struct ghp_emitter *e, int edge,
                                      struct ghp_layouts from, struct ghp_split to);
enum ghp_status ghp_emit_edge_backward(const struct ghp_emitter *e, int edge,
                                       struct ghp_layouts from, struct ghp_split to);
/* `dy` of the edge's producer += this edge's gradient. */
enum ghp_status ghp_emit_addition(const struct ghp_emitter *e, int edge, struct ghp_layout dy,
                                  int point);

#endif
