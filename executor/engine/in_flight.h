/* executor/engine/in_flight.h - the steps that a worker has under way: one that is being done, one that is being
 * enqueued.
 *
 * What the host has to know of a step - metrics, times, that it is done - comes a step late, by way of a double buffer,
 * in host memory too, where a step is done when it is enqueued but for reductions. The in-flight steps keep its halves,
 * bring the samples in, and, if every stream takes part by enqueueing alone, record a step once as a graph and play
 * it from then on.
 *
 * Call order: open -> per step: begin, run, collect the half before -> collect -> close. */
#ifndef GHP_EXECUTOR_ENGINE_IN_FLIGHT_H
#define GHP_EXECUTOR_ENGINE_IN_FLIGHT_H

#include "executor/engine/loader.h"
#include "executor/engine/timeline.h"
#include "executor/transport/exec_context.h"

struct ghp_in_flight;

struct ghp_in_flight_plan { /* borrowed until close */
    const struct ghp_exec_context *exec;
    const struct ghp_program *program;
    struct ghp_loader_plan loader;            /* but for the device */
    const struct ghp_in_flight *weight_owner; /* not NULL: of the worker whose weights are used */
    bool captures;                            /* steps may be recorded and played */
    int agreeing; /* ranks from 0 on that record their steps all or not at all; 1: this one alone */
    const char *(*label)(void *context, int instr); /* what the watchdog names */
    void *context;
};

enum ghp_status ghp_in_flight_open(const struct ghp_in_flight_plan *plan,
                                   struct ghp_in_flight **in_flight);
void ghp_in_flight_close(struct ghp_in_flight *in_flight); /* accepts NULL */

/* Numbers of a step where the device reads them, for calls and updates. */
const struct ghp_step_hyperparameters *
ghp_in_flight_hyperparameters(const struct ghp_in_flight *in_flight);
/* What updates have found not finite, if they tell it; and a copy of it, when all that was enqueued is done. */
struct ghp_not_finite *ghp_in_flight_not_finite(const struct ghp_in_flight *in_flight);
enum ghp_status ghp_in_flight_read_not_finite(const struct ghp_in_flight *in_flight,
                                              struct ghp_not_finite *found);
/* Sets them in the compute stream, outside of a step; waits. */
enum ghp_status ghp_in_flight_set(struct ghp_in_flight *in_flight,
                                  const struct ghp_step_hyperparameters *hyperparameters);

/* A step begins: its half, its samples (borrowed until the step is enqueued), its numbers. */
enum ghp_status ghp_in_flight_begin(struct ghp_in_flight *in_flight,
                                    const struct ghp_supply *supply,
                                    const struct ghp_step_hyperparameters *hyperparameters);
/* Enqueues the step: calls `run`, or plays what an earlier call left on graph.
 *
 * steady   this step enqueues what every later one does: it may be recorded */
enum ghp_status ghp_in_flight_run(struct ghp_in_flight *in_flight, bool steady,
                                  enum ghp_status (*run)(void *context), void *context);
bool ghp_in_flight_captures(
    const struct ghp_in_flight *in_flight); /* it is to end with all streams joined */
bool ghp_in_flight_is_capturing(const struct ghp_in_flight *in_flight);
int ghp_in_flight_half(const struct ghp_in_flight *in_flight); /* of the present step */

/* Called by `run`, and by jobs of the step that had this half: loader.h's and timeline.h's. */
enum ghp_status ghp_in_flight_load(struct ghp_in_flight *in_flight, int micro, void *images,
                                   void *labels);
/* As ghp_loader_seconds. */
const struct ghp_second_label *ghp_in_flight_seconds(const struct ghp_in_flight *in_flight,
                                                     int micro);
/* The step's own begin and end are those of instruction GHP_WHOLE_STEP. */
enum { GHP_WHOLE_STEP = -1 };
enum ghp_status ghp_in_flight_start(struct ghp_in_flight *in_flight, int half, int instr);
enum ghp_status ghp_in_flight_finish(struct ghp_in_flight *in_flight, int half, int instr);
void ghp_in_flight_idle(struct ghp_in_flight *in_flight, int instr);
/* As ghp_timeline_divert. */
void ghp_in_flight_divert(struct ghp_in_flight *in_flight, int instr,
                          enum ghp_device_stream stream);
enum ghp_status ghp_in_flight_posted(struct ghp_in_flight *in_flight, int instr);
/* The metrics are complete in this stream: on their way to the host. */
enum ghp_status ghp_in_flight_metrics(struct ghp_in_flight *in_flight, int half,
                                      enum ghp_device_stream stream, const void *metrics);

/* So is the sum of the squares of the present step's gradients, in the compute stream. */
enum ghp_status ghp_in_flight_squares(struct ghp_in_flight *in_flight, const void *squares);

/* Collects the step before the present one, or (all) the present one too: waits until it is done, then writes its
 * timings to the watch. Returns the steps collected, with their metrics, oldest first. */
struct ghp_in_flight_results {
    int n;
    double metrics[GHP_HALVES][GHP_METRIC_COUNT];
    double squares[GHP_HALVES]; /* 0 if nobody said them */
    uint64_t step[GHP_HALVES];
};
enum ghp_status ghp_in_flight_collect(struct ghp_in_flight *in_flight, bool all,
                                      struct ghp_step_timer *timer,
                                      struct ghp_in_flight_results *landed);

/* The present step's timings will be left out of the means. */
void ghp_in_flight_skip(struct ghp_in_flight *in_flight);

struct ghp_loader *ghp_in_flight_loader(const struct ghp_in_flight *in_flight);

#endif
