/* core/base/array.c - see array.h. */
#include "core/base/array.h"

#include <limits.h>
#include <stdlib.h>

enum { FIRST = 16 };

void *ghp_array_grow(void *items, int n, int *max, size_t size)
{
    void *grown;
    int larger;

    if (n < *max) return items;
    if (*max > INT_MAX / 2) return NULL;
    larger = *max > 0 ? 2 * *max : FIRST;
    grown = realloc(items, (size_t)larger * size);
    if (grown != NULL) *max = larger;
    return grown;
}
