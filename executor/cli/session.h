/* executor/cli/session.h - one run of ghp-run from its options to its report, on every worker alike.
 *
 * Trains by one plan; or compares several (executor/compare/compare.h), and then trains by the fastest if steps
 * were asked for. Opens things in phases; after each phase that can fail on one worker alone, all workers agree, so
 * that a failure ends all of them with one message. Inside the training loop nobody can agree: there a failure must
 * end in abort, and `in_loop` says so to main. */
#ifndef GHP_EXECUTOR_CLI_SESSION_H
#define GHP_EXECUTOR_CLI_SESSION_H

#include "executor/train/setup.h"

/* The whole run. stdout gets the report (or one JSON object), from rank 0.
 *
 * Returns   GHP_OK; a failure, the same on all workers unless in_loop
 * Collective over all workers */
enum ghp_status ghp_session_run(struct ghp_session *session);

#endif
