/* inspect/summary.c - tables and the object of summary.h. */
#include "inspect/summary.h"

#include "core/base/file.h"
#include "core/base/table.h"
#include "core/base/units.h"
#include "core/cost/profile_peak.h"
#include "core/model/statistics.h"
#include "core/plan/plan_json.h"
#include "core/plan/range.h"
#include "core/plan/staging_text.h"
#include "core/plan/method_io.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void ghp_summary_splits(const struct ghp_model *model, const struct ghp_split *splits, char *text,
                        size_t n)
{
    size_t used = 0;

    text[0] = '\0';
    for (int v = 0; v < model->n_layers; v++) {
        char name[32];
        int count = 0;
        bool first = true;

        if (!ghp_op_is_weighted(model->layers[v].op)) continue;
        for (int u = 0; u < model->n_layers; u++) {
            if (!ghp_op_is_weighted(model->layers[u].op) || !ghp_split_same(splits[u], splits[v]))
                continue;
            first = first && u >= v;
            count++;
        }
        if (!first || used >= n) continue;
        ghp_split_format(splits[v], name, sizeof name);
        used +=
            (size_t)snprintf(text + used, n - used, "%s%s x%d", used > 0 ? ", " : "", name, count);
    }
}

static double images_per_s(const struct ghp_plan *plan, const struct ghp_prediction *p)
{
    return p->step_s > 0 ? (double)plan->problem.global_batch / p->step_s : 0;
}

/* ---- tables ---- */

/* Whether a table tells the errors of its rows, which nobody knows by a rule of thumb; and their ranges. */
static bool tells_errors(const struct ghp_plan *plan)
{
    return !ghp_profile_is_peak(&plan->profile);
}

static bool tells_ranges(const struct ghp_plan *plan)
{
    return !isnan(ghp_prediction_range(&plan->predicted, &plan->profile).low_s);
}

static void add_prediction(struct ghp_table *t, const struct ghp_plan *plan, const char *name,
                           const struct ghp_prediction *p)
{
    char memory[32], sent[32], error[GHP_ERROR_TEXT_SIZE], range[GHP_RANGE_TEXT_SIZE];
    int64_t tokens = ghp_model_tokens(&plan->model);

    ghp_table_row(t);
    ghp_table_cell(t, "%s", name);
    ghp_table_cell(t, "%.3f", 1e3 * p->step_s);
    if (tells_errors(plan)) ghp_table_cell(t, "%s", ghp_prediction_error_format(p, error));
    if (tells_ranges(plan))
        ghp_table_cell(t, "%s", ghp_range_format(ghp_prediction_range(p, &plan->profile), range));
    ghp_table_cell(t, "%.0f", 100 * p->measured_share);
    ghp_table_cell(t, "%.1f", images_per_s(plan, p));
    if (tokens > 0) ghp_table_cell(t, "%.0f", images_per_s(plan, p) * (double)tokens);
    ghp_table_cell(t, "%.3f", 1e3 * ghp_prediction_computing_s(p));
    ghp_table_cell(t, "%.3f", 1e3 * p->reshard_s);
    ghp_table_cell(t, "%.3f", 1e3 * p->exposed_s);
    ghp_table_cell(t, "%.3f", 1e3 * p->comm_s);
    ghp_table_cell(t, "%s", ghp_bytes_format((double)p->peak_bytes, memory, sizeof memory));
    ghp_table_cell(t, "%s", ghp_bytes_format((double)p->sent_bytes, sent, sizeof sent));
}

/* Whose samples the batch norms' statistics are of, unless they are of the whole batch. */
static void note_statistics(struct ghp_table *t, const struct ghp_model *model)
{
    const struct ghp_layer *norm = ghp_model_batch_norm(model);

    if (norm == NULL || ghp_model_has_global_statistics(model)) return;
    if (norm->norm.local_stats)
        ghp_table_note(t, "batch norms take the statistics of each worker's own samples");
    else if (norm->norm.ghost_batch > 0)
        ghp_table_note(t, "batch norms take the statistics of each %" PRId64 " samples",
                       norm->norm.ghost_batch);
}

/* How far the prediction may be off. */
static void note_error(struct ghp_table *t, const struct ghp_plan *plan)
{
    if (plan->predicted.error_s > 0)
        ghp_table_note(t, "%.0f %% of the predicted time was measured; error of the step %.3g ms",
                       100 * plan->predicted.measured_share, 1e3 * plan->predicted.error_s);
    else if (tells_errors(plan))
        ghp_table_note(
            t, "%.0f %% of the predicted time was measured; the error of the step is not known",
            100 * plan->predicted.measured_share);
    ghp_table_note(t,
                   "%scomputing, reshards and exposed add up to the step; reductions run next "
                   "to them",
                   tells_ranges(plan) ? "range: holds a measured step with 90 %; " : "");
}

