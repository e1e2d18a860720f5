/* executor/backend/cpu/matrix_body.h - conv2d and linear: bodies for float or double, SCALAR; KERNEL(name) names them.
 *
 * Included by cpu/matrix.c only, once for each precision. x [n][h][w][c], y [n][p][q][k], w [k][c/g][r][s] or [k][c].
 * Two inner loops do all work, both along contiguous channels and with sums in double: four dot products with one
 * vector, and four scaled vectors added to one. */

/* sum[j] += a_j . x, a_j = a + j stride, j < 4. */
static void KERNEL(dot4)(int64_t n, const SCALAR *a, int64_t stride, const SCALAR *x, double sum[4])
{
    const SCALAR *b = a + stride, *c = b + stride, *d = c + stride;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i];
        s0 += (double)a[i] * v;
        s1 += (double)b[i] * v;
        s2 += (double)c[i] * v;
        s3 += (double)d[i] * v;
    }
    sum[0] += s0;
    sum[1] += s1;
    sum[2] += s2;
    sum[3] += s3;
}

static void KERNEL(dot1)(int64_t n, const SCALAR *a, const SCALAR *x, double *sum)
{
    double s = 0.0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++)
        s += (double)a[i] * (double)x[i];
    *sum += s;
}

/* sum[j] += a_j . x, a_j = a + j stride, for the given rows, at most 4. */
static void KERNEL(dots)(int64_t n, struct scaled_rows rows, const SCALAR *a, const SCALAR *x,
                         double sum[4])
{
    if (rows.rows == 4)
        KERNEL(dot4)(n, a, rows.stride, x, sum);
    else
        for (int64_t j = 0; j < rows.rows; j++)
            KERNEL(dot1)(n, a + j * rows.stride, x, sum + j);
}

/* sum += factor_j x_j, x_j = x + j stride, factor_j = factor[j step], j < rows. */
static void KERNEL(scaled)(int64_t n, struct scaled_rows from, const SCALAR *factor,
                           const SCALAR *x, double *sum)
{
    int64_t j = 0;
    for (; j + 4 <= from.rows; j += 4) {
        const SCALAR *a = x + j * from.stride, *b = a + from.stride, *c = b + from.stride,
                     *d = c + from.stride, *f = factor + j * from.step;
        double fa = (double)f[0], fb = (double)f[from.step], fc = (double)f[2 * from.step],
               fd = (double)f[3 * from.step];
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] +=
                (fa * (double)a[i] + fb * (double)b[i]) + (fc * (double)c[i] + fd * (double)d[i]);
    }
    for (; j < from.rows; j++) {
        double fa = (double)factor[j * from.step];
        const SCALAR *a = x + j * from.stride;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] += fa * (double)a[i];
    }
}

/* Up to four output channels' weights, from [c][r][s] to [r][s][c] each. */
static void KERNEL(turn_weights)(const struct shape *at, const SCALAR *w, int64_t k, int64_t rows,
                                 SCALAR *transposed)
{
    int64_t places = at->r * at->s;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t c = 0; c < at->group_c; c++)
            for (int64_t place = 0; place < places; place++)
                transposed[(j * places + place) * at->group_c + c] =
                    w[((k + j) * at->group_c + c) * places + place];
}

/* Output channels k .. k + rows - 1 (of one group) of one sample's row p. */
static void KERNEL(conv_row)(const struct shape *at, const SCALAR *x, const SCALAR *transposed,
                             struct block block, SCALAR *y)
{
    struct scaled_rows rows = {.rows = block.rows, .stride = at->r * at->s * at->group_c};
    const SCALAR *image = x + block.n * at->h * at->w * at->c + block.k / at->group_k * at->group_c;
    for (int64_t q = 0; q < at->q; q++) {
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        for (int64_t r = 0; r < at->r; r++) {
            int64_t h = block.p * at->stride_h - at->pad_top + r * at->dilation_h;
            if (h < 0 || h >= at->h) continue;
            for (int64_t s = 0; s < at->s; s++) {
                int64_t w = q * at->stride_w - at->pad_left + s * at->dilation_w;
                if (w < 0 || w >= at->w) continue;
                KERNEL(dots)
                (at->group_c, rows, transposed + (r * at->s + s) * at->group_c,
                 image + (h * at->w + w) * at->c, sum);
            }
        }
        for (int64_t j = 0; j < block.rows; j++)
            y[((block.n * at->p + block.p) * at->q + q) * at->k + block.k + j] = (SCALAR)sum[j];
    }
}

