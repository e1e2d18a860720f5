/* core/cost/speeds.c - see speeds.h. */
#include "core/cost/speeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Room for n speeds, all 1. */
static enum ghp_status all_alike(int n, struct ghp_speeds *speeds)
{
    *speeds = (struct ghp_speeds){.n = n, .of = ghp_alloc((size_t)n, sizeof *speeds->of)};
    if (speeds->of == NULL) {
        *speeds = (struct ghp_speeds){0};
        return GHP_NO_MEMORY();
    }
    for (int r = 0; r < n; r++)
        speeds->of[r] = 1;
    return GHP_OK;
}

enum ghp_status ghp_speeds_slow(struct ghp_speeds *speeds, int n, int rank, double factor,
                                double *slower)
{
    double least = INFINITY;

    GHP_ASSERT(rank >= 0 && rank < n && factor > 0);
    if (ghp_speeds_of(speeds, n) == NULL) {
        struct ghp_speeds old = *speeds, fresh;

        GHP_TRY(all_alike(n, &fresh));
        *speeds = fresh;
        ghp_speeds_release(&old);
    }
    GHP_ASSERT(speeds->of != NULL);
    speeds->of[rank] /= factor;
    for (int r = 0; r < n; r++)
        least = fmin(least, speeds->of[r]);
    for (int r = 0; r < n; r++)
        speeds->of[r] = fmin(speeds->of[r] / least, GHP_MOST_SPEED);
    *slower = 1 / least;
    if (n == 1) ghp_speeds_release(speeds); /* it is compared with nobody */
    return GHP_OK;
}

enum ghp_status ghp_speeds_copy(const struct ghp_speeds *from, struct ghp_speeds *to)
{
    *to = (struct ghp_speeds){0};
    if (from->n == 0) return GHP_OK;
    GHP_TRY(all_alike(from->n, to));
    memcpy(to->of, from->of, (size_t)from->n * sizeof *to->of);
    return GHP_OK;
}

void ghp_speeds_release(struct ghp_speeds *speeds)
{
    free(speeds->of);
    *speeds = (struct ghp_speeds){0};
}

const double *ghp_speeds_of(const struct ghp_speeds *speeds, int workers)
{
    return speeds->n > 0 && speeds->n == workers ? speeds->of : NULL;
}

double ghp_speeds_block(const double *speed, int block, int index)
{
    double least = speed[index * block];

    for (int k = 1; k < block; k++)
        least = fmin(least, speed[index * block + k]);
    return least;
}

bool ghp_speeds_differ(const double *speed, int workers, int block)
{
    double first = ghp_speeds_block(speed, block, 0);

    for (int b = 1; b < workers / block; b++) {
        double other = ghp_speeds_block(speed, block, b);

        if (other < first || other > first) return true;
    }
    return false;
}

struct deal {
    const double *speed;
    int blocks, block; /* workers of a block */
    double due;        /* samples of a worker for each unit of speed */
    int64_t *shares;
};

static double due_of(const struct deal *d, int b)
{
    return d->due * ghp_speeds_block(d->speed, d->block, b);
}

static void set_share(const struct deal *d, int b, int64_t share)
{
    for (int k = 0; k < d->block; k++)
        d->shares[b * d->block + k] = share;
}

/* The block that is furthest from its due: `change` 1: below it, and should have one more; -1: beyond it, of those
 * that can give one. */
static int furthest(const struct deal *d, int change)
{
    double most = -INFINITY;
    int best = 0;

    for (int b = 0; b < d->blocks; b++) {
        int64_t share = d->shares[b * d->block];
        double off = change * (due_of(d, b) - (double)share);

        if (off <= most || share + change < 1) continue;
        most = off;
        best = b;
    }
    return best;
}

void ghp_speeds_deal(const double *speed, int workers, int block, int64_t samples, int64_t *shares)
{
    struct deal d = {.speed = speed, .blocks = workers / block, .block = block, .shares = shares};
    int64_t left = samples / block;
    double sum = 0;

    for (int b = 0; b < d.blocks; b++)
        sum += ghp_speeds_block(speed, block, b);
    d.due = (double)left / sum;
    for (int b = 0; b < d.blocks; b++) {
        int64_t share = (int64_t)fmax(1, floor(due_of(&d, b)));

        set_share(&d, b, share);
        left -= share;
    }
    while (left != 0) {
        int change = left > 0 ? 1 : -1, b = furthest(&d, change);

        set_share(&d, b, shares[b * block] + change);
        left -= change;
    }
}
