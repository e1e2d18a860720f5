/* bench/lab/report.c - ghp-lab-report: what bench/lab/accuracy measured, as tables.
 *
 *     error     of each plan in each cell: predicted / measured - 1
 *     summary   mean, 95th percentile and worst of its size, by number of workers and by kind of plan, and of short
 *               steps; rank correlation of predicted and measured steps (Spearman), mean over the cells
 *     regret    ghp's choice compared with the plan that measured best and with data parallelism, in turns of their
 *               own: median ratio of the step times and its interval of at least 95 % (ghp.comparison/2,
 *               interval_coverage)
 *
 * A cell is a folder CLUSTER/NETWORK with all.json and, once measured, pairs.json (both ghp.comparison/2).
 *
 * Tested  tests/tools/bench/test_accuracy.sh */
#include "core/base/array.h"
#include "core/base/json.h"
#include "core/base/opts.h"
#include "core/base/status.h"
#include "core/base/table.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 6, NAME_BYTES = 256, MOST_PLANS = 64, MOST_CELLS = 1000 };
static const char *const kinds[KINDS] = {"all", "auto", "data", "model", "owt", "given"};

struct entry { /* one plan of a comparison */
    const char *path, *strategy;
    double predicted_s, measured_s, spread, error, ratio, low, high;
    bool predicted, interval;
};

struct comparison {
    struct ghp_json doc;
    int64_t workers, batch;
    double foreign_share; /* -1: unknown */
    double speed_probe;   /* compute, relative to the profile's; 0: unknown */
    int n;
    struct entry entries[MOST_PLANS];
};

struct sample {              /* one plan of one cell */
    int group, kind;         /* of groups[] and kinds[] */
    double measured_s, size; /* size of the error */
};

struct report {
    struct ghp_table *errors, *regrets;
    struct sample *samples;
    int n_samples, most_samples;
    double correlations[2]; /* sums over the cells of two workers, of more */
    int correlated[2];      /* numbers of cells */
    int cells, over;        /* over: cells whose regret exceeds the limits */
};

static const char *const groups[2] = {"2", "more"};
static const double short_step_s = 0.01;

static const double best_limit = 1.03, data_limit = 1.02; /* of the interval's lower end */
static const double ms = 1e3, percent = 100;

static bool best_only;

static const struct ghp_opt options[] = {
    {.kind = GHP_OPT_HEADING, .help = "What to print"},
    {.name = "best",
     .kind = GHP_OPT_FLAG,
     .target = &best_only,
     .help = "of one comparison file: the plan that measured best, and nothing else"}};

static const struct ghp_tool tool = {
    .name = "ghp-lab-report",
    .purpose = "what bench/lab/accuracy measured: errors of predictions, and regret of choices",
    .usage = "ghp-lab-report CLUSTER/NETWORK...\n"
             "       ghp-lab-report --best COMPARISON",
    .opts = options,
    .n_opts = sizeof options / sizeof options[0],
    .example = "ghp-lab-report build/accuracy/*/*/",
};

/* ---- reading ---- */

static double number(json_t *o, const char *key, bool *there)
{
    json_t *value = json_object_get(o, key);

    if (there != NULL) *there = json_is_number(value);
    return json_number_value(value);
}

static enum ghp_status read_entry(const char *path, json_t *o, struct entry *e)
{
    *e = (struct entry){.path = json_string_value(json_object_get(o, "plan")),
                        .strategy = json_string_value(json_object_get(o, "strategy"))};
    if (e->path == NULL || e->strategy == NULL)
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: a plan has no name or strategy; measure it again",
                        path);
    e->predicted_s = number(o, "predicted_step_s", &e->predicted);
    e->measured_s = number(o, "measured_step_s", NULL);
    e->spread = number(o, "spread", NULL);
    e->error = number(o, "error", NULL);
    e->ratio = number(o, "ratio", NULL);
    e->low = number(o, "ratio_low", &e->interval);
    e->high = number(o, "ratio_high", NULL);
    if (!(e->measured_s > 0))
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: plan '%s' has no time; measure it again", path,
                        e->path);
    return GHP_OK;
}

