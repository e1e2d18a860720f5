/* executor/backend/cpu/small_batch.c - linear layers over few samples (or positions of all of them), in float: what is
 * read or written there is the weights.
 *
 * A library's matrix product packs its operands, which costs more than a product with few rows itself. These loops
 * take the weights as they lie, each number once, lines being asked for a page before their turn, and have all
 * samples use it while it is in the nearest cache; the weight gradient is written past the caches. Tiles are small
 * enough that sums stay in registers. Compiled with fused multiply-adds: for `fast`
 * numerics only, one of the algorithms that the profiler times.
 *
 * ghp-options: -O3 -ffp-contract=fast */
#include "executor/backend/cpu/kernels_cpu.h"
#include "executor/platform/streaming_store.h"

#include <string.h>

enum {
    LANES = 16,
    CHUNK = 1024, /* columns: of a tile's rows and samples both, half of a nearest cache */
    TILE = 8      /* rows and samples at most */
};

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

struct rows {
    float *at;
    int64_t stride;
};

struct tile { /* constants where bodies are built */
    int rows, samples;
};

/* How many of the rows, or samples, that are left a tile takes next. */
static int tile_of(int64_t left, int most)
{
    return left >= most ? most : most == TILE && left >= TILE / 2 ? TILE / 2 : 1;
}

static struct rows rows_at(struct rows of, int64_t row, int64_t column)
{
    return (struct rows){of.at + row * of.stride + column, of.stride};
}

/* Columns from `first` on that are taken at once. */
static int64_t chunk_of(int64_t first, int64_t end)
{
    return end - first < CHUNK ? end - first : CHUNK;
}

