/* executor/platform/step_timer.h - measured seconds of each instruction over the last steps.
 *
 * Keeps the last GHP_STOPWATCH_STEPS steps, and answers for the steps of middling length: means over the half of them
 * between the quartiles. A mean over the same steps for everything, so the terms of a step sum to the step; between the
 * quartiles, so a hiccup of the machine does not count. Not a profiler: it times what the training does anyway.
 * One writer an instruction's lap: the stream that runs it; one of its waiting: the compute stream. Read when both streams
 * stand still. */
#ifndef GHP_EXECUTOR_PLATFORM_STEP_TIMER_H
#define GHP_EXECUTOR_PLATFORM_STEP_TIMER_H

#include "core/base/status.h"

#include <stdbool.h>

enum { GHP_STOPWATCH_STEPS = 64 };

struct ghp_lap {  /* one instruction in one step; seconds since that step's start */
    int64_t step; /* ghp_stopwatch_step when the step ran (a reduction may end in a later one) */
    double start_s, finish_s;
};

struct ghp_stopwatch;

/* For n instructions. */
enum ghp_status ghp_stopwatch_open(int n, struct ghp_stopwatch **watch);
void ghp_stopwatch_close(struct ghp_stopwatch *watch); /* accepts NULL */

void ghp_stopwatch_begin(struct ghp_stopwatch *watch); /* a step starts */
void ghp_stopwatch_end(struct ghp_stopwatch *watch);   /* its compute stream ends */
/* The same, for whoever timed the step otherwise. */
void ghp_stopwatch_end_after(struct ghp_stopwatch *watch, double step_s);
int64_t ghp_stopwatch_step(const struct ghp_stopwatch *watch);   /* number of the present step */
double ghp_stopwatch_start_s(const struct ghp_stopwatch *watch); /* when it started */
void ghp_stopwatch_lap(struct ghp_stopwatch *watch, int instr, struct ghp_lap lap);
/* In the present step the compute stream stood still for the instruction: before its start, for a reduction of the previous
 * step; or to hand it to the thread that runs it, which may take the core at once. */
void ghp_stopwatch_wait(struct ghp_stopwatch *watch, int instr, double wait_s);
/* drops what was measured so far (warm-up) */
void ghp_stopwatch_forget(struct ghp_stopwatch *watch);
void ghp_stopwatch_skip(struct ghp_stopwatch *watch); /* drops the step that ended last */

struct ghp_lap_mean { /* over the steps of middling length */
    double run_s, wait_s;
};

/* Length of those steps; 0 where nothing was measured. */
double ghp_stopwatch_step_s(const struct ghp_stopwatch *watch);
struct ghp_lap_mean ghp_stopwatch_mean(const struct ghp_stopwatch *watch, int instr);
/* Which places of the ring hold steps of middling length, and what an instruction ran in each place's step. */
void ghp_stopwatch_kept(const struct ghp_stopwatch *watch, bool kept[GHP_STOPWATCH_STEPS]);
void ghp_stopwatch_runs(const struct ghp_stopwatch *watch, int instr,
                        double run_s[GHP_STOPWATCH_STEPS]);
/* The instruction's latest lap. */
struct ghp_lap ghp_stopwatch_last(const struct ghp_stopwatch *watch, int instr);
int64_t ghp_stopwatch_steps(const struct ghp_stopwatch *watch); /* since forget, skipped ones too */

#endif
