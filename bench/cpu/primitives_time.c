/* bench/cpu/primitives_time.c - see primitives.h. */
#include "bench/cpu/primitives.h"
#include "executor/backend/backend.h"
#include "executor/backend/onednn/onednn.h"
#include "executor/backend/operands.h"
#include "executor/platform/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARGUMENTS = 4, MOST_IMPLEMENTATIONS = 6 };

/* ---- clocks and samples ---- */

static double now_s(struct ghp_primitive_timing timing)
{
    struct timespec t;
    clock_gettime(timing.cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / (timing.cpu ? timing.threads : 1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct samples {
    int n;
    double values[GHP_PRIMITIVE_REPEATS];
};

static double quantile(struct samples *s, double q)
{
    qsort(s->values, (size_t)s->n, sizeof s->values[0], by_size);
    double at = q * (s->n - 1);
    int low = (int)at;
    double above = low + 1 < s->n ? s->values[low + 1] : s->values[low];
    return s->values[low] + (at - low) * (above - s->values[low]);
}

/* ---- one primitive ---- */

struct block { /* memory for one argument of every way, filled once */
    void *at;
    size_t bytes;
};

struct trial {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attributes;
    const struct ghp_local *local;
    enum ghp_pass pass;
    struct ghp_primitive_timing timing;
    struct ghp_primitive *best;
    struct block *blocks; /* [ARGUMENTS] */
};

struct argument {
    int number; /* DNNL_ARG_... */
    dnnl_query_t query;
};

static const struct argument arguments[GHP_PASS_COUNT][ARGUMENTS] = {
    [GHP_PASS_FORWARD] = {{DNNL_ARG_SRC, dnnl_query_src_md},
                          {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                          {DNNL_ARG_DST, dnnl_query_dst_md},
                          {DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md}},
    [GHP_PASS_BACKWARD_DATA] = {{DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md},
                                {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                                {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                                {DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md}},
    [GHP_PASS_BACKWARD_WEIGHT] = {{DNNL_ARG_SRC, dnnl_query_src_md},
                                  {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md},
                                  {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                                  {DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md}},
};

/* Small numbers that repeat: zeros would be quicker on some processors, and sums must stay finite. */
static void fill(float *at, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        at[i] = (float)((i * 37) % 64) / 64.0f - 0.5f;
}

struct bound { /* a primitive with its tensors */
    dnnl_primitive_t primitive;
    int n;
    dnnl_exec_arg_t args[ARGUMENTS];
};

/* Layouts of one tensor differ by little but padding: the room is made for the largest so far. */
static enum ghp_status reserve(struct block *block, size_t bytes)
{
    if (bytes <= block->bytes) return GHP_OK;
    free(block->at);
    *block = (struct block){.at = ghp_operand_set_block((int64_t)bytes), .bytes = bytes};
    if (block->at == NULL) {
        block->bytes = 0;
        return GHP_NO_MEMORY();
    }
    fill(block->at, bytes);
    return GHP_OK;
}

static enum ghp_status add_tensor(const struct trial *t, int i,
                                  const_dnnl_primitive_desc_t described, struct bound *b)
{
    const struct argument argument = arguments[t->pass][i];
    ghp_onednn_layout_view layout = dnnl_primitive_desc_query_md(described, argument.query, 0);
    size_t bytes = layout == NULL ? 0 : dnnl_memory_desc_get_size(layout);
    if (bytes == 0) return GHP_OK;
    GHP_TRY(reserve(&t->blocks[i], bytes));
    b->args[b->n].arg = argument.number;
    GHP_TRY(
        GHP_ONEDNN(dnnl_memory_create(&b->args[b->n].memory, layout, t->engine, t->blocks[i].at)));
    b->n++;
    return GHP_OK;
}

static void unbind(struct bound *b)
{
    for (int i = 0; i < b->n; i++)
        dnnl_memory_destroy(b->args[i].memory);
    if (b->primitive != NULL) dnnl_primitive_destroy(b->primitive);
}

static enum ghp_status execute(const struct trial *t, const struct bound *b)
{
    GHP_TRY(GHP_ONEDNN(dnnl_primitive_execute(b->primitive, t->stream, b->n, b->args)));
    return GHP_ONEDNN(dnnl_stream_wait(t->stream));
}

/* A way that is clearly slower than the best's median is not looked at any longer: by a third, or to warm up thrice
 * as long. */
static enum ghp_status time_bound(const struct trial *t, const struct bound *b,
                                  struct samples *samples)
{
    for (int i = 0; i <= t->timing.repeats; i++) {
        double begin = now_s(t->timing), seconds;
        GHP_TRY(execute(t, b));
        seconds = now_s(t->timing) - begin;
        double limit = (i == 0 ? 3 : 4.0 / 3) * t->best->seconds;
        bool hopeless = t->best->variants > 0 && seconds > limit;
        if (i > 0 || hopeless) samples->values[samples->n++] = seconds; /* the first warms up */
        if (hopeless) break;
    }
    return GHP_OK;
}

/* Times a described primitive, and releases the description. */
static enum ghp_status consider(const struct trial *t, const char *kind,
                                dnnl_primitive_desc_t described)
{
    struct bound b = {0};
    struct samples samples = {0};
    enum ghp_status status = GHP_OK;
    const char *name = ghp_onednn_implementation(described);
    if (strncmp(name, "ref", 3) == 0) goto done;
    GHP_TRY_GOTO(status, GHP_ONEDNN(dnnl_primitive_create(&b.primitive, described)), done);
    for (int i = 0; i < ARGUMENTS; i++)
        GHP_TRY_GOTO(status, add_tensor(t, i, described, &b), done);
    GHP_TRY_GOTO(status, time_bound(t, &b, &samples), done);
    double median = quantile(&samples, 0.5);
    if (t->best->variants == 0 || median < t->best->seconds) {
        t->best->seconds = median;
        t->best->spread = (quantile(&samples, 0.75) - quantile(&samples, 0.25)) / median;
        snprintf(t->best->name, sizeof t->best->name, "%s %s", kind, name);
    }
    t->best->variants++;
done:
    unbind(&b);
    dnnl_primitive_desc_destroy(described);
    return status;
}

/* ---- all ways ---- */

static const struct {
    const char *name;
    dnnl_alg_kind_t algorithm;
    dnnl_format_tag_t activation;
} conv_kinds[] = {{"winograd", dnnl_convolution_winograd, dnnl_format_tag_any},
                  {"any", dnnl_convolution_direct, dnnl_format_tag_any},
                  {"nhwc", dnnl_convolution_direct, dnnl_nhwc},
                  {"nchw", dnnl_convolution_direct, dnnl_nchw}};

static enum ghp_status conv_variants(const struct trial *t)
{
    for (size_t k = 0; k < sizeof conv_kinds / sizeof conv_kinds[0]; k++)
        for (int i = 0; i < MOST_IMPLEMENTATIONS; i++) {
            struct ghp_onednn_variant variant = {.algorithm = conv_kinds[k].algorithm,
                                                 .activation = conv_kinds[k].activation,
                                                 .implementation = i};
            dnnl_primitive_desc_t described = NULL;
            GHP_TRY(ghp_onednn_conv_describe(t->engine, t->local, t->pass, variant, t->attributes,
                                             &described));
            if (described == NULL) break;
            GHP_TRY(consider(t, conv_kinds[k].name, described));
        }
    return GHP_OK;
}

static enum ghp_status inner_variants(const struct trial *t, const char *kind,
                                      dnnl_format_tag_t tag)
{
    const struct ghp_local *l = t->local;
    const int64_t rows = l->n * l->h; /* of a sequence, one a position */
    const dnnl_dims_t x = {rows, l->c}, w = {l->k, l->c}, y = {rows, l->k};
    struct ghp_onednn_matrices m = {0};
    enum ghp_status status = ghp_onednn_layout_open(2, x, tag, dnnl_f32, &m.x);
    if (status == GHP_OK) status = ghp_onednn_layout_open(2, w, tag, dnnl_f32, &m.w);
    if (status == GHP_OK) status = ghp_onednn_layout_open(2, y, tag, dnnl_f32, &m.y);
    for (int i = 0; i < MOST_IMPLEMENTATIONS && status == GHP_OK; i++) {
        dnnl_primitive_desc_t described = NULL;
        status = ghp_onednn_inner_describe(t->engine, &m, t->pass, i, t->attributes, &described);
        if (status != GHP_OK || described == NULL) break;
        status = consider(t, kind, described);
    }
    ghp_onednn_layout_close(m.x);
    ghp_onednn_layout_close(m.w);
    ghp_onednn_layout_close(m.y);
    return status;
}

/* The pass as a product of plain matrices: forward x w^T, data dy w, weight dy^T x. A product's arguments have the
 * names of a forward pass. */
static enum ghp_status matmul_variants(struct trial t)
{
    const struct ghp_local *l = t.local;
    const bool forward = t.pass == GHP_PASS_FORWARD, data = t.pass == GHP_PASS_BACKWARD_DATA;
    const int64_t all = l->n * l->h; /* of a sequence, one a position */
    const int64_t rows = forward || data ? all : l->k, columns = forward ? l->k : l->c;
    const int64_t depth = forward ? l->c : data ? l->k : all;
    const dnnl_dims_t x = {rows, depth}, w = {depth, columns}, y = {rows, columns};
    struct ghp_onednn_matrices m = {0};
    enum ghp_status status =
        ghp_onednn_layout_open(2, x, forward || data ? dnnl_ab : dnnl_ba, dnnl_f32, &m.x);
    if (status == GHP_OK)
        status = ghp_onednn_layout_open(2, w, forward ? dnnl_ba : dnnl_ab, dnnl_f32, &m.w);
    if (status == GHP_OK) status = ghp_onednn_layout_open(2, y, dnnl_ab, dnnl_f32, &m.y);
    t.pass = GHP_PASS_FORWARD;
    for (int i = 0; i < MOST_IMPLEMENTATIONS && status == GHP_OK; i++) {
        dnnl_primitive_desc_t described = NULL;
        status = ghp_onednn_matmul_describe(t.engine, &m, i, t.attributes, &described);
        if (status != GHP_OK || described == NULL) break;
        status = consider(&t, "matmul", described);
    }
    ghp_onednn_layout_close(m.x);
    ghp_onednn_layout_close(m.w);
    ghp_onednn_layout_close(m.y);
    return status;
}

static enum ghp_status all_variants(const struct trial *t)
{
    if (t->local->op == GHP_OP_CONV2D) return conv_variants(t);
    GHP_TRY(matmul_variants(*t));
    GHP_TRY(inner_variants(t, "inner plain", dnnl_ab));
    return inner_variants(t, "inner any", dnnl_format_tag_any);
}

enum ghp_status ghp_primitive_best(const struct ghp_local *local, enum ghp_pass pass,
                                   struct ghp_primitive_timing timing, struct ghp_primitive *best)
{
    struct block blocks[ARGUMENTS] = {{0}};
    struct trial t = {
        .local = local, .pass = pass, .timing = timing, .best = best, .blocks = blocks};
    enum ghp_status status = GHP_OK;
    *best = (struct ghp_primitive){0};
    ghp_parallel_threads(timing.threads);
    GHP_TRY(ghp_onednn_engine_open(&t.engine));
    GHP_TRY_GOTO(status,
                 GHP_ONEDNN(dnnl_stream_create(&t.stream, t.engine, dnnl_stream_default_flags)),
                 done);
    GHP_TRY_GOTO(status, ghp_onednn_attributes(&t.attributes), done);
    GHP_TRY_GOTO(status, all_variants(&t), done);
    if (best->variants == 0)
        status = GHP_FAIL(GHP_ERR_BACKEND, "oneDNN has no primitive for '%s' of a '%s'",
                          ghp_pass_name(pass), ghp_op_name(local->op));
done:
    if (t.attributes != NULL) dnnl_primitive_attr_destroy(t.attributes);
    if (t.stream != NULL) dnnl_stream_destroy(t.stream);
    dnnl_engine_destroy(t.engine);
    for (int i = 0; i < ARGUMENTS; i++)
        free(blocks[i].at);
    return status;
}

/* ---- update and peak ---- */

enum ghp_status ghp_primitive_update(int64_t weights, struct ghp_primitive_timing timing,
                                     double *seconds)
{
    const struct ghp_backend_config config = {.element_bytes = 4, .threads = timing.threads};
    const int64_t bytes = weights * (int64_t)sizeof(float);
    struct ghp_backend *backend = NULL;
    struct samples samples = {0};
    float *w = ghp_operand_set_block(bytes), *v = ghp_operand_set_block(bytes),
          *dw = ghp_operand_set_block(bytes);
    enum ghp_status status = w == NULL || v == NULL || dw == NULL
                                 ? GHP_NO_MEMORY()
                                 : ghp_backend_onednn.open(&config, &backend);
    if (status == GHP_OK) {
        fill(w, (size_t)bytes);
        memset(v, 0, (size_t)bytes);
        memset(dw, 0, (size_t)bytes);
        for (int i = 0; i <= timing.repeats && status == GHP_OK; i++) {
            struct ghp_update update = {.optimizer = &ghp_optimizer_sgd,
                                        .w = w,
                                        .moment = {v},
                                        .dw = dw,
                                        .elements = weights,
                                        .given = ghp_optimizer_usual(&ghp_optimizer_sgd)};
            double begin = now_s(timing);
            status = ghp_backend_onednn.update(backend, &update);
            if (i > 0) samples.values[samples.n++] = now_s(timing) - begin;
        }
        *seconds = quantile(&samples, 0.5);
        ghp_backend_onednn.close(backend);
    }
    free(w);
    free(v);
    free(dw);
    return status;
}

#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 }; /* of wider ones, the compiler keeps the sums in memory */
#endif
enum { CHAINS = 12, ROUNDS = 1 << 20 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* Independent chains of multiply-adds, enough to hide their latency, in registers; this file alone is compiled with
 * products and sums contracted. */
static void multiply_add(void *context, struct ghp_part part)
{
    lanes sum[CHAINS];
    float *sink = context;
    for (int c = 0; c < CHAINS; c++) /* of different numbers, or they were one chain */
        sum[c] = (lanes){0} + sink[part.index] + (float)c;
    for (int round = 0; round < ROUNDS; round++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = sum[c] * 0.999f + 0.5f;
    for (int c = 0; c < CHAINS; c++)
        for (int i = 0; i < LANES; i++)
            sink[part.index] += sum[c][i];
}

double ghp_primitive_peak(struct ghp_primitive_timing timing)
{
    struct samples samples = {0};
    float *sink = calloc((size_t)timing.threads, sizeof *sink);
    for (int i = 0; sink != NULL && i < timing.repeats; i++) {
        double begin = now_s(timing);
        ghp_parallel(timing.threads, multiply_add, sink);
        samples.values[samples.n++] = now_s(timing) - begin;
    }
    free(sink);
    return samples.n == 0 ? 0
                          : 2.0 * CHAINS * LANES * ROUNDS * timing.threads / quantile(&samples, 0);
}

const char *ghp_primitive_library(void)
{
    static char text[32];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    return text;
}