static ALWAYS_INLINE float total(const lanes *sum)
{
    float part[LANES];
    memcpy(part, sum, sizeof part);
    UNROLLED (i, 8)
        part[i] += part[i + 8];
    UNROLLED (i, 4)
        part[i] += part[i + 4];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

/* ---- forward: y[s][r] = the sum of x[s][c] w[r][c] over n columns ---- */

enum { FORWARD_ROWS = 3, DATA_ROWS = 4 }; /* with 8 samples all sums are in registers */

static ALWAYS_INLINE void dots(struct rows w, struct rows x, struct rows y, int64_t n, bool adds,
                               struct tile tile)
{
    lanes sum[FORWARD_ROWS][TILE];
    int64_t c = 0;
    UNROLLED (r, tile.rows)
        UNROLLED (s, tile.samples)
            sum[r][s] = (lanes){0};
    for (; c + LANES <= n; c += LANES) {
        lanes a[FORWARD_ROWS], b;
        UNROLLED (r, tile.rows) {
            ghp_prefetch_line(w.at + r * w.stride + c);
            memcpy(&a[r], w.at + r * w.stride + c, sizeof a[r]);
        }
        UNROLLED (s, tile.samples) {
            memcpy(&b, x.at + s * x.stride + c, sizeof b);
            UNROLLED (r, tile.rows)
                sum[r][s] += a[r] * b;
        }
    }
    UNROLLED (s, tile.samples)
        UNROLLED (r, tile.rows) {
            float *to = y.at + s * y.stride + r, value = total(&sum[r][s]);
            for (int64_t i = c; i < n; i++)
                value += w.at[r * w.stride + i] * x.at[s * x.stride + i];
            *to = adds ? *to + value : value;
        }
}

static void dots_tile(struct rows w, struct rows x, struct rows y, int64_t n, bool adds,
                      struct tile tile)
{
    if (tile.rows == FORWARD_ROWS && tile.samples == TILE)
        dots(w, x, y, n, adds, (struct tile){FORWARD_ROWS, TILE});
    else if (tile.rows == FORWARD_ROWS && tile.samples > 1)
        dots(w, x, y, n, adds, (struct tile){FORWARD_ROWS, TILE / 2});
    else if (tile.rows == FORWARD_ROWS)
        dots(w, x, y, n, adds, (struct tile){FORWARD_ROWS, 1});
    else
        for (int s = 0; s < tile.samples; s++)
            dots(w, rows_at(x, s, 0), rows_at(y, s, 0), n, adds, (struct tile){1, 1});
}

static void small_batch_forward(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t columns = local->c, samples = local->n * local->h;
    struct ghp_range range = ghp_part_range(part, local->k, FORWARD_ROWS);
    struct rows w = {args->at.w[0], columns}, x = {(float *)(uintptr_t)args->at.x[0], columns},
                y = {args->at.y, local->k};
    struct tile tile;
    for (int64_t k = range.first; k < range.end; k += tile.rows) {
        tile.rows = tile_of(range.end - k, FORWARD_ROWS);
        for (int64_t c = 0; c < columns; c += CHUNK)
            for (int64_t m = 0; m < samples; m += tile.samples) {
                tile.samples = tile_of(samples - m, TILE);
                dots_tile(rows_at(w, k, c), rows_at(x, m, c), rows_at(y, m, k),
                          chunk_of(c, columns), c > 0, tile);
            }
    }
}

/* ---- data: dx[s][c] = the sum of dy[s][r] w[r][c] over the rows ---- */

static ALWAYS_INLINE void spread(struct rows w, struct rows dy, struct rows dx, int64_t n,
                                 struct tile tile)
{
    int64_t c = 0;
    for (; c + LANES <= n; c += LANES) {
        lanes a[DATA_ROWS], sum;
        UNROLLED (r, tile.rows) {
            __builtin_prefetch(w.at + (r + tile.rows) * w.stride + c, 0, 2);
            memcpy(&a[r], w.at + r * w.stride + c, sizeof a[r]);
        }
        UNROLLED (s, tile.samples) {
            memcpy(&sum, dx.at + s * dx.stride + c, sizeof sum);
            UNROLLED (r, tile.rows)
                sum += dy.at[s * dy.stride + r] * a[r];
            memcpy(dx.at + s * dx.stride + c, &sum, sizeof sum);
        }
    }
    for (; c < n; c++)
        for (int s = 0; s < tile.samples; s++)
            for (int r = 0; r < tile.rows; r++)
                dx.at[s * dx.stride + c] += dy.at[s * dy.stride + r] * w.at[r * w.stride + c];
}

static void spread_tile(struct rows w, struct rows dy, struct rows dx, int64_t n, struct tile tile)
{
    if (tile.rows == DATA_ROWS && tile.samples == TILE)
        spread(w, dy, dx, n, (struct tile){DATA_ROWS, TILE});
    else if (tile.rows == DATA_ROWS && tile.samples > 1)
        spread(w, dy, dx, n, (struct tile){DATA_ROWS, TILE / 2});
    else if (tile.rows == DATA_ROWS)
        spread(w, dy, dx, n, (struct tile){DATA_ROWS, 1});
    else
        for (int s = 0; s < tile.samples; s++)
            spread(w, rows_at(dy, s, 0), rows_at(dx, s, 0), n, (struct tile){1, 1});
}

static void small_batch_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                             struct ghp_part part)
{
    int64_t columns = local->c, samples = local->n * local->h, rows = local->k;
    struct ghp_range range = ghp_part_range(part, columns, LANES);
    struct rows w = {args->at.w[0], columns}, dy = {args->at.dy, rows},
                dx = {args->at.dx[0], columns};
    struct tile tile;
    for (int64_t c = range.first; c < range.end; c += CHUNK) {
        int64_t n = chunk_of(c, range.end);
        for (int64_t m = 0; m < samples; m++)
            memset(rows_at(dx, m, c).at, 0, (size_t)n * sizeof(float));
        for (int64_t k = 0; k < rows; k += tile.rows) {
            tile.rows = tile_of(rows - k, DATA_ROWS);
            for (int64_t m = 0; m < samples; m += tile.samples) {
                tile.samples = tile_of(samples - m, TILE);
                spread_tile(rows_at(w, k, c), rows_at(dy, m, k), rows_at(dx, m, c), n, tile);
            }
        }
    }
}

/* ---- weight: dw[r][c] = the sum of dy[s][r] x[s][c] over the samples ---- */

enum { WIDE = 2 }; /* lanes at once */

