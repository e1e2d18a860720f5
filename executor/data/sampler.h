/* executor/data/sampler.h - importance sampling: which sample comes next, by how long their gradients were.
 *
 * Each of n samples has a norm, that of its gradient when it was last measured. With chance `uniform` a draw is any
 * sample, all alike, and only then its norm is measured again; else a sample by its part of all norms. So
 *
 *     chance p = (1 - uniform) norm / (sum of norms) + uniform / n,    at least uniform / n
 *
 * and gradients divided by n p have the mean of all samples' gradients. While no norm is known all samples are alike.
 * The user of the sampler measures each sample once before the first draw.
 *
 * Norms are the leaves of a tree whose nodes are sums of two, so a draw and a change take log2(n) additions; a node is
 * added up again at each change, so it depends on the norms alone and no rounding piles up.
 *
 * Draws are keyed by (seed, stream, step), and do not depend on the rank or the order of calls. It knows no tensors and
 * no workers.
 *
 * Source   El Hanchi, Stephens, arXiv 2103.12293 (2021); El Hanchi, Stephens, Maddison (ICML 2022)
 * Tested   tests/executor/data/test_sampler.c */
#ifndef GHP_EXECUTOR_DATA_SAMPLER_H
#define GHP_EXECUTOR_DATA_SAMPLER_H

#include "core/base/status.h"

#include <stdbool.h>

/* The fraction of draws that are uniform, of a training. */
static const double ghp_sampler_uniform = 0.5;

struct ghp_sampler {
    int64_t n;
    double uniform; /* (0, 1] */
    uint64_t seed, stream;
    int64_t steps;  /* of a training, counted by it */
    int64_t leaves; /* the least power of two that is n or more */
    double *
        sums; /* [2 leaves], owned: node i has nodes 2 i and 2 i + 1; norms from `leaves` on; the root is node 1 */
};

struct ghp_draw {
    int64_t sample; /* 0 .. n - 1 */
    double weight;  /* 1 / (n p): what its gradient is multiplied by, at most 1 / uniform */
    bool measures;  /* its norm is to be measured */
};

/* All norms are 0, which counts as all alike. n >= 1. Returns GHP_OK; GHP_ERR_NO_MEMORY. Local. */
enum ghp_status ghp_sampler_init(struct ghp_sampler *sampler, int64_t n, double uniform,
                                 uint64_t seed, uint64_t stream);
void ghp_sampler_release(struct ghp_sampler *sampler); /* accepts a zeroed one */

/* The draw of a step. Local. */
struct ghp_draw ghp_sampler_draw(const struct ghp_sampler *sampler, uint64_t step);
/* n p of a sample. Local. */
double ghp_sampler_ratio(const struct ghp_sampler *sampler, int64_t sample);
/* A sample's norm was measured; one that is not finite changes nothing. Local. */
void ghp_sampler_learn(struct ghp_sampler *sampler, int64_t sample, double norm);
double ghp_sampler_norm(const struct ghp_sampler *sampler, int64_t sample);
double ghp_sampler_sum(const struct ghp_sampler *sampler); /* of all norms */

#endif