static enum ghp_status read_comparison(const char *path, struct comparison *c)
{
    json_t *plans;
    bool known = false;

    *c = (struct comparison){0};
    GHP_TRY(ghp_json_load(path, "ghp.comparison/2", &c->doc));
    c->workers = json_integer_value(json_object_get(c->doc.root, "workers"));
    c->batch = json_integer_value(json_object_get(c->doc.root, "global_batch"));
    c->foreign_share = number(c->doc.root, "foreign_share", &known);
    if (!known) c->foreign_share = -1;
    c->speed_probe = number(json_object_get(c->doc.root, "speed_probe"), "compute", NULL);
    plans = json_object_get(c->doc.root, "plans");
    if (json_array_size(plans) < 1 || json_array_size(plans) > MOST_PLANS)
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: no plans, or more than %d; measure it again", path,
                        MOST_PLANS);
    for (size_t i = 0; i < json_array_size(plans); i++)
        GHP_TRY(read_entry(path, json_array_get(plans, i), &c->entries[c->n++]));
    return GHP_OK;
}

static const struct entry *best_of(const struct comparison *c)
{
    const struct entry *best = &c->entries[0];

    for (int i = 1; i < c->n; i++)
        if (c->entries[i].measured_s < best->measured_s) best = &c->entries[i];
    return best;
}

static const struct entry *find_strategy(const struct comparison *c, const char *strategy)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->entries[i].strategy, strategy) == 0) return &c->entries[i];
    return NULL;
}

/* ---- names ---- */

struct cell { /* .../CLUSTER/NETWORK */
    char folder[PATH_MAX], cluster[NAME_BYTES];
    const char *network;
};

static enum ghp_status name_cell(const char *path, struct cell *cell)
{
    size_t n = strlen(path);
    char *slash;

    while (n > 1 && path[n - 1] == '/')
        --n;
    if (n + 16 > sizeof cell->folder)
        return GHP_FAIL(GHP_ERR_USAGE, "the path '%s' is too long; use a shorter one", path);
    snprintf(cell->folder, sizeof cell->folder, "%.*s", (int)n, path);
    slash = strrchr(cell->folder, '/');
    if (slash == NULL || slash == cell->folder)
        return GHP_FAIL(GHP_ERR_USAGE, "'%s' is no cell; name folders CLUSTER/NETWORK", path);
    cell->network = slash + 1;
    *slash = '\0';
    snprintf(cell->cluster, sizeof cell->cluster, "%s",
             strrchr(cell->folder, '/') != NULL ? strrchr(cell->folder, '/') + 1 : cell->folder);
    *slash = '/';
    return GHP_OK;
}

/* "auto" of ".../auto.plan.json" */
static void plan_name(const char *path, char name[NAME_BYTES])
{
    const char *slash = strrchr(path, '/');
    char *dot;

    snprintf(name, NAME_BYTES, "%s", slash != NULL ? slash + 1 : path);
    dot = strstr(name, ".plan.json");
    if (dot != NULL) *dot = '\0';
}

/* ---- tables ---- */

static enum ghp_status note_error(struct report *r, const struct comparison *c,
                                  const struct entry *e)
{
    struct sample sample = {
        .group = c->workers > 2, .measured_s = e->measured_s, .size = fabs(e->error)};

    GHP_TRY_ROOM(r->samples, r->n_samples, r->most_samples);
    for (int k = 1; k < KINDS; k++)
        if (strcmp(kinds[k], e->strategy) == 0) sample.kind = k;
    r->samples[r->n_samples++] = sample;
    return GHP_OK;
}

/* How many of the cell's steps are shorter than this one, those as long counted half. */
static double rank_of(const struct comparison *c, const struct entry *e, bool measured)
{
    double rank = 0, own = measured ? e->measured_s : e->predicted_s;

    for (int i = 0; i < c->n; i++) {
        double other = measured ? c->entries[i].measured_s : c->entries[i].predicted_s;

        if (c->entries[i].predicted) rank += other < own ? 1 : other > own ? 0 : 0.5;
    }
    return rank;
}

