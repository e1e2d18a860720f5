/* core/base/status.h - how a ghp function says that it failed, and how that travels to main.
 *
 * A failure is made once with GHP_FAIL (which stores a message for this thread), passed up with GHP_TRY or
 * GHP_TRY_GOTO, and printed once, by main, which exits with ghp_status_exit_code. Nothing here prints,
 * except GHP_ASSERT, which is for ghp's own bugs and ends the program.
 *
 *     if (batch % workers != 0)
 *         return GHP_FAIL(GHP_ERR_INPUT, "cannot use %d workers: ...; use 4 or 8", workers);
 *
 * Adding a status: one line in GHP_STATUS_LIST.
 *
 * Tested  tests/core/base/test_status.c */
#ifndef GHP_CORE_BASE_STATUS_H
#define GHP_CORE_BASE_STATUS_H

#include <stddef.h>
#include <stdint.h>

/* X(symbol, value, exit code, name): the one list of statuses. */
#define GHP_STATUS_LIST(X)                                                                         \
    X(GHP_OK, 0, 0, "ok")                                                                          \
    X(GHP_ERR_USAGE, 1, 2, "bad usage")           /* command line */                               \
    X(GHP_ERR_IO, 2, 1, "input or output failed") /* open, read, write, rename */                  \
    X(GHP_ERR_FORMAT, 3, 1, "malformed file")     /* syntax, wrong type, unknown key */            \
    X(GHP_ERR_INPUT, 4, 1, "unusable input")      /* well-formed, but cannot be used */            \
    X(GHP_ERR_NO_MEMORY, 5, 1, "out of memory")                                                    \
    X(GHP_ERR_MISSING, 6, 1, "missing entry")       /* for example a profile lacks an entry */     \
    X(GHP_ERR_INFEASIBLE, 7, 3, "no feasible plan") /* sound question, answer "no" */              \
    X(GHP_ERR_COMM, 8, 1, "communication failed")                                                  \
    X(GHP_ERR_BACKEND, 9, 1, "backend failed")                                                     \
    X(GHP_ERR_INTERNAL, 10, 1, "internal error")                                                   \
    X(GHP_ERR_DIVERGED, 11, GHP_EXIT_DIVERGED, "training diverged") /* would again */

/* The exit code of a training whose numbers are not finite any more: the same again ends the same. */
enum { GHP_EXIT_DIVERGED = 5 };

/* The exit code of a training that a signal ended in order, with a checkpoint: no failure, but not done. */
enum { GHP_EXIT_STOPPED = 4 };

#define GHP_STATUS_ENUM_ENTRY(symbol, value, exit_code, name) symbol = (value),
enum ghp_status { GHP_STATUS_LIST(GHP_STATUS_ENUM_ENTRY) };
#undef GHP_STATUS_ENUM_ENTRY

#ifdef __cplusplus /* kernels of GPUs read some of core's headers */
#define GHP_NORETURN [[noreturn]]
#else
#define GHP_NORETURN _Noreturn
#endif
#if defined(__GNUC__)
#define GHP_PRINTF(format_index, first_argument)                                                   \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define GHP_PRINTF(format_index, first_argument)
#endif

/* Tells clang's analyzer, which sees one file at a time, that a status is not GHP_OK. Macros that it alone sees put this
 * around functions that make failures; these are defined with their names in parentheses, out of a macro's way. */
#ifdef __clang_analyzer__
#define GHP_KNOWN_FAILURE(expr)                                                                    \
    ({                                                                                             \
        enum ghp_status ghp_failure_ = (expr);                                                     \
        if (ghp_failure_ == GHP_OK) __builtin_unreachable();                                       \
        ghp_failure_;                                                                              \
    })
#endif

/* Makes a failure: an expression of type enum ghp_status whose value is `code` (never GHP_OK).
 * The rest is a printf format and its arguments: lower case, no full stop, problem; remedy. */
#ifdef __clang_analyzer__
#define GHP_FAIL(code, ...) GHP_KNOWN_FAILURE(ghp_status_fail((code), __VA_ARGS__))
#else
#define GHP_FAIL(code, ...) ghp_status_fail((code), __VA_ARGS__)
#endif

/* The failure of every allocation. */
#define GHP_NO_MEMORY() GHP_FAIL(GHP_ERR_NO_MEMORY, "out of memory")

/* Passes a failure to the caller: returns from the function it is written in. */
#define GHP_TRY(expr)                                                                              \
    do {                                                                                           \
        enum ghp_status ghp_try_status_ = (expr);                                                  \
        if (ghp_try_status_ != GHP_OK) return ghp_try_status_;                                     \
    } while (0)

/* Passes a failure to this function's one exit: stores it in the variable `status`, jumps to `label`. */
#define GHP_TRY_GOTO(status, expr, label)                                                          \
    do {                                                                                           \
        (status) = (expr);                                                                         \
        if ((status) != GHP_OK) goto label;                                                        \
    } while (0)

/* Always on: a condition that only a bug in ghp can break. Prints it and aborts. */
#define GHP_ASSERT(cond) ((cond) ? (void)0 : ghp_status_assert_failed(#cond, __FILE__, __LINE__))

/* Always on: two whole numbers that only a bug in ghp can make unequal. Prints both and aborts. */
#define GHP_ASSERT_EQ(a, b)                                                                        \
    ghp_status_assert_equal((int64_t)(a), (int64_t)(b), #a " == " #b, __FILE__, __LINE__)

/* Stores this thread's message, replacing the last one; it is one line, safe to print (ghp_text_printable). Use
 * GHP_FAIL.  The format's own arguments may be
 * ghp_status_message(), so that a message can be wrapped.
 *
 * Returns   code
 * Local */
enum ghp_status ghp_status_fail(enum ghp_status code, const char *fmt, ...) GHP_PRINTF(2, 3);

/* Puts context in front of this thread's stored message: prefix, ": ", message. */
void ghp_status_prefix(const char *fmt, ...) GHP_PRINTF(1, 2);

/* This thread's last message, "" if nothing failed yet; valid until the next failure of this thread. */
const char *ghp_status_message(void);

/* "malformed file" and the like; "unknown status" for a value outside the list. */
const char *ghp_status_name(enum ghp_status status);

/* The exit code of a tool that ends with this status: 0 done, 1 failed, 2 bad usage, 3 answer "no". */
int ghp_status_exit_code(enum ghp_status status);

/* n * size zeroed bytes, aligned as malloc aligns; free with free().  n * size of 0 gives a pointer too.
 *
 * Returns   NULL if the product overflows or memory is short: the caller returns GHP_NO_MEMORY() */
void *ghp_alloc(size_t n, size_t size);

/* Use GHP_ASSERT and GHP_ASSERT_EQ. */
GHP_NORETURN void ghp_status_assert_failed(const char *what, const char *file, int line);
void ghp_status_assert_equal(int64_t a, int64_t b, const char *what, const char *file, int line);

#ifdef __clang_analyzer__ /* it then knows what is allocated, and that this is zeroed */
#include <stdlib.h>
#define ghp_alloc(n, size) calloc((n), (size))
#undef GHP_ASSERT_EQ
#define GHP_ASSERT_EQ(a, b) GHP_ASSERT((a) == (b))
#endif

#endif
