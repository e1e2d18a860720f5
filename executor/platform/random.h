/* executor/platform/random.h - random numbers by meaning: the same key gives the same number to every caller, in any
 * order.
 *
 * Counter-based (Philox4x32, ten rounds): there is no state and no sequence, so nothing depends on the rank, the number
 * of workers or the order of calls. Not for secrets. Four uses have keys of their own and never meet: blocks (dropout
 * masks), normal and uniform numbers (initial weights), whole numbers (shuffles, synthetic data).
 *
 * Source   Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC11); the Random123 library */
#ifndef GHP_EXECUTOR_PLATFORM_RANDOM_H
#define GHP_EXECUTOR_PLATFORM_RANDOM_H

#include <stdint.h>

struct ghp_random_block { /* four independent uniform numbers, 0 .. 2^32 - 1 */
    uint32_t v[4];
};

/* The block of a key and four counters.
 * Local
 * Tested    tests/executor/platform/test_random.c (published vectors) */
struct ghp_random_block ghp_random_philox(uint64_t seed, uint32_t a, uint32_t b, uint32_t c,
                                          uint32_t d);

/* n blocks of consecutive first counters a, a + 1, ... (mod 2^32), one after the other: 4 n numbers.
 *
 * counter   the first block's four counters */
void ghp_random_fill(uint64_t seed, const uint32_t counter[4], int64_t n, uint32_t *out);

/* A uniform number of 64 bits: number `index` of stream `stream`. */
uint64_t ghp_random_u64(uint64_t seed, uint64_t stream, uint64_t index);
/* The same as a number in [0, 1), of 53 bits. */
double ghp_random_unit(uint64_t seed, uint64_t stream, uint64_t index);

/* Elements [first_element, first_element + n) of a tensor of independent normal deviates, mean 0. Any slice has the
 * values of the whole; float elements are the rounded double ones.
 *
 * tensor          which tensor, for example the hash of its name
 * deviation       standard deviation, >= 0
 * element_bytes   4: out is float *, 8: double * */
void ghp_random_fill_normal(uint64_t seed, uint64_t tensor, int64_t first_element, int64_t n,
                            double deviation, int element_bytes, void *out);

/* The same of independent uniform numbers in [-bound, bound). */
void ghp_random_fill_uniform(uint64_t seed, uint64_t tensor, int64_t first_element, int64_t n,
                             double bound, int element_bytes, void *out);

#endif
