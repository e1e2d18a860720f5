/* executor/transport/mpi/shared_segment.h - private to executor/transport/mpi: memory that the ranks of
 * one node share.
 *
 * A shared segment has a few slots for each rank, which it alone writes and all read. A sum goes over it chunk by
 * chunk:
 *
 *     publish   what the others are to add is copied into this rank's slot                    -> PUBLISHED
 *     add       once all have published: this rank's part, in rank order, is published too     -> ADDED
 *     consume   once all have added: their parts are copied                                  -> CONSUMED
 *
 * A slot is written again once all have consumed what was there. Chunks are numbered on from sum to sum, alike on all
 * ranks; they are small, so that what one rank publishes another finds in cache.
 *
 * Waiting tests for a moment and then sleeps until the rank that it waits for wakes it; it also wakes by itself to let
 * MPI continue with messages that are on their way: other ranks may be waiting for that.
 *
 * One thread at a time uses a shared segment: each communicator has its own. If no memory can be shared, there is
 * none, and sums go by messages, with the same bits: tests/executor/transport/test_transport.c holds both against
 * each other. */
#ifndef GHP_EXECUTOR_TRANSPORT_MPI_SHARED_SEGMENT_H
#define GHP_EXECUTOR_TRANSPORT_MPI_SHARED_SEGMENT_H

#include "executor/transport/mpi/communicator.h"

struct ghp_shared_segment_flags;

enum ghp_shared_segment_event {
    GHP_SHARED_SEGMENT_PUBLISHED,
    GHP_SHARED_SEGMENT_ADDED,
    GHP_SHARED_SEGMENT_CONSUMED,
    GHP_SHARED_SEGMENT_EVENTS
};

struct ghp_shared_segment {
    struct ghp_mpi_comm *comm; /* borrowed: its ranks on this node share the shared segment */
    int first;                 /* of them, an index in comm */
    int count, index;          /* of them, and this rank's place among them */
    int slots;                 /* of each rank, a power of two */
    int64_t slot_bytes;        /* a multiple of GHP_SHARED_SEGMENT_UNIT_BYTES */
    int64_t rank_bytes;        /* from one rank's slots to the next one's */
    uint32_t next;             /* number of the chunk to come; 0 follows 2^32 - 1 */
    struct ghp_shared_segment_flags *flags; /* [count], in the memory */
    char *base;                             /* in the memory */
    void *memory;
    int64_t bytes;
};

enum { GHP_SHARED_SEGMENT_UNIT_BYTES = 4096 };

/* The shared segment of comm->in_node ranks, > 1; *shared is NULL if they, or those of another node of the
 * communicator, cannot share memory.
 *
 * Returns   GHP_OK; GHP_ERR_COMM; GHP_ERR_NO_MEMORY on all ranks alike if one of them has none
 * Collective over the communicator */
enum ghp_status ghp_shared_segment_open(struct ghp_mpi_comm *comm,
                                        struct ghp_shared_segment **shared);
void ghp_shared_segment_close(struct ghp_shared_segment *shared); /* accepts NULL */

/* The place at which a rank publishes a chunk. */
static inline char *ghp_shared_segment_at(const struct ghp_shared_segment *shared, int rank,
                                          uint32_t chunk)
{
    return shared->base + rank * shared->rank_bytes +
           chunk % (uint32_t)shared->slots * shared->slot_bytes;
}

/* Waits until all have consumed what lies in this rank's slot for the chunk. */
enum ghp_status ghp_shared_segment_acquire(const struct ghp_shared_segment *shared, uint32_t chunk);
/* Says that this rank has come so far with the chunk; what it wrote before is seen by who awaits it. */
void ghp_shared_segment_signal(const struct ghp_shared_segment *shared,
                               enum ghp_shared_segment_event event, uint32_t chunk);
/* Waits until all others have come so far.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the label and the ranks that are missing, after the watchdog's limit */
enum ghp_status ghp_shared_segment_await(const struct ghp_shared_segment *shared,
                                         enum ghp_shared_segment_event event, uint32_t chunk);

#endif
