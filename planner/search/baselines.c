/* planner/search/baselines.c - restrictions of baselines.h. */
#include "planner/search/baselines.h"

#include "core/base/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ghp_split *split_of(const struct ghp_domain *domain, int v, int i)
{
    return &domain->instance->choices[domain->instance->first_choice[v] + i];
}

static bool in_play(const struct ghp_domain *domain, int v, int i)
{
    return domain->choice[domain->instance->first_choice[v] + i];
}

/* The largest TP size in play among the kinds that are not data; 0: none. */
static int largest_tp_size(const struct ghp_domain *domain, int v)
{
    const struct ghp_instance *in = domain->instance;
    int largest = 0;

    for (int i = 0; i < in->n_choices[v]; i++)
        if (in_play(domain, v, i) && split_of(domain, v, i)->tp_size > largest &&
            split_of(domain, v, i)->kind != GHP_SPLIT_DATA)
            largest = split_of(domain, v, i)->tp_size;
    return largest;
}

/* Keeps data only, or the largest TP size only, or everything but data. */
enum rule { RULE_DATA, RULE_LARGEST, RULE_DIVIDED };

static void keep_by(struct ghp_domain *domain, int v, enum rule rule)
{
    int largest = largest_tp_size(domain, v);

    for (int i = 0; i < domain->instance->n_choices[v]; i++) {
        const struct ghp_split *s = split_of(domain, v, i);
        bool by_data = s->kind == GHP_SPLIT_DATA;
        bool keep = rule == RULE_DATA      ? by_data
                    : rule == RULE_DIVIDED ? !by_data
                                           : !by_data && s->tp_size == largest;

        if (!keep) ghp_domain_drop(domain, v, i);
    }
}

/* What a layer computes from, or is. */
enum reach { REACH_CONV = 1, REACH_LINEAR = 2 };

static enum ghp_status find_reach(const struct ghp_model *model, unsigned **found)
{
    unsigned *reach = ghp_alloc((size_t)model->n_layers, sizeof *reach);

    if (reach == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *layer = &model->layers[v];

        reach[v] = layer->op == GHP_OP_CONV2D   ? REACH_CONV
                   : layer->op == GHP_OP_LINEAR ? REACH_LINEAR
                                                : 0;
        for (int i = 0; i < layer->n_inputs; i++)
            reach[v] |= reach[layer->inputs[i]]; /* inputs come before */
    }
    *found = reach;
    return GHP_OK;
}

static enum ghp_status restrict_layer(enum ghp_strategy strategy, unsigned reach,
                                      struct ghp_domain *domain, int v)
{
    const struct ghp_layer *layer = &domain->instance->lowering->model->layers[v];
    bool convolutional = layer->op == GHP_OP_CONV2D || reach == REACH_CONV;
    bool divided = strategy == GHP_STRATEGY_MODEL ||
                   (strategy == GHP_STRATEGY_OWT && layer->op == GHP_OP_LINEAR);

    if (strategy == GHP_STRATEGY_DATA || (strategy == GHP_STRATEGY_OWT && convolutional))
        keep_by(domain, v, RULE_DATA);
    else if (ghp_op_is_weighted(layer->op) && divided && largest_tp_size(domain, v) > 0)
        keep_by(domain, v, RULE_LARGEST);
    else if (ghp_op_is_weighted(layer->op) && divided)
        return GHP_FAIL(GHP_ERR_INFEASIBLE,
                        "strategy '%s' cannot split layer '%s': neither its inputs nor its outputs "
                        "divide over any subset "
                        "of %d workers; use a worker count that shares a factor with its channels",
                        ghp_strategy_name(strategy), layer->name,
                        domain->instance->lowering->problem.workers);
    else if (strategy == GHP_STRATEGY_MODEL && largest_tp_size(domain, v) > 0)
        keep_by(domain, v, RULE_DIVIDED);
    return GHP_OK;
}

enum ghp_status ghp_strategy_restrict(enum ghp_strategy strategy, struct ghp_domain *domain)
{
    unsigned *reach = NULL;
    enum ghp_status status = GHP_OK;

