/* core/plan/plan_io.c - the plan file: the decision first, then its predictions and proof, then the model and the
 * costs.
 *
 * Self-contained: the model and the needed part of the profile are embedded whole. The hashes of the model and the
 * machine are made from what is embedded and checked when loading; the profile's is that of the whole file. */
#include "core/plan/plan.h"

#include "core/base/embed.h"
#include "core/base/hash.h"
#include "core/base/json_lines.h"
#include "core/model/model_private.h"
#include "core/plan/plan_json.h"
#include "core/plan/plan_private.h"
#include "core/plan/method_io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "ghp.plan/2"
#define MAX_SECONDS GHP_PLAN_MAX_SECONDS

enum { MAX_WORKERS = 1 << 20 };

static void put_text(json_t *object, const char *key, const char *text, bool *failed)
{
    if (text != NULL) ghp_json_put(object, key, json_string(text), failed);
}

/* ---- saving ---- */

json_t *ghp_plan_prediction_json(const struct ghp_prediction *p)
{
    json_t *object = json_pack(
        "{s:f, s:f, s:f, s:f, s:o, s:f, s:I, s:I}", "predicted_step_s", p->step_s, "compute_s",
        p->compute_s, "comm_s", p->comm_s, "exposed_s", p->exposed_s, "error_s",
        p->error_s > 0 ? json_real(p->error_s) : json_null(), "measured_share", p->measured_share,
        "peak_bytes", (json_int_t)p->peak_bytes, "sent_bytes", (json_int_t)p->sent_bytes);

    bool failed = object == NULL;

    if (!isnan(p->reshard_s)) ghp_json_put(object, "reshard_s", json_real(p->reshard_s), &failed);
    if (p->server_bytes != 0)
        ghp_json_put(object, "server_bytes", json_integer(p->server_bytes), &failed);
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

static json_t *splits_json(const struct ghp_plan *plan, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < plan->model.n_layers; i++)
        ghp_json_append(array, ghp_plan_split_json(plan, i, plan->splits[i]), failed);
    return array;
}

/* The sharding of each layer's parameters, in the model's order. */
static json_t *shardings_json(const struct ghp_plan *plan, const enum ghp_param_sharding *sharding,
                              bool *failed)
{
    json_t *array = json_array();

    for (int v = 0; v < plan->model.n_layers; v++)
        ghp_json_append(array, json_string(ghp_param_sharding_names[sharding[v]]), failed);
    return array;
}

static json_t *baselines_json(const struct ghp_plan *plan, bool *failed)
{
    json_t *array = json_array();

    for (int i = 0; i < plan->n_baselines; i++) {
        const struct ghp_baseline *b = &plan->baselines[i];
        json_t *item = json_pack("{s:s, s:b}", "strategy", ghp_strategy_name(b->strategy),
                                 "feasible", b->feasible);

        put_text(item, "reason", b->reason, failed);
        if (b->feasible)
            ghp_json_put(item, "predicted", ghp_plan_prediction_json(&b->predicted), failed);
        if (b->feasible && b->bucket_bytes >= 0)
            ghp_json_put(item, "bucket_cap_bytes", json_integer(b->bucket_bytes), failed);
        if (b->local_statistics) put_text(item, "statistics", "local", failed);
        if (b->sync.ops != NULL) put_text(item, "sync", b->sync.ops->name, failed);
        if (b->recompute != NULL)
            ghp_json_put(item, "recompute", ghp_plan_marked_json(plan, b->recompute, failed),
                         failed);
        if (b->sharding != NULL)
            ghp_json_put(item, "shard", shardings_json(plan, b->sharding, failed), failed);
        ghp_json_append(array, item, failed);
    }
    return array;
}

static json_t *certificate_json(const struct ghp_certificate *c, bool *failed)
{
    char status[GHP_CERTIFICATE_STATUS_SIZE];
    json_t *object =
        json_pack("{s:s, s:f, s:f, s:f, s:I, s:I, s:f}", "status",
                  ghp_certificate_status(c->proof, c->trial, status), "step_s", c->step_s,
                  "bound_s", c->bound_s, "gap", c->gap, "plans_simulated", (json_int_t)c->plans,
                  "bb_nodes", (json_int_t)c->nodes, "search_s", c->seconds);

    put_text(object, "preferred", c->preferred, failed);
    put_text(object, "margin", c->margin, failed);
    put_text(object, "unfinished", c->unfinished, failed);
    put_text(object, "sync", c->sync, failed);
    return object;
}

