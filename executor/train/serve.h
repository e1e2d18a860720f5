/* executor/train/serve.h - the part of a rank that is a server: it has weights, and computes no layer.
 *
 * In place of a worker's opening, training and closing (train/session_plan.h). Which server a plan's synchroniser wants
 * is said in engine/server.h and mixing/mix_server.h. */
#ifndef GHP_EXECUTOR_TRAIN_SERVE_H
#define GHP_EXECUTOR_TRAIN_SERVE_H

#include "executor/train/setup.h"

/* This rank's server, until all workers have closed theirs.
 *
 * Returns   GHP_OK; the failures of opening and of messages
 * Collective with opening and connecting workers */
enum ghp_status ghp_session_plan_serve(struct ghp_setup *setup,
                                       struct ghp_session_plan *session_plan);

#endif
