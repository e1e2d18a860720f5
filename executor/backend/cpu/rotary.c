/* executor/backend/cpu/rotary.c - rotary: pairs of channels turned by the position's angles.
 *
 * The turns of a position, one a pair, follow from those of the position before by one product of complex numbers each,
 * in double. Every PACE positions they are computed anew, and parts begin there: so results do not depend on the
 * parts, and errors stay far below a float's. */
#include "core/model/precision.h"
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>

enum { PACE = 64 }; /* positions */

/* Turns as complex numbers, each [pairs]; in a part's scratch. */
struct turns {
    int64_t pairs;
    double *real, *imaginary;           /* of the position */
    double *step_real, *step_imaginary; /* from one position to the next */
    float *cosine, *sine;               /* of the position, rounded */
};

static int64_t part_bytes(const struct ghp_local *local)
{
    int64_t pairs = local->heads.size / 2;

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
    int64_t pairs = local->heads.size / 2;

    return (struct turns){.pairs = pairs,
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
        double angle = pow(local->heads.base, -(double)i / (double)turns->pairs);

        turns->step_real[i] = cos(angle);
        turns->step_imaginary[i] = sin(angle);
        turns->real[i] = cos((double)position * angle);
        turns->imaginary[i] = sin((double)position * angle);
    }
}

/* Rounds the position's turns, for which sign -1 turns back, and goes on to the next position. */
static void advance(const struct turns *turns, double sign)
{
#pragma omp simd
    for (int64_t i = 0; i < turns->pairs; i++) {
        double real = turns->real[i], imaginary = turns->imaginary[i];

        turns->cosine[i] = (float)real;
        turns->sine[i] = (float)(sign * imaginary);
        turns->real[i] = real * turns->step_real[i] - imaginary * turns->step_imaginary[i];
        turns->imaginary[i] = real * turns->step_imaginary[i] + imaginary * turns->step_real[i];
    }
}

#define BODY "executor/backend/cpu/rotary_body.h"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_rotary[] = {
    {GHP_OP_ROTARY, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(forward, NULL), scratch_bytes},
    {GHP_OP_ROTARY, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(backward, NULL),
     scratch_bytes},
    {.name = NULL},
};
