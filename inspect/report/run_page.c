/* inspect/report/run_page.c - a run as a page: figures, the curve of its loss, where a step's time went, its layers.
 *
 * Everything comes from the run's file alone, so it can be drawn without the plan. A step over time is on the plan's
 * page (report/timeline.c). */
#include "inspect/report/report_private.h"

#include "core/base/units.h"
#include "inspect/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CURVE_WIDTH = 1000,
    CURVE_HEIGHT = 240,
    X_TICKS = 8,
    Y_TICKS = 5,
    MEANS = 50,
    TEXT_BYTES = 256
};

struct run_page {
    struct ghp_record record;
    struct ghp_node root;
    double *losses; /* owned; NAN: not finite */
    int64_t n_losses, every, first;
};

static double number_of(const struct run_page *run, const char *key)
{
    const json_t *value = json_object_get(run->root.value, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text_of(const struct run_page *run, const char *key)
{
    const char *text = json_string_value(json_object_get(run->root.value, key));

    return text != NULL ? text : "";
}

/* ---- the head ---- */

static void put_time_figures(struct ghp_page *page, const struct run_page *run)
{
    const struct ghp_record *r = &run->record;
    char value[64], more[TEXT_BYTES] = "";
    double tokens = number_of(run, "tokens_per_s");

    ghp_seconds_format(r->measured_step_s, value, sizeof value);
    ghp_report_put_figure(page, "measured step", value, "mean, after warming up");
    if (isfinite(r->predicted_step_s)) {
        ghp_seconds_format(r->predicted_step_s, value, sizeof value);
        snprintf(more, sizeof more, "off by %+.1f %%",
                 100 * (r->predicted_step_s - r->measured_step_s) / r->measured_step_s);
        ghp_report_put_figure(page, "predicted step", value, more);
    }
    if (tokens > 0) snprintf(more, sizeof more, "%.0f tokens a second", tokens);
    ghp_report_put_rate(page, number_of(run, "images_per_s"), tokens > 0 ? more : "of all workers");
    ghp_seconds_format(number_of(run, "measured_training_s"), value, sizeof value);
    snprintf(more, sizeof more, "%.0f steps", number_of(run, "steps"));
    ghp_report_put_figure(page, "training", value, more);
}

static void put_figures(struct ghp_page *page, const struct run_page *run)
{
    double accuracy = number_of(run, "test_accuracy"), memory = number_of(run, "allocated_bytes"),
           perplexity = number_of(run, "test_perplexity"),
           absolute = number_of(run, "test_absolute_error");
    char value[64], more[TEXT_BYTES];

    ghp_page_add(page, "<dl class=\"figures\">\n");
    put_time_figures(page, run);
    if (run->n_losses > 0) {
        snprintf(value, sizeof value, "%.4g", number_of(run, "final_loss"));
        snprintf(more, sizeof more, "from %.4g in the first step", run->losses[0]);
        ghp_report_put_figure(page, "last loss", value, more);
    }
    if (isfinite(accuracy)) {
        snprintf(value, sizeof value, "%.4g %%", 100 * accuracy);
        snprintf(more, sizeof more, "loss %.4g", number_of(run, "test_loss"));
        if (perplexity > 0) snprintf(more, sizeof more, "perplexity %.4g", perplexity);
        ghp_report_put_figure(page, "test accuracy", value, more);
    } else if (isfinite(absolute)) {
        snprintf(value, sizeof value, "%.4g", absolute);
        snprintf(more, sizeof more, "loss %.4g", number_of(run, "test_loss"));
        ghp_report_put_figure(page, "test absolute error", value, more);
    }
    if (isfinite(memory))
        ghp_report_put_figure(page, "memory a worker",
                              ghp_bytes_format(memory, value, sizeof value), "allocated");
    ghp_page_add(page, "</dl>\n");
}

static void put_head(struct ghp_page *page, const struct run_page *run)
{
    const struct ghp_record *r = &run->record;

    ghp_page_add(page, "<header><h1>");
    ghp_page_text(page, r->model);
    ghp_page_add(page, " trained on %d worker%s</h1>\n<p>Run of <b>", r->problem.workers,
                 ghp_plural(r->problem.workers));
    ghp_page_text(page, text_of(run, "plan"));
    ghp_page_add(page, "</b>, strategy ");
    ghp_page_text(page, r->strategy);
    ghp_page_add(page, ": %.0f group%s of %.0f, global batch %lld; backend ",
                 number_of(run, "groups"), number_of(run, "groups") > 1 ? "s" : "",
                 number_of(run, "group_size"), (long long)r->problem.global_batch);
    ghp_page_text(page, r->backend);
    ghp_page_add(page, ", %s, numerics ", ghp_precision_name(r->precision));
    ghp_page_text(page, r->numerics);
    ghp_page_add(page, ", %.0f thread%s a worker%s; data ", number_of(run, "threads"),
                 number_of(run, "threads") > 1 ? "s" : "",
                 json_is_true(json_object_get(run->root.value, "oversubscribed"))
                     ? ", which share cores"
                     : "");
    ghp_page_text(page, text_of(run, "data"));
    ghp_page_add(page, ".</p>\n");
    put_figures(page, run);
    ghp_page_add(page, "</header>\n");
}

/* ---- the loss ---- */

struct curve {
    double least, most; /* of the losses that are drawn */
    double step;        /* between marks */
};

static double x_of(const struct run_page *run, int64_t i)
{
    return run->n_losses > 1 ? (double)CURVE_WIDTH * (double)i / (double)(run->n_losses - 1) : 0;
}

static double y_of(const struct curve *curve, double loss)
{
    return CURVE_HEIGHT * (curve->most - loss) / (curve->most - curve->least);
}

static struct curve curve_of(const struct run_page *run)
{
    struct curve curve = {.least = 0, .most = 0};

    for (int64_t i = 0; i < run->n_losses; i++)
        if (isfinite(run->losses[i])) curve.most = fmax(curve.most, run->losses[i]);
    if (!(curve.most > 0)) curve.most = 1;
    curve.step = ghp_report_nice(curve.most, Y_TICKS);
    curve.most = curve.step * ceil(curve.most / curve.step * 1.001);
    return curve;
}

struct mean { /* of the finite ones among some losses */
    double sum;
    int64_t n;
};

static void put_in(struct mean *mean, double loss, int sign)
{
    if (!isfinite(loss)) return;
    mean->sum += sign * loss;
    mean->n += sign;
}

/* A line through the means over 2 half + 1 losses, interrupted if none is finite. */
static void put_line(struct ghp_page *page, const struct run_page *run, const struct curve *curve,
                     int64_t half)
{
    struct mean mean = {0, 0};
    int64_t from = 0, to = 0;
    bool drawn = false;

    ghp_page_add(page, "<path class=\"%s\" d=\"", half > 0 ? "smooth" : "each");
    for (int64_t i = 0; i < run->n_losses; i++) {
        for (; to < run->n_losses && to <= i + half; to++)
            put_in(&mean, run->losses[to], 1);
        for (; from < i - half; from++)
            put_in(&mean, run->losses[from], -1);
        if (mean.n > 0)
            ghp_page_add(page, "%s%.1f %.1f", drawn ? "L" : "M", x_of(run, i),
                         y_of(curve, mean.sum / (double)mean.n));
        drawn = mean.n > 0;
    }
    ghp_page_add(page, "\"/>");
}

static void put_marks(struct ghp_page *page, const struct run_page *run, const struct curve *curve)
{
    double last = (double)(run->n_losses - 1) * (double)run->every;
    double step = fmax(1, ghp_report_nice(last, X_TICKS));

    for (double y = 0; y < curve->most * 0.999; y += curve->step)
        ghp_page_add(page, "<span style=\"bottom:%.2f%%\">%.4g</span>", 100 * y / curve->most, y);
    ghp_page_add(page, "</div>\n<div class=\"axis\">");
    for (double x = 0; x <= last * 0.93; x += step)
        ghp_page_add(page, "<span style=\"left:%.2f%%\">%s%.0f</span>", 100 * x / last,
                     x > 0 ? "" : "step ", (double)run->first + x);
    ghp_page_add(page, "</div>\n");
}

static void put_losses(struct ghp_page *page, const struct run_page *run)
{
    struct curve curve = curve_of(run);
    int64_t half = run->n_losses / MEANS;

    if (run->n_losses < 2) return;
    ghp_page_add(page,
                 "<section><h2>Loss</h2>\n<div class=\"chart losses\"><svg viewBox=\"0 0 %d %d\" "
                 "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Loss from ",
                 CURVE_WIDTH, CURVE_HEIGHT);
    ghp_page_add(page, "%.4g to %.4g\">", run->losses[0], run->losses[run->n_losses - 1]);
    for (double y = curve.step; y < curve.most * 0.999; y += curve.step)
        ghp_page_add(page, "<path class=\"grid\" d=\"M0 %.1fH%d\"/>", y_of(&curve, y), CURVE_WIDTH);
    put_line(page, run, &curve, 0);
    if (half > 0) put_line(page, run, &curve, half);
    ghp_page_add(page, "</svg>");
    put_marks(page, run, &curve);
    ghp_page_add(page, "<p class=\"small\">The mean loss of each step's global batch");
    if (run->every > 1) ghp_page_add(page, ", of one step in %lld", (long long)run->every);
    ghp_page_add(page, ".%s</p></section>\n",
                 half > 0 ? " The strong line is their mean over a fiftieth of the run to either "
                            "side."
                          : "");
}

/* ---- where the time went ---- */

/* Two bars and their figures, as parts of the longest. predicted_s may be NAN. */
static void put_bars(struct ghp_page *page, double predicted_s, double measured_s, double most_s)
{
    double scale = most_s > 0 ? 100 / most_s : 0;

    if (isfinite(predicted_s))
        ghp_page_add(page, "<td>%.3f</td><td>%.3f</td><td class=\"odd\">%+.3f</td>",
                     predicted_s * 1e3, measured_s * 1e3, (predicted_s - measured_s) * 1e3);
    else
        ghp_page_add(page, "<td>\xc2\xb7</td><td>%.3f</td><td class=\"odd\">\xc2\xb7</td>",
                     measured_s * 1e3);
    ghp_page_add(
        page,
        "<td class=\"both\" aria-hidden=\"true\"><i class=\"other\" style=\"width:%.2f%%\"></i>"
        "<i class=\"own\" style=\"width:%.2f%%\"></i></td></tr>\n",
        isfinite(predicted_s) ? fmax(0, predicted_s) * scale : 0, fmax(0, measured_s) * scale);
}

static void put_table(struct ghp_page *page, const char *what, const char *second)
{
    ghp_page_add(
        page,
        "<ul class=\"legend\"><li><span class=\"dot predicted\"></span>predicted</li><li>"
        "<span class=\"dot busy\"></span>measured, on worker 0</li></ul><div class=\"scroll "
        "tall\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table class=\"layers "
        "run\"><caption>"
        "Predicted and measured</caption><thead><tr><th scope=\"col\">%s</th>%s<th "
        "scope=\"col\">predicted<br/>ms</th><th scope=\"col\">measured<br/>ms</th><th "
        "scope=\"col\" class=\"odd\">error<br/>ms</th><th "
        "class=\"both\"></th></tr></thead><tbody>\n",
        what, what, second);
}

static double seconds_of(const json_t *item, const char *key)
{
    const json_t *value = json_object_get(item, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* A phase's name in words: "backward_data" as "backward data". */
static void put_phase(struct ghp_page *page, const char *name)
{
    char words[64];

    snprintf(words, sizeof words, "%s", name != NULL ? name : "");
    for (char *c = words; *c != '\0'; c++)
        if (*c == '_') *c = ' ';
    ghp_page_text(page, words);
}

static void put_phases(struct ghp_page *page, const struct run_page *run)
{
    json_t *phases = json_object_get(run->root.value, "phases"), *item;
    double most_s = 0;
    size_t i;

    json_array_foreach(phases, i, item) most_s =
        fmax(most_s, fmax(seconds_of(item, "predicted_s"), seconds_of(item, "measured_s")));
    ghp_page_add(page, "<section><h2>Where a step's time went</h2>\n");
    put_table(page, "phase", "");
    json_array_foreach(phases, i, item)
    {
        ghp_page_add(page, "<tr><th scope=\"row\">");
        put_phase(page, json_string_value(json_object_get(item, "phase")));
        ghp_page_add(page, "</th>");
        put_bars(page, seconds_of(item, "predicted_s"), seconds_of(item, "measured_s"), most_s);
    }
    ghp_page_add(page,
                 "</tbody></table></div><p class=\"small\">The phases are the compute stream's. "
                 "Exposed: it waits for a reduction. Launch overhead: between two "
                 "instructions.</p></section>\n");
}

static void put_layers(struct ghp_page *page, const struct run_page *run)
{
    const struct ghp_record *r = &run->record;
    double most_s = 0;

    for (int i = 0; i < r->n_layers; i++)
        most_s = fmax(most_s, fmax(r->layers[i].predicted_s, r->layers[i].measured_s));
    ghp_page_add(page, "<section><h2>Layers</h2>\n");
    put_table(page, "layer", "<th scope=\"col\" class=\"word\">split</th>");
    for (int i = 0; i < r->n_layers; i++) {
        const struct ghp_record_layer *layer = &r->layers[i];
        char split[64];

        ghp_split_format(layer->split, split, sizeof split);
        ghp_page_add(page, "<tr><th scope=\"row\">");
        ghp_page_text(page, layer->name);
        ghp_page_add(page, "</th><td class=\"word\"><span class=\"tag %s\">%s</span></td>",
                     ghp_split_kind_name(layer->split.kind), split);
        put_bars(page, layer->predicted_s, layer->measured_s, most_s);
    }
    ghp_page_add(page, "</tbody></table></div></section>\n");
}

/* ---- the page ---- */

static void put_origin(struct ghp_page *page, const struct run_page *run)
{
    static const char *const keys[] = {"model_hash", "profile_hash", "program_hash",
                                       "weights_hash"};

    ghp_page_add(page, "<section><h2>From what</h2>\n<ul class=\"facts\"><li><b>file</b> ");
    ghp_page_text(page, run->record.path);
    ghp_page_add(page, "</li><li><b>seed</b> %.0f</li>", number_of(run, "seed"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (text_of(run, keys[i])[0] == '\0') continue;
        ghp_page_add(page, "<li><b>%.*s</b> <code>", (int)strcspn(keys[i], "_"), keys[i]);
        ghp_page_text(page, text_of(run, keys[i]));
        ghp_page_add(page, "</code></li>");
    }
    ghp_page_add(page,
                 "</ul><p class=\"small\">A step over time: ghp-inspect PLAN --html FILE --run RUN."
                 "</p></section>\n");
}

static enum ghp_status put_sections(struct ghp_page *page, const void *of)
{
    const struct run_page *run = of;

    put_head(page, run);
    put_losses(page, run);
    put_phases(page, run);
    put_layers(page, run);
    put_origin(page, run);
    return GHP_OK;
}

static enum ghp_status put_title(struct ghp_page *page, const void *of)
{
    const struct run_page *run = of;

    ghp_page_text(page, run->record.model);
    ghp_page_add(page, ", %d worker%s: run", run->record.problem.workers,
                 ghp_plural(run->record.problem.workers));
    return GHP_OK;
}

static enum ghp_status read_losses(struct run_page *run)
{
    struct ghp_node list, item;
    size_t n = 0;

    run->every = 1;
    GHP_TRY(ghp_json_opt_int(&run->root, "losses_every", 1, INT64_MAX, &run->every));
    GHP_TRY(ghp_json_int(&run->root, "first_step", 0, INT64_MAX, &run->first));
    GHP_TRY(ghp_json_array(&run->root, "losses", &list, &n));
    run->losses = ghp_alloc(n, sizeof *run->losses);
    if (run->losses == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&list, i, &item));
        if (!json_is_number(item.value) && !json_is_null(item.value))
            return ghp_json_fail(&item, GHP_ERR_FORMAT,
                                 "this is not a loss; leave the file as ghp-run --run wrote it");
        run->losses[i] = json_is_null(item.value) ? NAN : json_number_value(item.value);
    }
    run->n_losses = (int64_t)n;
    return GHP_OK;
}

enum ghp_status ghp_report_save_run(const char *run_path, const char *path)
{
    struct run_page run = {.losses = NULL};
    struct ghp_report_document document = {
        .of = &run, .put_title = put_title, .put_sections = put_sections};
    enum ghp_status status;

    GHP_TRY(ghp_record_load(run_path, &run.record));
    run.root = ghp_json_root(&run.record.doc);
    status = read_losses(&run);
    if (status == GHP_OK) status = ghp_report_save_document(&document, path);
    free(run.losses);
    ghp_record_release(&run.record);
    return status;
}
