/* core/plan/plan_alternatives.c - alternatives and their break-even values in the plan file.
 *
 * A value that was looked for and not found is written as the text "none"; keys that older files do not have are
 * optional. */
#include "core/plan/plan_private.h"

#include <math.h>
#include <string.h>

#define NONE "none"
#define MAX_VALUE 1e300

enum { MAX_TP_SIZE = 1 << 20, N_SPLIT_KINDS = GHP_SPLIT_COUNT, NAME_BYTES = GHP_MAX_NAME + 8 };

static const char *const quantity_names[] = {
#define QUANTITY_TEXT(id, text, unit, scale) text,
    GHP_QUANTITY_LIST(QUANTITY_TEXT)
#undef QUANTITY_TEXT
        NULL};

/* ---- saving ---- */

/* Sets the keys of a split. */
static void put_split(json_t *object, struct ghp_split split, bool *failed)
{
    ghp_json_put(object, "split", json_string(ghp_split_kind_name(split.kind)), failed);
    ghp_json_put(object, "tp_size", json_integer(split.tp_size), failed);
    if (split.sharding != GHP_SHARDING_NONE)
        ghp_json_put(object, "shard", json_string(ghp_param_sharding_names[split.sharding]),
                     failed);
}

json_t *ghp_plan_split_json(const struct ghp_plan *plan, int layer, struct ghp_split split)
{
    json_t *object = json_pack("{s:s}", "layer", plan->model.layers[layer].name);
    bool failed = object == NULL;

    put_split(object, split, &failed);
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

static json_t *value_json(double value)
{
    return isnan(value) ? json_string(NONE) : json_real(value);
}

static json_t *choices_json(const struct ghp_alternative *a, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < a->n_choices; i++) {
        const struct ghp_choice_cost *c = &a->choices[i];
        json_t *item = json_object(),
               *costs = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "predicted_step_s",
                                  c->step_s, "forward_s", c->forward_s, "backward_s", c->backward_s,
                                  "reshard_s", c->reshard_s, "reduce_s", c->reduce_s, "exposed_s",
                                  c->exposed_s, "update_s", c->update_s, "peak_bytes",
                                  (json_int_t)c->peak_bytes);

        put_split(item, c->split, failed);
        if (json_object_update_new(item, costs) != 0) *failed = true; /* it takes costs anyway */
        ghp_json_append(array, item, failed);
    }
    return array;
}

static json_t *break_even_json(const struct ghp_alternative *a, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < a->n_break_even; i++) {
        const struct ghp_break_even *b = &a->break_even[i];
        json_t *item = json_pack("{s:s, s:f}", "quantity", ghp_quantity_name(b->quantity),
                                 "nominal", b->nominal);

        ghp_json_put(item, "low", value_json(b->low), failed);
        ghp_json_put(item, "high", value_json(b->high), failed);
        ghp_json_append(array, item, failed);
    }
    return array;
}

static json_t *alternative_json(const struct ghp_plan *plan, const struct ghp_alternative *a,
                                bool *failed)
{
    json_t *item = ghp_plan_split_json(plan, a->layer, a->split), *changes = json_array();

    ghp_json_put(item, "predicted_step_s", json_real(a->step_s), failed);
    for (int i = 0; i < a->n_changes; i++)
        ghp_json_append(
            changes, ghp_plan_split_json(plan, a->changes[i].layer, a->changes[i].split), failed);
    ghp_json_put(item, "changes", changes, failed);
    ghp_json_put(item, "choices", choices_json(a, failed), failed);
    if (a->n_break_even > 0) ghp_json_put(item, "break_even", break_even_json(a, failed), failed);
    return item;
}

json_t *ghp_plan_alternatives_json(const struct ghp_plan *plan, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < plan->n_alternatives; i++)
        ghp_json_append(array, alternative_json(plan, &plan->alternatives[i], failed), failed);
    return array;
}

/* Infinite values are infinite in the sum; NAN stands for "none" and does not count. */
static double of_value(double value)
{
    return isnan(value) ? 0 : value;
}

