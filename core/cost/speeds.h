/* core/cost/speeds.h - workers that are not equally fast: how many times as fast as the slowest each one is.
 *
 * A profile's operations and rates are the slowest worker's; another one's are divided by its speed if a plan
 * gives it samples of its own number (struct ghp_staging's shares). With equal shares everybody waits for the
 * slowest, so that speeds change nothing.
 *
 * Tested  tests/core/cost/test_speeds.c */
#ifndef GHP_CORE_COST_SPEEDS_H
#define GHP_CORE_COST_SPEEDS_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GHP_MOST_SPEED 1e3

struct ghp_speeds {
    int n; /* workers; 0: all alike, or not known */
    /* of each rank, 1 .. GHP_MOST_SPEED, the least of them 1; owned; NULL if n is 0 */
    double *of;
};

/* Changes the speeds as if one of n workers took `factor` times as long as now. They stay relative to the slowest
 * worker.
 *
 * speeds   n workers, or none: all alike
 * rank     0 .. n - 1
 * factor   > 0
 * slower   receives how many times as long the slowest worker now takes as the slowest before
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY (speeds are untouched) */
enum ghp_status ghp_speeds_slow(struct ghp_speeds *speeds, int n, int rank, double factor,
                                double *slower);

/* The same speeds again. Returns   GHP_OK; GHP_ERR_NO_MEMORY (`to` is zeroed) */
enum ghp_status ghp_speeds_copy(const struct ghp_speeds *from, struct ghp_speeds *to);
void ghp_speeds_release(struct ghp_speeds *speeds); /* accepts a zeroed one */

/* The speeds of `workers` workers; NULL: all are alike. */
const double *ghp_speeds_of(const struct ghp_speeds *speeds, int workers);

/* Whether blocks of `block` consecutive workers, each as fast as its slowest member, differ. */
bool ghp_speeds_differ(const double *speed, int workers, int block);

/* The speed of a block: its slowest member's. */
double ghp_speeds_block(const double *speed, int block, int index);

/* Deals samples to blocks of equal workers in proportion to the blocks' speeds: whole samples a worker, at least one,
 * the largest remainders first.
 *
 * speed     of each worker
 * block     divides `workers`
 * samples   a multiple of `block`, at least `workers`
 * shares    receives each worker's samples; they sum to `samples` */
void ghp_speeds_deal(const double *speed, int workers, int block, int64_t samples, int64_t *shares);

#endif
