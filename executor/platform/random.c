/* executor/platform/random.c - Philox blocks through Random123's header, and what is made of them.
 *
 * The only file that includes Random123. Each use has its own 64-bit key: the seed shifted by the use, so that equal
 * counters of different uses give unrelated numbers. */
#include "executor/platform/random.h"

#include <Random123/philox.h>
#include <math.h>

enum use { USE_BLOCK, USE_NORMAL, USE_NUMBER, USE_UNIFORM };

static struct r123array2x32 key_of(uint64_t seed, enum use use)
{
    uint64_t key = seed + (uint64_t)use * UINT64_C(0x9e3779b97f4a7c15);
    return (struct r123array2x32){{(uint32_t)key, (uint32_t)(key >> 32)}};
}

struct ghp_random_block ghp_random_philox(uint64_t seed, uint32_t a, uint32_t b, uint32_t c,
                                          uint32_t d)
{
    struct r123array4x32 counter = {{a, b, c, d}};
    struct r123array4x32 r = philox4x32(counter, key_of(seed, USE_BLOCK));
    return (struct ghp_random_block){{r.v[0], r.v[1], r.v[2], r.v[3]}};
}

void ghp_random_fill(uint64_t seed, const uint32_t counter[4], int64_t n, uint32_t *out)
{
    struct r123array2x32 key = key_of(seed, USE_BLOCK);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        struct r123array4x32 at = {{counter[0] + (uint32_t)i, counter[1], counter[2], counter[3]}};
        struct r123array4x32 r = philox4x32(at, key);
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = r.v[j];
    }
}

uint64_t ghp_random_u64(uint64_t seed, uint64_t stream, uint64_t index)
{
    struct r123array4x32 counter = {
        {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
    struct r123array4x32 r = philox4x32(counter, key_of(seed, USE_NUMBER));
    return (uint64_t)r.v[1] << 32 | r.v[0];
}

double ghp_random_unit(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(ghp_random_u64(seed, stream, index) >> 11) * 0x1p-53;
}

/* Two independent deviates from two uniform numbers (Box and Muller). */
static void make_pair(uint32_t a, uint32_t b, double deviation, double out[2])
{
    const double two_pi = 6.283185307179586476925;
    double radius = deviation * sqrt(-2.0 * log(((double)a + 1.0) * 0x1p-32));
    double angle = two_pi * 0x1p-32 * (double)b;
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

void ghp_random_fill_normal(uint64_t seed, uint64_t tensor, int64_t first_element, int64_t n,
                            double deviation, int element_bytes, void *out)
{
    struct r123array2x32 key = key_of(seed, USE_NORMAL);
    int64_t end = first_element + n;
    for (int64_t block = first_element / 4; 4 * block < end; block++) {
        struct r123array4x32 counter = {
            {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)tensor, (uint32_t)(tensor >> 32)}};
        struct r123array4x32 r = philox4x32(counter, key);
        double four[4];
        make_pair(r.v[0], r.v[1], deviation, four);
        make_pair(r.v[2], r.v[3], deviation, four + 2);
        for (int64_t i = 0; i < 4; i++) {
            int64_t at = 4 * block + i - first_element;
            if (at < 0 || at >= n) continue;
            if (element_bytes == 4)
                ((float *)out)[at] = (float)four[i];
            else
                ((double *)out)[at] = four[i];
        }
    }
}

void ghp_random_fill_uniform(uint64_t seed, uint64_t tensor, int64_t first_element, int64_t n,
                             double bound, int element_bytes, void *out)
{
    struct r123array2x32 key = key_of(seed, USE_UNIFORM);

    for (int64_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)(first_element + i);
        struct r123array4x32 counter = {
            {(uint32_t)at, (uint32_t)(at >> 32), (uint32_t)tensor, (uint32_t)(tensor >> 32)}};
        struct r123array4x32 r = philox4x32(counter, key);
        double unit = (double)(((uint64_t)r.v[1] << 32 | r.v[0]) >> 11) * 0x1p-53;
        double value = bound * (2 * unit - 1);

        if (element_bytes == 4)
            ((float *)out)[i] = (float)value;
        else
            ((double *)out)[i] = value;
    }
}
