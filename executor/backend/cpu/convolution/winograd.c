/* executor/backend/cpu/convolution/winograd.c - see winograd.h.
 *
 * Tiles are taken some at a time and channels in chunks, so that transformed tiles, transformed weights and products
 * of a chunk stay in the second cache together.
 *
 * -Wno-psabi: functions that take or give vectors are all inlined, so no call depends on a processor's registers.
 *
 * ghp-options: -O3 -ffp-contract=fast -Wno-psabi */
#include "executor/backend/cpu/convolution/winograd.h"

#include "executor/backend/cpu/convolution/transforms.h"

#include <string.h>

enum {
    CHUNK = 4 * BLOCK, /* channels at once */
    ROWS = 6,          /* tiles in registers */
    WEIGHT_ROWS = 4,   /* input channels in registers, of the weight gradient */
    TILES = 10 * ROWS, /* at once */
    /* of one point; planes do not begin in the same lines of a cache */
    PLANE = TILES * CHUNK + BLOCK
};

/* ---- what a pass works on ---- */

struct image { /* an activation, or its gradient */
    float *at;
    int64_t channels, h, w;
    int64_t pixel, block, sample; /* numbers from one to the next */
};

/* `out` is `in` convolved, in tiles; of the weight gradient, `out` is the gradient that is read. */
struct conv {
    struct image in, out;
    int64_t pad_h, pad_w;
    int r, m;                /* sides of the window and of a tile of outputs */
    int64_t across, a_image; /* tiles: in a row, in an image */
    int64_t tiles;
};

struct winograd {
    struct ghp_kernel base;
    struct ghp_kernel_spec spec;
};

static struct image image_of(void *at, int64_t channels, int64_t h, int64_t w, bool nchw16c)
{
    return (struct image){.at = at,
                          .channels = channels,
                          .h = h,
                          .w = w,
                          .pixel = nchw16c ? BLOCK : channels,
                          .block = nchw16c ? h * w * BLOCK : BLOCK,
                          .sample = h * w * channels};
}

static struct conv conv_of(const struct winograd *kernel, const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct ghp_tensors *at = &args->at;
    bool back = kernel->base.pass == GHP_PASS_BACKWARD_DATA;
    bool forward = kernel->base.pass == GHP_PASS_FORWARD;
    struct image x =
        image_of(back ? at->dx[0] : (void *)(uintptr_t)at->x[0], l->c, l->h, l->w, kernel->spec.x);
    struct image y = image_of(forward ? at->y : at->dy, l->k, l->p, l->q, kernel->spec.y);
    struct conv c = {.in = back ? y : x, .out = back ? x : y, .r = (int)l->window.r};
    c.m = SIDE + 1 - c.r;
    c.pad_h = back ? c.r - 1 - l->window.pad_top : l->window.pad_top;
    c.pad_w = back ? c.r - 1 - l->window.pad_left : l->window.pad_left;
    c.across = (c.out.w + c.m - 1) / c.m;
    c.a_image = c.across * ((c.out.h + c.m - 1) / c.m);
    c.tiles = l->n * c.a_image;
    return c;
}

struct corner { /* of a tile of outputs */
    int64_t sample, h, w;
};

static struct corner corner_of(const struct conv *c, int64_t tile)
{
    int64_t in_image = tile % c->a_image;
    return (struct corner){tile / c->a_image, in_image / c->across * c->m,
                           in_image % c->across * c->m};
}

/* The first pixel of a sample, from one channel on. */
static ALWAYS_INLINE float *channel_of(const struct image *of, int64_t sample, int64_t channel)
{
    return of->at + sample * of->sample + channel / BLOCK * of->block + channel % BLOCK;
}

/* A pixel of some channels; zero outside the image. */
static ALWAYS_INLINE lanes pixel_of(const struct image *of, const float *first, int64_t h,
                                    int64_t w)
{
    bool inside = h >= 0 && h < of->h && w >= 0 && w < of->w;
    return inside ? load(first + (h * of->w + w) * of->pixel) : (lanes){0};
}

static void input_tile(const struct conv *c, struct corner at, int64_t channel, float *to)
{
    const struct image *in = &c->in;
    const float *from = channel_of(in, at.sample, channel);
    int64_t h = at.h - c->pad_h, w = at.w - c->pad_w;
    lanes d[SIDE][SIDE];
    if (h >= 0 && h + SIDE <= in->h && w >= 0 && w + SIDE <= in->w) {
        from += (h * in->w + w) * in->pixel;
        UNROLLED (i, SIDE)
            UNROLLED (j, SIDE)
                d[i][j] = load(from + (i * in->w + j) * in->pixel);
    } else {
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                d[i][j] = pixel_of(in, from, h + i, w + j);
    }
    put_input(d, to, PLANE);
}

