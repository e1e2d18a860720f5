/* Channel slices against index arithmetic, for odd and word-sized blocks. */
#include "executor/pack.h"
#include "tests/check.h"

static void check_shape(int64_t rows, int64_t block, int parts)
{
    struct ghp_pack how = {.rows = rows, .block_bytes = block, .parts = parts};
    int64_t n = rows * block * parts, wrong = 0;
    unsigned char *whole = calloc((size_t)n, 1), *split = calloc((size_t)n, 1),
                  *again = calloc((size_t)n, 1);

    for (int64_t i = 0; i < n; i++)
        whole[i] = (unsigned char)(i * 7 + i / 251);
    ghp_pack_split(how, whole, split);
    for (int p = 0; p < parts; p++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t b = 0; b < block; b++)
                wrong += split[(p * rows + r) * block + b] != whole[(r * parts + p) * block + b];
    memset(again, 0, (size_t)n);
    ghp_pack_join(how, split, again);
    CHECK_EQ(wrong, 0);
    CHECK(memcmp(whole, again, (size_t)n) == 0);
    for (int p = 0; p < parts; p++) {
        ghp_pack_take(how, whole, p, again);
        CHECK(memcmp(again, split + p * rows * block, (size_t)(rows * block)) == 0);
    }
    free(again);
    free(split);
    free(whole);
}

int main(void)
{
    static const int64_t blocks[] = {1, 4, 8, 12, 64, 100};

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        for (int parts = 1; parts <= 5; parts++) {
            check_shape(1, blocks[i], parts);
            check_shape(37, blocks[i], parts);
        }
    return check_end();
}
