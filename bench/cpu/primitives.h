/* bench/cpu/primitives.h - one pass of a convolution or linear layer by each of oneDNN's primitives, alone. */
#ifndef GHP_BENCH_PRIMITIVES_H
#define GHP_BENCH_PRIMITIVES_H

#include "core/sharding/local.h"

enum { GHP_PRIMITIVE_REPEATS = 99, GHP_PRIMITIVE_NAME_BYTES = 96 };

struct ghp_primitive_timing {
    int threads, repeats;
    bool cpu; /* the process' own time over its threads, in place of wall clock */
};

struct ghp_primitive { /* the quickest way to compute a pass */
    char name[GHP_PRIMITIVE_NAME_BYTES];
    double seconds; /* median */
    double spread;  /* (third quartile - first quartile) / median */
    int variants;   /* how many were timed */
};

/* Times all ways of a pass. Returns GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND (no primitive at all, or one failed). */
enum ghp_status ghp_primitive_best(const struct ghp_local *local, enum ghp_pass pass,
                                   struct ghp_primitive_timing timing, struct ghp_primitive *best);

/* Median seconds of the optimizer's update of `weights` weights, all with momentum. */
enum ghp_status ghp_primitive_update(int64_t weights, struct ghp_primitive_timing timing,
                                     double *seconds);

/* Multiply-adds in float on registers alone, on all threads [flop/s]. */
double ghp_primitive_peak(struct ghp_primitive_timing timing);

const char *ghp_primitive_library(void); /* oneDNN's version */

#endif
