/* inspect/report/page.c - see page.h. */
#include "inspect/report/page.h"

#include "core/base/text.h"
#include "core/base/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096 };

/* Makes room for n more bytes and a NUL. */
static bool reserve(struct ghp_page *page, size_t n)
{
    size_t room = page->room > 0 ? page->room : FIRST_ROOM;
    char *text;

    if (page->failed) return false;
    if (page->text != NULL && page->n + n < page->room) return true;
    while (room <= page->n + n)
        room *= 2;
    text = realloc(page->text, room);
    page->failed = text == NULL;
    if (page->failed) return false;
    page->text = text;
    page->room = room;
    return true;
}

static void put(struct ghp_page *page, const char *bytes, size_t n)
{
    if (!reserve(page, n)) return;
    memcpy(page->text + page->n, bytes, n);
    page->n += n;
    page->text[page->n] = '\0';
}

void ghp_page_add(struct ghp_page *page, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) page->failed = true;
    if (n < 0 || !reserve(page, (size_t)n)) return;
    va_start(args, fmt);
    vsnprintf(page->text + page->n, (size_t)n + 1, fmt, args);
    va_end(args);
    page->n += (size_t)n;
}

static void put_escaped(struct ghp_page *page, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *reference = ghp_text_reference((unsigned char)text[i]);

        if (reference != NULL)
            put(page, reference, strlen(reference));
        else
            put(page, text + i, 1);
    }
}

void ghp_page_text(struct ghp_page *page, const char *text)
{
    if (text != NULL) put_escaped(page, text, strlen(text));
}

/* Bytes of the first `most` characters of UTF-8. */
static size_t length_of(const char *text, int most)
{
    size_t n = 0;

    for (int characters = 0; text[n] != '\0'; n++)
        if (((unsigned char)text[n] & 0xc0) != 0x80 && characters++ == most) break;
    return n;
}

void ghp_page_name(struct ghp_page *page, const char *text, int most)
{
    if (text == NULL) return;
    if (text[length_of(text, most)] == '\0') {
        ghp_page_text(page, text);
        return;
    }
    put_escaped(page, text, length_of(text, most - 1));
    put(page, "\xe2\x80\xa6", 3);
}

void ghp_page_quote(struct ghp_page *page, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\') put(page, "\\", 1);
        put(page, byte < 0x20 ? " " : text, 1);
    }
}

enum ghp_status ghp_page_save(const struct ghp_page *page, const char *path)
{
    if (page->failed) return GHP_NO_MEMORY();
    return ghp_file_write_atomic(path, page->text != NULL ? page->text : "", page->n);
}

void ghp_page_release(struct ghp_page *page)
{
    if (page == NULL) return;
    free(page->text);
    *page = (struct ghp_page){0};
}
