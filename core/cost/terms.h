/* core/cost/terms.h - what each layer of a simulated program costs, term by term.
 *
 * Each term is alone, without waiting and slowdown, so they sum to the two streams' work, not to the step; but for
 * `exposed_s`, which is waiting. A reduction of several layers together is shared out by their bytes; a reshard
 * belongs to the layer that reads.
 *
 * Tested  tests/planner/alternatives/test_break_even.c (they sum to the streams' work and to the exposed waiting) */
#ifndef GHP_CORE_COST_TERMS_H
#define GHP_CORE_COST_TERMS_H

#include "core/cost/simulate.h"

struct ghp_term { /* of one layer; seconds a step */
    double forward_s, backward_s, reshard_s, reduce_s, update_s;
    double exposed_s; /* computation waits before this layer for its reduction; slowdown included */
    double sent_bytes; /* by one worker */
};

/* Adds up every instruction.
 *
 * timing   of the program
 * terms    one a layer, zeroed by the caller; the metrics' reduction is the last layer's */
void ghp_terms_of(const struct ghp_program *program, const struct ghp_timing *timing, int n_layers,
                  struct ghp_term *terms);

/* Seconds of the reshards on all edges of a layer, before it and after it. */
double ghp_terms_around(const struct ghp_program *program, const struct ghp_timing *timing,
                        const struct ghp_model *model, int layer);

#endif
