/* core/plan/plan_set.c - see plan_set.h. */
#include "core/plan/plan_set.h"

#include "core/base/json_lines.h"
#include "core/plan/plan_private.h"
#include "core/plan/method_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char set_format[] = "ghp.plans/1";
enum { MAX_WORKERS = 1 << 20, LIST_BYTES = 256 };

enum ghp_status ghp_plan_check_alike(const struct ghp_plan *a, const struct ghp_plan *b)
{
    if (a->model_hash != b->model_hash)
        return GHP_FAIL(GHP_ERR_INPUT, "they are for two models, '%s' and '%s'; plan one model",
                        a->model.name, b->model.name);
    if (a->problem.global_batch != b->problem.global_batch)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "they are for global batches of %lld and %lld; plan with the same --batch",
                        (long long)a->problem.global_batch, (long long)b->problem.global_batch);
    return ghp_method_check_alike(&a->method, &b->method);
}

/* Checks that all plans are for one training, from the most workers to the fewest. */
static enum ghp_status check_order(const struct ghp_plan_set *set)
{
    for (int i = 1; i < set->n; i++) {
        GHP_TRY(ghp_plan_check_alike(&set->plans[0], &set->plans[i]));
        if (set->plans[i].problem.workers >= set->plans[i - 1].problem.workers)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "a plan for %d workers comes after one for %d; list plans from the "
                            "most workers to the fewest, one for each number",
                            set->plans[i].problem.workers, set->plans[i - 1].problem.workers);
    }
    return GHP_OK;
}

/* ---- saving ---- */

static enum ghp_status fill(json_t *root, const struct ghp_plan_set *set)
{
    json_t *plans = json_array(), *left_out = json_array();
    bool failed = plans == NULL || left_out == NULL;

    ghp_json_put(root, "format", json_string(set_format), &failed);
    ghp_json_put(root, "global_batch", json_integer((json_int_t)set->plans[0].problem.global_batch),
                 &failed);
    ghp_json_put(root, "left_out", left_out, &failed);
    ghp_json_put(root, "plans", plans, &failed);
    for (int i = 0; i < set->n_left_out && !failed; i++)
        failed = json_array_append_new(left_out,
                                       json_pack("{s:i, s:s}", "workers", set->left_out[i].workers,
                                                 "reason", set->left_out[i].reason)) != 0;
    for (int i = 0; i < set->n && !failed; i++) {
        json_t *plan = NULL;

        GHP_TRY(ghp_plan_write(&set->plans[i], &plan));
        failed = json_array_append_new(plans, plan) != 0;
    }
    return failed ? GHP_NO_MEMORY() : GHP_OK;
}

enum ghp_status ghp_plan_set_save(const char *path, const struct ghp_plan_set *set)
{
    json_t *root = json_object();
    enum ghp_status status;

    GHP_ASSERT(set->n > 0);
    if (root == NULL) return GHP_NO_MEMORY();
    status = fill(root, set);
    if (status == GHP_OK) return ghp_json_lines_save(path, root);
    json_decref(root);
    return status;
}

/* ---- loading ---- */

static enum ghp_status read_left_out(const struct ghp_node *root, struct ghp_plan_set *set)
{
    static const char *const keys[] = {"workers", "reason", NULL};
    struct ghp_node array, item;
    size_t n;

    GHP_TRY(ghp_json_array(root, "left_out", &array, &n));
    if (n > GHP_PLAN_SET_MOST)
        return ghp_json_fail(&array, GHP_ERR_FORMAT, "more than %d were left out; name fewer",
                             GHP_PLAN_SET_MOST);
    for (size_t i = 0; i < n; i++) {
        int64_t workers = 0;

        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(ghp_json_int(&item, "workers", 1, MAX_WORKERS, &workers));
        GHP_TRY(ghp_json_text(&item, "reason", &set->left_out[i].reason));
        set->left_out[set->n_left_out++].workers = (int)workers;
    }
    return GHP_OK;
}

