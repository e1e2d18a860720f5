/* core/base/json.c - loading, saving, and the readers of values. base/json_position.c finds the place of an error. */
#include "core/base/json.h"

#include "core/base/file.h"
#include "core/base/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SIZE = 1024, NAMES_SIZE = 512 };

/* What the user can do about a syntax error that Jansson says in this text. */
static const char *syntax_remedy(enum json_error_code code, const char *text)
{
    switch (code) {
    case json_error_premature_end_of_input: return "the file is cut short; write it again";
    case json_error_duplicate_key: return "keep one of the two keys";
    case json_error_numeric_overflow: return "use a number that a double or int64 can hold";
    case json_error_end_of_input_expected: return "remove the text after the document";
    case json_error_invalid_utf8: return "store the file as UTF-8";
    default: break;
    }
    if (strstr(text, "near '}'") != NULL || strstr(text, "near ']'") != NULL)
        return "correct the JSON there, which often has one comma too many";
    return strstr(text, "near end of file") != NULL
               ? "the file is empty, or cut short; write it again"
               : "correct the JSON there";
}

static enum ghp_status fail_syntax(const char *path, const json_error_t *error)
{
    char text[JSON_ERROR_TEXT_LENGTH];
    enum json_error_code code = json_error_code(error);
    int line = error->line > 0 ? error->line : 1, column = error->column > 0 ? error->column : 1;

    if (code == json_error_out_of_memory) return GHP_NO_MEMORY();
    snprintf(text, sizeof text, "%s", error->text);
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    return GHP_FAIL(GHP_ERR_FORMAT, "%s:%d:%d: %s; %s", path, line, column, text,
                    syntax_remedy(code, text));
}

bool ghp_json_is_kind(const char *format, const char *other)
{
    size_t n = strcspn(format, "/");

    return strcspn(other, "/") == n && strncmp(format, other, n) == 0;
}

enum ghp_status ghp_json_format(const struct ghp_node *object, const char *format)
{
    struct ghp_node node;
    const char *found;

    GHP_TRY(ghp_json_get(object, "format", &node));
    found = json_string_value(node.value);
    if (found != NULL && strcmp(found, format) == 0) return GHP_OK;
    if (found != NULL && ghp_json_is_kind(found, format))
        return ghp_json_fail(&node, GHP_ERR_FORMAT,
                             "the format is '%s', but this version of ghp reads '%s'; make the "
                             "file again with the tool that wrote it",
                             found, format);
    return ghp_json_fail(&node, GHP_ERR_FORMAT, "the format is '%s'; give a file of format '%s'",
                         found != NULL ? found : "not a text", format);
}

/* Checks that the root is an object that names the format. */
static enum ghp_status check_format(const struct ghp_json *doc, const char *format)
{
    struct ghp_node root = ghp_json_root(doc);

    if (!json_is_object(doc->root))
        return ghp_json_fail(&root, GHP_ERR_FORMAT, "the document is not an object; put it in { }");
    if (!ghp_json_has(&root, "format"))
        return ghp_json_fail(
            &root, GHP_ERR_FORMAT,
            "key 'format' is missing; a file for this place has \"format\": \"%s\"", format);
    return ghp_json_format(&root, format);
}

/* Without memory Jansson's parser speaks of syntax, or cuts a text short and continues; so its allocations are
 * watched. */
static atomic_bool memory_watched;
static _Thread_local bool short_of_memory;

static void *take(size_t n)
{
    void *memory = malloc(n);

    if (memory == NULL) short_of_memory = true;
    return memory;
}

/* Refuses what ghp-inspect prints of a file, which leaves out parts of the file. */
static enum ghp_status check_whole(const struct ghp_json *doc)
{
    struct ghp_node root = ghp_json_root(doc);

    if (!json_is_object(doc->root) || !ghp_json_has(&root, "summary_of")) return GHP_OK;
    return ghp_json_fail(&root, GHP_ERR_FORMAT,
                         "this is what ghp-inspect --json prints of a file; give that file");
}

static void watch_memory(void)
{
    if (!atomic_exchange(&memory_watched, true)) json_set_alloc_funcs(take, free);
    short_of_memory = false;
}

json_t *ghp_json_value_of(const char *text)
{
    json_t *value;

    watch_memory();
    value = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (!short_of_memory) return value;
    json_decref(value);
    return NULL;
}

