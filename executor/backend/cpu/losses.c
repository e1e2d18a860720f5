/* executor/backend/cpu/losses.c - the losses hinge, squared_error and binary_cross_entropy: outputs with a target of 1
 * or -1 each. A row has a label; if each of its columns has its own (multi_label), each is a row here.
 *
 * And losses of different kinds: several outputs lie side by side. The rows of one after the other are copied together
 * for its own loop. A part has its own samples.
 *
 * ghp-options: -O3 */
#ifndef KERNEL
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>
#include <string.h>

static int64_t columns_of(const struct ghp_local *local)
{
    return local->loss.multi_label ? 1 : local->c;
}

static float target(int64_t columns, int64_t label, int64_t i)
{
    return (columns == 1 ? label > 0 : i == label) ? 1.0f : -1.0f;
}

/* What an output's loss counts: binary_cross_entropy is the mean over the outputs, the others are sums. */
static double weight_of(const struct ghp_local *local)
{
    return local->op == GHP_OP_BINARY_CE ? 1.0 / (double)columns_of(local) : 1.0;
}

static double loss_of(enum ghp_op op, float x, float t)
{
    double d = (double)x - (double)t, margin = 1 - (double)t * (double)x;
    if (op == GHP_OP_BINARY_CE) return (margin > 1 ? margin - 1 : 0) + log1p(exp(-fabs((double)x)));
    if (op == GHP_OP_HINGE) return margin > 0 ? margin : 0;
    return 0.5 * d * d;
}

static float slope_of(enum ghp_op op, float x, float t)
{
    if (op == GHP_OP_BINARY_CE) return -t / (1 + expf(t * x));
    if (op == GHP_OP_HINGE) return t * x < 1 ? -t : 0;
    return x - t;
}

/* With multi_label: the row of c columns, of whose outputs there may be several, and the row's place in its labels. */
static int64_t whole_row(const struct ghp_local *local, int64_t row)
{
    return local->loss.multi_label ? row / local->c : row;
}

static int64_t label_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        int64_t row)
{
    int64_t labels = ghp_cpu_loss_labels(local, whole_row(local, row));

    return args->at.labels[local->loss.multi_label ? labels * local->c + row % local->c : labels];
}

/* ---- different kinds ---- */

static ghp_cpu_kernel_fn *loop_of(enum ghp_op op, enum ghp_pass pass,
                                  enum ghp_cpu_precision precision)
{
    static const struct ghp_cpu_kernel *const tables[] = {
        ghp_cpu_kernels_softmax, ghp_cpu_kernels_margin_losses, ghp_cpu_kernels_regression};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const struct ghp_cpu_kernel *loop = tables[t]; loop->name != NULL; loop++)
            if (loop->op == op && loop->pass == pass) return loop->stages[precision].run;
    return NULL;
}

/* What a part has: the rows of an output before and after its loop, their labels, the loop's metrics. */
struct rows {
    int64_t one, labels, whole; /* bytes, aligned */
};

static struct rows rows_of(const struct ghp_local *local, int parts)
{
    int64_t most = (local->n + parts - 1) / parts * local->h * local->w;
    struct rows rows = {.one = ghp_align(most * local->c * (int64_t)sizeof(float)),
                        .labels = ghp_align(most * ghp_loss_label_outputs(&local->loss).row *
                                            (int64_t)sizeof(int32_t))};
    rows.whole = 2 * rows.one + rows.labels + ghp_cpu_kernel_metric_bytes(local, 1, 4);
    return rows;
}

static int64_t scratch_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    return ghp_cpu_kernel_metric_bytes(local, parts, element_bytes) +
           parts * rows_of(local, parts).whole;
}

#define BODY "executor/backend/cpu/losses.c"
#include "executor/backend/cpu/precisions.h"

#define PASSES(op)                                                                                 \
    {op, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(forward, ghp_cpu_kernel_add_metrics),       \
     ghp_cpu_kernel_metric_bytes},                                                                 \
    {                                                                                              \
        op, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(backward_data, NULL), NULL         \
    }

const struct ghp_cpu_kernel ghp_cpu_kernels_margin_losses[] = {
    PASSES(GHP_OP_HINGE), PASSES(GHP_OP_SQUARED_ERROR), PASSES(GHP_OP_BINARY_CE), {.name = NULL}};

const struct ghp_cpu_kernel ghp_cpu_kernels_losses[] = {
    {GHP_OP_LOSSES, GHP_PASS_FORWARD, "loop",
     GHP_CPU_KERNEL_EACH(outputs_forward, ghp_cpu_kernel_add_metrics), scratch_bytes},
    {GHP_OP_LOSSES, GHP_PASS_BACKWARD_DATA, "loop",
     GHP_CPU_KERNEL_EACH(outputs_backward_data, NULL), scratch_bytes},
    {.name = NULL},
};

#else /* the bodies, for each precision (cpu/precisions.h). Tensors are [rows][columns]. */

