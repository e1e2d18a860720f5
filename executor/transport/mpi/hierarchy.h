/* executor/transport/mpi/hierarchy.h - private to executor/transport/mpi: collectives that go level by level.
 *
 * A communicator's ranks are one level, or two if several of them share a node and several nodes take part: the
 * ranks of one node, and the ranks that have the same place in their nodes. A sum is scattered over the levels, each
 * rank adding its part of what the level before left it, and gathered back in reverse; so over two levels each node's
 * link carries what a ring would, and not a copy for every pair of ranks.
 *
 * Long messages go in segments, each phase after the other: while one segment is added, others are on their way.
 *
 *     tick            0      1      2      3      4
 *     segment 0   scatter  scatter gather gather                (two levels)
 *     segment 1           scatter  scatter gather gather
 *
 * All ranks post in the same order, tick by tick, and wait only for what was posted in the tick before; so no wait
 * waits for itself.
 *
 * Inside a node sums go over a shared segment instead of by messages if there is one: its phases are the same, and
 * so are sums.
 *
 * mpi/reduce.c has the sums, mpi/gather.c the gathers. Tested  tests/executor/transport/test_transport.c */
#ifndef GHP_EXECUTOR_TRANSPORT_MPI_HIERARCHY_H
#define GHP_EXECUTOR_TRANSPORT_MPI_HIERARCHY_H

#include "executor/transport/mpi/shared_segment.h"

enum { GHP_MPI_MAX_HIERARCHY = 2 };

static inline int64_t ghp_mpi_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline char *ghp_mpi_at(void *base, int64_t bytes)
{
    return (char *)base + bytes;
}

/* ---- levels ---- */

struct ghp_mpi_level { /* this rank and its peers */
    int first, stride, count, index;
    struct ghp_shared_segment *shared; /* of them; NULL: they send messages */
};

static inline int ghp_mpi_peer_at(const struct ghp_mpi_level *level, int index)
{
    return level->first + index * level->stride;
}

/* Peers in turns, starting after this rank, so that no rank is the first target of all: the i-th to receive from and
 * to send to, 1 <= i < count. */
static inline int ghp_mpi_earlier(const struct ghp_mpi_level *level, int i)
{
    return (level->index - i + level->count) % level->count;
}

static inline int ghp_mpi_later(const struct ghp_mpi_level *level, int i)
{
    return (level->index + i) % level->count;
}

struct ghp_mpi_hierarchy {
    int n;
    struct ghp_mpi_level of[GHP_MPI_MAX_HIERARCHY];
};

/* The levels of a collective that moves `bytes` in all. */
struct ghp_mpi_hierarchy ghp_mpi_hierarchy_of(const struct ghp_mpi_comm *comm, int64_t bytes,
                                              bool in_rank_order);

/* ---- segments, each phase after the other ---- */

/* How many bytes of a long message go in a segment, if nothing else limits it. */
int64_t ghp_mpi_segment_bytes(int64_t bytes);

struct ghp_mpi_pipeline {
    const void *work; /* what the functions know */
    int64_t segments;
    int phases;
    /* Posts the messages of a segment's phase. */
    enum ghp_status (*post)(struct ghp_mpi_comm *comm, const void *work, int64_t segment,
                            int phase);
    /* What follows when they have arrived; NULL: nothing. */
    enum ghp_status (*finish)(const void *work, int64_t segment, int phase);
};

/* Carries all segments through all phases. */
enum ghp_status ghp_mpi_pipeline_run(struct ghp_mpi_comm *comm,
                                     const struct ghp_mpi_pipeline *pipeline);

#endif