/* Parses doc->text, which doc owns already; releases doc on failure. */
static enum ghp_status parse_owned(const char *name, const char *format, struct ghp_json *doc)
{
    enum ghp_status status = GHP_OK;
    json_error_t error;

    if (doc->n >= 3 && memcmp(doc->text, "\xef\xbb\xbf", 3) ==
                           0) { /* the mark that some editors begin UTF-8 with */
        doc->n -= 3;
        memmove(doc->text, doc->text + 3, doc->n + 1);
    }
    doc->path = strdup(name);
    if (doc->path == NULL) {
        ghp_json_release(doc);
        return GHP_NO_MEMORY();
    }
    if (memchr(doc->text, '\0', doc->n) !=
        NULL) { /* Jansson takes one after a number for a space */
        ghp_json_release(doc);
        return GHP_FAIL(GHP_ERR_FORMAT,
                        "%s:1:1: there is a zero byte in the file; store it as UTF-8", name);
    }
    watch_memory();
    doc->root = json_loadb(doc->text, doc->n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (short_of_memory)
        status = GHP_NO_MEMORY();
    else if (doc->root == NULL)
        status = fail_syntax(name, &error);
    else
        status = check_whole(doc);
    if (status == GHP_OK && format != NULL) status = check_format(doc, format);
    if (status != GHP_OK) ghp_json_release(doc);
    return status;
}

enum ghp_status ghp_json_load(const char *path, const char *format, struct ghp_json *doc)
{
    *doc = (struct ghp_json){0};
    GHP_TRY(ghp_file_read(path, &doc->text, &doc->n));
    return parse_owned(path, format, doc);
}

enum ghp_status ghp_json_parse(const char *text, const char *name, const char *format,
                               struct ghp_json *doc)
{
    *doc = (struct ghp_json){0};
    doc->text = strdup(text);
    if (doc->text == NULL) return GHP_NO_MEMORY();
    doc->n = strlen(text);
    return parse_owned(name, format, doc);
}

void ghp_json_release(struct ghp_json *doc)
{
    if (doc == NULL) return;
    json_decref(doc->root);
    free(doc->path);
    free(doc->text);
    *doc = (struct ghp_json){0};
}

struct ghp_node ghp_json_root(const struct ghp_json *doc)
{
    return (struct ghp_node){.doc = doc, .value = doc->root};
}

/* What a value is, for messages. */
static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a text";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    }
    return "unknown";
}

static enum ghp_status fail_type(const struct ghp_node *at, const char *wanted)
{
    return ghp_json_fail(at, GHP_ERR_FORMAT, "this is %s; write %s", type_name(at->value), wanted);
}

enum ghp_status ghp_json_only_keys(const struct ghp_node *object, const char *const *keys)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object->value)) return fail_type(object, "an object");
    json_object_foreach(object->value, key, value)
    {
        char names[NAMES_SIZE];
        struct ghp_node at;
        const char *nearest;
        size_t i = 0;

        while (keys[i] != NULL && strcmp(keys[i], key) != 0)
            i++;
        if (keys[i] != NULL) continue;
        GHP_TRY(ghp_json_get(object, key, &at));
        nearest = ghp_text_nearest(key, keys);
        if (nearest != NULL)
            return ghp_json_fail(&at, GHP_ERR_FORMAT, "unknown key '%s'; did you mean '%s'?", key,
                                 nearest);
        return ghp_json_fail(&at, GHP_ERR_FORMAT, "unknown key '%s'; use one of %s", key,
                             ghp_text_join(keys, names, sizeof names));
    }
    return GHP_OK;
}

bool ghp_json_has(const struct ghp_node *object, const char *key)
{
    return json_object_get(object->value, key) != NULL;
}

enum ghp_status ghp_json_get(const struct ghp_node *object, const char *key, struct ghp_node *child)
{
    struct ghp_node found = {.doc = object->doc};

    if (!json_is_object(object->value)) return fail_type(object, "an object");
    found.value = json_object_get(object->value, key);
    if (found.value == NULL)
        return ghp_json_fail(object, GHP_ERR_FORMAT, "key '%s' is missing; add it", key);
    /* a place too deep for `where` is cut: its errors then point at the part that fits */
    snprintf(found.where, sizeof found.where, "%s%s%s", object->where,
             object->where[0] != '\0' ? "." : "", key);
    *child = found;
    return GHP_OK;
}

enum ghp_status ghp_json_array(const struct ghp_node *object, const char *key,
                               struct ghp_node *child, size_t *n)
{
    struct ghp_node found;

