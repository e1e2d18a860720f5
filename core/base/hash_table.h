/* core/base/hash_table.h - distinct items of one size in the order they came, found by a hash.
 *
 * A hash only says where to look: items are compared in full, so items of one hash stay apart. Nothing is taken out,
 * and an item keeps its number. Zero the struct, set item_bytes and, if equal items may differ in bytes, `same`.
 *
 * Tested  tests/core/base/test_hash_table.c */
#ifndef GHP_CORE_BASE_HASH_TABLE_H
#define GHP_CORE_BASE_HASH_TABLE_H

#include "core/base/status.h"

#include <stdbool.h>

struct ghp_hash_table {
    size_t item_bytes;                          /* >= 1 */
    bool (*same)(const void *a, const void *b); /* NULL: items are compared byte by byte */
    size_t n, max;                              /* items; room for them, a power of two */
    unsigned char *items; /* [n] of item_bytes, in the order they came; owned */
    uint64_t *hashes;     /* [n]; owned */
    size_t *slots; /* [2 max] number of an item + 1, by hash, open addressing; 0: free; owned */
};

/* Room for n items: until there are more, nothing fails and no item moves.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY, the table as it was */
enum ghp_status ghp_hash_table_reserve(struct ghp_hash_table *table, size_t n);

/* The number of the item equal to *item; a copy of *item is added as number `n` if there is none.
 *
 * hash   of equal items the same
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY, the table as it was */
enum ghp_status ghp_hash_table_put(struct ghp_hash_table *table, uint64_t hash, const void *item,
                                   size_t *index);
void ghp_hash_table_release(struct ghp_hash_table *table); /* accepts a zeroed one and NULL */

#endif