static bool KERNEL(is_right)(int64_t columns, const SCALAR *x, int64_t label)
{
    int64_t greatest = 0;
    if (columns == 1) return (GET(x[0]) > 0) == (label > 0);
    for (int64_t i = 1; i < columns; i++)
        greatest = GET(x[i]) > GET(x[greatest]) ? i : greatest;
    return greatest == label;
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    int64_t columns = columns_of(local), all = ghp_local_losses(local);
    struct ghp_range rows = ghp_part_range(part, all, 1);
    double *sum = ghp_cpu_kernel_part_metrics(args, part.index);
    for (int i = 0; i < GHP_METRIC_COUNT; i++)
        sum[i] = 0.0;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * columns;
        int64_t label =
            row < args->valid_samples * all / local->n ? label_of(local, args, row) : -1;
        double weight = weight_of(local) * ghp_cpu_loss_weight(local, args, whole_row(local, row));
        memmove((SCALAR *)args->at.y + row * columns, x, (size_t)columns * sizeof *x);
        if (label < 0) continue;
        for (int64_t i = 0; i < columns; i++)
            sum[GHP_METRIC_LOSS] +=
                weight * loss_of(local->op, GET(x[i]), target(columns, label, i));
        if (ghp_cpu_loss_output(local, whole_row(local, row)) != args->counted_output) continue;
        sum[GHP_METRIC_CORRECT] += KERNEL(is_right)(columns, x, label) ? 1.0 : 0.0;
        sum[GHP_METRIC_SAMPLES] += 1.0;
    }
}

static void KERNEL(backward_data)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t columns = columns_of(local);
    struct ghp_range rows = ghp_part_range(part, ghp_local_losses(local), 1);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *y = (const SCALAR *)args->at.y + row * columns;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * columns;
        int64_t label = label_of(local, args, row);
        float scale = (float)(args->loss_scale * weight_of(local) *
                              ghp_cpu_loss_weight(local, args, whole_row(local, row)));
        for (int64_t i = 0; i < columns; i++)
            dx[i] =
                PUT(label < 0 ? 0.0f
                              : scale * slope_of(local->op, GET(y[i]), target(columns, label, i)));
    }
}

/* ---- different kinds ---- */

/* One output of the part's samples. from: x or y; to: y or dx; column: its first. */
static void KERNEL(run_output)(const struct ghp_local *one, struct ghp_kernel_arguments *its,
                               enum ghp_pass pass, int64_t columns, const SCALAR *from, SCALAR *to)
{
    const enum ghp_cpu_precision precision = ROUNDS ? GHP_PRECISION_BF16 : GHP_PRECISION_FLOAT;
    int64_t rows = one->n * one->h;
    SCALAR *in = its->at.y, *out = its->at.dx[0];
    for (int64_t r = 0; r < rows; r++)
        memcpy(in + r * one->c, from + r * columns, (size_t)one->c * sizeof *in);
    its->at.x[0] = in;
    if (pass == GHP_PASS_FORWARD) its->at.y = out;
    its->global_channels = one->c;
    loop_of(one->op, pass, precision)(one, its, (struct ghp_part){0, 1});
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * columns, out + r * one->c, (size_t)one->c * sizeof *out);
}

static void KERNEL(run_outputs)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part,
                                enum ghp_pass pass, const SCALAR *from, SCALAR *to)
{
    const struct ghp_label_outputs labels = ghp_loss_label_outputs(&local->loss);
    struct ghp_range own = ghp_part_range(part, local->n, 1);
    struct rows bytes = rows_of(local, part.count);
    int64_t pixels = local->h * local->w, rows = (own.end - own.first) * pixels, column = 0;
    int64_t valid = args->valid_samples - own.first;
    char *base = (char *)args->at.scratch + ghp_cpu_kernel_metric_bytes(local, part.count, 4) +
                 part.index * bytes.whole;
    int32_t *label = (int32_t *)(void *)(base + 2 * bytes.one);
    double *sum = ghp_cpu_kernel_part_metrics(args, part.index);
    for (int i = 0; i < GHP_METRIC_COUNT; i++)
        sum[i] = 0;
    for (int output = 0; output < labels.n && rows > 0; output++) {
        struct ghp_local one = ghp_local_output(local, output);
        struct ghp_kernel_arguments its = *args;
        int64_t first = output > 0 ? labels.end[output - 1] : 0, each = labels.end[output] - first;
        one.n = own.end - own.first;
        its.valid_samples = valid < 0 ? 0 : valid > one.n ? one.n : valid;
        its.at.y = base;
        its.at.dx[0] = base + bytes.one;
        its.at.labels = label;
        its.at.scratch = base + 2 * bytes.one + bytes.labels;
        for (int64_t r = 0; r < rows; r++)
            memcpy(label + r * each,
                   args->at.labels + (own.first * pixels + r) * labels.row + first,
                   (size_t)each * sizeof *label);
        KERNEL(run_output)
        (&one, &its, pass, local->c, from + own.first * pixels * local->c + column,
         to + own.first * pixels * local->c + column);
        for (int i = 0; i < GHP_METRIC_COUNT && pass == GHP_PASS_FORWARD; i++)
            sum[i] += ghp_cpu_kernel_part_metrics(&its, 0)[i];
        column += one.c;
    }
}

static void KERNEL(outputs_forward)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(run_outputs)(local, args, part, GHP_PASS_FORWARD, args->at.x[0], args->at.y);
}

static void KERNEL(outputs_backward_data)(const struct ghp_local *local,
                                          const struct ghp_kernel_arguments *args,
                                          struct ghp_part part)
{
    KERNEL(run_outputs)(local, args, part, GHP_PASS_BACKWARD_DATA, args->at.y, args->at.dx[0]);
}

#endif
