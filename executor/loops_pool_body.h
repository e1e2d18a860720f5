/* executor/loops_pool_body.h - pools: bodies for one precision (loops_precisions.h).
 *
 * Included by loops_pool.c only, once for each precision. x [n][h][w][c], y [n][p][q][c]. */

/* One output pixel: greatest value and its place in the window, channel by channel. The first of equals wins. */
static void LOOP(max_pixel)(const struct ghp_local *local, const SCALAR *x, struct box box,
                            SCALAR *y, int32_t *place)
{
    int64_t c = local->c;
    for (int64_t i = 0; i < c; i++) {
        y[i] = 0;
        place[i] = NO_PLACE;
    }
    for (int64_t r = box.r0; r < box.r1; r++)
        for (int64_t s = box.s0; s < box.s1; s++) {
            const SCALAR *from = x + box_at(local, box, r, s);
            int32_t here = (int32_t)(r * local->window.s + s);
            bool first = r == box.r0 && s == box.s0;
#pragma omp simd
            for (int64_t i = 0; i < c; i++) {
                bool greater = first || GET(from[i]) > GET(y[i]);
                y[i] = greater ? from[i] : y[i];
                place[i] = greater ? here : place[i];
            }
        }
}

/* The same for few channels, where loops along them cost more than they do; box not empty. */
static void LOOP(max_pixel_narrow)(const struct ghp_local *local, const SCALAR *x, struct box box,
                                   SCALAR *y, int32_t *place)
{
    int64_t c = local->c;
    for (int64_t i = 0; i < c; i++) {
        WIDE greatest = GET(x[box_at(local, box, box.r0, box.s0) + i]);
        int32_t best = (int32_t)(box.r0 * local->window.s + box.s0);
        for (int64_t r = box.r0; r < box.r1; r++)
            for (int64_t s = box.s0; s < box.s1; s++) {
                WIDE value = GET(x[box_at(local, box, r, s) + i]);
                int32_t here = (int32_t)(r * local->window.s + s);
                best ^= (best ^ here) & -(int32_t)(value > greatest); /* no branch to mispredict */
                greatest = value > greatest ? value : greatest;
            }
        y[i] = PUT(greatest);
        place[i] = best;
    }
}

/* One output pixel of a tiled pool, 16 channels: x and y at them. */
static void LOOP(max_tile)(const struct ghp_local *local, const SCALAR *x, SCALAR *y,
                           uint8_t *saved)
{
    SCALAR greatest[TILE_CHANNELS];
    int32_t best[TILE_CHANNELS] = {0};
    memcpy(greatest, x, sizeof greatest);
    for (int64_t r = 0; r < local->window.r; r++)
        for (int64_t s = r == 0 ? 1 : 0; s < local->window.s; s++) {
            const SCALAR *from = x + (r * local->w + s) * local->c;
            int32_t here = (int32_t)(r * local->window.s + s);
#pragma omp simd
            for (int i = 0; i < TILE_CHANNELS; i++) {
                bool greater = GET(from[i]) > GET(greatest[i]);
                greatest[i] = greater ? from[i] : greatest[i];
                best[i] = greater ? here : best[i];
            }
        }
    memcpy(y, greatest, sizeof greatest);
    for (int i = 0; saved != NULL && i < TILE_CHANNELS; i++)
        saved[i] = (uint8_t)best[i];
}

/* Its gradient: every place of the window is written once. */
static void LOOP(max_untile)(const struct ghp_local *local, const SCALAR *dy, const uint8_t *saved,
                             SCALAR *dx)
{
    for (int64_t r = 0; r < local->window.r; r++)
        for (int64_t s = 0; s < local->window.s; s++) {
            SCALAR *to = dx + (r * local->w + s) * local->c;
            int32_t here = (int32_t)(r * local->window.s + s);
#pragma omp simd
            for (int i = 0; i < TILE_CHANNELS; i++)
                to[i] = (int32_t)saved[i] == here ? dy[i] : 0;
        }
}

