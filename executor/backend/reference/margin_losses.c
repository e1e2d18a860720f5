/* executor/backend/reference/margin_losses.c - losses of outputs with a target of 1 or -1 each: hinge, squared_error
 * and binary_cross_entropy. y is x; dx is the derivative times loss_scale. A row has a label: it is a position of a
 * sample, or one output if each output has a label of its own (multi_label). If the label is negative the row is left
 * out, and dx is 0. */
#include "executor/backend/reference/reference.h"

#include <math.h>
#include <string.h>

static int64_t columns_of(const struct ghp_local *local)
{
    return local->loss.multi_label ? 1 : local->c;
}

static double target(int64_t columns, int32_t label, int64_t i)
{
    if (columns == 1) return label > 0 ? 1.0 : -1.0;
    return i == label ? 1.0 : -1.0;
}

static bool is_right(int64_t columns, const double *x, int32_t label)
{
    int64_t greatest = 0;

    if (columns == 1) return (x[0] > 0) == (label > 0);
    for (int64_t i = 1; i < columns; i++)
        if (x[i] > x[greatest]) greatest = i; /* of equals the first */
    return greatest == label;
}

/* The loss of one output among `columns`. */
static double loss(enum ghp_op op, int64_t columns, double x, double t)
{
    if (op == GHP_OP_BINARY_CE) return (fmax(0, -t * x) + log1p(exp(-fabs(x)))) / (double)columns;
    return op == GHP_OP_HINGE ? fmax(0, 1 - t * x) : 0.5 * (x - t) * (x - t);
}

static double slope(enum ghp_op op, int64_t columns, double x, double t)
{
    if (op == GHP_OP_BINARY_CE) return -t / (1 + exp(t * x)) / (double)columns;
    if (op == GHP_OP_HINGE) return t * x < 1 ? -t : 0.0;
    return x - t;
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t rows = ghp_local_losses(local), columns = columns_of(local);

    for (int64_t n = 0; n < rows; n++) {
        const double *x = (const double *)args->at.x[0] + n * columns;
        int32_t label = n < args->valid_samples * rows / local->n
                            ? args->at.labels[ghp_reference_label(local, n)]
                            : -1;
        double sum = 0;

        memmove((double *)args->at.y + n * columns, x, (size_t)columns * sizeof *x);
        if (label < 0) continue;
        for (int64_t i = 0; i < columns; i++)
            sum += loss(local->op, columns, x[i], target(columns, label, i));
        ghp_reference_add_metrics(local, args, n, sum, is_right(columns, x, label) ? 1.0 : 0.0);
    }
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t rows = ghp_local_losses(local), columns = columns_of(local);
    const double *y = args->at.y;
    double *dx = args->at.dx[0];

    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < columns; i++) {
            int64_t at = n * columns + i;
            int32_t label = args->at.labels[ghp_reference_label(local, n)];

            dx[at] = label < 0 ? 0.0
                               : args->loss_scale * ghp_reference_output_weight(local, args, n) *
                                     slope(local->op, columns, y[at], target(columns, label, i));
        }
}

#define PASSES(op)                                                                                 \
    {op, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},                       \
    {                                                                                              \
        op, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_Y, GHP_REFERENCE_DX, NULL         \
    }

const struct ghp_reference_kernel ghp_reference_margin_losses[] = {
    PASSES(GHP_OP_HINGE), PASSES(GHP_OP_SQUARED_ERROR), PASSES(GHP_OP_BINARY_CE), {.run = NULL}};
