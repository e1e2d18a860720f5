/* inspect/report/html.c - the page: its head and figures, the strategies next to each other, the certificate. */
#include "inspect/report/report_private.h"

#include "core/plan/staging_text.h"
#include "core/plan/range.h"

#include "core/base/hash.h"
#include "core/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MIB (1.0 / 1048576)

/* Bars longer than this many times the plan's step are cut, so that one bad strategy does not hide the others. */
static const double longest = 4;

void ghp_report_put_figure(struct ghp_page *page, const char *name, const char *value,
                           const char *more)
{
    ghp_page_add(page, "<div class=\"figure\"><dt>%s</dt><dd><b>%s</b><span>%s</span></dd></div>\n",
                 name, value, more);
}

void ghp_report_put_rate(struct ghp_page *page, double samples_per_s, const char *more)
{
    char value[32];

    snprintf(value, sizeof value, samples_per_s < 1000 ? "%.4g" : "%.0f", samples_per_s);
    ghp_report_put_figure(page, "samples a second", value, more);
}

static const struct ghp_prediction *data_of(const struct ghp_plan *plan)
{
    for (int i = 0; i < plan->n_baselines; i++)
        if (plan->baselines[i].feasible && plan->baselines[i].strategy == GHP_STRATEGY_DATA &&
            !plan->baselines[i].local_statistics)
            return &plan->baselines[i].predicted;
    return NULL;
}

static void put_step_figures(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    double step_s = plan->predicted.step_s;
    char value[64], more[192], range[GHP_RANGE_TEXT_SIZE];

    ghp_seconds_format(step_s, value, sizeof value);
    snprintf(more, sizeof more, "%.0f %% measured; range with 90 %%: %s",
             100 * plan->predicted.measured_share,
             ghp_range_format(ghp_prediction_range(&plan->predicted, &plan->profile), range));
    ghp_report_put_figure(page, "predicted step", value, more);
    if (report->measured_timings != NULL) {
        ghp_seconds_format(report->measured_step_s, value, sizeof value);
        snprintf(more, sizeof more, "prediction off by %+.1f %%",
                 100 * (step_s - report->measured_step_s) / report->measured_step_s);
        ghp_report_put_figure(page, "measured step", value, more);
    }
    ghp_report_put_rate(page, step_s > 0 ? (double)plan->problem.global_batch / step_s : 0,
                        "predicted");
    if (data_of(plan) != NULL && step_s > 0) {
        snprintf(value, sizeof value, "%.3g\xc3\x97", data_of(plan)->step_s / step_s);
        ghp_report_put_figure(page, "next to data parallelism", value, "as fast");
    }
}

static void put_figures(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    char value[64], more[128], limit[32];

    ghp_page_add(page, "<dl class=\"figures\">\n");
    put_step_figures(page, report);
    snprintf(value, sizeof value, "%d \xc3\x97 %d", plan->groups, plan->group_size);
    if (ghp_problem_sharers(plan->problem) > 1)
        snprintf(more, sizeof more, "a sample for each %d", ghp_problem_sharers(plan->problem));
    else
        snprintf(more, sizeof more, "%lld sample%s each",
                 (long long)(plan->problem.global_batch / plan->problem.workers),
                 ghp_plural(plan->problem.global_batch / plan->problem.workers));
    ghp_report_put_figure(page, "groups \xc3\x97 workers", value, more);
    ghp_bytes_format((double)plan->predicted.peak_bytes, value, sizeof value);
    snprintf(more, sizeof more, "%s%s", plan->memory_limit_bytes > 0 ? "limit " : "no limit",
             plan->memory_limit_bytes > 0
                 ? ghp_bytes_format((double)plan->memory_limit_bytes, limit, sizeof limit)
                 : "");
    ghp_report_put_figure(page, "memory a worker", value, more);
    ghp_bytes_format((double)plan->predicted.sent_bytes, value, sizeof value);
    ghp_report_put_figure(page, "sent in a step", value, "by a worker");
    if (plan->certificate.step_s > 0) {
        snprintf(value, sizeof value, "%.3g %%", 100 * plan->certificate.gap);
        ghp_report_put_figure(page, "gap to the bound", value, "from the optimum at most");
    }
    ghp_page_add(page, "</dl>\n");
}

