/* planner/search/mps_private.c - see mps_private.h: rows and columns, which are named as they are made, and entries. */
#include "planner/search/mps_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void *grow(struct ghp_mps *m, void *old, size_t n, size_t *room, size_t size)
{
    void *grown;

    if (m->failed || n < *room) return old;
    grown = realloc(old, (2 * *room + 64) * size);
    m->failed = grown == NULL;
    if (m->failed) return old;
    *room = 2 * *room + 64;
    return grown;
}

int ghp_mps_add_row(struct ghp_mps *m, char type, double right, const char *format, ...)
{
    va_list list;
    struct ghp_mps_row *row;

    m->rows = grow(m, m->rows, (size_t)m->n_rows, &m->room_rows, sizeof *m->rows);
    if (m->failed) return 0;
    row = &m->rows[m->n_rows];
    *row = (struct ghp_mps_row){.type = type, .right = right};
    va_start(list, format);
    vsnprintf(row->name, sizeof row->name, format, list);
    va_end(list);
    return m->n_rows++;
}

int ghp_mps_add_column(struct ghp_mps *m, bool integer, const char *format, ...)
{
    va_list list;
    struct ghp_mps_column *column;

    m->columns = grow(m, m->columns, (size_t)m->n_columns, &m->room_columns, sizeof *m->columns);
    if (m->failed) return 0;
    column = &m->columns[m->n_columns];
    *column = (struct ghp_mps_column){.integer = integer};
    va_start(list, format);
    vsnprintf(column->name, sizeof column->name, format, list);
    va_end(list);
    return m->n_columns++;
}

void ghp_mps_put(struct ghp_mps *m, int row, int column, double value)
{
    if (column < 0 || value == 0) return;
    m->entries = grow(m, m->entries, m->n_entries, &m->room_entries, sizeof *m->entries);
    if (!m->failed)
        m->entries[m->n_entries++] =
            (struct ghp_mps_entry){.column = column, .row = row, .value = value};
}
