/* executor/train/divergence.h - a training whose numbers are not finite any more: how that is seen, and what is said.
 *
 * A ReLU turns NaN into 0, so a loss may look well long after the weights are gone. Every update therefore looks at
 * what it writes (struct ghp_not_finite); what it finds is in the next step's loss, which all workers that sum it
 * check. Before weights are saved, and at the end, all of them are looked at.
 *
 * The failure names the first step, by its number from 0, whose update wrote such a number, and the first layer in the
 * network's order that it wrote one in; a sample that was not finite before it was trained on is told apart from a
 * training that diverged.
 *
 * Tested   tests/tools/learn/test_divergence.sh */
#ifndef GHP_EXECUTOR_TRAIN_DIVERGENCE_H
#define GHP_EXECUTOR_TRAIN_DIVERGENCE_H

#include "executor/train/train.h"

/* The loss of a step is not finite, or that of the step before an update that found something: makes the failure.
 *
 * Returns   GHP_ERR_DIVERGED; GHP_ERR_INPUT: a sample is not finite
 * Workers whose losses are all summed tell each other what they found; one that none answers says its own */
enum ghp_status ghp_divergence_fail(struct ghp_training *training, int64_t step);

/* After a flush: whether updates found anything, and (all) whether all weights, moments and running statistics that
 * this worker holds are finite.
 *
 * done      steps so far
 *
 * Returns   GHP_OK; as ghp_divergence_fail, the same on all workers
 * Collective over all workers */
enum ghp_status ghp_divergence_look(struct ghp_training *training, int64_t done, bool all);

#endif
