/* executor/backend/reference/index_maps.c - flatten, view and pad: each output element is one input element, or pad's
 * constant; gradients are added along the same map. */
#include "executor/backend/reference/reference.h"
#include "core/sharding/index_table.h"

#include <string.h>

/* ---- flatten: a sample's [h][w][c] as [c][h][w] ---- */

static void flatten_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t pixels = local->h * local->w;
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t c = 0; c < local->c; c++)
            for (int64_t pixel = 0; pixel < pixels; pixel++)
                *y++ = x[(n * pixels + pixel) * local->c + c];
}

static void flatten_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t pixels = local->h * local->w;
    const double *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t c = 0; c < local->c; c++)
            for (int64_t pixel = 0; pixel < pixels; pixel++)
                dx[(n * pixels + pixel) * local->c + c] = *dy++;
}

/* ---- view and pad: by core's table ---- */

static int64_t sample_in(const struct ghp_local *local)
{
    return local->c * local->h * local->w;
}

static int64_t sample_out(const struct ghp_local *local)
{
    return local->k * local->p * local->q;
}

static void map_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int32_t *source = args->at.scratch;

    ghp_index_map_table(local, 1, source);
    for (int64_t n = 0; n < local->n; n++) {
        const double *x = (const double *)args->at.x[0] + n * sample_in(local);
        double *y = (double *)args->at.y + n * sample_out(local);

        for (int64_t i = 0; i < sample_out(local); i++)
            y[i] = source[i] == GHP_INDEX_MAP_NOTHING ? local->border.value : x[source[i]];
    }
}

static void map_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int32_t *source = args->at.scratch;

    ghp_index_map_table(local, 1, source);
    memset(args->at.dx[0], 0, (size_t)ghp_local_in_elements(local) * sizeof(double));
    for (int64_t n = 0; n < local->n; n++) {
        const double *dy = (const double *)args->at.dy + n * sample_out(local);
        double *dx = (double *)args->at.dx[0] + n * sample_in(local);

        for (int64_t i = 0; i < sample_out(local); i++)
            if (source[i] != GHP_INDEX_MAP_NOTHING) dx[source[i]] += dy[i];
    }
}

/* At least the table's 32-bit entries. */
static int64_t table(const struct ghp_local *local)
{
    return sample_out(local);
}

const struct ghp_reference_kernel ghp_reference_index_maps[] = {
    {GHP_OP_FLATTEN, GHP_PASS_FORWARD, flatten_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_FLATTEN, GHP_PASS_BACKWARD_DATA, flatten_backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX,
     NULL},
    {GHP_OP_VIEW, GHP_PASS_FORWARD, map_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, table},
    {GHP_OP_VIEW, GHP_PASS_BACKWARD_DATA, map_backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX, table},
    {GHP_OP_PAD, GHP_PASS_FORWARD, map_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, table},
    {GHP_OP_PAD, GHP_PASS_BACKWARD_DATA, map_backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX, table},
    {.run = NULL},
};
