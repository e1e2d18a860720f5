/* executor/backend/cpu/elementwise_body.h - element by element: bodies for one precision (cpu/precisions.h).
 *
 * Included by cpu/elementwise.c only, once for each precision. Tensors are [rows][c], rows = n h w, channels
 * innermost. */

static void KERNEL(bias_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const SCALAR *x = args->at.x[0];
    const float *b = args->at.w[0];
    SCALAR *y = args->at.y;
    int64_t c = local->c;
    for (int64_t row = rows.first; row < rows.end; row++) {
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            y[row * c + i] = PUT(GET(x[row * c + i]) + b[i]);
    }
}

/* Sums over this part's rows, in double: into row `part` of scratch. Four rows at a time spare most of the traffic to
 * the sums. */
static void KERNEL(bias_weight)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const SCALAR *dy = args->at.dy;
    int64_t c = local->c, row = rows.first;
    double *sum = part_row(args, part.index, c);
    memset(sum, 0, (size_t)c * sizeof *sum);
    for (; row + 4 <= rows.end; row += 4) {
        const SCALAR *a = dy + row * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            sum[i] += ((double)GET(a[i]) + (double)GET(a[c + i])) +
                      ((double)GET(a[2 * c + i]) + (double)GET(a[3 * c + i]));
    }
    for (; row < rows.end; row++) {
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            sum[i] += (double)GET(dy[row * c + i]);
    }
}

static void KERNEL(bias_weight_after)(const struct ghp_local *local,
                                      const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    float *db = args->at.dw[0];
    for (int64_t i = 0; i < local->c; i++) {
        double sum = 0.0;
        for (int p = 0; p < part.count; p++)
            sum += part_row(args, p, local->c)[i];
        db[i] = (float)sum;
    }
}

static void KERNEL(relu_forward)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        y[i] = GET(x[i]) > 0 ? x[i] : 0;
}

static void KERNEL(relu_data)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *y = args->at.y, *dy = args->at.dy;
    SCALAR *dx = args->at.dx[0];
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        dx[i] = GET(y[i]) > 0 ? dy[i] : 0;
}

static void KERNEL(activation_forward)(const struct ghp_local *local,
                                       const struct ghp_kernel_arguments *args,
                                       struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
    float a = (float)local->activation.alpha, b = (float)local->activation.beta;
    int64_t i;
    switch (local->activation.function) {
    case GHP_FUNCTION_LEAKY_RELU:
        for (i = at.first; i < at.end; i++)
            y[i] = GET(x[i]) > 0 ? x[i] : PUT(a * GET(x[i]));
        break;
    case GHP_FUNCTION_SIGMOID:
        for (i = at.first; i < at.end; i++)
            y[i] = PUT((float)(1.0 / (1.0 + exp(-(double)GET(x[i])))));
        break;
    case GHP_FUNCTION_TANH:
        for (i = at.first; i < at.end; i++)
            y[i] = PUT((float)tanh((double)GET(x[i])));
        break;
    case GHP_FUNCTION_ELU:
        for (i = at.first; i < at.end; i++)
            y[i] = GET(x[i]) > 0 ? x[i] : PUT(a * (float)expm1((double)GET(x[i])));
        break;
    case GHP_FUNCTION_CLIP:
        for (i = at.first; i < at.end; i++)
            y[i] = GET(x[i]) < a ? PUT(a) : GET(x[i]) > b ? PUT(b) : x[i];
        break;
    case GHP_FUNCTION_AFFINE:
        for (i = at.first; i < at.end; i++)
            y[i] = PUT(a * GET(x[i]) + b);
        break;
    case GHP_FUNCTION_COUNT: break;
    }
}

/* Each slope follows from the output alone; at a corner it is the one towards 0, as relu's. */
static void KERNEL(activation_data)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *y = args->at.y, *dy = args->at.dy;
    SCALAR *dx = args->at.dx[0];
    float a = (float)local->activation.alpha, b = (float)local->activation.beta;
    float least = GET(PUT(a)), most = GET(PUT(b));
    int64_t i;
    switch (local->activation.function) {
    case GHP_FUNCTION_LEAKY_RELU:
        for (i = at.first; i < at.end; i++)
            dx[i] = GET(y[i]) > 0 ? dy[i] : PUT(a * GET(dy[i]));
        break;
    case GHP_FUNCTION_SIGMOID:
        for (i = at.first; i < at.end; i++)
            dx[i] = PUT(GET(dy[i]) * GET(y[i]) * (1 - GET(y[i])));
        break;
    case GHP_FUNCTION_TANH:
        for (i = at.first; i < at.end; i++)
            dx[i] = PUT(GET(dy[i]) * (1 - GET(y[i]) * GET(y[i])));
        break;
    case GHP_FUNCTION_ELU:
        for (i = at.first; i < at.end; i++)
            dx[i] = GET(y[i]) > 0 ? dy[i] : PUT(GET(dy[i]) * (GET(y[i]) + a));
        break;
    case GHP_FUNCTION_CLIP:
        for (i = at.first; i < at.end; i++) /* y stops at the limits as they are stored */
            dx[i] = GET(y[i]) > least && GET(y[i]) < most ? dy[i] : 0;
        break;
    case GHP_FUNCTION_AFFINE:
        for (i = at.first; i < at.end; i++)
            dx[i] = PUT(a * GET(dy[i]));
        break;
    case GHP_FUNCTION_COUNT: break;
    }
}

