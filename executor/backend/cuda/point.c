/* executor/backend/cuda/point.c - element by element on a GPU: bias, relu, activation, dropout, add, mul; and the loss. */
#include "executor/backend/cuda/own.h"

static enum ghp_status point(const struct ghp_cuda_kernel *kernel, const struct ghp_point_job *job)
{
    return ghp_cuda_own_status(ghp_launch_point(ghp_cuda_launch(kernel->base.backend), job),
                               kernel);
}

static enum ghp_status run_bias(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;

    struct ghp_bias_job job = {.rows = ghp_cuda_own_rows(l),
                               .c = l->c,
                               .x = call->at.x[0],
                               .b = call->at.w[0],
                               .y = call->at.y};

    return ghp_cuda_own_status(ghp_launch_bias(ghp_cuda_launch(kernel->base.backend), &job),
                               kernel);
}

static enum ghp_status run_bias_weight(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return ghp_cuda_own_sum(
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

    return ghp_cuda_own_status(ghp_launch_dropout(ghp_cuda_launch(kernel->base.backend), &job),
                               kernel);
}

static enum ghp_status run_dropout(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    if (call->training) return drop(kernel, call, call->at.x[0], call->at.y);
    return ghp_cuda_own_copy(kernel, call->at.x[0], call->at.y,
                             ghp_local_in_elements(&kernel->base.local));
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
        bool relu = kernel->along.relu && i == l->n_inputs - 1;

        GHP_TRY(
            point(kernel, &(struct ghp_point_job){.what = relu ? GHP_POINT_ADD_RELU : GHP_POINT_ADD,
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
            GHP_TRY(
                ghp_cuda_own_copy(kernel, call->at.dy, call->at.dx[i], ghp_local_in_elements(l)));
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

    return ghp_cuda_own_status(ghp_launch_softmax(ghp_cuda_launch(kernel->base.backend), &job),
                               kernel);
}

static enum ghp_status run_softmax_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_softmax_job job = softmax_job(&kernel->base.local, call);

    return ghp_cuda_own_status(ghp_launch_softmax_back(ghp_cuda_launch(kernel->base.backend), &job,
                                                       (float)call->loss_scale, call->at.dx[0]),
                               kernel);
}

static int64_t softmax_scratch(const struct ghp_local *l)
{
    return ghp_softmax_scratch(l->n);
}

/* ---- the table ---- */

const struct ghp_cuda_own ghp_cuda_own_point[] = {
    {GHP_OP_BIAS, GHP_PASS_FORWARD, run_bias, NULL, NULL},
    {GHP_OP_BIAS, GHP_PASS_BACKWARD_WEIGHT, run_bias_weight, ghp_cuda_own_sum_scratch, NULL},
    {GHP_OP_RELU, GHP_PASS_FORWARD, run_relu, NULL, NULL},
    {GHP_OP_RELU, GHP_PASS_BACKWARD_DATA, run_relu_data, NULL, NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_FORWARD, run_activation, NULL, NULL},
    {GHP_OP_ACTIVATION, GHP_PASS_BACKWARD_DATA, run_activation_data, NULL, NULL},
    {GHP_OP_DROPOUT, GHP_PASS_FORWARD, run_dropout, NULL, NULL},
    {GHP_OP_DROPOUT, GHP_PASS_BACKWARD_DATA, run_dropout_data, NULL, NULL},
    {GHP_OP_ADD, GHP_PASS_FORWARD, run_add, NULL, NULL},
    {GHP_OP_ADD, GHP_PASS_BACKWARD_DATA, run_add_data, NULL, NULL},
    {GHP_OP_MUL, GHP_PASS_FORWARD, run_mul, NULL, NULL},
    {GHP_OP_MUL, GHP_PASS_BACKWARD_DATA, run_mul_data, NULL, NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, run_softmax, softmax_scratch, NULL},
    {GHP_OP_SOFTMAX_CE, GHP_PASS_BACKWARD_DATA, run_softmax_data, NULL, NULL},
    {.run = NULL},
};
