/* executor/backend/cpu/attention.c - attention in tiles: TILE positions of queries by TILE positions of keys.
 *
 * A tile's scores live in the nearest caches, and no tensor of positions by positions is ever made: the forward pass
 * keeps a running maximum and sum of each row, and the backward pass computes each tile's probabilities again from the
 * logarithm of the row's sum, which is all that is saved. Tiles after a causal diagonal and before a window are left
 * out, and within those on the diagonal whatever registers' blocks allow.
 *
 * Products take ROWS rows by some vectors of columns in registers. One unit of work is a sample's keys and values of
 * one head with all the heads of queries that read them, computed alike in every part, so results do not depend on the
 * parts. Rows are padded to whole vectors, tiles to whole blocks, with zeros.
 *
 * ghp-options: -O3 -ffp-contract=fast */
#include "core/model/attention.h"
#include "core/model/precision.h"
#include "executor/backend/cpu/exponential.h"
#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/platform/random.h"

#include <math.h>
#include <string.h>

enum {
#ifdef __AVX512F__
    LANES = 16,
    COLUMNS = 4, /* vectors; with ROWS rows all sums are in registers */
#elif defined(__AVX__)
    LANES = 8,
    COLUMNS = 2,
#else
    LANES = 4,
    COLUMNS = 2,
#endif
    ROWS = 6,
    TILE = 96 /* a multiple of ROWS and of LANES */
};

static const float hidden = -1e30f; /* a score that counts for nothing */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static ALWAYS_INLINE lanes load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static ALWAYS_INLINE void store(float *to, lanes v)
{
    memcpy(to, &v, sizeof v);
}

/* ---- products ---- */

struct matrix {
    float *at;
    int64_t stride; /* from row to row */
};

struct product { /* c += a b */
    struct matrix a, b, c;
    int64_t rows, columns, k; /* multiples of ROWS and LANES; terms of a sum */
    bool turned;              /* a is the transpose of what lies there */
    bool begins;              /* c is not read: c = a b */
};

/* ROWS rows by `vectors` vectors, from there on. */
static ALWAYS_INLINE void multiply_block(const struct product *p, int64_t row, int64_t column,
                                         int vectors)
{
    int64_t across = p->turned ? 1 : p->a.stride, along = p->turned ? p->a.stride : 1;
    const float *a = p->a.at + row * across, *b = p->b.at + column;
    float *c = p->c.at + row * p->c.stride + column;
    lanes sum[ROWS][COLUMNS];

    UNROLLED (r, ROWS)
        UNROLLED (v, vectors)
            sum[r][v] = p->begins ? (lanes){0} : load(c + r * p->c.stride + v * LANES);
    for (int64_t i = 0; i < p->k; i++, a += along, b += p->b.stride) {
        lanes of_b[COLUMNS];

        UNROLLED (v, vectors)
            of_b[v] = load(b + v * LANES);
        UNROLLED (r, ROWS) {
            float of_a = a[r * across];

            UNROLLED (v, vectors)
                sum[r][v] += of_a * of_b[v];
        }
    }
    UNROLLED (r, ROWS)
        UNROLLED (v, vectors)
            store(c + r * p->c.stride + v * LANES, sum[r][v]);
}

static ALWAYS_INLINE void multiply_as(const struct product *p)
{
    for (int64_t column = 0; column < p->columns; column += COLUMNS * LANES) {
        int64_t vectors = (p->columns - column) / LANES;

        for (int64_t row = 0; row < p->rows; row += ROWS) {
            if (vectors >= COLUMNS)
                multiply_block(p, row, column, COLUMNS);
            else if (vectors == 3)
                multiply_block(p, row, column, COLUMNS < 3 ? COLUMNS : 3);
            else if (vectors == 2)
                multiply_block(p, row, column, 2);
            else
                multiply_block(p, row, column, 1);
        }
    }
}

static void multiply(struct product p)
{
    p.turned = false;
    multiply_as(&p);
}

static void multiply_turned(struct product p)
{
    p.turned = true;
    multiply_as(&p);
}

/* ---- what a part works in ---- */

/* Dropout of the weights of one sample's head. */
struct dropping {
    bool is_on;
    const struct ghp_kernel_arguments *args;
    uint32_t sample, threshold;
    int64_t head; /* among those of all workers */
    float scale;  /* of weights that are kept */
};

