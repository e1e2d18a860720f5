/* bench/runs/report.c - see report.h. */
#include "bench/runs/report.h"

#include "bench/runs/case.h"
#include "bench/runs/range.h"
#include "core/base/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double least_rate = 1e-3, most_rate = 1e3;

struct result {
    int family;
    bool said, smallest; /* said: it has a prediction */
    double measured_s, predicted_s, rate;
    double rule_s; /* by the rule of thumb, rate 1 */
    int devices;
    int64_t batch;
    char reason[GHP_RUN_REASON_SIZE];
};

struct report {
    struct ghp_run_rows rows;
    struct result *of; /* one a row, owned */
    const char *models;
    int families;
};

/* The network's kind: "GPT" of all its sizes. */
static bool same_network(const char *a, const char *b)
{
    size_t n = strcspn(a, " "), m = strcspn(b, " ");

    return n == m && strncmp(a, b, n) == 0;
}

/* The processor or GPU: what stands before how many there are. */
static bool same_device(const char *a, const char *b)
{
    size_t n = strcspn(a, ",;"), m = strcspn(b, ",;");

    return n == m && strncmp(a, b, n) == 0;
}

static bool same_family(const struct ghp_run_row *a, const struct ghp_run_row *b)
{
    static const enum ghp_column same[] = {GHP_COLUMN_SOURCE, GHP_COLUMN_SYSTEM, GHP_COLUMN_SPLIT,
                                           GHP_COLUMN_PRECISION};

    for (size_t c = 0; c < sizeof same / sizeof same[0]; c++)
        if (strcmp(a->text[same[c]], b->text[same[c]]) != 0) return false;
    return same_network(a->text[GHP_COLUMN_MODEL], b->text[GHP_COLUMN_MODEL]) &&
           same_device(a->text[GHP_COLUMN_DEVICE], b->text[GHP_COLUMN_DEVICE]);
}

static void find_families(struct report *r)
{
    for (int i = 0; i < r->rows.n; i++) {
        r->of[i].family = -1;
        for (int j = 0; j < i && r->of[i].family < 0; j++)
            if (same_family(&r->rows.of[i], &r->rows.of[j])) r->of[i].family = r->of[j].family;
        if (r->of[i].family < 0) r->of[i].family = r->families++;
    }
}

/* A row that cannot be costed has that as its reason, and the other rows are predicted all the same. */
static enum ghp_status keep_reason(enum ghp_status status, struct result *result)
{
    if (status == GHP_OK || status == GHP_ERR_IO || status == GHP_ERR_NO_MEMORY) return status;
    snprintf(result->reason, sizeof result->reason, "%s", ghp_status_message());
    return GHP_OK;
}

/* Opens the row's case for a look, or for its step with a rate. */
static enum ghp_status cost_row(struct report *r, int i, double rate, double *step_s)
{
    struct result *result = &r->of[i];
    struct ghp_run_case item;
    enum ghp_status status = ghp_run_case_open(&r->rows.of[i], r->models, &item);

    result->measured_s = item.measured_s;
    result->devices = item.devices;
    result->batch = item.lowering.problem.global_batch;
    if (status == GHP_OK && item.reason[0] == '\0' && rate > 0)
        status = ghp_run_case_step(&item, rate, step_s);
    if (status == GHP_OK) snprintf(result->reason, sizeof result->reason, "%s", item.reason);
    ghp_run_case_close(&item);
    return keep_reason(status, result);
}

/* The point at which the line through two points of a step over 1 / rate has the measured step, if that is inside the
 * range; else the range's middle. */
static double next_inverse(const double x[2], const double step_s[2], double measured_s, double low,
                           double high)
{
    double slope = (step_s[1] - step_s[0]) / (x[1] - x[0]);
    double next = x[1] + (measured_s - step_s[1]) / slope;

    return next > low && next < high ? next : sqrt(low * high);
}

/* The rate by which the row's step is the measured one: a step is nearly a line over 1 / rate. */
static enum ghp_status fit_row(struct report *r, int i)
{
    struct ghp_run_case item;
    double low = 1 / most_rate, high = 1 / least_rate, x[2] = {0, 1}, steps[2] = {0}, step_s = 0;
    enum ghp_status status = ghp_run_case_open(&r->rows.of[i], r->models, &item);

