/* core/plan/plan_private.h - parts of the plan file that core/plan/plan_alternatives.c reads and writes for
 * core/plan/plan_io.c. */
#ifndef GHP_CORE_PLAN_PLAN_PRIVATE_H
#define GHP_CORE_PLAN_PLAN_PRIVATE_H

#include "core/base/json.h"
#include "core/plan/plan.h"

#define GHP_PLAN_MAX_SECONDS 1e12

/* A whole plan as a value, which the caller releases; and from one. A plan that cannot be read is zeroed.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; writing: GHP_ERR_INTERNAL; reading: GHP_ERR_FORMAT, GHP_ERR_INPUT */
enum ghp_status ghp_plan_write(const struct ghp_plan *plan, json_t **root);
enum ghp_status ghp_plan_read(const struct ghp_node *root, struct ghp_plan *plan);

/* The keys stages, micro_batches, pipeline_schedule, samples_per_worker and recompute; left out if they say
 * nothing. */
void ghp_plan_put_staging(json_t *root, const struct ghp_plan *plan, bool *failed);
enum ghp_status ghp_plan_read_staging(const struct ghp_node *root, struct ghp_plan *plan);

/* The key nChw16c; left out if nobody says. Read after the splits, which it must suit. */
void ghp_plan_put_memory_format(json_t *root, const struct ghp_plan *plan, bool *failed);
enum ghp_status ghp_plan_read_memory_format(const struct ghp_node *root, struct ghp_plan *plan);

/* A list of layers by their names, as a value and from one; without the key *mark stays as it is.
 *
 * mark   one a layer; the caller frees what is read */
json_t *ghp_plan_marked_json(const struct ghp_plan *plan, const bool *mark, bool *failed);
enum ghp_status ghp_plan_read_marked(const struct ghp_node *root, const char *key,
                                     const struct ghp_model *model, bool **mark);

/* Whether the layer can take the split in its stage, or in the plan's group. */
enum ghp_status ghp_plan_check_split(const struct ghp_plan *plan, int layer,
                                     struct ghp_split split);

/* {"layer", "split", "tp_size"}. */
json_t *ghp_plan_split_json(const struct ghp_plan *plan, int layer, struct ghp_split split);
/* The keys of a split. */
enum ghp_status ghp_plan_read_split(const struct ghp_node *at, struct ghp_split *split);

/* Values of the keys; *failed is set if memory is short. */
json_t *ghp_plan_alternatives_json(const struct ghp_plan *plan, bool *failed);

/* The key `alternatives`; the model has been read. */
enum ghp_status ghp_plan_read_alternatives(const struct ghp_node *root, struct ghp_plan *plan);

/* A sum of all their numbers, finite if they are. */
double ghp_plan_alternatives_sum(const struct ghp_plan *plan);

#endif
