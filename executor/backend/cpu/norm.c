/* executor/backend/cpu/norm.c - batch norm in split passes, on its running statistics, and local response norm.
 *
 * A batch norm's statistics may belong to samples of many workers, so its sums are passes of their own (STATS,
 * BACKWARD_STATS): each worker adds up its rows in double, the program's instructions reduce the sums, and the later
 * passes read the reduced ones. Sums are about the running mean, which all workers share, so that a large mean does not
 * eat the digits of a small variance.
 *
 * A batch norm's tensors lie plain or in blocks, and a ReLU after it is fused or not. These are *ways*, all built from
 * one body. Loops over the 16 numbers of a block are unrolled, so that sums stay in registers.
 *
 * ghp-options: -O3 */
#include "executor/backend/cpu/kernels_cpu.h"
#include "core/model/precision.h"
#include "executor/platform/streaming_store.h"

#include <math.h>
#include <string.h>

static int64_t rows_of(const struct ghp_local *local)
{
    return local->n * local->h * local->w;
}

static void *part_scalars(const struct ghp_kernel_arguments *args, int part, int64_t width,
                          size_t size)
{
    return (char *)args->at.scratch + part * ghp_align(width * (int64_t)size);
}

static double *part_sums(const struct ghp_kernel_arguments *args, int part, int64_t c)
{
    return part_scalars(args, part, 2 * c, sizeof(double));
}

/* ---- ways ---- */

enum { LANES = GHP_BLOCK_CHANNELS };

struct norm_variant { /* constants where a body is built */
    bool nchw16c, relu;
};

struct rows_variant { /* how rows are written; constants there */
    bool relu, streaming_store, adds;
};

static struct rows_variant rows_variant_of(const struct ghp_local *local,
                                           struct norm_variant variant, const void *to, size_t size)
{
    int64_t bytes = ghp_local_in_elements(local) * (int64_t)size;
    return (struct rows_variant){.relu = variant.relu,
                                 .streaming_store =
                                     variant.nchw16c && ghp_streaming_store_pays(to, bytes)};
}

struct stretch {   /* rows of the same channels */
    int64_t first; /* number of the tensor */
    int64_t rows, stride, channel;
};

/* A part of a tensor: one stretch of whole rows if it lies plain; one a block and sample if it lies in blocks. */
struct walk {
    struct ghp_range rows; /* of the plain tensor; or blocks */
    int64_t n, c, pixels;
    bool nchw16c;
};

static struct walk walk_of(const struct ghp_local *local, struct ghp_part part,
                           struct norm_variant variant)
{
    int64_t rows = variant.nchw16c ? local->n * (local->c / LANES) : rows_of(local);
    struct walk walk = {.rows = ghp_part_range(part, rows, 1),
                        .n = 1,
                        .c = local->c,
                        .pixels = local->h * local->w,
                        .nchw16c = variant.nchw16c};
    if (variant.nchw16c) walk.n = walk.rows.end - walk.rows.first;
    return walk;
}

static struct stretch stretch_of(const struct walk *walk, int64_t i)
{
    int64_t first = walk->rows.first;
    if (!walk->nchw16c)
        return (struct stretch){first * walk->c, walk->rows.end - first, walk->c, 0};
    return (struct stretch){(first + i) * walk->pixels * LANES, walk->pixels, LANES,
                            (first + i) % (walk->c / LANES) * LANES};
}

/* So many channels of a plain tensor at once, at most: the more, the longer are the runs of memory that are read, and
 * their sums stay in the first cache. A block's are LANES. */
enum { COLUMN_CHANNELS = 32 * LANES };

/* A few channels in all samples: one stretch if the tensor lies plain, else one a sample. */
struct column {
    struct ghp_range channels;
    int64_t n, rows, stride, step; /* numbers from one stretch to the next */
    int64_t first;
};

static ALWAYS_INLINE struct column column_of(const struct ghp_local *local,
                                             struct norm_variant variant, int64_t first,
                                             int64_t end)
{
    int64_t pixels = local->h * local->w, most = variant.nchw16c ? LANES : COLUMN_CHANNELS;
    struct ghp_range channels = {first, first + most < end ? first + most : end};
    if (variant.nchw16c)
        return (struct column){channels, local->n, pixels, LANES, local->c * pixels, first * pixels};
    return (struct column){channels, 1, rows_of(local), local->c, 0, first};
}

static ALWAYS_INLINE struct stretch column_stretch(const struct column *column, int64_t s)
{
    return (struct stretch){column->first + s * column->step, column->rows, column->stride,
                            column->channels.first};
}

