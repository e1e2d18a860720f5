/* planner/sweep/sweep_show.c - a sweep as a table and as an object. */
#include "core/cost/profile_peak.h"
#include "planner/sweep/sweep.h"

#include "core/base/table.h"
#include "core/base/units.h"
#include "core/plan/plan_json.h"

#include <inttypes.h>
#include <string.h>

/* What speeds are told in: tokens of sequences, or images. */
static const char *speed_unit(const struct ghp_sweep *sweep)
{
    return sweep->tokens > 0 ? "tokens/s" : "images/s";
}

static double speed_of(const struct ghp_sweep *sweep, double samples_per_s)
{
    return sweep->tokens > 0 ? samples_per_s * (double)sweep->tokens : samples_per_s;
}

/* ---- table ---- */

static void add_notes(struct ghp_table *t, const struct ghp_sweep *sweep)
{
    if (sweep->weak)
        ghp_table_note(t, "%s, weak scaling: %" PRId64 " samples a worker, profile %s",
                       sweep->model, sweep->batch, sweep->profile);
    else
        ghp_table_note(t, "%s, strong scaling: global batch %" PRId64 ", profile %s", sweep->model,
                       sweep->batch, sweep->profile);
    if (sweep->by_rule_of_thumb) ghp_table_note(t, "%s", ghp_peak_sentence());
    if (sweep->what_if != NULL) ghp_table_note(t, "what if, at the last point: %s", sweep->what_if);
    if (sweep->one_images_per_s > 0)
        ghp_table_note(t, "speed-up over one worker's %.1f %s; efficiency: by the workers",
                       speed_of(sweep, sweep->one_images_per_s), speed_unit(sweep));
    else
        ghp_table_note(t, "no speed-up: the profile cannot cost one worker");
}

static void add_columns(struct ghp_table *t, const struct ghp_sweep *sweep)
{
    ghp_table_column(t, "workers", "", 'r');
    ghp_table_column(t, "nodes", "", 'r');
    ghp_table_column(t, "batch", "global", 'r');
    ghp_table_column(t, "plan", "", 'l');
    ghp_table_column(t, "step", "ms", 'r');
    ghp_table_column(t, "range", "90 %", 'r');
    ghp_table_column(t, speed_unit(sweep), "1/s", 'r');
    ghp_table_column(t, "speed-up", "x", 'r');
    ghp_table_column(t, "efficiency", "%", 'r');
    ghp_table_column(t, "measured", "%", 'r');
    ghp_table_column(t, "gap", "%", 'r');
    ghp_table_column(t, "planned", "s", 'r');
    ghp_table_column(t, "proof", "", 'l');
    ghp_table_column(t, "groups", "", 'l');
    ghp_table_column(t, "splits", "", 'l');
}

static void add_plan(struct ghp_table *t, const struct ghp_sweep *sweep,
                     const struct ghp_sweep_point *point, int k)
{
    const struct ghp_sweep_plan *plan = &point->plan[k];
    char range[GHP_RANGE_TEXT_SIZE];

    ghp_table_row(t);
    ghp_table_cell(t, "%d", point->workers);
    if (point->nodes > 0 && point->nodes <= point->workers)
        ghp_table_cell(t, "%d", point->nodes);
    else
        ghp_table_cell(t, "%s", point->nodes > 0 ? "own" : "-"); /* more nodes than workers */
    ghp_table_cell(t, "%" PRId64, point->batch);
    ghp_table_cell(t, "%s", ghp_strategy_show(ghp_sweep_strategy(k)));
    ghp_table_cell(t, "%.3f", 1e3 * plan->predicted.step_s);
    ghp_table_cell(t, "%s", ghp_range_format(plan->range, range));
    ghp_table_cell(t, "%.1f", speed_of(sweep, plan->images_per_s));
    ghp_table_cell(t, plan->speedup > 0 ? "%.2f" : "-", plan->speedup);
    ghp_table_cell(t, plan->speedup > 0 ? "%.1f" : "-", 100 * plan->efficiency);
    ghp_table_cell(t, "%.0f", 100 * plan->predicted.measured_share);
    if (k > 0) return;
    ghp_table_cell(t, "%.2f", 100 * point->gap);
    ghp_table_cell(t, "%.2f", point->seconds);
    ghp_table_cell(t, "%s", ghp_proof_name(point->proof));
    ghp_table_cell(t, "%d of %d", point->groups, point->group_size);
    ghp_table_cell(t, "%s", point->splits);
}

static void add_missing(struct ghp_table *t, const struct ghp_sweep_point *point, const char *name)
{
    ghp_table_row(t);
    ghp_table_cell(t, "%d", point->workers);
    ghp_table_cell(t, "-");
    ghp_table_cell(t, "%" PRId64, point->batch);
    ghp_table_cell(t, "%s", name);
    ghp_table_cell(t, "infeasible");
}

