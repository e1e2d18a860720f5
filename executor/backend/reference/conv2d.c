/* executor/backend/reference/conv2d.c - convolution.
 *
 * x [n][h][w][c], y [n][p][q][k], w [k][c / groups][r][s]. All passes are sums over the pairs of an input pixel and an
 * output pixel that a place (r, s) of the window joins; c runs over the channels of k's group:
 *
 *     y [n][p][q][k]    += x [n][h][w][c] w[k][c][r][s]
 *     dx[n][h][w][c]    += dy[n][p][q][k] w[k][c][r][s]
 *     dw[k][c][r][s]    += x [n][h][w][c] dy[n][p][q][k]
 *
 * Weights are read and written by way of scratch, where what one step of the inner loops takes lies side by side. */
#include "executor/backend/reference/reference.h"

#include <string.h>

struct pair {
    int64_t in, out; /* pixels, counted over all samples */
    int64_t place;   /* r s, counted row by row */
};

typedef void pair_fn(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                     struct pair pair);

static void for_each_pair(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          pair_fn *add)
{
    const struct ghp_window *window = &local->window;

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t p = 0; p < local->p; p++)
            for (int64_t r = 0; r < window->r; r++)
                for (int64_t s = 0; s < window->s; s++)
                    for (int64_t q = 0; q < local->q; q++) {
                        int64_t h = ghp_reference_row(window, p, r);
                        int64_t w = ghp_reference_column(window, q, s);

                        if (ghp_reference_inside(local, h, w))
                            add(local, args,
                                (struct pair){.in = (n * local->h + h) * local->w + w,
                                              .out = (n * local->p + p) * local->q + q,
                                              .place = r * window->s + s});
                    }
}

static int64_t group_c(const struct ghp_local *local)
{
    return local->c / local->window.groups;
}

static int64_t group_k(const struct ghp_local *local)
{
    return local->k / local->window.groups;
}

/* Element of w between channel c and the k-th output of its group. */
static int64_t weight_at(const struct ghp_local *local, int64_t c, int64_t k, int64_t place)
{
    int64_t output = c / group_c(local) * group_k(local) + k;

    return (output * group_c(local) + c % group_c(local)) * local->window.r * local->window.s +
           place;
}

/* Element of scratch: [place][c][outputs of its group]. */
static int64_t by_input(const struct ghp_local *local, int64_t c, int64_t k, int64_t place)
{
    return (place * local->c + c) * group_k(local) + k;
}

/* Element of scratch: [place][k][channels of its group]. */
static int64_t by_output(const struct ghp_local *local, int64_t c, int64_t k, int64_t place)
{
    int64_t output = c / group_c(local) * group_k(local) + k;

    return (place * local->k + output) * group_c(local) + c % group_c(local);
}

static void turn_weights(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                         int64_t (*at)(const struct ghp_local *, int64_t, int64_t, int64_t))
{
    const double *w = args->at.w[0];
    double *turned = args->at.scratch;

    for (int64_t c = 0; c < local->c; c++)
        for (int64_t k = 0; k < group_k(local); k++)
            for (int64_t place = 0; place < local->window.r * local->window.s; place++)
                turned[at(local, c, k, place)] = w[weight_at(local, c, k, place)];
}

static void add_to_y(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                     struct pair pair)
{
    int64_t channels = group_c(local), outputs = group_k(local);
    const double *x = (const double *)args->at.x[0] + pair.in * local->c;
    const double *w = (const double *)args->at.scratch + by_input(local, 0, 0, pair.place);
    double *y = (double *)args->at.y + pair.out * local->k;

    for (int64_t c = 0; c < local->c; c++)
        ghp_reference_add_scaled(outputs, x[c], w + c * outputs, y + c / channels * outputs);
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    turn_weights(local, args, by_input);
    memset(args->at.y, 0, (size_t)ghp_local_out_elements(local) * sizeof(double));
    for_each_pair(local, args, add_to_y);
}

static void add_to_dx(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                      struct pair pair)
{
    int64_t channels = group_c(local), outputs = group_k(local);
    const double *dy = (const double *)args->at.dy + pair.out * local->k;
    const double *w = (const double *)args->at.scratch + by_output(local, 0, 0, pair.place);
    double *dx = (double *)args->at.dx[0] + pair.in * local->c;

    for (int64_t k = 0; k < local->k; k++)
        ghp_reference_add_scaled(channels, dy[k], w + k * channels, dx + k / outputs * channels);
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    turn_weights(local, args, by_output);
    memset(args->at.dx[0], 0, (size_t)ghp_local_in_elements(local) * sizeof(double));
    for_each_pair(local, args, add_to_dx);
}

static void add_to_dw(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                      struct pair pair)
{
    int64_t channels = group_c(local), outputs = group_k(local);
    const double *x = (const double *)args->at.x[0] + pair.in * local->c;
    const double *dy = (const double *)args->at.dy + pair.out * local->k;
    double *dw = (double *)args->at.scratch + by_input(local, 0, 0, pair.place);

    for (int64_t c = 0; c < local->c; c++)
        ghp_reference_add_scaled(outputs, x[c], dy + c / channels * outputs, dw + c * outputs);
}

static void backward_weight(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *turned = args->at.scratch;
    double *dw = args->at.dw[0];

    memset(args->at.scratch, 0, (size_t)ghp_local_weight_elements(local) * sizeof(double));
    for_each_pair(local, args, add_to_dw);
    for (int64_t c = 0; c < local->c; c++)
        for (int64_t k = 0; k < group_k(local); k++)
            for (int64_t place = 0; place < local->window.r * local->window.s; place++)
                dw[weight_at(local, c, k, place)] = turned[by_input(local, c, k, place)];
}

const struct ghp_reference_kernel ghp_reference_conv2d[] = {
    {GHP_OP_CONV2D, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X | GHP_REFERENCE_W, GHP_REFERENCE_Y,
     ghp_local_weight_elements},
    {GHP_OP_CONV2D, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_DY | GHP_REFERENCE_W,
     GHP_REFERENCE_DX, ghp_local_weight_elements},
    {GHP_OP_CONV2D, GHP_PASS_BACKWARD_WEIGHT, backward_weight, GHP_REFERENCE_X | GHP_REFERENCE_DY,
     GHP_REFERENCE_DW, ghp_local_weight_elements},
    {.run = NULL},
};