double ghp_plan_alternatives_sum(const struct ghp_plan *plan)
{
    double sum = 0;

    for (int i = 0; i < plan->n_alternatives; i++) {
        const struct ghp_alternative *a = &plan->alternatives[i];

        sum += a->step_s;
        for (int k = 0; k < a->n_choices; k++)
            sum += a->choices[k].step_s + a->choices[k].exposed_s;
        for (int k = 0; k < a->n_break_even; k++)
            sum += of_value(a->break_even[k].low) + of_value(a->break_even[k].high);
    }
    return sum;
}

/* ---- loading ---- */

enum ghp_status ghp_plan_read_split(const struct ghp_node *at, struct ghp_split *split)
{
    const char *kinds[N_SPLIT_KINDS + 1] = {NULL};
    int64_t tp_size = 0;
    int kind = 0, sharding = GHP_SHARDING_NONE;

    for (int i = 0; i < N_SPLIT_KINDS; i++)
        kinds[i] = ghp_split_kind_name((enum ghp_split_kind)i);
    GHP_TRY(ghp_json_choice(at, "split", kinds, &kind));
    GHP_TRY(ghp_json_int(at, "tp_size", 1, MAX_TP_SIZE, &tp_size));
    GHP_TRY(ghp_json_opt_choice(at, "shard", ghp_param_sharding_names, &sharding));
    *split = (struct ghp_split){.kind = (enum ghp_split_kind)kind,
                                .tp_size = (int)tp_size,
                                .sharding = (enum ghp_param_sharding)sharding};
    return GHP_OK;
}

/* A layer by its name, with a split that it can take. */
static enum ghp_status read_change(const struct ghp_node *at, const struct ghp_plan *plan,
                                   struct ghp_change *change)
{
    char name[NAME_BYTES];

    GHP_TRY(ghp_json_text_n(at, "layer", name, sizeof name));
    change->layer = ghp_model_find(&plan->model, name);
    if (change->layer < 0)
        return ghp_json_fail(at, GHP_ERR_INPUT,
                             "the model has no layer '%s'; name one of its layers", name);
    GHP_TRY(ghp_plan_read_split(at, &change->split));
    if (ghp_plan_check_split(plan, change->layer, change->split) != GHP_OK)
        return ghp_json_fail(at, GHP_ERR_INPUT, "%s", ghp_status_message());
    return GHP_OK;
}

/* A number or "none". */
static enum ghp_status read_value(const struct ghp_node *item, const char *key, double *value)
{
    struct ghp_node at;

    GHP_TRY(ghp_json_get(item, key, &at));
    if (!json_is_string(at.value)) return ghp_json_real(item, key, 0, MAX_VALUE, value);
    if (strcmp(json_string_value(at.value), NONE) != 0)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "this is not a value; give a number or \"none\"");
    *value = NAN;
    return GHP_OK;
}

static enum ghp_status read_changes(const struct ghp_node *at, const struct ghp_plan *plan,
                                    struct ghp_alternative *a)
{
    static const char *const keys[] = {"layer", "split", "tp_size", "shard", NULL};
    struct ghp_node array, item;
    size_t n;

    if (!ghp_json_has(at, "changes")) return GHP_OK;
    GHP_TRY(ghp_json_array(at, "changes", &array, &n));
    a->changes = ghp_alloc(n, sizeof *a->changes);
    if (a->changes == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(read_change(&item, plan, &a->changes[i]));
        a->n_changes = (int)i + 1;
    }
    return GHP_OK;
}

