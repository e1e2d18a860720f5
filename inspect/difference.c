/* inspect/difference.c - two plans side by side: what differs, and what each difference costs.
 *
 * A difference is costed by applying it alone to the first plan. The differences' costs need not sum to that of all
 * together: two neighbours split alike save the exchange between them. A layer with weights and the layers that follow
 * it up to the next one count as one difference, as they change together. */
#include "inspect/inspect.h"

#include "core/base/units.h"
#include "core/plan/range.h"
#include "core/plan/method_io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct costing {
    const struct ghp_plan *a, *b;
    const struct ghp_profile *profile;
    double step_s; /* of the first plan by this profile */
};

static const struct ghp_column difference_columns[] = {
    {"difference", "difference", "", 't', 0, 0},
    {"first", "first", "", 't', 0, 0},
    {"second", "second", "", 't', 0, 0},
    {"predicted_step_s", "step with it", "ms", 'r', 1e3, 3},
    {"costs_s", "costs", "ms", 'r', 1e3, 3},
    {NULL, NULL, NULL, 0, 0, 0}};

/* Seconds of the first plan's step with other splits and another method; NAN if the profile has no cost for it. */
static double step_with(const struct costing *p, const struct ghp_split *splits,
                        struct ghp_method method)
{
    struct ghp_lowering lowering = ghp_plan_lowering(p->a, p->profile);
    struct ghp_prediction predicted;

    lowering.method = method;
    return ghp_plan_predict(&lowering, splits, p->profile, &predicted) == GHP_OK ? predicted.step_s
                                                                                 : NAN;
}

struct difference {
    const char *name, *first, *second;
    double step_s, costs_s; /* of the first plan with it, NAN: not costed; and what that is more */
};

static void put_difference(struct ghp_sheet *sheet, struct difference d)
{
    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, d.name);
    ghp_sheet_text(sheet, d.first);
    ghp_sheet_text(sheet, d.second);
    ghp_sheet_real(sheet, d.step_s);
    ghp_sheet_real(sheet, d.costs_s);
}

/* A difference that has no cost of its own. */
static void put_missing_costs(struct ghp_sheet *sheet, const char *name, const char *first,
                              const char *second)
{
    put_difference(sheet, (struct difference){name, first, second, NAN, NAN});
}

static void put_numbers(struct ghp_sheet *sheet, const char *name, int64_t first, int64_t second)
{
    char a[24], b[24];

    if (first == second) return;
    snprintf(a, sizeof a, "%lld", (long long)first);
    snprintf(b, sizeof b, "%lld", (long long)second);
    put_missing_costs(sheet, name, a, b);
}

/* One row for a weighted layer and its followers, layers first .. last, if any split differs. */
static void put_segment(struct ghp_sheet *sheet, const struct costing *p, int first, int last,
                        struct ghp_split *splits)
{
    const struct ghp_layer *layers = p->a->model.layers;
    size_t bytes = (size_t)p->a->model.n_layers * sizeof *splits;
    int from = -1, to = -1;
    char name[256], a[64], b[64];
    double step_s;

    memcpy(splits, p->a->splits, bytes);
    for (int i = first; i <= last; i++) {
        if (ghp_split_same(p->a->splits[i], p->b->splits[i])) continue;
        if (from < 0) from = i;
        to = i;
        splits[i] = p->b->splits[i];
    }
    if (from < 0) return;
    step_s = step_with(p, splits, p->a->method);
    snprintf(name, sizeof name, "%s%s%s", layers[from].name, from < to ? " .. " : "",
             from < to ? layers[to].name : "");
    ghp_split_format(p->a->splits[from], a, sizeof a);
    ghp_split_format(p->b->splits[from], b, sizeof b);
    put_difference(sheet, (struct difference){name, a, b, step_s, step_s - p->step_s});
}

static enum ghp_status put_splits(struct ghp_sheet *sheet, const struct costing *p)
{
    const struct ghp_model *model = &p->a->model;
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);

    if (splits == NULL) return GHP_NO_MEMORY();
    for (int first = 0, last; first < model->n_layers; first = last + 1) {
        for (last = first;
             last + 1 < model->n_layers && !ghp_op_is_weighted(model->layers[last + 1].op);)
            last++;
        put_segment(sheet, p, first, last, splits);
    }
    free(splits);
    return GHP_OK;
}

/* The rows for two plans of the same network, workers and batch. */
static enum ghp_status put_costed(struct ghp_sheet *sheet, const struct costing *p)
{
    const struct ghp_plan *a = p->a, *b = p->b;
    struct ghp_method_difference rows[GHP_METHOD_PARTS];
    int n = ghp_method_differences(&a->method, &b->method, rows);
    double step_s;

