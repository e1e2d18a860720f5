/* executor/backend/cpu/pool_body.h - pools: bodies for one precision (cpu/precisions.h).
 *
 * Included by cpu/pool.c only, once for each precision. x [n][h][w][c], y [n][p][q][c]. */

/* Numbers of neighbouring channels, and as many truths: all bits or none. */
typedef WIDE LOOP(lanes) __attribute__((vector_size(LANES * sizeof(WIDE))));
typedef TRUTH LOOP(marks) __attribute__((vector_size(LANES * sizeof(TRUTH))));

static inline void LOOP(load_lanes)(const SCALAR *from, LOOP(lanes) * lanes)
{
    if (!ROUNDS) {
        memcpy(lanes, from, sizeof *lanes);
        return;
    }
    WIDE value[LANES];
    for (int i = 0; i < LANES; i++)
        value[i] = GET(from[i]);
    memcpy(lanes, value, sizeof value);
}

static inline void LOOP(store_lanes_past_cache)(const LOOP(lanes) * lanes, SCALAR *to)
{
    if (!ROUNDS) {
        ghp_past_cache(to, lanes, sizeof *lanes);
        return;
    }
    SCALAR line[LANES];
    for (int i = 0; i < LANES; i++)
        line[i] = PUT((*lanes)[i]);
    ghp_past_cache(to, line, sizeof line);
}

static inline void LOOP(store_lanes)(const LOOP(lanes) * lanes, SCALAR *to)
{
    if (!ROUNDS) {
        memcpy(to, lanes, sizeof *lanes);
        return;
    }
    for (int i = 0; i < LANES; i++)
        to[i] = PUT((*lanes)[i]);
}

/* Numbers' sizes change by one step at a time: others the compiler does number by number. */
static inline void LOOP(save_lanes)(const LOOP(marks) * place, int64_t at, bool narrow, void *saved)
{
    words whole = __builtin_convertvector(*place, words);
    if (narrow) {
        shorts half = __builtin_convertvector(whole, shorts);
        bytes quarter = __builtin_convertvector(half, bytes);
        memcpy((uint8_t *)saved + at, &quarter, sizeof quarter);
    } else {
        memcpy((int32_t *)saved + at, &whole, sizeof whole);
    }
}

static inline void LOOP(saved_lanes)(const void *saved, int64_t at, bool narrow,
                                     LOOP(marks) * place)
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
    *place = __builtin_convertvector(whole, LOOP(marks));
}

/* Greatest values and their places, the first of equals, over taps of which the first counts; x: at the output's corner,
 * in column `column`. */
static inline void LOOP(take_lanes)(const SCALAR *x, int64_t column, int64_t columns,
                                    struct taps taps, bool ahead, LOOP(lanes) * greatest,
                                    LOOP(marks) * place)
{
    for (const struct tap *tap = taps.first; ahead && tap < taps.end; tap++)
        ghp_ahead(x + tap->at);
    LOOP(load_lanes)(x + taps.first->at, greatest);
    *place = (LOOP(marks)){0} + (TRUTH)taps.first->place;
    for (const struct tap *tap = taps.first + 1; tap < taps.end; tap++) {
        LOOP(lanes) value;
        if (!inside(column + tap->column, columns)) continue;
        LOOP(load_lanes)(x + tap->at, &value);
        LOOP(marks) greater = (LOOP(marks))(value > *greatest), kept = ~greater;
        *greatest =
            (LOOP(lanes))(((LOOP(marks))value & greater) | ((LOOP(marks)) * greatest & kept));
        *place = ((TRUTH)tap->place & greater) | (*place & kept);
    }
}

/* The same of one channel, over any taps. */
static void LOOP(take_channel)(const SCALAR *x, int64_t column, int64_t columns, struct taps taps,
                               SCALAR *y, int32_t *place)
{
    WIDE greatest = 0;
    *place = NO_PLACE;
    for (const struct tap *tap = taps.first; tap < taps.end; tap++) {
        if (!inside(column + tap->column, columns)) continue;
        WIDE value = GET(x[tap->at]);
        bool greater = *place == NO_PLACE || value > greatest;
        *place = greater ? tap->place : *place;
        greatest = greater ? value : greatest;
    }
    *y = PUT(greatest);
}

/* Row `row` of the outputs; of y `end` is the first element that is not this share's. gated: an output that is not above 0
 * has no place. */
