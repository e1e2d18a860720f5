/* executor/loops_norm_body.h - normalisations: bodies for one precision (loops_precisions.h).
 *
 * Included by loops_norm.c only, once for each precision. Tensors are [rows][c], rows = n h w. The sums of a batch norm
 * are taken about the running mean, which is the same on every worker: d = x - running mean, sums of d and d d. */

/* Two sums a channel over this part's rows, in double, into row `part` of scratch: [2 c]. */
static void LOOP(stats)(const struct ghp_local *local, const struct ghp_call *call,
                        struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, rows_of(local), 1);
    const SCALAR *x = call->at.x[0];
    const WIDE *shift = call->at.state[0];
    int64_t c = local->c;
    double *sum = part_sums(call, share.part, c), *square = sum + c;
    memset(sum, 0, (size_t)(2 * c) * sizeof *sum);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *from = x + row * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++) {
            double d = (double)GET(from[i]) - (double)shift[i];
            sum[i] += d;
            square[i] += d * d;
        }
    }
}

/* The running statistics move by the mix; or, where other samples of the batch have statistics of their own, this part of
 * the way is noted beside them. */
static void LOOP(move)(const struct ghp_call *call, int which, int64_t i, double by)
{
    WIDE *running = call->at.state[which], *drift = call->at.drift[which];
    if (drift == NULL)
        running[i] = (WIDE)((double)running[i] + by);
    else
        drift[i] = (WIDE)((call->drift_adds ? (double)drift[i] : 0.0) + call->drift_share * by);
}

/* Training: mean and variance behind the sums, kept for the backward pass and mixed into the running statistics.
 * Then, in scratch, y = (x - coefficient[0]) coefficient[1] + coefficient[2] for each channel. */
static void LOOP(norm_before)(const struct ghp_local *local, const struct ghp_call *call,
                              struct ghp_share share)
{
    (void)share;
    int64_t c = local->c;
    const WIDE *gamma = call->at.w[0], *beta = call->at.w[1];
    const WIDE *running_mean = call->at.state[0];
    WIDE *running_variance = call->at.state[1];
    WIDE *saved = call->at.saved, *coefficient = call->at.scratch;
    double count = (double)call->stat_count, mix = local->norm.momentum;
    for (int64_t i = 0; i < c; i++) {
        double mean = (double)running_mean[i], variance = (double)running_variance[i];
        if (call->training) {
            double offset = call->at.stats[i] / count;
            variance = call->at.stats[c + i] / count - offset * offset;
            if (variance < 0.0) variance = 0.0;
            mean += offset;
            double unbiased = count > 1.0 ? variance * count / (count - 1.0) : variance;
            LOOP(move)(call, 0, i, mix * offset);
            if (call->at.drift[1] == NULL)
                running_variance[i] =
                    (WIDE)((1.0 - mix) * (double)running_variance[i] + mix * unbiased);
            else
                LOOP(move)(call, 1, i, mix * (unbiased - (double)running_variance[i]));
        }
        double inverse = 1.0 / sqrt(variance + local->norm.epsilon);
        if (call->training) {
            saved[i] = (WIDE)mean;
            saved[c + i] = (WIDE)inverse;
        }
        coefficient[i] = (WIDE)mean;
        coefficient[c + i] = (WIDE)((double)gamma[i] * inverse);
        coefficient[2 * c + i] = beta[i];
    }
}

static void LOOP(norm_forward)(const struct ghp_local *local, const struct ghp_call *call,
                               struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, rows_of(local), 1);
    int64_t c = local->c;
    const WIDE *mean = call->at.scratch, *scale = mean + c, *beta = mean + 2 * c;
    const SCALAR *x = call->at.x[0];
    SCALAR *y = call->at.y;
    for (int64_t row = rows.first; row < rows.end; row++) {
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            y[row * c + i] = PUT((GET(x[row * c + i]) - mean[i]) * scale[i] + beta[i]);
    }
}

/* Sums of dy and of dy xhat, as `stats`. */
static void LOOP(back_stats)(const struct ghp_local *local, const struct ghp_call *call,
                             struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, rows_of(local), 1);
    int64_t c = local->c;
    const SCALAR *x = call->at.x[0], *dy = call->at.dy;
    const WIDE *mean = call->at.saved, *inverse = mean + c;
    double *sum = part_sums(call, share.part, c), *product = sum + c;
    memset(sum, 0, (size_t)(2 * c) * sizeof *sum);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *from = x + row * c, *gradient = dy + row * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++) {
            double d = (double)GET(gradient[i]);
            sum[i] += d;
            product[i] += d * (double)((GET(from[i]) - mean[i]) * inverse[i]);
        }
    }
}