    GHP_TRY(ghp_json_get(object, key, &found));
    if (!json_is_array(found.value)) return fail_type(&found, "an array");
    if (n != NULL) *n = json_array_size(found.value);
    *child = found;
    return GHP_OK;
}

enum ghp_status ghp_json_item(const struct ghp_node *array, size_t i, struct ghp_node *child)
{
    struct ghp_node found = {.doc = array->doc};

    if (!json_is_array(array->value)) return fail_type(array, "an array");
    found.value = json_array_get(array->value, i);
    if (found.value == NULL)
        return ghp_json_fail(array, GHP_ERR_FORMAT, "there are %zu items; give at least %zu",
                             json_array_size(array->value), i + 1);
    snprintf(found.where, sizeof found.where, "%s[%zu]", array->where, i);
    *child = found;
    return GHP_OK;
}

enum ghp_status ghp_json_int(const struct ghp_node *object, const char *key, int64_t min,
                             int64_t max, int64_t *out)
{
    char range[80];
    struct ghp_node at;
    int64_t value;

    GHP_TRY(ghp_json_get(object, key, &at));
    if (!json_is_integer(at.value)) return fail_type(&at, "a whole number");
    value = (int64_t)json_integer_value(at.value);
    if (value < min || value > max)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "%lld is out of range; use a whole number %s",
                             (long long)value,
                             ghp_text_range((double)min, (double)max, range, sizeof range));
    *out = value;
    return GHP_OK;
}

enum ghp_status ghp_json_real(const struct ghp_node *object, const char *key, double min,
                              double max, double *out)
{
    char range[80], number[32];
    struct ghp_node at;
    double value;

    GHP_TRY(ghp_json_get(object, key, &at));
    if (!json_is_number(at.value)) return fail_type(&at, "a number");
    value = json_number_value(at.value);
    if (!(value >= min && value <= max))
        return ghp_json_fail(&at, GHP_ERR_INPUT, "%s is out of range; use a number %s",
                             ghp_text_number(value, number, sizeof number),
                             ghp_text_range(min, max, range, sizeof range));
    *out = value;
    return GHP_OK;
}

enum ghp_status ghp_json_bool(const struct ghp_node *object, const char *key, bool *out)
{
    struct ghp_node at;

    GHP_TRY(ghp_json_get(object, key, &at));
    if (!json_is_boolean(at.value)) return fail_type(&at, "true or false");
    *out = json_is_true(at.value);
    return GHP_OK;
}

enum ghp_status ghp_json_text(const struct ghp_node *object, const char *key, char **out)
{
    struct ghp_node at;
    char *copy;

    GHP_TRY(ghp_json_get(object, key, &at));
    if (!json_is_string(at.value)) return fail_type(&at, "a text");
    copy = strdup(json_string_value(at.value));
    if (copy == NULL) return GHP_NO_MEMORY();
    *out = copy;
    return GHP_OK;
}

enum ghp_status ghp_json_text_n(const struct ghp_node *object, const char *key, char *buf, size_t n)
{
    struct ghp_node at;

    GHP_TRY(ghp_json_get(object, key, &at));
    if (!json_is_string(at.value)) return fail_type(&at, "a text");
    if (json_string_length(at.value) >= n)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "the text has %zu bytes; use at most %zu",
                             json_string_length(at.value), n > 0 ? n - 1 : 0);
    memcpy(buf, json_string_value(at.value), json_string_length(at.value) + 1);
    return GHP_OK;
}

enum ghp_status ghp_json_choice(const struct ghp_node *object, const char *key,
                                const char *const *names, int *out)
{
    struct ghp_node at;

    GHP_TRY(ghp_json_get(object, key, &at));
    return ghp_json_choice_of(&at, names, out);
}

enum ghp_status ghp_json_choice_of(const struct ghp_node *value, const char *const *names, int *out)
{
    char list[NAMES_SIZE];
    const char *text;

    if (!json_is_string(value->value)) return fail_type(value, "a text");
    text = json_string_value(value->value);
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], text) != 0) continue;
        *out = i;
        return GHP_OK;
    }
    return ghp_json_fail(value, GHP_ERR_FORMAT, "unknown name '%s'; use one of %s", text,
                         ghp_text_join(names, list, sizeof list));
}

/* The optional readers: absent keys leave *out alone. A value that is not an object is the plain reader's error. */
static bool absent(const struct ghp_node *object, const char *key)
{
    return json_is_object(object->value) && !ghp_json_has(object, key);
}

