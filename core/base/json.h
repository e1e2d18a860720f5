/* core/base/json.h - JSON files with errors that name the line, and readers that refuse what they do not know.
 *
 * The one header that shows Jansson: other files include this one. Not a schema language: each noun's reader asks
 * for its keys by name, type and range, and calls ghp_json_only_keys so that a misspelt key is an error.
 *
 *     struct ghp_json doc = {0};
 *     GHP_TRY(ghp_json_load(path, "ghp.plan/2", &doc));
 *     struct ghp_node root = ghp_json_root(&doc);
 *     status = ghp_json_int(&root, "workers", 1, 65536, &workers);      ... and so on ...
 *     ghp_json_release(&doc);
 *
 * Every message reads `path:line:column: problem; remedy`. The line is looked up only when an error is made.
 * Duplicate keys, text after the document and numbers beyond double's range are refused when loading.
 *
 * Tested  tests/core/base/test_json.c */
#ifndef GHP_CORE_BASE_JSON_H
#define GHP_CORE_BASE_JSON_H

#include "core/base/status.h"

#include <jansson.h>
#include <stdio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What another file calls a place in a text that ghp made from it, which has no lines of its own. */
struct ghp_json_origin {
    /* Writes at most n bytes; "" if there is nothing to call it. */
    void (*name)(const void *context, const char *where, char *out, size_t n);
    const void *context;
};

/* A loaded document; owns everything in it. */
struct ghp_json {
    json_t *root; /* the value of the whole document */
    char *path;   /* file name, or the name given to ghp_json_parse; used in messages */
    char *text;   /* the document's own bytes, NUL-terminated: where an error looks up its line */
    size_t n;     /* bytes of text without the NUL */
    const struct ghp_json_origin *origin; /* borrowed; NULL: the text is the user's own */
};

/* A place in a document; borrows from it, needs no release. */
struct ghp_node {
    const struct ghp_json *doc;
    json_t *value;   /* borrowed from doc->root */
    char where[256]; /* for example layers[3].kernel; "" is the root */
};

/* Loads a document from a file.
 *
 * path     file name
 * format   what the root's "format" key must say, for example "ghp.plan/2"; NULL: any value, not checked
 * doc      filled on success, zeroed on failure; released by the caller
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT (syntax, not an object, other format); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_json_load(const char *path, const char *format, struct ghp_json *doc);

/* The same from a NUL-terminated text; name stands in messages where a path would. */
enum ghp_status ghp_json_parse(const char *text, const char *name, const char *format,
                               struct ghp_json *doc);

/* Returns the value of a JSON text, owned by the caller; NULL if the text is not JSON or memory is short. Without
 * memory Jansson itself would drop parts of texts. */
json_t *ghp_json_value_of(const char *text);

/* Frees the document; accepts a zeroed one and NULL. */
void ghp_json_release(struct ghp_json *doc);

/* The place that is the whole document. */
struct ghp_node ghp_json_root(const struct ghp_json *doc);

/* Makes a failure at a place: `path:line:column: 'where': ` (with an origin `path: its name for it: `) and the
 * formatted problem; remedy.
 *
 * Returns   code */
enum ghp_status ghp_json_fail(const struct ghp_node *at, enum ghp_status code, const char *fmt, ...)
    GHP_PRINTF(3, 4);
#ifdef __clang_analyzer__
#define ghp_json_fail(...) GHP_KNOWN_FAILURE(ghp_json_fail(__VA_ARGS__))
#endif

/* Refuses a key of the object that is not in the NULL-terminated list; names the nearest key that is.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT (an unknown key, or the place is not an object) */
enum ghp_status ghp_json_only_keys(const struct ghp_node *object, const char *const *keys);

/* Whether the object has the key; null counts as a value. */
bool ghp_json_has(const struct ghp_node *object, const char *key);

/* The value of a key, of any type.
 *
 * child may be the same struct as object.
 * Returns   GHP_OK; GHP_ERR_FORMAT (key absent, or the place is not an object) */
enum ghp_status ghp_json_get(const struct ghp_node *object, const char *key,
                             struct ghp_node *child);

/* Checks that the object's key "format" says `format`; one of the same kind in another version is refused as such.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT */
enum ghp_status ghp_json_format(const struct ghp_node *object, const char *format);

