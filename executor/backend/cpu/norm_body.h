/* executor/backend/cpu/norm_body.h - normalisations: bodies for one precision (cpu/precisions.h).
 *
 * Included by cpu/norm.c only, once for each precision. Tensors are [rows][c], rows = n h w; those of a batch norm
 * may lie in blocks (cpu/norm.c). The sums of a batch norm
 * are taken about the running mean, which is the same on every worker: d = x - running mean, sums of d and d d. */

/* ---- batch norm ---- */

/* Sums of d and of d d over rows of `width` channels, added to what is there. */
static ALWAYS_INLINE void KERNEL(stats_rows)(struct stretch at, int64_t width,
                                             const struct ghp_kernel_arguments *args, double *sum,
                                             double *square)
{
    const SCALAR *x = (const SCALAR *)args->at.x[0] + at.first;
    const float *shift = (const float *)args->at.state[0] + at.channel;
    for (int64_t row = 0; row < at.rows; row++) {
        if (width == LANES) ghp_prefetch_line(x + row * at.stride);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            double d = (double)GET(x[row * at.stride + i]) - (double)shift[i];
            sum[i] += d;
            square[i] += d * d;
        }
    }
}

/* Two sums a channel over this part's rows, in double, into row `part` of scratch: [2 c]. */
static ALWAYS_INLINE void KERNEL(stats)(const struct ghp_local *local,
                                        const struct ghp_kernel_arguments *args,
                                        struct ghp_part part, struct norm_variant variant)
{
    struct walk walk = walk_of(local, part, variant);
    double *sum = part_sums(args, part.index, local->c), *square = sum + local->c;
    memset(sum, 0, (size_t)(2 * local->c) * sizeof *sum);
    for (int64_t s = 0; s < walk.n; s++) {
        const struct stretch at = stretch_of(&walk, s);
        if (!variant.nchw16c) {
            KERNEL(stats_rows)(at, local->c, args, sum, square);
            continue;
        }
        double lanes[2][LANES] = {{0}};
        KERNEL(stats_rows)(at, LANES, args, lanes[0], lanes[1]);
        add_lanes(lanes, sum + at.channel, square + at.channel);
    }
}

/* Moves the running statistics by the mix. If other samples of the batch have statistics of their own, it notes this
 * part of the way separately. */
static void KERNEL(move)(const struct ghp_kernel_arguments *args, int which, int64_t i, double by)
{
    float *running = args->at.state[which], *stats_delta = args->at.stats_delta[which];
    if (stats_delta == NULL)
        running[i] = (float)((double)running[i] + by);
    else
        stats_delta[i] = (float)((args->stats_delta_adds ? (double)stats_delta[i] : 0.0) +
                                 args->stats_delta_share * by);
}

/* Training: makes mean and variance from the sums, keeps them for the backward pass and mixes them into the running
 * statistics. Then y = (x - to[0]) to[1] + to[2] for each of these channels. Sums and coefficients are of these
 * channels alone. */
static void KERNEL(coefficients)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_range channels,
                                 const double *const sums[2], float *const to[3])
{
    int64_t c = local->c;
    const float *gamma = args->at.w[0], *beta = args->at.w[1];
    const float *running_mean = args->at.state[0];
    float *running_variance = args->at.state[1], *saved = args->at.saved;
    double count = (double)args->stat_count, mix = local->norm.momentum;
    for (int64_t i = channels.first, j = 0; i < channels.end; i++, j++) {
        double mean = (double)running_mean[i], variance = (double)running_variance[i];
        if (args->training) {
            double offset = sums[0][j] / count;
            variance = sums[1][j] / count - offset * offset;
            if (variance < 0.0) variance = 0.0;
            mean += offset;
            double unbiased = count > 1.0 ? variance * count / (count - 1.0) : variance;
            KERNEL(move)(args, 0, i, mix * offset);
            if (args->at.stats_delta[1] == NULL)
                running_variance[i] =
                    (float)((1.0 - mix) * (double)running_variance[i] + mix * unbiased);
            else
                KERNEL(move)(args, 1, i, mix * (unbiased - (double)running_variance[i]));
        }
        float inverse = (float)(1.0 / sqrt(variance + local->norm.epsilon));
        if (args->training) {
            saved[i] = (float)mean;
            saved[c + i] = inverse;
        }
        to[0][j] = (float)mean;
        to[1][j] = gamma[i] * inverse;
        to[2][j] = beta[i];
    }
}