/* Baselines that cannot be, and what is faster by computing something else. */
static void add_baseline_notes(struct ghp_table *t, const struct ghp_plan *plan)
{
    for (int b = 0; b < plan->n_baselines; b++) {
        const struct ghp_baseline *base = &plan->baselines[b];

        if (!base->feasible)
            ghp_table_note(t, "no %s plan: %s", ghp_strategy_name(base->strategy), base->reason);
        else if (base->local_statistics && base->predicted.step_s < plan->predicted.step_s)
            ghp_table_note(t,
                           "faster: data parallelism whose batch norms take each worker's own "
                           "statistics, as DDP's do, %.3f ms; plan with --batch-norm local",
                           1e3 * base->predicted.step_s);
    }
}

static void add_notes(struct ghp_table *t, const struct ghp_plan *plan)
{
    const struct ghp_certificate *c = &plan->certificate;
    char splits[512], sentence[GHP_CERTIFICATE_SENTENCE_SIZE];

    ghp_table_note(t, "%s, %d worker%s, global batch %" PRId64 ", profile %s (%s, %s)",
                   plan->model.name, plan->problem.workers, ghp_plural(plan->problem.workers),
                   plan->problem.global_batch, plan->profile_path, plan->profile.backend,
                   plan->profile.numerics);
    if (ghp_profile_is_peak(&plan->profile)) ghp_table_note(t, "%s", ghp_peak_sentence());
    ghp_summary_splits(&plan->model, plan->splits, splits, sizeof splits);
    ghp_table_note(t, "%d group%s of %d: %s", plan->groups, ghp_plural(plan->groups),
                   plan->group_size, splits);
    if (ghp_staging_format(&plan->staging, &plan->model, splits, sizeof splits)[0] != '\0')
        ghp_table_note(t, "stages of a group: %s", splits);
    if (ghp_shares_format(plan, splits, sizeof splits)[0] != '\0') ghp_table_note(t, "%s", splits);
    ghp_certificate_sentence(c, sentence);
    if (c->step_s > 0)
        ghp_table_note(t, "%s (%" PRId64 " plans simulated, %" PRId64 " search nodes, %.2f s)",
                       sentence, c->plans, c->nodes, c->seconds);
    else
        ghp_table_note(t, "%s", sentence);
    if (plan->method.bucket_bytes > 0)
        ghp_table_note(
            t, "gradients are reduced in buckets of %s",
            plan->method.bucket_bytes > (int64_t)1 << 40
                ? "any size"
                : ghp_bytes_format((double)plan->method.bucket_bytes, splits, sizeof splits));
    note_error(t, plan);
    if (plan->profile.n_ops == 0)
        ghp_table_note(
            t, "memory is without kernels' scratch, which an analytic profile does not know");
    if (plan->profile.disturbed > 0)
        ghp_table_note(t,
                       "the machine was disturbed while it was profiled: %.0f %% of the step are "
                       "doubtful, and in its error",
                       100 * plan->profile.disturbed);
    note_statistics(t, &plan->model);
    if (plan->method.shard_within > 0)
        ghp_table_note(t,
                       "parameters are sharded within groups of %d workers, and each group has all",
                       plan->method.shard_within);
    if (plan->method.reduces_bf16) ghp_table_note(t, "gradients travel in bfloat16");
    if (ghp_method_clips(&plan->method))
        ghp_table_note(t, "gradients are clipped to the norm %g", plan->method.clip_norm);
    if (plan->method.scaling != NULL)
        ghp_table_note(t, "learning rates by %s: %s", plan->method.scaling->name,
                       plan->method.scaling->purpose);
    if (ghp_optimizer_index(plan->method.optimizer) != GHP_OPTIMIZER_INDEX_sgd)
        ghp_table_note(t, "trained with the optimizer %s", plan->method.optimizer->name);
    if (c->sync != NULL) ghp_table_note(t, "%s", c->sync);
    if (c->unfinished != NULL) ghp_table_note(t, "unfinished: %s", c->unfinished);
    if (c->preferred != NULL) ghp_table_note(t, "preferred: %s", c->preferred);
    if (plan->what_if.n > 0)
        ghp_table_note(t, "what if: %s",
                       ghp_overrides_format(&plan->what_if, splits, sizeof splits));
    add_baseline_notes(t, plan);
}

/* The baselines of a strategy that the plan is not itself; of its own, those after the first, which are in other words
 * (local statistics, FSDP). */
static void add_baselines(struct ghp_table *t, const struct ghp_plan *plan,
                          enum ghp_strategy strategy)
{
    char name[GHP_BASELINE_TEXT_SIZE];

