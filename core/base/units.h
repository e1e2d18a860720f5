/* core/base/units.h - quantities as people read them, sizes as people write them, and products of sizes.
 *
 * Texts are for tables and messages only: files hold plain numbers in the unit their key names.
 * Each *_text writes at most n bytes into out, always NUL-terminated, and returns out.
 *
 * Tested  tests/core/base/test_units.c */
#ifndef GHP_CORE_BASE_UNITS_H
#define GHP_CORE_BASE_UNITS_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bytes [bytes] as "512 B", "12.5 MiB", "3.00 GiB": three significant digits, powers of 1024. */
char *ghp_bytes_format(double bytes, char *out, size_t n);

/* seconds [s] as "1.24 ms", "38.0 us", "2.50 s", "3 min 05 s", "2 h 10 min". */
char *ghp_seconds_format(double seconds, char *out, size_t n);

/* The ending of a noun that is counted: "" of one, "s" of any other number. */
static inline const char *ghp_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* A count as "17", "60.6 k", "132.9 M", "15.5 G", "1.2 T": one decimal, powers of 1000. */
char *ghp_count_format(double count, char *out, size_t n);

/* Reads a size: a number, and optionally one of B, KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of
 * 1000), for example "4GiB", "1.5 GiB", "1000000".
 *
 * out   receives the size, >= 0, rounded down to whole bytes; untouched on failure        [bytes]
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (not a size, negative, or beyond 2^63 - 1) */
enum ghp_status ghp_bytes_parse(const char *text, int64_t *out);

/* Whether the product of two sizes, neither of them negative, is at most `most`. It does not overflow. */
static inline bool ghp_product_fits(int64_t a, int64_t b, int64_t most)
{
    return a == 0 || b <= most / a;
}

#endif
