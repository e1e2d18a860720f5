/* executor/train/others.h - what asynchronous workers know of each other: how far each is, the results of its steps,
 * and whether a worker was asked to end.
 *
 * After each step a worker sends all others a small message that no worker waits for. So each knows about how many
 * steps all have done together. If all have to meet (an evaluation, a checkpoint, the end), each reports that it has
 * come and waits until all have. What each knows of the others is then exact, and the same everywhere.
 *
 * Call order: open -> tell, ... -> meet -> tell ... -> close.
 *
 * Tested  tests/executor/mixing/test_mix_served.c */
#ifndef GHP_EXECUTOR_TRAIN_OTHERS_H
#define GHP_EXECUTOR_TRAIN_OTHERS_H

#include "executor/engine/worker.h"

struct ghp_other_word { /* of one worker, since the training began */
    int64_t steps;      /* its own; */
    int64_t results;    /* those of which what follows is */
    double loss;        /* sum over its samples */
    double correct, samples;
    int64_t signal;     /* that it was sent; 0: none */
    int64_t ends_after; /* its own steps, if all keep step: then all end; 0: it did not say */
    int64_t meetings;   /* that it has come to */
};

struct ghp_others;

/* Opens the channel after all other channels of this training.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_COMM
 * Collective over all workers */
enum ghp_status ghp_others_open(const struct ghp_exec_context *exec, int workers,
                                struct ghp_others **peers);
/* All have met and tell no more. Accepts NULL. */
void ghp_others_close(struct ghp_others *peers);

/* This worker's own, for the caller to change; what is known of worker i. */
struct ghp_other_word *ghp_others_mine(struct ghp_others *peers);
const struct ghp_other_word *ghp_others_of(const struct ghp_others *peers, int worker);
/* The sum of all, and of signals and ends the largest. */
struct ghp_other_word ghp_others_all(const struct ghp_others *peers);

/* Tells the others, and hears what they have said. Waits for nothing. Local. */
enum ghp_status ghp_others_tell(struct ghp_others *peers);

/* Waits until all are here.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming who is missing
 * Collective over all workers */
enum ghp_status ghp_others_meet(struct ghp_others *peers);

#endif
