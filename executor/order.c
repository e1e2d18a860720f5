/* executor/order.c - see order.h. Fisher-Yates, drawn from random numbers keyed by (seed, epoch, place). */
#include "executor/order.h"

#include "executor/random.h"

#include <stdlib.h>

enum { STREAM_SHUFFLE = 0x73687566 };

enum ghp_status ghp_order_init(struct ghp_order *order, int64_t n, int64_t global_batch,
                               uint64_t seed)
{
    GHP_ASSERT(1 <= global_batch && global_batch <= n);
    *order = (struct ghp_order){.n = n, .global_batch = global_batch, .seed = seed, .epoch = -1};
    order->samples = ghp_alloc((size_t)n, sizeof(*order->samples));
    return order->samples != NULL ? GHP_OK : GHP_NO_MEMORY();
}

void ghp_order_release(struct ghp_order *order)
{
    if (order == NULL) return;
    free(order->samples);
    *order = (struct ghp_order){0};
}

int64_t ghp_order_steps(const struct ghp_order *order)
{
    return order->n / order->global_batch;
}

int64_t ghp_order_epoch(const struct ghp_order *order, int64_t step)
{
    return step / ghp_order_steps(order);
}

/* A number in [0, bound) with all values equally likely to 2^-64 bound. */
static int64_t draw(const struct ghp_order *order, int64_t epoch, int64_t place, int64_t bound)
{
    uint64_t stream = ((uint64_t)STREAM_SHUFFLE << 32) ^ (uint64_t)epoch;

    return (int64_t)(ghp_random_u64(order->seed, stream, (uint64_t)place) % (uint64_t)bound);
}

static void shuffle(struct ghp_order *order, int64_t epoch)
{
    for (int64_t i = 0; i < order->n; i++)
        order->samples[i] = i;
    for (int64_t i = order->n - 1; i > 0; i--) {
        int64_t j = draw(order, epoch, i, i + 1), kept = order->samples[i];

        order->samples[i] = order->samples[j];
        order->samples[j] = kept;
    }
    order->epoch = epoch;
}

const int64_t *ghp_order_batch(struct ghp_order *order, int64_t step)
{
    int64_t epoch = ghp_order_epoch(order, step);

    if (epoch != order->epoch) shuffle(order, epoch);
    return order->samples + step % ghp_order_steps(order) * order->global_batch;
}
