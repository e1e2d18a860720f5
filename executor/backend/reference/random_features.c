/* executor/backend/reference/random_features.c - sqrt(2) cos(z), z = sigma U x + q, U and q as
 * core/model/op/matrix/random_features.c has them; dx = -sqrt(2) sigma sum over k of dy_k sin(z_k) U_k. */
#include "executor/backend/reference/reference.h"
#include "executor/platform/random.h"

#include <math.h>

enum { TAG = 0x72666561 };
static const double two_pi = 6.283185307179586476925;

static double normal(const struct ghp_local *local, int64_t k, int64_t c)
{
    struct ghp_random_block r =
        ghp_random_philox((uint64_t)local->drawn.seed, (uint32_t)(c / 2), (uint32_t)k, TAG, 0);
    double radius = sqrt(-2 * log(((double)r.v[0] + 1) * 0x1p-32));
    double angle = two_pi * 0x1p-32 * (double)r.v[1];

    return radius * (c % 2 == 0 ? cos(angle) : sin(angle));
}

/* U, [k][c], then q, [k]. */
static void draw(const struct ghp_local *local, double *u)
{
    for (int64_t k = 0; k < local->k; k++) {
        struct ghp_random_block r =
            ghp_random_philox((uint64_t)local->drawn.seed, (uint32_t)k, 0, TAG, 1);

        u[local->k * local->c + k] = two_pi * 0x1p-32 * (double)r.v[0];
        for (int64_t c = 0; c < local->c; c++)
            u[k * local->c + c] = normal(local, k, c);
    }
}

static int64_t drawn_numbers(const struct ghp_local *local)
{
    return local->k * (local->c + 1);
}

static double angle_of(const struct ghp_local *local, const double *u, int64_t k, const double *x)
{
    double sum = 0;

    for (int64_t c = 0; c < local->c; c++)
        sum += u[k * local->c + c] * x[c];
    return local->drawn.sigma * sum + u[local->k * local->c + k];
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    double *u = args->at.scratch;

    draw(local, u);
    for (int64_t n = 0; n < ghp_reference_pixels(local); n++)
        for (int64_t k = 0; k < local->k; k++)
            ((double *)args->at.y)[n * local->k + k] =
                sqrt(2) * cos(angle_of(local, u, k, (const double *)args->at.x[0] + n * local->c));
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    double *u = args->at.scratch;

    draw(local, u);
    for (int64_t n = 0; n < ghp_reference_pixels(local); n++) {
        const double *x = (const double *)args->at.x[0] + n * local->c,
                     *dy = (const double *)args->at.dy + n * local->k;
        double *dx = (double *)args->at.dx[0] + n * local->c;

        for (int64_t c = 0; c < local->c; c++)
            dx[c] = 0;
        for (int64_t k = 0; k < local->k; k++)
            ghp_reference_add_scaled(
                local->c, -sqrt(2) * local->drawn.sigma * dy[k] * sin(angle_of(local, u, k, x)),
                u + k * local->c, dx);
    }
}

const struct ghp_reference_kernel ghp_reference_random_features[] = {
    {GHP_OP_RANDOM_FEATURES, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y,
     drawn_numbers},
    {GHP_OP_RANDOM_FEATURES, GHP_PASS_BACKWARD_DATA, backward_data,
     GHP_REFERENCE_X | GHP_REFERENCE_DY, GHP_REFERENCE_DX, drawn_numbers},
    {.run = NULL}};
