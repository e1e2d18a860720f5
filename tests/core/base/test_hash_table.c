/* tests/core/base/test_hash_table.c - items are found again by all their bytes, in the order they came, even if all
 * hashes are one and after every growth; a failed allocation leaves the table as it was. */
#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "tests/core/base/no_memory.h"

#include <string.h>

enum { ITEMS = 3000, DIGITS = 7 };

typedef uint64_t hash_fn(const int *item);

static uint64_t own_hash(const int *item)
{
    return ghp_hash(item, DIGITS * sizeof *item, GHP_HASH_SEED);
}

static uint64_t one_hash(const int *item)
{
    (void)item;
    return UINT64_MAX; /* the last slot of every size: probing continues at the first */
}

static uint64_t few_hashes(const int *item)
{
    return (uint64_t)item[0] % 3;
}

/* Number k in base 10: each is another item. */
static void digits(int k, int item[DIGITS])
{
    for (int v = 0; v < DIGITS; ++v, k /= 10)
        item[v] = k % 10;
}

static void check_items(const struct ghp_hash_table *t, int n)
{
    int item[DIGITS], wrong = 0;

    CHECK_EQ(t->n, n);
    for (int k = 0; k < n; k++) {
        digits(k, item);
        wrong += memcmp(t->items + (size_t)k * sizeof item, item, sizeof item) != 0;
    }
    CHECK_EQ(wrong, 0);
}

/* All items twice: new in the first round, found in the second. */
static void test_order(hash_fn *hash)
{
    struct ghp_hash_table t = {.item_bytes = DIGITS * sizeof(int)};
    int item[DIGITS], wrong = 0;

    for (int k = 0; k < 2 * ITEMS; k++) {
        size_t index = SIZE_MAX;

        digits(k % ITEMS, item);
        if (!CHECK_STATUS(ghp_hash_table_put(&t, hash(item), item, &index), GHP_OK)) return;
        wrong += index != (size_t)(k % ITEMS);
    }
    CHECK_EQ(wrong, 0);
    check_items(&t, ITEMS);
    ghp_hash_table_release(&t);
    CHECK(t.items == NULL && t.n == 0 && t.max == 0);
    ghp_hash_table_release(&t);
    ghp_hash_table_release(NULL);
}

static bool same_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
}

/* Equal texts at two addresses are one item, and the first stays. */
static void test_same(void)
{
    struct ghp_hash_table t = {.item_bytes = sizeof(char *), .same = same_text};
    char first[] = "conv1", again[] = "conv1", other[] = "conv2";
    const char *texts[] = {first, other, again};
    size_t index[3] = {0};

    for (int i = 0; i < 3; i++)
        CHECK_STATUS(ghp_hash_table_put(&t, 5, &texts[i], &index[i]), GHP_OK);
    CHECK_EQ(t.n, 2);
    CHECK_EQ(index[1], 1);
    CHECK_EQ(index[2], 0);
    CHECK(memcmp(t.items, &texts[0], sizeof texts[0]) == 0);
    ghp_hash_table_release(&t);
}

static void test_reserve(void)
{
    struct ghp_hash_table t = {.item_bytes = DIGITS * sizeof(int)};
    const unsigned char *items;
    int item[DIGITS];
    size_t index;

    CHECK_STATUS(ghp_hash_table_reserve(&t, ITEMS), GHP_OK);
    items = t.items;
    for (int k = 0; k < ITEMS; k++) {
        digits(k, item);
        CHECK_STATUS(ghp_hash_table_put(&t, own_hash(item), item, &index), GHP_OK);
    }
    CHECK(t.items == items);
    CHECK_STATUS(ghp_hash_table_reserve(&t, SIZE_MAX / 2), GHP_ERR_NO_MEMORY);
    CHECK_STATUS(ghp_hash_table_reserve(&t, SIZE_MAX / 16), GHP_ERR_NO_MEMORY);
    check_items(&t, ITEMS);
    ghp_hash_table_release(&t);
}

static enum ghp_status fill(void *context)
{
    struct ghp_hash_table t = {.item_bytes = DIGITS * sizeof(int)};
    enum ghp_status status = GHP_OK;
    int item[DIGITS], k = 0;
    size_t index;

    (void)context;
    for (; k < ITEMS && status == GHP_OK; k++) {
        digits(k, item);
        status = ghp_hash_table_put(&t, own_hash(item), item, &index);
    }
    check_items(&t, status == GHP_OK ? k : k - 1);
    if (status != GHP_OK) { /* memory is there again: the same item goes in */
        CHECK_STATUS(ghp_hash_table_put(&t, own_hash(item), item, &index), GHP_OK);
        check_items(&t, k);
    }
    ghp_hash_table_release(&t);
    return status;
}

int main(void)
{
    test_order(own_hash);
    test_order(one_hash);
    test_order(few_hashes);
    test_same();
    test_reserve();
    no_memory_each("a hash table", fill, NULL);
    return check_end();
}