    while (status == GHP_OK && high / low > 1.0001) {
        status = ghp_run_case_step(&item, 1 / x[1], &step_s);
        steps[1] = step_s;
        if (fabs(step_s / item.measured_s - 1) < 1e-4) break;
        if (step_s < item.measured_s)
            low = x[1];
        else
            high = x[1];
        step_s = next_inverse(x, steps, item.measured_s, low, high);
        x[0] = x[1];
        steps[0] = steps[1];
        x[1] = step_s;
        step_s = steps[1];
    }
    r->of[i].rate = 1 / x[1];
    r->of[i].predicted_s = step_s;
    r->of[i].said = r->of[i].smallest = status == GHP_OK;
    if (status == GHP_OK && (x[1] <= 1.001 / most_rate || x[1] >= .999 / least_rate)) {
        snprintf(r->of[i].reason, sizeof r->of[i].reason, "no rate of computing gives its step");
        r->of[i].said = r->of[i].smallest = false;
    }
    ghp_run_case_close(&item);
    return keep_reason(status, &r->of[i]);
}

static bool is_smaller(const struct result *a, const struct result *b)
{
    return a->devices != b->devices ? a->devices < b->devices : a->batch < b->batch;
}

/* The family's smallest row that can be said; -1: there is none. */
static int smallest_of(const struct report *r, int family)
{
    int least = -1;

    for (int i = 0; i < r->rows.n; i++)
        if (r->of[i].family == family && r->of[i].reason[0] == '\0' &&
            (least < 0 || is_smaller(&r->of[i], &r->of[least])))
            least = i;
    return least;
}

static enum ghp_status predict_family(struct report *r, int family)
{
    int least;

    /* the smallest row whose step some rate gives */
    while ((least = smallest_of(r, family)) >= 0 && !r->of[least].said)
        GHP_TRY(fit_row(r, least));
    if (least < 0) return GHP_OK;
    GHP_TRY(cost_row(r, least, 1, &r->of[least].rule_s));
    for (int i = 0; i < r->rows.n && r->of[least].said; i++) {
        struct result *result = &r->of[i];

        if (result->family != family || i == least || result->reason[0] != '\0') continue;
        result->rate = r->of[least].rate;
        GHP_TRY(cost_row(r, i, result->rate, &result->predicted_s));
        GHP_TRY(cost_row(r, i, 1, &result->rule_s));
        result->said = result->reason[0] == '\0';
    }
    return GHP_OK;
}

/* ---- what is printed ---- */

static double error_of(const struct result *result)
{
    return 100 * (result->predicted_s / result->measured_s - 1);
}

/* Errors of what was predicted: the smallest rows gave the rate and do not count. */
struct errors {
    int n;
    double mean, worst;
    double
        rank; /* Spearman's correlation of predicted and measured steps; not of fewer than three rows */
};

static double rank_in(const struct report *r, int family, int i, bool measured)
{
    double rank = 0, own = measured ? r->of[i].measured_s : r->of[i].predicted_s;

    for (int j = 0; j < r->rows.n; j++) {
        const struct result *o = &r->of[j];
        double other = measured ? o->measured_s : o->predicted_s;

        if (!o->said || o->smallest || (family >= 0 && o->family != family) || j == i) continue;
        rank += other < own ? 1 : other > own ? 0 : 0.5; /* equal values share their ranks */
    }
    return rank;
}

static struct errors errors_of(const struct report *r, int family)
{
    struct errors e = {.rank = NAN};
    double mean, xy = 0, xx = 0, yy = 0;