/* One unit's sizes. */
struct sizes {
    int64_t positions, keys; /* of queries; of keys and values */
    int64_t offset;          /* the first query's position among the keys */
    int64_t size;            /* of a head */
    int64_t stride;          /* of rows: size in whole vectors */
    int64_t tiles;           /* of keys */
    bool causal, ids;        /* ids: tokens say which documents positions are of */
    float scale;             /* of the products of queries and keys */
    float cap;               /* of scores; 0: none */
    const struct ghp_heads *heads;
    struct dropping dropping; /* of the head in turn */
};

/* [tiles][size][TILE] if turned, else [tiles x TILE][stride]; one tile if it says so. */
struct room {
    float *turned_keys, *turned_values; /* values: backward */
    float *keys, *values;               /* backward; forward */
    float *dkeys, *dvalues;             /* backward */
    float *queries, *dy;                /* a tile's; the queries times the scale */
    float *out;                         /* a tile's sums of values, or queries' gradient */
    float *scores, *slopes;             /* [TILE][TILE] */
    int32_t *documents;                 /* [tiles x TILE + ROWS], -1 of padding and after the end */
    float *greatest, *sum; /* [TILE] forward; backward: logarithms of sums, and sums of y dy */
};

static struct sizes sizes_of(const struct ghp_local *local, int64_t first_position)
{
    int64_t size = local->heads.size, keys = ghp_attention_keys(local);

    return (struct sizes){.positions = local->h,
                          .keys = keys,
                          .offset = ghp_attention_offset(local, first_position),
                          .size = size,
                          .stride = (size + LANES - 1) / LANES * LANES,
                          .tiles = (keys + TILE - 1) / TILE,
                          .causal = local->heads.causal,
                          .scale = (float)ghp_attention_scale(&local->heads),
                          .cap = (float)local->heads.softcap,
                          .ids = ghp_attention_has_ids(local),
                          .heads = &local->heads};
}

static struct dropping dropping_of(const struct ghp_local *local,
                                   const struct ghp_kernel_arguments *args, int64_t n, int64_t head)
{
    return (struct dropping){.is_on = local->heads.dropout > 0,
                             .args = args,
                             .sample = (uint32_t)(args->first_sample + n),
                             .threshold = (uint32_t)(local->heads.dropout * 0x1p32),
                             .head = args->first_channel / local->heads.size + head,
                             .scale = (float)(1.0 / (1.0 - local->heads.dropout))};
}

struct arena { /* base NULL: only counts */
    float *base;
    int64_t used;
};

static float *take(struct arena *arena, int64_t elements)
{
    float *at = arena->base == NULL ? NULL : arena->base + arena->used;

    arena->used += ghp_align(elements * (int64_t)sizeof(float)) / (int64_t)sizeof(float);
    return at;
}

/* The room of one part from `base` on; *elements receives its size. */
static struct room room_at(const struct sizes *z, bool backward, float *base, int64_t *elements)
{
    int64_t turned = z->tiles * TILE * z->size, rows = z->tiles * TILE * z->stride;
    int64_t tile = TILE * z->stride;
    struct arena arena = {.base = base};
    struct room room = {.turned_keys = take(&arena, turned),
                        .queries = take(&arena, tile),
                        .out = take(&arena, tile),
                        .scores = take(&arena, TILE * TILE),
                        .greatest = take(&arena, TILE),
                        .sum = take(&arena, TILE)};

    if (backward) {
        room.turned_values = take(&arena, turned);
        room.keys = take(&arena, rows);
        room.dkeys = take(&arena, rows);
        room.dvalues = take(&arena, rows);
        room.dy = take(&arena, tile);
        room.slopes = take(&arena, TILE * TILE);
    } else {
        room.values = take(&arena, rows);
    }
    if (z->ids) room.documents = (int32_t *)(void *)take(&arena, z->tiles * TILE + ROWS);
    *elements = arena.used;
    return room;
}

static int64_t part_elements(const struct ghp_local *local, bool backward)
{
    struct sizes z = sizes_of(local, 0);
    int64_t elements;

    room_at(&z, backward, NULL, &elements);
    return elements;
}

static int64_t forward_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * part_elements(local, false) * (int64_t)sizeof(float);
}

static int64_t backward_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * part_elements(local, true) * (int64_t)sizeof(float);
}

static struct room room_of(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           int part, bool backward)
{
    struct sizes z = sizes_of(local, 0);
    int64_t elements = part_elements(local, backward);

    return room_at(&z, backward, (float *)args->at.scratch + part * elements, &elements);
}

/* ---- tiles ---- */

