/* profiler/measure/measure.h - how anything is timed here: all ranks at once, warmed up, repeated, mean and spread.
 *
 * One sample is: all begin together, then `repeats` runs back to back on every rank; its value is the slowest rank's
 * mean. If workers of unlike speeds each work alone, it is what the slowest takes: the fastest one's seconds times its
 * speed, since a sample may be too short to meet the others on a shared core. What is only enqueued on a device is
 * timed by the device's own marks, played from a graph if it has any. All ranks see all ranks' times, so all take
 * the same decisions and none leaves another in a collective.
 *
 * Private to profiler/.  Tested  tests/profiler/measure/test_measure.c */
#ifndef GHP_PROFILER_MEASURE_MEASURE_H
#define GHP_PROFILER_MEASURE_MEASURE_H

#include "core/cost/profile.h"
#include "executor/transport/exec_context.h"
#include "profiler/worklist/samples.h"

/* Who measures; everything is borrowed. */
struct ghp_measure {
    struct ghp_transport *transport;
    struct ghp_comm *world; /* all ranks, compute stream */
    int rank, size;
    const struct ghp_backend_ops *backend_ops;
    struct ghp_backend *backend;
    struct ghp_collectives *collectives; /* of tensors; NULL: the transport's, in host memory */
    int element_bytes;                   /* 2, 4 or 8 */
    int threads;                         /* of this rank; 0: one */
    double sample_s;                     /* how long one sample of an operation lasts, > 0 */
    bool shares_cores;                   /* more ranks than cores */
    /* fraction of the usual number of rounds and samples that rates and slowdowns get, > 0 .. 1; 0: 1 */
    double effort;
    /* on ghp_now_s, from when on rates and slowdowns that can be derived from others are; 0: never */
    double rates_until_s;
    /* of this rank, and of the fastest, relative to the slowest; 0: all alike (core/cost/speeds.h) */
    double speed, fastest;
    /* a worker's part of the largest cache: a step that moves more finds nothing there again */
    int64_t cache_bytes;
};

/* Who says when work is done. */
enum ghp_clock {
    GHP_CLOCK_HOST,    /* it is when run returns */
    GHP_CLOCK_COMPUTE, /* run only enqueues, on a device's compute stream; the same each time */
    GHP_CLOCK_COMM     /* on its communication stream, or collectives on either */
};

/* Work to be timed.  run does it `repeats` times; all ranks are given the same number. */
struct ghp_task {
    enum ghp_status (*run)(void *context, int64_t repeats);
    void *context;
    enum ghp_clock clock;
    enum ghp_device_stream stream; /* of GHP_CLOCK_COMM */
    /* no rank waits for another in it: what unlike workers take counts by their speeds */
    bool alone;
};

/* The device in whose memory the backend's tensors lie. */
static inline struct ghp_device ghp_measure_device(const struct ghp_measure *m)
{
    return m->backend != NULL ? ghp_backend_device(m->backend_ops, m->backend)
                              : (struct ghp_device){0};
}

/* Waits for a stream of it, under the watchdog if that may wait for other ranks. */
static inline enum ghp_status ghp_measure_finish(const struct ghp_measure *m,
                                                 enum ghp_device_stream stream)
{
    const struct ghp_exec_context exec = {m->backend_ops, m->backend, m->transport, m->collectives};

    return ghp_exec_context_finish(&exec, stream);
}

/* The clock of what the backend runs. */
static inline enum ghp_clock ghp_measure_clock(const struct ghp_measure *m)
{
    return ghp_measure_device(m).ops != NULL ? GHP_CLOCK_COMPUTE : GHP_CLOCK_HOST;
}

/* Who carries tensors. */
static inline struct ghp_collectives *ghp_measure_collectives(const struct ghp_measure *m)
{
    return m->collectives != NULL ? m->collectives : m->transport->host;
}

/* How long one sample should last. */
struct ghp_effort {
    double sample_s; /* > 0 */
    int min_samples; /* 1 .. GHP_MAX_SAMPLES; more are taken, up to max, while they spread */
    int max_samples;
};

/* Times a task.
 *
 * Returns   GHP_OK; the task's own failure on the rank that failed, GHP_ERR_COMM on the others
 * Collective over m->world */
enum ghp_status ghp_measure_task(const struct ghp_measure *m, struct ghp_task task,
                                 struct ghp_effort effort, struct ghp_timed *timed);

/* Takes `more` samples of a task and puts them after those that earlier calls took; what does not fit is not taken.
 * Calls that lie minutes apart make samples that know how the machine drifts.
 *
 * sample_s   how long one sample should last, > 0
 *
 * Returns   as ghp_measure_task
 * Collective over m->world */
enum ghp_status ghp_measure_more(const struct ghp_measure *m, struct ghp_task task, double sample_s,
                                 int more, struct ghp_samples *samples);

/* The two parts of a first call: one run on cold pages and caches, whose seconds do not count as a sample but show what
 * is far too slow; then the samples. */
enum ghp_status ghp_measure_cold(const struct ghp_measure *m, struct ghp_task task,
                                 double *seconds);
enum ghp_status ghp_measure_warm(const struct ghp_measure *m, struct ghp_task task, double sample_s,
                                 int more, struct ghp_samples *samples);

/* The fraction of the usual rounds or samples that the effort asks for, at least one. */
int ghp_measure_rounds(const struct ghp_measure *m, int usual);

/* The same right after a call that took the first samples: nothing is warmed up. samples->n > 0. */
enum ghp_status ghp_measure_on(const struct ghp_measure *m, struct ghp_task task, double sample_s,
                               int more, struct ghp_samples *samples);

/* The largest of all ranks' values; fails on every rank if any rank's status is a failure (which that rank returns;
 * the others GHP_ERR_COMM).
 * Collective over m->world */
enum ghp_status ghp_measure_max(const struct ghp_measure *m, enum ghp_status status, double *value);

/* The mean of all ranks' values, the same bits on all; fails as ghp_measure_max does.
 * Collective over m->world */
enum ghp_status ghp_measure_mean(const struct ghp_measure *m, enum ghp_status status,
                                 double *value);

/* Whether m->rates_until_s has passed on any rank.
 * Collective over m->world */
enum ghp_status ghp_measure_late(const struct ghp_measure *m, bool *late);

/* Whether this thread's message only says that another rank failed. */
bool ghp_measure_is_echo(void);

/* Rank 0's n > 0 bytes, to all; fails on every rank if any rank's status is a failure, as ghp_measure_max does.
 * Collective over m->world */
enum ghp_status ghp_measure_broadcast(const struct ghp_measure *m, enum ghp_status status,
                                      void *bytes, int64_t n);

#endif
