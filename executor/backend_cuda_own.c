/* executor/backend_cuda_own.c - the passes that ghp's own kernels run: everything but convolutions and linear layers.
 *
 * A row of the table says which kernel runs a pass and how much scratch it takes; what has to be made once lies in the
 * kernel's `data`. */
#include "executor/backend_cuda_private.h"

#include "core/gather.h"

#include <stdlib.h>
#include <string.h>

typedef enum ghp_status run_fn(struct ghp_cuda_kernel *kernel, const struct ghp_call *call);

static int64_t rows_of(const struct ghp_local *l)
{
    return l->n * l->h * l->w;
}

static cudaStream_t stream_of(const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_launch(kernel->base.backend).stream;
}

static enum ghp_status launched(cudaError_t error, const struct ghp_cuda_kernel *kernel)
{
    return ghp_cuda_status(error, ghp_op_name(kernel->base.local.op));
}

static enum ghp_status copy(const struct ghp_cuda_kernel *kernel, const void *from, void *to,
                            int64_t elements)
{
    struct ghp_backend *backend = kernel->base.backend;
    struct ghp_copy how = {to, from, elements * backend->config.element_bytes, GHP_WAY_WITHIN};

    return ghp_cuda_device.copy(backend, GHP_QUEUE_COMPUTE, &how);
}

/* ---- element by element ---- */

static enum ghp_status point(const struct ghp_cuda_kernel *kernel, const struct ghp_point_job *job)
{
    return launched(ghp_launch_point(ghp_cuda_launch(kernel->base.backend), job), kernel);
}

static enum ghp_status run_bias(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;

    return launched(ghp_launch_bias(ghp_cuda_launch(kernel->base.backend), rows_of(l), l->c,
                                    call->at.x[0], call->at.w[0], call->at.y),
                    kernel);
}

