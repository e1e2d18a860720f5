/* tests/executor/cases.c - see cases.h. */
#include "tests/executor/cases.h"

#include "onnx/network.h"

#include <stdio.h>
#include <stdlib.h>

const char *case_name(enum case_kind kind)
{
    static const char *const names[CASE_COUNT] = {"data", "out", "in", "owt", "mixed"};

    return names[kind];
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static struct ghp_split largest_of(const struct ghp_split *choices, int n, enum ghp_split_kind kind,
                                   int most)
{
    struct ghp_split best = {.kind = GHP_SPLIT_DATA, .tp_size = 1};

    for (int i = 0; i < n; i++)
        if (choices[i].kind == kind && choices[i].tp_size > best.tp_size &&
            choices[i].tp_size <= most)
            best = choices[i];
    return best;
}

static struct ghp_split choose(const struct ghp_layer *layer, const struct ghp_split *choices,
                               int n, enum case_kind kind, int most)
{
    bool weighted = layer->op == GHP_OP_CONV2D || layer->op == GHP_OP_LINEAR;
    bool vector = layer->out.h == 1 && layer->out.w == 1;
    struct ghp_split split = {.kind = GHP_SPLIT_DATA, .tp_size = 1};

    if (kind == CASE_DATA || (kind == CASE_OWT && (!vector || layer->op == GHP_OP_SOFTMAX_CE)))
        return split;
    if (weighted)
        return largest_of(choices, n, kind == CASE_IN ? GHP_SPLIT_IN : GHP_SPLIT_OUT, most);
    if (layer->op == GHP_OP_EMBEDDING)
        return largest_of(choices, n, kind == CASE_IN ? GHP_SPLIT_ROWS : GHP_SPLIT_OUT, most);
    split = largest_of(choices, n, GHP_SPLIT_CHANNEL, most);
    return split.tp_size > 1 ? split : largest_of(choices, n, GHP_SPLIT_FULL, most);
}

struct ghp_split *case_splits(const struct ghp_model *model, struct ghp_problem problem,
                              enum case_kind kind, unsigned seed, int most)
{
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);
    struct ghp_split *choices = ghp_alloc(GHP_MAX_CHOICES, sizeof *choices);
    unsigned state = seed * 7919u + 1u;

    if (splits == NULL || choices == NULL) exit(1);
    for (int i = 0; i < model->n_layers; i++) {
        int n = ghp_split_choices(&model->layers[i], problem, choices, GHP_MAX_CHOICES);

        if (kind != CASE_MIXED) {
            splits[i] = choose(&model->layers[i], choices, n, kind, most);
            continue;
        }
        do
            splits[i] = choices[next_random(&state) % (unsigned)n];
        while (splits[i].tp_size > most);
    }
    for (int i = 0; i < model->n_layers; i++)
        if (model->layers[i].tied > 0)
            splits[i] = ghp_split_of_tied(splits[ghp_model_owner(model, i)]);
    free(choices);
    return splits;
}

void case_shard(const struct ghp_model *model, struct ghp_problem problem,
                enum ghp_param_sharding sharding, unsigned seed, struct ghp_split *splits)
{
    unsigned state = seed * 15485863u + 1u;

    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *l = &model->layers[i];
        struct ghp_split split = splits[i];

        split.sharding = sharding;
        if (sharding == GHP_SHARDING_COUNT)
            split.sharding = (enum ghp_param_sharding)(next_random(&state) % GHP_SHARDING_COUNT);
        if (l->tied > 0) split.sharding = splits[ghp_model_owner(model, i)].sharding;
        if (ghp_sharding_check(l, split, problem) == GHP_OK) splits[i] = split;
    }
}

/* The kind wanted of a layer whose first input lies so. */
static enum ghp_split_kind sequence_kind(const struct ghp_layer *layer, enum ghp_layout_kind input)
{
    bool divided = input == GHP_LAYOUT_CHANNEL;

    if (layer->n_inputs == 0) return GHP_SPLIT_FULL;
    if (layer->op == GHP_OP_EMBEDDING) return GHP_SPLIT_ROWS;
    if (layer->op == GHP_OP_LINEAR) return divided ? GHP_SPLIT_IN : GHP_SPLIT_OUT;
    return divided ? GHP_SPLIT_CHANNEL : GHP_SPLIT_POSITION;
}

/* Data; of fewer samples than workers another. */
static struct ghp_split first_choice(const struct ghp_layer *layer, struct ghp_problem problem)
{
    struct ghp_split first = {.kind = GHP_SPLIT_DATA, .tp_size = 1};

    ghp_split_choices(layer, problem, &first, 1);
    return first;
}

