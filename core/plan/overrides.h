/* core/plan/overrides.h - what was changed by hand in a profile or its machine before a plan was made: key, value
 * before, value after.
 *
 * A plan carries them, so that nobody takes a what-if for a measurement. Only a record: the keys, and what an
 * override does to the costs, are core/plan/what_if.h's.
 *
 * Tested  tests/core/plan/test_plan.c, tests/planner/sweep/test_what_if.c */
#ifndef GHP_CORE_PLAN_OVERRIDES_H
#define GHP_CORE_PLAN_OVERRIDES_H

#include "core/base/json.h"

struct ghp_override {
    char *key, *from, *to; /* numbers as texts that read back alike, in the key's unit */
};

struct ghp_overrides {
    int n;
    struct ghp_override *override;
};

/* Appends; the texts are copied.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_overrides_add(struct ghp_overrides *overrides, const char *key,
                                  const char *from, const char *to);

/* to   filled; zeroed on failure */
enum ghp_status ghp_overrides_copy(const struct ghp_overrides *from, struct ghp_overrides *to);
void ghp_overrides_release(struct ghp_overrides *overrides);

/* "nodes 1 -> 128, inter.bandwidth_Bps 1.25e+09 -> 6e+09", cut if it does not fit; returns out. */
char *ghp_overrides_format(const struct ghp_overrides *overrides, char *out, size_t n);

/* The array of a plan file; NULL when out of memory. */
json_t *ghp_overrides_json(const struct ghp_overrides *overrides);

/* Reads the array; an absent key means no overrides.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_INPUT (with line and column); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_overrides_read(const struct ghp_node *object, const char *key,
                                   struct ghp_overrides *overrides);

#endif
