/* executor/backend/cuda/elementwise.c - element by element on a GPU: bias, dropout, add, mul; and the loss. */
#include "executor/backend/cuda/native.h"

static enum ghp_status elementwise(const struct ghp_cuda_kernel *kernel,
                                   const struct ghp_elementwise_job *job)
{
    return ghp_cuda_native_status(
        ghp_launch_elementwise(ghp_cuda_launch(kernel->base.backend), job), kernel);
}

static enum ghp_status run_bias(struct ghp_cuda_kernel *kernel,
                                const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    struct ghp_bias_job job = {.rows = ghp_cuda_native_rows(l),
                               .c = l->c,
                               .x = args->at.x[0],
                               .b = args->at.w[0],
                               .y = args->at.y};

    return ghp_cuda_native_status(ghp_launch_bias(ghp_cuda_launch(kernel->base.backend), &job),
                                  kernel);
}

static enum ghp_status run_bias_weight(struct ghp_cuda_kernel *kernel,
                                       const struct ghp_kernel_arguments *args)
{
    return ghp_cuda_native_sum(
        kernel,
        (struct ghp_sum_job){.what = GHP_SUM_BIAS, .dy = args->at.dy, .out = args->at.dw[0]}, args);
}

static enum ghp_status drop(const struct ghp_cuda_kernel *kernel,
                            const struct ghp_kernel_arguments *args, const void *from, void *to)
{
    const struct ghp_local *l = &kernel->base.local;
    struct ghp_dropout_job job = {
        .n = l->n,
        .pixels = l->h * l->w,
        .c = l->c,
        .global_channels = args->global_channels,
        .first_pixel = args->first_position * l->w,
        .first_channel = args->first_channel,
        .first_sample = args->first_sample,
        .seed = args->seed,
        .step = args->step,
        .layer = (uint32_t)args->layer,
        .samples = l->norm.drop == GHP_DROP_SAMPLES,
        .channels = l->norm.drop == GHP_DROP_CHANNELS,
        .threshold = (uint32_t)(l->norm.ratio * 0x1p32),
        .scale = (float)(1.0 / (1.0 - l->norm.ratio)),
        .step_at = args->hyperparameters != NULL ? &args->hyperparameters->step : NULL,
        .x = from,
        .y = to};

    return ghp_cuda_native_status(ghp_launch_dropout(ghp_cuda_launch(kernel->base.backend), &job),
                                  kernel);
}

static enum ghp_status run_dropout(struct ghp_cuda_kernel *kernel,
                                   const struct ghp_kernel_arguments *args)
{
    if (args->training) return drop(kernel, args, args->at.x[0], args->at.y);
    return ghp_cuda_native_copy(kernel, args->at.x[0], args->at.y,
                                ghp_local_in_elements(&kernel->base.local));
}

static enum ghp_status run_dropout_data(struct ghp_cuda_kernel *kernel,
                                        const struct ghp_kernel_arguments *args)
{
    return drop(kernel, args, args->at.dy, args->at.dx[0]);
}

static enum ghp_status run_add(struct ghp_cuda_kernel *kernel,
                               const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    const void *so_far = args->at.x[0];

    for (int i = 1; i < l->n_inputs; i++) {
        bool relu = kernel->fused.relu && i == l->n_inputs - 1;

        GHP_TRY(elementwise(kernel,
                            &(struct ghp_elementwise_job){.what = relu ? GHP_ELEMENTWISE_ADD_RELU
                                                                       : GHP_ELEMENTWISE_ADD,
                                                          .n = ghp_local_in_elements(l),
                                                          .a = so_far,
                                                          .b = args->at.x[i],
                                                          .out = args->at.y}));
        so_far = args->at.y;
    }
    return GHP_OK;
}

static enum ghp_status run_add_data(struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    for (int i = 0; i < l->n_inputs; i++)
        if (args->at.dx[i] != NULL)
            GHP_TRY(ghp_cuda_native_copy(kernel, args->at.dy, args->at.dx[i],
                                         ghp_local_in_elements(l)));
    return GHP_OK;
}

static enum ghp_status multiply(const struct ghp_cuda_kernel *kernel, const void *a, const void *b,
                                void *out)
{
    return elementwise(
        kernel, &(struct ghp_elementwise_job){.what = GHP_ELEMENTWISE_MUL,
                                              .n = ghp_local_in_elements(&kernel->base.local),
                                              .a = a,
                                              .b = b,
                                              .out = out});
}

static enum ghp_status run_mul(struct ghp_cuda_kernel *kernel,
                               const struct ghp_kernel_arguments *args)
{
    return multiply(kernel, args->at.x[0], args->at.x[1], args->at.y);
}

static enum ghp_status run_mul_data(struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    for (int i = 0; i < 2; i++)
        if (args->at.dx[i] != NULL)
            GHP_TRY(multiply(kernel, args->at.dy, args->at.x[1 - i], args->at.dx[i]));
    return GHP_OK;
}

/* ---- the table ---- */

const struct ghp_cuda_native ghp_cuda_native_elementwise[] = {
    {GHP_OP_BIAS, GHP_PASS_FORWARD, run_bias, NULL, NULL},
    {GHP_OP_BIAS, GHP_PASS_BACKWARD_WEIGHT, run_bias_weight, ghp_cuda_native_sum_scratch, NULL},
    {GHP_OP_DROPOUT, GHP_PASS_FORWARD, run_dropout, NULL, NULL},
    {GHP_OP_DROPOUT, GHP_PASS_BACKWARD_DATA, run_dropout_data, NULL, NULL},
    {GHP_OP_ADD, GHP_PASS_FORWARD, run_add, NULL, NULL},
    {GHP_OP_ADD, GHP_PASS_BACKWARD_DATA, run_add_data, NULL, NULL},
    {GHP_OP_MUL, GHP_PASS_FORWARD, run_mul, NULL, NULL},
    {GHP_OP_MUL, GHP_PASS_BACKWARD_DATA, run_mul_data, NULL, NULL},
    {.run = NULL},
};
