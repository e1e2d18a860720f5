/* executor/backend/cpu/pool_body.h - pools: bodies for one precision (cpu/precisions.h).
 *
 * Included by cpu/pool.c only, once for each precision. x [n][h][w][c], y [n][p][q][c]. */

/* Numbers of neighbouring channels, and as many truths: all bits or none. */
typedef float KERNEL(lanes) __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t KERNEL(marks) __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline void KERNEL(load_lanes)(const SCALAR *from, KERNEL(lanes) * lanes)
{
    if (!ROUNDS) {
        memcpy(lanes, from, sizeof *lanes);
        return;
    }
    float value[LANES];
    for (int i = 0; i < LANES; i++)
        value[i] = GET(from[i]);
    memcpy(lanes, value, sizeof value);
}

static inline void KERNEL(store_lanes_streaming_store)(const KERNEL(lanes) * lanes, SCALAR *to)
{
    if (!ROUNDS) {
        ghp_streaming_store(to, lanes, sizeof *lanes);
        return;
    }
    SCALAR line[LANES];
    for (int i = 0; i < LANES; i++)
        line[i] = PUT((*lanes)[i]);
    ghp_streaming_store(to, line, sizeof line);
}

static inline void KERNEL(store_lanes)(const KERNEL(lanes) * lanes, SCALAR *to)
{
    if (!ROUNDS) {
        memcpy(to, lanes, sizeof *lanes);
        return;
    }
    for (int i = 0; i < LANES; i++)
        to[i] = PUT((*lanes)[i]);
}

/* Numbers' sizes change by one step at a time: others the compiler does number by number. */
static inline void KERNEL(save_lanes)(const KERNEL(marks) * argmax, int64_t at, bool narrow,
                                      void *saved)
{
    words whole = __builtin_convertvector(*argmax, words);
    if (narrow) {
        shorts half = __builtin_convertvector(whole, shorts);
        bytes quarter = __builtin_convertvector(half, bytes);
        memcpy((uint8_t *)saved + at, &quarter, sizeof quarter);
    } else {
        memcpy((int32_t *)saved + at, &whole, sizeof whole);
    }
}

static inline void KERNEL(saved_lanes)(const void *saved, int64_t at, bool narrow,
                                       KERNEL(marks) * argmax)
{
    words whole;
    if (narrow) {
        bytes quarter;
        memcpy(&quarter, (const uint8_t *)saved + at, sizeof quarter);
        shorts half = __builtin_convertvector(quarter, shorts);
        whole = __builtin_convertvector(half, words);
    } else {
        memcpy(&whole, (const int32_t *)saved + at, sizeof whole);
    }
    *argmax = __builtin_convertvector(whole, KERNEL(marks));
}

/* Greatest values and their places, the first of equals, over taps of which the first counts; x: at the output's
 * corner, in column `column`. */
static inline void KERNEL(take_lanes)(const SCALAR *x, int64_t column, int64_t columns,
                                      struct taps taps, bool ahead, KERNEL(lanes) * greatest,
                                      KERNEL(marks) * argmax)
{
    for (const struct tap *tap = taps.first; ahead && tap < taps.end; tap++)
        ghp_prefetch_line(x + tap->at);
    KERNEL(load_lanes)(x + taps.first->at, greatest);
    *argmax = (KERNEL(marks)){0} + (int32_t)taps.first->argmax;
    for (const struct tap *tap = taps.first + 1; tap < taps.end; tap++) {
        KERNEL(lanes) value;
        if (!inside(column + tap->column, columns)) continue;
        KERNEL(load_lanes)(x + tap->at, &value);
        KERNEL(marks) greater = (KERNEL(marks))(value > *greatest), kept = ~greater;
        *greatest =
            (KERNEL(lanes))(((KERNEL(marks))value & greater) | ((KERNEL(marks)) * greatest & kept));
        *argmax = ((int32_t)tap->argmax & greater) | (*argmax & kept);
    }
}

/* The same of one channel, over any taps. */
static void KERNEL(take_channel)(const SCALAR *x, int64_t column, int64_t columns, struct taps taps,
                                 SCALAR *y, int32_t *argmax)
{
    float greatest = 0;
    *argmax = NO_ARGMAX;
    for (const struct tap *tap = taps.first; tap < taps.end; tap++) {
        if (!inside(column + tap->column, columns)) continue;
        float value = GET(x[tap->at]);
        bool greater = *argmax == NO_ARGMAX || value > greatest;
        *argmax = greater ? tap->argmax : *argmax;
        greatest = greater ? value : greatest;
    }
    *y = PUT(greatest);
}

