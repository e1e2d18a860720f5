/* core/cost/stragglers.h - workers that compute more slowly than the others, in thought or by emulation: "3:2,5:1.5",
 * worker 3 takes twice as long, worker 5 half as long again.
 *
 * Unlike a profile's speeds (cost/speeds.h), by which a plan may give a worker fewer samples, stragglers are what
 * happens to a plan that is made.
 *
 * Tested  tests/core/cost/test_speeds.c */
#ifndef GHP_CORE_COST_STRAGGLERS_H
#define GHP_CORE_COST_STRAGGLERS_H

#include "core/base/status.h"

enum { GHP_STRAGGLERS_MOST = 16, GHP_STRAGGLERS_TEXT_BYTES = 256 };

struct ghp_straggler {
    int rank;      /* >= 0 */
    double factor; /* times as long as without, 1 .. 1000 */
};

struct ghp_stragglers {
    int n; /* 0: none */
    struct ghp_straggler of[GHP_STRAGGLERS_MOST];
};

/* Reads RANK:FACTOR[,...], each rank once. Returns   GHP_OK; GHP_ERR_USAGE saying what was expected */
enum ghp_status ghp_stragglers_parse(const char *text, struct ghp_stragglers *stragglers);

/* Returns   GHP_OK; GHP_ERR_USAGE if a rank is not below `workers` */
enum ghp_status ghp_stragglers_check(const struct ghp_stragglers *stragglers, int workers);

/* "worker 3 takes 2 times as long, worker 5 1.5 times".  Returns   text */
const char *ghp_stragglers_format(const struct ghp_stragglers *stragglers,
                                  char text[GHP_STRAGGLERS_TEXT_BYTES]);

/* The factor of a rank; 1 if it is not a straggler. */
double ghp_stragglers_factor(const struct ghp_stragglers *stragglers, int rank);

#endif
