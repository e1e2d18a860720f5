/* core/speeds.c - see speeds.h. */
#include "core/speeds.h"

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
    for (int r = 0; r < n; ++r)
        speeds->of[r] = 1;
    return GHP_OK;
}

enum ghp_status ghp_speeds_slow(struct ghp_speeds *speeds, int n, int rank, double factor,
                                double *slower)
{
    double least = INFINITY;

    GHP_ASSERT(rank >= 0 && rank < n && factor > 0);
    if (ghp_speeds_of(speeds, n) == NULL) {
        struct ghp_speeds fresh;

        GHP_TRY(all_alike(n, &fresh));
        ghp_speeds_release(speeds);
        *speeds = fresh;
    }
    speeds->of[rank] /= factor;
    for (int r = 0; r < n; ++r)
        least = fmin(least, speeds->of[r]);
    for (int r = 0; r < n; ++r)
        speeds->of[r] = fmin(speeds->of[r] / least, GHP_MOST_SPEED);
    *slower = 1 / least;
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

    for (int k = 1; k < block; ++k)
        least = fmin(least, speed[index * block + k]);
    return least;
}

bool ghp_speeds_differ(const double *speed, int workers, int block)
{
    double first = ghp_speeds_block(speed, block, 0);

    for (int b = 1; b < workers / block; ++b) {
        double other = ghp_speeds_block(speed, block, b);

        if (other < first || other > first) return true;
    }
    return false;
}

/* The block that should have one more: the one whose members are furthest below their due. */
static int neediest(const double *speed, int workers, int block, double due_per_speed,
                    const int64_t *shares)
{
    double most = -INFINITY;
    int best = 0;

    for (int b = 0; b < workers / block; ++b) {
        double lacks =
            due_per_speed * ghp_speeds_block(speed, block, b) - (double)shares[b * block];

        if (lacks <= most) continue;
        most = lacks;
        best = b;
    }
    return best;
}

/* The block that has most beyond its due, of those that can give one. */
static int richest(const double *speed, int workers, int block, double due_per_speed,
                   const int64_t *shares)
{
    double most = -INFINITY;
    int best = 0;

    for (int b = 0; b < workers / block; ++b) {
        double beyond =
            (double)shares[b * block] - due_per_speed * ghp_speeds_block(speed, block, b);

        if (beyond <= most || shares[b * block] < 2) continue;
        most = beyond;
        best = b;
    }
    return best;
}

void ghp_speeds_deal(const double *speed, int workers, int block, int64_t samples, int64_t *shares)
{
    int blocks = workers / block;
    int64_t left = samples / block;
    double sum = 0, due;

    for (int b = 0; b < blocks; ++b)
        sum += ghp_speeds_block(speed, block, b);
    due = (double)left / sum;
    for (int b = 0; b < blocks; ++b) {
        int64_t share = (int64_t)fmax(1, floor(due * ghp_speeds_block(speed, block, b)));

        for (int k = 0; k < block; ++k)
            shares[b * block + k] = share;
        left -= share;
    }
    for (; left != 0; left += left < 0 ? 1 : -1) {
        int b = left > 0 ? neediest(speed, workers, block, due, shares)
                         : richest(speed, workers, block, due, shares);

        for (int k = 0; k < block; ++k)
            shares[b * block + k] += left > 0 ? 1 : -1;
    }
}
