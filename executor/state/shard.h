/* executor/state/shard.h - which part of a whole parameter (or state) a worker holds under its layer's split.
 *
 * A shard is `rows` equal runs of the whole tensor: one run if the first dimension is divided, one run for each
 * first index if the second is, the whole tensor if none is. A vocabulary may also be padded
 * (core/model/vocabulary.h): runs then end in zeros or, if another dimension is divided, runs of zeros follow. Which
 * dimension is divided follows from the sizes of the parameter at the local operation (core/model/op.h), as the
 * buffers' sizes do. */
#ifndef GHP_EXECUTOR_STATE_SHARD_H
#define GHP_EXECUTOR_STATE_SHARD_H

#include "core/sharding/split.h"

struct ghp_shard {
    int tp_size;                /* members that together hold the tensor; 1: each holds all of it */
    int member;                 /* which of them this worker is */
    int64_t elements;           /* of the whole tensor */
    int64_t dims[GHP_MAX_DIMS]; /* of the part */
    int64_t rows;               /* runs */
    int64_t padding;            /* further runs, of zeros */
    int64_t run;   /* elements of one run on this worker, with padding (core/sharding/split.h) */
    int64_t apart; /* elements of the whole from the first member's run to its next */
    int64_t valid; /* elements of a run that are in the whole; the rest is padding, zeros */
};

/* The shard of a parameter or running statistic.
 *
 * kind     in the operation's facts
 * local    the layer's operation as this worker runs it
 * split    the layer's
 * number   this worker's, in its stage
 * whole    the tensor
 *
 * Local. Tested tests/executor/state/test_shard.c */
struct ghp_shard ghp_shard_of(const struct ghp_op_param *kind, const struct ghp_local *local,
                              struct ghp_split split, int number, const struct ghp_param *whole);
/* The same of another member. */
struct ghp_shard ghp_shard_member(struct ghp_shard shard, int member);

int64_t ghp_shard_elements(struct ghp_shard shard); /* on this worker */
bool ghp_shard_is_whole(struct ghp_shard shard);    /* the part is the tensor, without padding */

/* Between the whole tensor and this worker's part; element_bytes 4 or 8. */
void ghp_shard_take(struct ghp_shard shard, int element_bytes, const void *whole, void *part);
/* The part of any member back into the whole. */
void ghp_shard_put(struct ghp_shard shard, int element_bytes, const void *part, void *whole);

#endif
