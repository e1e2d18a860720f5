/* core/base/text.h - the small texts inside messages: numbers, allowed ranges, "did you mean".
 *
 * Shared by the readers of files (json) and of command lines (opts), so that both speak alike.
 *
 * Tested  tests/core/base/test_units.c */
#ifndef GHP_CORE_BASE_TEXT_H
#define GHP_CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The shortest decimal that reads back as the same double; writes at most n bytes (32 are enough), returns out. */
char *ghp_text_number(double value, char *out, size_t n);

/* An allowed range, both ends included: "from 1 to 8", "of at least 1", "of at most 8", or "" if neither end
 * bounds (an end bounds unless it is infinite or at least 2^63 - 1 in size). Writes at most n bytes, returns out. */
char *ghp_text_range(double min, double max, char *out, size_t n);

/* The name nearest to `text` by edit distance in a NULL-terminated list, or NULL if none is near (more than a
 * third of the letters differ). */
const char *ghp_text_nearest(const char *text, const char *const *names);

/* Names joined by ", ", cut with "..." if they do not fit into n bytes; returns out. */
char *ghp_text_join(const char *const *names, char *out, size_t n);

/* Whether a text begins, or ends, with another; every text does with "". */
bool ghp_text_begins(const char *text, const char *start);
bool ghp_text_ends(const char *text, const char *end);

/* Whether the bytes are UTF-8, as JSON files want their texts. */
bool ghp_text_is_utf8(const char *text);

/* Makes a text from a file safe to print: control characters (C0, DEL, C1) and bytes that are not UTF-8 become '?', in
 * place. A terminal takes them for commands, and a line break would make one message look like two. */
void ghp_text_printable(char *text);

/* What stands for a byte in markup (XML, HTML), or NULL if the byte stands for itself. */
const char *ghp_text_reference(unsigned char byte);

#endif
