/* profiler/worklist/analytic_op.h - what an operation costs that nobody measured, by those of its kind that were.
 *
 *     seconds = flop_s flops + byte_s bytes
 *
 * for each kind of operation and pass, both >= 0, with the least squares of relative errors: small images with many
 * weights take their time by the bytes, large ones by the FLOPs, and one rate for both is wrong by several times.
 *
 * Private to profiler/.  Tested  tests/profiler/worklist/test_analytic_op.c */
#ifndef GHP_PROFILER_WORKLIST_ANALYTIC_OP_H
#define GHP_PROFILER_WORKLIST_ANALYTIC_OP_H

#include "core/sharding/local.h"

#include <stdbool.h>

struct ghp_op_work {
    enum ghp_op op;
    enum ghp_pass pass;
    double flops, bytes; /* least memory traffic, > 0 */
};

/* Sums over what was measured; zeroed: nothing yet. */
struct ghp_analytic_op {
    struct ghp_op_sums {
        double flops, bytes, flops2, bytes2, both; /* of flops / seconds and bytes / seconds */
    } of[GHP_OP_COUNT][GHP_PASS_COUNT];
};

/* Adds one that was measured, seconds > 0. */
void ghp_analytic_op_add(struct ghp_analytic_op *laws, const struct ghp_op_work *work,
                         double seconds);

/* Seconds of the work by the analytic model of its kind; 0: none of its kind was measured. */
double ghp_analytic_op_seconds(const struct ghp_analytic_op *laws, const struct ghp_op_work *work);

#endif
