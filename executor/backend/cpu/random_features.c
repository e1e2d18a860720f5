/* executor/backend/cpu/random_features.c - sqrt(2) cos(sigma U x + q), as core/model/op/matrix/random_features.c has U
 * and q. Both are drawn into scratch at each pass, once for all samples.
 *
 * ghp-options: -O3 -ffp-contract=fast */
#ifndef KERNEL
#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/platform/random.h"

#include <math.h>
#include <string.h>

enum { TAG = 0x72666561 };
static const double two_pi = 6.283185307179586476925, root2 = 1.414213562373095048802;

/* U, [k][c], then q, [k]. */
static void draw(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                 struct ghp_part part)
{
    float *u = args->at.scratch, *q = u + local->k * local->c;
    uint64_t seed = (uint64_t)local->drawn.seed;
    (void)part;
    for (int64_t k = 0; k < local->k; k++) {
        q[k] = (float)(two_pi * 0x1p-32 *
                       (double)ghp_random_philox(seed, (uint32_t)k, 0, TAG, 1).v[0]);
        for (int64_t c = 0; c < local->c; c += 2) {
            struct ghp_random_block r =
                ghp_random_philox(seed, (uint32_t)(c / 2), (uint32_t)k, TAG, 0);
            double radius = sqrt(-2 * log(((double)r.v[0] + 1) * 0x1p-32));
            double angle = two_pi * 0x1p-32 * (double)r.v[1];
            u[k * local->c + c] = (float)(radius * cos(angle));
            if (c + 1 < local->c) u[k * local->c + c + 1] = (float)(radius * sin(angle));
        }
    }
}

static int64_t drawn_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)parts;
    (void)element_bytes;
    return local->k * (local->c + 1) * (int64_t)sizeof(float);
}

#define BODY "executor/backend/cpu/random_features.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_random_features[] = {
    {GHP_OP_RANDOM_FEATURES,
     GHP_PASS_FORWARD,
     "loop",
     {{draw, forward_float, NULL}, {draw, forward_bf16, NULL}},
     drawn_bytes},
    {GHP_OP_RANDOM_FEATURES,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{draw, backward_float, NULL}, {draw, backward_bf16, NULL}},
     drawn_bytes},
    {.name = NULL}};

#else /* the bodies, for each precision (cpu/precisions.h). */

static double KERNEL(angle_of)(const struct ghp_local *local, const float *u, int64_t k,
                               const SCALAR *x)
{
    const float *row = u + k * local->c;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < local->c; c++)
        sum += (double)row[c] * (double)GET(x[c]);
    return local->drawn.sigma * sum + (double)u[local->k * local->c + k];
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h * local->w, 1);
    for (int64_t n = rows.first; n < rows.end; n++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + n * local->c;
        SCALAR *y = (SCALAR *)args->at.y + n * local->k;
        for (int64_t k = 0; k < local->k; k++)
            y[k] = PUT((float)(root2 * cos(KERNEL(angle_of)(local, args->at.scratch, k, x))));
    }
}

/* A channel's sum is over the features, in double: a row at a time, in tiles that a stack holds. */
static void KERNEL(backward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    enum { TILE = 256 };
    struct ghp_range rows = ghp_part_range(part, local->n * local->h * local->w, 1);
    const float *u = args->at.scratch;
    for (int64_t n = rows.first; n < rows.end; n++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + n * local->c,
                     *dy = (const SCALAR *)args->at.dy + n * local->k;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + n * local->c;
        for (int64_t first = 0; first < local->c; first += TILE) {
            int64_t m = local->c - first < TILE ? local->c - first : TILE;
            double sum[TILE] = {0};
            for (int64_t k = 0; k < local->k; k++) {
                double by = -root2 * local->drawn.sigma * (double)GET(dy[k]) *
                            sin(KERNEL(angle_of)(local, u, k, x));
#pragma omp simd
                for (int64_t c = 0; c < m; c++)
                    sum[c] += by * (double)u[k * local->c + first + c];
            }
            for (int64_t c = 0; c < m; c++)
                dx[first + c] = PUT((float)sum[c]);
        }
    }
}

#endif
