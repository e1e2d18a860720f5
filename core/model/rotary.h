/* core/model/rotary.h - by what angle rotary positions turn a pair of channels, on processors and GPUs alike.
 *
 * A network that was trained on `original` positions is scaled to `factor` times as many:
 *   linear   all angles are smaller by the factor;
 *   llama3   those of long waves are, those of short waves stay, those between are interpolated by their frequency;
 *   yarn     the same, interpolated by the pair, and all channels are multiplied by `amplitude`.
 *
 * Source   transformers' modeling_rope_utils, checked against it by tests/tools/networks/test_huggingface_families.sh;
 *          YaRN: arXiv 2309.00071
 * Tested   tests/executor/op_define.c (its own formula) */
#ifndef GHP_CORE_MODEL_ROTARY_H
#define GHP_CORE_MODEL_ROTARY_H

#include "core/model/model.h"

#include <math.h>

#ifdef __CUDACC__
#define GHP_ROTARY_INLINE __host__ __device__ static inline
#else
#define GHP_ROTARY_INLINE static inline
#endif

/* The pair that makes `turns` turns over the original positions. It is not rounded, so it may lie between two pairs. */
GHP_ROTARY_INLINE double ghp_rotary_pair_of(const struct ghp_heads *h, double turns)
{
    return (double)h->turned * log((double)h->original / (turns * 2.0 * 3.14159265358979323846)) /
           (2.0 * log(h->base));
}

/* How much of a pair's angle is divided by the factor: 0 nothing, 1 all of it. */
GHP_ROTARY_INLINE double ghp_rotary_scaled(const struct ghp_heads *h, int64_t pair, double angle)
{
    double part, from, to;

    if (h->scaling == GHP_ROTARY_LINEAR) return 1.0;
    if (h->scaling == GHP_ROTARY_LLAMA3) {
        double turns = (double)h->original * angle / (2.0 * 3.14159265358979323846);

        part = (h->fast - turns) / (h->fast - h->slow);
    } else {
        from = ghp_rotary_pair_of(h, h->fast);
        to = ghp_rotary_pair_of(h, h->slow);
        if (h->truncate) from = floor(from);
        if (h->truncate) to = ceil(to);
        from = fmax(from, 0.0);
        to = fmin(to, (double)h->turned - 1.0);
        part = ((double)pair - from) / (to != from ? to - from : 0.001);
    }
    return fmin(fmax(part, 0.0), 1.0);
}

/* The angle of a pair from one position to the next; pair < turned / 2. */
GHP_ROTARY_INLINE double ghp_rotary_angle(const struct ghp_heads *h, int64_t pair)
{
    double angle = pow(h->base, -2.0 * (double)pair / (double)h->turned), scaled;

    if (h->scaling == GHP_ROTARY_UNSCALED) return angle;
    scaled = ghp_rotary_scaled(h, pair, angle);
    return angle * (1.0 - scaled) + angle / h->factor * scaled;
}

#endif
