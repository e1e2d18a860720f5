/* executor/backend/cuda/autotuning.c - times the candidates of a convolution or linear layer, and takes the best. */
#include "executor/backend/cuda/backend_cuda_private.h"
#include "executor/backend/operands.h"

#include <string.h>

enum { BATCHES = 3, MOST_RUNS = 20 };
static const double BATCH_S = 2e-3, HEAD_START_S = 100e-6;

struct trial {
    struct ghp_cuda_kernel *kernel;
    struct ghp_backend *backend;
    struct ghp_operand_set set;
    void *w_bf16, *bias_bf16, *sums; /* NULL: none */
    struct ghp_device_event *begin, *end;
};

static int64_t most_scratch(const struct ghp_cuda_kernel *kernel,
                            const struct ghp_cuda_candidate_list *list)
{
    int64_t most = 0;

    for (int i = 0; i < list->n; i++)
        if (list->workspace_bytes[i] > most) most = list->workspace_bytes[i];
    most = ghp_cuda_scratch(kernel->workspace_at + most);
    return most > ghp_cuda_epilogue_scratch(kernel) ? most : ghp_cuda_epilogue_scratch(kernel);
}

/* In bf16 as in training: copies of the weights, and of the bias, that products read. */
static enum ghp_status add_copies(struct trial *t)
{
    struct ghp_kernel *base = &t->kernel->base;
    struct ghp_device device = {&ghp_cuda_device, t->backend};
    struct ghp_tensors *at = &t->set.args.at;
    int64_t n = ghp_local_param_elements(&base->local, 0);

    if (t->backend->config.element_bytes != 2 || base->pass == GHP_PASS_BACKWARD_WEIGHT ||
        !ghp_op_multiplies_weights(base->local.op))
        return GHP_OK;
    GHP_TRY(ghp_device_allocate(device, 2 * n, &t->w_bf16));
    GHP_TRY(ghp_cuda_status(
        ghp_launch_to_bf16(ghp_cuda_launch(t->backend).stream, n, at->w[0], t->w_bf16), "to bf16"));
    at->w_bf16[0] = t->w_bf16;
    if (!t->kernel->fused.bias) return GHP_OK;
    GHP_TRY(ghp_device_allocate(device, 2 * base->local.k, &t->bias_bf16));
    at->w_bf16[1] = t->bias_bf16;
    return GHP_OK;
}

static enum ghp_status open_trial(struct trial *t, const struct ghp_cuda_candidate_list *list)
{
    struct ghp_kernel *base = &t->kernel->base;
    struct ghp_device device = {&ghp_cuda_device, t->backend};
    bool masks = base->pass == GHP_PASS_BACKWARD_DATA && t->kernel->fused.relu; /* by x */

    GHP_TRY(ghp_operand_set_init_to_time(device, &base->local, t->backend->config.element_bytes,
                                         1u << base->pass | (masks ? 1u << GHP_PASS_FORWARD : 0),
                                         &t->set));
    GHP_TRY(ghp_device_allocate(device, most_scratch(t->kernel, list), &t->set.args.at.scratch));
    if (t->kernel->fused.bias)
        GHP_TRY(ghp_device_allocate(device, base->local.k * (int64_t)sizeof(float),
                                    &t->set.args.at.w[1]));
    if (t->kernel->fused.sums)
        GHP_TRY(ghp_device_allocate(device, 2 * base->local.k * (int64_t)sizeof(float), &t->sums));
    t->set.args.at.sums = t->sums;
    GHP_TRY(add_copies(t));
    GHP_TRY(ghp_cuda_device.event_open(t->backend, true, &t->begin));
    return ghp_cuda_device.event_open(t->backend, true, &t->end);
}

static void close_trial(struct trial *t)
{
    struct ghp_device device = {&ghp_cuda_device, t->backend};

    ghp_cuda_device.event_close(t->backend, t->end);
    ghp_cuda_device.event_close(t->backend, t->begin);
    ghp_device_release(device, t->sums);
    ghp_device_release(device, t->bias_bf16);
    ghp_device_release(device, t->w_bf16);
    ghp_device_release(device, t->set.args.at.w[1]);
    ghp_device_release(device, t->set.args.at.scratch);
    ghp_operand_set_release(&t->set);
}

/* Seconds of a run, of `runs` back to back. The GPU starts only when the host has enqueued a few. */
static enum ghp_status time_batch(struct trial *t, int runs, double *seconds)
{
    const struct ghp_device_ops *device = &ghp_cuda_device;

    GHP_TRY(device->delay(t->backend, HEAD_START_S));
    GHP_TRY(device->record_event(t->backend, GHP_DEVICE_STREAM_COMPUTE, t->begin));
    for (int i = 0; i < runs; i++)
        GHP_TRY(ghp_cuda_kernel_run(t->kernel, &t->set.args));
    GHP_TRY(device->record_event(t->backend, GHP_DEVICE_STREAM_COMPUTE, t->end));
    GHP_TRY(device->finish(t->backend, GHP_DEVICE_STREAM_COMPUTE));
    GHP_TRY(device->elapsed(t->backend, t->begin, t->end, seconds));
    *seconds /= runs;
    return GHP_OK;
}

/* The least of a few batches, after a run that does not count. */
static enum ghp_status time_candidate(struct trial *t, double *seconds)
{
    double once = 0, least, next = 0;
    int runs;

    GHP_TRY(time_batch(t, 1, &once));
    GHP_TRY(time_batch(t, 1, &once));
    runs = once * MOST_RUNS < BATCH_S ? MOST_RUNS : (int)(BATCH_S / once) + 1;
    least = once;
    for (int i = 0; i < BATCHES; i++) {
        GHP_TRY(time_batch(t, runs, &next));
        if (next < least) least = next;
    }
    *seconds = least;
    return GHP_OK;
}

int ghp_cuda_candidates(const char *wanted)
{
    return wanted != NULL && strcmp(wanted, GHP_ALGORITHM_UNTIMED) == 0 ? 1 : GHP_CUDA_CANDIDATES;
}

/* Index of the best, -1 if all failed. */
static enum ghp_status try_all(struct trial *t, const struct ghp_cuda_candidate_list *list,
                               int *winner)
{
    struct ghp_timed_choice candidates[GHP_CUDA_CANDIDATES];

    GHP_TRY(open_trial(t, list));
    for (int i = 0; i < list->n; i++) {
        candidates[i].workspace_bytes = list->workspace_bytes[i];
        list->take(t->kernel, i);
        if (time_candidate(t, &candidates[i].seconds) != GHP_OK) candidates[i].seconds = -1;
    }
    *winner = ghp_choice_best(candidates, list->n);
    return GHP_OK;
}

enum ghp_status ghp_cuda_choose(struct ghp_cuda_kernel *kernel,
                                const struct ghp_cuda_candidate_list *list, int *winner)
{
    struct trial t = {.kernel = kernel, .backend = kernel->base.backend};
    enum ghp_status status = GHP_OK;

    *winner = list->n > 0 ? 0 : -1;
    if (list->n > 1 && !t.backend->config.exact) {
        status = try_all(&t, list, winner);
        if (status == GHP_ERR_NO_MEMORY) status = GHP_OK; /* too large to try: the first */
        close_trial(&t);
    }
    if (status == GHP_OK && *winner >= 0) list->take(kernel, *winner);
    return status;
}
