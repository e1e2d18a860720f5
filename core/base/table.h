/* core/base/table.h - aligned text tables with provenance lines and a unit row.
 *
 *     # plan vgg16.plan.json, profile 5f2c...          ghp_table_note
 *     layer     forward   weights                      ghp_table_column(t, "forward", "ms", 'r')
 *                    ms       MiB
 *     conv1       1.240      0.01                      ghp_table_row, ghp_table_cell ...
 *
 * Call order: open, note and column, then for each row one row and its cells, print, close. A builder that ran
 * out of memory remembers it: only print reports it, so the calls between need no check.
 *
 * Tested  tests/core/base/test_table.c */
#ifndef GHP_CORE_BASE_TABLE_H
#define GHP_CORE_BASE_TABLE_H

#include "core/base/status.h"

#include <stdio.h>

struct ghp_table;

/* An empty table; NULL when out of memory, which every other function here accepts. */
struct ghp_table *ghp_table_open(void);

/* Adds a provenance line, printed as "# " and the text. */
void ghp_table_note(struct ghp_table *t, const char *fmt, ...) GHP_PRINTF(2, 3);

/* Adds a column.
 *
 * name   heading
 * unit   printed below it; "" or NULL for none
 * side   'l' left-aligned, 'r' right-aligned (numbers) */
void ghp_table_column(struct ghp_table *t, const char *name, const char *unit, char side);

/* Starts a row; cells that it does not fill stay empty. */
void ghp_table_row(struct ghp_table *t);

/* Adds the next cell of the current row. */
void ghp_table_cell(struct ghp_table *t, const char *fmt, ...) GHP_PRINTF(2, 3);

/* Prints, safely for a terminal (ghp_text_printable), notes, names, units (if any column has one) and rows; widths
 * count UTF-8 characters. Without rows: the notes alone.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY (now or while building, or t is NULL); GHP_ERR_IO */
enum ghp_status ghp_table_print(struct ghp_table *t, FILE *out);

/* Frees the table; accepts NULL. */
void ghp_table_close(struct ghp_table *t);

#endif
