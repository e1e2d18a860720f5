/* tests/core/base/no_memory.h - runs a function again and again while one allocation after the other fails.
 *
 * The test program's own malloc and its kin stand before the C library's, so that allocations of ghp, Jansson and
 * protobuf-c fail alike. Sanitizers have allocators of their own: there the function runs once, unharmed. For the one
 * source file of a test. */
#ifndef GHP_TESTS_CORE_BASE_NO_MEMORY_H
#define GHP_TESTS_CORE_BASE_NO_MEMORY_H

#include "tests/check.h"

#include <errno.h>

enum { NO_MEMORY_RUNS = 20000 };

static long no_memory_after = -1; /* allocations until one fails; negative: none fails */

#if defined(__SANITIZE_ADDRESS__)
#define NO_MEMORY_FAILS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NO_MEMORY_FAILS false
#endif
#endif
#if !defined(NO_MEMORY_FAILS) && !defined(__GLIBC__)
#define NO_MEMORY_FAILS false
#endif

#if !defined(NO_MEMORY_FAILS)
#define NO_MEMORY_FAILS true
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static bool no_memory_now(void)
{
    if (no_memory_after < 0 || no_memory_after-- > 0) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return no_memory_now() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return no_memory_now() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return no_memory_now() ? NULL : __libc_realloc(old, size);
}
#endif

/* Runs f with allocation 0 failing, then 1, ... until a run needs no further one. Each run must give GHP_OK, with all
 * that it makes whole, or GHP_ERR_NO_MEMORY.
 *
 * f   does its work, looks at what came of it, undoes it, and says how the work went */
static inline void no_memory_each(const char *what, enum ghp_status (*f)(void *context),
                                  void *context)
{
    long refused = 0;

    for (long run = 0; run < NO_MEMORY_RUNS; run++) {
        int failures = check_failures_;
        enum ghp_status status;
        bool spent;

        no_memory_after = NO_MEMORY_FAILS ? run : -1;
        status = f(context);
        spent = NO_MEMORY_FAILS && no_memory_after < 0;
        no_memory_after = -1;
        if (!spent) {
            CHECK_STATUS(status, GHP_OK);
            CHECK(refused > 0 || !NO_MEMORY_FAILS);
            return;
        }
        refused += status == GHP_ERR_NO_MEMORY;
        CHECK(status == GHP_OK || status == GHP_ERR_NO_MEMORY);
        if (check_failures_ > failures)
            fprintf(stderr, "  %s, allocation %ld: '%s', message: %s\n", what, run,
                    ghp_status_name(status), ghp_status_message());
    }
    CHECK(false && "ever done");
}

#endif