static void KERNEL(norm_before)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    (void)part;
    int64_t c = local->c;
    float *scratch = args->at.scratch;
    KERNEL(coefficients)
    (local, args, (struct ghp_range){0, c},
     (const double *const[2]){args->at.stats, args->at.stats + (args->training ? c : 0)},
     (float *const[3]){scratch, scratch + c, scratch + 2 * c});
}

static ALWAYS_INLINE float KERNEL(normed)(SCALAR x, float mean, float scale, float beta)
{
    return (GET(x) - mean) * scale + beta;
}

/* If it adds, it adds x[1], before the ReLU. */
static ALWAYS_INLINE void KERNEL(forward_rows)(struct stretch at, int64_t width,
                                               const struct ghp_kernel_arguments *args,
                                               const float *const by[3], struct rows_variant layout)
{
    const float *mean = by[0], *scale = by[1], *beta = by[2];
    const SCALAR *x = (const SCALAR *)args->at.x[0] + at.first,
                 *other = layout.adds ? (const SCALAR *)args->at.x[1] + at.first : x;
    SCALAR *y = (SCALAR *)args->at.y + at.first, line[LANES];
    for (int64_t row = 0; row < at.rows; row++) {
        if (width == LANES) ghp_prefetch_line(x + row * at.stride);
        if (width == LANES && layout.adds) ghp_prefetch_line(other + row * at.stride);
        SCALAR *to = layout.streaming_store ? line : y + row * at.stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float v = KERNEL(normed)(x[row * at.stride + i], mean[i], scale[i], beta[i]);
            if (layout.adds) v = GET(PUT(v)) + GET(other[row * at.stride + i]);
            to[i] = PUT(layout.relu && !(v > 0) ? 0 : v);
        }
        if (layout.streaming_store) ghp_streaming_store(y + row * at.stride, line, sizeof line);
    }
}

static ALWAYS_INLINE void KERNEL(forward_stretch)(struct stretch at, int64_t width,
                                                  const struct ghp_kernel_arguments *args,
                                                  const float *const by[3],
                                                  struct rows_variant layout)
{
    layout.adds = args->at.x[1] != NULL;
    if (layout.streaming_store && layout.adds)
        KERNEL(forward_rows)(at, width, args, by, (struct rows_variant){layout.relu, true, true});
    else if (layout.streaming_store)
        KERNEL(forward_rows)(at, width, args, by, (struct rows_variant){layout.relu, true, false});
    else if (layout.adds)
        KERNEL(forward_rows)(at, width, args, by, (struct rows_variant){layout.relu, false, true});
    else
        KERNEL(forward_rows)(at, width, args, by, (struct rows_variant){layout.relu, false, false});
}

static ALWAYS_INLINE void KERNEL(norm_forward)(const struct ghp_local *local,
                                               const struct ghp_kernel_arguments *args,
                                               struct ghp_part part, struct norm_variant variant)
{
    struct walk walk = walk_of(local, part, variant);
    int64_t c = local->c;
    struct rows_variant layout = rows_variant_of(local, variant, args->at.y, sizeof(SCALAR));
    for (int64_t s = 0; s < walk.n; s++) {
        const struct stretch at = stretch_of(&walk, s);
        const float *scratch = (const float *)args->at.scratch + at.channel;
        const float *const by[3] = {scratch, scratch + c, scratch + 2 * c};
        KERNEL(forward_stretch)(at, variant.nchw16c ? LANES : c, args, by, layout);
    }
    if (layout.streaming_store) ghp_streaming_store_end();
}

/* What a ReLU after the batch norm lets through of dy, if it is fused. What the forward pass made of x is made again,
 * because memory does not hold it any more. */
static ALWAYS_INLINE float KERNEL(let_through)(SCALAR dy, float y, bool relu)
{
    return relu && !(GET(PUT(y)) > 0) ? 0 : GET(dy);
}

/* Sums of dy and of dy xhat, as `stats_rows`. */
static ALWAYS_INLINE void KERNEL(back_stats_rows)(struct stretch at, int64_t width,
                                                  const struct ghp_kernel_arguments *args,
                                                  int64_t c, bool relu, double *sum,
                                                  double *product)
{
    const SCALAR *x = (const SCALAR *)args->at.x[0] + at.first,
                 *dy = (const SCALAR *)args->at.dy + at.first;
    const float *mean = (const float *)args->at.saved + at.channel, *inverse = mean + c;
    const float *gamma = relu ? (const float *)args->at.w[0] + at.channel : mean,
                *beta = relu ? (const float *)args->at.w[1] + at.channel : mean;
    for (int64_t row = 0; row < at.rows; row++) {
        if (width == LANES) ghp_prefetch_line(x + row * at.stride);
        if (width == LANES) ghp_prefetch_line(dy + row * at.stride);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            SCALAR here = x[row * at.stride + i];
            float y = KERNEL(normed)(here, mean[i], gamma[i] * inverse[i], beta[i]);
            double d = (double)KERNEL(let_through)(dy[row * at.stride + i], y, relu);
            sum[i] += d;
            product[i] += d * (double)((GET(here) - mean[i]) * inverse[i]);
        }
    }
}