static void LOOP(norm_weight)(const struct ghp_local *local, const struct ghp_call *call,
                              struct ghp_share share)
{
    struct ghp_range channels = ghp_share_of(share, local->c, 16);
    WIDE *dgamma = call->at.dw[0], *dbeta = call->at.dw[1];
    for (int64_t i = channels.first; i < channels.end; i++) {
        dgamma[i] = (WIDE)call->at.stats[local->c + i];
        dbeta[i] = (WIDE)call->at.stats[i];
    }
}

/* dx = gamma inverse (dy - mean(dy) - xhat mean(dy xhat)) = a dy - b - (x - mean) e: a, b, e in scratch. */
static void LOOP(norm_data_before)(const struct ghp_local *local, const struct ghp_call *call,
                                   struct ghp_share share)
{
    (void)share;
    int64_t c = local->c;
    const WIDE *gamma = call->at.w[0], *inverse = (const WIDE *)call->at.saved + c;
    WIDE *coefficient = call->at.scratch;
    double count = (double)call->stat_count;
    for (int64_t i = 0; i < c; i++) {
        double a = (double)gamma[i] * (double)inverse[i];
        coefficient[i] = (WIDE)a;
        coefficient[c + i] = (WIDE)(a * call->at.stats[i] / count);
        coefficient[2 * c + i] = (WIDE)(a * (double)inverse[i] * call->at.stats[c + i] / count);
    }
}

static void LOOP(norm_data)(const struct ghp_local *local, const struct ghp_call *call,
                            struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, rows_of(local), 1);
    int64_t c = local->c;
    const SCALAR *x = call->at.x[0], *dy = call->at.dy;
    const WIDE *mean = call->at.saved, *a = call->at.scratch, *b = a + c, *e = b + c;
    SCALAR *dx = call->at.dx[0];
    for (int64_t row = rows.first; row < rows.end; row++) {
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            dx[row * c + i] =
                PUT(a[i] * GET(dy[row * c + i]) - b[i] - (GET(x[row * c + i]) - mean[i]) * e[i]);
    }
}

/* to[i] = sum of from[j], |i - j| <= reach, 0 <= j < c. */
static void LOOP(window_sum)(int64_t c, int64_t reach, const WIDE *from, WIDE *to)
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
static void LOOP(power)(int64_t c, double beta, const WIDE *scale, WIDE *to)
{
    if (beta == 0.75) {
#pragma omp simd
        for (int64_t i = 0; i < c; i++) {
            WIDE root = SQRT(scale[i]);
            to[i] = 1 / (root * SQRT(root));
        }
        return;
    }
    for (int64_t i = 0; i < c; i++)
        to[i] = (WIDE)pow((double)scale[i], -beta);
}

static void LOOP(lrn_forward)(const struct ghp_local *local, const struct ghp_call *call,
                              struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, rows_of(local), 1);
    const struct ghp_norm *norm = &local->norm;
    int64_t c = local->c;
    WIDE *square = part_scalars(call, share.part, 3 * c, sizeof(WIDE));
    WIDE *sum = square + c, *power = square + 2 * c;
    WIDE alpha = (WIDE)(norm->alpha / (double)norm->size), k = (WIDE)norm->k;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)call->at.x[0] + row * c;
        SCALAR *y = (SCALAR *)call->at.y + row * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            square[i] = GET(x[i]) * GET(x[i]);
        LOOP(window_sum)(c, norm->size / 2, square, sum);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            sum[i] = k + alpha * sum[i];
        LOOP(power)(c, norm->beta, sum, power);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            y[i] = PUT(GET(x[i]) * power[i]);
        if (call->at.saved != NULL)
            memcpy((WIDE *)call->at.saved + row * c, sum, (size_t)c * sizeof *sum);
    }
}

/* dx[i] = dy[i] s[i]^-beta - 2 alpha beta / size x[i] sum over the window of dy[j] x[j] s[j]^(-beta - 1). */
static void LOOP(lrn_data)(const struct ghp_local *local, const struct ghp_call *call,
                           struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, rows_of(local), 1);
    const struct ghp_norm *norm = &local->norm;
    int64_t c = local->c;
    WIDE *term = part_scalars(call, share.part, 3 * c, sizeof(WIDE));
    WIDE *sum = term + c, *power = term + 2 * c;
    WIDE factor = (WIDE)(2.0 * norm->alpha * norm->beta / (double)norm->size);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *x = (const SCALAR *)call->at.x[0] + row * c;
        const SCALAR *dy = (const SCALAR *)call->at.dy + row * c;
        const WIDE *scale = (const WIDE *)call->at.saved + row * c;
        SCALAR *dx = (SCALAR *)call->at.dx[0] + row * c;
        LOOP(power)(c, norm->beta, scale, power);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            term[i] = GET(dy[i]) * GET(x[i]) * power[i] / scale[i];
        LOOP(window_sum)(c, norm->size / 2, term, sum);
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            dx[i] = PUT(GET(dy[i]) * power[i] - factor * GET(x[i]) * sum[i]);
    }
}
