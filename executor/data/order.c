/* executor/data/order.c - see order.h. Fisher-Yates from the last place down, drawn from random numbers keyed by
 * (seed, epoch, place); what is left of it can be drawn at any time. */
#include "executor/data/order.h"

#include "executor/platform/random.h"

#include <stdlib.h>

enum { STREAM_SHUFFLE = 0x73687566 };
const char *const ghp_shuffling_names[] = {"epoch", "once", "off", NULL};

enum ghp_status ghp_order_init(struct ghp_order *order, int64_t n, int64_t global_batch,
                               uint64_t seed)
{
    GHP_ASSERT(1 <= global_batch && global_batch <= n);
    *order = (struct ghp_order){.n = n, .global_batch = global_batch, .seed = seed};
    for (int i = 0; i < 2; i++)
        order->shuffles[i] = (struct ghp_shuffle){
            .epoch = -1, .samples = ghp_alloc((size_t)n, sizeof *order->shuffles[i].samples)};
    if (order->shuffles[0].samples != NULL && order->shuffles[1].samples != NULL) return GHP_OK;
    ghp_order_release(order);
    return GHP_NO_MEMORY();
}

void ghp_order_release(struct ghp_order *order)
{
    if (order == NULL) return;
    for (int i = 0; i < 2; i++)
        free(order->shuffles[i].samples);
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
    uint64_t stream = ((uint64_t)STREAM_SHUFFLE << 32) ^
                      (uint64_t)(order->shuffling == GHP_SHUFFLE_ONCE ? 0 : epoch);

    return (int64_t)(ghp_random_u64(order->seed, stream, (uint64_t)place) % (uint64_t)bound);
}

/* An epoch's shuffle, done until `left` draws are left. */
static const int64_t *shuffle(struct ghp_order *order, int64_t epoch, int64_t left)
{
    struct ghp_shuffle *s = &order->shuffles[epoch % 2];

    if (s->epoch != epoch) {
        for (int64_t i = 0; i < order->n; i++)
            s->samples[i] = i;
        s->epoch = epoch;
        s->left = order->shuffling == GHP_SHUFFLE_OFF ? 0 : order->n - 1;
    }
    for (; s->left > left; s->left--) {
        int64_t j = draw(order, epoch, s->left, s->left + 1), kept = s->samples[s->left];

        s->samples[s->left] = s->samples[j];
        s->samples[j] = kept;
    }
    return s->samples;
}

/* The first step of an epoch leaves the other shuffle alone: the epoch before may still be read. */
const int64_t *ghp_order_batch(struct ghp_order *order, int64_t step)
{
    int64_t steps = ghp_order_steps(order), epoch = step / steps, at = step % steps;

    if (at > 0) shuffle(order, epoch + 1, (order->n - 1) * (steps - 1 - at) / (steps - 1));
    return shuffle(order, epoch, 0) + at * order->global_batch;
}
