/* executor/platform/step_timer.h - measured seconds of each instruction over the last steps.
 *
 * Keeps the last GHP_STEP_TIMER_STEPS steps, and answers for the steps of middling length: means over the half of them
 * between the quartiles. A mean over the same steps for everything, so the terms of a step sum to the step; between the
 * quartiles, so a hiccup of the machine does not count. Not a profiler: it keeps what the training times anyway.
 *
 * Call order: open -> per step: begin, record and wait for each instruction, end -> close. One thread calls. */
#ifndef GHP_EXECUTOR_PLATFORM_STEP_TIMER_H
#define GHP_EXECUTOR_PLATFORM_STEP_TIMER_H

#include "core/base/status.h"

#include <stdbool.h>

enum { GHP_STEP_TIMER_STEPS = 64 };

struct ghp_instr_timing {     /* one instruction in one step; seconds since that step's start */
    double start_s, finish_s; /* of a reduction perhaps in the next step's time */
};

struct ghp_step_timer;

/* Makes a timer for n instructions. */
enum ghp_status ghp_step_timer_open(int n, struct ghp_step_timer **watch);
void ghp_step_timer_close(struct ghp_step_timer *watch); /* accepts NULL */

void ghp_step_timer_begin(struct ghp_step_timer *watch); /* the timings of a step */
/* In place of the timings of a step that was only timed as a whole: those of the step before it. */
void ghp_step_timer_repeat(struct ghp_step_timer *watch);
void ghp_step_timer_end(struct ghp_step_timer *watch, double step_s); /* how long it was */
void ghp_step_timer_record(struct ghp_step_timer *watch, int instr, struct ghp_instr_timing timing);
/* In that step the compute stream stood still for the instruction: before its start, for a reduction of the
 * previous step; or to hand it to the thread that runs it, which may take the core at once. */
void ghp_step_timer_wait(struct ghp_step_timer *watch, int instr, double wait_s);
/* drops what was measured so far (warm-up) */
void ghp_step_timer_forget(struct ghp_step_timer *watch);
void ghp_step_timer_skip(struct ghp_step_timer *watch); /* drops the step that ended last */

struct ghp_instr_timing_mean { /* over the steps of middling length */
    double run_s, wait_s;
};

/* Length of those steps; 0 if nothing was measured. */
double ghp_step_timer_step_s(const struct ghp_step_timer *watch);
struct ghp_instr_timing_mean ghp_step_timer_mean(const struct ghp_step_timer *watch, int instr);
/* Which places of the ring hold steps of middling length, and what an instruction ran in each place's step. */
void ghp_step_timer_kept(const struct ghp_step_timer *watch, bool kept[GHP_STEP_TIMER_STEPS]);
void ghp_step_timer_runs(const struct ghp_step_timer *watch, int instr,
                         double run_s[GHP_STEP_TIMER_STEPS]);
/* Mean over the last n steps, without skipped ones, of what an instruction ran, or below 0 of how long they were; 0
 * if there are none. */
double ghp_step_timer_recent_s(const struct ghp_step_timer *watch, int instr, int n);
/* The instruction's latest timing. */
struct ghp_instr_timing ghp_step_timer_last(const struct ghp_step_timer *watch, int instr);
int64_t
ghp_step_timer_steps(const struct ghp_step_timer *watch); /* since forget, skipped ones too */

#endif
