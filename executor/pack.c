/* executor/pack.c - see pack.h. */
#include "executor/pack.h"

#include <string.h>

/* rows blocks from one stride to another [bytes]. Blocks of a word size are copied as words: memcpy's call costs more
 * than such a block. */
struct stride {
    int64_t from, to;
};

static void copy_blocks(const struct ghp_pack *how, const char *from, char *to,
                        struct stride stride)
{
    if (how->block_bytes == 4) {
        for (int64_t r = 0; r < how->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 4);
    } else if (how->block_bytes == 8) {
        for (int64_t r = 0; r < how->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 8);
    } else if (how->block_bytes == 64) {
        for (int64_t r = 0; r < how->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 64);
    } else {
        for (int64_t r = 0; r < how->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, (size_t)how->block_bytes);
    }
}

/* How a tensor lies: bytes from 16 channels to the next, from pixel to pixel, from sample to sample. */
struct lie {
    int64_t lane, pixel, sample;
};

static struct lie lie_of(const struct ghp_pack *how, bool blocked, int parts)
{
    int64_t row = parts * how->block_bytes;

    return (struct lie){.lane = blocked ? how->pixels * how->lane_bytes : how->lane_bytes,
                        .pixel = blocked ? how->lane_bytes : row,
                        .sample = row * how->pixels};
}

/* A slice on its way from one format to the other. */
struct turn {
    const char *from;
    char *to;
    struct lie from_lies, to_lies;
};

/* Channels innermost: what lies plain is read or written in order, what lies blocked as so many runs beside each other. */
static inline void turn_lanes(const struct ghp_pack *how, const struct turn *t, int64_t lane_bytes)
{
    int64_t samples = how->rows / how->pixels, lanes = how->block_bytes / lane_bytes;

    for (int64_t n = 0; n < samples; n++)
        for (int64_t p = 0; p < how->pixels; p++) {
            const char *from = t->from + n * t->from_lies.sample + p * t->from_lies.pixel;
            char *to = t->to + n * t->to_lies.sample + p * t->to_lies.pixel;

            for (int64_t i = 0; i < lanes; i++)
                memcpy(to + i * t->to_lies.lane, from + i * t->from_lies.lane, (size_t)lane_bytes);
        }
}

static void turn_slice(const struct ghp_pack *how, const struct turn *t)
{
    if (how->lane_bytes == 64)
        turn_lanes(how, t, 64);
    else
        turn_lanes(how, t, how->lane_bytes);
}

/* Both sides blocked: the rows are samples. */
static struct ghp_pack by_samples(const struct ghp_pack *how)
{
    return (struct ghp_pack){.rows = how->rows / how->pixels,
                             .block_bytes = how->block_bytes * how->pixels,
                             .parts = how->parts};
}

/* Where slice `index` begins in the whole. */
static int64_t slice_at(const struct ghp_pack *how, int index)
{
    return index * how->block_bytes * (how->whole_blocked ? how->pixels : 1);
}

void ghp_pack_take(struct ghp_pack how, const void *whole, int index, void *part)
{
    const char *from = (const char *)whole + slice_at(&how, index);

    if (how.whole_blocked != how.part_blocked) {
        turn_slice(&how, &(struct turn){from, part, lie_of(&how, how.whole_blocked, how.parts),
                                        lie_of(&how, how.part_blocked, 1)});
        return;
    }
    if (how.whole_blocked) how = by_samples(&how);
    copy_blocks(&how, from, part,
                (struct stride){.from = how.parts * how.block_bytes, .to = how.block_bytes});
}

void ghp_pack_put(struct ghp_pack how, const void *part, int index, void *whole)
{
    char *to = (char *)whole + slice_at(&how, index);

    if (how.whole_blocked != how.part_blocked) {
        turn_slice(&how, &(struct turn){part, to, lie_of(&how, how.part_blocked, 1),
                                        lie_of(&how, how.whole_blocked, how.parts)});
        return;
    }
    if (how.whole_blocked) how = by_samples(&how);
    copy_blocks(&how, part, to,
                (struct stride){.from = how.block_bytes, .to = how.parts * how.block_bytes});
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