    for (int b = 0; b < plan->n_baselines; b++) {
        const struct ghp_baseline *base = &plan->baselines[b];
        bool again = b > 0 && base->strategy == plan->baselines[0].strategy;

        if (base->feasible && base->strategy == strategy && (strategy != plan->strategy || again))
            add_prediction(t, plan, ghp_baseline_format(plan, base, name), &base->predicted);
    }
}

static enum ghp_status print_comparison(const struct ghp_plan *plan, FILE *out)
{
    struct ghp_table *t = ghp_table_open();
    char name[GHP_BASELINE_TEXT_SIZE];
    bool tokens = ghp_model_tokens(&plan->model) > 0;
    enum ghp_status status;

    add_notes(t, plan);
    ghp_table_column(t, "plan", "", 'l');
    ghp_table_column(t, "step", "ms", 'r');
    if (tells_errors(plan)) ghp_table_column(t, "+-", "ms", 'r');
    if (tells_ranges(plan)) ghp_table_column(t, "range", "90 %", 'r');
    ghp_table_column(t, "measured", "%", 'r');
    ghp_table_column(t, tokens ? "samples/s" : "images/s", "1/s", 'r');
    if (tokens) ghp_table_column(t, "tokens/s", "1/s", 'r');
    ghp_table_column(t, "computing", "ms", 'r');
    ghp_table_column(t, "reshards", "ms", 'r');
    ghp_table_column(t, "exposed", "ms", 'r');
    ghp_table_column(t, "reduce", "ms", 'r');
    ghp_table_column(t, "memory", "a worker", 'r');
    ghp_table_column(t, "sent", "a worker", 'r');
    add_prediction(t, plan, ghp_baseline_format(plan, NULL, name), &plan->predicted);
    for (int s = 0; s < GHP_STRATEGY_COUNT; s++)
        add_baselines(t, plan, (enum ghp_strategy)s);
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

static const struct ghp_alternative *second_best(const struct ghp_plan *plan, int layer)
{
    for (int a = 0; a < plan->n_alternatives; a++)
        if (plan->alternatives[a].layer == layer) return &plan->alternatives[a];
    return NULL;
}

static enum ghp_status print_splits(const struct ghp_plan *plan, FILE *out)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    ghp_table_column(t, "layer", "", 'l');
    ghp_table_column(t, "op", "", 'l');
    ghp_table_column(t, "weights", "", 'r');
    ghp_table_column(t, "split", "", 'l');
    ghp_table_column(t, "second-best", "", 'l');
    ghp_table_column(t, "costs", "ms", 'r');
    for (int v = 0; v < plan->model.n_layers; v++) {
        const struct ghp_layer *layer = &plan->model.layers[v];
        const struct ghp_alternative *other = second_best(plan, v);
        char text[32];

        if (!ghp_layer_tells_splits(layer)) continue;
        ghp_table_row(t);
        ghp_table_cell(t, "%s", layer->name);
        ghp_table_cell(t, "%s", ghp_op_name(layer->op));
        ghp_table_cell(t, "%s",
                       ghp_count_format((double)ghp_layer_weights(layer), text, sizeof text));
        ghp_split_format(plan->splits[v], text, sizeof text);
        ghp_table_cell(t, "%s", text);
        if (other == NULL) continue;
        ghp_split_format(other->split, text, sizeof text);
        ghp_table_cell(t, "%s", text);
        ghp_table_cell(t, "%+.3f", 1e3 * (other->step_s - plan->predicted.step_s));
    }
    status = ghp_table_print(t, out);
    ghp_table_close(t);
    return status;
}

/* "the reshards, 16.500 ms of the step; computing takes 27.800 ms". A part below 0.5 % of the step is not told. */
static void print_parts(const struct ghp_prediction *p, FILE *out)
{
    double computing_s = ghp_prediction_computing_s(p);
    bool reshards = p->reshard_s >= 0.005 * p->step_s, waits = p->exposed_s >= 0.005 * p->step_s;

    if (p->comm_s > 0.995 * p->step_s && waits)
        fprintf(out, "the gradient reductions, %.3f ms; computation waits %.3f ms for them",
                1e3 * p->comm_s, 1e3 * p->exposed_s);
    else if (reshards && p->reshard_s > computing_s)
        fprintf(out, "the reshards, %.3f ms of the step; computing takes %.3f ms",
                1e3 * p->reshard_s, 1e3 * computing_s);
    else if (reshards)
        fprintf(out, "computation, %.3f ms, then %.3f ms of reshards", 1e3 * computing_s,
                1e3 * p->reshard_s);
    else
        fprintf(out, "computation");
    if (waits && !(p->comm_s > 0.995 * p->step_s))
        fprintf(out, ", then %.3f ms of waiting for reductions that nothing hides",
                1e3 * p->exposed_s);
    if (!waits && p->comm_s > 0)
        fprintf(out, "; reductions (%.3f ms) run while it computes", 1e3 * p->comm_s);
}

