/* executor/backend/reference/update.c - runs an optimizer's update, and sums tensors. Neither has long sums: both are
 * computed in the tensors' own precision, as the formula stands (core/optimizer/optimizer.h), and so agree to the bit
 * with every backend on a processor. */
#include "executor/backend/reference/reference.h"
#include "executor/platform/parallel.h"

bool ghp_reference_has_update(const struct ghp_optimizer *optimizer)
{
    return ghp_update_kernel_find(ghp_reference_updates, optimizer) != NULL;
}

enum ghp_status ghp_reference_update(struct ghp_backend *backend, const struct ghp_update *update)
{
    const struct ghp_range all = {0, update->elements};
    const struct ghp_update_kernel *kernel =
        ghp_update_kernel_find(ghp_reference_updates, update->optimizer);

    GHP_ASSERT(kernel != NULL);
    ghp_update_judge(
        update,
        backend->config.element_bytes == 4
            ? (double)(update->directed ? kernel->move_float : kernel->run_float)(update, all)
            : (update->directed ? kernel->move_double : kernel->run_double)(update, all));
    return GHP_OK;
}

enum ghp_status ghp_reference_direct(struct ghp_backend *backend, const struct ghp_update *update,
                                     const struct ghp_direction_squares *squares)
{
    const struct ghp_update_kernel *kernel =
        ghp_update_kernel_find(ghp_reference_updates, update->optimizer);

    (backend->config.element_bytes == 4 ? kernel->direct_float : kernel->direct_double)(update,
                                                                                        squares);
    return GHP_OK;
}

enum ghp_status ghp_reference_square(struct ghp_backend *backend, const struct ghp_square_sum *sum)
{
    (void)backend;
    *sum->sum = 0;
    for (int t = 0; t < sum->n; t++) {
        const struct ghp_squares *s = &sum->tensors[t];

        for (int64_t i = 0; i < s->extent.n; i++) {
            double x = ghp_reference_get(s->of, s->extent.bytes, i);

            *sum->sum += x * x;
        }
    }
    return GHP_OK;
}

enum ghp_status ghp_reference_accumulate(struct ghp_backend *backend, void *to, const void *from,
                                         struct ghp_buffer_extent extent)
{
    (void)backend;
    for (int64_t i = 0; i < extent.n; i++)
        ghp_reference_put(to, extent.bytes, i,
                          ghp_reference_get(to, extent.bytes, i) +
                              ghp_reference_get(from, extent.bytes, i));
    return GHP_OK;
}