/* Transformed tiles of some channels, [point][tile][chunk]. */
static void input_tiles(const struct conv *c, struct ghp_range tiles, struct ghp_range channels,
                        float *to)
{
    for (int64_t tile = tiles.first; tile < tiles.end; tile++) {
        struct corner at = corner_of(c, tile);
        for (int64_t k = channels.first; k < channels.end; k += LANES)
            input_tile(c, at, k, to + (tile - tiles.first) * CHUNK + k - channels.first);
    }
}

static struct ghp_range chunk_at(int64_t first, int64_t end)
{
    return (struct ghp_range){first, end - first < CHUNK ? end : first + CHUNK};
}

/* As many in each, or those of a last few would read all weights once more. */
static struct ghp_range tiles_at(int64_t first, int64_t end)
{
    int64_t left = end - first, times = (left + TILES - 1) / TILES;
    int64_t each = ((left + times - 1) / (times > 0 ? times : 1) + ROWS - 1) / ROWS * ROWS;
    return (struct ghp_range){first, left < each ? end : first + each};
}

struct job {
    const struct winograd *kernel;
    const struct ghp_kernel_arguments *args;
    struct conv conv;
    float *weights; /* transformed: [point][chunk of out][in][channel of the chunk] */
    float *own;     /* parts' */
};

/* ---- weights, forward and back to the data ---- */

/* Numbers of one point of transformed weights; planes do not begin in the same lines of a cache. */
static int64_t weights_plane(const struct conv *c)
{
    return c->in.channels * c->out.channels + BLOCK;
}

struct axis { /* numbers from one block of channels to the next, and from one channel */
    int64_t block, one;
};

struct weights { /* or their gradient */
    float *at;
    struct axis k, c;
    int64_t place; /* numbers from one to the next */
};

static struct weights weights_of(const struct winograd *kernel, float *at)
{
    const struct ghp_local *l = &kernel->base.local;
    int64_t places = l->window.r * l->window.s, block = places * BLOCK * BLOCK;
    if (kernel->spec.w)
        return (struct weights){at, {l->c / BLOCK * block, 1}, {block, BLOCK}, BLOCK * BLOCK};
    return (struct weights){
        at, {BLOCK * l->c * places, l->c * places}, {BLOCK * places, places}, 1};
}

/* The place of a channel's numbers, counted from the first channel's. */
static int64_t along(struct axis axis, int64_t channel)
{
    return channel / BLOCK * axis.block + channel % BLOCK * axis.one;
}

/* The points of some outputs' weights, which lie `lane` numbers apart, for one input. */
static ALWAYS_INLINE void put_weights(const float *w, int64_t lane, int64_t place, bool transposed,
                                      int r, float *to, int64_t plane)
{
    lanes g[MOST_R][MOST_R];
    for (int i = 0; i < r * r; i++) {
        const float *from = w + (transposed ? r * r - 1 - i : i) * place;
        if (lane == 1)
            g[i / r][i % r] = load(from);
        else
            for (int k = 0; k < LANES; k++)
                g[i / r][i % r][k] = from[k * lane];
    }
    put_slid(g, r, to, plane);
}

static void weights_part(void *context, struct ghp_part part)
{
    const struct job *job = context;
    const struct conv *c = &job->conv;
    const struct weights w = weights_of(job->kernel, job->args->at.w[0]);
    bool back = job->kernel->base.pass == GHP_PASS_BACKWARD_DATA;
    const struct axis in_axis = back ? w.k : w.c, out_axis = back ? w.c : w.k;
    int64_t ins = c->in.channels, outs = c->out.channels, plane = weights_plane(c);
    struct ghp_range range = ghp_part_range(part, outs, BLOCK);
    for (int64_t block = range.first; block < range.end; block += BLOCK) {
        struct ghp_range chunk = chunk_at(block / CHUNK * CHUNK, outs);
        float *row = job->weights + chunk.first * ins - chunk.first;
        for (int64_t in = 0; in < ins; in++, row += chunk.end - chunk.first)
            for (int64_t out = block; out < block + BLOCK; out += LANES) {
                const float *from = w.at + along(in_axis, in) + along(out_axis, out);
                if (c->r == 3)
                    put_weights(from, out_axis.one, w.place, back, 3, row + out, plane);
                else
                    put_weights(from, out_axis.one, w.place, back, 5, row + out, plane);
            }
    }
}

