/* inspect/why.c - what a plan says of its alternatives: every split of a layer, when the choice flips, and how far
 * quantities may move.
 *
 * Shows what the plan file carries; costs nothing. */
#include "inspect/inspect.h"

#include "core/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1.0 / 1048576)

enum { NEAREST = 3 };

/* ---- one layer's splits ---- */

static const char *mark_of(const struct ghp_plan *plan, const struct ghp_alternative *a,
                           struct ghp_split split)
{
    if (ghp_split_same(split, plan->splits[a->layer])) return "planned";
    return ghp_split_same(split, a->split) ? "second-best" : "";
}

static void put_choice(struct ghp_sheet *sheet, const struct ghp_plan *plan,
                       const struct ghp_alternative *a, const struct ghp_choice_cost *c)
{
    char split[64];

    ghp_split_format(c->split, split, sizeof split);
    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, split);
    ghp_sheet_real(sheet, c->step_s);
    ghp_sheet_real(sheet, c->step_s - plan->predicted.step_s);
    ghp_sheet_real(sheet, c->forward_s);
    ghp_sheet_real(sheet, c->backward_s);
    ghp_sheet_real(sheet, c->reshard_s);
    ghp_sheet_real(sheet, c->reduce_s);
    ghp_sheet_real(sheet, c->exposed_s);
    ghp_sheet_real(sheet, c->update_s);
    ghp_sheet_int(sheet, c->peak_bytes);
    ghp_sheet_text(sheet, mark_of(plan, a, c->split));
}

/* What the second best is as a whole plan. */
static void put_second_best(struct ghp_display *report, const struct ghp_plan *plan,
                            const struct ghp_alternative *a)
{
    char split[64], along[512] = "";
    size_t used = 0;

    for (int i = 0; i < a->n_changes && used < sizeof along; i++) {
        ghp_split_format(a->changes[i].split, split, sizeof split);
        used += (size_t)snprintf(along + used, sizeof along - used, "%s%s %s",
                                 i > 0 ? ", " : ", along with ",
                                 plan->model.layers[a->changes[i].layer].name, split);
    }
    ghp_split_format(a->split, split, sizeof split);
    ghp_display_text(report, "runner_up", split);
    ghp_display_int(report, "runner_up_changes", a->n_changes);
    ghp_display_real(report, "runner_up_costs_s", a->step_s - plan->predicted.step_s);
    ghp_display_line(report, "second-best of %s: %s%s%s; a step of %.4f ms, %+.4f ms (%+.2f %%)",
                     plan->model.layers[a->layer].name, split, along,
                     used >= sizeof along ? "..." : "", a->step_s * 1e3,
                     (a->step_s - plan->predicted.step_s) * 1e3,
                     100 * (a->step_s / plan->predicted.step_s - 1));
}

