/* profiler/worklist/analytic.h - a profile by the analytic model: round numbers in place of measurements, for study
 * and for tests.
 *
 * The text is a list of key=value, separated by commas:
 *     F                   sustained rate of one worker                          [FLOP/s], required
 *     bandwidth, latency  link between nodes                                    [bytes/s], [s], required
 *     intra_bandwidth, intra_latency   link inside a node [as between nodes]    [bytes/s], [s]
 *     memory              of one node [1TiB]                                    [bytes, or 64GiB]
 *     memory_bandwidth    traffic of ops without FLOPs, copies, updates; 0 is free [0]   [bytes/s]
 *     batch_half          samples of a worker at which half of F is reached; 0: F at any [0]
 *     nodes               equal nodes; 0: as many as workers, so that no two share a link [0]
 *     cores               of one node [1 without nodes; required with them]
 *     compute_slowdown, comm_slowdown, link_slowdown   while both streams are busy [1], >= 1
 *
 * Tested  tests/profiler/worklist/test_analytic.c */
#ifndef GHP_PROFILER_WORKLIST_ANALYTIC_H
#define GHP_PROFILER_WORKLIST_ANALYTIC_H

#include "core/cost/profile.h"

/* nodes=0: more nodes than there can be workers, each a worker's own. */
enum { GHP_ANALYTIC_NODES = 1 << 20 };

struct ghp_analytic {
    double flops_per_s;           /* > 0 */
    struct ghp_link inter, intra; /* bandwidth > 0, latency >= 0 */
    int64_t memory_bytes;         /* of a node, > 0 */
    double memory_Bps;            /* >= 0 */
    double batch_half;            /* [samples] >= 0 */
    int nodes;                    /* >= 1 */
    int cores;                    /* of a node, >= 1 */
    struct ghp_overlap overlap;   /* >= 1 each */
};

/* Reads the list.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (unknown key with the nearest, given twice, missing, no number, outside its range) */
enum ghp_status ghp_analytic_parse(const char *text, struct ghp_analytic *analytic);

/* The profile that says what the analytic model says: no entries, workers 0, every source `analytic`. Equal texts
 * give equal profiles, to the bit.
 *
 * numerics, element_bytes   what the profile is for
 * profile                   filled and sealed; released by the caller; zeroed on failure */
enum ghp_status ghp_analytic_profile(const struct ghp_analytic *analytic, const char *numerics,
                                     int element_bytes, struct ghp_profile *profile);

#endif
