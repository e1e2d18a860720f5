/* planner/expect/expect.h - what a training step should take on a machine known by its data sheets or by a profile, and
 * what would make it faster.
 *
 * A *setup* is a network on a number of nodes of a machine, with a batch, a precision and a way to train. Each is
 * lowered, costed and simulated as any plan is.
 *
 * Tested  tests/tools/plan/test_expect.sh */
#ifndef GHP_PLANNER_EXPECT_EXPECT_H
#define GHP_PLANNER_EXPECT_EXPECT_H

#include "core/cost/machine.h"
#include "core/plan/range.h"
#include "planner/expect/degrees.h"

enum ghp_expect_way { GHP_EXPECT_DATA, GHP_EXPECT_SHARDED, GHP_EXPECT_OWN };
extern const char *const ghp_expect_ways[]; /* their names; NULL ends */

struct ghp_expect_setup {
    const struct ghp_model *model;     /* borrowed */
    const struct ghp_machine *machine; /* of one node, with the link between nodes; borrowed */
    /* what was measured on that machine, with as many workers a node; NULL: data sheets; borrowed */
    const struct ghp_profile *profile;
    int nodes;
    int gpus;          /* of each node that train; 0: all, or those of the profile */
    int64_t batch;     /* global */
    int micro_batches; /* 1: gradients are not added up over parts of the batch */
    struct ghp_precision precision;
    bool fp16; /* with two bytes: fp16 in place of bf16, of which the machine has the figure */
    enum ghp_expect_way way;
    bool suggests;              /* with GHP_EXPECT_OWN: a good plan that is found quickly will do */
    struct ghp_degrees degrees; /* zeroed: of one each; not with GHP_EXPECT_OWN */
    enum ghp_param_sharding sharding; /* of all that can be; not with GHP_EXPECT_OWN */
};

struct ghp_expected {
    struct ghp_prediction at;    /* of the step at the rule of thumb */
    struct ghp_step_range range; /* that holds a measured step with 90 % */
    /* of a plan with tensor parallelism or stages, by data sheets; NAN: of another one */
    double computing_s, links_s, idle_s; /* idle: stages wait for each other even over free links */
    double
        utilisation; /* of the peak FLOPs, by the products of the network; NAN: no peak is known */
};

/* Workers of a setup: on each node as many as were measured; by data sheets a GPU each, or without GPUs a processor
 * each. */
int ghp_setup_workers(const struct ghp_expect_setup *setup);

/* float, double, tf32, bf16 or fp16. */
const char *ghp_setup_precision(const struct ghp_expect_setup *setup);

/* Returns   GHP_OK; GHP_ERR_INPUT, GHP_ERR_USAGE (an impossible batch or machine); errors of planning */
enum ghp_status ghp_expect_step(const struct ghp_expect_setup *setup,
                                struct ghp_expected *expected);

/* A worker's memory: a GPU's, or its part of the node's; 0: not known. */
int64_t ghp_setup_memory_bytes(const struct ghp_expect_setup *setup);

/* Whether a worker's memory holds what the step needs. */
bool ghp_expect_fits(const struct ghp_expect_setup *setup, const struct ghp_prediction *predicted);

/* The rate of the link between nodes from which two nodes are faster than one with the same batch; INFINITY: never;
 * ghp_expect_slowest_Bps: even at that one, the slowest that is tried.
 *
 * Returns   as ghp_expect_step */
enum ghp_status ghp_expect_second_node(const struct ghp_expect_setup *setup, double *bandwidth_Bps);

extern const double ghp_expect_slowest_Bps;

enum { GHP_EXPECT_CHANGES = 8, GHP_EXPECT_TEXT_SIZE = 96 };
struct ghp_expect_change {
    char text[GHP_EXPECT_TEXT_SIZE];
    double gain_s; /* for as many samples as one step has, > 0 */
};

/* Changes that make the same samples faster, the best first. Those that the memory does not hold are left out. Returns
 * their number. */
int ghp_expect_changes(const struct ghp_expect_setup *setup, const struct ghp_expected *expected,
                       struct ghp_expect_change changes[GHP_EXPECT_CHANGES]);

#endif
