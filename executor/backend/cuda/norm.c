/* executor/backend/cuda/norm.c - normalisations on a GPU: batch_norm, lrn. */
#include "executor/backend/cuda/own.h"

static enum ghp_status run_stats(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return ghp_cuda_own_sum(kernel,
                            (struct ghp_sum_job){.what = GHP_SUM_STATS,
                                                 .x = call->at.x[0],
                                                 .shift = call->at.state[0],
                                                 .out = call->at.stats},
                            call);
}

static enum ghp_status run_back_stats(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    const float *saved = call->at.saved;

    return ghp_cuda_own_sum(
        kernel,
        (struct ghp_sum_job){.what = kernel->along.relu ? GHP_SUM_BACK_GATED : GHP_SUM_BACK_STATS,
                             .x = call->at.x[0],
                             .dy = call->at.dy,
                             .mean = saved,
                             .inverse = saved + kernel->base.local.c,
                             .gamma = call->at.w[0],
                             .beta = call->at.w[1],
                             .out = call->at.stats},
        call);
}

static struct ghp_batch_norm_job norm_job(const struct ghp_cuda_kernel *kernel,
                                          const struct ghp_call *call)
{
    const struct ghp_local *l = &kernel->base.local;

    return (struct ghp_batch_norm_job){.rows = ghp_cuda_own_rows(l),
                                       .c = l->c,
                                       .x = call->at.x[0],
                                       .dy = call->at.dy,
                                       .y = call->at.y,
                                       .dx = call->at.dx[0],
                                       .gamma = call->at.w[0],
                                       .beta = call->at.w[1],
                                       .running_mean = call->at.state[0],
                                       .running_variance = call->at.state[1],
                                       .drift_mean = call->at.drift[0],
                                       .drift_variance = call->at.drift[1],
                                       .drift_share = call->drift_share,
                                       .drift_adds = call->drift_adds,
                                       .stats = call->training ? call->at.stats : NULL,
                                       .saved = call->at.saved,
                                       .count = (double)call->stat_count,
                                       .mix = l->norm.momentum,
                                       .epsilon = l->norm.epsilon,
                                       .scratch = call->at.scratch,
                                       .other = kernel->along.add ? call->at.x[1] : NULL,
                                       .relu = kernel->along.relu};
}

static int64_t sums_bytes(const struct ghp_local *l)
{
    return ghp_cuda_round(2 * l->c * (int64_t)sizeof(double));
}

/* Its own sums lie at the start of the scratch: no other pass reads them, and where the addition goes along there may be no
 * other place left. */
static enum ghp_status run_norm(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_call own = *call;

    if (kernel->along.stats && call->training) {
        own.at.stats = call->at.scratch;
        own.at.scratch = (char *)call->at.scratch + sums_bytes(&kernel->base.local);
        GHP_TRY(run_stats(kernel, &own));
    }
    struct ghp_batch_norm_job job = norm_job(kernel, &own);

    return ghp_cuda_own_status(ghp_launch_norm_forward(ghp_cuda_launch(kernel->base.backend), &job),
                               kernel);
}

static enum ghp_status run_norm_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_batch_norm_job job = norm_job(kernel, call);

    if (kernel->along.stats) GHP_TRY(run_back_stats(kernel, call));
    return ghp_cuda_own_status(ghp_launch_norm_data(ghp_cuda_launch(kernel->base.backend), &job),
                               kernel);
}

static enum ghp_status run_norm_weight(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    return ghp_cuda_own_status(ghp_launch_norm_weight(ghp_cuda_own_stream(kernel),
                                                      kernel->base.local.c, call->at.stats,
                                                      call->at.dw[0], call->at.dw[1]),
                               kernel);
}

/* Whether the pass takes its own sums is known only after memory is laid out. */
static int64_t norm_scratch(const struct ghp_local *l)
{
    return sums_bytes(l) + ghp_cuda_own_sum_scratch(l);
}

static int64_t norm_data_scratch(const struct ghp_local *l)
{
    int64_t coefficients = 3 * l->c * (int64_t)sizeof(float), sums = ghp_cuda_own_sum_scratch(l);

    return coefficients > sums ? coefficients : sums;
}

static struct ghp_lrn_job lrn_job(const struct ghp_local *l, const struct ghp_call *call)
{
    return (struct ghp_lrn_job){.rows = ghp_cuda_own_rows(l),
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

    return ghp_cuda_own_status(ghp_launch_lrn(ghp_cuda_launch(kernel->base.backend), &job), kernel);
}

static enum ghp_status run_lrn_data(struct ghp_cuda_kernel *kernel, const struct ghp_call *call)
{
    struct ghp_lrn_job job = lrn_job(&kernel->base.local, call);

    return ghp_cuda_own_status(ghp_launch_lrn_back(ghp_cuda_launch(kernel->base.backend), &job),
                               kernel);
}

const struct ghp_cuda_own ghp_cuda_own_norm[] = {
    {GHP_OP_BATCH_NORM, GHP_PASS_STATS, run_stats, ghp_cuda_own_sum_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, run_norm, norm_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_STATS, run_back_stats, ghp_cuda_own_sum_scratch, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_WEIGHT, run_norm_weight, NULL, NULL},
    {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, run_norm_data, norm_data_scratch, NULL},
    {GHP_OP_LRN, GHP_PASS_FORWARD, run_lrn, NULL, NULL},
    {GHP_OP_LRN, GHP_PASS_BACKWARD_DATA, run_lrn_data, NULL, NULL},
    {.run = NULL},
};