static enum ghp_status read_set(const struct ghp_node *root, struct ghp_plan_set *set)
{
    static const char *const keys[] = {"format", "global_batch", "left_out", "plans", NULL};
    struct ghp_node array, item;
    int64_t batch = 0;
    size_t n;

    GHP_TRY(ghp_json_only_keys(root, keys));
    GHP_TRY(ghp_json_int(root, "global_batch", 1, INT64_C(1) << 40, &batch));
    GHP_TRY(read_left_out(root, set));
    GHP_TRY(ghp_json_array(root, "plans", &array, &n));
    if (n < 1 || n > GHP_PLAN_SET_MOST)
        return ghp_json_fail(&array, GHP_ERR_FORMAT, "there are %zu plans; give 1 to %d", n,
                             GHP_PLAN_SET_MOST);
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(ghp_plan_read(&item, &set->plans[i]));
        set->n++;
        if (set->plans[i].problem.global_batch != batch)
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "the plan is for a global batch of %lld, not %lld as the set says",
                                 (long long)set->plans[i].problem.global_batch, (long long)batch);
    }
    if (check_order(set) == GHP_OK) return GHP_OK;
    return ghp_json_fail(&array, GHP_ERR_INPUT, "%s", ghp_status_message());
}

/* Whether the file says that it is a set. */
static enum ghp_status is_set(const char *path, bool *is)
{
    struct ghp_json doc;
    const char *format;

    GHP_TRY(ghp_json_load(path, NULL, &doc));
    format = json_string_value(json_object_get(ghp_json_root(&doc).value, "format"));
    *is = format != NULL && ghp_json_is_kind(set_format, format);
    ghp_json_release(&doc);
    return GHP_OK;
}

enum ghp_status ghp_plan_set_load(const char *path, struct ghp_plan_set *set)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;
    bool is = false;

    *set = (struct ghp_plan_set){.n = 0};
    GHP_TRY(is_set(path, &is));
    if (!is) {
        GHP_TRY(ghp_plan_load(path, &set->plans[0]));
        set->n = 1;
        return GHP_OK;
    }
    GHP_TRY(ghp_json_load(path, set_format, &doc));
    root = ghp_json_root(&doc);
    status = read_set(&root, set);
    if (status != GHP_OK) ghp_plan_set_release(set);
    ghp_json_release(&doc);
    return status;
}

void ghp_plan_set_release(struct ghp_plan_set *set)
{
    for (int i = 0; i < GHP_PLAN_SET_MOST; i++) {
        ghp_plan_release(&set->plans[i]);
        free(set->left_out[i].reason);
    }
    *set = (struct ghp_plan_set){.n = 0};
}

/* Makes the failure for workers that a set has no plan for. */
static enum ghp_status fail_workers(const char *path, const struct ghp_plan_set *set, int workers)
{
    char list[LIST_BYTES] = "";

    for (int i = 0; i < set->n_left_out; i++)
        if (set->left_out[i].workers == workers)
            return GHP_FAIL(GHP_ERR_INPUT, "'%s' has no plan for %d worker(s): %s", path, workers,
                            set->left_out[i].reason);
    for (int i = 0; i < set->n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", i > 0 ? ", " : "",
                 set->plans[i].problem.workers);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' has no plan for %d worker(s), but for %s; start one of these numbers",
                    path, workers, list);
}

enum ghp_status ghp_plan_load_for(const char *path, int workers, struct ghp_plan *plan)
{
    struct ghp_plan_set *set = ghp_alloc(1, sizeof *set);
    enum ghp_status status;
    int chosen = -1;

    *plan = (struct ghp_plan){0};
    if (set == NULL) return GHP_NO_MEMORY();
    status = ghp_plan_set_load(path, set);
    for (int i = 0; i < set->n; i++)
        if (set->n == 1 || set->plans[i].problem.workers == workers) chosen = i;
    if (status == GHP_OK && chosen < 0) status = fail_workers(path, set, workers);
    if (status == GHP_OK) {
        *plan = set->plans[chosen]; /* which owns it now */
        set->plans[chosen] = (struct ghp_plan){0};
    }
    ghp_plan_set_release(set);
    free(set);
    return status;
}
