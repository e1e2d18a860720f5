/* executor/backend/reference/resize.c - resize: x [n][h][w][c], y [n][p][q][c].
 *
 * An output pixel is the sum over input pixels j of weight(j) along the rows times that along the columns. Between two
 * pixels a weight is a hat of width 1 around the place where the output lies. */
#include "executor/backend/reference/reference.h"

#include <math.h>
#include <string.h>

struct axis {
    enum ghp_resize mode;
    int64_t in, out;
};

/* The place of output i among the input's pixels. */
static double place_of(struct axis axis, int64_t i)
{
    double in = (double)axis.in, out = (double)axis.out,
           at = axis.mode == GHP_RESIZE_LINEAR ? ((double)i + 0.5) * in / out - 0.5
                : axis.out > 1                 ? (double)i * (in - 1.0) / (out - 1.0)
                                               : 0.0;

    return fmin(fmax(at, 0.0), in - 1.0);
}

/* The first input pixel that may have a weight. */
static int64_t first_of(struct axis axis, int64_t i)
{
    if (axis.mode == GHP_RESIZE_NEAREST || axis.mode == GHP_RESIZE_AREA)
        return i * axis.in / axis.out;
    return (int64_t)floor(place_of(axis, i));
}

/* One after the last input that output i reads. */
static int64_t end_of(struct axis axis, int64_t i)
{
    int64_t first = first_of(axis, i);

    if (axis.mode == GHP_RESIZE_NEAREST) return first + 1;
    if (axis.mode == GHP_RESIZE_AREA) return ((i + 1) * axis.in + axis.out - 1) / axis.out;
    return first + 2 < axis.in ? first + 2 : axis.in;
}

static double weight_of(struct axis axis, int64_t i, int64_t j)
{
    if (axis.mode == GHP_RESIZE_NEAREST || axis.mode == GHP_RESIZE_AREA)
        return 1.0 / (double)(end_of(axis, i) - first_of(axis, i));
    return fmax(0.0, 1.0 - fabs(place_of(axis, i) - (double)j));
}

/* to[c] += weight * from[c] of each pair of an input and an output pixel. */
static void add_all(const struct ghp_local *local, const double *from, double *to, bool forward)
{
    const struct axis rows = {local->resize, local->h, local->p},
                      columns = {local->resize, local->w, local->q};

    for (int64_t i = 0; i < local->n * local->p * local->q; i++) {
        int64_t q = i % local->q, p = i / local->q % local->p, n = i / local->q / local->p;

        for (int64_t h = first_of(rows, p); h < end_of(rows, p); h++)
            for (int64_t w = first_of(columns, q); w < end_of(columns, q); w++) {
                int64_t in = ((n * local->h + h) * local->w + w) * local->c, out = i * local->c;
                double weight = weight_of(rows, p, h) * weight_of(columns, q, w);

                ghp_reference_add_scaled(local->c, weight, from + (forward ? in : out),
                                         to + (forward ? out : in));
            }
    }
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    memset(args->at.y, 0, (size_t)ghp_local_out_elements(local) * sizeof(double));
    add_all(local, args->at.x[0], args->at.y, true);
}

static void backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    memset(args->at.dx[0], 0, (size_t)ghp_local_in_elements(local) * sizeof(double));
    add_all(local, args->at.dy, args->at.dx[0], false);
}

const struct ghp_reference_kernel ghp_reference_resize[] = {
    {GHP_OP_RESIZE, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_RESIZE, GHP_PASS_BACKWARD_DATA, backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX, NULL},
    {.run = NULL},
};
