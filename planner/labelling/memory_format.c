/* planner/labelling/memory_format.c - see memory_format.h. */
#include "planner/labelling/memory_format.h"

#include "core/base/array.h"
#include "planner/labelling/labelling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct deciding {
    const struct ghp_model *model;
    const struct ghp_profile *profile;
    const struct ghp_split *splits;
    int workers;
    /* of each layer: another of its component, itself for the one that stands for it; -1: one pixel a channel, which lies
     * alike in both formats */
    int *component;
    struct ghp_labelling graph;
    int max_pairs;
    bool *whole; /* of each component: some pass has a tensor of it in whole blocks */
    bool choice; /* something may lie blocked */
    bool blind;  /* by data, a convolution's seconds in any formats are not known */
};

static int component_of(const struct deciding *d, int layer)
{
    while (layer >= 0 && d->component[layer] >= 0 && d->component[layer] != layer)
        layer = d->component[layer];
    return layer >= 0 && d->component[layer] >= 0 ? layer : -1;
}

static void tie(struct deciding *d, int a, int b)
{
    int one = component_of(d, a), other = component_of(d, b);

    if (one < 0 || other < 0 || one == other) return;
    d->component[one > other ? one : other] = one > other ? other : one;
}

/* ---- what can be ---- */

static bool has_pixels(const struct ghp_layer *layer)
{
    return layer->out.axes == GHP_AXES_IMAGE;
}

static void make_components(struct deciding *d)
{
    const struct ghp_model *model = d->model;

    for (int v = 0; v < model->n_layers; v++)
        d->component[v] = has_pixels(&model->layers[v]) ? v : -1;
    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *l = &model->layers[v];

        if (ghp_op_of(l->op)->chooses_format) continue;
        for (int i = 0; i < l->n_inputs; i++) {
            tie(d, l->inputs[i], v);
            tie(d, l->inputs[i], l->inputs[0]); /* even if its output has one pixel */
        }
    }
}

/* ---- what it costs ---- */

/* A convolution that nobody measured in several formats. */
static bool is_unknown(const struct deciding *d, const struct ghp_instr *instr)
{
    return ghp_op_of(instr->local.op)->chooses_format &&
           !ghp_profile_knows(d->profile, &instr->local, instr->pass,
                              (struct ghp_nchw16c){.requested = true});
}

/* Seconds of an instruction in these formats; INFINITY: nobody measured them. All plain is always possible; a
 * convolution of one known cost has it in all. */
static enum ghp_status cost_in(const struct deciding *d, const struct ghp_instr *instr,
                               struct ghp_nchw16c nchw16c, double *seconds)
{
    struct ghp_instr asked = *instr;
    struct ghp_cost cost;

    *seconds = INFINITY;
    if ((nchw16c.x || nchw16c.y) && !is_unknown(d, instr) &&
        !ghp_profile_knows(d->profile, &instr->local, instr->pass, nchw16c))
        return GHP_OK;
    asked.nchw16c = nchw16c;
    GHP_TRY(ghp_profile_cost(d->profile, &asked, d->workers, &cost));
    *seconds = cost.seconds;
    return GHP_OK;
}

static enum ghp_status add_pair(struct deciding *d, int a, int b, double cost[2][2])
{
    struct ghp_labelling *graph = &d->graph;

    GHP_TRY_ROOM(graph->pairs, graph->n_pairs, d->max_pairs);
    struct ghp_label_pair *pair = &graph->pairs[graph->n_pairs++];

    pair->a = a;
    pair->b = b;
    memcpy(pair->cost, cost, sizeof pair->cost);
    return GHP_OK;
}

/* Whether the pass reads or writes a tensor of activations: a batch norm's weight gradient is made of sums alone. */
static bool touches(const struct ghp_operands *at)
{
    return at->x[0] >= 0 || at->dx[0] >= 0 || at->y >= 0 || at->dy >= 0;
}

/* A pass between its inputs' component and its output's. A slice of channels that does not fill whole blocks lies plain
 * under either label. */
static enum ghp_status add_pass(struct deciding *d, const struct ghp_instr *instr)
{
    const struct ghp_layer *l = &d->model->layers[instr->layer];
    int x = l->n_inputs > 0 ? component_of(d, l->inputs[0]) : -1, y = component_of(d, instr->layer);
    const bool whole_x = ghp_whole_blocks(instr->local.c),
               whole_y = ghp_whole_blocks(instr->local.k);
    double cost[2][2];