    for (int i = 0; i < r->rows.n; i++) {
        const struct result *o = &r->of[i];

        if (!o->said || o->smallest || (family >= 0 && o->family != family)) continue;
        e.n++;
        e.mean += fabs(error_of(o));
        e.worst = fmax(e.worst, fabs(error_of(o)));
    }
    if (e.n > 0) e.mean /= e.n;
    mean = (e.n - 1) / 2.0;
    for (int i = 0; i < r->rows.n && e.n > 2; i++) {
        const struct result *o = &r->of[i];
        double x, y;

        if (!o->said || o->smallest || (family >= 0 && o->family != family)) continue;
        x = rank_in(r, family, i, true) - mean;
        y = rank_in(r, family, i, false) - mean;
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    if (xx > 0 && yy > 0) e.rank = xy / sqrt(xx * yy);
    return e;
}

/* "mean 7.5 % worst 42.4 %"; "-" for both if no row was predicted. */
static void print_errors(const struct errors *e)
{
    if (e->n > 0)
        printf("mean %.1f %% worst %.1f %%", e->mean, e->worst);
    else
        printf("mean - %% worst - %%");
}

static const char *format_rank(double rank, char text[16])
{
    snprintf(text, 16, isnan(rank) ? "-" : "%.3f", rank);
    return text;
}

static enum ghp_status finish_table(struct ghp_table *t)
{
    enum ghp_status status = ghp_table_print(t, stdout);

    if (status == GHP_OK) putchar('\n');
    ghp_table_close(t);
    return status;
}

static enum ghp_status print_family(const struct report *r, int family)
{
    struct ghp_table *t = ghp_table_open();
    int least = smallest_of(r, family);
    const struct ghp_run_row *row = &r->rows.of[least];
    int64_t tp, pp;

    ghp_table_note(t, "family %d: %s, %s, %s, %s, %s", family + 1, row->text[GHP_COLUMN_SOURCE],
                   row->text[GHP_COLUMN_SYSTEM], row->text[GHP_COLUMN_MODEL],
                   row->text[GHP_COLUMN_PRECISION], row->text[GHP_COLUMN_SPLIT]);
    ghp_table_note(t, "the rate is row %s's: %.2f of the rule of thumb", row->text[GHP_COLUMN_ID],
                   r->of[least].rate);
    ghp_table_column(t, "row", "", 'r');
    ghp_table_column(t, "model", "", 'l');
    ghp_table_column(t, "devices", "", 'r');
    ghp_table_column(t, "plan", "dp.tp.pp", 'r');
    ghp_table_column(t, "batch", "", 'r');
    ghp_table_column(t, "measured", "s", 'r');
    ghp_table_column(t, "predicted", "s", 'r');
    ghp_table_column(t, "error", "%", 'r');
    for (int i = 0; i < r->rows.n; i++) {
        const struct result *o = &r->of[i];

        if (o->family != family || !o->said) continue;
        row = &r->rows.of[i];
        tp = ghp_run_row_number(row, GHP_COLUMN_TP, 1);
        pp = ghp_run_row_number(row, GHP_COLUMN_PP, 1);
        ghp_table_row(t);
        ghp_table_cell(t, "%s", row->text[GHP_COLUMN_ID]);
        ghp_table_cell(t, "%s", row->text[GHP_COLUMN_MODEL]);
        ghp_table_cell(t, "%d", o->devices);
        ghp_table_cell(t, "%lld.%lld.%lld", (long long)(o->devices / (tp * pp)), (long long)tp,
                       (long long)pp);
        ghp_table_cell(t, "%lld", (long long)o->batch);
        ghp_table_cell(t, "%.4g", o->measured_s);
        ghp_table_cell(t, "%.4g", o->predicted_s);
        ghp_table_cell(t, o->smallest ? "rate" : "%+.1f", error_of(o));
    }
    return finish_table(t);
}

static enum ghp_status print_families(const struct report *r)
{
    struct ghp_table *t = ghp_table_open();
    char rank[16];

    ghp_table_note(t, "by family: rows predicted, without the one that gave the rate");
    ghp_table_column(t, "family", "", 'r');
    ghp_table_column(t, "network", "", 'l');
    ghp_table_column(t, "system", "", 'l');
    ghp_table_column(t, "rows", "", 'r');
    ghp_table_column(t, "mean", "%", 'r');
    ghp_table_column(t, "worst", "%", 'r');
    ghp_table_column(t, "rank", "", 'r');
    for (int f = 0; f < r->families; f++) {
        struct errors e = errors_of(r, f);
        int least = smallest_of(r, f);

        if (least < 0 || e.n == 0) continue;
        ghp_table_row(t);
        ghp_table_cell(t, "%d", f + 1);
        ghp_table_cell(t, "%.*s", (int)strcspn(r->rows.of[least].text[GHP_COLUMN_MODEL], " "),
                       r->rows.of[least].text[GHP_COLUMN_MODEL]);
        ghp_table_cell(t, "%s", r->rows.of[least].text[GHP_COLUMN_SYSTEM]);
        ghp_table_cell(t, "%d", e.n);
        ghp_table_cell(t, "%.1f", e.mean);
        ghp_table_cell(t, "%.1f", e.worst);
        ghp_table_cell(t, "%s", format_rank(e.rank, rank));
    }
    return finish_table(t);
}

static enum ghp_status print_unsaid(const struct report *r)
{
    struct ghp_table *t = ghp_table_open();