static enum ghp_status read_choice(const struct ghp_node *at, struct ghp_choice_cost *c)
{
    static const char *const keys[] = {"split",     "tp_size",    "shard",      "predicted_step_s",
                                       "forward_s", "backward_s", "reshard_s",  "reduce_s",
                                       "exposed_s", "update_s",   "peak_bytes", NULL};

    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_plan_read_split(at, &c->split));
    GHP_TRY(ghp_json_real(at, "predicted_step_s", 0, GHP_PLAN_MAX_SECONDS, &c->step_s));
    GHP_TRY(ghp_json_real(at, "forward_s", 0, GHP_PLAN_MAX_SECONDS, &c->forward_s));
    GHP_TRY(ghp_json_real(at, "backward_s", 0, GHP_PLAN_MAX_SECONDS, &c->backward_s));
    GHP_TRY(ghp_json_real(at, "reshard_s", 0, GHP_PLAN_MAX_SECONDS, &c->reshard_s));
    GHP_TRY(ghp_json_real(at, "reduce_s", 0, GHP_PLAN_MAX_SECONDS, &c->reduce_s));
    GHP_TRY(ghp_json_real(at, "exposed_s", 0, GHP_PLAN_MAX_SECONDS, &c->exposed_s));
    GHP_TRY(ghp_json_real(at, "update_s", 0, GHP_PLAN_MAX_SECONDS, &c->update_s));
    return ghp_json_int(at, "peak_bytes", 0, INT64_MAX, &c->peak_bytes);
}

static enum ghp_status read_choices(const struct ghp_node *at, struct ghp_alternative *a)
{
    struct ghp_node array, item;
    size_t n;

    if (!ghp_json_has(at, "choices")) return GHP_OK;
    GHP_TRY(ghp_json_array(at, "choices", &array, &n));
    a->choices = ghp_alloc(n, sizeof *a->choices);
    if (a->choices == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_choice(&item, &a->choices[i]));
        a->n_choices = (int)i + 1;
    }
    return GHP_OK;
}

static enum ghp_status read_quantity(const struct ghp_node *at, enum ghp_quantity *quantity)
{
    int index = 0;

    GHP_TRY(ghp_json_choice(at, "quantity", quantity_names, &index));
    *quantity = (enum ghp_quantity)index;
    return GHP_OK;
}

static enum ghp_status read_break_even(const struct ghp_node *at, struct ghp_alternative *a)
{
    static const char *const keys[] = {"quantity", "nominal", "low", "high", NULL};
    struct ghp_node array, item;
    size_t n;

    if (!ghp_json_has(at, "break_even")) return GHP_OK;
    GHP_TRY(ghp_json_array(at, "break_even", &array, &n));
    if (n > GHP_QUANTITY_COUNT)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "there are only %d quantities; give each at most once",
                             GHP_QUANTITY_COUNT);
    for (size_t i = 0; i < n; i++) {
        struct ghp_break_even *b = &a->break_even[i];

        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(read_quantity(&item, &b->quantity));
        GHP_TRY(ghp_json_real(&item, "nominal", 0, MAX_VALUE, &b->nominal));
        GHP_TRY(read_value(&item, "low", &b->low));
        GHP_TRY(read_value(&item, "high", &b->high));
        a->n_break_even = (int)i + 1;
    }
    return GHP_OK;
}

static enum ghp_status read_alternative(const struct ghp_node *at, const struct ghp_plan *plan,
                                        struct ghp_alternative *a)
{
    static const char *const keys[] = {
        "layer",   "split",      "tp_size", "shard", "predicted_step_s",
        "changes", "break_even", "choices", NULL};
    struct ghp_change own;

    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(read_change(at, plan, &own));
    a->layer = own.layer;
    a->split = own.split;
    GHP_TRY(ghp_json_real(at, "predicted_step_s", 0, GHP_PLAN_MAX_SECONDS, &a->step_s));
    GHP_TRY(read_changes(at, plan, a));
    GHP_TRY(read_choices(at, a));
    return read_break_even(at, a);
}

enum ghp_status ghp_plan_read_alternatives(const struct ghp_node *root, struct ghp_plan *plan)
{
    struct ghp_node array, item;
    size_t n;

    GHP_TRY(ghp_json_array(root, "alternatives", &array, &n));
    plan->alternatives = ghp_alloc(n, sizeof *plan->alternatives);
    if (plan->alternatives == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        plan->n_alternatives = (int)i + 1;
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_alternative(&item, plan, &plan->alternatives[i]));
    }
    return GHP_OK;
}