static void LOOP(take_row)(const struct ghp_local *local, const struct ghp_call *call,
                           struct taps taps, int64_t row, int64_t end, bool gated)
{
    const int64_t c = local->c, columns = local->w, outputs = local->q;
    const int64_t stride = local->window.stride_w, all = local->n * local->h * columns * c;
    const int64_t corner =
        (row / local->p * local->h + row % local->p * local->window.stride_h) * columns;
    const bool narrow = saves_bytes(local);
    const bool ahead = all * (int64_t)sizeof(SCALAR) >= GHP_PAST_CACHE_BYTES;
    const SCALAR *x = call->at.x[0];
    SCALAR *y = call->at.y;
    void *saved = call->at.saved;
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
                int32_t place;
                LOOP(take_channel)(x + from + i, column, columns, taps, y + at + i, &place);
                if (gated && !(GET(y[at + i]) > 0)) place = NO_PLACE;
                if (saved != NULL) save_place(local, place, at + i, saved);
                i++;
                continue;
            }
            LOOP(lanes) greatest;
            LOOP(marks) place;
            LOOP(take_lanes)(x + from + i, column, columns, whole, ahead, &greatest, &place);
            LOOP(store_lanes)(&greatest, y + at + i);
            if (gated) place |= ~(LOOP(marks))(greatest > 0); /* NO_PLACE: all bits */
            if (saved != NULL) LOOP(save_lanes)(&place, at + i, narrow, saved);
            i += LANES;
        }
    }
}

static void LOOP(take_rows)(const struct ghp_local *local, const struct ghp_call *call,
                            struct ghp_share share, bool gated)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->p, 1);
    struct tap *tap = part_taps(local, call, share.part);
    struct taps taps = {tap, tap + output_taps(local, tap)};
    for (int64_t row = rows.first; row < rows.end; row++)
        LOOP(take_row)(local, call, taps, row, rows.end * local->q * local->c, gated);
}

static void LOOP(max_forward)(const struct ghp_local *local, const struct ghp_call *call,
                              struct ghp_share share)
{
    LOOP(take_rows)(local, call, share, false);
}

static void LOOP(max_forward_relu)(const struct ghp_local *local, const struct ghp_call *call,
                                   struct ghp_share share)
{
    LOOP(take_rows)(local, call, share, true);
}

/* dx of one input: the sum over the windows that took it, in their order; at: the output that its taps count from, in
 * column `column`. */
static inline void LOOP(give_lanes)(const SCALAR *dy, const void *saved, bool narrow, int64_t at,
                                    int64_t column, int64_t columns, struct taps taps,
                                    LOOP(lanes) * sum)
{
    *sum = (LOOP(lanes)){0};
    for (const struct tap *tap = taps.first; tap < taps.end; tap++) {
        LOOP(lanes) gradient;
        LOOP(marks) place;
        if (!inside(column + tap->column, columns)) continue;
        LOOP(load_lanes)(dy + at + tap->at, &gradient);
        LOOP(saved_lanes)(saved, at + tap->at, narrow, &place);
        LOOP(marks) here = (LOOP(marks))(place == (TRUTH)tap->place);
        *sum += (LOOP(lanes))((LOOP(marks))gradient & here);
    }
}

/* The same of one channel. */
static WIDE LOOP(give_channel)(const struct ghp_local *local, const SCALAR *dy, const void *saved,
                               int64_t at, int64_t column, struct taps taps)
{
    WIDE sum = 0;
    for (const struct tap *tap = taps.first; tap < taps.end; tap++)
        if (inside(column + tap->column, local->q) &&
            load_place(local, saved, at + tap->at) == tap->place)
            sum += GET(dy[at + tap->at]);
    return sum;
}