/* to = from where the mask keeps, scaled; `n` consecutive elements of one sample, the first being `element`. */
static void KERNEL(mask_run)(const struct mask *mask, int64_t element, int64_t n,
                             const SCALAR *from, SCALAR *to)
{
    uint32_t random[MASK_NUMBERS];
    float scale = (float)mask->scale;
    while (n > 0) {
        int64_t skip = element % 4;
        int64_t count = n < MASK_NUMBERS - skip ? n : MASK_NUMBERS - skip;
        uint32_t counter[4] = {(uint32_t)(element / 4), mask->sample, mask->step, mask->layer};
        ghp_random_fill(mask->seed, counter, (skip + count + 3) / 4, random);
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            to[i] = random[skip + i] >= mask->threshold ? PUT(GET(from[i]) * scale) : 0;
        element += count;
        from += count;
        to += count;
        n -= count;
    }
}

/* The same of a whole sample, as its first element. */
static void KERNEL(mask_sample)(const struct mask *mask, int64_t n, const SCALAR *from, SCALAR *to)
{
    uint32_t random[4], counter[4] = {0, mask->sample, mask->step, mask->layer};
    float scale = (float)mask->scale;
    ghp_random_fill(mask->seed, counter, 1, random);
    bool keeps = random[0] >= mask->threshold;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] = keeps ? PUT(GET(from[i]) * scale) : 0;
}

/* Forward and backward are the same: the mask is made again from its key. */
static void KERNEL(dropout)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_range rows, const void *from, void *to)
{
    struct mask mask = mask_of(local, args);
    int64_t pixels = local->h * local->w, first = args->first_position * local->w, c = local->c;
    const SCALAR *in = from;
    SCALAR *out = to;
    for (int64_t row = rows.first; row < rows.end;) {
        int64_t pixel = row % pixels, count = 1;
        if (c == args->global_channels || local->norm.drop == GHP_DROP_SAMPLES) {
            count = pixels - pixel;
            if (count > rows.end - row) count = rows.end - row;
        }
        mask.sample = (uint32_t)(args->first_sample + row / pixels);
        if (local->norm.drop == GHP_DROP_CHANNELS) count = 1;
        int64_t element = local->norm.drop == GHP_DROP_CHANNELS
                              ? args->first_channel
                              : (first + pixel) * args->global_channels + args->first_channel;
        if (local->norm.drop == GHP_DROP_SAMPLES)
            KERNEL(mask_sample)(&mask, count * c, in + row * c, out + row * c);
        else
            KERNEL(mask_run)(&mask, element, count * c, in + row * c, out + row * c);
        row += count;
    }
}

static void KERNEL(dropout_forward)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    if (args->training)
        KERNEL(dropout)(local, args, rows, args->at.x[0], args->at.y);
    else
        copy_rows(args->at.x[0], args->at.y, rows, local->c * (int64_t)sizeof(SCALAR));
}

static void KERNEL(dropout_data)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(dropout)
    (local, args, ghp_part_range(part, rows_of(local), 1), args->at.dy, args->at.dx[0]);
}

/* Up to ADD_BLOCK elements from `first`: all inputs are added before the sum is rounded. */
static ALWAYS_INLINE void KERNEL(add_block)(const struct ghp_local *local,
                                            const struct ghp_kernel_arguments *args, int64_t first,
                                            int64_t n, bool relu)
{
    const SCALAR *a = (const SCALAR *)args->at.x[0] + first,
                 *b = (const SCALAR *)args->at.x[1] + first;
    SCALAR *y = (SCALAR *)args->at.y + first;
    float sum[ADD_BLOCK];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] = GET(a[i]) + GET(b[i]);
    for (int input = 2; input < local->n_inputs; input++) {
        const SCALAR *x = (const SCALAR *)args->at.x[input] + first;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] += GET(x[i]);
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = PUT(relu && !(sum[i] > 0) ? 0 : sum[i]);
}