static void put_head(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    char bucket[32];

    ghp_page_add(page, "<header><h1>");
    ghp_page_text(page, plan->model.name);
    ghp_page_add(page,
                 " on %d worker%s</h1>\n<p>Plan by strategy <b>%s</b>: %d group%s of %d, "
                 "global batch %lld; ",
                 plan->problem.workers, ghp_plural(plan->problem.workers),
                 ghp_strategy_name(plan->strategy), plan->groups, ghp_plural(plan->groups),
                 plan->group_size, (long long)plan->problem.global_batch);
    ghp_bytes_format((double)plan->method.bucket_bytes, bucket, sizeof bucket);
    ghp_page_add(page,
                 plan->method.bucket_bytes > 0 ? "gradients reduced together up to %s.</p>\n"
                                               : "each layer's gradient reduced alone.</p>\n",
                 bucket);
    if (plan->certificate.sync != NULL) {
        ghp_page_add(page, "<p>");
        ghp_page_text(page, plan->certificate.sync);
        ghp_page_add(page, ".</p>\n");
    }
    if (!ghp_staging_trivial(&plan->staging)) {
        char stages[512];

        ghp_page_add(page, "<p>Stages of a group: ");
        ghp_page_text(page,
                      ghp_staging_format(&plan->staging, &plan->model, stages, sizeof stages));
        ghp_page_add(page, ". What follows shows a worker of stage %d.</p>\n", report->stage);
    }
    if (plan->what_if.n > 0) {
        char overrides[1024];

        ghp_page_add(page, "<p><b>What if:</b> planned for an overridden machine or profile: ");
        ghp_page_text(page, ghp_overrides_format(&plan->what_if, overrides, sizeof overrides));
        ghp_page_add(page, "</p>\n");
    }
    put_figures(page, report);
    ghp_page_add(page, "</header>\n");
}

/* ---- strategies ---- */

struct bars {
    double own_s, most_s; /* the plan's step, and what a whole bar stands for */
    const struct ghp_profile *profile;
};

static struct bars bars_of(const struct ghp_plan *plan)
{
    struct bars bars = {.own_s = plan->predicted.step_s > 0 ? plan->predicted.step_s : 1,
                        .profile = &plan->profile};

    bars.most_s = bars.own_s;
    for (int i = 0; i < plan->n_baselines; i++)
        if (plan->baselines[i].feasible)
            bars.most_s = fmax(bars.most_s, plan->baselines[i].predicted.step_s);
    bars.most_s = fmin(bars.most_s, longest * bars.own_s);
    return bars;
}

/* One strategy: its bar (compute, then waiting) and its figures. */
static void put_strategy(struct ghp_page *page, const char *class, const struct ghp_prediction *p,
                         struct bars bars)
{
    struct ghp_step_range range = ghp_prediction_range(p, bars.profile);
    double scale = 100 / bars.most_s, shown_s = fmin(p->step_s, bars.most_s);
    double compute_s = fmin(fmax(p->step_s - p->exposed_s, 0), shown_s);
    char memory[32], sent[32], error[GHP_ERROR_TEXT_SIZE], text[GHP_RANGE_TEXT_SIZE];

    ghp_bytes_format((double)p->peak_bytes, memory, sizeof memory);
    ghp_bytes_format((double)p->sent_bytes, sent, sizeof sent);
    ghp_page_add(page,
                 "<div class=\"track %s%s\" aria-hidden=\"true\"><i class=\"busy\" "
                 "style=\"width:%.2f%%\"></i><i class=\"idle\" style=\"width:%.2f%%\"></i></div>",
                 class, p->step_s > shown_s ? " cut" : "", compute_s * scale,
                 (shown_s - compute_s) * scale);
    ghp_page_add(page, "<p><b>%.3f ms</b>", p->step_s * 1e3);
    if (p->error_s > 0) ghp_page_add(page, " \xc2\xb1 %s", ghp_prediction_error_format(p, error));
    if (!isnan(range.low_s)) ghp_page_add(page, ", with 90 %% %s", ghp_range_format(range, text));
    ghp_page_add(
        page,
        " (%.3g\xc3\x97 the plan) \xc2\xb7 compute and reshards %.3f \xc2\xb7 waiting %.3f "
        "\xc2\xb7 reductions %.3f \xc2\xb7 memory %s \xc2\xb7 sent %s</p></li>\n",
        p->step_s / bars.own_s, (p->step_s - p->exposed_s) * 1e3, p->exposed_s * 1e3,
        p->comm_s * 1e3, memory, sent);
}