    ghp_table_note(t, "rows that ghp cannot say");
    ghp_table_column(t, "row", "", 'r');
    ghp_table_column(t, "model", "", 'l');
    ghp_table_column(t, "devices", "", 'r');
    ghp_table_column(t, "why", "", 'l');
    for (int i = 0; i < r->rows.n; i++) {
        if (r->of[i].reason[0] == '\0') continue;
        ghp_table_row(t);
        ghp_table_cell(t, "%s", r->rows.of[i].text[GHP_COLUMN_ID]);
        ghp_table_cell(t, "%s", r->rows.of[i].text[GHP_COLUMN_MODEL]);
        ghp_table_cell(t, "%s", r->rows.of[i].text[GHP_COLUMN_DEVICES]);
        ghp_table_cell(t, "%s", r->of[i].reason);
    }
    return finish_table(t);
}

/* How far steps lie from the rule of thumb alone, without a family's rate: the range of predictions that have none. */
static enum ghp_status print_range(const struct report *r)
{
    struct ghp_run_ratio *ratios = ghp_alloc((size_t)r->rows.n + 1, sizeof *ratios);
    double range[2];
    int n = 0, held;

    if (ratios == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < r->rows.n; i++)
        if (r->of[i].said && r->of[i].rule_s > 0)
            ratios[n++] =
                (struct ghp_run_ratio){r->of[i].family, r->of[i].measured_s / r->of[i].rule_s};
    if (n > 0) {
        held = ghp_run_range_holds(ratios, n, r->families);
        ghp_run_range(ratios, n, -1, range);
        printf("\n# by the rule of thumb alone, nine tenths of the steps, of each family as many, "
               "are %.2f "
               "to %.2f of the predicted\n",
               range[0], range[1]);
        if (held >= 0)
            printf("# %d of %d rows (%.0f %%) lie in the range of all other families\n", held, n,
                   100.0 * held / n);
        putchar('\n');
    }
    free(ratios);
    return GHP_OK;
}

static enum ghp_status print_report(const struct report *r)
{
    struct errors e = errors_of(r, -1);
    char rank[16];

    for (int f = 0; f < r->families; f++)
        if (smallest_of(r, f) >= 0) GHP_TRY(print_family(r, f));
    GHP_TRY(print_unsaid(r));
    GHP_TRY(print_families(r));
    GHP_TRY(print_range(r));
    printf("rows %d said %d ", r->rows.n, e.n);
    print_errors(&e);
    printf(" rank %s\n", format_rank(e.rank, rank));
    return GHP_OK;
}

enum ghp_status ghp_runs_report(const char *path, const char *models)
{
    struct report r = {.models = models};
    enum ghp_status status;

    GHP_TRY(ghp_run_rows_load(path, &r.rows));
    if (r.rows.n == 0) {
        ghp_run_rows_release(&r.rows);
        return GHP_FAIL(GHP_ERR_FORMAT, "%s has no rows after its first line; add one", path);
    }
    r.of = ghp_alloc((size_t)r.rows.n + 1, sizeof *r.of);
    status = r.of == NULL ? GHP_NO_MEMORY() : GHP_OK;
    if (status == GHP_OK) find_families(&r);
    for (int i = 0; i < r.rows.n && status == GHP_OK; i++)
        status = cost_row(&r, i, 0, NULL);
    for (int f = 0; f < r.families && status == GHP_OK; f++)
        status = predict_family(&r, f);
    if (status == GHP_OK) status = print_report(&r);
    free(r.of);
    ghp_run_rows_release(&r.rows);
    return status;
}
