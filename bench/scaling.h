/* bench/scaling.h - published speed-ups, costed again by ghp's own program and simulation, and fits of a few
 * parameters.
 *
 * A *case* is one published figure: a network, a global batch, a number of nodes, a speed-up over one node that runs
 * the same global batch. A *node* is what the cluster is made of: one worker each, costed by the analytic model
 * alone.
 *                     Plan kinds are the
 * published ones: convolutions (and all before the first linear layer) by data, each linear layer over a group.
 *
 * Call order: fill cases, ghp_scaling_open -> ghp_scaling_speedup, ghp_scaling_fit, ghp_scaling_own ->
 * ghp_scaling_close. */
#ifndef GHP_BENCH_SCALING_H
#define GHP_BENCH_SCALING_H

#include "core/model/model.h"

enum { GHP_SCALING_MOST = 4, GHP_SCALING_PARAMETERS = 2 }; /* cases of one fit; what may be free */

enum ghp_scaling_kind {
    GHP_SCALING_BEST, /* one group size for all linear layers: the fastest by ghp's costs */
    GHP_SCALING_RULE, /* groups by layer: sqrt(N B / output features), to the nearest power of two */
    GHP_SCALING_OWT,  /* one group of all nodes */
    GHP_SCALING_KINDS
};

struct ghp_scaling_node {
    double flops_per_s;   /* of one node, at many samples */
    double bandwidth_Bps; /* of its link, each way */
    double latency_s;     /* of one message */
    double batch_half;    /* samples at which half of flops_per_s is reached */
};

struct ghp_scaling_case {
    const char *network; /* file name without .json */
    int64_t batch;       /* global */
    int nodes;           /* a power of two */
    double published;    /* speed-up; 0: none */
    struct ghp_model model;
};

/* What a fit may change, and what it found. */
struct ghp_scaling_fit {
    enum ghp_scaling_kind kind;
    int n_free;                       /* 1: batch_half; 2: bandwidth_Bps too */
    unsigned left_out;                /* bit k: case k is not looked at */
    struct ghp_scaling_node node;     /* in: what is not free; out: all */
    double speedup[GHP_SCALING_MOST]; /* out: of every case, left out or not */
    int tp_size[GHP_SCALING_MOST];    /* out: nodes in a group of the first linear layer */
};

/* Reads FOLDER/NETWORK.json into the cases. */
enum ghp_status ghp_scaling_open(const char *folder, struct ghp_scaling_case *cases, int n);
void ghp_scaling_close(struct ghp_scaling_case *cases, int n);

/* Seconds of one node's step over seconds of the cluster's, by the same analytic model.
 *
 * TP size   nodes in a group of the first linear layer; may be NULL
 *
 * Returns   GHP_OK; errors of lowering and costs */
enum ghp_status ghp_scaling_speedup(const struct ghp_scaling_case *item,
                                    const struct ghp_scaling_node *node, enum ghp_scaling_kind kind,
                                    double *speedup, int *tp_size);

/* The least sum of squares of the relative errors over the cases that are not left out: batch_half within [0, 8]
 * samples, bandwidth within [1/16, 1] of the node's. A grid, then steps along each parameter that halve. */
enum ghp_status ghp_scaling_fit(const struct ghp_scaling_case *cases, int n,
                                struct ghp_scaling_fit *fit);

/* The speed-up of the fastest plan that ghp-plan finds.
 *
 * force     as ghp-plan's --force; NULL: any plan
 * gap       relative, of the search; that reached comes back */
enum ghp_status ghp_scaling_own(const struct ghp_scaling_case *item, const char *folder,
                                const struct ghp_scaling_node *node, const char *force,
                                double *speedup, double *gap);

#endif