/* A tile of queries by one of keys, and the ROWS rows of it that are in turn. */
struct place {
    int64_t query, key, row; /* first positions of both tiles; row in the tile */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows of a tile that are there, in whole blocks. */
static int64_t rows_of(const struct sizes *z, int64_t query)
{
    return (least(TILE, z->positions - query) + ROWS - 1) / ROWS * ROWS;
}

/* The place of a tile's first query, counted from the tile's first key. */
static int64_t ahead_of(const struct sizes *z, struct place at)
{
    return z->offset + at.query - at.key;
}

/* Whether some of the tile's queries come before some of its keys. */
static bool is_diagonal(const struct sizes *z, struct place at)
{
    return z->causal && ahead_of(z, at) + 1 < TILE;
}

/* Keys that the place's rows see at most, in whole blocks; none or fewer: they see nothing. */
static int64_t keys_of(const struct sizes *z, struct place at)
{
    int64_t end = ahead_of(z, at) + at.row + ROWS;

    return is_diagonal(z, at) && end < TILE ? (end + ROWS - 1) / ROWS * ROWS : TILE;
}

/* The same in whole vectors. */
static int64_t columns_of(const struct sizes *z, struct place at)
{
    return (keys_of(z, at) + LANES - 1) / LANES * LANES;
}

/* The tile of the first key that a tile of queries sees; where those that it sees end. */
static int64_t first_tile(const struct sizes *z, int64_t query)
{
    return ghp_attention_first(z->heads, z->offset + query) / TILE * TILE;
}

static int64_t end_of_keys(const struct sizes *z, int64_t query)
{
    return z->causal ? least(z->keys, z->offset + query + TILE) : z->keys;
}

/* Columns before the first that a row of the place sees. */
static int64_t unseen(const struct sizes *z, struct place at, int64_t row)
{
    return ghp_attention_first(z->heads, z->offset + at.query + at.row + row) - at.key;
}

/* The end of the columns that the row sees, at least 0. */
static int64_t seen(const struct sizes *z, struct place at, int64_t row)
{
    int64_t there = least(TILE, z->keys - at.key), end = ahead_of(z, at) + at.row + row + 1;

    if (!z->causal || end > there) return there;
    return end > 0 ? end : 0;
}

/* The tangent of a capped score: scores between -cap and cap. */
static void cap_scores(const struct sizes *z, float *scores, int64_t columns)
{
    float inverse = 1.0f / z->cap;

    for (int64_t r = 0; r < ROWS; r++) {
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            scores[r * TILE + c] = z->cap * ghp_tanh(scores[r * TILE + c] * inverse);
    }
}

/* Hides keys of other documents than a row's, and of padding. */
static void hide_documents(const struct sizes *z, const struct room *room, struct place at,
                           int64_t columns)
{
    const int32_t *keys = room->documents + at.key;

    for (int64_t r = 0; r < ROWS; r++) {
        int32_t mine = room->documents[z->offset + at.query + at.row + r];
        float *scores = room->scores + (at.row + r) * TILE;

        for (int64_t c = 0; c < columns; c++)
            scores[c] = keys[c] == mine && mine >= 0 ? scores[c] : hidden;
    }
}

static void number_documents(const struct sizes *z, const struct room *room,
                             const struct ghp_kernel_arguments *args, int64_t n)
{
    if (!z->ids) return;
    ghp_attention_documents(z->heads, (const int32_t *)args->at.x[3] + n * z->keys, z->keys,
                            room->documents);
    memset(room->documents + z->keys, 0xff, /* -1 */
           (size_t)(z->tiles * TILE + ROWS - z->keys) * sizeof *room->documents);
}

/* Whether a row of a tile of queries is padding, which sees nothing. */
static bool is_padding(const struct sizes *z, const struct room *room, int64_t row)
{
    return z->ids && room->documents[z->offset + row] < 0;
}

/* Scores of the place's rows, hidden where a row does not see a key. */
static void score(const struct sizes *z, const struct room *room, struct place at)
{
    int64_t columns = columns_of(z, at);
    float *scores = room->scores + at.row * TILE;

    multiply((struct product){.a = {room->queries + at.row * z->stride, z->stride},
                              .b = {room->turned_keys + at.key * z->size, TILE},
                              .c = {scores, TILE},
                              .rows = ROWS,
                              .columns = columns,
                              .k = z->size,
                              .begins = true});
    if (z->cap > 0) cap_scores(z, scores, columns);
    if (z->ids) hide_documents(z, room, at, columns);
    if (seen(z, at, 0) == TILE && unseen(z, at, ROWS - 1) <= 0) return;
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t c = 0; c < least(unseen(z, at, r), columns); c++)
            scores[r * TILE + c] = hidden;
        for (int64_t c = seen(z, at, r); c < columns; c++)
            scores[r * TILE + c] = hidden;
    }
}

