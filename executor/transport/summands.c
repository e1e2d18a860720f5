/* executor/transport/summands.c - see summands.h. */
#include "executor/transport/summands.h"

#include "core/model/precision.h"
#include "core/base/status.h"

enum { SUM_BLOCK = 512 }; /* elements added at a time, in cache */

static int64_t block_from(int64_t at, int64_t n)
{
    return n - at < SUM_BLOCK ? n - at : SUM_BLOCK;
}

/* out = sum of the summands in the members' order; out may be own. The first two are added at once, and the last into
 * out: two members' summands are gone through once. */
#define SUM_IN_ORDER(type)                                                                         \
    static const type *summand_##type(const struct ghp_summands *p, int r, int64_t at)             \
    {                                                                                              \
        const type *own = p->own, *scratch = p->scratch;                                           \
        return r == p->index ? own + at : scratch + r * p->stride + at;                            \
    }                                                                                              \
    static void sum_##type(const struct ghp_summands *p, type *out)                                \
    {                                                                                              \
        type total[SUM_BLOCK];                                                                     \
        for (int64_t at = 0; at < p->n; at += SUM_BLOCK) {                                         \
            int64_t m = block_from(at, p->n);                                                      \
            const type *left = summand_##type(p, 0, at);                                           \
            for (int r = 1; r < p->count; r++) {                                                   \
                const type *right = summand_##type(p, r, at);                                      \
                type *to = r == p->count - 1 ? out + at : total;                                   \
                _Pragma("omp simd") for (int64_t i = 0; i < m; i++) to[i] = left[i] + right[i];    \
                left = total;                                                                      \
            }                                                                                      \
        }                                                                                          \
    }
SUM_IN_ORDER(float)
SUM_IN_ORDER(double)
#undef SUM_IN_ORDER

/* bfloat16: added in float, rounded once. */
static void sum_bf16(const struct ghp_summands *p, uint16_t *out)
{
    const uint16_t *own = p->own, *scratch = p->scratch;
    float total[SUM_BLOCK];

    for (int64_t at = 0; at < p->n; at += SUM_BLOCK) {
        int64_t m = block_from(at, p->n);

        for (int r = 0; r < p->count; r++) {
            const uint16_t *summand = r == p->index ? own + at : scratch + r * p->stride + at;

#pragma omp simd
            for (int64_t i = 0; i < m; i++)
                total[i] = (r == 0 ? 0.0f : total[i]) + ghp_bf16_value(summand[i]);
        }
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            out[at + i] = ghp_bf16_of(total[i]);
    }
}

void ghp_summands_add(const struct ghp_summands *summands, int element_bytes, void *out)
{
    GHP_ASSERT(summands->count > 1);
    GHP_ASSERT(element_bytes == 2 || element_bytes == 4 || element_bytes == 8);
    if (summands->n <= 0) return;
    if (element_bytes == 8)
        sum_double(summands, out);
    else if (element_bytes == 4)
        sum_float(summands, out);
    else
        sum_bf16(summands, out);
}