/* Both ways over rows of windows. */
static void LOOP(max_tiles)(const struct ghp_local *local, const struct ghp_call *call,
                            struct ghp_share share, bool forward)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->p, 1);
    const SCALAR *x = call->at.x[0], *dy = call->at.dy;
    SCALAR *y = call->at.y, *dx = call->at.dx[0];
    uint8_t *saved = call->at.saved;
    int64_t c = local->c, down = local->window.r * local->w * c, across = local->window.s * c;
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t q = 0; q < local->q; q++)
            for (int64_t i = 0; i < c; i += TILE_CHANNELS) {
                int64_t out = (row * local->q + q) * c + i, in = row * down + q * across + i;
                if (forward)
                    LOOP(max_tile)(local, x + in, y + out, saved == NULL ? NULL : saved + out);
                else
                    LOOP(max_untile)(local, dy + out, saved + out, dx + in);
            }
}

static void LOOP(max_forward)(const struct ghp_local *local, const struct ghp_call *call,
                              struct ghp_share share)
{
    struct ghp_range rows = ghp_share_of(share, local->n * local->p, 1);
    const SCALAR *x = call->at.x[0];
    SCALAR *y = call->at.y;
    int64_t c = local->c, image = local->h * local->w * c;
    int32_t *place = part_places(call, share.part, c);
    if (is_tiled(local)) {
        LOOP(max_tiles)(local, call, share, true);
        return;
    }
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t q = 0; q < local->q; q++) {
            int64_t at = (row * local->q + q) * c;
            struct box box = box_of(local, row % local->p, q);
            if (c < NARROW && !box_empty(box))
                LOOP(max_pixel_narrow)(local, x + row / local->p * image, box, y + at, place);
            else
                LOOP(max_pixel)(local, x + row / local->p * image, box, y + at, place);
            if (call->at.saved != NULL) save_places(local, place, at, call->at.saved);
        }
}

/* Where `n` sums that are to end in `tensor` are kept: there, or in row `part` of the scratch that begins at `rows`. */
static WIDE *LOOP(sums_of)(void *tensor, char *rows, int part, int64_t n)
{
    return ROUNDS ? (WIDE *)(void *)(rows + part * ghp_loop_row_bytes(n * (int64_t)sizeof(WIDE)))
                  : tensor;
}

/* The sums times a factor, into the tensor. */
static void LOOP(store_sums)(const WIDE *sum, int64_t n, WIDE scale, SCALAR *tensor)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        tensor[i] = PUT(sum[i] * scale);
}

/* dx += dy where the greatest value was: all places of the window in turn, each for all channels at once. */
static void LOOP(max_spread)(const struct ghp_local *local, struct box box, const SCALAR *dy,
                             const int32_t *place, WIDE *dx)
{
    int64_t c = local->c, width = local->window.s;
    if (c < NARROW && !box_empty(box)) {
        for (int64_t i = 0; i < c; i++)
            dx[box_at(local, box, place[i] / width, place[i] % width) + i] += GET(dy[i]);
        return;
    }
    for (int64_t r = box.r0; r < box.r1; r++)
        for (int64_t s = box.s0; s < box.s1; s++) {
            WIDE *to = dx + box_at(local, box, r, s);
            int32_t here = (int32_t)(r * width + s);
#pragma omp simd
            for (int64_t i = 0; i < c; i++)
                to[i] += place[i] == here ? GET(dy[i]) : 0;
        }
}

static void LOOP(max_data)(const struct ghp_local *local, const struct ghp_call *call,
                           struct ghp_share share)
{
    struct ghp_range samples = ghp_share_of(share, local->n, 1);
    int64_t c = local->c, image = local->h * local->w * c;
    int32_t *place = part_places(call, share.part, c);
    if (is_tiled(local)) {
        LOOP(max_tiles)(local, call, share, false);
        return;
    }
    for (int64_t n = samples.first; n < samples.end; n++) {
        SCALAR *dx = (SCALAR *)call->at.dx[0] + n * image;
        WIDE *sum = LOOP(sums_of)(dx, (char *)part_places(call, share.parts, c), share.part, image);
        memset(sum, 0, (size_t)image * sizeof *sum);
        for (int64_t p = 0; p < local->p; p++)
            for (int64_t q = 0; q < local->q; q++) {
                int64_t at = ((n * local->p + p) * local->q + q) * c;
                load_places(local, call->at.saved, at, place);
                LOOP(max_spread)
                (local, box_of(local, p, q), (const SCALAR *)call->at.dy + at, place, sum);
            }
        if (ROUNDS) LOOP(store_sums)(sum, image, 1, dx);
    }
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