static ALWAYS_INLINE void KERNEL(back_stats)(const struct ghp_local *local,
                                             const struct ghp_kernel_arguments *args,
                                             struct ghp_part part, struct norm_variant variant)
{
    struct walk walk = walk_of(local, part, variant);
    int64_t c = local->c;
    double *sum = part_sums(args, part.index, c), *product = sum + c;
    memset(sum, 0, (size_t)(2 * c) * sizeof *sum);
    for (int64_t s = 0; s < walk.n; s++) {
        const struct stretch at = stretch_of(&walk, s);
        if (!variant.nchw16c) {
            KERNEL(back_stats_rows)(at, c, args, c, variant.relu, sum, product);
            continue;
        }
        double lanes[2][LANES] = {{0}};
        KERNEL(back_stats_rows)(at, LANES, args, c, variant.relu, lanes[0], lanes[1]);
        add_lanes(lanes, sum + at.channel, product + at.channel);
    }
}

static void KERNEL(norm_weight)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range channels = ghp_part_range(part, local->c, 16);
    float *dgamma = args->at.dw[0], *dbeta = args->at.dw[1];
    for (int64_t i = channels.first; i < channels.end; i++) {
        dgamma[i] = (float)args->at.stats[local->c + i];
        dbeta[i] = (float)args->at.stats[i];
    }
}

/* dx = gamma inverse (dy - mean(dy) - xhat mean(dy xhat)) = a dy - b - (x - mean) e: a, b, e of these channels. */
static void KERNEL(data_coefficients)(const struct ghp_local *local,
                                      const struct ghp_kernel_arguments *args,
                                      struct ghp_range channels, const double *const sums[2],
                                      float *const to[3])
{
    const float *gamma = args->at.w[0], *inverse = (const float *)args->at.saved + local->c;
    double count = (double)args->stat_count;
    for (int64_t i = channels.first, j = 0; i < channels.end; i++, j++) {
        double a = (double)gamma[i] * (double)inverse[i];
        to[0][j] = (float)a;
        to[1][j] = (float)(a * sums[0][j] / count);
        to[2][j] = (float)(a * (double)inverse[i] * sums[1][j] / count);
    }
}

static void KERNEL(norm_data_before)(const struct ghp_local *local,
                                     const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    (void)part;
    int64_t c = local->c;
    float *scratch = args->at.scratch;
    KERNEL(data_coefficients)
    (local, args, (struct ghp_range){0, c},
     (const double *const[2]){args->at.stats, args->at.stats + c},
     (float *const[3]){scratch, scratch + c, scratch + 2 * c});
}

static ALWAYS_INLINE void KERNEL(data_rows)(struct stretch at, int64_t width,
                                            const struct ghp_kernel_arguments *args, int64_t c,
                                            const float *const by[3], struct rows_variant layout)
{
    const SCALAR *x = (const SCALAR *)args->at.x[0] + at.first,
                 *dy = (const SCALAR *)args->at.dy + at.first;
    SCALAR *dx = (SCALAR *)args->at.dx[0] + at.first, line[LANES];
    const float *mean = (const float *)args->at.saved + at.channel, *inverse = mean + c;
    const float *a = by[0], *b = by[1], *e = by[2];
    const float *gamma = (const float *)args->at.w[0] + at.channel,
                *beta = layout.relu ? (const float *)args->at.w[1] + at.channel : mean;
    for (int64_t row = 0; row < at.rows; row++) {
        if (width == LANES) ghp_prefetch_line(x + row * at.stride);
        if (width == LANES) ghp_prefetch_line(dy + row * at.stride);
        SCALAR *to = layout.streaming_store ? line : dx + row * at.stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            SCALAR here = x[row * at.stride + i];
            float y = KERNEL(normed)(here, mean[i], gamma[i] * inverse[i], beta[i]);
            float d = KERNEL(let_through)(dy[row * at.stride + i], y, layout.relu);
            to[i] = PUT(a[i] * d - b[i] - (GET(here) - mean[i]) * e[i]);
        }
        if (layout.streaming_store) ghp_streaming_store(dx + row * at.stride, line, sizeof line);
    }
}

