/* profiler/measure/comm.h - collectives: timed with all groups of their kind at once, and the analytic model fitted
 * to them.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_comm.c */
#ifndef GHP_PROFILER_MEASURE_COMM_H
#define GHP_PROFILER_MEASURE_COMM_H

#include "profiler/worklist/worklist.h"
#include "profiler/measure/measure.h"

/* Bounds of one round. */
struct ghp_comm_limits {
    int samples; /* of each collective, >= 1 */
    /* on rank 0's ghp_now_s: what has not begun by then is left to the analytic model. One collective is
     * measured even so, of about 1 MiB if there is one: without any, the links would be a guess */
    double deadline_s;
    /* for the buffers of one rank; larger messages are left to the analytic model */
    int64_t memory_bytes;
};

/* One round: takes samples of every collective of the work list that is not kept, and enters in rank 0's profile what
 * all rounds so far say (other ranks may give a zeroed profile).
 *
 * work list   comms[].samples grow; equal on all ranks
 *
 * Collective over m->world */
enum ghp_status ghp_measure_comms(const struct ghp_measure *m, struct ghp_worklist *worklist,
                                  struct ghp_comm_limits limits, struct ghp_profile *profile);

/* Seconds of a collective of 1 MiB of the last kind that was measured; zeroed: of none yet. */
struct ghp_comm_rest {
    enum ghp_comm_op op;
    int count, stride;
    double long_s;
};

/* Takes `samples` more samples of one collective and adds them to what->samples. Between them it pauses for 0.3 ms, or
 * as long as the link may be occupied after each.
 *
 * rest   NULL: 0.3 ms
 *
 * Collective over m->world */
enum ghp_status ghp_measure_comm(const struct ghp_measure *m, struct ghp_worklist_comm *what,
                                 int samples, struct ghp_comm_rest *rest);

/* The ranks that this rank makes a group with, when `size` ranks are cut into groups of `count` ranks `stride` apart;
 * itself alone if the rest is too small for another group. Local. */
struct ghp_ranks ghp_measure_ranks(int rank, int size, int count, int stride);

/* Fits latency and bandwidth of the analytic model to the profile's measured collectives, the inner link to those whose
 * groups stay inside a node and the outer link to those that cross nodes. A link that none was measured on stays as
 * it is. If long messages were measured, the bandwidth is the rate at which they grow, and the latency fits brief
 * ones. If only brief ones were, the latency fits them and the bandwidth stays as it is; else both fit all. Least squares of the relative error, latency >= 0. Local. */
void ghp_measure_fit_links(struct ghp_profile *profile, int workers);

#endif
