/* inspect/sheet.h - the output of ghp-inspect, written once for both forms: a table for people, or rows of JSON for
 * programs.
 *
 * A display is a sequence of sheets and single values. A sheet's columns name the JSON key (which ends in its base
 * unit) and how a table shows it (heading, unit, scale, digits); each value is put once.
 * If memory runs out, ghp_display_end reports it, so the calls between need no check.
 *
 * Call order: ghp_display_begin, then for each sheet ghp_sheet_open, note, row and put ..., ghp_display_sheet; end. */
#ifndef GHP_INSPECT_SHEET_H
#define GHP_INSPECT_SHEET_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ghp_display {
    FILE *out;  /* where it goes: stdout, unless changed after ghp_display_begin; borrowed */
    bool json;  /* one JSON object at the end, in place of tables */
    void *root; /* json: the object */
    int sheets; /* printed so far */
    bool failed;
    enum ghp_status status; /* first failure while printing */
};

struct ghp_column {
    const char *key;     /* in JSON; NULL ends the list */
    const char *heading; /* in the table */
    const char *unit;    /* in the table; "" for none */
    /* 't' text, 'i' whole number, 'b' whole number that a table shows scaled, 'r' real */
    char kind;
    double scale; /* shown value = value * scale; 0 means 1 */
    int digits;   /* after the point */
};

struct ghp_sheet;

void ghp_display_begin(struct ghp_display *report, bool json);

/* A value of the JSON object; tables do not show it. */
void ghp_display_int(struct ghp_display *report, const char *key, int64_t value);
void ghp_display_real(struct ghp_display *report, const char *key, double value);
void ghp_display_bool(struct ghp_display *report, const char *key, bool value);
void ghp_display_text(struct ghp_display *report, const char *key, const char *value);

/* Prints a line of text between tables; JSON does not show it. */
void ghp_display_line(struct ghp_display *report, const char *fmt, ...) GHP_PRINTF(2, 3);

/* An empty sheet.
 *
 * key       of the array of rows in JSON
 * columns   borrowed until the sheet is reported; ended by a NULL key */
struct ghp_sheet *ghp_sheet_open(struct ghp_display *report, const char *key,
                                 const struct ghp_column *columns);

/* A provenance line above the table. */
void ghp_sheet_note(struct ghp_sheet *sheet, const char *fmt, ...) GHP_PRINTF(2, 3);

/* Starts a row; its cells are put in the order of the columns, each by the function of its kind. A real that is not
 * finite and a NULL text are empty cells, absent in JSON. */
void ghp_sheet_row(struct ghp_sheet *sheet);
void ghp_sheet_int(struct ghp_sheet *sheet, int64_t value);
void ghp_sheet_real(struct ghp_sheet *sheet, double value);
void ghp_sheet_text(struct ghp_sheet *sheet, const char *value);

/* Prints the sheet, or adds it to the JSON object, and closes it. */
void ghp_display_sheet(struct ghp_display *report, struct ghp_sheet *sheet);

/* Prints the JSON object, if asked for, and frees everything.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY (also from any call before) */
enum ghp_status ghp_display_end(struct ghp_display *report);

#endif