static void put_strategy_name(struct ghp_page *page, enum ghp_strategy strategy)
{
    static const char *const names[GHP_STRATEGY_COUNT] = {
        [GHP_STRATEGY_AUTO] = "this plan, found by ghp",
        [GHP_STRATEGY_DATA] = "data: every layer by samples",
        [GHP_STRATEGY_MODEL] = "model: every layer divided among all",
        [GHP_STRATEGY_OWT] = "OWT: \xe2\x80\x9cone weird trick\xe2\x80\x9d, convolutions by data, "
                             "the rest divided",
        [GHP_STRATEGY_HEURISTIC] = "heuristic"};

    ghp_page_add(page, "%s", names[strategy]);
}

/* Whether a row of this baseline would say the plan's own once more: a plan of data parallelism is one of those that it
 * is compared with. */
static bool is_plan(const struct ghp_plan *plan, const struct ghp_baseline *b)
{
    const struct ghp_prediction *own = &plan->predicted, *other = &b->predicted;

    return b->feasible && b->strategy == GHP_STRATEGY_DATA && !b->local_statistics &&
           ghp_plan_is_data(plan) && own->peak_bytes == other->peak_bytes &&
           own->sent_bytes == other->sent_bytes && !(own->step_s < other->step_s) &&
           !(own->step_s > other->step_s);
}

static void put_strategies(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    struct bars bars = bars_of(plan);
    bool own = plan->strategy == GHP_STRATEGY_AUTO;

    ghp_page_add(page, "<section><h2>Next to other strategies</h2>\n<ul class=\"strategies\">\n"
                       "<li><h3>");
    if (own)
        put_strategy_name(page, GHP_STRATEGY_AUTO);
    else
        ghp_page_add(page, "this plan (%s)", ghp_strategy_name(plan->strategy));
    if (own && ghp_plan_is_data(plan)) ghp_page_add(page, ": every layer by samples (data)");
    ghp_page_add(page, "</h3>");
    put_strategy(page, "own", &plan->predicted, bars);
    for (int i = 0; i < plan->n_baselines; i++) {
        const struct ghp_baseline *b = &plan->baselines[i];
        char name[GHP_BASELINE_TEXT_SIZE];

        if (is_plan(plan, b)) continue;
        ghp_page_add(page, "<li><h3>");
        put_strategy_name(page, b->strategy);
        ghp_page_add(page, "</h3>");
        if (b->feasible) {
            if (b->sync.ops != NULL || b->recompute != NULL || b->local_statistics ||
                b->sharding != NULL)
                ghp_page_add(page, "<p>%s</p>", ghp_baseline_format(plan, b, name));
            put_strategy(page, "other", &b->predicted, bars);
            continue;
        }
        ghp_page_add(page, "<p>not possible: ");
        ghp_page_text(page, b->reason);
        ghp_page_add(page, "</p></li>\n");
    }
    ghp_page_add(page,
                 "</ul><ul class=\"legend\"><li><span class=\"dot busy\"></span>compute and "
                 "reshards</li><li><span class=\"dot idle\"></span>waiting for reductions</li>"
                 "<li>a bar is cut at %.0f times the plan's step</li></ul></section>\n",
                 longest);
}

/* ---- certificate and provenance ---- */

static void put_hash(struct ghp_page *page, const char *name, const char *path, uint64_t hash)
{
    char text[17];

    ghp_hash_text(hash, text);
    ghp_page_add(page, "<li><b>%s</b> ", name);
    ghp_page_text(page, path);
    ghp_page_add(page, " <code>%s</code></li>", text);
}