    for (int i = 0; i < n; i++) {
        step_s = step_with(p, a->splits, rows[i].with);
        put_difference(sheet, (struct difference){rows[i].what, rows[i].texts[0], rows[i].texts[1],
                                                  step_s, step_s - p->step_s});
    }
    GHP_TRY(put_splits(sheet, p));
    step_s = step_with(p, b->splits, b->method);
    put_difference(sheet,
                   (struct difference){"all of these", ghp_strategy_name(a->strategy),
                                       ghp_strategy_name(b->strategy), step_s, step_s - p->step_s});
    return GHP_OK;
}

static void put_prediction(struct ghp_sheet *sheet, const char *name, const struct ghp_plan *plan)
{
    const struct ghp_prediction *p = &plan->predicted;
    struct ghp_step_range range = ghp_prediction_range(p, &plan->profile);

    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, name);
    ghp_sheet_text(sheet, ghp_strategy_name(plan->strategy));
    ghp_sheet_real(sheet, p->step_s);
    ghp_sheet_real(sheet, range.low_s);
    ghp_sheet_real(sheet, range.high_s);
    ghp_sheet_real(sheet, p->step_s > 0 ? (double)plan->problem.global_batch / p->step_s : NAN);
    ghp_sheet_real(sheet, p->compute_s);
    ghp_sheet_real(sheet, p->reshard_s);
    ghp_sheet_real(sheet, p->comm_s);
    ghp_sheet_real(sheet, p->exposed_s);
    ghp_sheet_int(sheet, p->peak_bytes);
    ghp_sheet_int(sheet, p->sent_bytes);
}

static void put_predictions(struct ghp_display *report, const struct ghp_plan *a,
                            const struct ghp_plan *b)
{
    static const struct ghp_column columns[] = {
        {"plan", "plan", "", 't', 0, 0},
        {"strategy", "strategy", "", 't', 0, 0},
        {"predicted_step_s", "predicted", "ms", 'r', 1e3, 3},
        {"low_s", "from", "ms", 'r', 1e3, 3},
        {"high_s", "to", "ms", 'r', 1e3, 3},
        {"images_per_s", "speed", "samples/s", 'r', 0, 1},
        {"compute_s", "compute", "ms", 'r', 1e3, 3},
        {"reshard_s", "reshards", "ms", 'r', 1e3, 3},
        {"comm_s", "reduce", "ms", 'r', 1e3, 3},
        {"exposed_s", "exposed", "ms", 'r', 1e3, 3},
        {"peak_bytes", "memory", "MiB", 'b', 1.0 / 1048576, 2},
        {"sent_bytes", "sent", "MiB", 'b', 1.0 / 1048576, 3},
        {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "plans", columns);

    ghp_sheet_note(sheet, "what the two plans say; from, to: with 90 %%");
    put_prediction(sheet, "first", a);
    put_prediction(sheet, "second", b);
    ghp_display_sheet(report, sheet);
}

enum ghp_status ghp_inspect_difference(struct ghp_display *report, const struct ghp_plan *a,
                                       const struct ghp_plan *b, const struct ghp_profile *profile)
{
    bool same_task = a->model.hash == b->model.hash && a->problem.workers == b->problem.workers &&
                     a->problem.global_batch == b->problem.global_batch;
    struct costing p = {.a = a, .b = b, .profile = profile};
    enum ghp_status status = GHP_OK;
    struct ghp_sheet *sheet;

    put_predictions(report, a, b);
    p.step_s = step_with(&p, a->splits, a->method);
    sheet = ghp_sheet_open(report, "differences", difference_columns);
    ghp_sheet_note(sheet, "each difference alone, applied to the first plan; no number: its cost "
                          "is not in the profile");
    if (a->model.hash != b->model.hash)
        put_missing_costs(sheet, "network", a->model.name, b->model.name);
    if (a->profile_hash != b->profile_hash)
        put_missing_costs(sheet, "profile", a->profile_path, b->profile_path);
    if (a->machine_hash != b->machine_hash)
        put_missing_costs(sheet, "machine", a->profile.machine.name, b->profile.machine.name);
    put_numbers(sheet, "workers", a->problem.workers, b->problem.workers);
    put_numbers(sheet, "global batch", a->problem.global_batch, b->problem.global_batch);
    put_numbers(sheet, "groups", a->groups, b->groups);
    put_numbers(sheet, "memory limit [B]", a->memory_limit_bytes, b->memory_limit_bytes);
    if (same_task)
        status = put_costed(sheet, &p);
    else
        ghp_sheet_note(sheet,
                       "the plans are for different tasks, so their splits are not compared");
    ghp_display_sheet(report, sheet);
    return status;
}
