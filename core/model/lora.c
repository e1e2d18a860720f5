/* core/model/lora.c - see lora.h. */
#include "core/model/lora.h"

#include "core/model/model_private.h"
#include "core/base/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = GHP_MAX_NAME + 32 };

static const char *const suffixes[] = {".lora_A", ".lora_scale", ".lora_B", ".lora_add"};

/* ---- what was asked for ---- */

static enum ghp_status parse_rank(const char *text, int64_t *rank, double *scale)
{
    char *end = NULL;
    long long r = strtoll(text, &end, 10);
    double alpha = (double)r;

    if (end != text && *end == ':' && end[1] != '\0') alpha = strtod(end + 1, &end);
    if (end == text || *end != '\0' || r < 1 || r > GHP_MODEL_CHANNELS || !(alpha > 0) ||
        alpha > 1e6)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--lora '%s' is not a rank; write RANK or RANK:ALPHA, such as 8:16, with a "
                        "whole number of at least 1 and a number above 0",
                        text);
    *rank = r;
    *scale = alpha / (double)r;
    return GHP_OK;
}

/* A pattern of a layer's name, or of its last parts. */
static bool is_named(const char *pattern, const char *name)
{
    for (const char *at = name; at != NULL; at = strchr(at, '.')) {
        at += *at == '.';
        if (fnmatch(pattern, at, 0) == 0) return true;
    }
    return false;
}

/* A layer whose weights another one uses too cannot be merged with what is added to it alone. */
static bool can_adapt(const struct ghp_layer *layer)
{
    return layer->op == GHP_OP_LINEAR && layer->tied == 0 && !layer->shared;
}

/* Marks the linear layers that a pattern names; returns how many. */
static int mark(const struct ghp_model *model, const char *pattern, bool *targets)
{
    int n = 0;

    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];

        if (!can_adapt(layer) || !is_named(pattern, layer->name)) continue;
        targets[i] = true;
        n++;
    }
    return n;
}

static enum ghp_status fail_target(const struct ghp_model *model, const char *pattern)
{
    const char **names = ghp_alloc((size_t)model->n_layers + 1, sizeof *names), *nearest;
    enum ghp_status status;
    int n = 0;

    if (names == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < model->n_layers; i++)
        if (can_adapt(&model->layers[i])) names[n++] = model->layers[i].name;
    nearest = ghp_text_nearest(pattern, names);
    if (nearest == NULL && n > 0) nearest = names[0];
    status =
        n == 0
            ? GHP_FAIL(GHP_ERR_INPUT, "--lora adapts linear layers, and the network has "
                                      "none; leave it out")
            : GHP_FAIL(GHP_ERR_INPUT,
                       "--lora-targets '%s' names no linear layer of its own weights; give a name "
                       "pattern, such as '%s'",
                       pattern, nearest);
    free(names);
    return status;
}

static enum ghp_status find_targets(const struct ghp_model *model, const struct ghp_lora *lora,
                                    bool *targets)
{
    static const char *const usual[] = {"q_proj", "v_proj", "query", "value"};
    int n = 0;

    for (int i = 0; i < model->n_layers; i++)
        if (model->layers[i].n_params > 0 && ghp_lora_has_tensor(model->layers[i].params[0].name))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "the network has '%s' already; leave out --lora, or give the network "
                            "that was adapted",
                            model->layers[i].name);
    for (int i = 0; i < lora->targets.n; i++)
        if (mark(model, lora->targets.item[i], targets) == 0)
            return fail_target(model, lora->targets.item[i]);
    if (lora->targets.n > 0) return GHP_OK;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        n += mark(model, usual[i], targets);
    if (n > 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--lora adapts 'q_proj' and 'v_proj', or 'query' and 'value', "
                    "but the network has no such layers; name others by --lora-targets "
                    "PATTERN, such as '*'");
}

/* ---- the network's text ---- */

struct adding { /* to the layers of a network */
    int64_t rank;
    double scale;
    bool failed;
    json_t *layers;     /* the new list */
    const char *before; /* name of its last layer */
};

static void append(struct adding *a, json_t *layer)
{
    a->before = json_string_value(json_object_get(layer, "name"));
    ghp_json_append(a->layers, layer, &a->failed);
}

/* A layer of name X and a suffix, which reads `inputs`. */
static json_t *make(const char *x, int suffix, const char *op, json_t *inputs)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof name, "%s%s", x, suffixes[suffix]);
    return json_pack("{s:s, s:s, s:o}", "name", name, "op", op, "inputs", inputs);
}

static json_t *linear(struct adding *a, const char *x, int suffix, json_t *inputs, int64_t features,
                      const char *first)
{
    json_t *layer = make(x, suffix, "linear", inputs);

    ghp_json_put(layer, "features", json_integer(features), &a->failed);
    ghp_json_put(layer, "first_weights", json_string(first), &a->failed);
    ghp_json_put(layer, "bias", json_false(), &a->failed);
    return layer;
}

/* Appends what adapts the last layer, X, which reads `inputs`. */
static void adapt(struct adding *a, const char *x, const json_t *inputs, int64_t features)
{
    append(a, linear(a, x, 0, ghp_json_copy(inputs), a->rank, "uniform"));
    if (a->scale != 1) {
        json_t *layer = make(x, 1, "activation", json_pack("[s]", a->before));

        ghp_json_put(layer, "function", json_string("affine"), &a->failed);
        ghp_json_put(layer, "alpha", json_real(a->scale), &a->failed);
        append(a, layer);
    }
    append(a, linear(a, x, 2, json_pack("[s]", a->before), features, "zeros"));
    append(a, make(x, 3, "add", json_pack("[s, s]", x, a->before)));
}

