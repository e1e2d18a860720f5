/* executor/backend/cuda/update.c - the optimizers' updates. Each has a launcher in kernels/update.cu: without it the
 * backend does not link. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include <stdlib.h>

enum { UPDATES = 64 };

static ghp_launch_update_fn *const launchers[GHP_OPTIMIZERS] = {
#define LAUNCHER(name) ghp_launch_update_##name,
    GHP_OPTIMIZER_LIST(LAUNCHER)
#undef LAUNCHER
};

static double rate_scale_of(const struct ghp_update *update)
{
    return update->rate_scale > 0 ? update->rate_scale : 1;
}

static struct ghp_update_tensor tensor_of(const struct ghp_update *update)
{
    struct ghp_update_tensor t = {.w = update->w,
                                  .dw = update->dw,
                                  .w_bf16 = update->w_bf16,
                                  .n = update->elements,
                                  .decays = update->decays,
                                  .rate_scale = rate_scale_of(update),
                                  .layer = update->layer};

    for (int m = 0; m < GHP_MAX_MOMENTS; m++)
        t.moment[m] = update->moment[m];
    return t;
}

enum ghp_status ghp_cuda_update_all(struct ghp_backend *backend, const struct ghp_update *updates,
                                    int n)
{
    cudaStream_t stream = ghp_cuda_of(backend)->streams[GHP_DEVICE_STREAM_COMPUTE];
    ghp_launch_update_fn *launch;

    if (n == 0) return GHP_OK;
    launch = launchers[ghp_optimizer_index(updates->optimizer)];
    GHP_TRY(ghp_cuda_enter(backend));
    for (int done = 0; done < n; done += UPDATES) {
        const struct ghp_update *first = &updates[done];
        const struct ghp_step_hyperparameters *at = first->hyperparameters;
        struct ghp_update_tensor tensors[UPDATES];
        int count = n - done < UPDATES ? n - done : UPDATES;

        struct ghp_update_numbers numbers = {.given = first->given,
                                             .given_at = at != NULL ? &at->update : NULL,
                                             .squares = first->squares};

        numbers.given.learning_rate /= rate_scale_of(first); /* each tensor has its own */
        if (at != NULL && first->not_finite != NULL) {
            numbers.poison = &first->not_finite->poison;
            numbers.first = &first->not_finite->first;
            numbers.step_at = &at->update_step;
        }
        for (int i = 0; i < count; i++)
            tensors[i] = tensor_of(&first[i]);
        GHP_TRY(ghp_cuda_status(launch(stream, tensors, count, &numbers), "update"));
    }
    return GHP_OK;
}

enum ghp_status ghp_cuda_square(struct ghp_backend *backend, const struct ghp_square_sum *sum)
{
    cudaStream_t stream = ghp_cuda_of(backend)->streams[GHP_DEVICE_STREAM_COMPUTE];
    const struct ghp_square_parts parts = {sum->scratch, GHP_NORM_PARTS};
    struct ghp_square_tensor *tensors = ghp_alloc((size_t)sum->n + 1, sizeof *tensors);
    cudaError_t error;

    if (tensors == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < sum->n; i++)
        tensors[i] = (struct ghp_square_tensor){sum->tensors[i].of, sum->tensors[i].extent.n};
    error = ghp_launch_square(stream, tensors, sum->n, parts, sum->sum);
    free(tensors);
    return ghp_cuda_status(error, "sum of squares");
}

enum ghp_status ghp_cuda_update_one(struct ghp_backend *backend, const struct ghp_update *update)
{
    return ghp_cuda_update_all(backend, update, 1);
}