static enum ghp_status run_sum(const struct ghp_cuda_kernel *kernel, struct ghp_sum_job job,
                               const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;

    job.rows = rows_of(l);
    job.c = l->c;
    job.scratch = call->at.scratch;
    return launched(ghp_launch_sum(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_bias_weight(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return run_sum(
        kernel,
        (struct ghp_sum_job){.what = GHP_SUM_BIAS, .dy = call->at.dy, .out = call->at.dw[0]}, call);
}

static enum ghp_status run_relu(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return point(kernel, &(struct ghp_point_job){.what = GHP_POINT_RELU,
                                                 .n = ghp_local_in_elements(&kernel->base.local),
                                                 .a = call->at.x[0],
                                                 .out = call->at.y});
}

static enum ghp_status run_relu_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return point(kernel, &(struct ghp_point_job){.what = GHP_POINT_RELU_BACK,
                                                 .n = ghp_local_in_elements(&kernel->base.local),
                                                 .a = call->at.y,
                                                 .b = call->at.dy,
                                                 .out = call->at.dx[0]});
}

/* Forward; the way back is the next of enum ghp_point. */
static enum ghp_point function_point(enum ghp_function function)
{
    static const enum ghp_point points[GHP_FUNCTION_COUNT] = {
        [GHP_FUNCTION_LEAKY_RELU] = GHP_POINT_LEAKY, [GHP_FUNCTION_SIGMOID] = GHP_POINT_SIGMOID,
        [GHP_FUNCTION_TANH] = GHP_POINT_TANH,        [GHP_FUNCTION_CLIP] = GHP_POINT_CLIP,
        [GHP_FUNCTION_AFFINE] = GHP_POINT_AFFINE,
    };

    return points[function];
}

static struct ghp_point_job function_job(const struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;

    return (struct ghp_point_job){.what = function_point(l->activation.function),
                                  .n = ghp_local_in_elements(l),
                                  .alpha = (float)l->activation.alpha,
                                  .beta = (float)l->activation.beta};
}

static enum ghp_status run_activation(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_point_job job = function_job(kernel);

    job.a = call->at.x[0];
    job.out = call->at.y;
    return point(kernel, &job);
}

static enum ghp_status run_activation_data(struct ghp_cuda_kernel *kernel,
                                           const struct ghp_call *call)
{
    struct ghp_point_job job = function_job(kernel);

    job.what = (enum ghp_point)(job.what + 1);
    job.a = call->at.y;
    job.b = call->at.dy;
    job.out = call->at.dx[0];
    return point(kernel, &job);
}

static enum ghp_status drop(const struct ghp_cuda_kernel *kernel, const struct ghp_call *call,
                            const void *from, void *to)
{
    const struct ghp_local *l = &kernel->base.local;
    struct ghp_dropout_job job = {.n = l->n,
                                  .pixels = l->h * l->w,
                                  .c = l->c,
                                  .global_channels = call->global_channels,
                                  .first_channel = call->first_channel,
                                  .first_sample = call->first_sample,
                                  .seed = call->seed,
                                  .step = call->step,
                                  .layer = (uint32_t)call->layer,
                                  .threshold = (uint32_t)(l->norm.ratio * 0x1p32),
                                  .scale = (float)(1.0 / (1.0 - l->norm.ratio)),
                                  .step_at = call->numbers != NULL ? &call->numbers->step : NULL,
                                  .x = from,
                                  .y = to};

    return launched(ghp_launch_dropout(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_dropout(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    if (call->training) return drop(kernel, call, call->at.x[0], call->at.y);
    return copy(kernel, call->at.x[0], call->at.y, ghp_local_in_elements(&kernel->base.local));
}

static enum ghp_status run_dropout_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return drop(kernel, call, call->at.dy, call->at.dx[0]);
}

static enum ghp_status run_add(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;
    const void *so_far = call->at.x[0];

    for (int i = 1; i < l->n_inputs; i++) {
        GHP_TRY(point(kernel, &(struct ghp_point_job){.what = GHP_POINT_ADD,
                                                      .n = ghp_local_in_elements(l),
                                                      .a = so_far,
                                                      .b = call->at.x[i],
                                                      .out = call->at.y}));
        so_far = call->at.y;
    }
    return GHP_OK;
}

static enum ghp_status run_add_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;

    for (int i = 0; i < l->n_inputs; i++)
        if (call->at.dx[i] != NULL)
            GHP_TRY(copy(kernel, call->at.dy, call->at.dx[i], ghp_local_in_elements(l)));
    return GHP_OK;
}

static enum ghp_status multiply(const struct ghp_cuda_kernel *kernel, const void *a, const void *b,
                                void *out)
{
    return point(kernel, &(struct ghp_point_job){.what = GHP_POINT_MUL,
                                                 .n = ghp_local_in_elements(&kernel->base.local),
                                                 .a = a,
                                                 .b = b,
                                                 .out = out});
}

static enum ghp_status run_mul(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return multiply(kernel, call->at.x[0], call->at.x[1], call->at.y);
}

static enum ghp_status run_mul_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    for (int i = 0; i < 2; i++)
        if (call->at.dx[i] != NULL)
            GHP_TRY(multiply(kernel, call->at.dy, call->at.x[1 - i], call->at.dx[i]));
    return GHP_OK;
}

/* ---- pools ---- */

static struct ghp_pool_job pool_job(const struct ghp_local *l, const struct ghp_call *call)
{
    const struct ghp_window *w = &l->window;
    struct ghp_pool_job job = {.n = l->n,
                               .c = l->c,
                               .h = l->h,
                               .w = l->w,
                               .p = l->p,
                               .q = l->q,
                               .r = w->r,
                               .s = w->s,
                               .stride_h = w->stride_h,
                               .stride_w = w->stride_w,
                               .pad_top = w->pad_top,
                               .pad_left = w->pad_left,
                               .dilation_h = w->dilation_h,
                               .dilation_w = w->dilation_w,
                               .count_pad = w->count_pad,
                               .x = call->at.x[0],
                               .dy = call->at.dy,
                               .y = call->at.y,
                               .dx = call->at.dx[0],
                               .places = call->at.saved};

    if (l->op != GHP_OP_GLOBAL_AVG_POOL) return job;
    job.r = l->h; /* one window over the image */
    job.s = l->w;
    job.stride_h = job.stride_w = job.dilation_h = job.dilation_w = 1;
    job.pad_top = job.pad_left = 0;
    job.count_pad = false;
    return job;
}

typedef cudaError_t pool_fn(struct ghp_launch launch, const struct ghp_pool_job *job);

static enum ghp_status pool(const struct ghp_cuda_kernel *kernel, const struct ghp_call *call,
                            pool_fn *run)
{
    struct ghp_pool_job job = pool_job(&kernel->base.local, call);

    return launched(run(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_max(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return pool(kernel, call, ghp_launch_max_pool);
}

static enum ghp_status run_max_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return pool(kernel, call, ghp_launch_max_pool_back);
}

static enum ghp_status run_avg(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return pool(kernel, call, ghp_launch_avg_pool);
}

static enum ghp_status run_avg_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return pool(kernel, call, ghp_launch_avg_pool_back);
}

/* ---- normalisations ---- */

static enum ghp_status run_stats(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return run_sum(kernel,
                   (struct ghp_sum_job){.what = GHP_SUM_STATS,
                                        .x = call->at.x[0],
                                        .shift = call->at.state[0],
                                        .out = call->at.stats},
                   call);
}

static enum ghp_status run_back_stats(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const float *saved = call->at.saved;

    return run_sum(kernel,
                   (struct ghp_sum_job){.what = GHP_SUM_BACK_STATS,
                                        .x = call->at.x[0],
                                        .dy = call->at.dy,
                                        .mean = saved,
                                        .inverse = saved + kernel->base.local.c,
                                        .out = call->at.stats},
                   call);
}

static struct ghp_batch_norm_job norm_job(const struct ghp_local *l, const struct ghp_call *call)
{
    return (struct ghp_batch_norm_job){.rows = rows_of(l),
                                       .c = l->c,
                                       .x = call->at.x[0],
                                       .dy = call->at.dy,
                                       .y = call->at.y,
                                       .dx = call->at.dx[0],
                                       .gamma = call->at.w[0],
                                       .beta = call->at.w[1],
                                       .running_mean = call->at.state[0],
                                       .running_variance = call->at.state[1],
                                       .stats = call->training ? call->at.stats : NULL,
                                       .saved = call->at.saved,
                                       .count = (double)call->stat_count,
                                       .mix = l->norm.momentum,
                                       .epsilon = l->norm.epsilon,
                                       .scratch = call->at.scratch};
}

static enum ghp_status run_norm(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_batch_norm_job job = norm_job(&kernel->base.local, call);

    return launched(ghp_launch_norm_forward(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_norm_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_batch_norm_job job = norm_job(&kernel->base.local, call);

    return launched(ghp_launch_norm_data(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_norm_weight(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return launched(ghp_launch_norm_weight(stream_of(kernel), kernel->base.local.c, call->at.stats,
                                           call->at.dw[0], call->at.dw[1]),
                    kernel);
}

static struct ghp_lrn_job lrn_job(const struct ghp_local *l, const struct ghp_call *call)
{
    return (struct ghp_lrn_job){.rows = rows_of(l),
                                .c = l->c,
                                .size = l->norm.size,
                                .alpha = (float)(l->norm.alpha / (double)l->norm.size),
                                .beta = (float)l->norm.beta,
                                .k = (float)l->norm.k,
                                .x = call->at.x[0],
                                .dy = call->at.dy,
                                .y = call->at.y,
                                .dx = call->at.dx[0],
                                .scale = call->at.saved};
}

static enum ghp_status run_lrn(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_lrn_job job = lrn_job(&kernel->base.local, call);

    return launched(ghp_launch_lrn(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_lrn_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_lrn_job job = lrn_job(&kernel->base.local, call);

    return launched(ghp_launch_lrn_back(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

/* ---- copies in another order ---- */

/* Each input's channels to or from their place in the rows of the whole. */
static enum ghp_status blocks_of_inputs(const struct ghp_cuda_kernel *kernel,
                                        const struct ghp_call *call, bool forward)
{
    const struct ghp_local *l = &kernel->base.local;
    int64_t size = kernel->base.backend->config.element_bytes, whole = l->c * size, at = 0;

    for (int i = 0; i < l->n_inputs; i++) {
        int64_t mine = l->slice[i] * size;
        struct ghp_blocks blocks = {.rows = rows_of(l), .bytes = mine};

        if (forward) {
            blocks.from = call->at.x[i];
            blocks.from_stride = mine;
            blocks.to = (char *)call->at.y + at;
            blocks.to_stride = whole;
        } else {
            blocks.from = (const char *)call->at.dy + at;
            blocks.from_stride = whole;
            blocks.to = call->at.dx[i];
            blocks.to_stride = mine;
        }
        at += mine;
        if (blocks.to == NULL) continue;
        GHP_TRY(launched(ghp_launch_blocks(stream_of(kernel), &blocks), kernel));
    }
    return GHP_OK;
}

static enum ghp_status run_concat(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return blocks_of_inputs(kernel, call, true);
}

static enum ghp_status run_concat_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return blocks_of_inputs(kernel, call, false);
}

/* [n][a][b] -> [n][b][a] */
static enum ghp_status transpose(const struct ghp_cuda_kernel *kernel, int64_t a, int64_t b,
                                 const void *from, void *to)
{
    const struct ghp_local *l = &kernel->base.local;

    if (a == 1 || b == 1) return copy(kernel, from, to, l->n * a * b);
    return launched(ghp_launch_transpose(stream_of(kernel),
                                         kernel->base.backend->config.element_bytes, l->n, a, b,
                                         from, to),
                    kernel);
}

static enum ghp_status run_flatten(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;

    return transpose(kernel, l->h * l->w, l->c, call->at.x[0], call->at.y);
}

static enum ghp_status run_flatten_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;

    return transpose(kernel, l->c, l->h * l->w, call->at.dy, call->at.dx[0]);
}

/* ---- tables: view and pad ---- */

struct tables {             /* in device memory, one block */
    int32_t *table;         /* forward: [out] */
    int32_t *starts, *list; /* backward: [in + 1], [out] at most */
};

static int64_t sample_in(const struct ghp_local *l)
{
    return l->c * l->h * l->w;
}

static int64_t sample_out(const struct ghp_local *l)
{
    return l->k * l->p * l->q;
}

/* Which outputs take each input, in ascending order: starts [in + 1], list [out]. */
static void invert(const int32_t *table, int64_t in, int64_t out, int32_t *starts, int32_t *list)
{
    memset(starts, 0, (size_t)(in + 1) * sizeof(*starts));
    for (int64_t i = 0; i < out; i++)
        if (table[i] != GHP_GATHER_NOTHING) starts[table[i] + 1]++;
    for (int64_t i = 0; i < in; i++)
        starts[i + 1] += starts[i];
    for (int64_t i = out - 1; i >= 0; i--) /* from the end: starts become ends, and starts again */
        if (table[i] != GHP_GATHER_NOTHING) list[--starts[table[i] + 1]] = (int32_t)i;
    memmove(starts, starts + 1, (size_t)in * sizeof(*starts));
    starts[in] = 0;
    for (int64_t i = 0; i < out; i++)
        if (table[i] != GHP_GATHER_NOTHING) starts[in]++;
}

static void release_tables(struct ghp_cuda_kernel *kernel)
{
    struct tables *t = kernel->data;

    if (t == NULL) return;
    ghp_cuda_device.release(kernel->base.backend, t->table);
    free(t);
}

/* Host memory first: forward [out], backward [in + 1] and [out]. */
static enum ghp_status make_tables(struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;
    bool forward = kernel->base.pass == GHP_PASS_FORWARD;
    int64_t in = sample_in(l), out = sample_out(l), n = forward ? out : in + 1 + out;
    int32_t *host = ghp_alloc((size_t)(n + out), sizeof(*host));
    struct tables *t = ghp_alloc(1, sizeof(*t));
    struct ghp_device device = {&ghp_cuda_device, kernel->base.backend};
    void *memory = NULL;
    enum ghp_status status = host != NULL && t != NULL ? GHP_OK : GHP_NO_MEMORY();

    kernel->data = t;
    kernel->release = release_tables;
    if (status == GHP_OK) {
        ghp_gather_table(l, host + (forward ? 0 : n));
        if (!forward) invert(host + n, in, out, host, host + in + 1);
        status = ghp_device_allocate(device, n * (int64_t)sizeof(*host), &memory);
    }
    if (status == GHP_OK) {
        t->table = t->starts = memory;
        t->list = forward ? NULL : t->starts + in + 1;
        status = ghp_device_write(device, memory, host, n * (int64_t)sizeof(*host));
    }
    free(host);
    return status;
}

static enum ghp_status run_take(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct tables *t = kernel->data;
    float nothing = l->op == GHP_OP_PAD ? (float)l->border.value : 0;

    return launched(ghp_launch_take(ghp_cuda_launch(kernel->base.backend), l->n, sample_in(l),
                                    sample_out(l), t->table, nothing, call->at.x[0], call->at.y),
                    kernel);
}

static enum ghp_status run_give_back(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct tables *t = kernel->data;

    return launched(ghp_launch_give_back(ghp_cuda_launch(kernel->base.backend), l->n, sample_in(l),
                                         sample_out(l), t->starts, t->list, call->at.dy,
                                         call->at.dx[0]),
                    kernel);
}

/* ---- the loss ---- */

static struct ghp_softmax_job softmax_job(const struct ghp_local *l, const struct ghp_call *call)
{
    return (struct ghp_softmax_job){.rows = l->n,
                                    .classes = l->c * l->h * l->w,
                                    .valid = call->valid_samples,
                                    .x = call->at.x[0],
                                    .y = call->at.y,
                                    .labels = call->at.labels,
                                    .metrics = call->at.metrics,
                                    .scratch = call->at.scratch};
}

static enum ghp_status run_softmax(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_softmax_job job = softmax_job(&kernel->base.local, call);

    return launched(ghp_launch_softmax(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_softmax_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_softmax_job job = softmax_job(&kernel->base.local, call);

    return launched(ghp_launch_softmax_back(ghp_cuda_launch(kernel->base.backend), &job,
                                            (float)call->loss_scale, call->at.dx[0]),
                    kernel);
}

/* ---- the table ---- */

static int64_t sum_scratch(const struct ghp_local *l)
{
    return ghp_sum_scratch(rows_of(l), l->c);
}

static int64_t norm_scratch(const struct ghp_local *l)
{
    return 4 * l->c * (int64_t)sizeof(float);
}

static int64_t softmax_scratch(const struct ghp_local *l)
{
    return ghp_softmax_scratch(l->n);
}

struct row {
    enum ghp_op op;
    enum ghp_pass pass;
    run_fn *run;
    int64_t (*scratch_bytes)(const struct ghp_local *local); /* NULL: none */
    enum ghp_status (*make)(struct ghp_cuda_kernel *kernel); /* once; or NULL */
};

static const struct row rows[] = {
    {GHP_OP_BIAS, GHP_PASS_FORWARD, run_bias, NULL, NULL},
    {GHP_OP_BIAS, GHP_PASS_BACKWARD_WEIGHT, run_bias_weight, sum_scratch, NULL},
    {GHP_OP_RELU, GHP_PASS_FORWARD, run_relu, NULL, NULL},
    {GHP_OP_RELU, GHP_PASS_BACKWARD_DATA, run_relu_data, NULL, NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_FORWARD, run_activation, NULL, NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_BACKWARD_DATA, run_activation_data, NULL, NULL},
    {GHP_OP_MAX_POOL, GHP_PASS_FORWARD, run_max, NULL, NULL},
    {GHP_OP_MAX_POOL, GHP_PASS_BACKWARD_DATA, run_max_data, NULL, NULL},
    {GHP_OP_AVG_POOL, GHP_PASS_FORWARD, run_avg, NULL, NULL},
    {GHP_OP_AVG_POOL, GHP_PASS_BACKWARD_DATA, run_avg_data, NULL, NULL},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_FORWARD, run_avg, NULL, NULL},
    {GHP_OP_GLOBAL_AVG_POOL, GHP_PASS_BACKWARD_DATA, run_avg_data, NULL, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_STATS, run_stats, sum_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, run_norm, norm_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_STATS, run_back_stats, sum_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_WEIGHT, run_norm_weight, NULL, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, run_norm_data, norm_scratch, NULL},
    {GHP_OP_LRN, GHP_PASS_FORWARD, run_lrn, NULL, NULL},
    {GHP_OP_LRN, GHP_PASS_BACKWARD_DATA, run_lrn_data, NULL, NULL},
    {GHP_OP_DROPOUT, GHP_PASS_FORWARD, run_dropout, NULL, NULL},
    {GHP_OP_DROPOUT, GHP_PASS_BACKWARD_DATA, run_dropout_data, NULL, NULL},
    {GHP_OP_ADD, GHP_PASS_FORWARD, run_add, NULL, NULL},
    {GHP_OP_ADD, GHP_PASS_BACKWARD_DATA, run_add_data, NULL, NULL},
    {GHP_OP_MUL, GHP_PASS_FORWARD, run_mul, NULL, NULL},
    {GHP_OP_MUL, GHP_PASS_BACKWARD_DATA, run_mul_data, NULL, NULL},
    {GHP_OP_CONCAT, GHP_PASS_FORWARD, run_concat, NULL, NULL},
    {GHP_OP_CONCAT, GHP_PASS_BACKWARD_DATA, run_concat_data, NULL, NULL},
    {GHP_OP_FLATTEN, GHP_PASS_FORWARD, run_flatten, NULL, NULL},
    {GHP_OP_FLATTEN, GHP_PASS_BACKWARD_DATA, run_flatten_data, NULL, NULL},
    {GHP_OP_VIEW, GHP_PASS_FORWARD, run_take, NULL, make_tables},
    {GHP_OP_VIEW, GHP_PASS_BACKWARD_DATA, run_give_back, NULL, make_tables},
    {GHP_OP_PAD, GHP_PASS_FORWARD, run_take, NULL, make_tables},
    {GHP_OP_PAD, GHP_PASS_BACKWARD_DATA, run_give_back, NULL, make_tables},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, run_softmax, softmax_scratch, NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_BACKWARD_DATA, run_softmax_data, NULL, NULL},
};

enum ghp_status ghp_cuda_own_prepare(struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op != l->op || rows[i].pass != kernel->base.pass) continue;
        kernel->run = rows[i].run;
        kernel->base.scratch_bytes = rows[i].scratch_bytes != NULL ? rows[i].scratch_bytes(l) : 0;
        memcpy(kernel->algorithm, "own", sizeof("own"));
        return rows[i].make != NULL ? rows[i].make(kernel) : GHP_OK;
    }
    return GHP_FAIL(GHP_ERR_INTERNAL, "the cuda backend has no kernel for '%s' (%s); report this",
                    ghp_op_name(l->op), ghp_pass_name(kernel->base.pass));
}