struct ghp_split *case_sequence_splits(const struct ghp_model *model, struct ghp_problem problem,
                                       int m)
{
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);

    if (splits == NULL) exit(1);
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *l = &model->layers[i];
        enum ghp_layout_kind input =
            l->n_inputs == 0 ? GHP_LAYOUT_BATCH : ghp_split_layouts(splits[l->inputs[0]]).y.kind;

        splits[i] = (struct ghp_split){.kind = sequence_kind(l, input), .tp_size = m};
        if (l->tied > 0) splits[i] = ghp_split_of_tied(splits[ghp_model_owner(model, i)]);
        if (ghp_split_check(l, splits[i], problem) != GHP_OK) splits[i] = first_choice(l, problem);
    }
    return splits;
}

struct ghp_split *case_position_splits(const struct ghp_model *model, struct ghp_problem problem,
                                       int m)
{
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);

    if (splits == NULL) exit(1);
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *l = &model->layers[i];

        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_POSITION, .tp_size = m};
        if (ghp_split_check(l, splits[i], problem) != GHP_OK) splits[i] = first_choice(l, problem);
        if (l->tied > 0) splits[i] = ghp_split_of_tied(splits[ghp_model_owner(model, i)]);
    }
    return splits;
}

/* Gives a tied layer the split that goes with its owner's, or both none if the stages cannot. */
static void couple(const struct ghp_model *model, const struct ghp_staging *s,
                   struct ghp_problem whole, int tied, struct ghp_split *splits)
{
    int owner = ghp_model_owner(model, tied), tp_size = splits[owner].tp_size;

    if (!ghp_stage_takes_tp_size(s, ghp_stage_of(s, tied), whole, tp_size) ||
        !ghp_stage_partner_takes(model, s, tied, tp_size))
        splits[owner] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    splits[tied] = ghp_split_of_tied(splits[owner]);
}

struct ghp_split *case_staged_splits(const struct ghp_model *model, const struct ghp_staging *s,
                                     struct ghp_problem whole, unsigned seed)
{
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);
    struct ghp_split *choices = ghp_alloc(GHP_MAX_CHOICES, sizeof *choices);
    unsigned state = seed * 104729u + 1u;

    if (splits == NULL || choices == NULL) exit(1);
    for (int l = 0; l < model->n_layers; l++) {
        int stage = ghp_stage_of(s, l);
        struct ghp_placement placement =
            ghp_placement_of(s, model->n_layers, whole, ghp_stage_representative(s, stage, whole));
        int n = ghp_split_choices(&model->layers[l], placement.problem, choices, GHP_MAX_CHOICES);
        int taken = 0; /* of the choices, those that the stage takes, moved to the front */

        for (int i = 0; i < n; i++)
            if (ghp_stage_takes_tp_size(s, stage, whole, choices[i].tp_size))
                choices[taken++] = choices[i];
        if (taken == 0) { /* ghost batches do not come out */
            free(choices);
            free(splits);
            return NULL;
        }
        splits[l] = choices[seed == 0 ? 0 : next_random(&state) % (unsigned)taken];
    }
    for (int l = 0; l < model->n_layers; l++)
        if (model->layers[l].tied > 0) couple(model, s, whole, l, splits);
    free(choices);
    return splits;
}

struct ghp_staging case_staging(const struct ghp_model *model, const int *counts, int u,
                                unsigned seed)
{
    struct ghp_staging s = {.micro_batches = u};
    unsigned state = seed * 7919u + 3u;
    int starts[512], n = 0;

    for (int l = 1; l < model->n_layers; l++)
        if (ghp_stage_may_start(model, l)) starts[n++] = l;
    for (int i = 0; counts[i] > 0; i++) {
        int from = i == 0 ? 0 : s.stage[i - 1].first_layer, least = 0;

        s.stage[i].workers = counts[i];
        s.n++;
        if (i == 0) continue;
        while (starts[least] <= from)
            least++;
        int later = 0; /* stages still to come */
        while (counts[i + 1 + later] > 0)
            later++;
        s.stage[i].first_layer =
            starts[least + (int)(next_random(&state) % (unsigned)(n - later - least))];
    }
    return s;
}