    if ((x < 0 && y < 0) || !touches(&instr->at)) return GHP_OK;
    if (x >= 0) d->whole[x] = d->whole[x] || whole_x;
    if (y >= 0) d->whole[y] = d->whole[y] || whole_y;
    d->blind = d->blind || (d->splits[instr->layer].kind == GHP_SPLIT_DATA && is_unknown(d, instr));
    for (int i = 0; i < 4; i++) {
        const struct ghp_nchw16c nchw16c = {true, i / 2 == 1 && whole_x, i % 2 == 1 && whole_y};

        GHP_TRY(cost_in(d, instr, nchw16c, &cost[i / 2][i % 2]));
        d->choice = d->choice || ((nchw16c.x || nchw16c.y) && !isinf(cost[i / 2][i % 2]));
    }
    for (int label = 0; label < 2 && (x < 0 || y < 0 || x == y); label++)
        d->graph.own[x >= 0 ? x : y][label] += cost[x >= 0 && label][y >= 0 && label];
    return x < 0 || y < 0 || x == y ? GHP_OK : add_pair(d, x, y, cost);
}

static enum ghp_status add_programs(struct deciding *d, const struct ghp_programs *programs)
{
    for (int k = 0; k < programs->n; k++)
        for (int i = 0; i < programs->of[k].n_instrs; i++)
            if (programs->of[k].instrs[i].kind == GHP_INSTR_COMPUTE)
                GHP_TRY(add_pass(d, &programs->of[k].instrs[i]));
    return GHP_OK;
}

static void forbid(struct deciding *d, const struct ghp_lowering *lowering)
{
    for (int v = 0; v < d->model->n_layers; v++)
        if (component_of(d, v) >= 0 && !(ghp_stage_keeps(lowering->staging, lowering->model, v) &&
                                         d->whole[component_of(d, v)]))
            d->graph.own[component_of(d, v)][1] = INFINITY;
}

static enum ghp_status solve(struct deciding *d, bool *nchw16c)
{
    bool *label = ghp_alloc((size_t)d->model->n_layers, sizeof *label);
    double cost = 0;
    enum ghp_status status =
        label == NULL ? GHP_NO_MEMORY() : ghp_labelling_solve(&d->graph, label, &cost);

    for (int v = 0; v < d->model->n_layers && status == GHP_OK; v++)
        nchw16c[v] = component_of(d, v) >= 0 && label[component_of(d, v)];
    free(label);
    return status;
}

enum ghp_status ghp_memory_format_decide(const struct ghp_lowering *lowering,
                                         const struct ghp_split *splits,
                                         const struct ghp_profile *profile, bool *nchw16c,
                                         bool *choice)
{
    size_t layers = (size_t)lowering->model->n_layers;
    struct ghp_lowering plain = *lowering;
    struct deciding d = {
        .model = lowering->model,
        .profile = profile,
        .splits = splits,
        .workers = lowering->problem.workers,
        .component = ghp_alloc(layers, sizeof *d.component),
        .whole = ghp_alloc(layers, sizeof *d.whole),
        .graph = {.n = lowering->model->n_layers, .own = ghp_alloc(layers, sizeof *d.graph.own)}};
    struct ghp_programs programs = {0};
    enum ghp_status status =
        d.component == NULL || d.whole == NULL || d.graph.own == NULL ? GHP_NO_MEMORY() : GHP_OK;

    memset(nchw16c, 0, layers * sizeof *nchw16c);
    *choice = false;
    plain.nchw16c = NULL;
    if (status != GHP_OK || !ghp_profile_has_memory_formats(profile)) goto done;
    GHP_TRY_GOTO(status, ghp_lower_all(&plain, splits, &programs), done);
    make_components(&d);
    GHP_TRY_GOTO(status, add_programs(&d, &programs), done);
    *choice = d.choice && !d.blind;
    forbid(&d, lowering);
    if (*choice) status = solve(&d, nchw16c);
done:
    ghp_programs_release(&programs);
    free(d.graph.pairs);
    free(d.graph.own);
    free(d.whole);
    free(d.component);
    return status;
}
