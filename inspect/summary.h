/* inspect/summary.h - what ghp-plan prints about a plan: tables for people, one object for scripts.
 *
 * Tested  tests/tools/plan/test_plan.sh */
#ifndef GHP_INSPECT_SUMMARY_H
#define GHP_INSPECT_SUMMARY_H

#include "core/base/json.h"
#include "core/plan/plan.h"

#include <stdio.h>

/* The plan next to its baselines, its splits with their second-best choices, and what limits the step.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_summary_print(const struct ghp_plan *plan, FILE *out);

/* The same as an object: keys of the plan file, images_per_s and, for networks of tokens, tokens_per_s.
 *
 * options   taken over (may be NULL): the tool's configuration
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_summary_json(const struct ghp_plan *plan, json_t *options, FILE *out);

/* "in:8 x3, data x20": how often each split is taken by conv2d and linear layers. */
void ghp_summary_splits(const struct ghp_model *model, const struct ghp_split *splits, char *text,
                        size_t n);

#endif
