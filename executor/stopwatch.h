/* executor/stopwatch.h - measured seconds of each instruction over the last steps.
 *
 * Keeps the last GHP_STOPWATCH_STEPS steps of each instruction and of the whole step; answers with medians. Not a
 * profiler: it times what the training does anyway. One writer an instruction: the stream that runs it. */
#ifndef GHP_EXECUTOR_STOPWATCH_H
#define GHP_EXECUTOR_STOPWATCH_H

#include "core/status.h"

enum { GHP_STOPWATCH_STEPS = 64 };

struct ghp_lap { /* one instruction in one step; seconds since the step's start */
    double start_s, finish_s;
    double wait_s; /* before start_s: standing still for a reduction of the previous step */
};

struct ghp_stopwatch;

/* For n instructions. */
enum ghp_status ghp_stopwatch_open(int n, struct ghp_stopwatch **watch);
void ghp_stopwatch_close(struct ghp_stopwatch *watch); /* accepts NULL */

double ghp_stopwatch_now_s(void); /* CLOCK_MONOTONIC */

void ghp_stopwatch_begin(struct ghp_stopwatch *watch); /* a step starts */
void ghp_stopwatch_end(struct ghp_stopwatch *watch);   /* and its compute stream ends */
double ghp_stopwatch_step_start_s(const struct ghp_stopwatch *watch);
void ghp_stopwatch_lap(struct ghp_stopwatch *watch, int instr, struct ghp_lap lap);
void ghp_stopwatch_forget(
    struct ghp_stopwatch *watch); /* drops what was measured so far (warm-up) */

/* Medians over the kept steps; 0 where nothing was measured. */
double ghp_stopwatch_step_s(const struct ghp_stopwatch *watch);
double ghp_stopwatch_run_s(const struct ghp_stopwatch *watch, int instr); /* finish - start */
double ghp_stopwatch_wait_s(const struct ghp_stopwatch *watch, int instr);
/* The last step's lap. */
struct ghp_lap ghp_stopwatch_last(const struct ghp_stopwatch *watch, int instr);
int64_t ghp_stopwatch_steps(const struct ghp_stopwatch *watch); /* steps measured since forget */

#endif