static void KERNEL(conv_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    struct shape at = shape_of(local);
    struct ghp_range channels = ghp_share_of(share, at.k, 1);
    SCALAR *transposed = part_scratch(args, share.part, transposed_bytes(local, sizeof(SCALAR)));
    struct block block = {.k = channels.first};
    for (; block.k < channels.end; block.k += block.rows) {
        block.rows = rows_left(&at, block.k, channels.end);
        KERNEL(turn_weights)(&at, args->at.w[0], block.k, block.rows, transposed);
        for (block.n = 0; block.n < at.n; block.n++)
            for (block.p = 0; block.p < at.p; block.p++)
                KERNEL(conv_row)(&at, args->at.x[0], transposed, block, args->at.y);
    }
}

/* All weights turned for the data gradient: [r][s][k][c / g]. */
static void KERNEL(conv_data_before)(const struct ghp_local *local,
                                     const struct ghp_kernel_arguments *args,
                                     struct ghp_share share)
{
    (void)share;
    struct shape at = shape_of(local);
    const SCALAR *w = args->at.w[0];
    SCALAR *transposed = args->at.scratch;
    int64_t places = at.r * at.s;
    for (int64_t k = 0; k < at.k; k++)
        for (int64_t c = 0; c < at.group_c; c++)
            for (int64_t place = 0; place < places; place++)
                transposed[(place * at.k + k) * at.group_c + c] =
                    w[(k * at.group_c + c) * places + place];
}

/* sum over the outputs that read input pixel (h, w) of one sample; sum [c]. */
static void KERNEL(conv_pixel)(const struct shape *at, const SCALAR *transposed, const SCALAR *dy,
                               struct pixel pixel, double *sum)
{
    struct scaled_rows from = {.rows = at->group_k, .stride = at->group_c, .step = 1};
    for (int64_t r = 0; r < at->r; r++) {
        int64_t p = output_of(pixel.h + at->pad_top - r * at->dilation_h, at->stride_h, at->p);
        if (p < 0) continue;
        for (int64_t s = 0; s < at->s; s++) {
            int64_t q = output_of(pixel.w + at->pad_left - s * at->dilation_w, at->stride_w, at->q);
            if (q < 0) continue;
            const SCALAR *gradient = dy + ((pixel.n * at->p + p) * at->q + q) * at->k;
            const SCALAR *place = transposed + (r * at->s + s) * at->k * at->group_c;
            for (int64_t g = 0; g < at->groups; g++)
                KERNEL(scaled)
            (at->group_c, from, gradient + g * at->group_k, place + g * at->group_k * at->group_c,
             sum + g * at->group_c);
        }
    }
}

static void KERNEL(conv_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    struct shape at = shape_of(local);
    struct ghp_range rows = ghp_share_of(share, at.n * at.h, 1);
    const SCALAR *transposed = args->at.scratch;
    double *sum = after_transposed(args, local, sizeof(SCALAR), share.part);
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t w = 0; w < at.w; w++) {
            SCALAR *dx = (SCALAR *)args->at.dx[0] + (row * at.w + w) * at.c;
            memset(sum, 0, (size_t)at.c * sizeof *sum);
            KERNEL(conv_pixel)
            (&at, transposed, args->at.dy, (struct pixel){row / at.h, row % at.h, w}, sum);
            for (int64_t i = 0; i < at.c; i++)
                dx[i] = (SCALAR)sum[i];
        }
}

