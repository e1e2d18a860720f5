/* inspect/prediction_error.c - where the error of a step sits: terms and layers of runs, largest first.
 *
 * Reads run files alone: what an instruction is stands there. On worker 0, so that terms sum to its step. */
#include "inspect/inspect.h"
#include "inspect/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256, MOST_LAYERS = 12, NAMED = 3 };

static const double most_of_it = 0.5; /* of the error: when to stop naming terms */

struct prediction_error_term {
    char name[NAME_BYTES];
    double predicted_s, measured_s;
    int64_t n; /* instructions, or runs */
};

struct prediction_error_terms {
    struct prediction_error_term *items;
    int n;
};

static double error_of(const struct prediction_error_term *term)
{
    return term->predicted_s - term->measured_s;
}

static int by_error(const void *a, const void *b)
{
    double x = fabs(error_of(a)), y = fabs(error_of(b));

    if (x != y) return x < y ? 1 : -1;
    return strcmp(((const struct prediction_error_term *)a)->name,
                  ((const struct prediction_error_term *)b)->name);
}

static void add_term(struct prediction_error_terms *terms, const char *name, double predicted_s,
                     double measured_s)
{
    struct prediction_error_term *term = terms->items;

    while (term < terms->items + terms->n && strcmp(term->name, name) != 0)
        term++;
    if (term == terms->items + terms->n) {
        *term = (struct prediction_error_term){0};
        snprintf(term->name, sizeof term->name, "%s", name);
        terms->n++;
    }
    term->predicted_s += predicted_s;
    term->measured_s += measured_s;
    term->n++;
}

/* ---- from instructions to terms ---- */

/* Factors of 16 from 4 KiB on: latency alone, both, bandwidth alone. */
static const char *byte_class(int64_t bytes)
{
    static const char *const names[] = {"to 4 KiB", "to 64 KiB", "to 1 MiB", "to 16 MiB",
                                        "beyond 16 MiB"};
    int64_t most = 4096;
    int i = 0;

    while (i < 4 && bytes > most) {
        most *= 16;
        i++;
    }
    return names[i];
}

static void name_of(const struct ghp_record_instr *instr, char name[NAME_BYTES])
{
    if (instr->key != NULL)
        snprintf(name, NAME_BYTES, "%.*s %s", (int)strcspn(instr->key, " "), instr->key,
                 instr->name);
    else if (instr->collective != NULL)
        snprintf(name, NAME_BYTES, "%s over %lld, %s", instr->collective, (long long)instr->ranks,
                 byte_class(instr->bytes));
    else
        snprintf(name, NAME_BYTES, "%s",
                 strcmp(instr->name, "reshard") == 0 ? "copy" : instr->name);
}

/* Instructions of the step itself; those of the communication stream go into `concurrent`. */
static void add_instrs(const struct ghp_record *r, struct prediction_error_terms *terms,
                       struct prediction_error_terms *concurrent)
{
    char name[NAME_BYTES];

    for (int i = 0; i < r->n_instrs; i++) {
        const struct ghp_record_instr *instr = &r->instrs[i];
        double own_s = fmin(instr->measured_own_s, instr->measured_s);

        if (instr->concurrent && instr->collective == NULL) continue; /* over one worker: nothing */
        name_of(instr, name);
        if (instr->collective == NULL) {
            add_term(terms, name, instr->predicted_s, instr->measured_s);
            continue;
        }
        add_term(instr->concurrent ? concurrent : terms, name, instr->predicted_s, own_s);
        add_term(instr->concurrent ? concurrent : terms, "waiting for stragglers", 0,
                 instr->measured_s - own_s);
    }
}

static void add_run(const struct ghp_record *r, struct prediction_error_terms *terms,
                    struct prediction_error_terms *concurrent,
                    struct prediction_error_terms *layers)
{
    char name[NAME_BYTES];

    add_instrs(r, terms, concurrent);
    add_term(terms, "waiting for reductions", r->predicted_exposed_s, r->measured_exposed_s);
    add_term(terms, "between instructions", r->predicted_launch_overhead_s,
             r->measured_launch_overhead_s);
    for (int i = 0; i < r->n_layers; i++) {
        snprintf(name, sizeof name, "%s", r->layers[i].name);
        add_term(layers, name, r->layers[i].predicted_s, r->layers[i].measured_s);
    }
}

