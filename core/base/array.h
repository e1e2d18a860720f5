/* core/base/array.h - arrays that grow item by item: what they hold, how many, and how many they have room for.
 *
 * Tested  tests/core/base/test_array.c */
#ifndef GHP_CORE_BASE_ARRAY_H
#define GHP_CORE_BASE_ARRAY_H

#include "core/base/status.h"

/* Room for one more item than n: the array itself if n < *max, else one of about twice as many items that it moved to.
 *
 * items   owned; NULL if *max is 0
 * size    of an item [bytes], > 0
 *
 * Returns   the array; NULL if memory is short: items and *max are then as before */
void *ghp_array_grow(void *items, int n, int *max, size_t size);

/* The same for an array that is a variable or a member. Returns from the function it is written in with the failure
 * of an allocation. */
#define GHP_TRY_ROOM(items, n, max)                                                                \
    do {                                                                                           \
        void *ghp_grown_ = ghp_array_grow((items), (n), &(max), sizeof *(items));                  \
        if (ghp_grown_ == NULL) return GHP_NO_MEMORY();                                            \
        (items) = ghp_grown_;                                                                      \
    } while (0)

#endif
