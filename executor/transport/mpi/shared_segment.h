/* executor/transport/mpi/shared_segment.h - private to executor/transport/mpi/transport_mpi*.c: memory that the ranks of one node share.
 *
 * A board has a few slots for each rank, which it alone writes and all read.  A sum goes over it sheet by sheet:
 *
 *     lay    what the others are to add is copied into this rank's slot              -> LAID
 *     add    once all have laid out: this rank's part, in rank order, laid out too   -> ADDED
 *     take   once all have added: their parts are copied                             -> TAKEN
 *
 * A slot is written again once all have taken what was there.  Sheets are numbered on from sum to sum, alike on all
 * ranks; they are small, so that what one rank lays out another finds in cache.
 *
 * Waiting tests for a moment and then sleeps until the rank that it waits for wakes it; it wakes by itself, too, to let
 * MPI go on with what is on its way: other ranks may be waiting for that.
 *
 * One thread at a time uses a board: each communicator has its own.  Where no memory can be shared there is none, and
 * sums go by messages, with the same bits: tests/executor/transport/mpi/test_transport.c holds both against each other.
 * */
#ifndef GHP_EXECUTOR_TRANSPORT_MPI_SHARED_SEGMENT_H
#define GHP_EXECUTOR_TRANSPORT_MPI_SHARED_SEGMENT_H

#include "executor/transport/mpi/communicator.h"

struct ghp_board_mark;

enum ghp_board_event { GHP_BOARD_LAID, GHP_BOARD_ADDED, GHP_BOARD_TAKEN, GHP_BOARD_EVENTS };

struct ghp_board {
    struct ghp_comm *comm;        /* borrowed: its ranks on this node share the board */
    int first;                    /* of them, an index in comm */
    int count, index;             /* of them, and this rank's place among them */
    int slots;                    /* of each rank, a power of two */
    int64_t slot_bytes;           /* a multiple of GHP_BOARD_UNIT_BYTES */
    int64_t rank_bytes;           /* from one rank's slots to the next one's */
    uint32_t next;                /* number of the sheet to come; 0 follows 2^32 - 1 */
    struct ghp_board_mark *marks; /* [count], in the memory */
    char *places;                 /* in the memory */
    void *memory;
    int64_t bytes;
};

enum { GHP_BOARD_UNIT_BYTES = 4096 };

/* The board of comm->in_node ranks, > 1; *board is NULL where they, or those of another node of the communicator, cannot
 * share memory.
 *
 * Returns   GHP_OK; GHP_ERR_COMM; GHP_ERR_NO_MEMORY on all ranks alike where one of them has none
 * Collective over the communicator */
enum ghp_status ghp_board_open(struct ghp_comm *comm, struct ghp_board **board);
void ghp_board_close(struct ghp_board *board); /* accepts NULL */

/* Where a rank lays out a sheet. */
static inline char *ghp_board_at(const struct ghp_board *board, int rank, uint32_t sheet)
{
    return board->places + rank * board->rank_bytes +
           sheet % (uint32_t)board->slots * board->slot_bytes;
}

/* Waits until all have taken what lies in this rank's slot for the sheet. */
enum ghp_status ghp_board_claim(const struct ghp_board *board, uint32_t sheet);
/* Says that this rank has come so far with the sheet; what it wrote before is seen by who awaits it. */
void ghp_board_say(const struct ghp_board *board, enum ghp_board_event event, uint32_t sheet);
/* Waits until all others have come so far.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the label and the ranks that have not, after the watchdog's limit */
enum ghp_status ghp_board_await(const struct ghp_board *board, enum ghp_board_event event,
                                uint32_t sheet);

#endif