/* Reasons are sentences: they go above the table, each once for the points in a row that share it. */
static void add_reasons(struct ghp_table *t, const struct ghp_sweep *sweep)
{
    for (int i = 0; i < sweep->n; i++)
        for (int k = 0; k < GHP_SWEEP_PLANS; k++) {
            const struct ghp_sweep_plan *plan = &sweep->point[i].plan[k];

            if (plan->feasible || (k > 0 && !sweep->point[i].plan[0].feasible)) continue;
            ghp_table_note(t, "%d worker%s, %s: %s", sweep->point[i].workers,
                           ghp_plural(sweep->point[i].workers),
                           k == 0 ? "no plan" : ghp_strategy_show(ghp_sweep_strategy(k)),
                           plan->reason);
        }
}

enum ghp_status ghp_sweep_print(const struct ghp_sweep *sweep, FILE *out)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    add_notes(t, sweep);
    add_reasons(t, sweep);
    add_columns(t, sweep);
    for (int i = 0; i < sweep->n; i++) {
        const struct ghp_sweep_point *point = &sweep->point[i];

        if (!point->plan[0].feasible) {
            add_missing(t, point, "any");
            continue;
        }
        for (int k = 0; k < GHP_SWEEP_PLANS; k++)
            if (point->plan[k].feasible)
                add_plan(t, sweep, point, k);
            else
                add_missing(t, point, ghp_strategy_show(ghp_sweep_strategy(k)));
    }
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

/* ---- the object ---- */

static json_t *plan_object(const struct ghp_sweep_plan *plan, bool *failed)
{
    json_t *object;

    if (!plan->feasible) return json_pack("{s:b, s:s}", "feasible", 0, "reason", plan->reason);
    object =
        json_pack("{s:b, s:o, s:f, s:f, s:f}", "feasible", 1, "predicted",
                  ghp_plan_prediction_json(&plan->predicted), "images_per_s", plan->images_per_s,
                  "speedup", plan->speedup, "efficiency", plan->efficiency);
    ghp_range_put(object, plan->range, failed);
    return object;
}

static json_t *point_object(const struct ghp_sweep_point *point, bool *failed)
{
    json_t *object = json_pack("{s:i, s:I}", "workers", point->workers, "global_batch",
                               (json_int_t)point->batch);
    char status[GHP_CERTIFICATE_STATUS_SIZE];

    if (point->nodes > 0) ghp_json_put(object, "nodes", json_integer(point->nodes), failed);
    for (int k = 0; k < GHP_SWEEP_PLANS; k++)
        if (point->plan[k].feasible || point->plan[k].reason != NULL)
            ghp_json_put(object,
                         k == 0 ? ghp_strategy_show(GHP_STRATEGY_AUTO)
                                : ghp_strategy_name(ghp_sweep_strategy(k)),
                         plan_object(&point->plan[k], failed), failed);
    if (!point->plan[0].feasible) return object;
    ghp_json_put(object, "groups", json_integer(point->groups), failed);
    ghp_json_put(object, "group_size", json_integer(point->group_size), failed);
    ghp_json_put(object, "kind", json_string(point->splits), failed);
    ghp_json_put(object, "certificate",
                 json_pack("{s:s, s:f, s:f}", "status",
                           ghp_certificate_status(point->proof, point->trial, status), "gap",
                           point->gap, "search_s", point->seconds),
                 failed);
    return object;
}

enum ghp_status ghp_sweep_json(const struct ghp_sweep *sweep, json_t *options, FILE *out)
{
    json_t *object = json_object(), *points = json_array();
    bool failed = false;

    ghp_json_put(object, "model", json_string(sweep->model), &failed);
    ghp_json_put(object, "scaling", json_string(sweep->weak ? "weak" : "strong"), &failed);
    ghp_json_put(object, sweep->weak ? "batch_per_worker" : "global_batch",
                 json_integer(sweep->batch), &failed);
    ghp_json_put(object, "one_worker_images_per_s", json_real(sweep->one_images_per_s), &failed);
    if (sweep->by_rule_of_thumb)
        ghp_json_put(object, "rule_of_thumb", json_string(ghp_peak_sentence()), &failed);
    if (sweep->what_if != NULL)
        ghp_json_put(object, "what_if", json_string(sweep->what_if), &failed);
    for (int i = 0; i < sweep->n; i++)
        ghp_json_append(points, point_object(&sweep->point[i], &failed), &failed);
    ghp_json_put(object, "points", points, &failed);
    if (options != NULL) ghp_json_put(object, "options", options, &failed);
    return ghp_json_print_whole(object, failed, out);
}
