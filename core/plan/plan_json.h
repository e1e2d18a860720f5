/* core/plan/plan_json.h - parts of the plan file that other JSON objects hold too, under the same keys.
 *
 * Tested  tests/core/plan/test_plan.c, tests/planner/make/test_summary.c */
#ifndef GHP_CORE_PLAN_PLAN_JSON_H
#define GHP_CORE_PLAN_PLAN_JSON_H

#include "core/base/json.h"
#include "core/plan/plan.h"

/* Value of the key "predicted"; NULL if memory is short. */
json_t *ghp_plan_prediction_json(const struct ghp_prediction *prediction);

/* Sets the keys splits, predicted, baselines and certificate; *failed is set if memory is short. */
void ghp_plan_put_result(json_t *object, const struct ghp_plan *plan, bool *failed);

#endif
