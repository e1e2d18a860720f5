/* core/base/json_position.c - turns a place in a JSON document into a line and a column, for ghp_json_fail.
 *
 * Jansson keeps no positions. So the place is followed twice: in the values, to find which member or item it is at
 * each depth, and in the text, by skipping that many members. The text was parsed before, so it is well-formed. */
#include "core/base/json.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 128, PROBLEM_SIZE = 1536, PLACE_SIZE = 512 };

/* Which child to take at each depth. */
struct way {
    size_t step[DEPTH_MAX];
    size_t n;
};

/* The length of `key` if `where` continues with it as one whole name, else 0. A place that did not fit was cut at
 * `end`. A name that ends there may be a part of a longer one, so it does not count. */
static size_t match_key(const char *where, const char *end, const char *key)
{
    size_t n = strlen(key);

    if (strncmp(where, key, n) != 0 || where + n == end) return 0;
    return where[n] == '\0' || where[n] == '.' || where[n] == '[' ? n : 0;
}

/* Follows one name of `where` in an object: the child of the longest key that fits. NULL if none does. */
static json_t *follow_key(json_t *object, const char **where, const char *end, size_t *index)
{
    json_t *value, *found = NULL;
    const char *key;
    size_t i = 0, longest = 0;

    json_object_foreach(object, key, value)
    {
        size_t n = match_key(*where, end, key);

        if (n > longest) {
            longest = n;
            found = value;
            *index = i;
        }
        i++;
    }
    *where += longest;
    return found;
}

/* Follows one [i] of `where` in an array. */
static json_t *follow_item(json_t *array, const char **where, size_t *index)
{
    char *end = NULL;

    *index = (size_t)strtoull(*where + 1, &end, 10);
    if (*end != ']') return NULL;
    *where = end + 1;
    return json_array_get(array, *index);
}

/* The way to a place, as far as `where` can be followed. */
static void find_way(const struct ghp_node *at, struct way *way)
{
    const char *where = at->where, *end = at->where + sizeof at->where - 1;
    json_t *value = at->doc->root;

    way->n = 0;
    while (*where != '\0' && way->n < DEPTH_MAX) {
        size_t index = 0;

        if (*where == '.') where++;
        if (*where == '[' && json_is_array(value))
            value = follow_item(value, &where, &index);
        else if (json_is_object(value))
            value = follow_key(value, &where, end, &index);
        else
            value = NULL;
        if (value == NULL) return;
        way->step[way->n++] = index;
    }
}

static const char *skip_space(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r')
        text++;
    return text;
}

/* Past the string that begins at text. */
static const char *skip_string(const char *text)
{
    for (++text; *text != '\0' && *text != '"'; text++)
        if (*text == '\\' && text[1] != '\0') text++;
    return *text == '"' ? text + 1 : text;
}

/* Past the value that begins at text. */
static const char *skip_value(const char *text)
{
    size_t depth = 0;

    do {
        text = skip_space(text);
        if (*text == '"') {
            text = skip_string(text);
        } else if (*text == '{' || *text == '[') {
            depth++;
            text++;
        } else if (*text == '}' || *text == ']') {
            --depth;
            text++;
        } else if (*text == ',' || *text == ':') {
            text++;
        } else if (*text != '\0') { /* a number or name, or what no JSON has: always a step on */
            do {
                text++;
            } while (isalnum((unsigned char)*text) || *text == '+' || *text == '-' || *text == '.');
        }
    } while (depth > 0 && *text != '\0');
    return text;
}

/* The beginning of child `index` of the object or array that begins at text. */
static const char *enter(const char *text, size_t index)
{
    bool object = *text == '{';

    if (*text == '\0') return text;
    text = skip_space(text + 1);
    for (size_t i = 0;; i++) {
        if (object) text = skip_space(skip_space(skip_string(text)) + 1); /* key and colon */
        if (i == index || *text == '\0') return text;
        text = skip_space(skip_value(text));
        if (*text == ',') text = skip_space(text + 1);
    }
}

/* Line and column, from 1, of a place; columns count UTF-8 characters. */
static void locate(const struct ghp_node *at, size_t *line, size_t *column)
{
    const char *text = skip_space(at->doc->text);
    struct way way;

    find_way(at, &way);
    for (size_t i = 0; i < way.n; i++)
        text = enter(text, way.step[i]);
    *line = 1;
    *column = 1;
    for (const char *c = at->doc->text; c < text; c++) {
        if (*c == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)*c & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static enum ghp_status fail_at_origin(const struct ghp_node *at, enum ghp_status code,
                                      const char *problem)
{
    const struct ghp_json_origin *origin = at->doc->origin;
    char place[PLACE_SIZE];

    origin->name(origin->context, at->where, place, sizeof place);
    return GHP_FAIL(code, "%s: %s%s%s", at->doc->path, place, place[0] != '\0' ? ": " : "",
                    problem);
}

enum ghp_status(ghp_json_fail)(const struct ghp_node *at, enum ghp_status code, const char *fmt,
                               ...)
{
    char problem[PROBLEM_SIZE];
    size_t line = 1, column = 1;
    va_list arguments;

    va_start(arguments, fmt);
    vsnprintf(problem, sizeof problem, fmt, arguments);
    va_end(arguments);
    if (at->doc->origin != NULL) return fail_at_origin(at, code, problem);
    if (at->doc->text != NULL) locate(at, &line, &column);
    if (at->where[0] == '\0')
        return GHP_FAIL(code, "%s:%zu:%zu: %s", at->doc->path, line, column, problem);
    return GHP_FAIL(code, "%s:%zu:%zu: '%s': %s", at->doc->path, line, column, at->where, problem);
}