/* ---- products, forward and back to the data ---- */

/* The product at one point: to[tile][out] (+)= the sum of tiles[tile][in] weights[in][out] over some of the inputs. */
struct product {
    const float *tiles, *weights;
    float *to;
    int64_t depth, width; /* inputs; outputs, of the weights */
    bool adds;
};

static ALWAYS_INLINE void multiply(struct product p, int rows, int panel)
{
    lanes sum[ROWS][PANEL], b[PANEL];
    UNROLLED (r, rows)
        UNROLLED (v, panel)
            sum[r][v] = p.adds ? load(p.to + r * CHUNK + v * LANES) : (lanes){0};
    for (int64_t i = 0; i < p.depth; i++) {
        UNROLLED (v, panel)
            b[v] = load(p.weights + i * p.width + v * LANES);
        UNROLLED (r, rows)
            UNROLLED (v, panel)
                sum[r][v] += p.tiles[r * CHUNK + i] * b[v];
    }
    UNROLLED (r, rows)
        UNROLLED (v, panel)
            store(p.to + r * CHUNK + v * LANES, sum[r][v]);
}

static ALWAYS_INLINE void multiply_all(struct product p, int64_t tiles, int panel)
{
    int64_t t = 0;
    for (; t + ROWS <= tiles; t += ROWS, p.tiles += ROWS * CHUNK, p.to += ROWS * CHUNK)
        multiply(p, ROWS, panel);
    for (; t < tiles; t++, p.tiles += CHUNK, p.to += CHUNK)
        multiply(p, 1, panel);
}

/* How many registers of a row are summed at once, of those that are left. */
static int64_t panel_of(int64_t channels)
{
    int64_t left = channels / LANES;
    return left >= PANEL ? PANEL : left >= 2 ? 2 : 1;
}

static void multiply_chunk(struct product p, int64_t tiles)
{
    for (int64_t left = p.width, panel; left > 0; left -= panel * LANES) {
        panel = panel_of(left);
        if (panel == PANEL)
            multiply_all(p, tiles, PANEL);
        else if (panel == 2)
            multiply_all(p, tiles, 2);
        else
            multiply_all(p, tiles, 1);
        p.weights += panel * LANES;
        p.to += panel * LANES;
    }
}

/* What is also done to a tile's pixels. */
struct epilogue {
    const float *bias; /* or NULL */
    bool relu;
};

static ALWAYS_INLINE lanes finish(lanes y, lanes bias, bool relu)
{
    y += bias;
    return relu ? (lanes)((y > 0) & (__typeof__(y > 0))y) : y;
}

static ALWAYS_INLINE void output_tile(const struct conv *c, struct corner at, int64_t channel,
                                      const float *from, struct epilogue epilogue, int m)
{
    const struct image *out = &c->out;
    float *to = channel_of(out, at.sample, channel);
    lanes bias = epilogue.bias != NULL ? load(epilogue.bias + channel) : (lanes){0};
    lanes y[MOST_R][MOST_R];
    take_output(from, PLANE, m, y);
    for (int i = 0; i < m && at.h + i < out->h; i++)
        for (int j = 0; j < m && at.w + j < out->w; j++)
            store(to + ((at.h + i) * out->w + at.w + j) * out->pixel,
                  finish(y[i][j], bias, epilogue.relu));
}

static ALWAYS_INLINE void output_tiles(const struct job *job, struct ghp_range tiles,
                                       struct ghp_range channels, const float *from, int m)
{
    struct epilogue epilogue = {.bias = job->kernel->spec.bias ? job->args->at.w[1] : NULL,
                                .relu = job->kernel->spec.relu};
    for (int64_t tile = tiles.first; tile < tiles.end; tile++) {
        struct corner at = corner_of(&job->conv, tile);
        for (int64_t k = channels.first; k < channels.end; k += LANES)
            output_tile(&job->conv, at, k, from + (tile - tiles.first) * CHUNK + k - channels.first,
                        epilogue, m);
    }
}

