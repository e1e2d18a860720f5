/* executor/backend/reference/rotary.c - rotary: pairs of channels turned by the position's angles. */
#include "core/model/rotary.h"
#include "executor/backend/reference/reference.h"

/* sign: 1 as the definition, -1 back. */
static void turn(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                 double sign, const double *from, double *to)
{
    int64_t size = local->heads.size, half = local->heads.turned / 2;
    double amplitude = local->heads.amplitude;

    for (int64_t row = 0; row < local->n * local->h; row++)
        for (int64_t head = 0; head < local->c / size; head++) {
            for (int64_t i = 0; i < half; i++) {
                double angle = (double)(args->first_position + row % local->h) *
                               ghp_rotary_angle(&local->heads, i);
                int64_t at = row * local->c + head * size + i;
                double a = from[at], b = from[at + half];

                to[at] = amplitude * (a * cos(angle) - sign * b * sin(angle));
                to[at + half] = amplitude * (b * cos(angle) + sign * a * sin(angle));
            }
            for (int64_t i = 2 * half; i < size; i++)
                to[row * local->c + head * size + i] = from[row * local->c + head * size + i];
        }
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    turn(local, args, 1.0, args->at.x[0], args->at.y);
}

static void backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    turn(local, args, -1.0, args->at.dy, args->at.dx[0]);
}

const struct ghp_reference_kernel ghp_reference_rotary[] = {
    {GHP_OP_ROTARY, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_ROTARY, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX, NULL},
    {.run = NULL},
};
