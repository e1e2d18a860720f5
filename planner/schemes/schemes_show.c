/* planner/schemes/schemes_show.c - schemes as a table and as an object. */
#include "planner/schemes/schemes.h"

#include "core/base/file.h"
#include "core/base/table.h"
#include "core/base/units.h"
#include "core/plan/plan_json.h"

#include <inttypes.h>
#include <string.h>

static double samples_per_s(const struct ghp_schemes *s, const struct ghp_prediction *p)
{
    return p->step_s > 0 ? (double)s->problem.global_batch / p->step_s : 0;
}

/* ---- table ---- */

/* Reasons are sentences: they go above the table, each once for the rows in turn that share it. */
static void add_reasons(struct ghp_table *t, const struct ghp_schemes *s)
{
    const char *last = "";

    for (int i = 0; i < s->n; i++) {
        char sync[GHP_SYNC_TEXT_BYTES];

        if (s->of[i].reason == NULL || strcmp(s->of[i].reason, last) == 0) continue;
        last = s->of[i].reason;
        ghp_sync_format(s->of[i].sync, sync);
        ghp_table_note(t, "no %s, %s: %s", sync, ghp_strategy_show(s->of[i].strategy), last);
    }
}

static void add_notes(struct ghp_table *t, const struct ghp_schemes *s)
{
    char slow[GHP_STRAGGLERS_TEXT_BYTES];

    ghp_table_note(t, "%s, %d worker%s, global batch %" PRId64 ", profile %s", s->model,
                   s->problem.workers, ghp_plural(s->problem.workers), s->problem.global_batch,
                   s->profile);
    ghp_table_note(t, "sent, waiting and memory are a worker's; staleness: steps of others that "
                      "weights lack, at most and in the mean");
    if (s->all)
        ghp_table_note(t,
                       "stale weights may want more steps for the same accuracy, which no column "
                       "tells");
    if (s->stragglers.n > 0)
        ghp_table_note(t, "slowed: %s", ghp_stragglers_format(&s->stragglers, slow));
    add_reasons(t, s);
}

static void add_columns(struct ghp_table *t, const struct ghp_schemes *s)
{
    ghp_table_column(t, "sync", "", 'l');
    ghp_table_column(t, "plan", "", 'l');
    ghp_table_column(t, "step", "ms", 'r');
    ghp_table_column(t, "samples/s", "1/s", 'r');
    ghp_table_column(t, "sent", "a step", 'r');
    ghp_table_column(t, "waiting", "ms", 'r');
    ghp_table_column(t, "stale", "most", 'r');
    ghp_table_column(t, "stale", "mean", 'r');
    ghp_table_column(t, "memory", "", 'r');
    if (s->stragglers.n > 0) {
        ghp_table_column(t, "slowed", "ms", 'r');
        ghp_table_column(t, "slowed", "samples/s", 'r');
    }
    ghp_table_column(t, "", "", 'l');
}

/* Below 0: none bounds it, or it depends on the training. */
static void add_staleness(struct ghp_table *t, double steps)
{
    if (steps < 0)
        ghp_table_cell(t, "-");
    else
        ghp_table_cell(t, "%g", steps);
}

static void add_scheme(struct ghp_table *t, const struct ghp_schemes *s,
                       const struct ghp_scheme *scheme)
{
    const struct ghp_prediction *p = &scheme->predicted;
    char text[32], sync[GHP_SYNC_TEXT_BYTES];

    ghp_sync_format(scheme->sync, sync);
    ghp_table_row(t);
    ghp_table_cell(t, "%s", sync);
    ghp_table_cell(t, "%s", ghp_strategy_show(scheme->strategy));
    if (scheme->reason != NULL) {
        ghp_table_cell(t, "refused");
        return;
    }
    ghp_table_cell(t, "%.3f", 1e3 * p->step_s);
    ghp_table_cell(t, "%.1f", samples_per_s(s, p));
    ghp_table_cell(t, "%s", ghp_bytes_format((double)p->sent_bytes, text, sizeof text));
    ghp_table_cell(t, "%.3f", 1e3 * p->exposed_s);
    add_staleness(t, ghp_sync_staleness(scheme->sync));
    add_staleness(t, ghp_sync_mean_staleness(scheme->sync, s->problem.workers));
    ghp_table_cell(t, "%s", ghp_bytes_format((double)p->peak_bytes, text, sizeof text));
    if (s->stragglers.n > 0) {
        ghp_table_cell(t, "%.3f", 1e3 * scheme->slowed.step_s);
        ghp_table_cell(t, "%.1f", samples_per_s(s, &scheme->slowed));
    }
    if (scheme->chosen) ghp_table_cell(t, "chosen");
}

