/* profiler/measure.h - how anything is timed here: all ranks at once, warmed up, repeated, mean and spread.
 *
 * One sample is: all begin together, then `repeats` runs back to back on every rank; its value is the slowest rank's
 * mean. All ranks see all ranks' times, so all take the same decisions and none leaves another in a collective.
 *
 * Private to profiler/.  Tested  tests/profiler/test_measure.c */
#ifndef GHP_PROFILER_MEASURE_H
#define GHP_PROFILER_MEASURE_H

#include "core/profile.h"
#include "executor/backend.h"
#include "executor/transport.h"

/* Who measures; everything is borrowed. */
struct ghp_measure {
    const struct ghp_transport_ops *transport_ops;
    struct ghp_transport *transport;
    struct ghp_comm *world; /* all ranks, compute stream */
    int rank, size;
    const struct ghp_backend_ops *backend_ops;
    struct ghp_backend *backend;
    int element_bytes; /* 4 or 8 */
    double sample_s;   /* how long one sample of an operation lasts, > 0 */
    bool shares_cores;   /* more ranks than cores */
    int64_t cache_bytes; /* the largest cache: a step that moves more finds nothing there again */
};

/* Work to be timed.  run does it `repeats` times; all ranks are given the same number. */
struct ghp_task {
    enum ghp_status (*run)(void *context, int64_t repeats);
    void *context;
};

enum { GHP_MAX_SAMPLES = 9 };

/* Seconds of one run, as often as they were taken. */
struct ghp_samples {
    int n;
    double values[GHP_MAX_SAMPLES];
};

/* How long one sample should last. */
struct ghp_effort {
    double sample_s; /* > 0 */
    int min_samples; /* 1 .. GHP_MAX_SAMPLES; more are taken, up to max, while they spread */
    int max_samples;
};

/* What came out. */
struct ghp_timed {
    double seconds; /* of one run: mean of the samples within 1.5 quartile distances of the quartiles; 0: no sample */
    double spread;  /* (third quartile - first quartile) / seconds */
    int samples;
};

/* Times a task.
 *
 * Returns   GHP_OK; the task's own failure on the rank that failed, GHP_ERR_COMM on the others
 * Collective over m->world */
enum ghp_status ghp_measure_task(const struct ghp_measure *m, struct ghp_task task,
                                 struct ghp_effort effort, struct ghp_timed *timed);

/* Takes `more` samples of a task and puts them behind those that earlier calls took; what does not fit is not taken.
 * Calls that lie minutes apart make samples that know how the machine drifts.
 *
 * sample_s   how long one sample should last, > 0
 *
 * Returns   as ghp_measure_task
 * Collective over m->world */
enum ghp_status ghp_measure_more(const struct ghp_measure *m, struct ghp_task task, double sample_s,
                                 int more, struct ghp_samples *samples);

/* The largest of all ranks' values; fails on every rank where any rank's status is a failure (which that rank returns;
 * the others GHP_ERR_COMM).
 * Collective over m->world */
enum ghp_status ghp_measure_max(const struct ghp_measure *m, enum ghp_status status, double *value);

/* The mean of all ranks' values, the same bits on all; fails as ghp_measure_max does.
 * Collective over m->world */
enum ghp_status ghp_measure_mean(const struct ghp_measure *m, enum ghp_status status, double *value);

/* Whether this thread's message only says that another rank failed. */
bool ghp_measure_is_echo(void);

/* Rank 0's n > 0 bytes, to all; fails on every rank where any rank's status is a failure, as ghp_measure_max does.
 * Collective over m->world */
enum ghp_status ghp_measure_share(const struct ghp_measure *m, enum ghp_status status, void *bytes,
                                  int64_t n);

/* Seconds since some fixed moment, never backwards. */
double ghp_measure_now_s(void);

/* Median and spread of n >= 1 samples. */
struct ghp_timed ghp_measure_summary(const struct ghp_samples *samples);

#endif
