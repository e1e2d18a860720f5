/* executor/data/sampler.c - see sampler.h. */
#include "executor/data/sampler.h"

#include "executor/platform/random.h"

#include <math.h>
#include <stdlib.h>

enum {
    STREAM_DRAW = 0x64726177,
    NUMBERS = 3 /* of a draw: which kind, which sample, which part */
};

enum ghp_status ghp_sampler_init(struct ghp_sampler *s, int64_t n, double uniform, uint64_t seed,
                                 uint64_t stream)
{
    GHP_ASSERT(n >= 1 && uniform > 0 && uniform <= 1);
    *s = (struct ghp_sampler){
        .n = n, .uniform = uniform, .seed = seed, .stream = stream, .leaves = 1};
    while (s->leaves < n)
        s->leaves *= 2;
    s->sums = ghp_alloc((size_t)(2 * s->leaves), sizeof *s->sums);
    return s->sums != NULL ? GHP_OK : GHP_NO_MEMORY();
}

void ghp_sampler_release(struct ghp_sampler *s)
{
    if (s == NULL) return;
    free(s->sums);
    *s = (struct ghp_sampler){0};
}

double ghp_sampler_norm(const struct ghp_sampler *s, int64_t sample)
{
    return s->sums[s->leaves + sample];
}

double ghp_sampler_sum(const struct ghp_sampler *s)
{
    return s->sums[1];
}

double ghp_sampler_ratio(const struct ghp_sampler *s, int64_t sample)
{
    double sum = ghp_sampler_sum(s);

    if (!(sum > 0)) return 1;
    return (1 - s->uniform) * (double)s->n * (ghp_sampler_norm(s, sample) / sum) + s->uniform;
}

void ghp_sampler_learn(struct ghp_sampler *s, int64_t sample, double norm)
{
    int64_t node = s->leaves + sample;

    GHP_ASSERT(sample >= 0 && sample < s->n);
    if (!isfinite(norm) || norm < 0) return;
    s->sums[node] = norm;
    for (node /= 2; node >= 1; node /= 2)
        s->sums[node] = s->sums[2 * node] + s->sums[2 * node + 1];
}

/* A number in [0, 1). */
static double draw(const struct ghp_sampler *s, uint64_t step, uint64_t number)
{
    uint64_t stream = ((uint64_t)STREAM_DRAW << 32) ^ s->stream;

    return ghp_random_unit(s->seed, stream, step * NUMBERS + number);
}

/* The sample whose norm has the place `at` of the sum of all, [0, sum). Rounding may lead it past the last norm that is
 * not 0: then it takes the other way. */
static int64_t find(const struct ghp_sampler *s, double at)
{
    int64_t node = 1;

    while (node < s->leaves) {
        double left = s->sums[2 * node], right = s->sums[2 * node + 1];

        if (at < left || !(right > 0)) {
            node = 2 * node;
        } else {
            at -= left;
            node = 2 * node + 1;
        }
    }
    return node - s->leaves;
}

struct ghp_draw ghp_sampler_draw(const struct ghp_sampler *s, uint64_t step)
{
    struct ghp_draw d = {.measures = draw(s, step, 0) < s->uniform || !(ghp_sampler_sum(s) > 0)};

    if (d.measures)
        d.sample = (int64_t)(draw(s, step, 1) * (double)s->n);
    else
        d.sample = find(s, draw(s, step, 2) * ghp_sampler_sum(s));
    d.weight = 1 / ghp_sampler_ratio(s, d.sample);
    return d;
}