static void add_lanes(double lanes[2][LANES], double *restrict sum, double *restrict other)
{
#pragma omp simd
    for (int i = 0; i < LANES; i++) {
        sum[i] += lanes[0][i];
        other[i] += lanes[1][i];
    }
}

#define ONE_VARIANT(name, suffix, nchw16c, relu)                                                   \
    static void KERNEL(name##suffix)(const struct ghp_local *local,                                \
                                     const struct ghp_kernel_arguments *args,                      \
                                     struct ghp_part part)                                         \
    {                                                                                              \
        KERNEL(name)(local, args, part, (struct norm_variant){nchw16c, relu});                     \
    }
#define IN_BOTH_MEMORY_FORMATS(name)                                                               \
    ONE_VARIANT(name, _plain, false, false)                                                        \
    ONE_VARIANT(name, _nchw16c, true, false)
#define IN_EACH_VARIANT(name)                                                                      \
    IN_BOTH_MEMORY_FORMATS(name)                                                                   \
    ONE_VARIANT(name, _plain_relu, false, true)                                                    \
    ONE_VARIANT(name, _nchw16c_relu, true, true)

#define BODY "executor/backend/cpu/norm_body.h"
#include "executor/backend/cpu/precisions.h"

/* The sums of all parts, in part order. */
static void add_sums(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                     struct ghp_part part)
{
    for (int64_t i = 0; i < 2 * local->c; i++) {
        double sum = 0.0;
        for (int p = 0; p < part.count; p++)
            sum += part_sums(args, p, local->c)[i];
        args->at.stats[i] = sum;
    }
}

static int64_t sum_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)element_bytes;
    return parts * ghp_align(2 * local->c * (int64_t)sizeof(double));
}

static int64_t coefficients(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)parts;
    return ghp_align(3 * local->c * ghp_parameter_bytes(element_bytes));
}

static int64_t pixel_rows(const struct ghp_local *local, int parts, int element_bytes)
{
    return parts * ghp_align(3 * local->c * ghp_parameter_bytes(element_bytes));
}

/* ---- a batch norm on its running statistics: y = a x + b of each channel, and dx = a dy ---- */

/* Scratch: a of each channel, then b. */
static void frozen_coefficients(const struct ghp_local *local,
                                const struct ghp_kernel_arguments *args, bool shifts)
{
    const float *gamma = args->at.w[0], *beta = args->at.w[1], *mean = args->at.state[0],
                *variance = args->at.state[1];
    float *a = args->at.scratch, *b = a + local->c;
    for (int64_t i = 0; i < local->c; i++) {
        double scale = (double)gamma[i] / sqrt((double)variance[i] + local->norm.epsilon);
        a[i] = (float)scale;
        b[i] = shifts ? (float)((double)beta[i] - (double)mean[i] * scale) : 0;
    }
}

static void frozen_before_forward(const struct ghp_local *local,
                                  const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    (void)part;
    frozen_coefficients(local, args, true);
}

static void frozen_before_data(const struct ghp_local *local,
                               const struct ghp_kernel_arguments *args, struct ghp_part part)
{
    (void)part;
    frozen_coefficients(local, args, false);
}

static int64_t frozen_scratch_bytes(const struct ghp_local *local, int parts, int element_bytes)
{
    (void)parts;
    return ghp_align(2 * local->c * ghp_parameter_bytes(element_bytes));
}

/* ---- in blocks of channels, in float ---- */

static void affine_blocks(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                          struct ghp_part part, const float *from, float *to)
{
    int64_t pixels = local->h * local->w, blocks = local->c / LANES;
    struct ghp_range range = ghp_part_range(part, local->n * blocks, 1);
    const float *a = args->at.scratch, *b = a + local->c;
    for (int64_t block = range.first; block < range.end; block++) {
        int64_t first = block * pixels * LANES, channel = block % blocks * LANES;
        affine_rows_float(from + first, to + first, pixels, LANES, a + channel, b + channel);
    }
}

static void forward_blocks(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                           struct ghp_part part)
{
    affine_blocks(local, args, part, args->at.x[0], args->at.y);
}

static void data_blocks(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                        struct ghp_part part)
{
    affine_blocks(local, args, part, args->at.dy, args->at.dx[0]);
}

