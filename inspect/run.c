/* inspect/run.c - the tables of a file of ghp-run, whatever lists of records it holds.
 *
 * A run file is one object: single values, and lists of records. Each list becomes a table whose columns are the
 * records' keys; the unit in a key's ending heads its column. If a record has predicted_s and measured_s but no error,
 * the error is added. */
#include "inspect/inspect.h"

#include "core/base/table.h"
#include "inspect/record.h"

#include <stdio.h>
#include <string.h>

enum { MAX_COLUMNS = 32 };

/* How values of keys with an ending are shown. */
struct ending {
    const char *text, *unit;
    double scale;
    int digits;
};

static const struct ending endings[] = {
    {"images_per_s", "1/s", 1, 1},
    {"tokens_per_s", "1/s", 1, 0},
    {"_per_s", "1/s", 1, 3},
    {"_s", "ms", 1e3, 3},
    {"_bytes", "MiB", 1.0 / 1048576, 3},
    {"_Bps", "GB/s", 1e-9, 3},
    {"error", "%", 100, 1},
    {"share", "%", 100, 1},
    {"spread", "%", 100, 1},
    {NULL, "", 1, 6},
};

static const struct ending *ending_of(const char *key)
{
    const struct ending *ending = endings;

    for (; ending->text != NULL; ending++) {
        size_t n = strlen(ending->text), length = strlen(key);

        if (length >= n && strcmp(key + length - n, ending->text) == 0) break;
    }
    return ending;
}

/* A value as text in its column's unit. */
static void value_text(const char *key, const json_t *value, char *text, size_t n)
{
    const struct ending *ending = ending_of(key);

    if (json_is_string(value))
        snprintf(text, n, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(text, n, "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_integer(value) && ending->text == NULL)
        snprintf(text, n, "%lld", (long long)json_integer_value(value));
    else if (json_is_number(value) && ending->text == NULL)
        snprintf(text, n, "%.6g", json_number_value(value));
    else if (json_is_number(value))
        snprintf(text, n, "%.*f", ending->digits, json_number_value(value) * ending->scale);
    else
        text[0] = '\0';
}

/* Keys of the first record that hold single values, plus "error" if it can be made. */
static int columns_of(json_t *record, const char *keys[MAX_COLUMNS])
{
    bool has_both = json_object_get(record, "predicted_s") != NULL &&
                    json_object_get(record, "measured_s") != NULL;
    const char *key;
    json_t *value;
    int n = 0;

    json_object_foreach(record, key, value)
    {
        if (n < MAX_COLUMNS - 1 && !json_is_object(value) && !json_is_array(value)) keys[n++] = key;
    }
    if (has_both && json_object_get(record, "error") == NULL) keys[n++] = "error";
    return n;
}

static void put_record(struct ghp_table *table, json_t *record, const char *const *keys, int n)
{
    const json_t *predicted = json_object_get(record, "predicted_s"),
                 *measured = json_object_get(record, "measured_s");
    char text[256];

    ghp_table_row(table);
    for (int i = 0; i < n; i++) {
        const json_t *value = json_object_get(record, keys[i]);
        double said = json_number_value(predicted), found = json_number_value(measured);

        value_text(keys[i], value, text, sizeof text);
        if (value == NULL && strcmp(keys[i], "error") == 0 && json_is_number(predicted) &&
            found > 0)
            snprintf(text, sizeof text, "%.1f", 100 * (said - found) / found);
        ghp_table_cell(table, "%s", text);
    }
}

/* Whether any record has a text there: null stands for what a record does not have. */
static bool is_text(json_t *list, const char *key)
{
    json_t *record;
    size_t i;

    json_array_foreach(list, i, record)
    {
        if (json_is_string(json_object_get(record, key))) return true;
    }
    return false;
}

static enum ghp_status print_list(const char *name, json_t *list, FILE *out)
{
    const char *keys[MAX_COLUMNS];
    json_t *first = json_array_get(list, 0);
    int n = columns_of(first, keys);
    struct ghp_table *table = ghp_table_open();
    enum ghp_status status;
    json_t *record;
    size_t i;

    ghp_table_note(table, "%s", name);
    for (int c = 0; c < n; c++) {
        bool text = is_text(list, keys[c]);

        ghp_table_column(table, keys[c], text ? "" : ending_of(keys[c])->unit, text ? 'l' : 'r');
    }
    json_array_foreach(list, i, record) put_record(table, record, keys, n);
    fputc('\n', out);
    status = ghp_table_print(table, out);
    ghp_table_close(table);
    return status;
}

static enum ghp_status print_values(json_t *root, FILE *out)
{
    struct ghp_table *table = ghp_table_open();
    enum ghp_status status;
    char text[256];
    const char *key;
    json_t *value;

    ghp_table_column(table, "value", "", 'l');
    ghp_table_column(table, "is", "", 'r');
    ghp_table_column(table, "unit", "", 'l');
    json_object_foreach(root, key, value)
    {
        if (json_is_object(value) || json_is_array(value) || strcmp(key, "format") == 0) continue;
        value_text(key, value, text, sizeof text);
        ghp_table_row(table);
        ghp_table_cell(table, "%s", key);
        ghp_table_cell(table, "%s", text);
        ghp_table_cell(table, "%s", json_is_number(value) ? ending_of(key)->unit : "");
    }
    status = ghp_table_print(table, out);
    ghp_table_close(table);
    return status;
}

/* The lists of records. */
static enum ghp_status print_lists(json_t *root, FILE *out)
{
    const char *key;
    json_t *value;

    json_object_foreach(root, key, value)
    {
        if (json_is_array(value) && json_is_object(json_array_get(value, 0)))
            GHP_TRY(print_list(key, value, out));
    }
    return GHP_OK;
}

/* Prints where the error of the prediction comes from, if the file says enough for that. */
static enum ghp_status print_prediction_error(struct ghp_display *report,
                                              const struct ghp_json *doc, const char *path)
{
    report->sheets += !report->json; /* the values */
    if (!ghp_record_is_whole(doc)) {
        ghp_display_line(report, "where the error sits is not known: an older ghp-run wrote this "
                                 "file; train by the plan again with ghp-run --run");
        return GHP_OK;
    }
    if (!json_is_number(json_object_get(doc->root, "predicted_step_s"))) return GHP_OK;
    return ghp_inspect_prediction_error(report, &path, 1);
}

enum ghp_status ghp_inspect_run(struct ghp_display *report, const char *path, const char *format)
{
    enum ghp_status status = GHP_OK;
    struct ghp_json doc;

    GHP_TRY(ghp_json_load(path, format, &doc));
    if (report->json) {
        json_decref(report->root); /* the file is the answer */
        report->root = json_incref(doc.root);
    } else {
        status = print_values(doc.root, report->out);
    }
    if (status == GHP_OK && strcmp(format, "ghp.run/2") == 0)
        status = print_prediction_error(report, &doc, path);
    if (status == GHP_OK && !report->json) status = print_lists(doc.root, report->out);
    ghp_json_release(&doc);
    return status;
}
