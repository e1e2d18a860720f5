/* executor/engine/message.h - one send or receive of a program, at its addresses: what goes to whom, packing before,
 * joining after.
 *
 * core/sharding/transfer.h says which part of a tensor a pair of workers exchanges; here that becomes places in
 * memory. A slice whose samples are whole is sent from and received into the tensor itself, any other through scratch.
 * If the tensor is on a device, both are there too and a lane carries them (engine/lanes.h), or they are in its bounce
 * buffer (engine/bounce.h).
 *
 * Call order: ghp_message_open -> ghp_message_place (-> ghp_message_bounce) -> pack | messages | join, any number of
 * times -> ghp_message_close.
 * Tested    tests/executor/engine/test_message.c, test_stages.c */
#ifndef GHP_EXECUTOR_ENGINE_MESSAGE_H
#define GHP_EXECUTOR_ENGINE_MESSAGE_H

#include "core/program/program.h"
#include "executor/engine/bounce.h"
#include "executor/transport/exec_context.h"

struct ghp_message_slice {
    int peer;            /* rank */
    int64_t rows;        /* samples x pixels; samples, of some positions */
    int64_t block_bytes; /* of each row: its channels; those positions */
    int64_t offset;      /* of the first row in the tensor [bytes] */
    int64_t stride;      /* between rows of the tensor [bytes] */
    int64_t scratch;     /* offset in the scratch; -1: straight from or into the tensor */
    bool adds;           /* added to the slice before it, of the same place */
};

struct ghp_message {
    bool receives;
    int tag, micro;
    int from_stage, to_stage;
    struct ghp_ranks ranks; /* the workers of both in its group */
    int element_bytes;
    int n;
    struct ghp_message_slice *slices; /* in the order of the peers; owned */
    char *tensor, *scratch;           /* where it was placed, or bounces; borrowed */
    struct ghp_bounce *bounce;        /* of a tensor on a device that bounces, else NULL; owned */
};

/* The slices of a SEND or RECEIVE on `rank`.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_message_open(const struct ghp_instr *instr, int rank,
                                 struct ghp_message *message);
void ghp_message_close(struct ghp_message *message); /* accepts a zeroed one */
void ghp_message_place(struct ghp_message *message, void *tensor, void *scratch);

/* A message that is placed on a device goes through a bounce buffer from here on; in host memory nothing changes.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND
 * Local */
enum ghp_status ghp_message_bounce(struct ghp_message *message, struct ghp_device device);

/* A send's strided slices into scratch; a receive's from scratch into the tensor. Both in host memory. */
void ghp_message_pack(const struct ghp_message *message);
void ghp_message_join(const struct ghp_message *message);
/* The same on a device, packed in a stream of it, joined in its compute stream. There sums of more than two slices in
 * bfloat16 are rounded at each addition. */
enum ghp_status ghp_message_pack_on(const struct ghp_message *message, struct ghp_device device,
                                    enum ghp_device_stream stream);
enum ghp_status ghp_message_join_on(const struct ghp_message *message,
                                    const struct ghp_exec_context *exec);

struct ghp_p2p_message ghp_message_of_slice(const struct ghp_message *message, int slice);

#endif