void ghp_plan_put_result(json_t *object, const struct ghp_plan *plan, bool *failed)
{
    ghp_json_put(object, "splits", splits_json(plan, failed), failed);
    ghp_json_put(object, "predicted", ghp_plan_prediction_json(&plan->predicted), failed);
    ghp_json_put(object, "baselines", baselines_json(plan, failed), failed);
    ghp_json_put(object, "certificate", certificate_json(&plan->certificate, failed), failed);
}

/* The embedded model, from its own text. */
static json_t *model_json(const struct ghp_model *model)
{
    return model->text != NULL ? ghp_json_value_of(model->text) : NULL;
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];

    ghp_hash_text(hash, text);
    return json_string(text);
}

static json_t *plan_json(const struct ghp_plan *plan, uint64_t machine_hash)
{
    json_t *root = json_pack("{s:s, s:s, s:i, s:I, s:i, s:i}", "format", FORMAT, "strategy",
                             ghp_strategy_name(plan->strategy), "workers", plan->problem.workers,
                             "global_batch", (json_int_t)plan->problem.global_batch, "groups",
                             plan->groups, "group_size", plan->group_size);
    bool failed = root == NULL;

    ghp_method_write(&plan->method, root, &failed);
    ghp_json_put(root, "memory_limit_bytes", json_integer(plan->memory_limit_bytes), &failed);
    ghp_plan_put_staging(root, plan, &failed);
    ghp_plan_put_memory_format(root, plan, &failed);
    ghp_plan_put_result(root, plan, &failed);
    ghp_json_put(root, "alternatives", ghp_plan_alternatives_json(plan, &failed), &failed);
    put_text(root, "break_even_search", plan->break_even_search, &failed);
    put_text(root, "model_path", plan->model_path, &failed);
    if (plan->model_weights) ghp_json_put(root, "model_weights", json_true(), &failed);
    put_text(root, "profile_path", plan->profile_path, &failed);
    if (plan->what_if.n > 0)
        ghp_json_put(root, "what_if", ghp_overrides_json(&plan->what_if), &failed);
    ghp_json_put(root, "model_hash", hash_json(plan->model.hash), &failed);
    ghp_json_put(root, "profile_hash", hash_json(plan->profile_hash), &failed);
    ghp_json_put(root, "machine_hash", hash_json(machine_hash), &failed);
    if (plan->predicted.program_hash != 0)
        ghp_json_put(root, "program_hash", hash_json(plan->predicted.program_hash), &failed);
    ghp_json_put(root, "model", model_json(&plan->model), &failed);
    ghp_json_put(root, "profile", ghp_profile_json(&plan->profile), &failed);
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

/* Numbers that JSON cannot hold would be lost. */
static bool all_finite(const struct ghp_plan *plan)
{
    const struct ghp_certificate *c = &plan->certificate;
    double sum = plan->predicted.step_s + plan->predicted.error_s + plan->predicted.exposed_s +
                 c->step_s + c->bound_s + c->gap + c->seconds;

    for (int i = 0; i < plan->n_baselines; i++)
        if (plan->baselines[i].feasible) sum += plan->baselines[i].predicted.step_s;
    return isfinite(sum + ghp_plan_alternatives_sum(plan));
}

/* That the file about to be written will be read. */
static enum ghp_status check_readable(json_t *root)
{
    struct ghp_plan plan;
    struct ghp_node at;
    struct ghp_json doc;
    char *text = NULL;
    enum ghp_status status = ghp_json_text_of(root, &text);

    if (status == GHP_OK) status = ghp_json_parse(text, "the plan", FORMAT, &doc);
    free(text);
    GHP_TRY(status);
    at = ghp_json_root(&doc);
    status = ghp_plan_read(&at, &plan);
    if (status == GHP_OK) ghp_plan_release(&plan);
    ghp_json_release(&doc);
    if (status != GHP_OK && status != GHP_ERR_NO_MEMORY)
        return GHP_FAIL(
            GHP_ERR_INTERNAL,
            "the plan made could not be read back, so it is not written: %s; report this",
            ghp_status_message());
    return status;
}

enum ghp_status ghp_plan_write(const struct ghp_plan *plan, json_t **root)
{
    enum ghp_status status;
    uint64_t machine_hash = 0;

    *root = NULL;
    if (!all_finite(plan) || plan->model.text == NULL)
        return GHP_FAIL(GHP_ERR_INTERNAL,
                        "the plan holds an endless number or no model text; report this");
    GHP_TRY(ghp_machine_hash(&plan->profile.machine, &machine_hash));
    *root = plan_json(plan, machine_hash);
    if (*root == NULL) return GHP_NO_MEMORY();
    status = check_readable(*root);
    if (status != GHP_OK) json_decref(*root);
    if (status != GHP_OK) *root = NULL;
    return status;
}

enum ghp_status ghp_plan_save(const char *path, const struct ghp_plan *plan)
{
    json_t *root;

    GHP_TRY(ghp_plan_write(plan, &root));
    return ghp_json_lines_save(path, root);
}

/* ---- loading ---- */

/* null: not known, as 0 is. */
static enum ghp_status read_error(const struct ghp_node *at, double *error_s)
{
    struct ghp_node node;

    GHP_TRY(ghp_json_get(at, "error_s", &node));
    if (!json_is_null(node.value)) return ghp_json_real(at, "error_s", 0, MAX_SECONDS, error_s);
    *error_s = 0;
    return GHP_OK;
}

static enum ghp_status read_prediction(const struct ghp_node *at, struct ghp_prediction *p)
{
    static const char *const keys[] = {
        "predicted_step_s", "compute_s",  "comm_s",     "exposed_s",    "reshard_s", "error_s",
        "measured_share",   "peak_bytes", "sent_bytes", "server_bytes", NULL};

    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_real(at, "predicted_step_s", 0, MAX_SECONDS, &p->step_s));
    GHP_TRY(ghp_json_real(at, "compute_s", 0, MAX_SECONDS, &p->compute_s));
    GHP_TRY(ghp_json_real(at, "comm_s", 0, MAX_SECONDS, &p->comm_s));
    GHP_TRY(ghp_json_real(at, "exposed_s", 0, MAX_SECONDS, &p->exposed_s));
    p->reshard_s = NAN;
    GHP_TRY(ghp_json_opt_real(at, "reshard_s", 0, MAX_SECONDS, &p->reshard_s));
    GHP_TRY(read_error(at, &p->error_s));
    GHP_TRY(ghp_json_real(at, "measured_share", 0, 1 + 1e-9, &p->measured_share));
    GHP_TRY(ghp_json_int(at, "peak_bytes", 0, INT64_MAX, &p->peak_bytes));
    GHP_TRY(ghp_json_opt_int(at, "server_bytes", 1, INT64_MAX, &p->server_bytes));
    return ghp_json_int(at, "sent_bytes", 0, INT64_MAX, &p->sent_bytes);
}

