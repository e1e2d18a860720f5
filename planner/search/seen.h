/* planner/search/seen.h - the plans that a search has evaluated, so that each is evaluated once.
 *
 * Plans are compared choice by choice: a hash only says where to look. A plan that was taken for another one would go
 * unjudged, and a search that calls its result optimal would not have looked at all.
 *
 * Tested  tests/planner/search/test_branch.c */
#ifndef GHP_PLANNER_SEARCH_SEEN_H
#define GHP_PLANNER_SEARCH_SEEN_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t ghp_seen_hash_fn(const int *choice, int n_layers);

struct ghp_seen {
    int n_layers;           /* set by the caller; all else zeroed before the first plan */
    ghp_seen_hash_fn *hash; /* NULL: FNV-1a; tests give one that makes plans collide */
    size_t n, max;          /* plans; room for them */
    int *choices;           /* [n][n_layers]; owned */
    size_t *slots;          /* number of a plan + 1, by hash, open addressing; 0: free; owned */
    size_t n_slots;         /* a power of two */
};

/* Adds a plan of n_layers choices; *added: it was not there yet.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_seen_add(struct ghp_seen *seen, const int *choice, bool *added);
void ghp_seen_release(struct ghp_seen *seen); /* accepts a zeroed one and NULL */

#endif
