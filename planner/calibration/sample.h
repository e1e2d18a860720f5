/* planner/calibration/sample.h - what runs say of a profile: for each instruction the profile's seconds beside the measured.
 *
 * A run's program is lowered again from the model and the run's own splits, and must be the run's list of instructions,
 * one by one.  Each instruction that the profile prices becomes an observation of a *part* of the profile: the entries
 * of one operation and pass, the table of one collective and group size, a rate, a law.  Not an estimate: that is
 * planner/calibration/correction.h.
 *
 * Tested  tests/planner/test_calibrate.c */
#ifndef GHP_PLANNER_CALIBRATION_SAMPLE_H
#define GHP_PLANNER_CALIBRATION_SAMPLE_H

#include "core/cost/profile.h"
#include "inspect/record.h"

enum ghp_part_kind {
    GHP_PART_COMPUTE, /* entries of one operation and pass */
    GHP_PART_LAW,     /* law of computation */
    GHP_PART_COMM,    /* tables of one collective and group size */
    GHP_PART_LINK,    /* law of collectives: the machine's links */
    GHP_PART_COPY,    /* the four rates */
    GHP_PART_UPDATE,
    GHP_PART_LOAD,
    GHP_PART_ACCUMULATE,
    GHP_PART_BESIDE_COMPUTE, /* the three slowdowns */
    GHP_PART_BESIDE_COMM,
    GHP_PART_BESIDE_LINK,
    GHP_PART_BETWEEN,  /* between two instructions */
    GHP_PART_EXCHANGE, /* waiting for partners in a blocking exchange */
    GHP_PART_REDUCTION /* and in a reduction of the communication stream */
};

struct ghp_part {
    enum ghp_part_kind kind;
    int op;    /* COMPUTE: enum ghp_op; COMM: enum ghp_comm_op; else 0 */
    int which; /* COMPUTE: enum ghp_pass; COMM: ranks of a group; else 0 */
};

struct ghp_observation {
    int run;
    int first; /* observation of the same part that comes first */
    struct ghp_part part;
    double price_s; /* of the part, alone, > 0 */
    double copy_s;  /* price of the copying that is measured with it */
    double own_s;   /* measured, without waiting for partners, > 0 */
    double partners_s;
    bool sends;
    bool beside;       /* on the communication stream */
    double shares[3];  /* of own_s beside the other stream, as the BESIDE parts are ordered */
    double exchange_s; /* price of the exchange alone; of a reduction: mean of those beside it */
    int64_t bytes;
};

struct ghp_run_case { /* one run, lowered again */
    const struct ghp_record *record;
    struct ghp_program program;
    double between_s; /* measured, a compute-stream instruction */
};

struct ghp_observations {
    int n_runs;
    struct ghp_run_case *runs;
    int n;
    struct ghp_observation *items;
};

/* Lowers the runs' programs and joins them with the profile.
 *
 * model     that the runs trained
 * records   n of them, borrowed as long as the observations live
 * profile   sealed, not calibrated
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a run of another model, worker count, backend, numerics, precision, version, or with
 *           a fault); GHP_ERR_MISSING (no price); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_observe(const struct ghp_model *model, const struct ghp_record *records, int n,
                            const struct ghp_profile *profile, struct ghp_observations *out);
void ghp_observations_release(struct ghp_observations *observations); /* accepts a zeroed one */

/* "conv2d forward", "all_gather over 4", "copy", ... */
void ghp_part_text(struct ghp_part part, char *text, size_t n);

/* How much slower than alone while beside the other stream; kind 0 .. 2, as the BESIDE parts are ordered. */
double ghp_observation_slowed(const struct ghp_observation *o, const struct ghp_overlap *overlap,
                              int kind);

/* How much slower an observation is than alone.
 *
 *     1 / (1 - sum of share (1 - 1 / slowed))
 *
 * Source   [R] work done in a share y of the time goes 1 / slowed as fast */
double ghp_observation_slowdown(const struct ghp_observation *o, const struct ghp_overlap *overlap);

#endif