enum ghp_status ghp_json_opt_int(const struct ghp_node *object, const char *key, int64_t min,
                                 int64_t max, int64_t *out)
{
    return absent(object, key) ? GHP_OK : ghp_json_int(object, key, min, max, out);
}

enum ghp_status ghp_json_opt_real(const struct ghp_node *object, const char *key, double min,
                                  double max, double *out)
{
    return absent(object, key) ? GHP_OK : ghp_json_real(object, key, min, max, out);
}

enum ghp_status ghp_json_opt_bool(const struct ghp_node *object, const char *key, bool *out)
{
    return absent(object, key) ? GHP_OK : ghp_json_bool(object, key, out);
}

enum ghp_status ghp_json_opt_text(const struct ghp_node *object, const char *key, char **out)
{
    return absent(object, key) ? GHP_OK : ghp_json_text(object, key, out);
}

enum ghp_status ghp_json_opt_text_n(const struct ghp_node *object, const char *key, char *buf,
                                    size_t n)
{
    return absent(object, key) ? GHP_OK : ghp_json_text_n(object, key, buf, n);
}

enum ghp_status ghp_json_opt_choice(const struct ghp_node *object, const char *key,
                                    const char *const *names, int *out)
{
    return absent(object, key) ? GHP_OK : ghp_json_choice(object, key, names, out);
}

json_t *ghp_json_copy(const json_t *value)
{
    json_t *copy = json_deep_copy(value);

    if (copy != NULL && json_equal(copy, value)) return copy;
    json_decref(copy);
    return NULL;
}

void ghp_json_put(json_t *object, const char *key, json_t *value, bool *failed)
{
    if (json_object_set_new(object, key, value) != 0) *failed = true;
}

void ghp_json_append(json_t *array, json_t *value, bool *failed)
{
    if (json_array_append_new(array, value) != 0) *failed = true;
}

/* A text that grows. */
struct growing {
    char *text;
    size_t n, max;
    bool failed;
};

/* Remembers that it failed: Jansson 2.14 does not look at what it returns for the key of an object. */
static int grow_by(const char *bytes, size_t n, void *context)
{
    struct growing *g = context;

    if (!g->failed && g->n + n + 2 > g->max) { /* the newline and the NUL after it */
        size_t max = 2 * (g->n + n + 2);
        char *text = realloc(g->text, max);

        g->failed = text == NULL;
        if (text != NULL) {
            g->text = text;
            g->max = max;
        }
    }
    if (g->failed) return -1;
    memcpy(g->text + g->n, bytes, n);
    g->n += n;
    return 0;
}

/* The value's text with `end` after it, owned by the caller; NULL: there was no memory. */
static char *dump(const json_t *root, size_t flags, const char *end)
{
    struct growing g = {0};

    if (json_dump_callback(root, grow_by, &g, flags | JSON_ENCODE_ANY) != 0 || g.failed) {
        free(g.text);
        return NULL;
    }
    memcpy(g.text + g.n, end, strlen(end) + 1);
    return g.text;
}

enum ghp_status ghp_json_text_of(json_t *root, char **text)
{
    *text = NULL;
    if (root == NULL) return GHP_FAIL(GHP_ERR_INTERNAL, "no JSON value to write; report this");
    *text = dump(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17), "\n");
    return *text != NULL ? GHP_OK : GHP_NO_MEMORY();
}

char *ghp_json_line_of(const json_t *root)
{
    return dump(root, JSON_COMPACT, "");
}

enum ghp_status ghp_json_save(const char *path, json_t *root)
{
    enum ghp_status status;
    char *text;

    GHP_TRY(ghp_json_text_of(root, &text));
    status = ghp_file_write_atomic(path, text, strlen(text));
    free(text);
    return status;
}

enum ghp_status ghp_json_print(json_t *root, FILE *out)
{
    char *text = NULL;
    enum ghp_status status = root != NULL ? ghp_json_text_of(root, &text) : GHP_NO_MEMORY();

    if (status == GHP_OK) {
        fputs(text, out);
        status = ghp_file_flush(out, "the result");
    }
    free(text);
    json_decref(root);
    return status;
}

enum ghp_status ghp_json_print_whole(json_t *root, bool failed, FILE *out)
{
    if (failed) json_decref(root);
    return ghp_json_print(failed ? NULL : root, out);
}