static ALWAYS_INLINE void KERNEL(data_stretch)(struct stretch at, int64_t width,
                                               const struct ghp_kernel_arguments *args, int64_t c,
                                               const float *const by[3], struct rows_variant layout)
{
    if (layout.streaming_store)
        KERNEL(data_rows)(at, width, args, c, by, (struct rows_variant){layout.relu, true, false});
    else
        KERNEL(data_rows)(at, width, args, c, by, (struct rows_variant){layout.relu, false, false});
}

static ALWAYS_INLINE void KERNEL(norm_data)(const struct ghp_local *local,
                                            const struct ghp_kernel_arguments *args,
                                            struct ghp_part part, struct norm_variant variant)
{
    struct walk walk = walk_of(local, part, variant);
    int64_t c = local->c;
    struct rows_variant layout = rows_variant_of(local, variant, args->at.dx[0], sizeof(SCALAR));
    for (int64_t s = 0; s < walk.n; s++) {
        const struct stretch at = stretch_of(&walk, s);
        const float *scratch = (const float *)args->at.scratch + at.channel;
        const float *const by[3] = {scratch, scratch + c, scratch + 2 * c};
        KERNEL(data_stretch)(at, variant.nchw16c ? LANES : c, args, c, by, layout);
    }
    if (layout.streaming_store) ghp_streaming_store_end();
}

/* ---- batch norm whose statistics no other worker shares ---- */

/* A few channels after the other, all their samples' sums and then y, or dx, while the tensors are in cache:
 * backwards, for what was read last is there for sure. */
static ALWAYS_INLINE void KERNEL(local_stats_forward)(const struct ghp_local *local,
                                                      const struct ghp_kernel_arguments *args,
                                                      struct ghp_part part,
                                                      struct norm_variant variant)
{
    struct ghp_range mine = ghp_part_range(part, local->c, LANES);
    struct rows_variant layout = rows_variant_of(local, variant, args->at.y, sizeof(SCALAR));
    for (int64_t first = mine.first, width; first < mine.end; first += width) {
        const struct column column = column_of(local, variant, first, mine.end);
        width = variant.nchw16c ? LANES : column.channels.end - column.channels.first;
        double sums[2][COLUMN_CHANNELS];
        float by[3][COLUMN_CHANNELS];
        for (int i = 0; i < 2; i++)
            memset(sums[i], 0, (size_t)width * sizeof sums[i][0]);
        for (int64_t s = 0; s < column.n; s++)
            KERNEL(stats_rows)(column_stretch(&column, s), width, args, sums[0], sums[1]);
        KERNEL(coefficients)
        (local, args, column.channels, (const double *const[2]){sums[0], sums[1]},
         (float *const[3]){by[0], by[1], by[2]});
        for (int64_t s = column.n - 1; s >= 0; s--)
            KERNEL(forward_stretch)
        (column_stretch(&column, s), width, args, (const float *const[3]){by[0], by[1], by[2]},
         layout);
    }
    if (layout.streaming_store) ghp_streaming_store_end();
}

static ALWAYS_INLINE void KERNEL(local_stats_data)(const struct ghp_local *local,
                                                   const struct ghp_kernel_arguments *args,
                                                   struct ghp_part part,
                                                   struct norm_variant variant)
{
    struct ghp_range mine = ghp_part_range(part, local->c, LANES);
    int64_t c = local->c;
    struct rows_variant layout = rows_variant_of(local, variant, args->at.dx[0], sizeof(SCALAR));
    for (int64_t first = mine.first, width; first < mine.end; first += width) {
        const struct column column = column_of(local, variant, first, mine.end);
        width = variant.nchw16c ? LANES : column.channels.end - column.channels.first;
        double sums[2][COLUMN_CHANNELS];
        float by[3][COLUMN_CHANNELS];
        for (int i = 0; i < 2; i++)
            memset(sums[i], 0, (size_t)width * sizeof sums[i][0]);
        for (int64_t s = 0; s < column.n; s++)
            KERNEL(back_stats_rows)
        (column_stretch(&column, s), width, args, c, variant.relu, sums[0], sums[1]);
        memcpy(args->at.stats + column.channels.first, sums[0], (size_t)width * sizeof(double));
        memcpy(args->at.stats + c + column.channels.first, sums[1], (size_t)width * sizeof(double));
        KERNEL(data_coefficients)
        (local, args, column.channels, (const double *const[2]){sums[0], sums[1]},
         (float *const[3]){by[0], by[1], by[2]});
        for (int64_t s = column.n - 1; s >= 0; s--)
            KERNEL(data_stretch)
        (column_stretch(&column, s), width, args, c, (const float *const[3]){by[0], by[1], by[2]},
         layout);
    }
    if (layout.streaming_store) ghp_streaming_store_end();
}

