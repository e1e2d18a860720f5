/* executor/backend/reference/embedding.c - embedding: y = the row of w [rows][k] that the id names, zeros if that is
 * not a local row; position_embedding: y = x + w [position][c]; prepend: y = w [position][c] and then x; and parameter:
 * y = w [k][p][q] for every sample. */
#include "executor/backend/reference/reference.h"

#include <string.h>

/* The local row of a place, or -1. */
static int64_t row_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                      int64_t place)
{
    int64_t row = ((const int32_t *)args->at.x[0])[place] - args->first_row;

    return row >= 0 && row < local->vocabulary ? row : -1;
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *w = args->at.w[0];
    double *y = args->at.y;

    for (int64_t i = 0; i < local->n * local->h; i++) {
        int64_t row = row_of(local, args, i);

        for (int64_t k = 0; k < local->k; k++)
            y[i * local->k + k] = row < 0 ? 0.0 : w[row * local->k + k];
    }
}

static void backward_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *dw = args->at.dw[0];

    if (!args->adds_weight) memset(dw, 0, (size_t)(local->vocabulary * local->k) * sizeof *dw);
    for (int64_t i = 0; i < local->n * local->h; i++) {
        int64_t row = row_of(local, args, i);

        for (int64_t k = 0; row >= 0 && k < local->k; k++)
            dw[row * local->k + k] += dy[i * local->k + k];
    }
}

static void position_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *w = args->at.w[0];
    double *y = args->at.y;
    int64_t size = local->h * local->c;

    for (int64_t i = 0; i < local->n * size; i++)
        y[i] = x[i] + w[i % size];
}

static void position_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *dw = args->at.dw[0];
    int64_t size = local->h * local->c;

    for (int64_t i = 0; i < size; i++) {
        dw[i] = 0.0;
        for (int64_t n = 0; n < local->n; n++)
            dw[i] += dy[n * size + i];
    }
}

static void prepend_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0], *w = args->at.w[0];
    double *y = args->at.y;
    int64_t added = local->p - local->h, c = local->c;

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t p = 0; p < local->p; p++)
            for (int64_t k = 0; k < c; k++)
                y[(n * local->p + p) * c + k] =
                    p < added ? w[p * c + k] : x[(n * local->h + p - added) * c + k];
}

static void prepend_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *dx = args->at.dx[0];
    int64_t added = local->p - local->h, c = local->c;

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t i = 0; i < local->h * c; i++)
            dx[n * local->h * c + i] = dy[(n * local->p + added) * c + i];
}

static void prepend_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *dw = args->at.dw[0];

    for (int64_t i = 0; i < (local->p - local->h) * local->c; i++) {
        dw[i] = 0.0;
        for (int64_t n = 0; n < local->n; n++)
            dw[i] += dy[n * local->p * local->c + i];
    }
}

static void parameter_forward(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args)
{
    const double *w = args->at.w[0];
    double *y = args->at.y;
    int64_t pixels = local->p * local->q;

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t i = 0; i < pixels; i++)
            for (int64_t k = 0; k < local->k; k++)
                y[(n * pixels + i) * local->k + k] = w[k * pixels + i];
}

static void parameter_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;
    double *dw = args->at.dw[0];
    int64_t pixels = local->p * local->q;

    for (int64_t k = 0; k < local->k; k++)
        for (int64_t i = 0; i < pixels; i++) {
            dw[k * pixels + i] = 0.0;
            for (int64_t n = 0; n < local->n; n++)
                dw[k * pixels + i] += dy[(n * pixels + i) * local->k + k];
        }
}

const struct ghp_reference_kernel ghp_reference_embedding[] = {
    {GHP_OP_EMBEDDING, GHP_PASS_FORWARD, forward, GHP_REFERENCE_W, GHP_REFERENCE_Y, NULL},
    {GHP_OP_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, backward_weight,
     GHP_REFERENCE_DY | GHP_REFERENCE_DW, GHP_REFERENCE_DW, NULL},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_FORWARD, position_forward,
     GHP_REFERENCE_X | GHP_REFERENCE_W, GHP_REFERENCE_Y, NULL},
    {GHP_OP_POSITION_EMBEDDING, GHP_PASS_BACKWARD_WEIGHT, position_weight, GHP_REFERENCE_DY,
     GHP_REFERENCE_DW, NULL},
    {GHP_OP_PREPEND, GHP_PASS_FORWARD, prepend_forward, GHP_REFERENCE_X | GHP_REFERENCE_W,
     GHP_REFERENCE_Y, NULL},
    {GHP_OP_PREPEND, GHP_PASS_BACKWARD_DATA, prepend_data, GHP_REFERENCE_DY, GHP_REFERENCE_DX,
     NULL},
    {GHP_OP_PREPEND, GHP_PASS_BACKWARD_WEIGHT, prepend_weight, GHP_REFERENCE_DY, GHP_REFERENCE_DW,
     NULL},
    {GHP_OP_PARAMETER, GHP_PASS_FORWARD, parameter_forward, GHP_REFERENCE_W, GHP_REFERENCE_Y, NULL},
    {GHP_OP_PARAMETER, GHP_PASS_BACKWARD_WEIGHT, parameter_weight, GHP_REFERENCE_DY,
     GHP_REFERENCE_DW, NULL},
    {.run = NULL},
};
