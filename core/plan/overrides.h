/* core/plan/overrides.h - what was changed by hand in a profile or its machine before a plan was made: key, value before, value after.
 *
 * A plan carries them, so that nobody takes a what-if for a measurement.  Only a record: the keys, and what an edit does
 * to the prices, are core/plan/what_if.h's.
 *
 * Tested  tests/core/plan/test_plan.c, tests/planner/sweep/test_what_if.c */
#ifndef GHP_CORE_PLAN_OVERRIDES_H
#define GHP_CORE_PLAN_OVERRIDES_H

#include "core/base/json.h"

struct ghp_edit {
    char *key, *from, *to; /* numbers as texts that read back alike, in the key's unit */
};

struct ghp_edits {
    int n;
    struct ghp_edit *edit;
};

/* Appends; the texts are copied.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_edits_add(struct ghp_edits *edits, const char *key, const char *from,
                              const char *to);

/* to   filled; zeroed on failure */
enum ghp_status ghp_edits_copy(const struct ghp_edits *from, struct ghp_edits *to);
void ghp_edits_release(struct ghp_edits *edits);

/* "nodes 1 -> 128, inter.bandwidth_Bps 1.25e+09 -> 6e+09", cut where it does not fit; returns out. */
char *ghp_edits_text(const struct ghp_edits *edits, char *out, size_t n);

/* The array of a plan file; NULL when out of memory. */
json_t *ghp_edits_json(const struct ghp_edits *edits);

/* Reads the array; an absent key is no edits.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_INPUT (with line and column); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_edits_read(const struct ghp_node *object, const char *key,
                               struct ghp_edits *edits);

#endif