/* Row `row` of the outputs; of y `end` is the first element that is not this part's. gated: an output that is not
 * above 0 has no place. */
static void KERNEL(take_row)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct taps taps, int64_t row, int64_t end, bool masked)
{
    const int64_t c = local->c, columns = local->w, outputs = local->q;
    const int64_t stride = local->window.stride_w, all = local->n * local->h * columns * c;
    const int64_t corner =
        (row / local->p * local->h + row % local->p * local->window.stride_h) * columns;
    const bool narrow = saves_bytes(local);
    const bool ahead = all * (int64_t)sizeof(SCALAR) >= GHP_STREAMING_STORE_BYTES;
    const SCALAR *x = args->at.x[0];
    SCALAR *y = args->at.y;
    void *saved = args->at.saved;
    taps = taps_inside(taps, row % local->p * local->window.stride_h, local->h);
    for (int64_t q = 0; q < outputs; q++) {
        int64_t column = q * stride, at = (row * outputs + q) * c, from = (corner + column) * c;
        struct taps whole = taps;
        while (whole.first < whole.end && !inside(column + whole.first->column, columns))
            whole.first++;
        int64_t left = whole.first < whole.end ? all - from - whole.end[-1].at : 0;
        if (left > end - at) left = end - at;
        for (int64_t i = 0; i < c;) {
            if (whole.first == whole.end || !lanes_fit(i, c, left)) {
                int32_t argmax;
                KERNEL(take_channel)(x + from + i, column, columns, taps, y + at + i, &argmax);
                if (masked && !(GET(y[at + i]) > 0)) argmax = NO_ARGMAX;
                if (saved != NULL) save_argmax(local, argmax, at + i, saved);
                i++;
                continue;
            }
            KERNEL(lanes) greatest;
            KERNEL(marks) argmax;
            KERNEL(take_lanes)(x + from + i, column, columns, whole, ahead, &greatest, &argmax);
            KERNEL(store_lanes)(&greatest, y + at + i);
            if (masked) argmax |= ~(KERNEL(marks))(greatest > 0); /* NO_ARGMAX: all bits */
            if (saved != NULL) KERNEL(save_lanes)(&argmax, at + i, narrow, saved);
            i += LANES;
        }
    }
}

static void KERNEL(take_rows)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, struct ghp_part part,
                              bool masked)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->p, 1);
    struct tap *tap = part_taps(local, args, part.index);
    struct taps taps = {tap, tap + output_taps(local, tap)};
    for (int64_t row = rows.first; row < rows.end; row++)
        KERNEL(take_row)(local, args, taps, row, rows.end * local->q * local->c, masked);
}

static void KERNEL(max_forward)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(take_rows)(local, args, part, false);
}

static void KERNEL(max_forward_relu)(const struct ghp_local *local,
                                     const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    KERNEL(take_rows)(local, args, part, true);
}

/* dx of one input: the sum over the windows that took it, in their order; at: the output that its taps count from, in
 * column `column`. */
static inline void KERNEL(sum_lanes)(const SCALAR *dy, const void *saved, bool narrow, int64_t at,
                                     int64_t column, int64_t columns, struct taps taps,
                                     KERNEL(lanes) * sum)
{
    *sum = (KERNEL(lanes)){0};
    for (const struct tap *tap = taps.first; tap < taps.end; tap++) {
        KERNEL(lanes) gradient;
        KERNEL(marks) argmax;
        if (!inside(column + tap->column, columns)) continue;
        KERNEL(load_lanes)(dy + at + tap->at, &gradient);
        KERNEL(saved_lanes)(saved, at + tap->at, narrow, &argmax);
        KERNEL(marks) here = (KERNEL(marks))(argmax == (int32_t)tap->argmax);
        *sum += (KERNEL(lanes))((KERNEL(marks))gradient & here);
    }
}

/* The same of one channel. */
static float KERNEL(sum_channel)(const struct ghp_local *local, const SCALAR *dy, const void *saved,
                                 int64_t at, int64_t column, struct taps taps)
{
    float sum = 0;
    for (const struct tap *tap = taps.first; tap < taps.end; tap++)
        if (inside(column + tap->column, local->q) &&
            load_argmax(local, saved, at + tap->at) == tap->argmax)
            sum += GET(dy[at + tap->at]);
    return sum;
}