static enum ghp_status read_splits(const struct ghp_node *root, struct ghp_plan *plan)
{
    static const char *const keys[] = {"layer", "split", "tp_size", "shard", NULL};
    const struct ghp_model *model = &plan->model;
    struct ghp_node array, item, name;
    size_t n;

    GHP_TRY(ghp_json_array(root, "splits", &array, &n));
    if (n != (size_t)model->n_layers)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "there are %zu splits, but the model has %d layers with input and "
                             "biases; give one for each",
                             n, model->n_layers);
    plan->splits = ghp_alloc(n, sizeof *plan->splits);
    if (plan->splits == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        const struct ghp_layer *layer = &model->layers[i];

        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(ghp_json_get(&item, "layer", &name));
        if (!json_is_string(name.value) || strcmp(json_string_value(name.value), layer->name) != 0)
            return ghp_json_fail(
                &name, GHP_ERR_INPUT,
                "this is the place of layer '%s'; list the layers in the model's order",
                layer->name);
        GHP_TRY(ghp_plan_read_split(&item, &plan->splits[i]));
        if (plan->staging.n < 2 && plan->group_size % plan->splits[i].tp_size != 0)
            return ghp_json_fail(
                &item, GHP_ERR_INPUT,
                "the TP size %d does not divide the group of %d; use one that does",
                plan->splits[i].tp_size, plan->group_size);
        if (ghp_plan_check_split(plan, (int)i, plan->splits[i]) != GHP_OK)
            return ghp_json_fail(&item, GHP_ERR_INPUT, "%s", ghp_status_message());
    }
    return GHP_OK;
}