#define MAPS(before, run)                                                                          \
    {                                                                                              \
        {before##_float, run##_float, NULL},                                                       \
        {                                                                                          \
            before##_bf16, run##_bf16, NULL                                                        \
        }                                                                                          \
    }
#define NORM_PASSES(format, variant)                                                               \
    {GHP_OP_BATCH_NORM, GHP_PASS_STATS, "loop", GHP_CPU_KERNEL_EACH(stats##format, add_sums),      \
     sum_rows},                                                                                    \
        {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, "loop", MAPS(norm_before, norm_forward##variant),    \
         coefficients},                                                                            \
        {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_STATS, "loop",                                       \
         GHP_CPU_KERNEL_EACH(back_stats##variant, add_sums), sum_rows},                            \
        {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_WEIGHT, "loop",                                      \
         GHP_CPU_KERNEL_EACH(norm_weight, NULL), NULL},                                            \
    {                                                                                              \
        GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, "loop",                                         \
            MAPS(norm_data_before, norm_data##variant), coefficients                               \
    }

const struct ghp_cpu_kernel ghp_cpu_kernels_norm[] = {
    NORM_PASSES(_plain, _plain),
    {GHP_OP_LRN, GHP_PASS_FORWARD, "loop", GHP_CPU_KERNEL_EACH(lrn_forward, NULL), pixel_rows},
    {GHP_OP_LRN, GHP_PASS_BACKWARD_DATA, "loop", GHP_CPU_KERNEL_EACH(lrn_data, NULL), pixel_rows},
    {GHP_OP_FROZEN_BATCH_NORM,
     GHP_PASS_FORWARD,
     "loop",
     {{frozen_before_forward, frozen_forward_float, NULL},
      {frozen_before_forward, frozen_forward_bf16, NULL}},
     frozen_scratch_bytes},
    {GHP_OP_FROZEN_BATCH_NORM,
     GHP_PASS_BACKWARD_DATA,
     "loop",
     {{frozen_before_data, frozen_data_float, NULL}, {frozen_before_data, frozen_data_bf16, NULL}},
     frozen_scratch_bytes},
    {.name = NULL},
};

const struct ghp_cpu_kernel ghp_cpu_kernels_frozen_blocks[] = {
    {.op = GHP_OP_FROZEN_BATCH_NORM,
     .pass = GHP_PASS_FORWARD,
     .name = "loop",
     .stages = {[GHP_PRECISION_FLOAT] = {frozen_before_forward, forward_blocks, NULL}},
     .scratch_bytes = frozen_scratch_bytes},
    {.op = GHP_OP_FROZEN_BATCH_NORM,
     .pass = GHP_PASS_BACKWARD_DATA,
     .name = "loop",
     .stages = {[GHP_PRECISION_FLOAT] = {frozen_before_data, data_blocks, NULL}},
     .scratch_bytes = frozen_scratch_bytes},
    {.name = NULL},
};

#define LOCAL_STATS_PASSES(variant)                                                                \
    {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, "loop",                                                  \
     GHP_CPU_KERNEL_EACH(local_stats_forward##variant, NULL), NULL},                               \
    {                                                                                              \
        GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, "loop",                                         \
            GHP_CPU_KERNEL_EACH(local_stats_data##variant, NULL), NULL                             \
    }

static const struct ghp_cpu_kernel
    plain_relu[] = {NORM_PASSES(_plain, _plain_relu), {.name = NULL}},
    nchw16c[] = {NORM_PASSES(_nchw16c, _nchw16c), {.name = NULL}},
    nchw16c_relu[] = {NORM_PASSES(_nchw16c, _nchw16c_relu), {.name = NULL}},
    local_stats_plain[] = {LOCAL_STATS_PASSES(_plain), {.name = NULL}},
    local_stats_plain_relu[] = {LOCAL_STATS_PASSES(_plain_relu), {.name = NULL}},
    local_stats_nchw16c[] = {LOCAL_STATS_PASSES(_nchw16c), {.name = NULL}},
    local_stats_nchw16c_relu[] = {LOCAL_STATS_PASSES(_nchw16c_relu), {.name = NULL}};

const struct ghp_cpu_kernel *ghp_cpu_kernel_norm(enum ghp_pass pass, struct ghp_kernel_spec spec)
{
    static const struct ghp_cpu_kernel *const tables[2][2][2] = {
        {{ghp_cpu_kernels_norm, plain_relu}, {nchw16c, nchw16c_relu}},
        {{local_stats_plain, local_stats_plain_relu},
         {local_stats_nchw16c, local_stats_nchw16c_relu}}}; /* [stats][x][relu] */
    const struct ghp_cpu_kernel *cpu_kernel = tables[spec.stats][spec.x][spec.relu];
    if (spec.add && !spec.stats) return NULL;
    while (cpu_kernel->name != NULL && cpu_kernel->pass != pass)
        cpu_kernel++;
    return cpu_kernel->name != NULL ? cpu_kernel : NULL;
}
