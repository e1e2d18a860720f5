/* tests/executor/mixing/in_step.h - workers who mix in step, without servers: what the tests of each such scheme do. */
#ifndef GHP_TESTS_EXECUTOR_MIXING_IN_STEP_H
#define GHP_TESTS_EXECUTOR_MIXING_IN_STEP_H

#include "executor/mixing/mixer.h"
#include "tests/executor/bench.h"

/* A worker by a synchroniser (NULL: SGD), with room of its own for splits, which the worker borrows. */
struct ghp_worker *in_step_open(struct bench *b, const char *sync, enum ghp_fault fault,
                                struct ghp_split **splits);
void in_step_end(struct bench *b, struct ghp_worker *worker, struct ghp_split *splits);

/* What every worker says; no one continues before all have said theirs. */
const struct ghp_control_message *in_step_tell(const struct bench *b, double mine);

/* Whether workers train to the weights of one process that trains the replicas in turn. */
bool in_step_trains_like_reference(struct bench *b, const char *sync, enum ghp_fault fault);

/* One worker by itself, on each rank, trains to the bits of SGD. */
void in_step_check_lone(struct bench *b, const char *sync);

/* A training continues from a checkpoint after `at` steps to the bits of one that nobody interrupted. With `other` the
 * checkpoint is refused. */
void in_step_check_resume(struct bench *b, const char *sync, const char *other, int64_t at);

/* Runs the checks of a scheme on LeNet-5, which lies at `model`, in double. */
int in_step_run(int *argc, char ***argv, const char *model, void (*check)(struct bench *b));

#endif
