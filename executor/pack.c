/* executor/pack.c - see pack.h. */
#include "executor/pack.h"

#include <string.h>

/* rows blocks from one stride to another [bytes]. Blocks of a word size are copied as words: memcpy's call costs more
 * than such a block. */
struct stride {
    int64_t from, to;
};

static void copy_blocks(struct ghp_pack how, const char *from, char *to, struct stride stride)
{
    if (how.block_bytes == 4) {
        for (int64_t r = 0; r < how.rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 4);
    } else if (how.block_bytes == 8) {
        for (int64_t r = 0; r < how.rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 8);
    } else if (how.block_bytes == 64) {
        for (int64_t r = 0; r < how.rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 64);
    } else {
        for (int64_t r = 0; r < how.rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, (size_t)how.block_bytes);
    }
}

void ghp_pack_take(struct ghp_pack how, const void *whole, int index, void *part)
{
    struct stride stride = {.from = how.parts * how.block_bytes, .to = how.block_bytes};

    copy_blocks(how, (const char *)whole + index * how.block_bytes, part, stride);
}

void ghp_pack_put(struct ghp_pack how, const void *part, int index, void *whole)
{
    struct stride stride = {.from = how.block_bytes, .to = how.parts * how.block_bytes};

    copy_blocks(how, part, (char *)whole + index * how.block_bytes, stride);
}

void ghp_pack_split(struct ghp_pack how, const void *whole, void *parts)
{
    for (int i = 0; i < how.parts; i++)
        ghp_pack_take(how, whole, i, (char *)parts + i * how.rows * how.block_bytes);
}

void ghp_pack_join(struct ghp_pack how, const void *parts, void *whole)
{
    for (int i = 0; i < how.parts; i++)
        ghp_pack_put(how, (const char *)parts + i * how.rows * how.block_bytes, i, whole);
}