/* ---- tables ---- */

static double sum_of_errors(const struct prediction_error_terms *terms)
{
    double sum = 0;

    for (int i = 0; i < terms->n; i++)
        sum += fabs(error_of(&terms->items[i]));
    return sum;
}

/* Rows of terms, largest error first; at most `most`. */
static void put_rows(struct ghp_sheet *sheet, const struct prediction_error_terms *terms, int most)
{
    double sum = sum_of_errors(terms), so_far = 0;

    for (int i = 0; i < terms->n && i < most; i++) {
        const struct prediction_error_term *term = &terms->items[i];
        double error_s = error_of(term);

        so_far += fabs(error_s);
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, term->name);
        ghp_sheet_int(sheet, term->n);
        ghp_sheet_real(sheet, term->predicted_s);
        ghp_sheet_real(sheet, term->measured_s);
        ghp_sheet_real(sheet, error_s);
        ghp_sheet_real(sheet, sum > 0 ? fabs(error_s) / sum : 0);
        ghp_sheet_real(sheet, sum > 0 ? so_far / sum : 0);
    }
}

static const struct ghp_column term_columns[] = {{"term", "term", "", 't', 0, 0},
                                                 {"instructions", "instructions", "", 'i', 0, 0},
                                                 {"predicted_s", "predicted", "ms", 'r', 1e3, 3},
                                                 {"measured_s", "measured", "ms", 'r', 1e3, 3},
                                                 {"error_s", "error", "ms", 'r', 1e3, 3},
                                                 {"share", "of the error", "%", 'r', 100, 1},
                                                 {"cumulative_share", "together", "%", 'r', 100, 1},
                                                 {NULL, NULL, NULL, 0, 0, 0}};

static const struct ghp_column layer_columns[] = {
    {"layer", "layer", "", 't', 0, 0},
    {"runs", "runs", "", 'i', 0, 0},
    {"predicted_s", "predicted", "ms", 'r', 1e3, 3},
    {"measured_s", "measured", "ms", 'r', 1e3, 3},
    {"error_s", "error", "ms", 'r', 1e3, 3},
    {"share", "of the error", "%", 'r', 100, 1},
    {"cumulative_share", "together", "%", 'r', 100, 1},
    {NULL, NULL, NULL, 0, 0, 0}};

static void put_steps(struct ghp_display *report, const struct ghp_record *records, int n)
{
    static const struct ghp_column columns[] = {
        {"run", "run", "", 't', 0, 0},
        {"model", "model", "", 't', 0, 0},
        {"strategy", "plan", "", 't', 0, 0},
        {"workers", "workers", "", 'i', 0, 0},
        {"predicted_step_s", "predicted", "ms", 'r', 1e3, 3},
        {"measured_step_s", "measured", "ms", 'r', 1e3, 3},
        {"error", "error", "%", 'r', 100, 1},
        {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "runs", columns);

    for (int i = 0; i < n; i++) {
        const struct ghp_record *r = &records[i];

        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, r->path);
        ghp_sheet_text(sheet, r->model);
        ghp_sheet_text(sheet, r->strategy);
        ghp_sheet_int(sheet, r->problem.workers);
        ghp_sheet_real(sheet, r->predicted_step_s);
        ghp_sheet_real(sheet, r->measured_step_s);
        ghp_sheet_real(sheet, (r->predicted_step_s - r->measured_step_s) / r->measured_step_s);
    }
    ghp_display_sheet(report, sheet);
}

static void put_tables(struct ghp_display *report, const struct prediction_error_terms *terms,
                       const struct prediction_error_terms *concurrent,
                       const struct prediction_error_terms *layers)
{
    struct ghp_sheet *sheet = ghp_sheet_open(report, "terms", term_columns);

    ghp_sheet_note(sheet, "terms of the step on worker 0, largest error first; of the error: by "
                          "absolute value");
    ghp_sheet_note(sheet,
                   "a collective's own seconds are those of its last rank to arrive, the rest "
                   "is waiting for stragglers");
    put_rows(sheet, terms, terms->n);
    ghp_display_sheet(report, sheet);
    if (concurrent->n > 0) {
        sheet = ghp_sheet_open(report, "reductions", term_columns);
        ghp_sheet_note(sheet, "concurrent with the step, on the communication stream");
        put_rows(sheet, concurrent, concurrent->n);
        ghp_display_sheet(report, sheet);
    }
    sheet = ghp_sheet_open(report, "error_layers", layer_columns);
    ghp_sheet_note(sheet, "layers, each with the layout changes before it and its waiting");
    put_rows(sheet, layers, MOST_LAYERS);
    ghp_display_sheet(report, sheet);
}