/* Prints where the plan is: the table is about many, but only one is written. */
static enum ghp_status print_where(const char *path, FILE *out)
{
    if (path != NULL)
        fprintf(out, "# %s has the plan chosen; --sync NAME makes another\n", path);
    else
        fprintf(out, "# no plan was written: -o PLAN writes the one chosen, --sync NAME -o PLAN "
                     "another\n");
    return ghp_file_flush(out, "the table");
}

enum ghp_status ghp_schemes_print(const struct ghp_schemes *schemes, const char *path, FILE *out)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    if (!schemes->all) fputc('\n', out); /* the plan's summary is above */
    add_notes(t, schemes);
    add_columns(t, schemes);
    for (int i = 0; i < schemes->n; i++)
        add_scheme(t, schemes, &schemes->of[i]);
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status == GHP_OK && schemes->all ? print_where(path, out) : status;
}

/* ---- the object ---- */

/* Without what nothing bounds, or what depends on the training. */
static json_t *staleness_object(struct ghp_sync sync, int workers)
{
    int most = ghp_sync_staleness(sync);
    double mean = ghp_sync_mean_staleness(sync, workers);

    return json_pack("{s:o?, s:o?}", "max", most >= 0 ? json_integer(most) : json_null(), "mean",
                     mean >= 0 ? json_real(mean) : json_null());
}

static json_t *scheme_object(const struct ghp_schemes *s, const struct ghp_scheme *scheme,
                             bool *failed)
{
    char sync[GHP_SYNC_TEXT_BYTES];
    json_t *object;

    ghp_sync_format(scheme->sync, sync);
    object = json_pack("{s:s, s:s, s:b}", "sync", sync, "strategy",
                       ghp_strategy_name(scheme->strategy), "feasible", scheme->reason == NULL);
    if (scheme->reason != NULL) {
        ghp_json_put(object, "reason", json_string(scheme->reason), failed);
        return object;
    }
    ghp_json_put(object, "chosen", json_boolean(scheme->chosen), failed);
    ghp_json_put(object, "predicted", ghp_plan_prediction_json(&scheme->predicted), failed);
    ghp_json_put(object, "samples_per_s", json_real(samples_per_s(s, &scheme->predicted)), failed);
    ghp_json_put(object, "staleness", staleness_object(scheme->sync, s->problem.workers), failed);
    if (s->stragglers.n > 0)
        ghp_json_put(object, "slowed",
                     json_pack("{s:f, s:f}", "predicted_step_s", scheme->slowed.step_s,
                               "samples_per_s", samples_per_s(s, &scheme->slowed)),
                     failed);
    return object;
}

enum ghp_status ghp_schemes_json(const struct ghp_schemes *schemes, json_t *options, FILE *out)
{
    json_t *object = json_object(), *rows = json_array();
    bool failed = false;

    ghp_json_put(object, "model", json_string(schemes->model), &failed);
    ghp_json_put(object, "workers", json_integer(schemes->problem.workers), &failed);
    ghp_json_put(object, "global_batch", json_integer(schemes->problem.global_batch), &failed);
    for (int i = 0; i < schemes->n; i++)
        ghp_json_append(rows, scheme_object(schemes, &schemes->of[i], &failed), &failed);
    ghp_json_put(object, "schemes", rows, &failed);
    if (options != NULL) ghp_json_put(object, "options", options, &failed);
    return ghp_json_print_whole(object, failed, out);
}