/* Multiplies each number of a row of the place by what dropout keeps of its weight. */
static void drop(const struct sizes *z, struct place at, int64_t row, float *numbers,
                 int64_t columns)
{
    const struct dropping *d = &z->dropping;
    int64_t element = ghp_attention_weight(z->keys, d->head, z->offset + at.query + row) + at.key;
    uint32_t counter[4] = {(uint32_t)(element / 4), d->sample, (uint32_t)d->args->step,
                           (uint32_t)d->args->layer};
    uint32_t random[TILE + 8];
    const uint32_t *own = random + element % 4;

    ghp_random_fill(d->args->seed, counter, (element % 4 + columns + 3) / 4, random);
#pragma omp simd
    for (int64_t c = 0; c < columns; c++)
        numbers[c] = own[c] >= d->threshold ? numbers[c] * d->scale : 0;
}

/* ---- forward ---- */

/* The greatest of a row's scores and of what it was. */
static ALWAYS_INLINE float greatest_of(const float *scores, int64_t columns, float greatest)
{
    float most[LANES];

    for (int i = 0; i < LANES; i++)
        most[i] = scores[i];
    for (int64_t c = LANES; c < columns; c += LANES)
        for (int i = 0; i < LANES; i++)
            most[i] = scores[c + i] > most[i] ? scores[c + i] : most[i];
    for (int i = 0; i < LANES; i++)
        greatest = most[i] > greatest ? most[i] : greatest;
    return greatest;
}

static ALWAYS_INLINE float sum_of(const float *row, int64_t columns)
{
    float sum[LANES] = {0};

    for (int64_t c = 0; c < columns; c += LANES)
        for (int i = 0; i < LANES; i++)
            sum[i] += row[c + i];
    for (int i = 1; i < LANES; i++)
        sum[0] += sum[i];
    return sum[0];
}

/* Probabilities, but for a factor, in place of a row's scores; what was summed before is scaled to the new maximum. A
 * row that saw nothing yet has sums of nothing, which the first score that it sees scales to 0. */
static void soften(const struct sizes *z, const struct room *room, int64_t row, int64_t columns)
{
    float *scores = room->scores + row * TILE, *out = room->out + row * z->stride;
    float before = room->greatest[row], greatest = greatest_of(scores, columns, before);
    float factor = ghp_exponential(before - greatest);

#pragma omp simd
    for (int64_t c = 0; c < columns; c++)
        scores[c] = ghp_exponential(scores[c] - greatest);
    room->greatest[row] = greatest;
    room->sum[row] = room->sum[row] * factor + sum_of(scores, columns);
    if (factor < 1) {
#pragma omp simd
        for (int64_t c = 0; c < z->stride; c++)
            out[c] *= factor;
    }
}

static void forward_rows(const struct sizes *z, const struct room *room, struct place at)
{
    int64_t columns = columns_of(z, at);

    if (columns <= 0) return;
    score(z, room, at);
    for (int64_t row = at.row; row < at.row + ROWS; row++)
        soften(z, room, row, columns);
    for (int64_t row = at.row; z->dropping.is_on && row < at.row + ROWS; row++)
        drop(z, at, row, room->scores + row * TILE, columns);
    multiply((struct product){.a = {room->scores + at.row * TILE, TILE},
                              .b = {room->values + at.key * z->stride, z->stride},
                              .c = {room->out + at.row * z->stride, z->stride},
                              .rows = ROWS,
                              .columns = z->stride,
                              .k = keys_of(z, at)});
}

/* All keys that a tile of queries sees. */
static void forward_tile(const struct sizes *z, const struct room *room, int64_t query)
{
    int64_t end = end_of_keys(z, query);
    struct place at = {.query = query};

    memset(room->out, 0, (size_t)(TILE * z->stride) * sizeof *room->out);
    for (int64_t r = 0; r < TILE; r++) {
        room->greatest[r] = hidden;
        room->sum[r] = 0;
    }
    for (at.key = first_tile(z, query); at.key < end; at.key += TILE)
        for (at.row = 0; at.row < rows_of(z, query); at.row += ROWS)
            forward_rows(z, room, at);
}

/* ---- backward ---- */