/* Spearman's, of all plans of a cell; a cell of fewer than four, or of one rank alone, has none. */
static void note_correlation(struct report *r, const struct comparison *c)
{
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    int group = c->workers > 2;

    for (int i = 0; i < c->n; i++) {
        double predicted = rank_of(c, &c->entries[i], false),
               measured = rank_of(c, &c->entries[i], true);

        if (!c->entries[i].predicted) continue;
        n += 1;
        x += predicted;
        y += measured;
        xx += predicted * predicted;
        yy += measured * measured;
        xy += predicted * measured;
    }
    if (n < 4 || !((xx - x * x / n) * (yy - y * y / n) > 0)) return;
    r->correlations[group] += (xy - x * y / n) / sqrt((xx - x * x / n) * (yy - y * y / n));
    r->correlated[group] += 1;
}

static enum ghp_status put_errors(struct report *r, const struct cell *cell,
                                  const struct comparison *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct entry *e = &c->entries[i];
        char name[NAME_BYTES];

        if (!e->predicted) continue;
        GHP_TRY(note_error(r, c, e));
        plan_name(e->path, name);
        ghp_table_row(r->errors);
        ghp_table_cell(r->errors, "%s", cell->cluster);
        ghp_table_cell(r->errors, "%s", cell->network);
        ghp_table_cell(r->errors, "%lld", (long long)c->batch);
        ghp_table_cell(r->errors, "%s", name);
        ghp_table_cell(r->errors, "%.1f", ms * e->predicted_s);
        ghp_table_cell(r->errors, "%.1f", ms * e->measured_s);
        ghp_table_cell(r->errors, "%.1f", percent * e->spread);
        ghp_table_cell(r->errors, "%+.1f", percent * e->error);
        ghp_table_cell(r->errors, c->foreign_share < 0 ? "-" : "%.1f", percent * c->foreign_share);
        ghp_table_cell(r->errors, c->speed_probe > 0 ? "%.2f" : "-", c->speed_probe);
    }
    note_correlation(r, c);
    return GHP_OK;
}

/* ghp's step by another plan's, from the other's ratio to ghp's, which was the comparison's first. */
static void put_ratio(struct report *r, const struct entry *other, double limit, bool *over)
{
    if (other == NULL) {
        ghp_table_cell(r->regrets, "same");
        ghp_table_cell(r->regrets, "-");
        ghp_table_cell(r->regrets, "-");
        return;
    }
    ghp_table_cell(r->regrets, "%.3f", 1 / other->ratio);
    ghp_table_cell(r->regrets, other->interval ? "%.3f" : "-", 1 / other->high);
    ghp_table_cell(r->regrets, other->interval ? "%.3f" : "-", 1 / other->low);
    if (other->interval && 1 / other->high > limit) *over = true;
}

static void put_regret(struct report *r, const struct cell *cell, const struct comparison *c,
                       const struct comparison *all)
{
    const struct entry *best = best_of(all), *data = NULL, *second = NULL;
    char name[NAME_BYTES];
    bool over = false;

    for (int i = 1; i < c->n; i++) {
        if (strcmp(c->entries[i].strategy, "data") == 0) data = &c->entries[i];
        if (strcmp(c->entries[i].path, best->path) == 0) second = &c->entries[i];
    }
    plan_name(best->path, name);
    ghp_table_row(r->regrets);
    ghp_table_cell(r->regrets, "%s", cell->cluster);
    ghp_table_cell(r->regrets, "%s", cell->network);
    ghp_table_cell(r->regrets, "%s", name);
    put_ratio(r, second, best_limit, &over);
    put_ratio(r, data, data_limit, &over);
    ghp_table_cell(r->regrets, c->foreign_share < 0 ? "-" : "%.1f", percent * c->foreign_share);
    ghp_table_cell(r->regrets, "%s", over ? "over" : "");
    r->over += over;
}

static bool exists(const char *path)
{
    FILE *file = fopen(path, "r");

    if (file == NULL) return false;
    fclose(file);
    return true;
}

static enum ghp_status add_cell(struct report *r, const char *path)
{
    struct comparison *all = ghp_alloc(2, sizeof *all), *pairs = all + 1;
    struct cell cell;
    char file[PATH_MAX];
    enum ghp_status status = all != NULL ? GHP_OK : GHP_NO_MEMORY();

