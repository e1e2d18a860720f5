/* executor/backend/cpu/rotary.c - rotary: pairs of channels turned by the position's angles.
 *
 * The turns of a position, one a pair, follow from those of the position before by one product of complex numbers each,
 * in double. Every PACE positions they are computed from scratch, and parts begin there: so results do not depend on
 * the parts, and errors stay far below a float's. */
#ifndef KERNEL
#include "core/model/precision.h"
#include "core/model/rotary.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <string.h>

enum { PACE = 64 }; /* positions */

/* Turns as complex numbers, each [pairs]; in a part's scratch. */
struct turns {
    int64_t pairs;
    double amplitude;
    double *real, *imaginary;           /* of the position */
    double *step_real, *step_imaginary; /* from one position to the next */
    float *cosine, *sine;               /* of the position, rounded */
};

static int64_t part_bytes(const struct ghp_local *local)
{
    int64_t pairs = local->heads.turned / 2;

    return ghp_align(pairs * (int64_t)(4 * sizeof(double) + 2 * sizeof(float)));
}

static int64_t scratch_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * part_bytes(local);
}

static struct turns turns_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             int part)
{
    double *at = (double *)(void *)((char *)args->at.scratch + part * part_bytes(local));
    int64_t pairs = local->heads.turned / 2;

    return (struct turns){.pairs = pairs,
                          .amplitude = local->heads.amplitude,
                          .real = at,
                          .imaginary = at + pairs,
                          .step_real = at + 2 * pairs,
                          .step_imaginary = at + 3 * pairs,
                          .cosine = (float *)(at + 4 * pairs),
                          .sine = (float *)(at + 4 * pairs) + pairs};
}

static void begin(const struct ghp_local *local, const struct turns *turns, int64_t position)
{
    for (int64_t i = 0; i < turns->pairs; i++) {
        double angle = ghp_rotary_angle(&local->heads, i);

        turns->step_real[i] = cos(angle);
        turns->step_imaginary[i] = sin(angle);
        turns->real[i] = cos((double)position * angle);
        turns->imaginary[i] = sin((double)position * angle);
    }
}

/* Rounds the position's turns, for which sign -1 turns back, and continues with the next position. */
static void advance(const struct turns *turns, double sign)
{
#pragma omp simd
    for (int64_t i = 0; i < turns->pairs; i++) {
        double real = turns->real[i], imaginary = turns->imaginary[i];

        turns->cosine[i] = (float)(turns->amplitude * real);
        turns->sine[i] = (float)(turns->amplitude * sign * imaginary);
        turns->real[i] = real * turns->step_real[i] - imaginary * turns->step_imaginary[i];
        turns->imaginary[i] = real * turns->step_imaginary[i] + imaginary * turns->step_real[i];
    }
}

#define BODY "executor/backend/cpu/rotary.c"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_rotary[] = {
    {GHP_OP_ROTARY, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(forward, NULL), scratch_bytes},
    {GHP_OP_ROTARY, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(backward, NULL),
     scratch_bytes},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). Tensors are [n][position][head][size]. */

/* Turns all heads of a sample at one position, of `size` channels each; to may be from. */
static void KERNEL(turn_heads)(const struct turns *turns, int64_t channels, int64_t size,
                               const SCALAR *from, SCALAR *to)
{
    int64_t half = turns->pairs;

    for (int64_t c = 0; c < channels; c += size, from += size, to += size) {
        if (to != from && size > 2 * half)
            memcpy(to + 2 * half, from + 2 * half, (size_t)(size - 2 * half) * sizeof *to);
#pragma omp simd
        for (int64_t i = 0; i < half; i++) {
            float a = GET(from[i]), b = GET(from[i + half]);

            to[i] = PUT(a * turns->cosine[i] - b * turns->sine[i]);
            to[i + half] = PUT(b * turns->cosine[i] + a * turns->sine[i]);
        }
    }
}

static void KERNEL(turn)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct ghp_part part, double sign)
{
    struct ghp_range positions = ghp_part_range(part, local->h, PACE);
    struct turns turns = turns_of(local, args, part.index);
    const SCALAR *from = sign > 0 ? args->at.x[0] : args->at.dy;
    SCALAR *to = sign > 0 ? args->at.y : args->at.dx[0];

    for (int64_t p = positions.first; p < positions.end; p++) {
        if (p % PACE == 0) begin(local, &turns, args->first_position + p);
        advance(&turns, sign);
        for (int64_t n = 0; n < local->n; n++) {
            int64_t at = (n * local->h + p) * local->c;

            KERNEL(turn_heads)(&turns, local->c, local->heads.size, from + at, to + at);
        }
    }
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    KERNEL(turn)(local, args, part, 1.0);
}

static void KERNEL(backward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    KERNEL(turn)(local, args, part, -1.0);
}

#endif
