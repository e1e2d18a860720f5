/* executor/backend/reference/pools.c - max, average and global average pools: x [n][h][w][c], y [n][p][q][c].
 *
 * A max pool saves which place (r, s) of its window was greatest, the first of equals: one byte an output if the
 * window has at most 255 places, else four (ghp_local_saved_bytes), all bits set if the window is nothing but
 * padding. There y is 0 and its gradient goes nowhere. */
#include "executor/backend/reference/reference.h"

#include <string.h>

enum { NOWHERE = -1 };

struct output { /* pixel of y */
    int64_t n, p, q;
};

typedef void output_fn(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       struct output at);

static void for_each_output(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            output_fn *compute)
{
    for (int64_t n = 0; n < local->n; n++)
        for (int64_t p = 0; p < local->p; p++)
            for (int64_t q = 0; q < local->q; q++)
                compute(local, args, (struct output){n, p, q});
}

/* Element of channel 0 of an output. */
static int64_t out_at(const struct ghp_local *local, struct output at)
{
    return ((at.n * local->p + at.p) * local->q + at.q) * local->c;
}

/* Element of channel 0 of the input that an output sees at a place of its window; NOWHERE: padding. */
static int64_t in_at(const struct ghp_local *local, struct output at, int64_t place)
{
    int64_t h = ghp_reference_row(&local->window, at.p, place / local->window.s);
    int64_t w = ghp_reference_column(&local->window, at.q, place % local->window.s);

    if (!ghp_reference_inside(local, h, w)) return NOWHERE;
    return ((at.n * local->h + h) * local->w + w) * local->c;
}

static int64_t places(const struct ghp_local *local)
{
    return local->window.r * local->window.s;
}

/* ---- max pool ---- */

static void save_place(const struct ghp_local *local, void *saved, int64_t i, int64_t place)
{
    if (places(local) <= UINT8_MAX)
        ((uint8_t *)saved)[i] = (uint8_t)place;
    else
        ((int32_t *)saved)[i] = (int32_t)place;
}

static int64_t saved_place(const struct ghp_local *local, const void *saved, int64_t i)
{
    if (places(local) > UINT8_MAX) return ((const int32_t *)saved)[i];
    return ((const uint8_t *)saved)[i] == UINT8_MAX ? NOWHERE : ((const uint8_t *)saved)[i];
}

static void max_output(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                       struct output at)
{
    const double *x = args->at.x[0];
    double *y = (double *)args->at.y + out_at(local, at);

    for (int64_t c = 0; c < local->c; c++) {
        int64_t greatest = NOWHERE;

        y[c] = 0.0;
        for (int64_t place = 0; place < places(local); place++) {
            int64_t in = in_at(local, at, place);

            if (in == NOWHERE || (greatest != NOWHERE && !(x[in + c] > y[c]))) continue;
            greatest = place;
            y[c] = x[in + c];
        }
        if (args->at.saved != NULL)
            save_place(local, args->at.saved, out_at(local, at) + c, greatest);
    }
}

static void max_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    for_each_output(local, args, max_output);
}

static void max_gradient(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         struct output at)
{
    const double *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t c = 0; c < local->c; c++) {
        int64_t out = out_at(local, at) + c, place = saved_place(local, args->at.saved, out);

        if (place != NOWHERE) dx[in_at(local, at, place) + c] += dy[out];
    }
}

static void max_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    memset(args->at.dx[0], 0, (size_t)ghp_local_in_elements(local) * sizeof(double));
    for_each_output(local, args, max_gradient);
}

/* ---- average pool ---- */

/* Values that a mean is over; 0: its window is nothing but padding, and the mean 0. */
static int64_t mean_count(const struct ghp_local *local, struct output at)
{
    int64_t inside = 0;

    for (int64_t place = 0; place < places(local); place++)
        inside += in_at(local, at, place) != NOWHERE ? 1 : 0;
    return local->window.count_pad && inside > 0 ? places(local) : inside;
}

static void mean_output(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        struct output at)
{
    const double *x = args->at.x[0];
    double *y = (double *)args->at.y + out_at(local, at);
    double count = (double)mean_count(local, at);

    memset(y, 0, (size_t)local->c * sizeof *y);
    for (int64_t place = 0; place < places(local); place++) {
        int64_t in = in_at(local, at, place);

        for (int64_t c = 0; in != NOWHERE && c < local->c; c++)
            y[c] += x[in + c];
    }
    for (int64_t c = 0; count > 0.0 && c < local->c; c++)
        y[c] /= count;
}

static void mean_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    for_each_output(local, args, mean_output);
}

static void mean_gradient(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          struct output at)
{
    const double *dy = (const double *)args->at.dy + out_at(local, at);
    double *dx = args->at.dx[0];
    double count = (double)mean_count(local, at);

    for (int64_t place = 0; place < places(local); place++) {
        int64_t in = in_at(local, at, place);

        for (int64_t c = 0; in != NOWHERE && c < local->c; c++)
            dx[in + c] += dy[c] / count;
    }
}

static void mean_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    memset(args->at.dx[0], 0, (size_t)ghp_local_in_elements(local) * sizeof(double));
    for_each_output(local, args, mean_gradient);
}

/* ---- global average pool ---- */

static void global_forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t pixels = local->h * local->w;
    const double *x = args->at.x[0];
    double *y = args->at.y;

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t c = 0; c < local->c; c++) {
            double sum = 0.0;

            for (int64_t pixel = 0; pixel < pixels; pixel++)
                sum += x[(n * pixels + pixel) * local->c + c];
            y[n * local->c + c] = sum / (double)pixels;
        }
}

static void global_backward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    int64_t pixels = local->h * local->w;
    const double *dy = args->at.dy;
    double *dx = args->at.dx[0];

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t pixel = 0; pixel < pixels; pixel++)
            for (int64_t c = 0; c < local->c; c++)
                dx[(n * pixels + pixel) * local->c + c] = dy[n * local->c + c] / (double)pixels;
}

const struct ghp_reference_kernel ghp_reference_pools[] = {
    {GHP_OP_MAX_POOL, GHP_PASS_FORWARD, max_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_MAX_POOL, GHP_PASS_BACKWARD_DATA, max_backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX,
     NULL},
    {GHP_OP_AVG_POOL, GHP_PASS_FORWARD, mean_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_AVG_POOL, GHP_PASS_BACKWARD_DATA, mean_backward, GHP_REFERENCE_DY, GHP_REFERENCE_DX,
     NULL},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_FORWARD, global_forward, GHP_REFERENCE_X, GHP_REFERENCE_Y,
     NULL},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_BACKWARD_DATA, global_backward, GHP_REFERENCE_DY,
     GHP_REFERENCE_DX, NULL},
    {.run = NULL},
};
