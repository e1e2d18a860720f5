/* executor/backend/reference/losses.c - losses of outputs with a target of 1 or -1 each: hinge, squared_error and
 * binary_cross_entropy. y is x; dx is the derivative times loss_scale. A row has a label: it is a position of a sample,
 * or one output if each output has a label of its own (multi_label). If the label is negative the row is left out, and
 * dx is 0.
 *
 * And losses of different kinds: several outputs lie side by side. The rows of one after the other are copied together,
 * and its loss is that of them by themselves. */
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

/* ---- different kinds ---- */

extern const struct ghp_reference_kernel ghp_reference_softmax_cross_entropy[],
    ghp_reference_regression[];

static const struct ghp_reference_kernel *find(enum ghp_op op, enum ghp_pass pass)
{
    static const struct ghp_reference_kernel *const tables[] = {
        ghp_reference_softmax_cross_entropy, ghp_reference_margin_losses, ghp_reference_regression};

    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const struct ghp_reference_kernel *row = tables[t]; row->run != NULL; row++)
            if (row->op == op && row->pass == pass) return row;
    return NULL;
}

/* x and y (or y and dx) of an output, and its labels. */
static int64_t scratch(const struct ghp_local *local)
{
    return 3 * ghp_local_in_elements(local);
}

/* from: x or y; to: y or dx. */
static void run_outputs(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        enum ghp_pass pass, const double *from, double *to)
{
    const struct ghp_label_outputs labels = ghp_loss_label_outputs(&local->loss);
    int64_t rows = ghp_reference_pixels(local), column = 0;

    for (int output = 0; output < labels.n; output++) {
        struct ghp_local one = ghp_local_output(local, output);
        struct ghp_kernel_arguments its = *args;
        int64_t first = output > 0 ? labels.end[output - 1] : 0, each = labels.end[output] - first;
        double *in = args->at.scratch, *out = in + rows * one.c;
        int32_t *label = (int32_t *)(void *)(out + rows * one.c);

        for (int64_t r = 0; r < rows; r++) {
            memcpy(in + r * one.c, from + r * local->c + column, (size_t)one.c * sizeof *in);
            memcpy(label + r * each, args->at.labels + r * labels.row + first,
                   (size_t)each * sizeof *label);
        }
        its.at.x[0] = its.at.y = in;
        if (pass == GHP_PASS_FORWARD) its.at.y = out;
        its.at.dx[0] = out;
        its.at.labels = label;
        its.global_channels = one.c;
        find(one.op, pass)->run(&one, &its);
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * local->c + column, out + r * one.c, (size_t)one.c * sizeof *out);
        column += one.c;
    }
}

static void outputs_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    run_outputs(local, args, GHP_PASS_FORWARD, args->at.x[0], args->at.y);
}

static void outputs_backward_data(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args)
{
    run_outputs(local, args, GHP_PASS_BACKWARD_DATA, args->at.y, args->at.dx[0]);
}

const struct ghp_reference_kernel ghp_reference_losses[] = {
    {GHP_OP_LOSSES, GHP_PASS_FORWARD, outputs_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, scratch},
    {GHP_OP_LOSSES, GHP_PASS_BACKWARD_DATA, outputs_backward_data, GHP_REFERENCE_Y,
     GHP_REFERENCE_DX, scratch},
    {.run = NULL}};
