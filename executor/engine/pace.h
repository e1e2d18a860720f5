/* executor/engine/pace.h - computing that lasts as long as another machine's would (executor/platform/emulation.h).
 *
 * Each instruction of the compute stream that sends nothing lasts its part of the step, in proportion to its cost in
 * the profile. The worker sleeps for the rest of that time. If an instruction, or a sleep, takes too long, the next
 * ones of the step become shorter. So the step's sum is right as long as its true computing is shorter. A late step is
 * counted, and its delay is not carried into the next one. Waiting is not changed.
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
/* Call around instruction i, after its waiting. */
void ghp_pace_begin(struct ghp_pace *pace, int i);
void ghp_pace_end(struct ghp_pace *pace, int i);

/* Steps whose computing was too long by more than a twentieth. 0 of NULL. */
int64_t ghp_pace_late_steps(const struct ghp_pace *pace);
double ghp_pace_behind_s(const struct ghp_pace *pace); /* of the present step, so far */

#endif