    GHP_TRY_GOTO(status, name_cell(path, &cell), done);
    snprintf(file, sizeof file, "%.4000s/all.json", cell.folder);
    if (!exists(file)) goto done; /* not measured yet */
    GHP_TRY_GOTO(status, read_comparison(file, all), done);
    GHP_TRY_GOTO(status, put_errors(r, &cell, all), done);
    r->cells += 1;
    snprintf(file, sizeof file, "%.4000s/pairs.json", cell.folder);
    if (!exists(file)) goto done;
    GHP_TRY_GOTO(status, read_comparison(file, pairs), done);
    if (find_strategy(pairs, "auto") != &pairs->entries[0])
        GHP_TRY_GOTO(
            status,
            GHP_FAIL(GHP_ERR_FORMAT, "%s: ghp's plan is not the first; measure it again", file),
            done);
    put_regret(r, &cell, pairs, all);
done:
    if (all != NULL) ghp_json_release(&all->doc);
    if (all != NULL) ghp_json_release(&pairs->doc);
    free(all);
    return status;
}

static void open_tables(struct report *r)
{
    static const char *const columns[][2] = {{"cluster", ""}, {"network", ""}};

    r->errors = ghp_table_open();
    r->regrets = ghp_table_open();
    for (int i = 0; i < 2; i++) {
        ghp_table_column(r->errors, columns[i][0], columns[i][1], 'l');
        ghp_table_column(r->regrets, columns[i][0], columns[i][1], 'l');
    }
    ghp_table_note(r->errors, "clusters: HOSTSxRANKS@RATE; measured: median over the turns; "
                              "others: other programs' part of the cores meanwhile; pace: a fixed "
                              "job's time by the same when the cluster was profiled");
    ghp_table_column(r->errors, "batch", "", 'r');
    ghp_table_column(r->errors, "plan", "", 'l');
    ghp_table_column(r->errors, "predicted", "ms", 'r');
    ghp_table_column(r->errors, "measured", "ms", 'r');
    ghp_table_column(r->errors, "spread", "%", 'r');
    ghp_table_column(r->errors, "error", "%", 'r');
    ghp_table_column(r->errors, "others", "%", 'r');
    ghp_table_column(r->errors, "speed_probe", "", 'r');
    ghp_table_note(
        r->regrets,
        "ghp's step by the best's, and by data parallelism's: median ratio and its 95 %% interval; "
        "over: the interval lies above %.2f or %.2f",
        best_limit, data_limit);
    ghp_table_column(r->regrets, "best", "", 'l');
    ghp_table_column(r->regrets, "by best", "", 'r');
    ghp_table_column(r->regrets, "low", "", 'r');
    ghp_table_column(r->regrets, "high", "", 'r');
    ghp_table_column(r->regrets, "by data", "", 'r');
    ghp_table_column(r->regrets, "low", "", 'r');
    ghp_table_column(r->regrets, "high", "", 'r');
    ghp_table_column(r->regrets, "others", "%", 'r');
    ghp_table_column(r->regrets, "", "", 'l');
}

static int by_size(const void *a, const void *b)
{
    const double x = ((const struct sample *)a)->size, y = ((const struct sample *)b)->size;

    return (x > y) - (x < y);
}

/* A line of those samples that are of the group and the kind (0: any), and at most so long; none, no line.
   The samples are in order of their errors' sizes. */
