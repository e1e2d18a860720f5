/* executor/transport/mpi/gather.c - all_gather: first between the nodes, where each rank's block goes once to every
 * node; then in them. */
#include "executor/transport/mpi/hierarchy.h"

#include <string.h>

struct gathering {
    struct ghp_mpi_hierarchy hierarchy;
    char *all;
    int64_t bytes_each; /* of a rank's block */
    int64_t room;       /* bytes of it in a segment */
};

/* The block that the level's r-th member brings to this phase: its own, or the one that it has of a node. */
static char *block_of(const struct gathering *g, const struct ghp_mpi_level *level, int r, int node)
{
    bool own = level == &g->hierarchy.of[g->hierarchy.n - 1];
    int block = own ? ghp_mpi_peer_at(level, r) : node * level->count + r;

    return g->all + block * g->bytes_each;
}

static enum ghp_status post_gathering(struct ghp_mpi_comm *comm, const void *work, int64_t segment,
                                      int phase)
{
    const struct gathering *g = work;
    const struct ghp_mpi_level *level = &g->hierarchy.of[g->hierarchy.n - 1 - phase];
    int blocks = phase == 0 ? 1 : g->hierarchy.of[1].count;
    int64_t begin = segment * g->room, bytes = ghp_mpi_smaller(g->room, g->bytes_each - begin);

    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_earlier(level, i);
        for (int node = 0; node < blocks; node++)
            GHP_TRY(ghp_mpi_receive(comm, block_of(g, level, r, node) + begin, bytes,
                                    ghp_mpi_peer_at(level, r)));
    }
    for (int i = 1; i < level->count; i++) {
        int r = ghp_mpi_later(level, i);
        for (int node = 0; node < blocks; node++)
            GHP_TRY(ghp_mpi_send(comm, block_of(g, level, level->index, node) + begin, bytes,
                                 ghp_mpi_peer_at(level, r)));
    }
    return GHP_OK;
}

enum ghp_status ghp_mpi_all_gather(struct ghp_mpi_comm *comm, const void *mine, void *all,
                                   int64_t bytes_each)
{
    int64_t bytes = bytes_each * comm->count, room = GHP_MPI_MESSAGE_BYTES;
    struct gathering g = {.hierarchy = ghp_mpi_hierarchy_of(comm, bytes, false),
                          .all = all,
                          .bytes_each = bytes_each};
    struct ghp_mpi_pipeline pipeline = {
        .work = &g, .phases = g.hierarchy.n, .post = post_gathering};
    char *place = ghp_mpi_at(all, comm->index * bytes_each);

    if (bytes_each == 0) return GHP_OK;
    if (place != mine) memcpy(place, mine, (size_t)bytes_each);
    if (comm->count == 1) return GHP_OK;
    if (g.hierarchy.n > 1) {
        room = ghp_mpi_segment_bytes(bytes) / comm->count;
        room = ghp_mpi_smaller(room > 0 ? room : 1, GHP_MPI_MESSAGE_BYTES);
    }
    g.room = room;
    pipeline.segments = (bytes_each + room - 1) / room;
    return ghp_mpi_pipeline_run(comm, &pipeline);
}
