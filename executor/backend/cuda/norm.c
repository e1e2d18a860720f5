/* executor/backend/cuda/norm.c - normalisations on a GPU: batch_norm, lrn. */
#include "executor/backend/cuda/native.h"

static enum ghp_status run_stats(struct ghp_cuda_kernel *kernel,
                                 const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    struct ghp_sum_job given = {.rows = ghp_cuda_native_rows(l),
                                .c = l->c,
                                .x = args->at.x[0],
                                .shift = args->at.state[0],
                                .sums = args->at.sums,
                                .out = args->at.stats};

    if (args->at.sums != NULL)
        return ghp_cuda_native_status(
            ghp_launch_given_stats(ghp_cuda_launch(kernel->base.backend), &given), kernel);
    return ghp_cuda_native_sum(kernel,
                               (struct ghp_sum_job){.what = GHP_SUM_STATS,
                                                    .x = args->at.x[0],
                                                    .shift = args->at.state[0],
                                                    .out = args->at.stats},
                               args);
}

static enum ghp_status run_back_stats(struct ghp_cuda_kernel *kernel,
                                      const struct ghp_kernel_arguments *args)
{
    const float *saved = args->at.saved;

    return ghp_cuda_native_sum(
        kernel,
        (struct ghp_sum_job){.what = kernel->fused.relu ? GHP_SUM_BACK_MASKED : GHP_SUM_BACK_STATS,
                             .x = args->at.x[0],
                             .dy = args->at.dy,
                             .mean = saved,
                             .inverse = saved + kernel->base.local.c,
                             .gamma = args->at.w[0],
                             .beta = args->at.w[1],
                             .out = args->at.stats},
        args);
}

static struct ghp_batch_norm_job norm_job(const struct ghp_cuda_kernel *kernel,
                                          const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    return (struct ghp_batch_norm_job){.rows = ghp_cuda_native_rows(l),
                                       .c = l->c,
                                       .x = args->at.x[0],
                                       .dy = args->at.dy,
                                       .y = args->at.y,
                                       .dx = args->at.dx[0],
                                       .gamma = args->at.w[0],
                                       .beta = args->at.w[1],
                                       .running_mean = args->at.state[0],
                                       .running_variance = args->at.state[1],
                                       .stats_delta_mean = args->at.stats_delta[0],
                                       .stats_delta_variance = args->at.stats_delta[1],
                                       .stats_delta_share = args->stats_delta_share,
                                       .stats_delta_adds = args->stats_delta_adds,
                                       .stats = args->training ? args->at.stats : NULL,
                                       .saved = args->at.saved,
                                       .count = (double)args->stat_count,
                                       .mix = l->norm.momentum,
                                       .epsilon = l->norm.epsilon,
                                       .scratch = args->at.scratch,
                                       .other = kernel->fused.add ? args->at.x[1] : NULL,
                                       .relu = kernel->fused.relu};
}

static int64_t sums_bytes(const struct ghp_local *l)
{
    return ghp_cuda_round(2 * l->c * (int64_t)sizeof(double));
}

/* Its own sums, unless the convolution before it made them, lie at the start of the scratch: no other pass reads them,
 * and if the addition is fused there may be no other place left. */
