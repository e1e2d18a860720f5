/* core/base/hash.c - see base/hash.h. */
#include "core/base/hash.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t ghp_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *byte = bytes;
    uint64_t h = seed;

    for (size_t i = 0; i < n; i++)
        h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
    return h;
}

void ghp_hash_text(uint64_t h, char out[17])
{
    snprintf(out, 17, "%016" PRIx64, h);
}