static ALWAYS_INLINE void KERNEL(add_all)(const struct ghp_local *local,
                                          const struct ghp_kernel_arguments *args,
                                          struct ghp_part part, bool relu)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    for (int64_t first = at.first; first < at.end; first += ADD_BLOCK)
        KERNEL(add_block)
    (local, args, first, at.end - first < ADD_BLOCK ? at.end - first : ADD_BLOCK, relu);
}

static void KERNEL(add_forward)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(add_all)(local, args, part, false);
}

static void KERNEL(add_relu)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    KERNEL(add_all)(local, args, part, true);
}

static void KERNEL(add_data)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    for (int input = 0; input < local->n_inputs; input++)
        copy_rows(args->at.dy, args->at.dx[input], at, sizeof(SCALAR));
}

static void KERNEL(mul_forward)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *a = args->at.x[0], *b = args->at.x[1];
    SCALAR *y = args->at.y;
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        y[i] = PUT(GET(a[i]) * GET(b[i]));
}

static void KERNEL(mul_data)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    struct ghp_range at = ghp_part_range(part, ghp_local_in_elements(local), GRAIN);
    const SCALAR *dy = args->at.dy;
    for (int input = 0; input < 2; input++) {
        const SCALAR *other = args->at.x[1 - input];
        SCALAR *dx = args->at.dx[input];
        if (dx == NULL) continue;
#pragma omp simd
        for (int64_t i = at.first; i < at.end; i++)
            dx[i] = PUT(GET(dy[i]) * GET(other[i]));
    }
}

static void KERNEL(concat_forward)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    SCALAR *y = args->at.y;
    for (int64_t row = rows.first; row < rows.end; row++) {
        SCALAR *to = y + row * local->c;
        for (int input = 0; input < local->n_inputs; input++) {
            int64_t slice = local->slice[input];
            const SCALAR *x = args->at.x[input];
            memcpy(to, x + row * slice, (size_t)slice * sizeof *to);
            to += slice;
        }
    }
}

static void KERNEL(concat_data)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, rows_of(local), 1);
    const SCALAR *dy = args->at.dy;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *from = dy + row * local->c;
        for (int input = 0; input < local->n_inputs; input++) {
            int64_t slice = local->slice[input];
            SCALAR *dx = args->at.dx[input];
            if (dx != NULL) memcpy(dx + row * slice, from, (size_t)slice * sizeof *from);
            from += slice;
        }
    }
}

/* [h w][c] <-> [c][h w] for each sample; sixteen channels at a time, so that cache lines are used whole. `row` counts
 * samples x channels. */
static void KERNEL(flatten)(const struct ghp_local *local, struct ghp_range rows, bool backward,
                            const SCALAR *from, SCALAR *to)
{
    int64_t pixels = local->h * local->w, c = local->c;
    for (int64_t row = rows.first; row < rows.end;) {
        int64_t sample = row / c, channel = row % c;
        int64_t count = c - channel < 16 ? c - channel : 16;
        if (count > rows.end - row) count = rows.end - row;
        int64_t start = sample * pixels * c;
        for (int64_t pixel = 0; pixel < pixels; pixel++)
            for (int64_t i = channel; i < channel + count; i++) {
                int64_t image = start + pixel * c + i, flat = start + i * pixels + pixel;
                if (backward)
                    to[image] = from[flat];
                else
                    to[flat] = from[image];
            }
        row += count;
    }
}

static void KERNEL(flatten_forward)(const struct ghp_local *local,
                                    const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->c, 16);
    if (local->h * local->w == 1)
        copy_rows(args->at.x[0], args->at.y, rows, sizeof(SCALAR));
    else
        KERNEL(flatten)(local, rows, false, args->at.x[0], args->at.y);
}

static void KERNEL(flatten_data)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->c, 16);
    if (local->h * local->w == 1)
        copy_rows(args->at.dy, args->at.dx[0], rows, sizeof(SCALAR));
    else
        KERNEL(flatten)(local, rows, true, args->at.dy, args->at.dx[0]);
}

static void KERNEL(accumulate)(void *to, const void *from, struct ghp_range at)
{
    SCALAR *sum = to;
    const SCALAR *more = from;
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        sum[i] = PUT(GET(sum[i]) + GET(more[i]));
}

/* The same where a ReLU let y through, else 0. */
static void KERNEL(accumulate_masked)(void *to, const void *from, const void *mask,
                                      struct ghp_range at)
{
    SCALAR *sum = to;
    const SCALAR *more = from, *y = mask;
#pragma omp simd
    for (int64_t i = at.first; i < at.end; i++)
        sum[i] = GET(y[i]) > 0 ? PUT(GET(sum[i]) + GET(more[i])) : 0;
}