    if (strategy == GHP_STRATEGY_AUTO) return GHP_OK;
    if (strategy != GHP_STRATEGY_DATA && domain->instance->lowering->problem.workers == 1)
        return GHP_FAIL(GHP_ERR_INFEASIBLE,
                        "strategy '%s' needs workers to split layers over; use at least 2 workers",
                        ghp_strategy_name(strategy));
    GHP_TRY(find_reach(domain->instance->lowering->model, &reach));
    for (int v = 0; v < domain->instance->n_layers && status == GHP_OK; v++)
        status = restrict_layer(strategy, reach[v], domain, v);
    free(reach);
    return status;
}

/* ---- splits by hand ---- */

/* The choice in play that a split's text names for a layer, -1: it cannot take it. A layer that shares its parameters
 * has only those in play that the layers it shares them with can follow. */
static enum ghp_status find_choice(const struct ghp_domain *domain, int v, const char *text,
                                   int *choice)
{
    const char *colon = strchr(text, ':');
    struct ghp_split split;

    *choice = -1;
    if (colon == NULL || strcmp(colon, ":max") != 0) {
        GHP_TRY(ghp_split_parse(text, &split));
        for (int i = domain->instance->n_choices[v] - 1; i >= 0; i--)
            if (in_play(domain, v, i) &&
                (strchr(text, '+') != NULL ? ghp_split_same(*split_of(domain, v, i), split)
                                           : ghp_split_alike(*split_of(domain, v, i), split)))
                *choice = i;
        return GHP_OK;
    }
    char kind[16] = {0};
    snprintf(kind, sizeof kind, "%.*s", (int)(colon - text), text);
    if (!ghp_split_kind_find(kind, &split.kind))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read split '%s'; use data, out:M, in:M, channel:M, full:M, rows:M, "
                        "position:M or ring:M, M a number or max",
                        text);
    for (int i = 0; i < domain->instance->n_choices[v]; i++)
        if (in_play(domain, v, i) && split_of(domain, v, i)->kind == split.kind &&
            (*choice < 0 ||
             split_of(domain, v, i)->tp_size > split_of(domain, v, *choice)->tp_size))
            *choice = i;
    return GHP_OK;
}

/* If parameters cannot be sharded as a split's text says, or --shard does not allow it, says why. GHP_OK: that is not
 * the reason. */
static enum ghp_status fail_sharding(const struct ghp_instance *in, int v, const char *text)
{
    const struct ghp_model *model = in->lowering->model;
    struct ghp_split split;
    const char *name;

    if (strchr(text, '+') == NULL) return GHP_OK;
    GHP_TRY(ghp_split_parse(text, &split));
    name = ghp_param_sharding_names[split.sharding];
    if (split.sharding == GHP_SHARDING_NONE) return GHP_OK;
    GHP_TRY(ghp_stage_check_sharding(model, in->lowering->staging, v, split));
    GHP_TRY(ghp_split_check(&model->layers[v], split, in->problem[in->stage[v]]));
    if ((in->lowering->shardings >> split.sharding & 1) != 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--force shards the parameters of layer '%s' by '%s', which --shard does not "
                    "offer; give --shard %s or auto",
                    model->layers[v].name, name, name);
}

static enum ghp_status fail_split(const struct ghp_domain *domain, int v, const char *text)
{
    char list[512] = "";
    size_t used = 0;

    GHP_TRY(fail_sharding(domain->instance, v, text));
    for (int i = 0; i < domain->instance->n_choices[v] && used + GHP_SPLIT_TEXT_BYTES < sizeof list;
         i++) {
        char one[GHP_SPLIT_TEXT_BYTES];

        if (!in_play(domain, v, i)) continue;
        ghp_split_format(*split_of(domain, v, i), one, sizeof one);
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", one);
    }
    return GHP_FAIL(GHP_ERR_USAGE, "layer '%s' cannot take split '%s'; use one of %s",
                    domain->instance->lowering->model->layers[v].name, text, list);
}

static enum ghp_status fail_layer(const struct ghp_model *model, const char *pattern)
{
    const char **names = ghp_alloc((size_t)model->n_layers + 1, sizeof *names), *nearest;

