/* inspect/explain.c - why a plan costs what it costs: each layer's terms, its second best, its instructions.
 *
 * Each term is alone, without waiting and slowdown, so they sum to the two streams' work, not to the step. A
 * reduction of several layers together is shared out by their bytes; an exchange belongs to the layer that reads. */
#include "inspect/inspect.h"
#include "inspect/simulation.h"

#include "core/cost/terms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1.0 / 1048576)

const struct ghp_alternative *ghp_inspect_second_best(const struct ghp_plan *plan, int layer)
{
    const struct ghp_alternative *best = NULL;

    for (int i = 0; i < plan->n_alternatives; i++) {
        const struct ghp_alternative *a = &plan->alternatives[i];

        if (a->layer == layer && !ghp_split_same(a->split, plan->splits[layer]) &&
            (best == NULL || a->step_s < best->step_s))
            best = a;
    }
    return best;
}

static void put_term(struct ghp_sheet *sheet, const struct ghp_plan *plan, int layer,
                     const struct ghp_term *term)
{
    const struct ghp_alternative *other = ghp_inspect_second_best(plan, layer);
    double sum_s =
        term->forward_s + term->backward_s + term->reshard_s + term->reduce_s + term->update_s;
    char split[64], next[64] = "";

    ghp_split_format(plan->splits[layer], split, sizeof split);
    if (other != NULL) ghp_split_format(other->split, next, sizeof next);
    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, plan->model.layers[layer].name);
    ghp_sheet_text(sheet, split);
    ghp_sheet_real(sheet, term->forward_s);
    ghp_sheet_real(sheet, term->backward_s);
    ghp_sheet_real(sheet, term->reshard_s);
    ghp_sheet_real(sheet, term->reduce_s);
    ghp_sheet_real(sheet, term->exposed_s);
    ghp_sheet_real(sheet, term->update_s);
    ghp_sheet_real(sheet, sum_s);
    ghp_sheet_int(sheet, (int64_t)llround(term->sent_bytes));
    ghp_sheet_text(sheet, other != NULL ? next : NULL);
    ghp_sheet_real(sheet, other != NULL ? other->step_s - plan->predicted.step_s : NAN);
}

