/* planner/inspect_explain.c - why a plan costs what it costs: each layer's terms, its runner-up, its instructions. */
#include "planner/inspect.h"

#include "planner/terms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1.0 / 1048576)

static void put_term(struct ghp_sheet *sheet, const struct ghp_plan *plan, int layer,
                     const struct ghp_terms *term)
{
    const struct ghp_alternative *other = ghp_terms_runner_up(plan, layer);
    char split[64], next[64] = "";

    ghp_split_text(plan->splits[layer], split, sizeof split);
    if (other != NULL) ghp_split_text(other->split, next, sizeof next);
    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, plan->model.layers[layer].name);
    ghp_sheet_text(sheet, split);
    ghp_sheet_real(sheet, term->forward_s);
    ghp_sheet_real(sheet, term->backward_s);
    ghp_sheet_real(sheet, term->exchange_s);
    ghp_sheet_real(sheet, term->reduce_s);
    ghp_sheet_real(sheet, term->update_s);
    ghp_sheet_real(sheet, ghp_terms_sum(term));
    ghp_sheet_int(sheet, (int64_t)llround(term->sent_bytes));
    ghp_sheet_text(sheet, other != NULL ? next : NULL);
    ghp_sheet_real(sheet, other != NULL ? other->step_s - plan->predicted.step_s : NAN);
}

static void put_terms(struct ghp_display *report, const struct ghp_plan *plan,
                      const struct ghp_terms *terms, int only)
{
    static const struct ghp_column columns[] = {
        {"layer", "layer", "", 't', 0, 0},
        {"split", "split", "", 't', 0, 0},
        {"forward_s", "forward", "ms", 'r', 1e3, 4},
        {"backward_s", "backward", "ms", 'r', 1e3, 4},
        {"exchange_s", "exchange", "ms", 'r', 1e3, 4},
        {"reduce_s", "reduce", "ms", 'r', 1e3, 4},
        {"update_s", "update", "ms", 'r', 1e3, 4},
        {"sum_s", "sum", "ms", 'r', 1e3, 4},
        {"sent_bytes", "sent", "MiB", 'b', MIB, 3},
        {"runner_up", "runner-up", "", 't', 0, 0},
        {"runner_up_costs_s", "costs", "ms/step", 'r', 1e3, 4},
        {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "layers", columns);

    ghp_sheet_note(sheet, "cost terms of each layer's split, priced alone; the step is %.3f ms",
                   plan->predicted.step_s * 1e3);
    ghp_sheet_note(sheet, "exchange: layout changes on the way in, forward and backward, and batch "
                          "norms' sums; reduce: its "
                          "share of the gradient reduction, which overlaps");
    if (plan->n_alternatives > 0)
        ghp_sheet_note(
            sheet,
            "runner-up: the best other split of this layer, and what the step would cost more");
    for (int i = 0; i < plan->model.n_layers; ++i)
        if (only < 0 || only == i) put_term(sheet, plan, i, &terms[i]);
    ghp_display_sheet(report, sheet);
}

static void put_layouts(struct ghp_display *report, const struct ghp_plan *plan, int layer)
{
    struct ghp_layouts layouts = ghp_split_layouts(plan->splits[layer]);
    struct ghp_local local = ghp_local_of(&plan->model, layer, plan->splits[layer], plan->extent);
    char x[64], y[64], dy[64], dx[64], key[GHP_KEY_BYTES];

    ghp_layout_text(layouts.x, x, sizeof x);
    ghp_layout_text(layouts.y, y, sizeof y);
    ghp_layout_text(layouts.dy, dy, sizeof dy);
    ghp_layout_text(layouts.dx, dx, sizeof dx);
    ghp_local_key(&local, key);
    ghp_display_text(report, "local", key);
    ghp_display_line(report, "each worker computes %s; x %s -> y %s; dy %s -> dx %s", key, x, y, dy,
                     dx);
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
    for (int i = 0; i < program->n_instrs; ++i) {
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
        ghp_sheet_real(sheet, time->price.seconds);
        ghp_sheet_real(sheet, time->start_s);
        ghp_sheet_real(sheet, time->finish_s);
        ghp_sheet_text(sheet, ghp_source_name(time->price.source));
    }
    ghp_display_sheet(report, sheet);
}

static enum ghp_status explain(struct ghp_display *report, const struct ghp_plan *plan, int layer,
                               const struct ghp_program *program)
{
    struct ghp_terms *terms = ghp_alloc((size_t)plan->model.n_layers, sizeof *terms);
    enum ghp_status status = GHP_OK;
    struct ghp_timing timing = {0};

    if (terms == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, ghp_simulate(program, &plan->profile, &timing), out);
    ghp_terms_add(program, &timing, plan->model.n_layers, terms);
    ghp_display_real(report, "predicted_step_s", plan->predicted.step_s);
    put_terms(report, plan, terms, layer);
    if (layer >= 0) {
        put_layouts(report, plan, layer);
        put_instrs(report, program, &timing, layer);
    }
    ghp_timing_release(&timing);

out:
    free(terms);
    return status;
}

enum ghp_status ghp_inspect_explain(struct ghp_display *report, const struct ghp_plan *plan,
                                    const char *layer)
{
    struct ghp_lowering how = ghp_plan_lowering(plan, &plan->profile);
    int index = layer != NULL ? ghp_model_find(&plan->model, layer) : -1;
    struct ghp_program program;
    enum ghp_status status;

    if (layer != NULL && index < 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "model '%s' has no layer '%s'; see its layers with ghp-inspect --explain",
                        plan->model.name, layer);
    GHP_TRY(ghp_lower(&how, plan->splits, 0, &program));
    status = explain(report, plan, index, &program);
    ghp_program_release(&program);
    return status;
}
