/* profiler/measure/background_load.h - what the other workers do while one worker's operation is timed among them.
 *
 * In a stage only its own workers run an operation; those of other stages meanwhile run others, which use the same
 * memory and caches. Here these are typical ones: drawn, by their part of the seconds that earlier rounds measured,
 * from what pure data parallelism runs, in turns.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_background_load.c */
#ifndef GHP_PROFILER_MEASURE_BACKGROUND_LOAD_H
#define GHP_PROFILER_MEASURE_BACKGROUND_LOAD_H

#include "profiler/measure/measure.h"
#include "profiler/worklist/worklist.h"

struct ghp_background_load;

/* Prepares the operations on all ranks but 0.
 *
 * memory_bytes   that one operation's measuring may take; they take a small part more, and those that cannot are left
 *                out
 * background load     NULL if there can be none: one worker, workers that share cores or are of unlike speed, a
 *                     device,
 *                nothing timed yet, no memory; the same on all ranks
 *
 * Collective over m->world */
enum ghp_status ghp_background_load_open(const struct ghp_measure *m,
                                         const struct ghp_worklist *worklist, int64_t memory_bytes,
                                         struct ghp_background_load **background_load);

/* Runs them for that long, and till the end of the last one. Not on rank 0. Local. */
enum ghp_status ghp_background_load_run(struct ghp_background_load *background_load,
                                        double seconds);

int ghp_background_load_count(
    const struct ghp_background_load *background_load); /* operations; none on rank 0 */
void ghp_background_load_close(struct ghp_background_load *background_load); /* accepts NULL */

#endif