void ghp_inspect_choices(struct ghp_display *report, const struct ghp_plan *plan, int layer)
{
    static const struct ghp_column columns[] = {{"split", "split", "", 't', 0, 0},
                                                {"predicted_step_s", "step", "ms", 'r', 1e3, 4},
                                                {"costs_s", "costs", "ms/step", 'r', 1e3, 4},
                                                {"forward_s", "forward", "ms", 'r', 1e3, 4},
                                                {"backward_s", "backward", "ms", 'r', 1e3, 4},
                                                {"reshard_s", "layouts", "ms", 'r', 1e3, 4},
                                                {"reduce_s", "reduce", "ms", 'r', 1e3, 4},
                                                {"exposed_s", "exposed", "ms", 'r', 1e3, 4},
                                                {"update_s", "update", "ms", 'r', 1e3, 4},
                                                {"peak_bytes", "memory", "MiB", 'b', MIB, 2},
                                                {"mark", "", "", 't', 0, 0},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    const struct ghp_alternative *a = NULL;
    struct ghp_sheet *sheet;

    for (int i = 0; i < plan->n_alternatives; i++)
        if (plan->alternatives[i].layer == layer) a = &plan->alternatives[i];
    if (a == NULL || a->n_choices == 0) {
        ghp_display_line(report,
                         "other splits of %s: not in the plan, which has those of conv2d, "
                         "linear, embedding and attention layers and of the loss of a sequence, "
                         "where they can be split",
                         plan->model.layers[layer].name);
        return;
    }
    sheet = ghp_sheet_open(report, "choices", columns);
    ghp_sheet_note(sheet,
                   "splits of %s, all other layers as planned (every one, or of very large "
                   "networks those that promise most): the step, and the layer's own terms",
                   plan->model.layers[layer].name);
    ghp_sheet_note(sheet, "layouts: changes before and after the layer, both ways; exposed: what "
                          "computation waits for its reduction; memory: of the whole worker");
    for (int i = 0; i < a->n_choices; i++)
        put_choice(sheet, plan, a, &a->choices[i]);
    ghp_display_sheet(report, sheet);
    put_second_best(report, plan, a);
}

/* ---- quantities ---- */

/* A value in the table's unit, or why there is none. */
static const char *value_text(enum ghp_quantity quantity, double value, const char *none,
                              char text[48])
{
    if (isnan(value)) return none;
    snprintf(text, 48, "%.6g", value * ghp_quantity_scale(quantity));
    return text;
}

/* quantity, its unit, nominal, low, high; in JSON by their keys, absent if there is none */
static void put_range(struct ghp_sheet *sheet, enum ghp_quantity quantity, const double value[3],
                      const char *none)
{
    const bool unlimited = quantity == GHP_QUANTITY_MEMORY && !(value[0] > 0);
    char text[48];

    ghp_sheet_text(sheet, ghp_quantity_name(quantity));
    ghp_sheet_text(sheet, ghp_quantity_unit(quantity));
    ghp_sheet_text(sheet, unlimited ? "no limit" : value_text(quantity, value[0], none, text));
    ghp_sheet_text(sheet, value_text(quantity, value[1], none, text));
    ghp_sheet_text(sheet, value_text(quantity, value[2], none, text));
}

static void put_break_even(struct ghp_sheet *sheet, const struct ghp_plan *plan,
                           const struct ghp_alternative *a, const struct ghp_break_even *b)
{
    const double value[3] = {b->nominal, b->low, b->high};
    char split[64];

    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, plan->model.layers[a->layer].name);
    ghp_split_format(plan->splits[a->layer], split, sizeof split);
    ghp_sheet_text(sheet, split);
    ghp_split_format(a->split, split, sizeof split);
    ghp_sheet_text(sheet, split);
    ghp_sheet_real(sheet, a->step_s - plan->predicted.step_s);
    put_range(sheet, b->quantity, value, "none");
}

