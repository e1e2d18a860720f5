/* executor/engine/timeline.h - when a step's instructions ran in the streams.
 *
 * On a device the host only enqueues, so its clock does not help. A timed event follows every instruction, and precedes
 * those that wait or run in another stream. (Host memory's events are the clock.) Events take time, so a step may be
 * timed as a whole, without those of its instructions. Two *halves* of events, for the step that is being done and the
 * one that is being enqueued meanwhile; timings are taken when a step's events are all passed.
 *
 * Call order: open -> per step: begin, (start, finish)..., end -> when all is passed: take -> close. One thread a
 * stream. */
#ifndef GHP_EXECUTOR_ENGINE_TIMELINE_H
#define GHP_EXECUTOR_ENGINE_TIMELINE_H

#include "core/program/program.h"
#include "executor/backend/device.h"
#include "executor/platform/step_timer.h"

enum { GHP_HALVES = 2 };

struct ghp_timeline;

enum ghp_status ghp_timeline_open(struct ghp_device device, const struct ghp_program *program,
                                  struct ghp_timeline **timeline);
void ghp_timeline_close(struct ghp_timeline *timeline); /* accepts NULL */

/* Instruction i, of the transfer stream, runs in this one instead. */
void ghp_timeline_divert(struct ghp_timeline *timeline, int i, enum ghp_device_stream stream);

/* Begin and end of the compute stream's step. timed: with its instructions; else the calls for these do nothing. */
enum ghp_status ghp_timeline_begin(struct ghp_timeline *timeline, int half, bool timed);
enum ghp_status ghp_timeline_end(struct ghp_timeline *timeline, int half);
/* Is called in place of begin if the half's whole step is played again from a graph. */
void ghp_timeline_again(struct ghp_timeline *timeline, int half, bool timed);
/* Around instruction i, in the stream that runs it; a transfer starts when the compute stream posts it. Compute
 * instructions without anything to wait for need no start. */
enum ghp_status ghp_timeline_start(struct ghp_timeline *timeline, int half, int i);
enum ghp_status ghp_timeline_finish(struct ghp_timeline *timeline, int half, int i);
/* Is called in place of finish if compute instruction i had nothing left to do. It then has no event, because an event
 * takes time of its own. */
void ghp_timeline_idle(struct ghp_timeline *timeline, int half, int i);
/* The compute stream has handed instruction i to another stream. */
enum ghp_status ghp_timeline_posted(struct ghp_timeline *timeline, int half, int i);

/* The next event of the half's step that is not passed yet: its instruction, n_instrs for the end, -1: all are
 * passed. */
enum ghp_status ghp_timeline_pending(struct ghp_timeline *timeline, int half, int *instr);

/* One step of the step timer: the timings of all instructions that ran, or those of the step before it, and the step's
 * length. */
enum ghp_status ghp_timeline_take(struct ghp_timeline *timeline, int half,
                                  struct ghp_step_timer *timer);

#endif
