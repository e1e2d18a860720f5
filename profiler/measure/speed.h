/* profiler/measure/speed.h - whether the workers are equally fast, and if not, how fast each is compared with the
 * slowest.
 *
 * All time the compute job of executor/opbench/speed_probe.h at once, long enough to know their part of a core that
 * others use too. They count as unlike if the fastest is ahead of the slowest in each of three rounds, by more than
 * machines waver. The first round without that is the last.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_speed.c, bench/lab/uneven */
#ifndef GHP_PROFILER_MEASURE_SPEED_H
#define GHP_PROFILER_MEASURE_SPEED_H

#include "core/cost/speeds.h"
#include "profiler/measure/measure.h"

enum { GHP_SPEED_ROUNDS = 3 };

/* Measures; the same on all ranks.
 *
 * speeds   zeroed before; of m->size workers, or left alike
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; the backend's failures; GHP_ERR_COMM
 * Collective over m->world */
enum ghp_status ghp_measure_speed(const struct ghp_measure *m, struct ghp_speeds *speeds);

/* Whether the seconds of one round, of n ranks, lie further apart than machines waver. */
bool ghp_speeds_unlike(const double *seconds, int n);

/* The speeds that seconds of one job tell: none (all alike) unless the workers differ in each round.
 *
 * seconds   of n ranks, round after round: GHP_SPEED_ROUNDS * n
 * speeds    as above
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_speeds_from(const double *seconds, int n, struct ghp_speeds *speeds);

#endif