static void put_terms(struct ghp_display *report, const struct ghp_plan *plan,
                      const struct ghp_term *terms, int only)
{
    static const struct ghp_column columns[] = {
        {"layer", "layer", "", 't', 0, 0},
        {"split", "split", "", 't', 0, 0},
        {"forward_s", "forward", "ms", 'r', 1e3, 4},
        {"backward_s", "backward", "ms", 'r', 1e3, 4},
        {"reshard_s", "reshard", "ms", 'r', 1e3, 4},
        {"reduce_s", "reduce", "ms", 'r', 1e3, 4},
        {"exposed_s", "exposed", "ms", 'r', 1e3, 4},
        {"update_s", "update", "ms", 'r', 1e3, 4},
        {"sum_s", "sum", "ms", 'r', 1e3, 4},
        {"sent_bytes", "sent", "MiB", 'b', MIB, 3},
        {"runner_up", "second-best", "", 't', 0, 0},
        {"runner_up_costs_s", "costs", "ms/step", 'r', 1e3, 4},
        {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "layers", columns);

    ghp_sheet_note(sheet, "cost terms of each layer's split, each alone; the step is %.3f ms",
                   plan->predicted.step_s * 1e3);
    ghp_sheet_note(sheet, "reshard: layout changes on the way in, forward and backward, and batch "
                          "norms' sums; reduce: its "
                          "part of the gradient reduction, which overlaps; exposed: what "
                          "computation waits before the layer for it; not in the sum");
    if (plan->n_alternatives > 0)
        ghp_sheet_note(
            sheet,
            "second-best: the best other split of this layer, and what the step would cost more");
    for (int i = 0; i < plan->model.n_layers; i++)
        if (only < 0 || only == i) put_term(sheet, plan, i, &terms[i]);
    ghp_display_sheet(report, sheet);
}

/* The layouts of inputs that lie otherwise than the first: an attention's keys and values. */
static void put_whole_inputs(struct ghp_display *report, const struct ghp_plan *plan, int layer)
{
    const struct ghp_layer *l = &plan->model.layers[layer];
    struct ghp_layout first = ghp_split_layouts(plan->splits[layer]).x;

    for (int slot = 0; slot < l->n_inputs; slot++) {
        struct ghp_layouts at = ghp_split_layouts_at(l, slot, plan->splits[layer]);
        char x[64], dx[64];

        if (ghp_layout_same(at.x, first)) continue;
        ghp_layout_format(at.x, x, sizeof x);
        ghp_layout_format(at.dx, dx, sizeof dx);
        ghp_display_line(report, "it reads '%s' as %s; its gradient is %s",
                         plan->model.layers[l->inputs[slot]].name, x, dx);
    }
}

/* placement: of the stage that owns the layer. */
static void put_layouts(struct ghp_display *report, const struct ghp_plan *plan, int layer,
                        const struct ghp_placement *placement)
{
    struct ghp_layouts layouts = ghp_split_layouts(plan->splits[layer]);
    struct ghp_local local =
        ghp_local_of(&plan->model, layer, plan->splits[layer], placement->problem);
    char x[64], y[64], dy[64], dx[64], key[GHP_KEY_BYTES];

    ghp_layout_format(layouts.x, x, sizeof x);
    ghp_layout_format(layouts.y, y, sizeof y);
    ghp_layout_format(layouts.dy, dy, sizeof dy);
    ghp_layout_format(layouts.dx, dx, sizeof dx);
    ghp_local_key(&local, key);
    ghp_display_text(report, "local", key);
    ghp_display_line(report, "each worker computes %s; x %s -> y %s; dy %s -> dx %s", key, x, y, dy,
                     dx);
    put_whole_inputs(report, plan, layer);
}

/* "ranks 0, 2, .. 6" */
static const char *ranks_text(struct ghp_ranks ranks, char text[64])
{
    if (ranks.count <= 1)
        text[0] = '\0';
    else
        snprintf(text, 64, "%d of stride %d", ranks.count, ranks.stride);
    return text;
}

static void put_instrs(struct ghp_display *report, const struct ghp_program *program,
                       const struct ghp_timing *timing, int layer)
{
    static const struct ghp_column columns[] = {{"instruction", "instruction", "", 't', 0, 0},
                                                {"step", "step", "", 't', 0, 0},
                                                {"ranks", "ranks", "", 't', 0, 0},
                                                {"bytes", "bytes", "B", 'i', 0, 0},
                                                {"price_s", "alone", "ms", 'r', 1e3, 4},
                                                {"start_s", "start", "ms", 'r', 1e3, 4},
                                                {"finish_s", "finish", "ms", 'r', 1e3, 4},
                                                {"source", "source", "", 't', 0, 0},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "instructions", columns);
    char ranks[64];

    ghp_sheet_note(sheet, "instructions in the steady step of rank 0; alone: without slowdown");
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_instr_time *time = &timing->instrs[i];
        bool reshard = instr->kind == GHP_INSTR_RESHARD;

        if (instr->layer != layer) continue;
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, ghp_instr_name(instr));
        ghp_sheet_text(sheet, reshard           ? ghp_reshard_name(instr->step.op)
                              : instr->backward ? "backward"
                                                : "");
        ghp_sheet_text(sheet, ranks_text(instr->ranks, ranks));
        ghp_sheet_int(sheet, instr->bytes);
        ghp_sheet_real(sheet, time->cost.seconds);
        ghp_sheet_real(sheet, time->start_s);
        ghp_sheet_real(sheet, time->finish_s);
        ghp_sheet_text(sheet, ghp_source_name(time->cost.source));
    }
    ghp_display_sheet(report, sheet);
}

