/* executor/backend/reference/joins.c - operations with several inputs: add, mul, concat. An input that no gradient
 * flows into has no dx. */
#include "executor/backend/reference/reference.h"

static void add_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++) {
        double sum = 0.0;

        for (int input = 0; input < local->n_inputs; input++)
            sum += ((const double *)args->at.x[input])[i];
        y[i] = sum;
    }
}

static void add_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;

    for (int input = 0; input < local->n_inputs; input++) {
        double *dx = args->at.dx[input];

        for (int64_t i = 0; dx != NULL && i < ghp_local_in_elements(local); i++)
            dx[i] = dy[i];
    }
}

static void mul_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *a = args->at.x[0], *b = args->at.x[1];
    double *y = args->at.y;

    for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
        y[i] = a[i] * b[i];
}

static void mul_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;

    for (int input = 0; input < 2; input++) {
        const double *other = args->at.x[1 - input];
        double *dx = args->at.dx[input];

        for (int64_t i = 0; dx != NULL && i < ghp_local_in_elements(local); i++)
            dx[i] = dy[i] * other[i];
    }
}

static void concat_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    double *y = args->at.y;

    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int input = 0; input < local->n_inputs; input++) {
            int64_t slice = local->slice[input];
            const double *x = args->at.x[input];

            for (int64_t c = 0; c < slice; c++)
                *y++ = x[pixel * slice + c];
        }
}

static void concat_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *dy = args->at.dy;

    for (int64_t pixel = 0; pixel < ghp_reference_pixels(local); pixel++)
        for (int input = 0; input < local->n_inputs; input++) {
            int64_t slice = local->slice[input];
            double *dx = args->at.dx[input];

            for (int64_t c = 0; c < slice; c++, dy++)
                if (dx != NULL) dx[pixel * slice + c] = *dy;
        }
}

const struct ghp_reference_kernel ghp_reference_joins[] = {
    {GHP_OP_ADD, GHP_PASS_FORWARD, add_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_ADD, GHP_PASS_BACKWARD_DATA, add_backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX, NULL},
    {GHP_OP_MUL, GHP_PASS_FORWARD, mul_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_MUL, GHP_PASS_BACKWARD_DATA, mul_backward, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {GHP_OP_CONCAT, GHP_PASS_FORWARD, concat_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_CONCAT, GHP_PASS_BACKWARD_DATA, concat_backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX,
     NULL},
    {.run = NULL},
};
