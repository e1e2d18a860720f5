/* core/base/hash.h - the one hash: it names contents, in files too, and finds places in tables.
 *
 * Tested  tests/core/base/test_file.c */
#ifndef GHP_CORE_BASE_HASH_H
#define GHP_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The seed of a hash that continues no other one (FNV-1a's offset basis). */
#define GHP_HASH_SEED UINT64_C(0xcbf29ce484222325)

/* FNV-1a, 64 bits: h = (h xor byte) * 0x100000001b3 for each byte, from h = seed. To hash parts as one text,
 * give each result as the next seed. Names content; no protection against forgery.
 *
 * Source   Fowler, Noll, Vo: http://www.isthe.com/chongo/tech/comp/fnv/ */
uint64_t ghp_hash(const void *bytes, size_t n, uint64_t seed);

/* The hash as 16 lower-case hexadecimal digits and a NUL. */
void ghp_hash_text(uint64_t h, char out[17]);

#endif
