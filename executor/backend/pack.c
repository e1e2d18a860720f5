/* executor/backend/pack.c - see pack.h. */
#include "executor/backend/pack.h"

#include "core/sharding/split.h"

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

/* One side of a slice that is turned from one format into the other: bytes from 16 channels to the next, from pixel
 * to pixel, from sample to sample. */
struct side {
    int64_t lane, pixel, sample;
    int64_t first; /* where the slice begins, in units (below) */
};

/* Of a tensor of so many slices, the slice with that index. */
static struct side side_of(const struct ghp_pack *how, bool nchw16c, int parts, int index)
{
    int64_t row = parts * how->block_bytes, unit = ghp_gcd(how->block_bytes, how->lane_bytes);

    return (struct side){.lane = nchw16c ? how->pixels * how->lane_bytes : how->lane_bytes,
                         .pixel = nchw16c ? how->lane_bytes : row,
                         .sample = row * how->pixels,
                         .first = index * (how->block_bytes / unit)};
}

struct turn {
    const char *from;
    char *to;
    struct side out, in; /* of `from`, of `to` */
};

/* Bytes from a tensor's pixel to a unit of the slice's channels, `in_lane` of them in 16. */
static int64_t unit_at(const struct side *side, int64_t unit, int64_t unit_bytes, int64_t in_lane)
{
    int64_t at = side->first + unit;

    return at / in_lane * side->lane + at % in_lane * unit_bytes;
}

/* By units of channels that both formats keep together. Pixels innermost: what lies blocked is read or written in
 * order. */
static inline void turn_units(const struct ghp_pack *how, const struct turn *t, int64_t unit_bytes)
{
    int64_t samples = how->rows / how->pixels, units = how->block_bytes / unit_bytes,
            in_lane = how->lane_bytes / unit_bytes;

    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < units; i++) {
            const char *from =
                t->from + n * t->out.sample + unit_at(&t->out, i, unit_bytes, in_lane);
            char *to = t->to + n * t->in.sample + unit_at(&t->in, i, unit_bytes, in_lane);

            for (int64_t p = 0; p < how->pixels; p++)
                memcpy(to + p * t->in.pixel, from + p * t->out.pixel, (size_t)unit_bytes);
        }
}

static void turn_slice(const struct ghp_pack *how, const struct turn *t)
{
    int64_t unit = ghp_gcd(how->block_bytes, how->lane_bytes);

    if (unit == 64)
        turn_units(how, t, 64);
    else
        turn_units(how, t, unit);
}

/* Both sides blocked: the rows are samples. */
static struct ghp_pack by_samples(const struct ghp_pack *how)
{
    return (struct ghp_pack){.rows = how->rows / how->pixels,
                             .block_bytes = how->block_bytes * how->pixels,
                             .parts = how->parts};
}

int64_t ghp_pack_row(struct ghp_pack how)
{
    return how.row_bytes > 0 ? how.row_bytes : how.parts * how.block_bytes;
}

int64_t ghp_pack_valid(struct ghp_pack how, int index)
{
    int64_t left = ghp_pack_row(how) - index * how.block_bytes;

    return left < 0 ? 0 : left < how.block_bytes ? left : how.block_bytes;
}

void ghp_pack_take(struct ghp_pack how, const void *whole, int index, void *part)
{
    if (how.whole_nchw16c != how.part_nchw16c) {
        turn_slice(&how,
                   &(struct turn){whole, part, side_of(&how, how.whole_nchw16c, how.parts, index),
                                  side_of(&how, how.part_nchw16c, 1, 0)});
        return;
    }
    if (how.whole_nchw16c) how = by_samples(&how);
    int64_t block = how.block_bytes, row = ghp_pack_row(how), valid = ghp_pack_valid(how, index);
    how.block_bytes = valid;
    if (valid > 0)
        copy_blocks(&how, (const char *)whole + index * block, part,
                    (struct stride){.from = row, .to = block});
    for (int64_t r = 0; valid < block && r < how.rows; r++)
        memset((char *)part + r * block + valid, 0, (size_t)(block - valid));
}

void ghp_pack_put(struct ghp_pack how, const void *part, int index, void *whole)
{
    if (how.whole_nchw16c != how.part_nchw16c) {
        turn_slice(&how, &(struct turn){part, whole, side_of(&how, how.part_nchw16c, 1, 0),
                                        side_of(&how, how.whole_nchw16c, how.parts, index)});
        return;
    }
    if (how.whole_nchw16c) how = by_samples(&how);
    int64_t block = how.block_bytes, row = ghp_pack_row(how), valid = ghp_pack_valid(how, index);
    how.block_bytes = valid;
    if (valid > 0)
        copy_blocks(&how, part, (char *)whole + index * block,
                    (struct stride){.from = block, .to = row});
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
