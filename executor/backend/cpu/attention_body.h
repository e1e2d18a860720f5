/* executor/backend/cpu/attention_body.h - attention: how tensors become tiles and tiles tensors, for one precision
 * (cpu/precisions.h).
 *
 * Included by cpu/attention.c only, once for each precision. Tensors are [n][position][head][size]. */

/* Rows of one head in a tensor: where row 0 is, the next, and how many. */
struct KERNEL(rows) {
    SCALAR *at;
    int64_t stride, count;
};

/* Sample n's rows of a head of queries, or of keys, in a tensor whose rows have `width` channels; of none at all where
 * there is no tensor. */
static struct KERNEL(rows) KERNEL(rows_at)(const struct sizes *z, const void *tensor, int64_t width,
                                           int64_t n, int64_t head)
{
    SCALAR *base = (SCALAR *)(uintptr_t)tensor;

    if (base != NULL) base += n * z->positions * width + head * z->size;
    return (struct KERNEL(rows)){base, width, z->positions};
}

static struct KERNEL(rows) KERNEL(keys_at)(const struct sizes *z, const void *tensor, int64_t width,
                                           int64_t n, int64_t head)
{
    SCALAR *base = (SCALAR *)(uintptr_t)tensor;

    if (base != NULL) base += n * z->keys * width + head * z->size;
    return (struct KERNEL(rows)){base, width, z->keys};
}

/* Takes TILE rows from position `first` on, times a factor; zeros after the sequence's end and in rows' padding. */
static void KERNEL(take)(const struct sizes *z, struct KERNEL(rows) from, int64_t first,
                         float factor, float *to)
{
    int64_t rows = least(TILE, from.count - first);

    for (int64_t r = 0; r < rows; r++, to += z->stride) {
        const SCALAR *row = from.at + (first + r) * from.stride;

#pragma omp simd
        for (int64_t c = 0; c < z->size; c++)
            to[c] = GET(row[c]) * factor;
        for (int64_t c = z->size; c < z->stride; c++)
            to[c] = 0;
    }
    memset(to, 0, (size_t)((TILE - rows) * z->stride) * sizeof *to);
}

/* The same transposed: [size][TILE]. */
static void KERNEL(take_turned)(const struct sizes *z, struct KERNEL(rows) from, int64_t first,
                                float *to)
{
    int64_t rows = least(TILE, from.count - first);

    if (rows < TILE) memset(to, 0, (size_t)(TILE * z->size) * sizeof *to);
    for (int64_t r = 0; r < rows; r++) {
        const SCALAR *row = from.at + (first + r) * from.stride;

        for (int64_t c = 0; c < z->size; c++)
            to[c * TILE + r] = GET(row[c]);
    }
}

/* Row r of a tile, times a factor, as position first + r. */
static void KERNEL(put)(const struct sizes *z, const float *from, float factor,
                        struct KERNEL(rows) to, int64_t position)
{
    SCALAR *row = to.at + position * to.stride;

#pragma omp simd
    for (int64_t c = 0; c < z->size; c++)
        row[c] = PUT(from[c] * factor);
}

/* ---- forward ---- */

static void KERNEL(forward_head)(const struct ghp_local *local,
                                 const struct ghp_kernel_arguments *args, const struct room *room,
                                 int64_t n, int64_t head)
{
    struct sizes z = sizes_of(local, args->first_position);
    struct KERNEL(rows) x = KERNEL(rows_at)(&z, args->at.x[0], local->slice[0], n, head);
    struct KERNEL(rows) y = KERNEL(rows_at)(&z, args->at.y, local->slice[0], n, head);
    float *logarithms = args->at.saved;

    z.dropping = dropping_of(local, args, n, head);
    z.dropping.is_on = z.dropping.is_on && args->training;
    for (int64_t query = 0; query < z.positions; query += TILE) {
        KERNEL(take)(&z, x, query, z.scale, room->queries);
        forward_tile(&z, room, query);
        for (int64_t r = 0; r < least(TILE, z.positions - query); r++) {
            bool padding = is_padding(&z, room, query + r);

            KERNEL(put)
            (&z, room->out + r * z.stride, padding ? 0 : 1.0f / room->sum[r], y, query + r);
            if (logarithms != NULL)
                logarithms[(n * local->heads.n + head) * z.positions + query + r] =
                    padding ? 0 : room->greatest[r] + logf(room->sum[r]);
        }
    }
}

