/* tests/planner/pipeline/closed_form.h - the group hybrid scheme's step time and memory as formulas: the explanation of
 * a plan.
 *
 * One cut divides the network into a front (run by data) and a rear (every layer split `out` over the group, by
 * all-gather); workers are shared by both or separated. Ring collectives, no overlap, one sustained rate. Not what
 * the planner costs: plans are costed instruction by instruction (core/cost/simulate). These forms say why a plan with
 * few groups wins, and are a regression test of that costing under the same premises.
 *
 * Call order: ghp_closed_form_network_of -> ghp_closed_form_step / ghp_closed_form_groups / ghp_closed_form_memory.
 *
 * Source   docs/results/closed-forms.md
 * Tested   tests/planner/pipeline/test_closed_form.c */
#ifndef GHP_TESTS_PLANNER_PIPELINE_CLOSED_FORM_H
#define GHP_TESTS_PLANNER_PIPELINE_CLOSED_FORM_H

#include "core/model/model.h"

struct ghp_closed_form_network { /* weights without biases; per sample where it says so */
    double front_flops;          /* forward, per sample; multiply and add = 2 */
    double rear_flops;           /* the same of the rear */
    double front_weights;        /* scalars */
    double rear_weights;         /* scalars */
    double input_scalars;        /* a_0, per sample */
    double front_scalars; /* outputs of the front's conv2d and linear layers, per sample, summed */
    double boundary_scalars; /* a_c: what crosses the cut, per sample */
    double rear_scalars;     /* outputs of the rear's layers, per sample, summed */
    double last_scalars;     /* a_L: the last of these */
    int rear_layers;         /* how many there are */
};

struct ghp_closed_form_params {
    int workers;      /* N */
    int groups;       /* G, divides N */
    int rear_workers; /* K_m of the second of two stages, 1 .. K-1; 0: one stage, all K run both parts */
    double global_batch;  /* B */
    double element_bytes; /* s [bytes] */
    double flops_per_s;   /* F of one worker */
    double bandwidth_Bps; /* of one worker, each direction */
    double latency_s;
};

struct ghp_closed_form_time { /* [s] */
    double front_s;           /* t_D: forward and both gradients of the front */
    double rear_s;            /* t_M */
    double boundary_s;        /* 2 t_b: across the cut and back */
    double activations_s;     /* t_a: between the rear's layers */
    double front_reduce_s;    /* t_sf */
    double rear_reduce_s;     /* t_sr */
    /* all of them; of the two reductions only the longer of two stages */
    double step_s;
};

struct ghp_closed_form_memory { /* [bytes] */
    /* a worker that runs the front: weights, gradients, momentum, activations both ways */
    double data_bytes;
    double model_bytes; /* a worker that runs the rear */
};

/* Reads the sums off a model.
 *
 * cut   index of the front's last layer, 0 .. n_layers - 1; n_layers - 1 leaves no rear (pure data parallel) */
struct ghp_closed_form_network ghp_closed_form_network_of(const struct ghp_model *model, int cut);

/* The layer before the first linear layer that follows every conv2d: where "one weird trick" cuts.
 *
 * Returns   the layer's index; n_layers - 1 if none is */
int ghp_closed_form_cut(const struct ghp_model *model);

/* Seconds of the ring all-gather (or reduce-scatter) of a buffer of `bytes` over n ranks; 0 for n <= 1.
 *
 *     t = (n - 1) / n * bytes / bandwidth_Bps + (n - 1) latency_s */
double ghp_closed_form_gather_s(const struct ghp_closed_form_params *params, double n,
                                double bytes);

/* The six terms and their sum. */
struct ghp_closed_form_time ghp_closed_form_step(const struct ghp_closed_form_network *net,
                                                 const struct ghp_closed_form_params *params);

/* The number of groups that balances the rear's reductions against activations (bandwidth terms only, one stage):
 *
 *     G* = sqrt(N B A / W_r),  A = a_c + sum of the rear's outputs without the last + a_L / 2
 *
 * Returns   G*, not rounded; 0 if there is no rear */
double ghp_closed_form_groups(const struct ghp_closed_form_network *net,
                              const struct ghp_closed_form_params *params);

/* Bytes of one worker of each stage with `momenta` momentum buffers a weight. */
struct ghp_closed_form_memory ghp_closed_form_memory(const struct ghp_closed_form_network *net,
                                                     const struct ghp_closed_form_params *params,
                                                     int momenta);

#endif
