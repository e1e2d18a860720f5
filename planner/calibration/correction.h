/* planner/calibration/correction.h - how a profile should be corrected, from observations: few factors, robust, held back.
 *
 * One factor a part of the profile; for a collective whose observed sizes differ enough also seconds a call, so that
 * latency and rate are corrected apart.  Each factor is the median of measured / predicted over the part's
 * instructions, weighted by their predicted seconds, with the contention of the time taken out, and is then held back
 * towards 1:
 *
 *     log f = log(median) t2 / (t2 + s2 / n + r2 / runs)
 *
 *     t = 0.3    how far a profile is expected to be off for a part                          [log seconds]
 *     s          spread of the part's ratios (1.4826 x median absolute deviation), at least 0.1
 *     n          effective number of instructions, (sum w)^2 / sum w^2
 *     r = 0.05   how much the same part differs from run to run; runs: that have the part
 *
 * which is the posterior mean of log f under independent normal errors.  Ratios that scatter as wildly as 0.5 over 3
 * instructions keep half of their correction, consistent ones nearly all.  t, s and r are in line with the errors of
 * this model's predictions (README: some 20 %) and with repeated runs on one machine.
 * A slowdown beside the other stream is estimated only from parts that were seen both alone and beside it.  Where the
 * profile has a queue (overlap.queue_s), `link` and it are estimated together, from exchanges that it makes at most 5
 * times as long: shares do not resolve longer waits, and reductions do not lose by them.
 *
 * Tested  tests/planner/test_calibrate.c */
#ifndef GHP_PLANNER_CALIBRATION_CORRECTION_H
#define GHP_PLANNER_CALIBRATION_CORRECTION_H

#include "planner/calibration/sample.h"

struct ghp_correction {
    struct ghp_part part;
    double factor;
    double extra_s; /* a call */
    int64_t n;      /* observations */
    double weight_s;
};

/* Estimates all corrections that the observations allow.
 *
 * counts        of each run: whether its observations count (the rest is held out)
 * overlap       the profile's
 * corrections   room for observations->n + 6; n receives how many
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_corrections_estimate(const struct ghp_observations *observations,
                                         const bool *counts, const struct ghp_overlap *overlap,
                                         struct ghp_correction *corrections, int *n);

/* Corrects a slowdown beside the other stream; none falls below 1. */
void ghp_correction_slow(const struct ghp_correction *correction, struct ghp_overlap *overlap);

#endif