static void tiles_part(void *context, struct ghp_part part)
{
    const struct job *job = context;
    const struct conv *c = &job->conv;
    struct ghp_range range = ghp_part_range(part, c->tiles, 1), tiles;
    float *inputs = job->own + part.index * 2 * (int64_t)POINTS * PLANE,
          *outputs = inputs + (int64_t)POINTS * PLANE;
    int64_t ins = c->in.channels, outs = c->out.channels;
    for (tiles = tiles_at(range.first, range.end); tiles.first < range.end;
         tiles = tiles_at(tiles.end, range.end))
        for (struct ghp_range out = chunk_at(0, outs); out.first < outs;
             out = chunk_at(out.end, outs)) {
            int64_t width = out.end - out.first;
            for (struct ghp_range in = chunk_at(0, ins); in.first < ins;
                 in = chunk_at(in.end, ins)) {
                if (ins > CHUNK || out.first == 0) input_tiles(c, tiles, in, inputs);
                const float *weights = job->weights + out.first * ins + in.first * width;
                for (int point = 0; point < POINTS; point++)
                    multiply_chunk((struct product){.tiles = inputs + point * (int64_t)PLANE,
                                                    .weights = weights + point * weights_plane(c),
                                                    .to = outputs + point * (int64_t)PLANE,
                                                    .depth = in.end - in.first,
                                                    .width = width,
                                                    .adds = in.first > 0},
                                   tiles.end - tiles.first);
            }
            if (c->m == 4)
                output_tiles(job, tiles, out, outputs, 4);
            else
                output_tiles(job, tiles, out, outputs, 2);
        }
}

/* ---- the weight gradient ---- */

enum { WEIGHT_PLANE = CHUNK * CHUNK + BLOCK };

static ALWAYS_INLINE void gradient_tile(const struct conv *c, struct corner at, int64_t channel,
                                        float *to, int m)
{
    const struct image *dy = &c->out;
    const float *from = channel_of(dy, at.sample, channel);
    lanes g[MOST_R][MOST_R];
    UNROLLED (i, m)
        UNROLLED (j, m)
            g[i][j] = pixel_of(dy, from, at.h + i, at.w + j);
    put_slid(g, m, to, PLANE);
}

static void gradient_tiles(const struct conv *c, struct ghp_range tiles, struct ghp_range channels,
                           float *to)
{
    for (int64_t tile = tiles.first; tile < tiles.end; tile++) {
        struct corner at = corner_of(c, tile);
        for (int64_t k = channels.first; k < channels.end; k += LANES) {
            float *there = to + (tile - tiles.first) * CHUNK + k - channels.first;
            if (c->m == 4)
                gradient_tile(c, at, k, there, 4);
            else
                gradient_tile(c, at, k, there, 2);
        }
    }
}

/* The product of gradients at one point: to[c][k] += the sum of x[tile][c] dy[tile][k] over the tiles. */
struct outer {
    const float *x, *dy;
    float *to;
    int64_t tiles;
};

static ALWAYS_INLINE void add_outer(struct outer o, int panel)
{
    lanes sum[WEIGHT_ROWS][PANEL], b[PANEL];
    UNROLLED (r, WEIGHT_ROWS)
        UNROLLED (v, panel)
            sum[r][v] = (lanes){0}; /* by itself, or thousands of tiles would be added one by one */
    for (int64_t t = 0; t < o.tiles; t++) {
        UNROLLED (v, panel)
            b[v] = load(o.dy + t * CHUNK + v * LANES);
        UNROLLED (r, WEIGHT_ROWS)
            UNROLLED (v, panel)
                sum[r][v] += o.x[t * CHUNK + r] * b[v];
    }
    UNROLLED (r, WEIGHT_ROWS)
        UNROLLED (v, panel)
            store(o.to + r * CHUNK + v * LANES, load(o.to + r * CHUNK + v * LANES) + sum[r][v]);
}

static void add_outer_panel(struct outer o, int64_t rows, int64_t panel)
{
    for (int64_t r = 0; r < rows; r += WEIGHT_ROWS, o.x += WEIGHT_ROWS, o.to += WEIGHT_ROWS * CHUNK)
        if (panel == PANEL)
            add_outer(o, PANEL);
        else if (panel == 2)
            add_outer(o, 2);
        else
            add_outer(o, 1);
}

static void add_outer_chunk(struct outer o, int64_t rows, int64_t channels)
{
    for (int64_t left = channels, panel; left > 0; left -= panel * LANES) {
        panel = panel_of(left);
        add_outer_panel(o, rows, panel);
        o.dy += panel * LANES;
        o.to += panel * LANES;
    }
}

/* Some gradients of each place, of outputs `lane` numbers from one to the next, from their products. */
static ALWAYS_INLINE void take_gradient(const float *from, int64_t lane, int64_t place, int r,
                                        float *dw)
{
    lanes y[MOST_R][MOST_R];
    take_output(from, WEIGHT_PLANE, r, y);
    for (int i = 0; i < r * r; i++)
        if (lane == 1)
            store(dw + i * place, y[i / r][i % r]);
        else
            for (int k = 0; k < LANES; k++)
                dw[i * place + k * lane] = y[i / r][i % r][k];
}

