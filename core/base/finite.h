/* core/base/finite.h - whether numbers are: neither infinite nor NaN.
 *
 * Tested   tests/core/base/test_finite.c */
#ifndef GHP_CORE_BASE_FINITE_H
#define GHP_CORE_BASE_FINITE_H

#include <stdbool.h>
#include <stdint.h>

/* Of n numbers of 4 or 8 bytes each, at any alignment that they may have. Local. */
bool ghp_are_finite(const void *numbers, int64_t n, int bytes);
/* How many are not. Local. */
int64_t ghp_count_not_finite(const void *numbers, int64_t n, int bytes);

#endif
