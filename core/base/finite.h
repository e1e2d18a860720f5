/* core/base/finite.h - whether numbers are finite: neither infinite nor NaN.
 *
 * Tested   tests/core/base/test_finite.c */
#ifndef GHP_CORE_BASE_FINITE_H
#define GHP_CORE_BASE_FINITE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether all n numbers are finite. Each has 4 or 8 bytes; any alignment will do. Local. */
bool ghp_are_finite(const void *numbers, int64_t n, int bytes);
/* How many of them are not finite. Local. */
int64_t ghp_count_not_finite(const void *numbers, int64_t n, int bytes);

#endif