static ALWAYS_INLINE void outer(struct rows dy, struct rows x, struct rows dw, int64_t samples,
                                bool streaming_store)
{
    lanes sum[TILE][WIDE], b[WIDE];
    UNROLLED (r, TILE)
        UNROLLED (v, WIDE)
            sum[r][v] = (lanes){0};
    for (int64_t s = 0; s < samples; s++) {
        UNROLLED (v, WIDE)
            memcpy(&b[v], x.at + s * x.stride + v * LANES, sizeof b[v]);
        UNROLLED (r, TILE)
            UNROLLED (v, WIDE)
                sum[r][v] += dy.at[s * dy.stride + r] * b[v];
    }
    UNROLLED (r, TILE)
        UNROLLED (v, WIDE) {
            float *to = dw.at + r * dw.stride + v * LANES;
            if (streaming_store)
                ghp_streaming_store(to, &sum[r][v], sizeof sum[r][v]);
            else
                memcpy(to, &sum[r][v], sizeof sum[r][v]);
        }
}

/* What is left of some rows at the end of their columns, number by number. */
static void outer_rest(struct rows dy, struct rows x, struct rows dw, int64_t samples, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        float sum = 0;
        for (int64_t s = 0; s < samples; s++)
            sum += dy.at[s * dy.stride] * x.at[s * x.stride + c];
        dw.at[c] = sum;
    }
}

static void small_batch_weight(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    int64_t columns = local->c, samples = local->n * local->h;
    struct ghp_range range = ghp_part_range(part, local->k, TILE);
    struct rows dy = {args->at.dy, local->k}, x = {(float *)(uintptr_t)args->at.x[0], columns},
                dw = {args->at.dw[0], columns};
    bool streaming_store =
        columns % LANES == 0 &&
        ghp_streaming_store_pays(dw.at, local->k * columns * (int64_t)sizeof(float));
    for (int64_t k = range.first; k < range.end;) {
        bool whole = k + TILE <= range.end;
        int64_t c = 0;
        for (; whole && c + WIDE * LANES <= columns; c += WIDE * LANES) {
            struct rows yk = rows_at(dy, 0, k), xc = rows_at(x, 0, c), wk = rows_at(dw, k, c);
            if (streaming_store)
                outer(yk, xc, wk, samples, true);
            else
                outer(yk, xc, wk, samples, false);
        }
        for (int64_t r = k; r < k + (whole ? TILE : 1); r++)
            outer_rest(rows_at(dy, 0, r), rows_at(x, 0, c), rows_at(dw, r, c), samples,
                       columns - c);
        k += whole ? TILE : 1;
    }
    if (streaming_store) ghp_streaming_store_end();
}

/* ---- the table ---- */

enum { MOST_SAMPLES = 32 }; /* from there on reading weights is not what takes the time */

bool ghp_cpu_kernel_is_small_batch(const struct ghp_backend *backend, const struct ghp_local *local)
{
    return !backend->config.exact && backend->config.element_bytes == sizeof(float) &&
           local->op == GHP_OP_LINEAR && local->n * local->h <= MOST_SAMPLES;
}

const struct ghp_cpu_kernel *ghp_cpu_kernel_small_batch(enum ghp_pass pass)
{
    static const struct ghp_cpu_kernel cpu_kernels[] = {{GHP_OP_LINEAR,
                                                         GHP_PASS_FORWARD,
                                                         GHP_CPU_KERNEL_SMALL_BATCH,
                                                         {{NULL, small_batch_forward, NULL}},
                                                         NULL},
                                                        {GHP_OP_LINEAR,
                                                         GHP_PASS_BACKWARD_DATA,
                                                         GHP_CPU_KERNEL_SMALL_BATCH,
                                                         {{NULL, small_batch_data, NULL}},
                                                         NULL},
                                                        {GHP_OP_LINEAR,
                                                         GHP_PASS_BACKWARD_WEIGHT,
                                                         GHP_CPU_KERNEL_SMALL_BATCH,
                                                         {{NULL, small_batch_weight, NULL}},
                                                         NULL}};
    const struct ghp_cpu_kernel *cpu_kernel = cpu_kernels;
    while (cpu_kernel->pass != pass)
        cpu_kernel++;
    return cpu_kernel;
}