static void take_gradients(const struct job *job, const float *sums, struct ghp_range k,
                           struct ghp_range c)
{
    const struct weights dw = weights_of(job->kernel, job->args->at.dw[0]);
    for (int64_t in = c.first; in < c.end; in++)
        for (int64_t out = k.first; out < k.end; out += LANES) {
            const float *from = sums + (in - c.first) * CHUNK + out - k.first;
            float *to = dw.at + along(dw.c, in) + along(dw.k, out);
            if (job->conv.r == 3)
                take_gradient(from, dw.k.one, dw.place, 3, to);
            else
                take_gradient(from, dw.k.one, dw.place, 5, to);
        }
}

static void gradient_part(void *context, struct ghp_part part)
{
    const struct job *job = context;
    const struct conv *conv = &job->conv;
    struct ghp_range range = ghp_part_range(part, conv->out.channels, BLOCK);
    float *x = job->own + part.index * (int64_t)POINTS * (2 * PLANE + WEIGHT_PLANE),
          *dy = x + (int64_t)POINTS * PLANE, *sums = dy + (int64_t)POINTS * PLANE;
    for (struct ghp_range k = chunk_at(range.first, range.end); k.first < range.end;
         k = chunk_at(k.end, range.end))
        for (struct ghp_range c = chunk_at(0, conv->in.channels); c.first < conv->in.channels;
             c = chunk_at(c.end, conv->in.channels)) {
            memset(sums, 0, POINTS * (size_t)WEIGHT_PLANE * sizeof *sums);
            for (struct ghp_range tiles = tiles_at(0, conv->tiles); tiles.first < conv->tiles;
                 tiles = tiles_at(tiles.end, conv->tiles)) {
                input_tiles(conv, tiles, c, x);
                gradient_tiles(conv, tiles, k, dy);
                for (int point = 0; point < POINTS; point++)
                    add_outer_chunk((struct outer){x + point * (int64_t)PLANE,
                                                   dy + point * (int64_t)PLANE,
                                                   sums + point * (int64_t)WEIGHT_PLANE,
                                                   tiles.end - tiles.first},
                                    c.end - c.first, k.end - k.first);
            }
            take_gradients(job, sums, k, c);
        }
}

/* ---- kernels ---- */

static int64_t weights_numbers(const struct ghp_kernel *kernel)
{
    bool weight = kernel->pass == GHP_PASS_BACKWARD_WEIGHT;
    return weight ? 0 : POINTS * (kernel->local.c * kernel->local.k + BLOCK);
}

static void run(const struct ghp_kernel *kernel, const struct ghp_kernel_arguments *args)
{
    const struct winograd *mine = (const struct winograd *)kernel;
    struct job job = {mine, args, conv_of(mine, args), args->at.scratch, args->at.scratch};
    job.own += weights_numbers(kernel);
    if (kernel->pass == GHP_PASS_BACKWARD_WEIGHT) {
        ghp_parallel(kernel->parts, gradient_part, &job);
        return;
    }
    ghp_parallel(kernel->parts, weights_part, &job);
    ghp_parallel(kernel->parts, tiles_part, &job);
}

bool ghp_winograd_can(const struct ghp_backend *backend, const struct ghp_local *local)
{
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
    return !backend->config.exact && backend->config.element_bytes == sizeof(float) &&
           ghp_conv_has_tiles(local) && local->c % BLOCK == 0 && local->k % BLOCK == 0;
#else
    (void)backend;
    (void)local;
    return false;
#endif
}

enum ghp_status ghp_winograd_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                     enum ghp_pass pass, struct ghp_kernel_spec spec,
                                     struct ghp_kernel **kernel)
{
    struct winograd *made = ghp_alloc(1, sizeof *made);
    bool weight = pass == GHP_PASS_BACKWARD_WEIGHT;
    if (made == NULL) return GHP_NO_MEMORY();
    made->base = (struct ghp_kernel){.backend = backend,
                                     .local = *local,
                                     .pass = pass,
                                     .run = run,
                                     .parts = backend->config.threads,
                                     .algorithm = GHP_WINOGRAD};
    made->spec = spec;
    made->base.scratch_bytes =
        (int64_t)sizeof(float) *
        (weights_numbers(&made->base) +
         made->base.parts * (int64_t)POINTS * (2 * PLANE + (weight ? WEIGHT_PLANE : 0)));
    *kernel = &made->base;
    return GHP_OK;
}
