/* inspect/sheet.c - tables and JSON rows from the same values. */
#include "inspect/sheet.h"

#include "core/base/file.h"
#include "core/base/json_lines.h"
#include "core/base/table.h"
#include "core/base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ghp_sheet {
    struct ghp_display *report;
    const char *key;
    const struct ghp_column *columns;
    struct ghp_table *table; /* for people */
    json_t *rows, *row;      /* for programs */
    int column;              /* of the next cell */
};

static void fail(struct ghp_display *report)
{
    report->failed = true;
}

void ghp_display_begin(struct ghp_display *report, bool json)
{
    *report = (struct ghp_display){.json = json, .out = stdout};
    if (!json) return;
    report->root = json_object();
    if (report->root == NULL) fail(report);
}

/* Sets a key to a value, which is taken over. */
static void set(struct ghp_display *report, json_t *object, const char *key, json_t *value)
{
    if (object == NULL || json_object_set_new(object, key, value) != 0) fail(report);
}

void ghp_display_int(struct ghp_display *report, const char *key, int64_t value)
{
    if (report->json) set(report, report->root, key, json_integer(value));
}

void ghp_display_real(struct ghp_display *report, const char *key, double value)
{
    if (report->json && isfinite(value)) set(report, report->root, key, json_real(value));
}

void ghp_display_bool(struct ghp_display *report, const char *key, bool value)
{
    if (report->json) set(report, report->root, key, json_boolean(value));
}

void ghp_display_text(struct ghp_display *report, const char *key, const char *value)
{
    if (report->json && value != NULL) set(report, report->root, key, json_string(value));
}

void ghp_display_line(struct ghp_display *report, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    int n;

    if (report->json) return;
    va_start(args, fmt);
    n = vasprintf(&text, fmt, args);
    va_end(args);
    if (n < 0) {
        fail(report);
        return;
    }
    ghp_text_printable(text);
    fprintf(report->out, "%s%s\n", report->sheets++ > 0 ? "\n" : "", text);
    free(text);
}

struct ghp_sheet *ghp_sheet_open(struct ghp_display *report, const char *key,
                                 const struct ghp_column *columns)
{
    struct ghp_sheet *sheet = ghp_alloc(1, sizeof *sheet);

    if (sheet == NULL) {
        fail(report);
        return NULL;
    }
    *sheet = (struct ghp_sheet){.report = report, .key = key, .columns = columns};
    if (report->json) {
        sheet->rows = json_array();
        return sheet;
    }
    sheet->table = ghp_table_open();
    for (const struct ghp_column *c = columns; c->key != NULL; c++)
        ghp_table_column(sheet->table, c->heading, c->unit, c->kind == 't' ? 'l' : 'r');
    return sheet;
}

void ghp_sheet_note(struct ghp_sheet *sheet, const char *fmt, ...)
{
    char text[512];
    va_list args;

    if (sheet == NULL || sheet->table == NULL) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ghp_table_note(sheet->table, "%s", text);
}

void ghp_sheet_row(struct ghp_sheet *sheet)
{
    if (sheet == NULL) return;
    sheet->column = 0;
    if (!sheet->report->json) {
        ghp_table_row(sheet->table);
        return;
    }
    sheet->row = json_object();
    if (json_array_append_new(sheet->rows, sheet->row) != 0) {
        sheet->row = NULL;
        fail(sheet->report);
    }
}

/* The column of the next cell, whose kind must be one of these. */
static const struct ghp_column *next_column(struct ghp_sheet *sheet, const char *kinds)
{
    const struct ghp_column *column = &sheet->columns[sheet->column++];

    GHP_ASSERT(column->key != NULL && strchr(kinds, column->kind) != NULL);
    return column;
}

void ghp_sheet_int(struct ghp_sheet *sheet, int64_t value)
{
    const struct ghp_column *column;

    if (sheet == NULL) return;
    column = next_column(sheet, "ib");
    if (sheet->report->json)
        set(sheet->report, sheet->row, column->key, json_integer(value));
    else if (column->kind == 'b')
        ghp_table_cell(sheet->table, "%.*f", column->digits, (double)value * column->scale);
    else
        ghp_table_cell(sheet->table, "%lld", (long long)value);
}

void ghp_sheet_real(struct ghp_sheet *sheet, double value)
{
    const struct ghp_column *column;

    if (sheet == NULL) return;
    column = next_column(sheet, "r");
    if (sheet->report->json) {
        if (isfinite(value)) set(sheet->report, sheet->row, column->key, json_real(value));
    } else if (isfinite(value)) {
        ghp_table_cell(sheet->table, "%.*f", column->digits,
                       column->scale > 0 ? value * column->scale : value);
    } else {
        ghp_table_cell(sheet->table, "%s", "");
    }
}

void ghp_sheet_text(struct ghp_sheet *sheet, const char *value)
{
    const struct ghp_column *column;

    if (sheet == NULL) return;
    column = next_column(sheet, "t");
    if (!sheet->report->json)
        ghp_table_cell(sheet->table, "%s", value != NULL ? value : "");
    else if (value != NULL)
        set(sheet->report, sheet->row, column->key, json_string(value));
}

void ghp_display_sheet(struct ghp_display *report, struct ghp_sheet *sheet)
{
    if (sheet == NULL) return;
    if (report->json) {
        set(report, report->root, sheet->key, sheet->rows);
    } else {
        enum ghp_status status;

        if (report->sheets++ > 0) fputc('\n', report->out);
        status = ghp_table_print(sheet->table, report->out);
        if (report->status == GHP_OK) report->status = status;
    }
    ghp_table_close(sheet->table);
    free(sheet);
}

enum ghp_status ghp_display_end(struct ghp_display *report)
{
    enum ghp_status status = report->status;
    char *text = NULL;

    if (status == GHP_OK && report->failed) status = GHP_NO_MEMORY();
    if (status == GHP_OK && report->json) {
        status = ghp_json_lines(report->root, &text);
        if (status == GHP_OK) fputs(text, report->out);
    }
    free(text);
    json_decref(report->root);
    report->root = NULL;
    return status == GHP_OK ? ghp_file_flush(report->out, "the result") : status;
}
