/* core/cost/calibration.h - what a profile owes to runs: the corrections that ghp-plan --calibrate made, and why.
 *
 * The corrections themselves are in the profile's entries, which then say `calibrated`.  Here is what has no entry to
 * lie in - seconds beside the instructions themselves - and the provenance: which runs, which factors, what they
 * changed.  Not a second price list: core/cost/profile_cost.c alone adds the seconds. */
#ifndef GHP_CORE_COST_CALIBRATION_H
#define GHP_CORE_COST_CALIBRATION_H

#include "core/program/program.h"

struct ghp_calibration_run {
    char *path; /* as given; provenance only */
    uint64_t hash;
};

struct ghp_calibration_factor {
    char *term;      /* "conv2d forward", "all_gather over 4", ... */
    double factor;   /* corrected seconds = factor * seconds + extra_s */
    double extra_s;  /* a call */
    int64_t n;       /* instructions of the runs that it was estimated from */
    double weight_s; /* their predicted seconds */
};

struct ghp_calibration_error { /* |predicted - measured| / measured of a step, over the runs */
    double mean, worst;
};

struct ghp_calibration {
    char *created;         /* ISO 8601 UTC */
    uint64_t profile_hash; /* of the profile that was corrected */
    double instruction_s;  /* between two instructions of the compute stream */
    double exchange_s;     /* waiting for partners in a blocking exchange */
    double reduction_s;    /* waiting for partners in a reduction of the communication stream */
    struct ghp_calibration_error before, after;
    bool validated;                        /* held_out is known: there were several runs */
    struct ghp_calibration_error held_out; /* each run predicted by the others alone */
    int n_runs;
    struct ghp_calibration_run *runs;
    int n_factors;
    struct ghp_calibration_factor *factors;
};

/* An empty one with room for runs and factors; n_runs and n_factors count them already.  NULL when out of memory. */
struct ghp_calibration *ghp_calibration_open(int n_runs, int n_factors);
void ghp_calibration_close(struct ghp_calibration *calibration); /* accepts NULL */

/* A copy; NULL gives NULL.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_calibration_copy(const struct ghp_calibration *from,
                                     struct ghp_calibration **to);

/* Seconds that an instruction costs beside itself: before it (the compute stream's bookkeeping), and inside it while it
 * waits for partners that are late.  0 without calibration (NULL). */
double ghp_calibration_between_s(const struct ghp_calibration *calibration,
                                 const struct ghp_instr *instr);
double ghp_calibration_partners_s(const struct ghp_calibration *calibration,
                                  const struct ghp_instr *instr);

#endif