/* The layers with those of the targets adapted. Whatever read X reads the sum. */
static json_t *adapted(struct adding *a, const struct ghp_model *model, json_t *layers,
                       const bool *targets)
{
    size_t i;
    json_t *layer;

    a->layers = json_array();
    a->before = "input";
    json_array_foreach(layers, i, layer)
    {
        int at = ghp_model_item_layer(model, (int64_t)i);
        json_t *inputs = json_object_get(layer, "inputs");

        for (size_t j = 0; j < json_array_size(inputs); j++) {
            int from = ghp_model_find(model, json_string_value(json_array_get(inputs, j)));
            char sum[NAME_BYTES];

            if (from < 0 || !targets[from]) continue;
            snprintf(sum, sizeof sum, "%s%s", model->layers[from].name, suffixes[3]);
            if (json_array_set_new(inputs, j, json_string(sum)) != 0) a->failed = true;
        }
        inputs = inputs != NULL ? json_incref(inputs) : json_pack("[s]", a->before);
        append(a, json_incref(layer));
        if (targets[at]) adapt(a, model->layers[at].name, inputs, model->layers[at].out.c);
        json_decref(inputs);
    }
    return a->layers;
}

static enum ghp_status add_layers(struct ghp_model *model, struct adding *adding, char *text,
                                  const bool *targets)
{
    json_t *root = json_loads(text, 0, NULL);
    enum ghp_status status;

    if (root == NULL) return GHP_NO_MEMORY();
    ghp_json_put(root, "layers", adapted(adding, model, json_object_get(root, "layers"), targets),
                 &adding->failed);
    status = adding->failed ? GHP_NO_MEMORY() : ghp_model_replace_by(model, root);
    json_decref(root);
    return status;
}

enum ghp_status ghp_model_lora(struct ghp_model *model, const struct ghp_lora *lora,
                               const struct ghp_opt_list *trained)
{
    struct ghp_freeze rest = {.patterns = {.item = {"*"}, .n = 1}, .except = *trained};
    struct adding adding = {0};
    bool *targets, *named;
    char *text = NULL;
    enum ghp_status status;

    if (lora->rank == NULL && lora->targets.n > 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--lora-targets says which layers --lora adapts; add "
                                       "--lora RANK, or leave it out");
    if (lora->rank == NULL) return GHP_OK;
    GHP_TRY(parse_rank(lora->rank, &adding.rank, &adding.scale));
    targets = ghp_alloc((size_t)model->n_layers, sizeof *targets);
    named = ghp_alloc((size_t)model->n_layers, sizeof *named);
    status = targets != NULL && named != NULL ? GHP_OK : GHP_NO_MEMORY();
    if (status == GHP_OK) status = find_targets(model, lora, targets);
    if (status == GHP_OK) status = ghp_freeze_choose(model, &rest, named);
    if (status == GHP_OK) status = ghp_freeze_write(model, named, false, &text);
    if (status == GHP_OK) status = add_layers(model, &adding, text, targets);
    free(text);
    free(named);
    free(targets);
    return status;
}

/* ---- back ---- */

/* The length of X in "X.lora_add" and the others; 0: the name is not one of them. */
static size_t base_length(const char *name, int *suffix)
{
    size_t n = strlen(name);

    for (*suffix = 0; *suffix < 4; ++*suffix) {
        size_t m = strlen(suffixes[*suffix]);

        if (n > m && strcmp(name + n - m, suffixes[*suffix]) == 0) return n - m;
    }
    return 0;
}

static json_t *base_layers(json_t *layers, bool *failed)
{
    json_t *kept = json_array(), *layer;
    size_t i;
    int suffix;

    json_array_foreach(layers, i, layer)
    {
        json_t *inputs = json_object_get(layer, "inputs");

        if (base_length(json_string_value(json_object_get(layer, "name")), &suffix) > 0) continue;
        json_object_del(layer, "fixed");
        for (size_t j = 0; j < json_array_size(inputs); j++) {
            const char *from = json_string_value(json_array_get(inputs, j));
            size_t n = base_length(from, &suffix);

            if (n > 0 && json_array_set_new(inputs, j, json_stringn(from, n)) != 0) *failed = true;
        }
        ghp_json_append(kept, json_incref(layer), failed);
    }
    return kept;
}

enum ghp_status ghp_model_without_lora(const struct ghp_model *model, struct ghp_model *base)
{
    json_t *root = json_loads(model->text, 0, NULL);
    bool failed = false;
    enum ghp_status status;

    *base = (struct ghp_model){0};
    if (root == NULL) return GHP_NO_MEMORY();
    ghp_json_put(root, "layers", base_layers(json_object_get(root, "layers"), &failed), &failed);
    status = failed ? GHP_NO_MEMORY() : ghp_model_parse_value(root, model->name, base);
    json_decref(root);
    return status;
}

static const struct ghp_layer *part(const struct ghp_model *model, const char *x, int suffix)
{
    char name[NAME_BYTES];
    int i;

    snprintf(name, sizeof name, "%s%s", x, suffixes[suffix]);
    i = ghp_model_find(model, name);
    return i < 0 ? NULL : &model->layers[i];
}

bool ghp_lora_of(const struct ghp_model *model, const struct ghp_layer *layer,
                 struct ghp_lora_parts *parts)
{
    const struct ghp_layer *scale = part(model, layer->name, 1);

    *parts = (struct ghp_lora_parts){.a = part(model, layer->name, 0),
                                     .b = part(model, layer->name, 2),
                                     .scale = scale != NULL ? scale->activation.alpha : 1};
    return parts->a != NULL && parts->b != NULL;
}

bool ghp_lora_has_tensor(const char *name)
{
    return strstr(name, ".lora_A.") != NULL || strstr(name, ".lora_B.") != NULL;
}