static void KERNEL(forward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                            struct ghp_part part)
{
    struct ghp_range units = ghp_part_range(part, local->n * local->heads.n_kv, 1);
    struct room room = room_of(local, args, part.index, false);
    struct sizes z = sizes_of(local, args->first_position);
    int64_t group = local->heads.n / local->heads.n_kv;

    for (int64_t unit = units.first; unit < units.end; unit++) {
        int64_t n = unit / local->heads.n_kv, kv = unit % local->heads.n_kv;
        number_documents(&z, &room, args, n);
        struct KERNEL(rows) keys = KERNEL(keys_at)(&z, args->at.x[1], local->slice[1], n, kv);
        struct KERNEL(rows) values = KERNEL(keys_at)(&z, args->at.x[2], local->slice[2], n, kv);

        for (int64_t key = 0; key < z.keys; key += TILE) {
            KERNEL(take_turned)(&z, keys, key, room.turned_keys + key * z.size);
            KERNEL(take)(&z, values, key, 1.0f, room.values + key * z.stride);
        }
        for (int64_t head = kv * group; head < (kv + 1) * group; head++)
            KERNEL(forward_head)(local, args, &room, n, head);
    }
}

/* ---- backward ---- */

/* A tile's rows: logarithms of sums, and sums of y dy. */
static void KERNEL(take_state)(const struct sizes *z, const struct room *room,
                               const float *logarithms, struct KERNEL(rows) y, int64_t query)
{
    int64_t rows = least(TILE, z->positions - query);

    for (int64_t r = 0; r < TILE; r++) {
        const SCALAR *row = y.at + (query + r) * y.stride;
        const float *dy = room->dy + r * z->stride;
        float sum = 0;

        room->greatest[r] = r < rows ? logarithms[query + r] : 0;
        if (r < rows) {
#pragma omp simd reduction(+ : sum)
            for (int64_t c = 0; c < z->size; c++)
                sum += GET(row[c]) * dy[c];
        }
        room->sum[r] = sum;
    }
}

static void KERNEL(backward_head)(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, const struct room *room,
                                  int64_t n, int64_t head)
{
    struct sizes z = sizes_of(local, args->first_position);
    struct KERNEL(rows) x = KERNEL(rows_at)(&z, args->at.x[0], local->slice[0], n, head);
    struct KERNEL(rows) y = KERNEL(rows_at)(&z, args->at.y, local->slice[0], n, head);
    struct KERNEL(rows) dy = KERNEL(rows_at)(&z, args->at.dy, local->slice[0], n, head);
    struct KERNEL(rows) dx = KERNEL(rows_at)(&z, args->at.dx[0], local->slice[0], n, head);
    const float *logarithms =
        (const float *)args->at.saved + (n * local->heads.n + head) * z.positions;

    z.dropping = dropping_of(local, args, n, head);
    for (int64_t query = 0; query < z.positions; query += TILE) {
        KERNEL(take)(&z, x, query, z.scale, room->queries);
        KERNEL(take)(&z, dy, query, 1.0f, room->dy);
        KERNEL(take_state)(&z, room, logarithms, y, query);
        backward_tile(&z, room, query);
        for (int64_t r = 0; dx.at != NULL && r < least(TILE, z.positions - query); r++)
            KERNEL(put)(&z, room->out + r * z.stride, z.scale, dx, query + r);
    }
}

static void KERNEL(backward)(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    struct ghp_range units = ghp_part_range(part, local->n * local->heads.n_kv, 1);
    struct room room = room_of(local, args, part.index, true);
    struct sizes z = sizes_of(local, args->first_position);
    int64_t group = local->heads.n / local->heads.n_kv, width = local->slice[1];
    size_t bytes = (size_t)(z.tiles * TILE * z.stride) * sizeof(float);

    for (int64_t unit = units.first; unit < units.end; unit++) {
        int64_t n = unit / local->heads.n_kv, kv = unit % local->heads.n_kv;
        number_documents(&z, &room, args, n);
        struct KERNEL(rows) keys = KERNEL(keys_at)(&z, args->at.x[1], width, n, kv);
        struct KERNEL(rows) values = KERNEL(keys_at)(&z, args->at.x[2], width, n, kv);
        struct KERNEL(rows) dkeys = KERNEL(keys_at)(&z, args->at.dx[1], width, n, kv);
        struct KERNEL(rows) dvalues = KERNEL(keys_at)(&z, args->at.dx[2], width, n, kv);

        for (int64_t key = 0; key < z.keys; key += TILE) {
            KERNEL(take_turned)(&z, keys, key, room.turned_keys + key * z.size);
            KERNEL(take_turned)(&z, values, key, room.turned_values + key * z.size);
            KERNEL(take)(&z, keys, key, 1.0f, room.keys + key * z.stride);
        }
        memset(room.dkeys, 0, bytes);
        memset(room.dvalues, 0, bytes);
        for (int64_t head = kv * group; head < (kv + 1) * group; head++)
            KERNEL(backward_head)(local, args, &room, n, head);
        for (int64_t p = 0; p < z.keys; p++) {
            if (dkeys.at != NULL) KERNEL(put)(&z, room.dkeys + p * z.stride, 1.0f, dkeys, p);
            if (dvalues.at != NULL) KERNEL(put)(&z, room.dvalues + p * z.stride, 1.0f, dvalues, p);
        }
    }
}
