/* planner/search/prefix.h - the best plan of a domain by its constraints, built up layer by layer.
 *
 * A *prefix* is a plan's choices up to some layer. If two prefixes leave the same choices to later layers, and none of
 * the five partial paths of the first is longer, the first is at least as good under any continuation. The second is
 * then dropped. A prefix is also dropped if no end can bring it below the cutoff; `prefix_bound.h` bounds its ends. The
 * prefix that is left at the last layer is the plan whose longest constraint is shortest (docs/explanation/planner.md
 * 4).
 *
 * For the step without a memory limit, without stages, slowdowns or gathers; ghp_prefix_takes says so. If a layer has
 * more prefixes than allowed, only the most promising ones continue. The result is then a good plan without a proof.
 *
 * Call order: takes -> open -> run (any number of domains) -> close.
 *
 * Tested  tests/planner/search/test_prefix.c */
#ifndef GHP_PLANNER_SEARCH_PREFIX_H
#define GHP_PLANNER_SEARCH_PREFIX_H

#include "planner/search/dual.h"

struct ghp_prefix_search;

enum { GHP_PREFIX_FEW = 200 };

struct ghp_prefix_job {
    /* whose weights bound the ends; after ghp_dual_bound of the domain */
    const struct ghp_dual *dual;
    const struct ghp_domain *domain;
    double cutoff_s;   /* plans at or above it do not count */
    int most;          /* prefixes of a layer that continue, >= 1 */
    int64_t work;      /* prefixes made, about; beyond, only GHP_PREFIX_FEW of a layer continue */
    double deadline_s; /* on ghp_now_s's clock; beyond, nothing is found */
};

struct ghp_prefix_result {
    bool complete; /* no plan of the domain is below the cutoff but by least_s */
    /* the longest constraint of the best plan; INFINITY: none is below the cutoff */
    double least_s;
    const int *choice; /* that plan, n_layers; borrowed until the next run */
    int64_t extended;  /* prefixes made: the work done */
};

/* Whether this search applies to an instance. */
bool ghp_prefix_takes(const struct ghp_dual *dual);

enum ghp_status ghp_prefix_open(const struct ghp_instance *in, struct ghp_prefix_search **search);
void ghp_prefix_close(struct ghp_prefix_search *search); /* accepts NULL */

/* Returns   GHP_OK (also if nothing was done because the tables would be too large: then not complete, and least_s
 *           is INFINITY); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_prefix_run(struct ghp_prefix_search *search, const struct ghp_prefix_job *job,
                               struct ghp_prefix_result *result);

#endif