/* Row `row` of the inputs; of dx `end` is the first element that is not this part's. */
static void KERNEL(sum_row)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            const struct tap *tap, const int64_t *rests, int64_t row, int64_t end,
                            bool streaming_store)
{
    const struct ghp_window *window = &local->window;
    const int64_t down = row % local->h + window->pad_top, p = down / window->stride_h;
    const int64_t c = local->c, columns = local->w, rows = local->p, outputs = local->q;
    const int64_t stride = window->stride_w, all = local->n * rows * outputs * c;
    const bool narrow = saves_bytes(local);
    const SCALAR *dy = args->at.dy;
    const void *saved = args->at.saved;
    SCALAR *dx = args->at.dx[0];
    int64_t q = window->pad_left / stride, rest = window->pad_left % stride, in = row * columns * c;
    int64_t at = ((row / local->h * rows + p) * outputs + q) * c;
    rests += down % window->stride_h * stride;
    for (int64_t w = 0; w < columns; w++, in += c) {
        struct taps taps = {tap + rests[rest], tap + rests[rest + 1]};
        int64_t left = all - at < end - in ? all - at : end - in;
        taps = taps_inside(taps, p, rows);
        for (int64_t i = 0; i < c;) {
            if (!lanes_fit(i, c, left)) {
                dx[in + i] = PUT(KERNEL(sum_channel)(local, dy, saved, at + i, q, taps));
                i++;
                continue;
            }
            KERNEL(lanes) sum;
            KERNEL(sum_lanes)(dy, saved, narrow, at + i, q, outputs, taps, &sum);
            if (streaming_store)
                KERNEL(store_lanes_streaming_store)(&sum, dx + in + i);
            else
                KERNEL(store_lanes)(&sum, dx + in + i);
            i += LANES;
        }
        if (++rest == stride) {
            rest = 0;
            q++;
            at += c;
        }
    }
}

/* dx of row `row` of windows that lie side by side: one after another gives to all its places. Lanes that reach beyond
 * a pixel belong to windows to come only inside the row: the next row is written already. */
static void KERNEL(sum_tiles)(const struct ghp_local *local,
                              const struct ghp_kernel_arguments *args, int64_t row,
                              bool streaming_store)
{
    const int64_t c = local->c, outputs = local->q, columns = local->w;
    const int64_t high = local->window.r, wide = local->window.s;
    const bool narrow = saves_bytes(local);
    const SCALAR *dy = args->at.dy;
    const void *saved = args->at.saved;
    for (int64_t q = 0; q < outputs; q++)
        for (int64_t i = 0; i < c;) {
            int64_t at = (row * outputs + q) * c + i;
            SCALAR *dx = (SCALAR *)args->at.dx[0] + (row * high * columns + q * wide) * c + i;
            bool fit = lanes_fit(i, c, (outputs - q) * c);
            KERNEL(lanes) gradient = {0};
            KERNEL(marks) argmax = {0};
            if (fit) {
                KERNEL(load_lanes)(dy + at, &gradient);
                KERNEL(saved_lanes)(saved, at, narrow, &argmax);
            } else {
                gradient[0] = GET(dy[at]);
                argmax[0] = load_argmax(local, saved, at);
            }
            for (int64_t r = 0; r < high; r++)
                for (int64_t s = 0; s < wide; s++) {
                    SCALAR *to = dx + (r * columns + s) * c;
                    KERNEL(marks) here = (KERNEL(marks))(argmax == (int32_t)(r * wide + s));
                    KERNEL(lanes) value = (KERNEL(lanes))((KERNEL(marks))gradient & here);
                    if (streaming_store)
                        KERNEL(store_lanes_streaming_store)(&value, to);
                    else if (fit)
                        KERNEL(store_lanes)(&value, to);
                    else
                        *to = PUT(value[0]);
                }
            i += fit ? LANES : 1;
        }
}

static void KERNEL(max_data)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    bool tiled = is_tiled(local);
    struct ghp_range rows = ghp_part_range(part, local->n * (tiled ? local->p : local->h), 1);
    struct tap *tap = part_taps(local, args, part.index);
    int64_t *rests = part_rests(local, args, part.index), stride = local->window.stride_w;
    bool streaming_store = local->c % LANES == 0 &&
                           ghp_streaming_store_pays(args->at.dx[0], ghp_local_in_elements(local) *
                                                                        (int64_t)sizeof(SCALAR));
    for (int64_t row = rows.first; tiled && row < rows.end; row++)
        KERNEL(sum_tiles)(local, args, row, streaming_store);
    rests[0] = 0;
    for (int64_t i = 0; i < local->window.stride_h * stride; i++)
        rests[i + 1] = rests[i] + input_taps(local, i / stride, i % stride, tap + rests[i]);
    for (int64_t row = rows.first; !tiled && row < rows.end; row++)
        KERNEL(sum_row)
    (local, args, tap, rests, row, rows.end * local->w * local->c, streaming_store);
    if (streaming_store) ghp_streaming_store_end();
}