IN_BOTH_MEMORY_FORMATS(stats)
IN_EACH_VARIANT(norm_forward)
IN_EACH_VARIANT(back_stats)
IN_EACH_VARIANT(norm_data)
IN_EACH_VARIANT(local_stats_forward)
IN_EACH_VARIANT(local_stats_data)

/* ---- local response norm ---- */

/* to[i] = sum of from[j], |i - j| <= reach, 0 <= j < c. */
static void KERNEL(window_sum)(int64_t c, int64_t reach, const float *from, float *to)
{
    memcpy(to, from, (size_t)c * sizeof *to);
    for (int64_t offset = 1; offset <= reach && offset < c; offset++) {
#pragma omp simd
        for (int64_t i = 0; i < c - offset; i++)
            to[i] += from[i + offset];
#pragma omp simd
        for (int64_t i = offset; i < c; i++)
            to[i] += from[i - offset];
    }
}

/* to[i] = scale[i] ^ -beta; the usual beta = 3/4 without pow. */
static void KERNEL(power)(int64_t c, double beta, const float *scale, float *to)
{
    if (beta == 0.75) {
#pragma omp simd
        for (int64_t i = 0; i < c; i++) {
            float root = sqrtf(scale[i]);
            to[i] = 1 / (root * sqrtf(root));
        }
        return;
    }
    for (int64_t i = 0; i < c; i++)
        to[i] = (float)pow((double)scale[i], -beta);
}

static void KERNEL(lrn_forward)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const struct ghp_norm *norm = &local->norm;
    int64_t c = local->c;
    float *square = part_scalars(args, part.index, 3 * c, sizeof(float));
    float *sum = square + c, *power = square + 2 * c;
    float alpha = (float)(norm->alpha / (double)norm->size), k = (float)norm->k;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * c;
        SCALAR *y = (SCALAR *)args->at.y + row * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            square[i] = GET(x[i]) * GET(x[i]);
        KERNEL(window_sum)(c, norm->size / 2, square, sum);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            sum[i] = k + alpha * sum[i];
        KERNEL(power)(c, norm->beta, sum, power);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            y[i] = PUT(GET(x[i]) * power[i]);
        if (args->at.saved != NULL)
            memcpy((float *)args->at.saved + row * c, sum, (size_t)c * sizeof *sum);
    }
}

/* dx[i] = dy[i] s[i]^-beta - 2 alpha beta / size x[i] sum over the window of dy[j] x[j] s[j]^(-beta - 1). */
static void KERNEL(lrn_data)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const struct ghp_norm *norm = &local->norm;
    int64_t c = local->c;
    float *term = part_scalars(args, part.index, 3 * c, sizeof(float));
    float *sum = term + c, *power = term + 2 * c;
    float factor = (float)(2.0 * norm->alpha * norm->beta / (double)norm->size);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)args->at.x[0] + row * c;
        const SCALAR *dy = (const SCALAR *)args->at.dy + row * c;
        const float *scale = (const float *)args->at.saved + row * c;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * c;
        KERNEL(power)(c, norm->beta, scale, power);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            term[i] = GET(dy[i]) * GET(x[i]) * power[i] / scale[i];
        KERNEL(window_sum)(c, norm->size / 2, term, sum);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            dx[i] = PUT(GET(dy[i]) * power[i] - factor * GET(x[i]) * sum[i]);
    }
}

/* ---- a batch norm on its running statistics ---- */

/* y = a x + b, of `rows` rows of `width` channels. */
static ALWAYS_INLINE void KERNEL(affine_rows)(const SCALAR *x, SCALAR *y, int64_t rows,
                                              int64_t width, const float *a, const float *b)
{
    for (int64_t row = 0; row < rows; row++) {
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            y[row * width + i] = PUT(a[i] * GET(x[row * width + i]) + b[i]);
    }
}

static void KERNEL(affine)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct ghp_part part, const void *from, void *to)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h * local->w, 1);
    const float *a = args->at.scratch;
    int64_t first = rows.first * local->c;
    KERNEL(affine_rows)
    ((const SCALAR *)from + first, (SCALAR *)to + first, rows.end - rows.first, local->c, a,
     a + local->c);
}

static void KERNEL(frozen_forward)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(affine)(local, args, part, args->at.x[0], args->at.y);
}

static void KERNEL(frozen_data)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(affine)(local, args, part, args->at.dy, args->at.dx[0]);
}
