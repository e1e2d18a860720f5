/* core/plan/plan_staging.c - stages, micro-batches, shares, what is recomputed and what lies blocked, in the plan
 * file. A plan without any of them has none of the keys. */
#include "core/plan/plan_private.h"

#include <string.h>

/* ---- saving ---- */

static json_t *stages_json(const struct ghp_plan *plan, bool *failed)
{
    const struct ghp_staging *s = &plan->staging;
    json_t *array = json_array();

    for (int i = 0; i < s->n; i++) {
        json_t *item =
            json_pack("{s:s, s:i}", "first_layer", plan->model.layers[s->stage[i].first_layer].name,
                      "workers", s->stage[i].workers);

        if (s->stage[i].block_size > 0)
            ghp_json_put(item, "grain", json_integer(s->stage[i].block_size), failed);
        ghp_json_append(array, item, failed);
    }
    return array;
}

/* First layers of the chunks that stages do not begin with. */
static json_t *chunks_json(const struct ghp_plan *plan, bool *failed)
{
    const struct ghp_staging *s = &plan->staging;
    json_t *array = json_array();

    for (int k = 0; k < ghp_staging_chunks(s) - s->n; k++)
        ghp_json_append(array, json_string(plan->model.layers[s->later_chunk[k]].name), failed);
    return array;
}

/* The names of the layers that are marked. */
json_t *ghp_plan_marked_json(const struct ghp_plan *plan, const bool *mark, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < plan->model.n_layers; i++)
        if (mark[i]) ghp_json_append(array, json_string(plan->model.layers[i].name), failed);
    return array;
}

static json_t *shares_json(const struct ghp_plan *plan, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < plan->problem.workers; i++)
        ghp_json_append(array, json_integer((json_int_t)plan->shares[i]), failed);
    return array;
}

void ghp_plan_put_staging(json_t *root, const struct ghp_plan *plan, bool *failed)
{
    const struct ghp_staging *s = &plan->staging;

    if (s->n > 1) ghp_json_put(root, "stages", stages_json(plan, failed), failed);
    if (s->chunks > 1) ghp_json_put(root, "virtual_stages", chunks_json(plan, failed), failed);
    if (s->micro_batches > 1)
        ghp_json_put(root, "micro_batches", json_integer(s->micro_batches), failed);
    if (s->n > 1 || s->micro_batches > 1)
        ghp_json_put(root, "pipeline_schedule", json_string(ghp_pipeline_names[s->pipeline]),
                     failed);
    if (plan->shares != NULL)
        ghp_json_put(root, "samples_per_worker", shares_json(plan, failed), failed);
    if (plan->recompute != NULL)
        ghp_json_put(root, "recompute", ghp_plan_marked_json(plan, plan->recompute, failed),
                     failed);
}

bool ghp_plan_formats_hold(const struct ghp_lowering *lowering, const bool *nchw16c)
{
    for (int v = 0; v < lowering->model->n_layers; v++)
        if (nchw16c[v] && !ghp_stage_keeps(lowering->staging, lowering->model, v)) return false;
    return true;
}

void ghp_plan_put_memory_format(json_t *root, const struct ghp_plan *plan, bool *failed)
{
    if (plan->nchw16c != NULL)
        ghp_json_put(root, "nChw16c", ghp_plan_marked_json(plan, plan->nchw16c, failed), failed);
}

/* ---- loading ---- */

/* The layer with a name, at a node. */
static enum ghp_status find_layer(const struct ghp_node *at, const struct ghp_model *model,
                                  int *layer)
{
    *layer = json_is_string(at->value) ? ghp_model_find(model, json_string_value(at->value)) : -1;
    if (*layer >= 0) return GHP_OK;
    return ghp_json_fail(at, GHP_ERR_INPUT,
                         "this is not a layer of model '%s'; name one of its layers", model->name);
}

static enum ghp_status read_stage(const struct ghp_node *item, struct ghp_plan *plan,
                                  struct ghp_stage *stage)
{
    static const char *const keys[] = {"first_layer", "workers", "grain", NULL};
    int64_t workers = 0, block_size = 0;
    struct ghp_node name;

    GHP_TRY(ghp_json_only_keys(item, keys));
    GHP_TRY(ghp_json_get(item, "first_layer", &name));
    GHP_TRY(find_layer(&name, &plan->model, &stage->first_layer));
    GHP_TRY(ghp_json_int(item, "workers", 1, plan->problem.workers, &workers));
    GHP_TRY(ghp_json_opt_int(item, "grain", 0, plan->problem.workers, &block_size));
    stage->workers = (int)workers;
    stage->block_size = (int)block_size;
    return GHP_OK;
}

static enum ghp_status read_stages(const struct ghp_node *root, struct ghp_plan *plan)
{
    struct ghp_node array, item;
    size_t n;

    if (json_object_get(root->value, "stages") == NULL) return GHP_OK;
    GHP_TRY(ghp_json_array(root, "stages", &array, &n));
    if (n < 2 || n > GHP_MAX_STAGES)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "%zu stages; give 2 to %d, or leave the key out for one", n,
                             GHP_MAX_STAGES);
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_stage(&item, plan, &plan->staging.stage[i]));
    }
    plan->staging.n = (int)n;
    return GHP_OK;
}

