/* tests/planner/random_case.h - small random planning problems: a network, a machine, a profile by the analytic model.
 *
 * The same seed gives the same case on every machine. */
#ifndef GHP_TESTS_PLANNER_RANDOM_CASE_H
#define GHP_TESTS_PLANNER_RANDOM_CASE_H

#include "core/cost/profile.h"
#include "core/program/lower/lower.h"

struct random_case {
    char text[4096]; /* the model's description */
    struct ghp_model model;
    struct ghp_profile profile; /* finalized */
    struct ghp_problem problem;
    bool slow;          /* slowdowns while both streams are busy */
    unsigned shardings; /* that a test offers: bits of enum ghp_param_sharding; made as 0 */
};

struct random_source {
    uint64_t state;
};

uint64_t random_next(struct random_source *source);
int random_below(struct random_source *source, int n); /* 0 .. n - 1 */
double random_between(struct random_source *source, double low,
                      double high); /* even in the logarithm; low > 0 */

/* Makes case number `seed`: 2 to 6 layers between input and loss, chains and graphs, at most `most` combinations of
 * splits. */
enum ghp_status random_case_make(uint64_t seed, double most, struct random_case *c);
/* The same of a network whose output layer is tied to its embedding. */
enum ghp_status random_case_tied(uint64_t seed, double most, struct random_case *c);
void random_case_release(struct random_case *c);
/* Writes a network's description to a file, which a test then reads as users' files are read. */
void random_case_write_model(const char *path, const char *text);

/* Number of combinations of splits, as ghp_split_choices offers them. */
double random_case_combinations(const struct ghp_model *model, struct ghp_problem problem);
/* Shardings to offer: none, all, or some. */
unsigned random_case_shardings(struct random_source *source);

/* An analytic profile: N equal nodes of one core, one link. */
enum ghp_status analytic_profile(double flops_per_s, double bandwidth_Bps, double latency_s,
                                 struct ghp_profile *profile);

#endif
