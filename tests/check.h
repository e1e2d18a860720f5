/* tests/check.h - the few macros that ghp's tests are written in.
 *
 * Not a framework: test_NAME.c says CHECK_TEST(NAME) { ... } where a program says main; what stands there makes checks
 * and returns check_end(). A failed check prints its place and both values on stderr and is counted; the test
 * continues. A test that cannot run here calls SKIP with the reason, which ends it with 77 (CTest's "skipped"). All
 * tests of a room are one program (tests/driver.c), but each run of it is of one test. A first line that contains
 * `ghp-test: np=2,3 timeout=120` makes the test run under mpirun at each of those rank counts (see
 * cmake/GhpTest.cmake). */
#ifndef GHP_TESTS_CHECK_H
#define GHP_TESTS_CHECK_H

#include "core/base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int check_count_, check_failures_; /* of this process, helpers' checks among them */

/* The test's function, in place of main; argv[0] is its name. */
#define CHECK_TEST(name)                                                                           \
    int check_##name##_test(int argc, char **argv);                                                \
    int check_##name##_test(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)

/* Whether all cases are wanted (GHP_TEST_FULL=1, set by `./check --full`), or the few that prove each property. */
bool check_full(void);
/* How many random cases to take out of `full`: all in full runs, else a tenth; fewer than ten are not cut. */
int check_cases(int full);

/* A new folder of this process, the same one for every call. It goes at the process's end, with all that is in it. */
const char *check_folder(void);

#define CHECK(cond) check_true_((cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(a, b) check_eq_((int64_t)(a), (int64_t)(b), #a, #b, __FILE__, __LINE__)
/* |a - b| <= tol; fails on NaN. */
#define CHECK_NEAR(a, b, tol)                                                                      \
    check_near_((double)(a), (double)(b), (double)(tol), #a, #b, __FILE__, __LINE__)
#define CHECK_TEXT(a, b) check_text_((a), (b), #a, #b, __FILE__, __LINE__)
/* expr gives this enum ghp_status; prints the message where it does not. */
#define CHECK_STATUS(expr, expected) check_status_((expr), (expected), #expr, __FILE__, __LINE__)
/* The last failure's message contains this text. */
#define CHECK_MESSAGE(part) check_message_((part), __FILE__, __LINE__)
#define SKIP(reason)                                                                               \
    do {                                                                                           \
        fprintf(stderr, "skipped: %s\n", (reason));                                                \
        exit(77);                                                                                  \
    } while (0)

/* Counts a check; true if it failed and the caller has to print why. */
static inline bool check_failed_(bool ok, const char *file, int line)
{
    check_count_++;
    if (ok) return false;
    check_failures_++;
    fprintf(stderr, "%s:%d: ", file, line);
    return true;
}

static inline bool check_true_(bool ok, const char *what, const char *file, int line)
{
    if (check_failed_(ok, file, line)) fprintf(stderr, "not true: %s\n", what);
    return ok;
}

static inline bool check_eq_(int64_t a, int64_t b, const char *ta, const char *tb, const char *file,
                             int line)
{
    if (check_failed_(a == b, file, line))
        fprintf(stderr, "%s is %" PRId64 ", but %s is %" PRId64 "\n", ta, a, tb, b);
    return a == b;
}

static inline bool check_near_(double a, double b, double tol, const char *ta, const char *tb,
                               const char *file, int line)
{
    bool ok = fabs(a - b) <= tol;

    if (check_failed_(ok, file, line))
        fprintf(stderr, "%s is %.17g, but %s is %.17g: difference %.3g, allowed %.3g\n", ta, a, tb,
                b, fabs(a - b), tol);
    return ok;
}

static inline bool check_text_(const char *a, const char *b, const char *ta, const char *tb,
                               const char *file, int line)
{
    bool ok = a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;

    if (check_failed_(ok, file, line))
        fprintf(stderr, "%s is '%s', but %s is '%s'\n", ta, a != NULL ? a : "(null)", tb,
                b != NULL ? b : "(null)");
    return ok;
}

static inline bool check_status_(enum ghp_status got, enum ghp_status expected, const char *what,
                                 const char *file, int line)
{
    if (check_failed_(got == expected, file, line))
        fprintf(stderr, "%s gives '%s', not '%s'; message: %s\n", what, ghp_status_name(got),
                ghp_status_name(expected), ghp_status_message());
    return got == expected;
}

static inline bool check_message_(const char *part, const char *file, int line)
{
    bool ok = strstr(ghp_status_message(), part) != NULL;

    if (check_failed_(ok, file, line))
        fprintf(stderr, "message '%s' does not contain '%s'\n", ghp_status_message(), part);
    return ok;
}

/* The exit code of the test: 0 if every check held; 1 if one failed or none was made. */
static inline int check_end(void)
{
    if (check_count_ == 0) fprintf(stderr, "no check was made\n");
    if (check_failures_ > 0)
        fprintf(stderr, "%d of %d checks failed\n", check_failures_, check_count_);
    return check_failures_ > 0 || check_count_ == 0 ? 1 : 0;
}

#endif
