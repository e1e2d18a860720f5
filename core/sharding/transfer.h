/* core/sharding/transfer.h - a tensor on its way from one stage's workers to another's: who sends which part of it to
 * whom.
 *
 * Stages have other worker counts and layouts. In each group every sender gives every receiver the samples, positions
 * and channels that both hold: one message a pair that shares any. Senders with equal copies each send their own slice
 * of the samples. Partial sums are all sent, and added by the receiver in the order of the senders. The geometry here
 * is what the cost, the buffers' sizes and the executor's messages are made of.
 *
 * Tested  tests/core/sharding/test_transfer.c (against tensors moved by hand) */
#ifndef GHP_CORE_SHARDING_TRANSFER_H
#define GHP_CORE_SHARDING_TRANSFER_H

#include "core/sharding/stage.h"

struct ghp_transfer {                  /* of one micro-batch's tensor, in every group alike */
    const struct ghp_staging *staging; /* borrowed: lives as long as the program */
    struct ghp_problem whole;          /* N, B */
    int n_layers;                      /* of the model */
    int from_stage, to_stage;
    struct ghp_layout from, to; /* `to` is never partial */
    struct ghp_shape shape;     /* of the whole tensor, per sample */
    int element_bytes;
};

struct ghp_slice {                     /* what one worker sends to another */
    int64_t first_sample, samples;     /* of the micro-batch */
    int64_t first_position, positions; /* of an image rows */
    int64_t first_channel, channels;
    bool packs;   /* a part of the channels, or positions, that the sender holds; never of both */
    bool unpacks; /* a part of those that the receiver wants; never of both */
};

struct ghp_traffic { /* of one worker */
    int messages;
    int64_t bytes;        /* sent, or received */
    int64_t packed_bytes; /* through a buffer: packed, or joined or added */
};

/* What `sender` sends to `receiver`, workers of the two stages; false: nothing. Local. */
bool ghp_transfer_slice(const struct ghp_transfer *transfer, const struct ghp_placement *sender,
                        const struct ghp_placement *receiver, struct ghp_slice *slice);
int64_t ghp_slice_bytes(const struct ghp_transfer *transfer, const struct ghp_slice *slice);

/* Partners of a worker: the ranks first .. first + n - 1 of the other stage in its group may share something with it,
 * no others do. */
struct ghp_peers {
    int first, n;
};
struct ghp_peers ghp_transfer_receivers(const struct ghp_transfer *transfer,
                                        const struct ghp_placement *sender);
struct ghp_peers ghp_transfer_senders(const struct ghp_transfer *transfer,
                                      const struct ghp_placement *receiver);

/* The workers of both stages in a rank's group; those of the earlier stage first. */
struct ghp_ranks ghp_transfer_ranks(const struct ghp_transfer *transfer, int rank);

/* Whether the receiver needs a buffer to join or add slices in, or to put them next to padding. */
bool ghp_transfer_joins(const struct ghp_transfer *transfer);

/* What a worker of the sending (or receiving) stage has to do, by its rank. */
struct ghp_traffic ghp_transfer_sent(const struct ghp_transfer *transfer, int rank);
struct ghp_traffic ghp_transfer_received(const struct ghp_transfer *transfer, int rank);

#endif