/* Gradients of probabilities so that, less their mean, they are those of uncapped scores: times the tangent's slope. */
static void uncap(const struct sizes *z, const float *scores, float *ds, float mean,
                  int64_t columns)
{
    float inverse = 1.0f / z->cap;

#pragma omp simd
    for (int64_t c = 0; c < columns; c++) {
        float tangent = scores[c] < -z->cap ? -1.0f : scores[c] * inverse;

        ds[c] = mean + (ds[c] - mean) * (1.0f - tangent * tangent);
    }
}

/* Makes, in the place's rows, probabilities, as dropout leaves them, of the scores, and the scores' gradients of the
 * probabilities'. */
static void slope(const struct sizes *z, const struct room *room, struct place at)
{
    int64_t columns = columns_of(z, at);

    score(z, room, at);
    multiply((struct product){.a = {room->dy + at.row * z->stride, z->stride},
                              .b = {room->turned_values + at.key * z->size, TILE},
                              .c = {room->slopes + at.row * TILE, TILE},
                              .rows = ROWS,
                              .columns = columns,
                              .k = z->size,
                              .begins = true});
    for (int64_t row = at.row; row < at.row + ROWS; row++) {
        float *p = room->scores + row * TILE, *ds = room->slopes + row * TILE;
        float logarithm = room->greatest[row], mean = room->sum[row];

        if (z->dropping.is_on) drop(z, at, row, ds, columns);
        if (z->cap > 0) uncap(z, p, ds, mean, columns);
#pragma omp simd
        for (int64_t c = 0; c < columns; c++) {
            p[c] = ghp_exponential(p[c] - logarithm);
            ds[c] = p[c] * (ds[c] - mean);
        }
        if (z->dropping.is_on) drop(z, at, row, p, columns);
    }
}

/* Gradients of keys or values += the transpose of weights, which lie as scores do, times `of`, which lies as queries.
 * On the diagonal rows before a block of keys have nothing for it. */
static void spread(const struct sizes *z, struct place at, float *weights, float *of, float *to)
{
    int64_t rows = rows_of(z, at.query),
            keys = (least(TILE, z->keys - at.key) + ROWS - 1) / ROWS * ROWS;
    bool diagonal = is_diagonal(z, at);
    int64_t step = diagonal ? ROWS : keys;

    for (int64_t key = 0; key < keys; key += step) {
        int64_t before = diagonal ? key - ahead_of(z, at) : 0;
        int64_t first = before > 0 ? before / ROWS * ROWS : 0;

        if (first >= rows) return;
        multiply_turned((struct product){.a = {weights + first * TILE + key, TILE},
                                         .b = {of + first * z->stride, z->stride},
                                         .c = {to + (at.key + key) * z->stride, z->stride},
                                         .rows = step,
                                         .columns = z->stride,
                                         .k = rows - first});
    }
}

/* A tile of queries with all keys that it sees: adds to dkeys and dvalues, and makes the queries' gradient, but for the
 * scale, in out. */
static void backward_tile(const struct sizes *z, const struct room *room, int64_t query)
{
    int64_t end = end_of_keys(z, query);
    struct place at = {.query = query};

    memset(room->out, 0, (size_t)(TILE * z->stride) * sizeof *room->out);
    for (at.key = first_tile(z, query); at.key < end; at.key += TILE) {
        for (at.row = 0; at.row < rows_of(z, query); at.row += ROWS) {
            if (keys_of(z, at) <= 0) continue;
            slope(z, room, at);
            multiply((struct product){.a = {room->slopes + at.row * TILE, TILE},
                                      .b = {room->keys + at.key * z->stride, z->stride},
                                      .c = {room->out + at.row * z->stride, z->stride},
                                      .rows = ROWS,
                                      .columns = z->stride,
                                      .k = keys_of(z, at)});
        }
        spread(z, at, room->scores, room->dy, room->dvalues);
        spread(z, at, room->slopes, room->queries, room->dkeys);
    }
}

#define BODY "executor/backend/cpu/attention_body.h"
#include "executor/backend/cpu/precisions.h"

const struct ghp_cpu_kernel ghp_cpu_kernels_attention[] = {
    {GHP_OP_ATTENTION, GHP_PASS_FORWARD, "tiles", GHP_CPU_KERNEL_EACH(forward, NULL),
     forward_bytes},
    {GHP_OP_ATTENTION, GHP_PASS_BACKWARD_DATA, "tiles", GHP_CPU_KERNEL_EACH(backward, NULL),
     backward_bytes},
    {.name = NULL},
};