/* Whether two formats are alike but for their version: "ghp.plan/1" and "ghp.plan/2". */
bool ghp_json_is_kind(const char *format, const char *other);

/* The value of a key that must be an array, and its length in *n (n may be NULL). */
enum ghp_status ghp_json_array(const struct ghp_node *object, const char *key,
                               struct ghp_node *child, size_t *n);

/* Item i of an array; GHP_ERR_FORMAT if the place is not an array or does not have an item i. child may be the same as
 * array. */
enum ghp_status ghp_json_item(const struct ghp_node *array, size_t i, struct ghp_node *child);

/* Readers of one value of an object. Each checks the type and the range and leaves *out untouched on failure.
 *
 * object   an object; key is one of its keys
 * min,max  smallest and largest value allowed, both included
 * out      receives the value
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT (absent, wrong type); GHP_ERR_INPUT (outside the range); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_json_int(const struct ghp_node *object, const char *key, int64_t min,
                             int64_t max, int64_t *out);
/* Whole numbers are accepted too. */
enum ghp_status ghp_json_real(const struct ghp_node *object, const char *key, double min,
                              double max, double *out);
enum ghp_status ghp_json_bool(const struct ghp_node *object, const char *key, bool *out);
/* *out is malloc'd; the caller frees it. */
enum ghp_status ghp_json_text(const struct ghp_node *object, const char *key, char **out);
/* Copies into buf of n bytes; a text that does not fit is GHP_ERR_INPUT. */
enum ghp_status ghp_json_text_n(const struct ghp_node *object, const char *key, char *buf,
                                size_t n);
/* A text that is one of the NULL-terminated names; *out receives its index. */
enum ghp_status ghp_json_choice(const struct ghp_node *object, const char *key,
                                const char *const *names, int *out);
/* The same of a value itself. */
enum ghp_status ghp_json_choice_of(const struct ghp_node *value, const char *const *names,
                                   int *out);

/* The same readers for keys that may be absent: then GHP_OK and *out stays as it is.  null is not absent. */
enum ghp_status ghp_json_opt_int(const struct ghp_node *object, const char *key, int64_t min,
                                 int64_t max, int64_t *out);
enum ghp_status ghp_json_opt_real(const struct ghp_node *object, const char *key, double min,
                                  double max, double *out);
enum ghp_status ghp_json_opt_bool(const struct ghp_node *object, const char *key, bool *out);
enum ghp_status ghp_json_opt_text(const struct ghp_node *object, const char *key, char **out);
enum ghp_status ghp_json_opt_text_n(const struct ghp_node *object, const char *key, char *buf,
                                    size_t n);
enum ghp_status ghp_json_opt_choice(const struct ghp_node *object, const char *key,
                                    const char *const *names, int *out);

/* A copy of all that is in a value, owned by the caller; NULL: no memory. Jansson's own leave out what they have no
 * memory for. */
json_t *ghp_json_copy(const json_t *value);

/* Puts a value under a key of an object, or at the end of an array; the value is taken over. Writers look at *failed
 * once, at the end. It is set if the object, array or value is NULL or cannot grow, which means that memory is short or
 * a number is not finite. It is never cleared. The value is then missing, so the document must not be used. */
void ghp_json_put(json_t *object, const char *key, json_t *value, bool *failed);
void ghp_json_append(json_t *array, json_t *value, bool *failed);

/* Writes a value as a file, atomically: indented, keys in the order they were set, numbers that read back to the
 * same double, a newline at the end.  root is borrowed.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY; GHP_ERR_INTERNAL (root is NULL or cannot be written) */
enum ghp_status ghp_json_save(const char *path, json_t *root);

/* The same text in memory; *text is malloc'd, with the newline, and freed by the caller. */
enum ghp_status ghp_json_text_of(json_t *root, char **text);
/* The value in one line without spaces, owned by the caller; NULL: there was no memory. json_dumps would leave keys out
 * then, and succeed. */
char *ghp_json_line_of(const json_t *root);

/* Prints the same text and flushes.  root is released; NULL: there was no memory for it.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_json_print(json_t *root, FILE *out);
/* The same of what ghp_json_put made: failed makes it GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_json_print_whole(json_t *root, bool failed, FILE *out);

#endif
