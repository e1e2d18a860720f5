/* executor/backend/pack.c - see pack.h. */
#include "executor/backend/pack.h"

#include "core/sharding/split.h"

#include <string.h>

/* rows blocks from one stride to another [bytes]. Blocks of a word size are copied as words: memcpy's call costs more
 * than such a block. */
struct stride {
    int64_t from, to;
};

static void copy_blocks(const struct ghp_pack *pack, const char *from, char *to,
                        struct stride stride)
{
    if (pack->block_bytes == 4) {
        for (int64_t r = 0; r < pack->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 4);
    } else if (pack->block_bytes == 8) {
        for (int64_t r = 0; r < pack->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 8);
    } else if (pack->block_bytes == 64) {
        for (int64_t r = 0; r < pack->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, 64);
    } else {
        for (int64_t r = 0; r < pack->rows; r++)
            memcpy(to + r * stride.to, from + r * stride.from, (size_t)pack->block_bytes);
    }
}

/* One side of a slice that is turned from one format into the other: bytes from 16 channels to the next, from pixel
 * to pixel, from sample to sample. */
struct side {
    int64_t lane, pixel, sample;
    int64_t first; /* where the slice begins, in units (below) */
};

/* The slice with that index of a tensor of `parts` slices. */
static struct side side_of(const struct ghp_pack *pack, bool nchw16c, int parts, int index)
{
    int64_t row = parts * pack->block_bytes, unit = ghp_gcd(pack->block_bytes, pack->lane_bytes);

    return (struct side){.lane = nchw16c ? pack->pixels * pack->lane_bytes : pack->lane_bytes,
                         .pixel = nchw16c ? pack->lane_bytes : row,
                         .sample = row * pack->pixels,
                         .first = index * (pack->block_bytes / unit)};
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
static inline void turn_units(const struct ghp_pack *pack, const struct turn *t, int64_t unit_bytes)
{
    int64_t samples = pack->rows / pack->pixels, units = pack->block_bytes / unit_bytes,
            in_lane = pack->lane_bytes / unit_bytes;

    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < units; i++) {
            const char *from =
                t->from + n * t->out.sample + unit_at(&t->out, i, unit_bytes, in_lane);
            char *to = t->to + n * t->in.sample + unit_at(&t->in, i, unit_bytes, in_lane);

            for (int64_t p = 0; p < pack->pixels; p++)
                memcpy(to + p * t->in.pixel, from + p * t->out.pixel, (size_t)unit_bytes);
        }
}

static void turn_slice(const struct ghp_pack *pack, const struct turn *t)
{
    int64_t unit = ghp_gcd(pack->block_bytes, pack->lane_bytes);

    if (unit == 64)
        turn_units(pack, t, 64);
    else
        turn_units(pack, t, unit);
}

/* Both sides blocked: the rows are samples. */
static struct ghp_pack by_samples(const struct ghp_pack *pack)
{
    return (struct ghp_pack){.rows = pack->rows / pack->pixels,
                             .block_bytes = pack->block_bytes * pack->pixels,
                             .parts = pack->parts};
}

int64_t ghp_pack_row(struct ghp_pack pack)
{
    return pack.row_bytes > 0 ? pack.row_bytes : pack.parts * pack.block_bytes;
}

int64_t ghp_pack_valid(struct ghp_pack pack, int index)
{
    int64_t left = ghp_pack_row(pack) - index * pack.block_bytes;

    return left < 0 ? 0 : left < pack.block_bytes ? left : pack.block_bytes;
}

void ghp_pack_take(struct ghp_pack pack, const void *whole, int index, void *part)
{
    if (pack.whole_nchw16c != pack.part_nchw16c) {
        turn_slice(&pack, &(struct turn){whole, part,
                                         side_of(&pack, pack.whole_nchw16c, pack.parts, index),
                                         side_of(&pack, pack.part_nchw16c, 1, 0)});
        return;
    }
    if (pack.whole_nchw16c) pack = by_samples(&pack);
    int64_t block = pack.block_bytes, row = ghp_pack_row(pack), valid = ghp_pack_valid(pack, index);
    pack.block_bytes = valid;
    if (valid > 0)
        copy_blocks(&pack, (const char *)whole + index * block, part,
                    (struct stride){.from = row, .to = block});
    for (int64_t r = 0; valid < block && r < pack.rows; r++)
        memset((char *)part + r * block + valid, 0, (size_t)(block - valid));
}

void ghp_pack_put(struct ghp_pack pack, const void *part, int index, void *whole)
{
    if (pack.whole_nchw16c != pack.part_nchw16c) {
        turn_slice(&pack, &(struct turn){part, whole, side_of(&pack, pack.part_nchw16c, 1, 0),
                                         side_of(&pack, pack.whole_nchw16c, pack.parts, index)});
        return;
    }
    if (pack.whole_nchw16c) pack = by_samples(&pack);
    int64_t block = pack.block_bytes, row = ghp_pack_row(pack), valid = ghp_pack_valid(pack, index);
    pack.block_bytes = valid;
    if (valid > 0)
        copy_blocks(&pack, part, (char *)whole + index * block,
                    (struct stride){.from = block, .to = row});
}

void ghp_pack_split(struct ghp_pack pack, const void *whole, void *parts)
{
    for (int i = 0; i < pack.parts; i++)
        ghp_pack_take(pack, whole, i, (char *)parts + i * pack.rows * pack.block_bytes);
}

void ghp_pack_join(struct ghp_pack pack, const void *parts, void *whole)
{
    for (int i = 0; i < pack.parts; i++)
        ghp_pack_put(pack, (const char *)parts + i * pack.rows * pack.block_bytes, i, whole);
}
