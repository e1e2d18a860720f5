/* executor/platform/parallel.h - one job on several threads, divided by number and never by chance.
 *
 * A job is divided into as many parts as the worker has threads; a part does the same whichever thread runs it, so
 * results depend on the number of parts only. The one place where ghp's CPU kernels meet OpenMP; if the compiler ignores
 * OpenMP the parts run one after the other, with the same results. */
#ifndef GHP_EXECUTOR_PLATFORM_PARALLEL_H
#define GHP_EXECUTOR_PLATFORM_PARALLEL_H

#include "core/base/status.h"

#include <stdint.h>

struct ghp_part { /* 0 <= index < count */
    int index, count;
};

struct ghp_range { /* first <= i < end */
    int64_t first, end;
};

/* Runs body(context, part) for each of `parts` >= 1 parts, and returns when all are done. */
void ghp_parallel(int parts, void (*body)(void *context, struct ghp_part part), void *context);

/* The part's range of 0 .. total - 1, which begins at a multiple of `grain` >= 1; empty if there are more parts than
 * grains. */
struct ghp_range ghp_part_range(struct ghp_part part, int64_t total, int64_t grain);

/* Whether OpenMP gives a region this number of threads, as libraries of kernels assume: a region with fewer threads
 * would wait forever.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the variable that forbids it
 * Local
 * Tested    tests/tools/run/test_affinity.sh */
enum ghp_status ghp_parallel_check(int threads);

/* OpenMP threads of whatever this thread calls from now on (oneDNN's primitives keep the number they were made
 * with). */
void ghp_parallel_threads(int threads);

#endif
