/* executor/data/prefetch.h - the next samples of a worker on a processor, made while the present step runs.
 *
 * A thread of the lowest priority (Linux: SCHED_IDLE) makes them, with as many helpers as a load has threads, in order
 * into a buffer of the program's arena (GHP_BUFFER_PREFETCH): while the worker computes it gets a few thousandths of a
 * core, and the whole core while the worker waits for others. Nobody ever waits for it: the load copies what is there
 * and makes the rest itself. So a step is at most as long as without, less what was hidden, plus one copy; and since a
 * sample has the same bits on every thread, results do not depend on how far the thread came.
 *
 * There are no locks: what is asked for and how much of it is there is one atomic number, the thread adds a sample to
 * it only while nothing else was asked for meanwhile, and sleeps on a semaphore if there is nothing to do.
 *
 * Call order: open -> (hint) take ... -> close. One thread hints and takes. */
#ifndef GHP_EXECUTOR_DATA_PREFETCH_H
#define GHP_EXECUTOR_DATA_PREFETCH_H

#include "executor/data/samples.h"

struct ghp_prefetch;

/* Starts the thread.
 *
 * load    copied
 * place   [load->images][load->image_bytes]; borrowed until close
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/executor/data/test_prefetch.c */
enum ghp_status ghp_prefetch_open(const struct ghp_load *load, void *place,
                                  struct ghp_prefetch **prefetch);
void ghp_prefetch_close(
    struct ghp_prefetch *prefetch); /* accepts NULL; waits for a sample at most */

/* What will be taken next; drops what was asked for before. A hint that does not come true costs time alone.
 * next->samples are copied, next->data is borrowed until ghp_prefetch_close: the thread may read it at any time. */
void ghp_prefetch_hint(struct ghp_prefetch *prefetch, const struct ghp_supply *next);

/* The load's images of a supply: copied as far as they were made for it, made now as far as not.
 *
 * images   [load->images][load->image_bytes]
 *
 * Returns   what ghp_samples_images returns */
enum ghp_status ghp_prefetch_take(struct ghp_prefetch *prefetch, const struct ghp_supply *supply,
                                  void *images);

struct ghp_prefetch_count { /* samples since ghp_prefetch_open */
    int64_t taken, made;    /* of those taken: made ahead */
};
struct ghp_prefetch_count
ghp_prefetch_counted(const struct ghp_prefetch *prefetch); /* accepts NULL */

#endif