/* Row `row` of the inputs; of dx `end` is the first element that is not this share's. */
static void LOOP(give_row)(const struct ghp_local *local, const struct ghp_call *call,
                           const struct tap *tap, const int64_t *rests, int64_t row, int64_t end,
                           bool past_cache)
{
    const struct ghp_window *window = &local->window;
    const int64_t down = row % local->h + window->pad_top, p = down / window->stride_h;
    const int64_t c = local->c, columns = local->w, rows = local->p, outputs = local->q;
    const int64_t stride = window->stride_w, all = local->n * rows * outputs * c;
    const bool narrow = saves_bytes(local);
    const SCALAR *dy = call->at.dy;
    const void *saved = call->at.saved;
    SCALAR *dx = call->at.dx[0];
    int64_t q = window->pad_left / stride, rest = window->pad_left % stride, in = row * columns * c;
    int64_t at = ((row / local->h * rows + p) * outputs + q) * c;
    rests += down % window->stride_h * stride;
    for (int64_t w = 0; w < columns; w++, in += c) {
        struct taps taps = {tap + rests[rest], tap + rests[rest + 1]};
        int64_t left = all - at < end - in ? all - at : end - in;
        taps = taps_inside(taps, p, rows);
        for (int64_t i = 0; i < c;) {
            if (!lanes_fit(i, c, left)) {
                dx[in + i] = PUT(LOOP(give_channel)(local, dy, saved, at + i, q, taps));
                i++;
                continue;
            }
            LOOP(lanes) sum;
            LOOP(give_lanes)(dy, saved, narrow, at + i, q, outputs, taps, &sum);
            if (past_cache)
                LOOP(store_lanes_past_cache)(&sum, dx + in + i);
            else
                LOOP(store_lanes)(&sum, dx + in + i);
            i += LANES;
        }
        if (++rest == stride) {
            rest = 0;
            q++;
            at += c;
        }
    }
}

/* dx of row `row` of windows that lie side by side: one after another gives to all its places. Lanes that reach behind a
 * pixel are those of windows to come only inside the row: the next row of the same is written already. */
static void LOOP(give_tiles)(const struct ghp_local *local, const struct ghp_call *call,
                             int64_t row, bool past_cache)
{
    const int64_t c = local->c, outputs = local->q, columns = local->w;
    const int64_t high = local->window.r, wide = local->window.s;
    const bool narrow = saves_bytes(local);
    const SCALAR *dy = call->at.dy;
    const void *saved = call->at.saved;
    for (int64_t q = 0; q < outputs; q++)
        for (int64_t i = 0; i < c;) {
            int64_t at = (row * outputs + q) * c + i;
            SCALAR *dx = (SCALAR *)call->at.dx[0] + (row * high * columns + q * wide) * c + i;
            bool fit = lanes_fit(i, c, (outputs - q) * c);
            LOOP(lanes) gradient = {0};
            LOOP(marks) place = {0};
            if (fit) {
                LOOP(load_lanes)(dy + at, &gradient);
                LOOP(saved_lanes)(saved, at, narrow, &place);
            } else {
                gradient[0] = GET(dy[at]);
                place[0] = load_place(local, saved, at);
            }
            for (int64_t r = 0; r < high; r++)
                for (int64_t s = 0; s < wide; s++) {
                    SCALAR *to = dx + (r * columns + s) * c;
                    LOOP(marks) here = (LOOP(marks))(place == (TRUTH)(r * wide + s));
                    LOOP(lanes) value = (LOOP(lanes))((LOOP(marks))gradient & here);
                    if (past_cache)
                        LOOP(store_lanes_past_cache)(&value, to);
                    else if (fit)
                        LOOP(store_lanes)(&value, to);
                    else
                        *to = PUT(value[0]);
                }
            i += fit ? LANES : 1;
        }
}

static void LOOP(max_data)(const struct ghp_local *local, const struct ghp_call *call,
                           struct ghp_share share)
{
    bool tiled = is_tiled(local);
    struct ghp_range rows = ghp_share_of(share, local->n * (tiled ? local->p : local->h), 1);
    struct tap *tap = part_taps(local, call, share.part);
    int64_t *rests = part_rests(local, call, share.part), stride = local->window.stride_w;
    bool past_cache =
        local->c % LANES == 0 &&
        ghp_past_cache_pays(call->at.dx[0], ghp_local_in_elements(local) * (int64_t)sizeof(SCALAR));
    for (int64_t row = rows.first; tiled && row < rows.end; row++)
        LOOP(give_tiles)(local, call, row, past_cache);
    rests[0] = 0;
    for (int64_t i = 0; i < local->window.stride_h * stride; i++)
        rests[i + 1] = rests[i] + input_taps(local, i / stride, i % stride, tap + rests[i]);
    for (int64_t row = rows.first; !tiled && row < rows.end; row++)
        LOOP(give_row)(local, call, tap, rests, row, rows.end * local->w * local->c, past_cache);
    if (past_cache) ghp_past_cache_end();
}

/* Where `n` sums that are to end in `tensor` are kept: there, or in row `part` of the scratch that begins at `rows`. */
static WIDE *LOOP(sums_of)(void *tensor, char *rows, int part, int64_t n)
{
    return ROUNDS ? (WIDE *)(void *)(rows + part * ghp_align(n * (int64_t)sizeof(WIDE)))
                  : tensor;
}

