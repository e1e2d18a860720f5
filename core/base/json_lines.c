/* core/base/json_lines.c - JSON text with one line for each thing that fits on a line. */
#include "core/base/json_lines.h"

#include "core/base/file.h"
#include "core/base/text.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 150, INDENT = 2 };

struct text {
    char *at;
    size_t n, room;
    bool failed;
};

static void put(struct text *out, const char *bytes, size_t n)
{
    if (out->failed) return;
    if (out->n + n + 1 > out->room) {
        size_t room = 2 * (out->n + n + 1) + 256;
        char *grown = realloc(out->at, room);

        if (grown == NULL) {
            out->failed = true;
            return;
        }
        out->at = grown;
        out->room = room;
    }
    memcpy(out->at + out->n, bytes, n);
    out->n += n;
    out->at[out->n] = '\0';
}

static void put_text(struct text *out, const char *text)
{
    put(out, text, strlen(text));
}

static void put_string(struct text *out, const char *string)
{
    json_t *value = json_string(string);
    char *dumped = value != NULL ? ghp_json_line_of(value) : NULL;

    if (dumped == NULL)
        out->failed = true;
    else
        put_text(out, dumped);
    free(dumped);
    json_decref(value);
}

static void put_real(struct text *out, double value)
{
    char number[32];

    ghp_text_number(value, number, sizeof number);
    put_text(out, number);
    if (strpbrk(number, ".e") == NULL) put_text(out, ".0"); /* stays a real when read back */
}

/* Any value that is neither an object nor an array. */
static void put_scalar(struct text *out, const json_t *value)
{
    char number[32];

    switch (json_typeof(value)) {
    case JSON_STRING: put_string(out, json_string_value(value)); break;
    case JSON_REAL: put_real(out, json_real_value(value)); break;
    case JSON_INTEGER:
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        put_text(out, number);
        break;
    case JSON_TRUE: put_text(out, "true"); break;
    case JSON_FALSE: put_text(out, "false"); break;
    default: put_text(out, "null"); break;
    }
}

/* The value on one line; space is "" or " ". */
static void put_line(struct text *out, const json_t *value, const char *space)
{
    void *items = (void *)(uintptr_t)value; /* Jansson's iterators take no const */
    const char *key;
    json_t *child;
    size_t i = 0;

    if (json_is_object(value)) {
        put_text(out, "{");
        json_object_foreach((json_t *)items, key, child)
        {
            if (i++ > 0) {
                put_text(out, ",");
                put_text(out, space);
            }
            put_string(out, key);
            put_text(out, ":");
            put_text(out, space);
            put_line(out, child, space);
        }
        put_text(out, "}");
    } else if (json_is_array(value)) {
        put_text(out, "[");
        json_array_foreach(value, i, child)
        {
            if (i > 0) {
                put_text(out, ",");
                put_text(out, space);
            }
            put_line(out, child, space);
        }
        put_text(out, "]");
    } else {
        put_scalar(out, value);
    }
}

static void new_line(struct text *out, size_t indent)
{
    put_text(out, "\n");
    for (size_t i = 0; i < indent; i++)
        put_text(out, " ");
}

/* Whether the value is a list of plain values, which stays on one line however long it is. */
static bool is_flat(const json_t *value)
{
    json_t *child;
    size_t i;

    if (!json_is_array(value)) return false;
    json_array_foreach(value, i, child)
    {
        if (json_is_object(child) || json_is_array(child)) return false;
    }
    return true;
}

/* The value on one line if that fits after `column` characters, else a line for each member. The document
 * itself (column 0) is always broken. */
static void put_broken(struct text *out, const json_t *value, size_t indent, size_t column)
{
    void *items = (void *)(uintptr_t)value;
    size_t start = out->n, i = 0;
    const char *key;
    json_t *child;

    put_line(out, value, " ");
    if (out->failed || !(json_is_object(value) || json_is_array(value))) return;
    if (column > 0 && (is_flat(value) || column + out->n - start <= LINE_WIDTH)) return;
    out->n = start;
    put_text(out, json_is_object(value) ? "{" : "[");
    if (json_is_object(value)) {
        json_object_foreach((json_t *)items, key, child)
        {
            size_t line = out->n;

            if (i++ > 0) put_text(out, ",");
            new_line(out, indent + INDENT);
            put_string(out, key);
            put_text(out, ": ");
            put_broken(out, child, indent + INDENT, out->n - line);
        }
    } else {
        json_array_foreach(value, i, child)
        {
            if (i > 0) put_text(out, ",");
            new_line(out, indent + INDENT);
            put_broken(out, child, indent + INDENT, indent + INDENT);
        }
    }
    new_line(out, indent);
    put_text(out, json_is_object(value) ? "}" : "]");
}

static enum ghp_status finish(struct text *out, char **text)
{
    if (out->failed) {
        free(out->at);
        *text = NULL;
        return GHP_NO_MEMORY();
    }
    *text = out->at;
    return GHP_OK;
}

enum ghp_status ghp_json_compact(const json_t *root, char **text)
{
    struct text out = {0};

    *text = NULL;
    if (root == NULL) return GHP_NO_MEMORY();
    put_line(&out, root, "");
    return finish(&out, text);
}

enum ghp_status ghp_json_lines(const json_t *root, char **text)
{
    struct text out = {0};

    *text = NULL;
    if (root == NULL) return GHP_NO_MEMORY();
    put_broken(&out, root, 0, 0);
    put_text(&out, "\n");
    return finish(&out, text);
}

enum ghp_status ghp_json_lines_save(const char *path, json_t *root)
{
    char *text = NULL;
    enum ghp_status status = ghp_json_lines(root, &text);

    if (status == GHP_OK) status = ghp_file_write_atomic(path, text, strlen(text));
    free(text);
    json_decref(root);
    return status;
}