void ghp_inspect_break_even(struct ghp_display *report, const struct ghp_plan *plan, int layer)
{
    static const struct ghp_column columns[] = {
        {"layer", "layer", "", 't', 0, 0},           {"split", "split", "", 't', 0, 0},
        {"runner_up", "second-best", "", 't', 0, 0}, {"costs_s", "costs", "ms/step", 'r', 1e3, 4},
        {"quantity", "quantity", "", 't', 0, 0},     {"unit", "unit", "", 't', 0, 0},
        {"nominal", "nominal", "", 't', 0, 0},       {"low", "flips below", "", 't', 0, 0},
        {"high", "flips above", "", 't', 0, 0},      {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet;
    int without = 0;

    if (plan->break_even_search == NULL) return;
    sheet = ghp_sheet_open(report, "break_even", columns);
    ghp_display_text(report, "break_even_search", plan->break_even_search);
    ghp_sheet_note(sheet, "where a layer's choice flips to its second-best, each quantity alone");
    ghp_sheet_note(sheet, "searched: %s", plan->break_even_search);
    for (int i = 0; i < plan->n_alternatives; i++) {
        const struct ghp_alternative *a = &plan->alternatives[i];

        if (layer >= 0 && a->layer != layer) continue;
        for (int k = 0; k < a->n_break_even; k++) {
            bool none = isnan(a->break_even[k].low) && isnan(a->break_even[k].high);

            if (layer < 0 && none)
                without++;
            else
                put_break_even(sheet, plan, a, &a->break_even[k]);
        }
    }
    if (without > 0)
        ghp_sheet_note(sheet, "%d further (layer, quantity) flip nowhere within a factor %d",
                       without, GHP_QUANTITY_FACTOR);
    else
        ghp_sheet_note(sheet, "none: nowhere within a factor %d", GHP_QUANTITY_FACTOR);
    ghp_display_sheet(report, sheet);
}

/* ---- crossovers ---- */

/* The most samples a step with which a layer's other split, or its own one, is faster than data parallelism; 0: not
 * between these two, or nowhere near. */
static double flips_at(const struct ghp_plan *plan, const struct ghp_alternative *a)
{
    bool own_data = plan->splits[a->layer].kind == GHP_SPLIT_DATA,
         other_data = a->split.kind == GHP_SPLIT_DATA;

    for (int k = 0; k < a->n_break_even && own_data != other_data; k++) {
        const struct ghp_break_even *b = &a->break_even[k];
        double value = own_data ? b->low : b->high;

        if (b->quantity == GHP_QUANTITY_BATCH && !isnan(value)) return value;
    }
    return 0;
}

static void put_crossover(struct ghp_display *report, const struct ghp_plan *plan, bool ends,
                          double ideal)
{
    const struct ghp_model *model = &plan->model;
    double most = 0, tokens;
    int layer = -1;
    bool split = false; /* the plan itself splits the part */

    for (int i = 0; i < plan->n_alternatives; i++) {
        const struct ghp_alternative *a = &plan->alternatives[i];
        const struct ghp_layer *l = &model->layers[a->layer];
        double at = flips_at(plan, a);

        if (ghp_layer_is_end(model, l) != ends || l->op == GHP_OP_SOFTMAX_CE || at <= most)
            continue;
        most = at;
        layer = a->layer;
    }
    for (int v = 0; v < model->n_layers; v++) {
        enum ghp_op op = model->layers[v].op;

        split = split || (plan->splits[v].kind != GHP_SPLIT_DATA &&
                          (ghp_layer_is_end(model, &model->layers[v])
                               ? ends
                               : !ends && (op == GHP_OP_LINEAR || op == GHP_OP_ATTENTION)));
    }
    if (split && most < (double)plan->problem.global_batch) layer = -1; /* of some layers only */
    tokens = most * (double)ghp_model_tokens(model);
    ghp_display_real(report, ends ? "ends_crossover_tokens" : "blocks_crossover_tokens",
                     layer < 0 ? NAN : tokens);
    if (layer < 0 && split)
        ghp_display_line(report,
                         "%s: in this plan, and where data parallelism is faster is not known; "
                         "ghp-plan --crossovers closes in on it; the ideal number of tokens a step "
                         "is %.0f",
                         ends ? "vocabulary-parallel ends" : "tensor-parallel blocks", ideal);
    else if (layer < 0)
        ghp_display_line(report,
                         "%s: no batch near this one at which data parallelism and they change "
                         "places; the ideal one is %.0f tokens a step",
                         ends ? "vocabulary-parallel ends" : "tensor-parallel blocks", ideal);
    else
        ghp_display_line(report,
                         "%s: faster than by data below %.0f tokens a step (%.0f samples; layer "
                         "%s), all else fixed; the ideal number is %.0f",
                         ends ? "vocabulary-parallel ends" : "tensor-parallel blocks", tokens, most,
                         model->layers[layer].name, ideal);
}

void ghp_inspect_crossovers(struct ghp_display *report, const struct ghp_plan *plan)
{
    const struct ghp_model *model = &plan->model;
    double parameters = 0, blocks = 0, width = 0, words = 0;

    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *l = &model->layers[v];

        parameters += (double)ghp_layer_weights(l);
        blocks += l->op == GHP_OP_ATTENTION;
        if (l->op != GHP_OP_EMBEDDING || words > 0) continue;
        words = (double)l->params[0].dims[0];
        width = (double)l->out.c;
    }
    if (plan->break_even_search == NULL || !(words > 0) || !(blocks > 0)) return;
    put_crossover(report, plan, false, 2 * parameters / ((8 * blocks + 4) * width));
    put_crossover(report, plan, true, words / 2);
}

/* ---- names ---- */

enum ghp_status ghp_inspect_no_layer(const struct ghp_model *model, const char *name)
{
    size_t layers = (size_t)model->n_layers;
    const char **names = ghp_alloc(layers + 1, sizeof *names);
    char near[512] = "";
    size_t used = 0;
    int n = model->n_layers;

    if (names == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < n; v++)
        names[v] = model->layers[v].name;
    for (int k = 0; k < NEAREST && used < sizeof near; k++) {
        const char *found = ghp_text_nearest(name, names);
        int at = 0;

        if (found == NULL) break;
        used +=
            (size_t)snprintf(near + used, sizeof near - used, "%s'%s'", k > 0 ? ", " : "", found);
        while (names[at] != found)
            at++;
        memmove(&names[at], &names[at + 1], (size_t)(n - at) * sizeof *names); /* NULL included */
        --n;
    }
    free(names);
    if (near[0] != '\0')
        return GHP_FAIL(GHP_ERR_USAGE, "model '%s' has no layer '%s'; did you mean %s?",
                        model->name, name, near);
    return GHP_FAIL(GHP_ERR_USAGE,
                    "model '%s' has no layer '%s'; see its layers with ghp-inspect --explain",
                    model->name, name);
}