static enum ghp_status run_norm(struct ghp_cuda_kernel *kernel,
                                const struct ghp_kernel_arguments *args)
{
    struct ghp_kernel_arguments own = *args;

    bool sums = kernel->fused.stats && args->training;

    if (sums) own.at.stats = args->at.scratch;
    if (sums && args->at.sums == NULL) {
        own.at.scratch = (char *)args->at.scratch + sums_bytes(&kernel->base.local);
        GHP_TRY(run_stats(kernel, &own));
    }
    struct ghp_batch_norm_job job = norm_job(kernel, &own);

    if (sums) job.sums = args->at.sums;

    return ghp_cuda_native_status(
        ghp_launch_norm_forward(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_norm_data(struct ghp_cuda_kernel *kernel,
                                     const struct ghp_kernel_arguments *args)
{
    struct ghp_batch_norm_job job = norm_job(kernel, args);

    if (kernel->fused.stats) GHP_TRY(run_back_stats(kernel, args));
    return ghp_cuda_native_status(ghp_launch_norm_data(ghp_cuda_launch(kernel->base.backend), &job),
                                  kernel);
}

/* The way back through running statistics is the way forward without its shifts. */
static enum ghp_status run_frozen_data(struct ghp_cuda_kernel *kernel,
                                       const struct ghp_kernel_arguments *args)
{
    struct ghp_batch_norm_job job = norm_job(kernel, args);

    job.x = args->at.dy;
    job.y = args->at.dx[0];
    job.linear = true;
    return ghp_cuda_native_status(
        ghp_launch_norm_forward(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_norm_weight(struct ghp_cuda_kernel *kernel,
                                       const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    return ghp_cuda_native_status(ghp_launch_norm_weight(ghp_cuda_native_stream(kernel), l->c,
                                                         args->at.stats, args->at.dw[0],
                                                         args->at.dw[1]),
                                  kernel);
}

/* Whether the pass takes its own sums is known only after memory is laid out. */
static int64_t norm_scratch(const struct ghp_local *l)
{
    return sums_bytes(l) + ghp_cuda_native_sum_scratch(l);
}

static int64_t norm_data_scratch(const struct ghp_local *l)
{
    int64_t coefficients = 3 * l->c * (int64_t)sizeof(float), sums = ghp_cuda_native_sum_scratch(l);

    return coefficients > sums ? coefficients : sums;
}

static struct ghp_lrn_job lrn_job(const struct ghp_local *l,
                                  const struct ghp_kernel_arguments *args)
{
    return (struct ghp_lrn_job){.rows = ghp_cuda_native_rows(l),
                                .c = l->c,
                                .size = l->norm.size,
                                .alpha = (float)(l->norm.alpha / (double)l->norm.size),
                                .beta = (float)l->norm.beta,
                                .k = (float)l->norm.k,
                                .x = args->at.x[0],
                                .dy = args->at.dy,
                                .y = args->at.y,
                                .dx = args->at.dx[0],
                                .scale = args->at.saved};
}

static enum ghp_status run_lrn(struct ghp_cuda_kernel *kernel,
                               const struct ghp_kernel_arguments *args)
{
    struct ghp_lrn_job job = lrn_job(&kernel->base.local, args);

    return ghp_cuda_native_status(ghp_launch_lrn(ghp_cuda_launch(kernel->base.backend), &job),
                                  kernel);
}

static enum ghp_status run_lrn_data(struct ghp_cuda_kernel *kernel,
                                    const struct ghp_kernel_arguments *args)
{
    struct ghp_lrn_job job = lrn_job(&kernel->base.local, args);

    return ghp_cuda_native_status(ghp_launch_lrn_back(ghp_cuda_launch(kernel->base.backend), &job),
                                  kernel);
}

const struct ghp_cuda_native ghp_cuda_native_norm[] = {
    {GHP_OP_BATCH_NORM, GHP_PASS_STATS, run_stats, ghp_cuda_native_sum_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, run_norm, norm_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_STATS, run_back_stats, ghp_cuda_native_sum_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_WEIGHT, run_norm_weight, NULL, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, run_norm_data, norm_data_scratch, NULL},
    {GHP_OP_FROZEN_BATCH_NORM, GHP_PASS_FORWARD, run_norm, NULL, NULL},
    {GHP_OP_FROZEN_BATCH_NORM, GHP_PASS_BACKWARD_DATA, run_frozen_data, NULL, NULL},
    {GHP_OP_LRN, GHP_PASS_FORWARD, run_lrn, NULL, NULL},
    {GHP_OP_LRN, GHP_PASS_BACKWARD_DATA, run_lrn_data, NULL, NULL},
    {.run = NULL},
};
