/* executor/backend/reference/dropout.c - dropout: y = x / (1 - ratio), or 0 if the element's random number is below
 * ratio 2^32; backward the same of dy.
 *
 * The number of an element is its own wherever it is computed: of the block with the key (seed; element / 4, sample,
 * step, layer), where element counts a whole sample's pixels and global channels, the one at element % 4. For whole
 * samples it is that of element 0, for whole channels that of the channel's first pixel. */
#include "executor/backend/reference/reference.h"
#include "executor/platform/random.h"

static bool keeps(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                  int64_t sample, int64_t element)
{
    struct ghp_random_block block = ghp_random_philox(args->seed, (uint32_t)(element / 4),
                                                      (uint32_t)(args->first_sample + sample),
                                                      (uint32_t)args->step, (uint32_t)args->layer);

    return block.v[element % 4] >= (uint32_t)(local->norm.ratio * 0x1p32);
}

static void apply(const struct ghp_local *local, const struct ghp_kernel_arguments *args,
                  const double *from, double *to)
{
    int64_t pixels = local->h * local->w, first = args->first_position * local->w, i = 0;
    double scale = 1.0 / (1.0 - local->norm.ratio);

    for (int64_t n = 0; n < local->n; n++)
        for (int64_t pixel = 0; pixel < pixels; pixel++)
            for (int64_t c = 0; c < local->c; c++, i++) {
                int64_t element = (first + pixel) * args->global_channels + args->first_channel + c;

                if (local->norm.drop == GHP_DROP_SAMPLES) element = 0;
                if (local->norm.drop == GHP_DROP_CHANNELS) element = args->first_channel + c;
                to[i] = keeps(local, args, n, element) ? from[i] * scale : 0.0;
            }
}

static void forward(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    const double *x = args->at.x[0];
    double *y = args->at.y;

    if (args->training)
        apply(local, args, x, y);
    else
        for (int64_t i = 0; i < ghp_local_in_elements(local); i++)
            y[i] = x[i];
}

static void backward_data(const struct ghp_local *local, const struct ghp_kernel_arguments *args)
{
    apply(local, args, args->at.dy, args->at.dx[0]);
}

const struct ghp_reference_kernel ghp_reference_dropout[] = {
    {GHP_OP_DROPOUT, GHP_PASS_FORWARD, forward, GHP_REFERENCE_X, GHP_REFERENCE_Y, NULL},
    {GHP_OP_DROPOUT, GHP_PASS_BACKWARD_DATA, backward_data, GHP_REFERENCE_DY, GHP_REFERENCE_DX,
     NULL},
    {.run = NULL},
};
