/* inspect/report/page.h - a growing text for markup, with every foreign name escaped.
 *
 * Not a template language. ghp_page_add is for ghp's own markup and numbers; whatever comes from a file goes through
 * ghp_page_text, ghp_page_name or ghp_page_quote, so that no name can become markup. If memory runs out, ghp_page_save
 * reports it, so the calls before it need no check.
 *
 * Call order: a zeroed page, add and text ..., ghp_page_save, ghp_page_release.
 *
 * Tested  tests/inspect/report/test_page.c */
#ifndef GHP_INSPECT_REPORT_PAGE_H
#define GHP_INSPECT_REPORT_PAGE_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct ghp_page {
    char *text; /* n bytes and a NUL; owned; NULL while empty */
    size_t n, room;
    bool failed; /* memory was short */
};

/* Adds ghp's own markup; arguments are numbers and constants, never text from a file. */
void ghp_page_add(struct ghp_page *page, const char *fmt, ...) GHP_PRINTF(2, 3);

/* Adds a text as content or attribute value of HTML, SVG and XML: & < > " ' as references, characters that XML does not
 * allow as U+FFFD.  NULL is "". */
void ghp_page_text(struct ghp_page *page, const char *text);

/* The same, cut to at most `most` characters with an ellipsis at the end. */
void ghp_page_name(struct ghp_page *page, const char *text, int most);

/* Adds a text inside a quoted string of Graphviz: a backslash before " and \, blanks for control characters. */
void ghp_page_quote(struct ghp_page *page, const char *text);

/* Writes the page as a file, atomically.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY (now or while adding) */
enum ghp_status ghp_page_save(const struct ghp_page *page, const char *path);

void ghp_page_release(struct ghp_page *page); /* accepts a zeroed one */

#endif
