/* profiler/run/run_private.h - private to profiler/run/run*.c: everything of one measuring run, and what its parts
 * do. */
#ifndef GHP_PROFILER_RUN_RUN_PRIVATE_H
#define GHP_PROFILER_RUN_RUN_PRIVATE_H

#include "profiler/worklist/trials.h"
#include "profiler/worklist/worklist.h"
#include "profiler/run/cache.h"
#include "profiler/run/run.h"

/* Everything of one run. */
struct ghp_profiling {
    const struct ghp_profiling_request *request;
    struct ghp_profiling_result *result;
    struct ghp_measure m;
    struct ghp_worklist worklist;
    struct ghp_profile *profile; /* in result */
    int ranks_per_node;
    int sharing;          /* ranks of one device */
    int64_t memory_bytes; /* what measuring may take of this rank's memory */
    double start_s;
    double rates_s, filling_s; /* spent on rates and slowdowns, and on what was not measured */
    struct ghp_time_estimate estimate; /* of operations */
    struct ghp_trials trials;          /* of algorithms, if what to measure was named */
    struct ghp_speeds speeds;          /* of the workers; none if they are alike */
    struct ghp_cache cache;            /* rank 0's */
};

/* ---- run/site.c; collective if nothing else is said ---- */

/* What the request cannot be. Local */
enum ghp_status ghp_profiling_check(const struct ghp_profiling *run);
/* The profile before anything is measured. Local */
enum ghp_status ghp_profiling_blank(struct ghp_profiling *run, int nodes);
/* Binds this rank as a training worker is bound, and opens the backend with the threads it would have. Local */
enum ghp_status ghp_profiling_settle(struct ghp_profiling *run);
/* Who carries tensors: decided by all together, after every backend is open. */
enum ghp_status ghp_profiling_open_device_transport(struct ghp_profiling *run);
/* Notes the memory of a device that a worker takes in addition to its arena: the driver's, the libraries' and the
 * communicators'. */
enum ghp_status ghp_profiling_note_concurrent(struct ghp_profiling *run);

/* ---- run/worklist.c ---- */

/* Loads an earlier file, then collects the work list. The file's entries depend on its workers' speeds, so the work
 * list must use these too. */
enum ghp_status ghp_profiling_collect(struct ghp_profiling *run);

/* ---- run/missing.c ---- */

/* Leaves out what the request does not ask for, and orders the rest. */
enum ghp_status ghp_profiling_choose_missing(struct ghp_profiling *run);

/* ---- run/memory_formats.c ---- */

/* The formats in which the work list's operations are measured: those that programs of the models can have them in.
 * Local */
enum ghp_status ghp_profiling_memory_formats(struct ghp_profiling *run);

/* ---- run/rates.c ---- */

/* Rates and slowdowns, unless the earlier file has them. */
enum ghp_status ghp_profiling_rates(struct ghp_profiling *run);

#endif