struct ghp_staging case_interleaved(const struct ghp_model *model, const int *counts, int chunks,
                                    int u, unsigned seed)
{
    int all[GHP_MAX_STAGES + 1] = {0}, n = 0, starts = 0;
    struct ghp_staging s;

    while (counts[n] > 0)
        n++;
    for (int l = 1; l < model->n_layers; l++)
        starts += ghp_stage_may_start(model, l);
    if (n < 2 || n * chunks > GHP_MAX_STAGES || starts < n * chunks) return (struct ghp_staging){0};
    for (int i = 0; i < n * chunks; i++)
        all[i] = counts[i % n];
    s = case_staging(model, all, u, seed);
    for (int i = n; i < n * chunks; i++) {
        s.later_chunk[i - n] = s.stage[i].first_layer;
        s.stage[i] = (struct ghp_stage){0};
    }
    s.n = n;
    s.chunks = chunks;
    s.pipeline = GHP_PIPELINE_INTERLEAVED;
    return s;
}

bool case_staging_fits(const struct ghp_model *model, struct ghp_problem whole,
                       struct ghp_staging *s)
{
    if (ghp_staging_check(s, model, whole) == GHP_OK) return true;
    for (int i = 0; i < s->n; i++)
        s->stage[i].block_size = 1;
    return s->n > 1 && ghp_staging_check(s, model, whole) == GHP_OK;
}

void case_recomputed(const struct ghp_model *model, unsigned seed, bool *recomputed)
{
    unsigned state = seed * 31337u + 17u;

    for (int l = 0; l < model->n_layers; l++) {
        const struct ghp_layer *layer = &model->layers[l];
        bool own = layer->op != GHP_OP_INPUT && layer->op != GHP_OP_BATCH_NORM &&
                   layer->op != GHP_OP_SOFTMAX_CE && !ghp_op_in_place(layer);

        recomputed[l] = own && next_random(&state) % 2 == 0;
    }
}

void case_shard_staged(const struct ghp_model *model, const struct ghp_staging *s,
                       struct ghp_problem whole, unsigned seed, struct ghp_split *splits)
{
    unsigned state = seed * 15485863u + 1u;

    for (int i = 0; i < model->n_layers; i++) {
        struct ghp_sharding_place place = {.model = model, .staging = s, .layer = i};
        struct ghp_split variants[GHP_SHARDING_COUNT];
        int n, rank = ghp_stage_representative(s, ghp_stage_of(s, i), whole);

        place.problem = ghp_placement_of(s, model->n_layers, whole, rank).problem;
        n = ghp_stage_shardings(&place, (1u << GHP_SHARDING_COUNT) - 1, splits[i], variants);
        splits[i] = variants[next_random(&state) % (unsigned)n];
        if (model->layers[i].tied > 0)
            splits[i].sharding = splits[ghp_model_owner(model, i)].sharding;
    }
}

static bool has_pixels(const struct ghp_layer *layer)
{
    return layer->out.axes == GHP_AXES_IMAGE;
}

/* Whether the output may lie in blocks as far as its readers' stages are concerned. */
static bool stays(const struct ghp_model *model, const struct ghp_staging *staging, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    bool stays = true;

    for (int i = 0; i < l->n_consumers; i++)
        stays = stays && ghp_stage_of(staging, model->edges[l->out_edges[i]].to) ==
                             ghp_stage_of(staging, layer);
    return stays;
}

/* A layer's tensors lie plain where one of them does; returns whether that changed anything. */
static bool spread_plain(const struct ghp_model *model, int layer, bool *nchw16c)
{
    const struct ghp_layer *l = &model->layers[layer];
    bool all = nchw16c[layer] || !has_pixels(l), changed = false;
    int tied[GHP_MAX_INPUTS + 1], n = 0;

    tied[n++] = layer;
    for (int i = 0; i < l->n_inputs; i++) {
        if (!has_pixels(&model->layers[l->inputs[i]])) continue;
        all = all && nchw16c[l->inputs[i]];
        tied[n++] = l->inputs[i];
    }
    for (int i = 0; i < n && !all; i++) {
        changed = changed || nchw16c[tied[i]];
        nchw16c[tied[i]] = false;
    }
    return changed;
}

void case_formats(const struct ghp_model *model, const struct ghp_staging *staging, bool *nchw16c)
{
    bool changed = true;

    for (int v = 0; v < model->n_layers; v++)
        nchw16c[v] = nchw16c[v] && model->layers[v].n_inputs > 0 && has_pixels(&model->layers[v]) &&
                     stays(model, staging, v);
    while (changed) {
        changed = false;
        for (int v = 0; v < model->n_layers; v++)
            if (model->layers[v].n_inputs > 0 && !ghp_op_of(model->layers[v].op)->chooses_format)
                changed = spread_plain(model, v, nchw16c) || changed;
    }
}

void case_model(const char *path, struct ghp_model *model)
{
    if (ghp_network_load(path, model) == GHP_OK) return;
    fprintf(stderr, "%s\n", ghp_status_message());
    exit(1);
}
