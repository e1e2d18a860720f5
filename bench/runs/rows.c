/* bench/runs/rows.c - see rows.h. */
#include "bench/runs/rows.h"

#include "core/base/file.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FIELDS_MOST = 256 };

/* Spreadsheets begin a file in UTF-8 with it. */
static const char byte_order_mark[] = "\xef\xbb\xbf";

static const int64_t most_number = 1000000000000000, most_count = 1000000;

static const char *const names[GHP_COLUMNS] = {
#define GHP_COLUMN_NAME(id, text) text,
    GHP_COLUMN_LIST(GHP_COLUMN_NAME)
#undef GHP_COLUMN_NAME
};

/* One line of a file: its fields, cut in place. */
struct fields {
    char *of[FIELDS_MOST];
    int n, line;
};

/* Cuts the field that begins at *at; *at is then what ended it. Returns the field, without its quotes. */
static char *next_field(char **at, int *line)
{
    char *in = *at, *out = *at, *field = *at;
    bool quoted = *in == '"';

    if (quoted) in++;
    for (; *in != '\0'; in++) {
        if (quoted && *in == '"') {
            if (in[1] != '"') {
                in++;
                break;
            }
            in++;
        } else if (!quoted && (*in == ',' || *in == '\n' || *in == '\r')) {
            break;
        }
        *line += *in == '\n';
        *out++ = *in;
    }
    *at = in + strcspn(in, ",\n");
    /* what ends the field is still to be looked at, and may be where its text ends */
    if (out < *at) *out = '\0';
    return field;
}

/* The next line that is not empty. Returns whether there is one. */
static bool next_line(char **at, int *line, struct fields *fields)
{
    fields->n = 0;
    while (**at == '\n' || **at == '\r') {
        *line += **at == '\n';
        ++*at;
    }
    fields->line = *line;
    while (**at != '\0' && fields->n < FIELDS_MOST) {
        char *field = next_field(at, line), ends = **at;

        fields->of[fields->n++] = field;
        **at = '\0';
        if (ends != '\0') ++*at;
        if (ends == '\n') ++*line;
        if (ends != ',') break;
        if (**at == '\0') fields->of[fields->n++] = *at;
    }
    return fields->n > 0;
}

static enum ghp_status find_columns(const char *path, const struct fields *head,
                                    int place[GHP_COLUMNS])
{
    for (int c = 0; c < GHP_COLUMNS; c++) {
        place[c] = -1;
        for (int f = 0; f < head->n; f++)
            if (strcmp(head->of[f], names[c]) == 0) place[c] = f;
        if (place[c] < 0)
            return GHP_FAIL(
                GHP_ERR_FORMAT,
                "%s has no column '%s' in its first line; docs/results/published-runs.md lists the "
                "columns",
                path, names[c]);
    }
    return GHP_OK;
}

static enum ghp_status add_row(const char *path, const struct fields *fields, const int *place,
                               struct ghp_run_rows *rows)
{
    struct ghp_run_row *more = realloc(rows->of, (size_t)(rows->n + 1) * sizeof *rows->of);
    struct ghp_run_row row = {.line = fields->line};

    if (more == NULL) return GHP_NO_MEMORY();
    rows->of = more;
    for (int c = 0; c < GHP_COLUMNS; c++) {
        if (place[c] >= fields->n)
            return GHP_FAIL(GHP_ERR_FORMAT,
                            "%s:%d has %d fields, and none for the column '%s'; give each row as "
                            "many as the first line",
                            path, fields->line, fields->n, names[c]);
        row.text[c] = fields->of[place[c]];
    }
    rows->of[rows->n++] = row;
    return GHP_OK;
}

enum ghp_status ghp_run_rows_load(const char *path, struct ghp_run_rows *rows)
{
    struct fields fields = {0};
    int place[GHP_COLUMNS], line = 1;
    enum ghp_status status = GHP_OK;
    char *at;
    size_t n = 0;

    *rows = (struct ghp_run_rows){0};
    GHP_TRY(ghp_file_read(path, &rows->file, &n));
    at = rows->file + (strncmp(rows->file, byte_order_mark, 3) == 0 ? 3 : 0);
    next_line(&at, &line, &fields);
    status = find_columns(path, &fields, place);
    while (status == GHP_OK && next_line(&at, &line, &fields))
        status = add_row(path, &fields, place, rows);
    if (status != GHP_OK) ghp_run_rows_release(rows);
    return status;
}

void ghp_run_rows_release(struct ghp_run_rows *rows)
{
    free(rows->of);
    free(rows->file);
    *rows = (struct ghp_run_rows){0};
}

int64_t ghp_run_row_number(const struct ghp_run_row *row, enum ghp_column column, int64_t usual)
{
    char *end = NULL;
    int64_t value = strtoll(row->text[column], &end, 10);

    /* "4 nodes" is 4; "1.5k" and "1,024" do not count */
    if (end == row->text[column] || value < 0 || value >= most_number) return usual;
    return isalnum((unsigned char)*end) || *end == '.' || *end == ',' ? usual : value;
}

int ghp_run_row_count(const struct ghp_run_row *row, enum ghp_column column, int usual)
{
    int64_t value = ghp_run_row_number(row, column, usual);

    return value <= most_count ? (int)value : usual;
}

double ghp_run_row_seconds(const struct ghp_run_row *row, enum ghp_column column)
{
    char *end = NULL;
    double value = strtod(row->text[column], &end);

    return end[strspn(end, " ")] == '\0' && value > 0 && isfinite(value) ? value : 0;
}

int64_t ghp_run_row_before(const struct ghp_run_row *row, enum ghp_column column, const char *word)
{
    const char *at = strstr(row->text[column], word);

    if (at == NULL) return 0;
    while (at > row->text[column] && isdigit((unsigned char)at[-1]))
        at--;
    return atoll(at);
}

bool ghp_run_row_has(const struct ghp_run_row *row, enum ghp_column column, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = row->text[column]; *at != '\0'; at++)
        if (strncasecmp(at, word, n) == 0) return true;
    return false;
}