    if (names == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < model->n_layers; v++)
        names[v] = model->layers[v].name;
    nearest = ghp_text_nearest(pattern, names);
    free(names);
    if (nearest != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--force names layer '%s', which model '%s' does not have; did you mean "
                        "'%s'?",
                        pattern, model->name, nearest);
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--force names layer '%s', which model '%s' does not have; see ghp-inspect "
                    "MODEL for its layers",
                    pattern, model->name);
}

/* Notes one entry's choice for every layer that it names. */
static enum ghp_status apply_entry(const struct ghp_domain *domain, const char *pattern,
                                   const char *text, int *forced)
{
    const struct ghp_model *model = domain->instance->lowering->model;
    bool plain = strpbrk(pattern, "*?[") == NULL, taken = false;
    int choice, first = -1;

    for (int v = 0; v < model->n_layers; v++) {
        if (fnmatch(pattern, model->layers[v].name, 0) != 0) continue;
        if (first < 0) first = v;
        enum ghp_status status = find_choice(domain, v, text, &choice);
        if (status != GHP_OK)
            return GHP_FAIL(GHP_ERR_USAGE, "cannot read --force '%s=%s': %s", pattern, text,
                            ghp_status_message());
        if (choice < 0 && plain) return fail_split(domain, v, text);
        if (choice < 0) continue;
        ghp_instance_choose(domain->instance, v, choice, forced);
        taken = true;
    }
    if (first >= 0) return taken ? GHP_OK : fail_split(domain, first, text);
    return fail_layer(model, pattern);
}

/* 64 well-mixed bits of a number (the finaliser of SplitMix64). */
static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The choice of a layer that is number `k` of those in play. */
static int choice_in_play(const struct ghp_domain *domain, int v, int k)
{
    int i = 0;

    while (!in_play(domain, v, i) || k-- > 0)
        i++;
    return i;
}

/* Draws a split for every conv2d and linear layer, all of a layer's splits in play being as likely. */
static enum ghp_status draw(const struct ghp_domain *domain, const char *seed_text, int *forced)
{
    const struct ghp_instance *in = domain->instance;
    char *end = NULL;
    uint64_t seed = strtoull(seed_text, &end, 10);

    if (*seed_text < '0' || *seed_text > '9' || *end != '\0')
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --force 'random:%s'; give a whole number as seed, such as "
                        "random:1",
                        seed_text);
    for (int v = 0; v < in->n_layers; v++)
        if (ghp_op_is_weighted(in->lowering->model->layers[v].op))
            ghp_instance_choose(in, v,
                                choice_in_play(domain, v,
                                               (int)(mixed(mixed(seed) + (uint64_t)v) %
                                                     (uint64_t)ghp_domain_count(domain, v))),
                                forced);
    return GHP_OK;
}

static enum ghp_status read_entry(const struct ghp_domain *domain, char *entry, int *forced)
{
    char *equals = strchr(entry, '=');

    if (equals == NULL && strncmp(entry, "random:", 7) == 0) return draw(domain, entry + 7, forced);
    if (equals == NULL || equals == entry)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --force entry '%s'; write PATTERN=SPLIT, such as 'fc*=out:4', "
                        "or random:SEED",
                        entry);
    *equals = '\0';
    return apply_entry(domain, entry, equals + 1, forced);
}

enum ghp_status ghp_force_restrict(const char *text, struct ghp_domain *domain)
{
    int n = domain->instance->n_layers;
    int *forced = ghp_alloc((size_t)n, sizeof *forced);
    char *copy = ghp_alloc(strlen(text) + 1, 1), *rest = NULL;
    enum ghp_status status = GHP_OK;

    if (forced == NULL || copy == NULL) {
        free(forced);
        free(copy);
        return GHP_NO_MEMORY();
    }
    memcpy(copy, text, strlen(text));
    for (int v = 0; v < n; v++)
        forced[v] = -1;
    for (char *entry = strtok_r(copy, ",", &rest); entry != NULL && status == GHP_OK;
         entry = strtok_r(NULL, ",", &rest))
        status = read_entry(domain, entry, forced);
    for (int v = 0; v < n && status == GHP_OK; v++)
        if (forced[v] >= 0) ghp_domain_fix(domain, v, forced[v]);
    free(forced);
    free(copy);
    return status;
}
