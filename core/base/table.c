/* core/base/table.c - aligned text tables with provenance lines and a unit row. */
#include "core/base/table.h"

#include "core/base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2 }; /* blanks between columns */

struct list {
    char **item; /* n malloc'd texts; NULL stands for an empty one */
    size_t n, capacity;
};

struct ghp_table {
    struct list notes, names, units, cells; /* cells: rows of names.n entries, row after row */
    struct list row;                        /* the row under construction */
    char *sides;                            /* 'l' or 'r' for each column */
    bool in_row;                            /* row is started */
    bool failed;                            /* out of memory at some time */
};

static bool list_add(struct list *list, char *text)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity * 2 + 8;
        char **moved = realloc(list->item, capacity * sizeof *moved);
        if (moved == NULL) return false;
        list->item = moved;
        list->capacity = capacity;
    }
    list->item[list->n++] = text;
    return true;
}

static void list_release(struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->item[i]);
    free(list->item);
    *list = (struct list){0};
}

/* Adds a malloc'd text (NULL: an allocation that failed), or remembers that memory was short. */
static void add(struct ghp_table *t, struct list *list, char *text)
{
    if (text != NULL) ghp_text_printable(text);
    if (text != NULL && list_add(list, text)) return;
    free(text);
    t->failed = true;
}

static char *format(const char *fmt, va_list arguments) GHP_PRINTF(1, 0);
static char *format(const char *fmt, va_list arguments)
{
    char *text = NULL;

    return vasprintf(&text, fmt, arguments) < 0 ? NULL : text;
}

struct ghp_table *ghp_table_open(void)
{
    return ghp_alloc(1, sizeof(struct ghp_table));
}

void ghp_table_note(struct ghp_table *t, const char *fmt, ...)
{
    va_list arguments;

    if (t == NULL) return;
    va_start(arguments, fmt);
    add(t, &t->notes, format(fmt, arguments));
    va_end(arguments);
}

void ghp_table_column(struct ghp_table *t, const char *name, const char *unit, char side)
{
    char *sides;

    if (t == NULL) return;
    GHP_ASSERT(side == 'l' || side == 'r');
    GHP_ASSERT(!t->in_row); /* columns come before rows */
    sides = realloc(t->sides, t->names.n + 1);
    if (sides == NULL) {
        t->failed = true;
        return;
    }
    t->sides = sides;
    t->sides[t->names.n] = side;
    add(t, &t->names, strdup(name));
    add(t, &t->units, strdup(unit != NULL ? unit : ""));
}

/* Moves the row under construction to the cells, filled up with empty ones. */
static void finish_row(struct ghp_table *t)
{
    if (!t->in_row || t->failed) return;
    GHP_ASSERT(t->row.n <= t->names.n); /* more cells than columns */
    while (t->row.n < t->names.n && !t->failed)
        add(t, &t->row, strdup(""));
    for (size_t i = 0; i < t->row.n && !t->failed; i++) {
        add(t, &t->cells, t->row.item[i]);
        t->row.item[i] = NULL;
    }
    t->row.n = 0;
}

void ghp_table_row(struct ghp_table *t)
{
    if (t == NULL) return;
    finish_row(t);
    t->in_row = true;
}

void ghp_table_cell(struct ghp_table *t, const char *fmt, ...)
{
    va_list arguments;

    if (t == NULL || t->failed) return;
    GHP_ASSERT(t->in_row);
    GHP_ASSERT(t->row.n < t->names.n);
    va_start(arguments, fmt);
    add(t, &t->row, format(fmt, arguments));
    va_end(arguments);
}

/* Characters of a UTF-8 text: bytes that do not continue one. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void spaces(size_t n, FILE *out)
{
    for (; n > 0; --n)
        fputc(' ', out);
}

/* Prints one line of names.n texts; no blanks at its end. */
static void print_line(const struct ghp_table *t, char *const *texts, const size_t *widths,
                       FILE *out)
{
    size_t pending = 0; /* blanks owed before the next text */

    for (size_t c = 0; c < t->names.n; c++) {
        size_t width = width_of(texts[c]), pad = widths[c] - width;

        if (c > 0) pending += GAP;
        if (t->sides[c] == 'r') pending += pad;
        if (width > 0) {
            spaces(pending, out);
            pending = 0;
            fputs(texts[c], out);
        }
        if (t->sides[c] == 'l') pending += pad;
    }
    fputc('\n', out);
}

/* Widest text of each column. */
static void measure(const struct ghp_table *t, const struct list *list, size_t *widths)
{
    for (size_t i = 0; i < list->n; i++) {
        size_t width = width_of(list->item[i]), c = i % t->names.n;

        if (width > widths[c]) widths[c] = width;
    }
}

static bool any_text(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i][0] != '\0') return true;
    return false;
}

enum ghp_status ghp_table_print(struct ghp_table *t, FILE *out)
{
    size_t *widths;

    if (t == NULL || t->failed) return GHP_NO_MEMORY();
    finish_row(t);
    t->in_row = false;
    widths = ghp_alloc(t->names.n, sizeof *widths);
    if (t->failed || widths == NULL) {
        free(widths);
        return GHP_NO_MEMORY();
    }
    measure(t, &t->names, widths);
    measure(t, &t->units, widths);
    measure(t, &t->cells, widths);
    for (size_t i = 0; i < t->notes.n; i++)
        fprintf(out, "# %s\n", t->notes.item[i]);
    if (t->cells.n > 0) {
        print_line(t, t->names.item, widths, out);
        if (any_text(&t->units)) print_line(t, t->units.item, widths, out);
        for (size_t i = 0; i < t->cells.n; i += t->names.n)
            print_line(t, t->cells.item + i, widths, out);
    }
    free(widths);
    return ferror(out) ? GHP_FAIL(GHP_ERR_IO, "cannot print a table; check the output") : GHP_OK;
}

void ghp_table_close(struct ghp_table *t)
{
    if (t == NULL) return;
    list_release(&t->notes);
    list_release(&t->names);
    list_release(&t->units);
    list_release(&t->cells);
    list_release(&t->row);
    free(t->sides);
    free(t);
}