/* Why this plan and not data parallelism, and which instruction makes most of the error. */
static void put_head(struct ghp_display *report, const struct ghp_plan *plan,
                     const struct ghp_program *program, const struct ghp_timing *timing)
{
    const struct ghp_certificate *c = &plan->certificate;
    double square_s = timing->error_s * timing->error_s, most = 0;
    int worst = -1;

    ghp_display_real(report, "predicted_step_s", plan->predicted.step_s);
    ghp_display_real(report, "error_s",
                     plan->predicted.error_s > 0 ? plan->predicted.error_s : NAN);
    ghp_display_text(report, "margin", c->margin);
    ghp_display_text(report, "preferred", c->preferred);
    if (c->margin != NULL) ghp_display_line(report, "margin: %s", c->margin);
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_cost *cost = &timing->instrs[i].cost;
        double half_s = cost->spread * cost->seconds / 2;

        if (half_s <= most) continue;
        most = half_s;
        worst = i;
    }
    if (worst < 0) return;
    ghp_display_line(report,
                     "error of this plan's step: %.4f ms, %.0f %% of its square from '%s' of %s "
                     "(spread %.1f %%)",
                     timing->error_s * 1e3, 100 * most * most / square_s,
                     ghp_instr_name(&program->instrs[worst]),
                     program->instrs[worst].layer >= 0
                         ? plan->model.layers[program->instrs[worst].layer].name
                         : "the metrics",
                     100 * timing->instrs[worst].cost.spread);
}

/* What becomes of the step if worker 0 computes half as fast. */
static enum ghp_status put_slow_worker(struct ghp_display *report, const struct ghp_plan *plan)
{
    const struct ghp_stragglers one = {.n = 1, .of = {{.rank = 0, .factor = 2}}};
    struct ghp_lowering lowering = ghp_plan_lowering(plan, &plan->profile);
    struct ghp_prediction slowed;

    GHP_TRY(ghp_plan_predict_slowed(&lowering, plan->splits, &plan->profile, &one, &slowed));
    ghp_display_line(report,
                     "a slow worker: with worker 0 computing half as fast the step takes %.4f ms "
                     "(computing takes %.4f ms; ghp-plan --straggler)",
                     slowed.step_s * 1e3, plan->predicted.compute_s * 1e3);
    return GHP_OK;
}

/* All layers, each with the terms of its own stage; the program is the layer's, or that of the busiest stage. */
static enum ghp_status explain(struct ghp_display *report, const struct ghp_plan *plan, int layer,
                               const struct ghp_simulation *p)
{
    int stage = layer >= 0 ? ghp_stage_of(&plan->staging, layer) : p->busiest;
    const struct ghp_program *program = &p->programs.of[stage];
    const struct ghp_timing *timing = &p->timings[stage];
    struct ghp_term *terms = ghp_alloc((size_t)plan->model.n_layers, sizeof *terms);
    enum ghp_status status = GHP_OK;

    if (terms == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < p->programs.n; i++)
        ghp_terms_of(&p->programs.of[i], &p->timings[i], plan->model.n_layers, terms);
    put_head(report, plan, program, timing);
    put_terms(report, plan, terms, layer);
    if (layer >= 0) ghp_inspect_choices(report, plan, layer);
    ghp_inspect_break_even(report, plan, layer);
    if (layer < 0) ghp_inspect_crossovers(report, plan);
    if (layer < 0) status = put_slow_worker(report, plan);
    if (layer >= 0) {
        put_layouts(report, plan, layer, &program->placement);
        put_instrs(report, program, timing, layer);
    }
    free(terms);
    return status;
}

enum ghp_status ghp_inspect_explain(struct ghp_display *report, const struct ghp_plan *plan,
                                    const char *layer)
{
    int index = layer != NULL ? ghp_model_find(&plan->model, layer) : -1;
    struct ghp_simulation simulation;
    enum ghp_status status;

    if (layer != NULL && index < 0) return ghp_inspect_no_layer(&plan->model, layer);
    GHP_TRY(ghp_simulation_init(plan, &simulation));
    status = explain(report, plan, index, &simulation);
    ghp_simulation_release(&simulation);
    return status;
}
