/* core/base/status.c - how a ghp function says that it failed. The message is kept per thread. */
#include "core/base/status.h"

#include "core/base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SIZE = 2048 }; /* longer messages are cut */

static _Thread_local char message[MESSAGE_SIZE];

enum ghp_status ghp_status_fail(enum ghp_status code, const char *fmt, ...)
{
    char text[MESSAGE_SIZE];
    va_list arguments;

    GHP_ASSERT(code != GHP_OK);
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    ghp_text_printable(text);
    memcpy(message, text, sizeof message);
    return code;
}

void ghp_status_prefix(const char *fmt, ...)
{
    char text[MESSAGE_SIZE];
    va_list arguments;
    size_t n, rest;

    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    ghp_text_printable(text);
    n = strnlen(text, sizeof text - 3);
    memcpy(text + n, ": ", 3);
    n += 2;
    rest = strnlen(message, sizeof text - n - 1);
    memcpy(text + n, message, rest);
    text[n + rest] = '\0';
    memcpy(message, text, sizeof message);
}

const char *ghp_status_message(void)
{
    return message;
}

const char *ghp_status_name(enum ghp_status status)
{
    switch (status) {
#define NAME_CASE(symbol, value, exit_code, name)                                                  \
    case symbol: return name;
        GHP_STATUS_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "unknown status";
}

int ghp_status_exit_code(enum ghp_status status)
{
    switch (status) {
#define EXIT_CASE(symbol, value, exit_code, name)                                                  \
    case symbol: return exit_code;
        GHP_STATUS_LIST(EXIT_CASE)
#undef EXIT_CASE
    }
    return 1;
}

void *(ghp_alloc)(size_t n, size_t size)
{
    if (n == 0 || size == 0) return calloc(1, 1);
    if (n > SIZE_MAX / size) return NULL; /* calloc knows too, but sanitizers stop there */
    return calloc(n, size);
}

_Noreturn void ghp_status_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: internal error: not true: %s\n", file, line, what);
    abort();
}

void ghp_status_assert_equal(int64_t a, int64_t b, const char *what, const char *file, int line)
{
    if (a == b) return;
    fprintf(stderr, "%s:%d: internal error: not true: %s (%" PRId64 " and %" PRId64 ")\n", file,
            line, what, a, b);
    abort();
}