/* Gradient of one weight place (r, s) of output channel k; sum [c / g]. */
static void KERNEL(conv_place)(const struct shape *at, const SCALAR *x, const SCALAR *dy,
                               struct place place, double *sum)
{
    int64_t shift = place.s * at->dilation_w - at->pad_left;
    struct ghp_range q = outputs_inside(shift, at->stride_w, at->w, at->q);
    struct scaled_rows from = {
        .rows = q.end - q.first, .stride = at->stride_w * at->c, .step = at->k};
    for (int64_t n = 0; n < at->n; n++)
        for (int64_t p = 0; p < at->p; p++) {
            int64_t h = p * at->stride_h - at->pad_top + place.r * at->dilation_h;
            if (h < 0 || h >= at->h) continue;
            KERNEL(scaled)
            (at->group_c, from, dy + ((n * at->p + p) * at->q + q.first) * at->k + place.k,
             x + ((n * at->h + h) * at->w + q.first * at->stride_w + shift) * at->c +
                 place.k / at->group_k * at->group_c,
             sum);
        }
}

static void KERNEL(conv_weight)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    struct shape at = shape_of(local);
    struct ghp_range channels = ghp_share_of(share, at.k, 1);
    double *sum = part_scratch(args, share.part, at.group_c * (int64_t)sizeof *sum);
    SCALAR *dw = args->at.dw[0];
    struct place place;
    for (place.k = channels.first; place.k < channels.end; place.k++)
        for (place.r = 0; place.r < at.r; place.r++)
            for (place.s = 0; place.s < at.s; place.s++) {
                memset(sum, 0, (size_t)at.group_c * sizeof *sum);
                KERNEL(conv_place)(&at, args->at.x[0], args->at.dy, place, sum);
                for (int64_t c = 0; c < at.group_c; c++)
                    dw[((place.k * at.group_c + c) * at.r + place.r) * at.s + place.s] =
                        (SCALAR)sum[c];
            }
}

static void KERNEL(linear_forward)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    int64_t c = features_of(local), k = local->k;
    struct ghp_range outputs = ghp_share_of(share, k, 4);
    const SCALAR *w = args->at.w[0];
    for (int64_t first = outputs.first; first < outputs.end; first += 4) {
        struct scaled_rows rows = {.stride = c};
        rows.rows = outputs.end - first < 4 ? outputs.end - first : 4;
        for (int64_t n = 0; n < local->n; n++) {
            double sum[4] = {0.0, 0.0, 0.0, 0.0};
            KERNEL(dots)(c, rows, w + first * c, (const SCALAR *)args->at.x[0] + n * c, sum);
            for (int64_t j = 0; j < rows.rows; j++)
                ((SCALAR *)args->at.y)[n * k + first + j] = (SCALAR)sum[j];
        }
    }
}

static void KERNEL(linear_data)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    int64_t c = features_of(local), k = local->k;
    struct ghp_range inputs = ghp_share_of(share, c, 16);
    int64_t width = inputs.end - inputs.first;
    double *sum = part_scratch(args, share.part, c * (int64_t)sizeof *sum);
    struct scaled_rows from = {.rows = k, .stride = c, .step = 1};
    for (int64_t n = 0; n < local->n; n++) {
        SCALAR *dx = (SCALAR *)args->at.dx[0] + n * c + inputs.first;
        memset(sum, 0, (size_t)width * sizeof *sum);
        KERNEL(scaled)
        (width, from, (const SCALAR *)args->at.dy + n * k,
         (const SCALAR *)args->at.w[0] + inputs.first, sum);
        for (int64_t i = 0; i < width; i++)
            dx[i] = (SCALAR)sum[i];
    }
}

static void KERNEL(linear_weight)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_share share)
{
    int64_t c = features_of(local), k = local->k;
    struct ghp_range outputs = ghp_share_of(share, k, 1);
    double *sum = part_scratch(args, share.part, c * (int64_t)sizeof *sum);
    struct scaled_rows from = {.rows = local->n, .stride = c, .step = k};
    for (int64_t output = outputs.first; output < outputs.end; output++) {
        SCALAR *dw = (SCALAR *)args->at.dw[0] + output * c;
        memset(sum, 0, (size_t)c * sizeof *sum);
        KERNEL(scaled)(c, from, (const SCALAR *)args->at.dy + output, args->at.x[0], sum);
        for (int64_t i = 0; i < c; i++)
            dw[i] = (SCALAR)sum[i];
    }
}