/* One of the strategies first .. last. */
static enum ghp_status read_strategy(const struct ghp_node *at, enum ghp_strategy first,
                                     enum ghp_strategy last, enum ghp_strategy *strategy)
{
    const char *names[GHP_STRATEGY_COUNT + 1] = {NULL};
    int choice = 0;

    for (int s = (int)first; s <= (int)last; s++)
        names[s - (int)first] = ghp_strategy_name((enum ghp_strategy)s);
    GHP_TRY(ghp_json_choice(at, "strategy", names, &choice));
    *strategy = (enum ghp_strategy)((int)first + choice);
    return GHP_OK;
}

/* The sharding of each layer's parameters; NULL if nothing is said. */
static enum ghp_status read_shardings(const struct ghp_node *item, const struct ghp_model *model,
                                      enum ghp_param_sharding **sharding)
{
    struct ghp_node array, one;
    size_t n;

    if (!ghp_json_has(item, "shard")) return GHP_OK;
    GHP_TRY(ghp_json_array(item, "shard", &array, &n));
    if (n != (size_t)model->n_layers)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "%zu layers' shardings of a model of %d layers; make the plan again "
                             "with ghp-plan",
                             n, model->n_layers);
    *sharding = ghp_alloc(n, sizeof **sharding);
    if (*sharding == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        int choice = 0;

        GHP_TRY(ghp_json_item(&array, i, &one));
        GHP_TRY(ghp_json_choice_of(&one, ghp_param_sharding_names, &choice));
        (*sharding)[i] = (enum ghp_param_sharding)choice;
    }
    return GHP_OK;
}

/* How a baseline's plan differs from the plan; it has been read which layers there are. */
static enum ghp_status read_baseline_plan(const struct ghp_node *item,
                                          const struct ghp_model *model, struct ghp_baseline *b)
{
    static const struct ghp_sync_ops *const ops[] = {&ghp_sync_allreduce, &ghp_sync_sharded};
    static const char *const statistics[] = {"global", "local", NULL};
    const char *const names[] = {ops[0]->name, ops[1]->name, NULL};
    int choice = 0;

    b->bucket_bytes = -1;
    GHP_TRY(ghp_json_opt_int(item, "bucket_cap_bytes", 0, INT64_MAX, &b->bucket_bytes));
    GHP_TRY(ghp_json_opt_choice(item, "statistics", statistics, &choice));
    b->local_statistics = choice == 1;
    if (ghp_json_has(item, "sync")) {
        GHP_TRY(ghp_json_choice(item, "sync", names, &choice));
        b->sync = (struct ghp_sync){.ops = ops[choice]};
    }
    GHP_TRY(read_shardings(item, model, &b->sharding));
    return ghp_plan_read_marked(item, "recompute", model, &b->recompute);
}

static enum ghp_status read_baselines(const struct ghp_node *root, struct ghp_plan *plan)
{
    static const char *const keys[] = {
        "strategy", "feasible",  "reason",     "predicted", "bucket_cap_bytes",
        "sync",     "recompute", "statistics", "shard",     NULL};
    struct ghp_node array, item, predicted;
    size_t n;

    GHP_TRY(ghp_json_array(root, "baselines", &array, &n));
    plan->baselines = ghp_alloc(n, sizeof *plan->baselines);
    if (plan->baselines == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        struct ghp_baseline *b = &plan->baselines[i];

        plan->n_baselines = (int)i + 1;
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(read_strategy(&item, GHP_STRATEGY_DATA, GHP_STRATEGY_HEURISTIC, &b->strategy));
        GHP_TRY(ghp_json_bool(&item, "feasible", &b->feasible));
        GHP_TRY(ghp_json_opt_text(&item, "reason", &b->reason));
        if (!b->feasible) continue;
        GHP_TRY(ghp_json_get(&item, "predicted", &predicted));
        GHP_TRY(read_prediction(&predicted, &b->predicted));
        GHP_TRY(read_baseline_plan(&item, &plan->model, b));
    }
    return GHP_OK;
}

static enum ghp_status read_status(const struct ghp_node *at, struct ghp_certificate *c)
{
    char text[GHP_CERTIFICATE_STATUS_SIZE];
    struct ghp_node status;

