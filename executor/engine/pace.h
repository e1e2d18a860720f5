/* executor/engine/pace.h - computing that lasts as long as another machine's would (executor/platform/emulation.h).
 *
 * Each instruction of the compute stream that sends nothing lasts its part of the step, in proportion to its cost in
 * the profile: what it does not take is slept. What one takes too long, a sleep's too, is taken off the next ones of
 * the step, so that a step's sum holds where its true computing is shorter; a step that is late is counted, and the
 * next one begins anew. Waiting is left alone.
 *
 * Call order: open -> step, begin, end of each instruction ... -> close. All local.
 * Tested  tests/executor/platform/test_emulation.c */
#ifndef GHP_EXECUTOR_ENGINE_PACE_H
#define GHP_EXECUTOR_ENGINE_PACE_H

#include "core/cost/profile.h"

struct ghp_pace;

/* profile   NULL, or costs nothing of it: all parts are equal
 * step_s    > 0
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_pace_open(const struct ghp_program *program, const struct ghp_profile *profile,
                              double step_s, struct ghp_pace **pace);
void ghp_pace_close(struct ghp_pace *pace); /* accepts NULL */

/* A step begins; this and the next two accept NULL. */
void ghp_pace_step(struct ghp_pace *pace);
/* Around instruction i, behind what it waits for. */
void ghp_pace_begin(struct ghp_pace *pace, int i);
void ghp_pace_end(struct ghp_pace *pace, int i);

/* Steps whose computing was too long by more than a twentieth. 0 of NULL. */
int64_t ghp_pace_late_steps(const struct ghp_pace *pace);
double ghp_pace_behind_s(const struct ghp_pace *pace); /* of the present step, so far */

#endif