/* The names of the largest terms, until they hold most of the error; returns their fraction. */
static double name_largest(const struct prediction_error_terms *terms, char *text, size_t n)
{
    double sum = sum_of_errors(terms), so_far = 0;
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < terms->n && i < NAMED && so_far < most_of_it * sum; i++) {
        const struct prediction_error_term *term = &terms->items[i];

        so_far += fabs(error_of(term));
        used += (size_t)snprintf(text + used, n - used, "%s'%s' (%+.3f ms)", i > 0 ? ", " : "",
                                 term->name, 1e3 * error_of(term));
        if (used >= n) break;
    }
    return sum > 0 ? so_far / sum : 0;
}

static void put_sentence(struct ghp_display *report, const struct prediction_error_terms *terms,
                         const struct prediction_error_terms *layers, double predicted_s,
                         double measured_s)
{
    char where[NAMED * (NAME_BYTES + 32)], in[NAMED * (NAME_BYTES + 32)], text[1024];
    double fraction = name_largest(terms, where, sizeof where);

    name_largest(layers, in, sizeof in);
    snprintf(text, sizeof text,
             "step predicted %.3f ms, measured %.3f ms (%+.1f %%): %.0f %% of the error sits in "
             "%s; by layer, most in %s",
             1e3 * predicted_s, 1e3 * measured_s, 100 * (predicted_s - measured_s) / measured_s,
             100 * fraction, where, in);
    ghp_display_text(report, "where", text);
    ghp_display_line(report, "%s", text);
}

/* ---- runs ---- */

static enum ghp_status show(struct ghp_display *report, const struct ghp_record *records, int n)
{
    struct prediction_error_terms tables[3] = {{0}};
    struct prediction_error_terms *terms = &tables[0], *concurrent = &tables[1],
                                  *layers = &tables[2];
    double predicted_s = 0, measured_s = 0;
    enum ghp_status status = GHP_OK;
    size_t most = 4;

    for (int i = 0; i < n; i++)
        most += (size_t)records[i].n_instrs + (size_t)records[i].n_layers;
    for (int i = 0; i < 3; i++) {
        tables[i].items = ghp_alloc(most, sizeof *tables[i].items);
        if (tables[i].items == NULL) status = GHP_NO_MEMORY();
    }
    for (int i = 0; status == GHP_OK && i < n; i++) {
        add_run(&records[i], terms, concurrent, layers);
        predicted_s += records[i].predicted_step_s;
        measured_s += records[i].measured_step_s;
    }
    if (status == GHP_OK) {
        for (int i = 0; i < 3; i++)
            qsort(tables[i].items, (size_t)tables[i].n, sizeof *tables[i].items, by_error);
        if (n > 1) put_steps(report, records, n);
        put_tables(report, terms, concurrent, layers);
        put_sentence(report, terms, layers, predicted_s, measured_s);
    }
    for (int i = 0; i < 3; i++)
        free(tables[i].items);
    return status;
}

enum ghp_status ghp_inspect_prediction_error(struct ghp_display *report, const char *const *paths,
                                             int n)
{
    struct ghp_record *records = ghp_alloc((size_t)n, sizeof *records);
    enum ghp_status status = records != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int i = 0; status == GHP_OK && i < n; i++) {
        status = ghp_record_load(paths[i], &records[i]);
        if (status == GHP_OK && !isfinite(records[i].predicted_step_s))
            status = GHP_FAIL(GHP_ERR_INPUT,
                              "run '%s' has no prediction to compare with; train by a plan that "
                              "ghp-plan made by a profile",
                              paths[i]);
    }
    if (status == GHP_OK) status = show(report, records, n);
    for (int i = 0; records != NULL && i < n; i++)
        ghp_record_release(&records[i]);
    free(records);
    return status;
}