static void put_certificate(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    const struct ghp_certificate *c = &plan->certificate;
    char sentence[GHP_CERTIFICATE_SENTENCE_SIZE];

    ghp_page_add(page, "<section><h2>How good, and from what</h2>\n");
    if (c->step_s > 0) {
        ghp_page_add(page, "<p>Certificate: ");
        ghp_page_text(page, ghp_certificate_sentence(c, sentence));
        ghp_page_add(page, ". %lld plans were simulated and %lld nodes searched in %.3g s.</p>\n",
                     (long long)c->plans, (long long)c->nodes, c->seconds);
    } else {
        ghp_page_add(page,
                     "<p>The plan was given, not searched for: there is no certificate.</p>\n");
    }
    if (c->preferred != NULL) {
        ghp_page_add(page, "<p>Preferred: ");
        ghp_page_text(page, c->preferred);
        ghp_page_add(page, ".</p>\n");
    }
    ghp_page_add(page, "<ul class=\"facts\">");
    put_hash(page, "model", plan->model_path, plan->model_hash);
    put_hash(page, "profile", plan->profile_path, plan->profile_hash);
    put_hash(page, "machine", "", plan->machine_hash);
    ghp_page_add(page, "<li><b>costs from</b> ");
    ghp_page_text(page, plan->profile.backend);
    ghp_page_add(page, ", ");
    ghp_page_text(page, plan->profile.numerics);
    ghp_page_add(page, ", %s</li><li><b>measured</b> ",
                 ghp_precision_name(ghp_profile_precision(&plan->profile)));
    ghp_page_text(page, plan->profile.created);
    ghp_page_add(page, " on ");
    ghp_page_text(page, plan->profile.host);
    ghp_page_add(page, "</li></ul></section>\n");
}

/* ---- the page ---- */

static enum ghp_status put_sections(struct ghp_page *page, const void *of)
{
    const struct ghp_report *report = of;

    put_head(page, report);
    put_strategies(page, report);
    GHP_TRY(ghp_report_put_network(page, report));
    GHP_TRY(ghp_report_put_timeline(page, report));
    GHP_TRY(ghp_report_put_memory(page, report));
    ghp_report_put_machine(page, report);
    ghp_report_put_layers(page, report);
    ghp_report_put_limits(page, report);
    put_certificate(page, report);
    return GHP_OK;
}

static enum ghp_status put_title(struct ghp_page *page, const void *of)
{
    const struct ghp_report *report = of;

    ghp_page_text(page, report->plan->model.name);
    ghp_page_add(page, ", %d worker%s: plan", report->plan->problem.workers,
                 ghp_plural(report->plan->problem.workers));
    return GHP_OK;
}

/* What stands in place of a {{name}} of inspect/page/page.html. */
static enum ghp_status put_named(struct ghp_page *page, const struct ghp_report_document *document,
                                 const char *name, size_t n)
{
    static const struct {
        const char *name, *text;
    } texts[] = {{"version", GHP_VERSION}, {"style", ghp_report_css}, {"script", ghp_report_js}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strlen(texts[i].name) != n || strncmp(name, texts[i].name, n) != 0) continue;
        ghp_page_add(page, "%s", texts[i].text);
        return GHP_OK;
    }
    if (strncmp(name, "title}", n + 1) == 0) return document->put_title(page, document->of);
    if (strncmp(name, "sections}", n + 1) == 0) return document->put_sections(page, document->of);
    return GHP_FAIL(GHP_ERR_INTERNAL, "page.html has a placeholder '%.*s'; report this", (int)n,
                    name);
}

enum ghp_status ghp_report_save_document(const struct ghp_report_document *document,
                                         const char *path)
{
    struct ghp_page page = {0};
    enum ghp_status status = GHP_OK;
    const char *at = ghp_report_html, *open;

    for (; (open = strstr(at, "{{")) != NULL && status == GHP_OK; at = strstr(open, "}}") + 2) {
        ghp_page_add(&page, "%.*s", (int)(open - at), at);
        status = put_named(&page, document, open + 2, (size_t)(strstr(open, "}}") - open - 2));
    }
    ghp_page_add(&page, "%s", at);
    if (status == GHP_OK) status = ghp_page_save(&page, path);
    ghp_page_release(&page);
    return status;
}

enum ghp_status ghp_report_save_html(const struct ghp_report *report, const char *path)
{
    struct ghp_report_document document = {
        .of = report, .put_title = put_title, .put_sections = put_sections};

    return ghp_report_save_document(&document, path);
}
