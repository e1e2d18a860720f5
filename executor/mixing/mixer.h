/* executor/mixing/mixer.h - a worker's part in mixes of weights (core/program/sync/mixing.c).
 *
 * All weights lie in a row, x, and their gradients alike. A mix comes between two steps, after the updates:
 *
 *     asp      g goes to the servers; x becomes theirs
 *     ssp      g goes, and nobody waits; when x is too old it becomes the servers'
 *     easgd    every TAU steps x goes, and comes back drawn to the servers' weights
 *     aladdin  the step that x has taken goes, and nobody waits; what has come of the servers' weights draws x to them
 *     gosgd    by chance x goes to another worker, and nobody waits; what has come of others' is averaged into x
 *     ad-psgd  an active worker begins an exchange with a passive one; what exchanges have moved x by is added
 *     lsgd     every TAU steps x is pulled to the weights of the leader, after each step a little to the last ones
 *     dgd      x becomes the weighted mean of itself and the neighbours'
 *     sgp      half of x goes to one worker, and what comes from another is added: at once, or in a later mix by
 *              overlap
 *
 * Messages that nobody waits for are carried by a thread, from one mix to the next. A message that the last mix sent is
 * waited for by the next that sends one.
 *
 * Call order: open -> connect -> begin -> start -> mix ... -> settle -> move -> start -> mix ... -> close. One
 * thread.
 *
 * Source   docs/reference/synchronisers.md
 * Tested   tests/executor/mixing */
#ifndef GHP_EXECUTOR_MIXING_MIXER_H
#define GHP_EXECUTOR_MIXING_MIXER_H

#include "executor/mixing/mix_server.h"

/* For struct ghp_run_options: all of the functions below. */
extern const struct ghp_mixer_hooks ghp_host_mixer;

/* Returns   GHP_OK; GHP_ERR_INPUT (too many bytes for a message to one server); GHP_ERR_NO_MEMORY; *mixer NULL where
 *           the program has no MIX
 * Local */
enum ghp_status ghp_mixer_open(const struct ghp_mixer_place *place, struct ghp_mixer **mixer);
/* The channel. Collective over all workers and servers. */
enum ghp_status ghp_mixer_connect(struct ghp_mixer *mixer);
/* Takes the addresses of the program's buffers, and starts the thread. Local. */
enum ghp_status ghp_mixer_begin(struct ghp_mixer *mixer, void *const *address);
/* Tells servers of the end. Accepts NULL, and one that was not connected. */
void ghp_mixer_close(struct ghp_mixer *mixer);

/* Before a step whose updates no mix follows: the first one, and the first after others' reading of weights. */
enum ghp_status ghp_mixer_start(struct ghp_mixer *mixer);

/* Call after the updates with the gradients of step `of`.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming who is missing
 * Local: others come when they come */
enum ghp_status ghp_mixer_mix(struct ghp_mixer *mixer, const struct ghp_step *of);

/* Between steps: what this worker has sent is there, and no thread carries until the next mix. Local; without servers
 * collective over all workers: what anybody has sent is there. */
enum ghp_status ghp_mixer_settle(struct ghp_mixer *mixer);

/* Settled, with servers that have weights of their own, which stand for all workers': these come into x, or this
 * worker's moment there into the gradients' place. Or these go to the servers: weights, which are the same of all
 * workers, until any of them has mixed. Local. */
enum ghp_status ghp_mixer_move(struct ghp_mixer *mixer, enum ghp_buffer_kind kind, bool receives);

/* Between steps. Accepts NULL. */
struct ghp_mix_count ghp_mixer_counted(struct ghp_mixer *mixer);

#endif