    GHP_TRY(ghp_json_text_n(at, "status", text, sizeof text));
    if (ghp_certificate_parse(text, &c->proof, &c->trial)) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "status", &status));
    return ghp_json_fail(&status, GHP_ERR_INPUT,
                         "no certificate has the status '%s'; use 'given' for a plan by hand",
                         text);
}

static enum ghp_status read_certificate(const struct ghp_node *root, struct ghp_certificate *c)
{
    static const char *const keys[] = {"status",          "step_s",     "bound_s",  "gap",
                                       "plans_simulated", "bb_nodes",   "search_s", "preferred",
                                       "margin",          "unfinished", "sync",     NULL};
    struct ghp_node at;

    GHP_TRY(ghp_json_get(root, "certificate", &at));
    GHP_TRY(ghp_json_only_keys(&at, keys));
    GHP_TRY(read_status(&at, c));
    GHP_TRY(ghp_json_real(&at, "step_s", 0, MAX_SECONDS, &c->step_s));
    GHP_TRY(ghp_json_real(&at, "bound_s", 0, MAX_SECONDS, &c->bound_s));
    GHP_TRY(ghp_json_real(&at, "gap", 0, 1, &c->gap));
    GHP_TRY(ghp_json_int(&at, "plans_simulated", 0, INT64_MAX, &c->plans));
    GHP_TRY(ghp_json_int(&at, "bb_nodes", 0, INT64_MAX, &c->nodes));
    GHP_TRY(ghp_json_real(&at, "search_s", 0, MAX_SECONDS, &c->seconds));
    GHP_TRY(ghp_json_opt_text(&at, "preferred", &c->preferred));
    GHP_TRY(ghp_json_opt_text(&at, "margin", &c->margin));
    GHP_TRY(ghp_json_opt_text(&at, "sync", &c->sync));
    return ghp_json_opt_text(&at, "unfinished", &c->unfinished);
}

/* Workers, batch and groups, and what must hold among them. */
static enum ghp_status read_problem(const struct ghp_node *root, struct ghp_plan *plan)
{
    int64_t workers = 0, groups = 0, group_size = 0;
    struct ghp_node at;

    GHP_TRY(ghp_json_int(root, "workers", 1, MAX_WORKERS, &workers));
    GHP_TRY(ghp_json_int(root, "global_batch", 1, INT64_C(1) << 40, &plan->problem.global_batch));
    GHP_TRY(ghp_json_int(root, "groups", 1, MAX_WORKERS, &groups));
    GHP_TRY(ghp_json_int(root, "group_size", 1, MAX_WORKERS, &group_size));
    plan->problem.workers = (int)workers;
    plan->groups = (int)groups;
    plan->group_size = (int)group_size;
    if (groups * group_size != workers) {
        GHP_TRY(ghp_json_get(root, "groups", &at));
        return ghp_json_fail(
            &at, GHP_ERR_INPUT,
            "%d groups of %d are not %d workers; make groups x group_size the workers",
            plan->groups, plan->group_size, plan->problem.workers);
    }
    GHP_TRY(ghp_plan_read_staging(root, plan));
    if (plan->staging.n < 2 && plan->shares == NULL && ghp_problem_check(plan->problem) != GHP_OK) {
        GHP_TRY(ghp_json_get(root, "global_batch", &at));
        return ghp_json_fail(&at, GHP_ERR_FORMAT, "%s", ghp_status_message());
    }
    GHP_TRY(ghp_method_read(root, &plan->method));
    return ghp_json_int(root, "memory_limit_bytes", 0, INT64_MAX, &plan->memory_limit_bytes);
}

static enum ghp_status check_hash(const struct ghp_node *root, const char *key, uint64_t said,
                                  uint64_t found)
{
    struct ghp_node at;
    char text[17];

    if (said == found) return GHP_OK;
    GHP_TRY(ghp_json_get(root, key, &at));
    ghp_hash_text(found, text);
    return ghp_json_fail(
        &at, GHP_ERR_INPUT,
        "the part of the file that this hash is of was edited (it is %s now); make the "
        "plan again with ghp-plan",
        text);
}

static enum ghp_status read_parts(const struct ghp_node *root, struct ghp_plan *plan)
{
    struct ghp_node at;
    uint64_t machine_hash = 0;