/* Whether a machine was measured without a collective: its links' speed is then what the profiler assumed or was
 * given. */
static bool assumes_links(const struct ghp_plan *plan)
{
    const struct ghp_profile *profile = &plan->profile;

    return plan->problem.workers > 1 && profile->workers > 0 && profile->n_comms == 0 &&
           !(profile->analytic.comm_spread > 0) && plan->what_if.n == 0;
}

static void print_assumed(const struct ghp_machine *machine, FILE *out)
{
    bool crosses = machine->nodes > 1;
    const char *link = crosses ? "inter" : "intra";

    fprintf(out,
            "# assumed: %.3g GB/s %s, as no collective was measured; all that is said of plans "
            "depends on it: profile with as many ranks as workers, or give --set "
            "%s.bandwidth_Bps=RATE\n",
            1e-9 * (crosses ? machine->inter : machine->intra).bandwidth_Bps,
            crosses ? "between nodes" : "between workers", link);
}

/* What to change to get a faster step. */
static enum ghp_status print_binding(const struct ghp_plan *plan, FILE *out)
{
    const struct ghp_prediction *p = &plan->predicted;
    char peak[32], limit[32];
    bool assumed = assumes_links(plan);

    fputs("# what binds: ", out);
    print_parts(p, out);
    fputs(assumed ? " (the links' seconds are assumed)\n" : "\n", out);
    if (plan->certificate.margin != NULL) fprintf(out, "# verdict: %s\n", plan->certificate.margin);
    if (assumed) print_assumed(&plan->profile.machine, out);
    if (plan->memory_limit_bytes > 0)
        fprintf(out, "# memory: %s of the %s allowed\n",
                ghp_bytes_format((double)p->peak_bytes, peak, sizeof peak),
                ghp_bytes_format((double)plan->memory_limit_bytes, limit, sizeof limit));
    return ghp_file_flush(out, "the table");
}

enum ghp_status ghp_summary_print(const struct ghp_plan *plan, FILE *out)
{
    GHP_TRY(print_comparison(plan, out));
    fputc('\n', out);
    GHP_TRY(print_splits(plan, out));
    return print_binding(plan, out);
}

/* ---- the object ---- */

static json_t *plan_object(const struct ghp_plan *plan, bool *failed)
{
    json_t *object = json_object();

    ghp_json_put(object, "model", json_string(plan->model.name), failed);
    ghp_json_put(object, "workers", json_integer(plan->problem.workers), failed);
    ghp_json_put(object, "global_batch", json_integer(plan->problem.global_batch), failed);
    ghp_json_put(object, "strategy", json_string(ghp_strategy_name(plan->strategy)), failed);
    ghp_json_put(object, "groups", json_integer(plan->groups), failed);
    ghp_json_put(object, "group_size", json_integer(plan->group_size), failed);
    ghp_method_write(&plan->method, object, failed);
    ghp_json_put(object, "memory_limit_bytes", json_integer(plan->memory_limit_bytes), failed);
    if (plan->what_if.n > 0)
        ghp_json_put(object, "what_if", ghp_overrides_json(&plan->what_if), failed);
    ghp_json_put(object, "images_per_s", json_real(images_per_s(plan, &plan->predicted)), failed);
    if (ghp_model_tokens(&plan->model) > 0)
        ghp_json_put(object, "tokens_per_s",
                     json_real(images_per_s(plan, &plan->predicted) *
                               (double)ghp_model_tokens(&plan->model)),
                     failed);
    ghp_plan_put_result(object, plan, failed);
    return object;
}

/* The ranges of the baselines, which a plan file does not have: they follow from its profile. */
static void put_ranges(json_t *object, const struct ghp_plan *plan, bool *failed)
{
    json_t *baselines = json_object_get(object, "baselines");

    ghp_range_put(object, ghp_prediction_range(&plan->predicted, &plan->profile), failed);
    for (int b = 0; b < plan->n_baselines; b++) {
        const struct ghp_baseline *base = &plan->baselines[b];

        if (base->feasible)
            ghp_range_put(json_array_get(baselines, (size_t)b),
                          ghp_prediction_range(&base->predicted, &plan->profile), failed);
    }
}

enum ghp_status ghp_summary_json(const struct ghp_plan *plan, json_t *options, FILE *out)
{
    bool failed = false;
    json_t *object = plan_object(plan, &failed);

    put_ranges(object, plan, &failed);
    if (ghp_profile_is_peak(&plan->profile))
        ghp_json_put(object, "rule_of_thumb", json_string(ghp_peak_sentence()), &failed);
    if (options != NULL) ghp_json_put(object, "options", options, &failed);
    return ghp_json_print_whole(object, failed, out);
}