static void put_summary(struct ghp_table *t, const struct report *r, int group, int kind,
                        double at_most_s)
{
    double sum = 0, sizes[2] = {0}; /* 95th percentile, worst */
    int n = 0, seen = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < r->n_samples; i++) {
            const struct sample *s = &r->samples[i];

            if (s->group != group || (kind > 0 && s->kind != kind) || s->measured_s > at_most_s)
                continue;
            if (pass == 0) {
                n += 1;
                sum += s->size;
                sizes[1] = s->size;
            } else if (++seen == (int)ceil(0.95 * n))
                sizes[0] = s->size;
        }
    if (n == 0) return;
    ghp_table_row(t);
    ghp_table_cell(t, "%s", groups[group]);
    if (at_most_s < INFINITY)
        ghp_table_cell(t, "up to %.0f ms", ms * at_most_s);
    else
        ghp_table_cell(t, "%s",
                       strcmp(kinds[kind], "given") == 0  ? "by chance"
                       : strcmp(kinds[kind], "auto") == 0 ? "ghp"
                                                          : kinds[kind]);
    ghp_table_cell(t, "%d", n);
    ghp_table_cell(t, "%.1f", percent * sum / n);
    ghp_table_cell(t, "%.1f", percent * sizes[0]);
    ghp_table_cell(t, "%.1f", percent * sizes[1]);
    if (kind == 0 && at_most_s == INFINITY && r->correlated[group] > 0)
        ghp_table_cell(t, "%.3f", r->correlations[group] / r->correlated[group]);
    else
        ghp_table_cell(t, "-");
}

static enum ghp_status print_summary(const struct report *r)
{
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status;

    ghp_table_note(t,
                   "size of the error, %d cell(s); ranks: Spearman's correlation of predicted and "
                   "measured steps, "
                   "mean over the cells",
                   r->cells);
    ghp_table_column(t, "workers", "", 'l');
    ghp_table_column(t, "plans", "", 'l');
    ghp_table_column(t, "number", "", 'r');
    ghp_table_column(t, "mean", "%", 'r');
    ghp_table_column(t, "95th", "%", 'r');
    ghp_table_column(t, "worst", "%", 'r');
    ghp_table_column(t, "ranks", "", 'r');
    qsort(r->samples, (size_t)r->n_samples, sizeof r->samples[0], by_size);
    for (int group = 0; group < 2; group++) {
        for (int kind = 0; kind < KINDS; kind++)
            put_summary(t, r, group, kind, INFINITY);
        put_summary(t, r, group, 0, short_step_s);
    }
    status = ghp_table_print(t, stdout);
    ghp_table_close(t);
    return status;
}

static enum ghp_status print_report(int n, const char *const *cells)
{
    struct report r = {0};
    enum ghp_status status = GHP_OK;

    open_tables(&r);
    for (int i = 0; i < n; i++)
        GHP_TRY_GOTO(status, add_cell(&r, cells[i]), done);
    if (r.cells == 0)
        GHP_TRY_GOTO(
            status,
            GHP_FAIL(GHP_ERR_INPUT,
                     "none of the %d folder(s) holds all.json; measure with bench/lab/accuracy", n),
            done);
    GHP_TRY_GOTO(status, ghp_table_print(r.errors, stdout), done);
    printf("\n");
    GHP_TRY_GOTO(status, ghp_table_print(r.regrets, stdout), done);
    printf("\n");
    GHP_TRY_GOTO(status, print_summary(&r), done);
    printf("\n%d cell(s) with a regret over the limits\n", r.over);
done:
    free(r.samples);
    ghp_table_close(r.errors);
    ghp_table_close(r.regrets);
    return status;
}

static enum ghp_status print_best(const char *path)
{
    struct comparison *c = ghp_alloc(1, sizeof *c);
    enum ghp_status status = c != NULL ? read_comparison(path, c) : GHP_NO_MEMORY();

    if (status == GHP_OK) printf("%s\n", best_of(c)->path);
    if (c != NULL) ghp_json_release(&c->doc);
    free(c);
    return status;
}

static enum ghp_status run(int argc, char **argv)
{
    const char *cells[MOST_CELLS];
    int n = 0;

    GHP_TRY(ghp_opts_parse(&tool, argc, argv, cells, MOST_CELLS, &n));
    if (ghp_opts_done()) return GHP_OK;
    if (n == 0 || (best_only && n != 1))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "name folders CLUSTER/NETWORK that bench/lab/accuracy filled, "
                        "or with --best one comparison file");
    return best_only ? print_best(cells[0]) : print_report(n, cells);
}

int main(int argc, char **argv)
{
    enum ghp_status status = run(argc, argv);

    if (status != GHP_OK) fprintf(stderr, "ghp-lab-report: %s\n", ghp_status_message());
    return ghp_status_exit_code(status);
}