/* The sums times a factor, into the tensor. */
static void LOOP(store_sums)(const WIDE *sum, int64_t n, WIDE scale, SCALAR *tensor)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        tensor[i] = PUT(sum[i] * scale);
}

static void LOOP(avg_forward)(const struct ghp_local *local, const struct ghp_call *call,
                              struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->p, 1);
    const SCALAR *x = call->at.x[0];
    int64_t c = local->c, image = local->h * local->w * c;
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t q = 0; q < local->q; q++) {
            struct box box = box_of(local, row % local->p, q);
            SCALAR *y = (SCALAR *)call->at.y + (row * local->q + q) * c;
            WIDE *sum = LOOP(sums_of)(y, call->at.scratch, share.part, c);
            memset(sum, 0, (size_t)c * sizeof *sum);
            for (int64_t r = box.r0; r < box.r1; r++)
                for (int64_t s = box.s0; s < box.s1; s++) {
                    const SCALAR *from = x + row / local->p * image + box_at(local, box, r, s);
#pragma omp simd
                    for (int64_t i = 0; i < c; i++)
                        sum[i] += GET(from[i]);
                }
            LOOP(store_sums)(sum, c, (WIDE)mean_scale(local, box), y);
        }
}

static void LOOP(avg_spread)(const struct ghp_local *local, struct box box, const SCALAR *dy,
                             WIDE *dx)
{
    int64_t c = local->c;
    WIDE scale = (WIDE)mean_scale(local, box);
    for (int64_t r = box.r0; r < box.r1; r++)
        for (int64_t s = box.s0; s < box.s1; s++) {
            WIDE *to = dx + box_at(local, box, r, s);
#pragma omp simd
            for (int64_t i = 0; i < c; i++)
                to[i] += GET(dy[i]) * scale;
        }
}

static void LOOP(avg_data)(const struct ghp_local *local, const struct ghp_call *call,
                           struct ghp_share share)
{
    struct ghp_range samples = ghp_share_of(share, local->n, 1);
    int64_t c = local->c, image = local->h * local->w * c;
    for (int64_t n = samples.first; n < samples.end; n++) {
        SCALAR *dx = (SCALAR *)call->at.dx[0] + n * image;
        WIDE *sum = LOOP(sums_of)(dx, call->at.scratch, share.part, image);
        memset(sum, 0, (size_t)image * sizeof *sum);
        for (int64_t p = 0; p < local->p; p++)
            for (int64_t q = 0; q < local->q; q++) {
                int64_t at = ((n * local->p + p) * local->q + q) * c;
                LOOP(avg_spread)
                (local, box_of(local, p, q), (const SCALAR *)call->at.dy + at, sum);
            }
        if (ROUNDS) LOOP(store_sums)(sum, image, 1, dx);
    }
}

static void LOOP(global_forward)(const struct ghp_local *local, const struct ghp_call *call,
                                 struct ghp_share share)
{
    struct ghp_range samples = ghp_share_of(share, local->n, 1);
    int64_t c = local->c, pixels = local->h * local->w;
    const SCALAR *x = call->at.x[0];
    WIDE scale = (WIDE)(1.0 / (double)pixels);
    for (int64_t n = samples.first; n < samples.end; n++) {
        SCALAR *y = (SCALAR *)call->at.y + n * c;
        WIDE *sum = LOOP(sums_of)(y, call->at.scratch, share.part, c);
        memset(sum, 0, (size_t)c * sizeof *sum);
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
            const SCALAR *from = x + (n * pixels + pixel) * c;
#pragma omp simd
            for (int64_t i = 0; i < c; i++)
                sum[i] += GET(from[i]);
        }
        LOOP(store_sums)(sum, c, scale, y);
    }
}

static void LOOP(global_data)(const struct ghp_local *local, const struct ghp_call *call,
                              struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->h * local->w, 1);
    int64_t c = local->c, pixels = local->h * local->w;
    WIDE scale = (WIDE)(1.0 / (double)pixels);
    for (int64_t row = rows.first; row < rows.end; row++) {
        const SCALAR *dy = (const SCALAR *)call->at.dy + row / pixels * c;
        SCALAR *dx = (SCALAR *)call->at.dx[0] + row * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++)
            dx[i] = PUT(GET(dy[i]) * scale);
    }
}