/* Reads the first layers of the chunks that stages do not begin with; there are equally many for each stage. */
static enum ghp_status read_chunks(const struct ghp_node *root, struct ghp_plan *plan)
{
    struct ghp_staging *s = &plan->staging;
    struct ghp_node array, item;
    size_t n, stages = (size_t)s->n;

    if (json_object_get(root->value, "virtual_stages") == NULL) return GHP_OK;
    GHP_TRY(ghp_json_array(root, "virtual_stages", &array, &n));
    if (stages < 2 || n == 0 || n % stages != 0 || n / stages >= GHP_MAX_STAGE_CHUNKS)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "%zu further parts for %zu stages; give each stage one to %d, or "
                             "leave the key out",
                             n, stages > 0 ? stages : 1, GHP_MAX_STAGE_CHUNKS - 1);
    for (size_t k = 0; k < n; k++) {
        GHP_TRY(ghp_json_item(&array, k, &item));
        GHP_TRY(find_layer(&item, &plan->model, &s->later_chunk[k]));
    }
    s->chunks = (int)(1 + n / stages);
    return GHP_OK;
}

static enum ghp_status read_shares(const struct ghp_node *root, struct ghp_plan *plan)
{
    struct ghp_node array, item;
    size_t n;

    if (json_object_get(root->value, "samples_per_worker") == NULL) return GHP_OK;
    GHP_TRY(ghp_json_array(root, "samples_per_worker", &array, &n));
    if (n != (size_t)plan->problem.workers)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "there are %zu shares for %d workers; give each one", n,
                             plan->problem.workers);
    plan->shares = ghp_alloc(n, sizeof *plan->shares);
    if (plan->shares == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        if (!json_is_integer(item.value) || json_integer_value(item.value) < 1)
            return ghp_json_fail(&item, GHP_ERR_FORMAT,
                                 "a share is a whole number of samples of at least 1");
        plan->shares[i] = (int64_t)json_integer_value(item.value);
    }
    plan->staging.shares = plan->shares;
    plan->staging.speeds = ghp_speeds_of(&plan->profile.speeds, plan->problem.workers);
    return GHP_OK;
}

/* The layers that a key names, as marks; NULL if it is not there. */
enum ghp_status ghp_plan_read_marked(const struct ghp_node *root, const char *key,
                                     const struct ghp_model *model, bool **mark)
{
    struct ghp_node array, item;
    size_t n;
    int layer;

    if (json_object_get(root->value, key) == NULL) return GHP_OK;
    GHP_TRY(ghp_json_array(root, key, &array, &n));
    *mark = ghp_alloc((size_t)model->n_layers, sizeof **mark);
    if (*mark == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(find_layer(&item, model, &layer));
        (*mark)[layer] = true;
    }
    return GHP_OK;
}

static enum ghp_status read_recompute(const struct ghp_node *root, struct ghp_plan *plan)
{
    GHP_TRY(ghp_plan_read_marked(root, "recompute", &plan->model, &plan->recompute));
    plan->staging.recompute = plan->recompute;
    return GHP_OK;
}

enum ghp_status ghp_plan_read_memory_format(const struct ghp_node *root, struct ghp_plan *plan)
{
    const struct ghp_lowering lowering = {.model = &plan->model, .staging = &plan->staging};
    struct ghp_node array;
    size_t n;

    GHP_TRY(ghp_plan_read_marked(root, "nChw16c", &plan->model, &plan->nchw16c));
    if (plan->nchw16c == NULL || ghp_plan_formats_hold(&lowering, plan->nchw16c)) return GHP_OK;
    GHP_TRY(ghp_json_array(root, "nChw16c", &array, &n));
    return ghp_json_fail(&array, GHP_ERR_INPUT,
                         "a layer whose output is loaded or passes between stages cannot be "
                         "blocked; leave it out, or make the plan again with ghp-plan");
}

enum ghp_status ghp_plan_read_staging(const struct ghp_node *root, struct ghp_plan *plan)
{
    int64_t micro_batches = 1;
    int pipeline = 0;

    GHP_TRY(read_stages(root, plan));
    GHP_TRY(read_chunks(root, plan));
    GHP_TRY(ghp_json_opt_int(root, "micro_batches", 1, GHP_MAX_MICRO_BATCHES, &micro_batches));
    GHP_TRY(ghp_json_opt_choice(root, "pipeline_schedule", ghp_pipeline_names, &pipeline));
    plan->staging.micro_batches = (int)micro_batches;
    plan->staging.pipeline = (enum ghp_pipeline)pipeline;
    GHP_TRY(read_shares(root, plan));
    GHP_TRY(read_recompute(root, plan));
    if (ghp_staging_check(&plan->staging, &plan->model, plan->problem) != GHP_OK)
        return ghp_json_fail(root, GHP_ERR_INPUT, "%s", ghp_status_message());
    return GHP_OK;
}