    GHP_TRY(ghp_json_get(root, "model", &at));
    GHP_TRY(ghp_model_read(&at, &plan->model));
    GHP_TRY(ghp_json_get(root, "profile", &at));
    GHP_TRY(ghp_profile_read(&at, &plan->profile));
    GHP_TRY(ghp_embed_hash(root, "model_hash", &plan->model_hash));
    GHP_TRY(ghp_embed_hash(root, "profile_hash", &plan->profile_hash));
    GHP_TRY(ghp_embed_hash(root, "machine_hash", &plan->machine_hash));
    GHP_TRY(ghp_machine_hash(&plan->profile.machine, &machine_hash));
    GHP_TRY(check_hash(root, "model_hash", plan->model_hash, plan->model.hash));
    GHP_TRY(check_hash(root, "machine_hash", plan->machine_hash, machine_hash));
    GHP_TRY(ghp_overrides_read(root, "what_if", &plan->what_if));
    GHP_TRY(ghp_json_opt_text(root, "model_path", &plan->model_path));
    GHP_TRY(ghp_json_opt_bool(root, "model_weights", &plan->model_weights));
    return ghp_json_opt_text(root, "profile_path", &plan->profile_path);
}

static enum ghp_status read_fields(const struct ghp_node *root, struct ghp_plan *plan)
{
    static const char *const keys[] = {"format",
                                       "strategy",
                                       "workers",
                                       "global_batch",
                                       "groups",
                                       "group_size",
                                       "bucket_cap_bytes",
                                       "sync",
                                       "servers",
                                       "optimizer",
                                       "clip_norm",
                                       "shard_within",
                                       "reduce_precision",
                                       "lr_scaling",
                                       "memory_limit_bytes",
                                       "stages",
                                       "virtual_stages",
                                       "micro_batches",
                                       "pipeline_schedule",
                                       "samples_per_worker",
                                       "recompute",
                                       "nChw16c",
                                       "splits",
                                       "predicted",
                                       "baselines",
                                       "certificate",
                                       "alternatives",
                                       "break_even_search",
                                       "model_path",
                                       "model_weights",
                                       "profile_path",
                                       "what_if",
                                       "model_hash",
                                       "profile_hash",
                                       "machine_hash",
                                       "program_hash",
                                       "model",
                                       "profile",
                                       NULL};
    struct ghp_node at;

    GHP_TRY(ghp_json_only_keys(root, keys));
    GHP_TRY(read_strategy(root, GHP_STRATEGY_AUTO, GHP_STRATEGY_GIVEN, &plan->strategy));
    GHP_TRY(read_parts(root, plan));
    GHP_TRY(read_problem(root, plan));
    GHP_TRY(read_splits(root, plan));
    GHP_TRY(ghp_plan_read_memory_format(root, plan));
    GHP_TRY(ghp_json_get(root, "predicted", &at));
    GHP_TRY(read_prediction(&at, &plan->predicted));
    if (json_object_get(root->value, "program_hash") != NULL)
        GHP_TRY(ghp_embed_hash(root, "program_hash", &plan->predicted.program_hash));
    GHP_TRY(read_baselines(root, plan));
    GHP_TRY(read_certificate(root, &plan->certificate));
    GHP_TRY(ghp_plan_read_alternatives(root, plan));
    GHP_TRY(ghp_json_opt_text(root, "break_even_search", &plan->break_even_search));
    if (ghp_plan_check(plan) != GHP_OK)
        return ghp_json_fail(root, GHP_ERR_INPUT, "%s", ghp_status_message());
    return GHP_OK;
}

enum ghp_status ghp_plan_read(const struct ghp_node *root, struct ghp_plan *plan)
{
    char format[sizeof FORMAT];
    enum ghp_status status = ghp_json_text_n(root, "format", format, sizeof format);

    *plan = (struct ghp_plan){0};
    if (status == GHP_OK && strcmp(format, FORMAT) != 0)
        status = ghp_json_fail(root, GHP_ERR_FORMAT, "this is not a plan of format '%s'", FORMAT);
    if (status == GHP_OK) status = read_fields(root, plan);
    if (status != GHP_OK) ghp_plan_release(plan);
    return status;
}

enum ghp_status ghp_plan_load(const char *path, struct ghp_plan *plan)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    *plan = (struct ghp_plan){0};
    GHP_TRY(ghp_json_load(path, FORMAT, &doc));
    root = ghp_json_root(&doc);
    status = ghp_plan_read(&root, plan);
    ghp_json_release(&doc);
    return status;
}
