/* executor/platform/streaming_store.h - tensors that the caches do not hold: stores of whole lines that pass them
 * by, and how far ahead loads are asked for.
 *
 * A store to a line that is in no cache reads the line first, which costs as much as to write it; a tensor that the
 * caches cannot hold until somebody reads it is better written straight to memory. A processor that sees where loads
 * go asks for lines itself, but only to the end of a page (docs/explanation/cpu.md has figures). */
#ifndef GHP_EXECUTOR_PLATFORM_STREAMING_STORE_H
#define GHP_EXECUTOR_PLATFORM_STREAMING_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX__
#include <immintrin.h>
#endif

enum {
    GHP_STREAMING_STORE_ALIGN = 32,
    GHP_STREAMING_STORE_BYTES = 1 << 20, /* of a tensor, from which on it is better */
    GHP_PREFETCH_BYTES = 4096            /* a page */
};

static inline bool ghp_streaming_store_pays(const void *tensor, int64_t bytes)
{
    return bytes >= GHP_STREAMING_STORE_BYTES && (uintptr_t)tensor % GHP_STREAMING_STORE_ALIGN == 0;
}

/* bytes: a multiple of GHP_STREAMING_STORE_ALIGN, and constant where this is called; `to` aligned so. */
static inline void ghp_streaming_store(void *to, const void *from, size_t bytes)
{
#ifdef __AVX__
    for (size_t i = 0; i < bytes; i += GHP_STREAMING_STORE_ALIGN)
        _mm256_stream_si256((__m256i *)((char *)to + i),
                            _mm256_loadu_si256((const __m256i *)((const char *)from + i)));
#else
    memcpy(to, from, bytes);
#endif
}

/* Asks for the line a page after that address. */
static inline void ghp_prefetch_line(const void *at)
{
    __builtin_prefetch((const char *)at + GHP_PREFETCH_BYTES, 0, 2);
}

/* Before other threads read what was stored so. */
static inline void ghp_streaming_store_end(void)
{
#ifdef __AVX__
    _mm_sfence();
#endif
}

#endif