/* The place for `n` sums that are to end in `tensor`: there, or row `part` of the scratch that begins at `rows`. */
static float *KERNEL(sums_of)(void *tensor, char *rows, int part, int64_t n)
{
    return ROUNDS ? (float *)(void *)(rows + part * ghp_align(n * (int64_t)sizeof(float))) : tensor;
}

/* The sums times a factor, into the tensor. */
static void KERNEL(store_sums)(const float *sum, int64_t n, float scale, SCALAR *tensor)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        tensor[i] = PUT(sum[i] * scale);
}

static void KERNEL(avg_forward)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->p, 1);
    const SCALAR *x = args->at.x[0];
    int64_t c = local->c, image = local->h * local->w * c;
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t q = 0; q < local->q; q++) {
            struct box box = box_of(local, row % local->p, q);
            SCALAR *y = (SCALAR *)args->at.y + (row * local->q + q) * c;
            float *sum = KERNEL(sums_of)(y, args->at.scratch, part.index, c);
            memset(sum, 0, (size_t)c * sizeof *sum);
            for (int64_t r = box.r0; r < box.r1; r++)
                for (int64_t s = box.s0; s < box.s1; s++) {
                    const SCALAR *from = x + row / local->p * image + box_at(local, box, r, s);
#pragma omp simd
                    for (int64_t i = 0; i < c; i++)
                        sum[i] += GET(from[i]);
                }
            KERNEL(store_sums)(sum, c, (float)mean_scale(local, box), y);
        }
}

static void KERNEL(avg_spread)(const struct ghp_local *local, struct box box, const SCALAR *dy,
                               float *dx)
{
    int64_t c = local->c;
    float scale = (float)mean_scale(local, box);
    for (int64_t r = box.r0; r < box.r1; r++)
        for (int64_t s = box.s0; s < box.s1; s++) {
            float *to = dx + box_at(local, box, r, s);
#pragma omp simd
            for (int64_t i = 0; i < c; i++)
                to[i] += GET(dy[i]) * scale;
        }
}

static void KERNEL(avg_data)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    struct ghp_range samples = ghp_part_range(part, local->n, 1);
    int64_t c = local->c, image = local->h * local->w * c;
    for (int64_t n = samples.first; n < samples.end; n++) {
        SCALAR *dx = (SCALAR *)args->at.dx[0] + n * image;
        float *sum = KERNEL(sums_of)(dx, args->at.scratch, part.index, image);
        memset(sum, 0, (size_t)image * sizeof *sum);
        for (int64_t p = 0; p < local->p; p++)
            for (int64_t q = 0; q < local->q; q++) {
                int64_t at = ((n * local->p + p) * local->q + q) * c;
                KERNEL(avg_spread)
                (local, box_of(local, p, q), (const SCALAR *)args->at.dy + at, sum);
            }
        if (ROUNDS) KERNEL(store_sums)(sum, image, 1, dx);
    }
}

static void KERNEL(global_forward)(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range samples = ghp_part_range(part, local->n, 1);
    int64_t c = local->c, pixels = local->h * local->w;
    const SCALAR *x = args->at.x[0];
    float scale = (float)(1.0 / (double)pixels);
    for (int64_t n = samples.first; n < samples.end; n++) {
        SCALAR *y = (SCALAR *)args->at.y + n * c;
        float *sum = KERNEL(sums_of)(y, args->at.scratch, part.index, c);
        memset(sum, 0, (size_t)c * sizeof *sum);
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
            const SCALAR *from = x + (n * pixels + pixel) * c;
#pragma omp simd
            for (int64_t i = 0; i < c; i++)
                sum[i] += GET(from[i]);
        }
        KERNEL(store_sums)(sum, c, scale, y);
    }
}

static void KERNEL(global_data)(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    struct ghp_range rows = ghp_part_range(part, local->n * local->h * local->w, 1);
    int64_t c = local->c, pixels = local->h * local->w;
    float scale = (float)(1.0 / (double)pixels);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *dy = (const SCALAR *)args->at.dy + row / pixels * c;
        SCALAR *dx = (SCALAR *)args->at.dx[0] + row * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            dx[i] = PUT(GET(dy[i]) * scale);
    }
}
