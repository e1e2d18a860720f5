/* executor/train/session_plan.h - one plan of a session, from its description to a worker that can train by it.
 *
 * Call order, after ghp_setup_open: ghp_session_plan_open -> ghp_session_plan_allocate -> train ->
 * ghp_session_plan_close. A server (setup.server >= 0) has train/serve.h instead. */
#ifndef GHP_EXECUTOR_TRAIN_SESSION_PLAN_H
#define GHP_EXECUTOR_TRAIN_SESSION_PLAN_H

#include "executor/train/setup.h"

/* What the plan's worker, or server, is to do: session_plan->rank_plan. Local. */
void ghp_session_plan_describe(const struct ghp_setup *setup,
                               struct ghp_session_plan *session_plan);
/* The plan's worker: kernels, communicators. A plan that was costed as another program than the one that would run is
 * refused (GHP_ERR_INPUT), unless options ask for another precision or backend. Collective over all workers. */
enum ghp_status ghp_session_plan_open(struct ghp_setup *setup,
                                      struct ghp_session_plan *session_plan);
/* Its memory, and the first weights, by the session's seed. Collective over all workers. */
enum ghp_status ghp_session_plan_allocate(struct ghp_setup *setup,
                                          struct ghp_session_plan *session_plan);
/* Gives the worker and its memory back; the plan stays. Local. */
void ghp_session_plan_close(struct ghp_session_plan *session_plan);

#endif
