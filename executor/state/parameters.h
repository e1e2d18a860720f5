/* executor/state/parameters.h - a worker's weights, moments and statistics as whole tensors: initialise, gather,
 * scatter, hash.
 *
 * Whole tensors exist only here, one at a time, in host memory and in the field's order (conv2d weights K,C,R,S),
 * wherever and however the parts lie. What each worker holds is executor/state/shard.h's; flush or settle the worker
 * first, and flush it before moments. */
#ifndef GHP_EXECUTOR_STATE_PARAMETERS_H
#define GHP_EXECUTOR_STATE_PARAMETERS_H

#include "executor/state/tensors.h"
#include "executor/engine/worker.h"

/* First values of all parameters and statistics, moments zero. Values depend on seed, tensor and element alone.
 * Local. Tested tests/executor/train/test_equality.c */
enum ghp_status ghp_parameters_init(struct ghp_worker *worker, uint64_t seed);

/* The whole tensor from the workers that have shards of it.
 *
 * role    WEIGHT, WEIGHT_GRADIENT, a moment or (for a statistic) STATE
 * whole   tensor->param->elements elements, written on every worker
 *
 * Collective over all workers */
enum ghp_status ghp_parameters_gather(struct ghp_worker *worker, const struct ghp_tensor *tensor,
                                      enum ghp_buffer_kind buffer_kind, void *whole);

/* How many members of a subgroup together hold the tensor; 1: each holds all of it. The layer must be owned by this
 * worker. Local. */
int ghp_parameters_parts(const struct ghp_worker *worker, const struct ghp_tensor *tensor);

/* This worker's part from the whole tensor; nothing if it is of another stage alone. After the last of a moment call
 * ghp_worker_distribute. Returns GHP_OK; GHP_ERR_NO_MEMORY,
 * GHP_ERR_BACKEND (on a device). Local. */
enum ghp_status ghp_parameters_scatter(struct ghp_worker *worker, const struct ghp_tensor *tensor,
                                       enum ghp_buffer_kind buffer_kind, const void *whole);

/* Hash of this worker's parts of all tensors (weights, moments that are not in optimizer shards, statistics), one for
 * each entry of the list: equal on all replicas of a shard, 0 for what is of another stage. Local. */
enum ghp_status ghp_parameters_hash(struct ghp_worker *worker, const struct ghp_tensors_list *list,
                                    uint64_t *hashes);

/* The first layer of the network of which this worker holds a weight, moment (unless in optimizer shards) or statistic
 * that is not finite; -1: none. Local. */
enum ghp_status ghp_parameters_not_finite(struct ghp_worker *worker, int *layer);

/* Hash of all whole tensors, or if workers' weights differ of each one's: the same under every plan that gives the
 * same bits. Collective over all workers. */
enum ghp_status ghp_parameters_fingerprint(struct ghp_worker *worker,
                                           const struct ghp_tensors_list *list, uint64_t *hash);

/* Whether all replicas of each shard have the same bits; those that may differ are not compared. Collective over all
 * workers.
 *
 * different   first tensor of the list that differs, -1: none */
enum ghp_status ghp_parameters_compare(struct ghp_worker *worker,
                                       const struct ghp_tensors_list *list, int *different);

#endif
