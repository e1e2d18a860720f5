/* core/base/hash_table.c - see core/base/hash_table.h. */
#include "core/base/hash_table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ITEMS = 256 };

static bool equal(const struct ghp_hash_table *t, size_t i, uint64_t hash, const void *item)
{
    const unsigned char *own = t->items + i * t->item_bytes;

    return t->hashes[i] == hash &&
           (t->same != NULL ? t->same(own, item) : memcmp(own, item, t->item_bytes) == 0);
}

/* The slot of the item equal to *item, or the free one where it belongs; item NULL: a free one. */
static size_t find_slot(const struct ghp_hash_table *t, uint64_t hash, const void *item)
{
    size_t last = 2 * t->max - 1, at = (size_t)hash & last;

    while (t->slots[at] != 0 && (item == NULL || !equal(t, t->slots[at] - 1, hash, item)))
        at = (at + 1) & last;
    return at;
}

enum ghp_status ghp_hash_table_reserve(struct ghp_hash_table *table, size_t n)
{
    struct ghp_hash_table grown = *table, old = *table;

    if (n <= table->max) return GHP_OK;
    if (n > SIZE_MAX / 4) return GHP_NO_MEMORY();
    for (grown.max = FIRST_ITEMS; grown.max < n;)
        grown.max *= 2;
    grown.items = ghp_alloc(grown.max, table->item_bytes);
    grown.hashes = ghp_alloc(grown.max, sizeof *grown.hashes);
    grown.slots = ghp_alloc(grown.max, 2 * sizeof *grown.slots);
    if (grown.items == NULL || grown.hashes == NULL || grown.slots == NULL) {
        ghp_hash_table_release(&grown);
        return GHP_NO_MEMORY();
    }
    for (size_t i = 0; i < table->n; i++) {
        grown.hashes[i] = table->hashes[i];
        grown.slots[find_slot(&grown, grown.hashes[i], NULL)] = i + 1;
    }
    if (table->n > 0) memcpy(grown.items, table->items, table->n * table->item_bytes);
    *table = grown;
    ghp_hash_table_release(&old);
    return GHP_OK;
}

enum ghp_status ghp_hash_table_put(struct ghp_hash_table *table, uint64_t hash, const void *item,
                                   size_t *index)
{
    size_t at;

    if (table->n == table->max) GHP_TRY(ghp_hash_table_reserve(table, table->n + 1));
    at = find_slot(table, hash, item);
    if (table->slots[at] == 0) {
        memcpy(table->items + table->n * table->item_bytes, item, table->item_bytes);
        table->hashes[table->n] = hash;
        table->slots[at] = ++table->n;
    }
    *index = table->slots[at] - 1;
    return GHP_OK;
}

void ghp_hash_table_release(struct ghp_hash_table *table)
{
    if (table == NULL) return;
    free(table->items);
    free(table->hashes);
    free(table->slots);
    table->items = NULL;
    table->hashes = NULL;
    table->slots = NULL;
    table->n = table->max = 0;
}
