/* executor/transport/mpi/hierarchy.c - see mpi/hierarchy.h. */
#include "executor/transport/mpi/hierarchy.h"

enum {
    /* from this size on, a second level's phases cost less than its bytes */
    LEVEL_BYTES = 64 << 10,
    SEGMENTS = 8,              /* of a long message, */
    SEGMENT_BYTES = 256 << 10, /* but none shorter than this */
};

struct ghp_mpi_hierarchy ghp_mpi_hierarchy_of(const struct ghp_mpi_comm *comm, int64_t bytes,
                                              bool in_rank_order)
{
    int in_node = comm->in_node;
    struct ghp_shared_segment *shared = comm->transport->shares_memory ? comm->shared : NULL;
    struct ghp_mpi_hierarchy l = {.n = 1, .of = {{0, 1, comm->count, comm->index, NULL}}};

    if (in_node == comm->count) l.of[0].shared = shared;

    if (in_rank_order || bytes < LEVEL_BYTES || in_node <= 1 || in_node == comm->count) return l;
    l.n = 2;
    l.of[0] = (struct ghp_mpi_level){comm->index / in_node * in_node, 1, in_node,
                                     comm->index % in_node, shared};
    l.of[1] = (struct ghp_mpi_level){comm->index % in_node, in_node, comm->count / in_node,
                                     comm->index / in_node, NULL};
    return l;
}

int64_t ghp_mpi_segment_bytes(int64_t bytes)
{
    return bytes / SEGMENTS > SEGMENT_BYTES ? bytes / SEGMENTS : SEGMENT_BYTES;
}

static enum ghp_status post(struct ghp_mpi_comm *comm, const struct ghp_mpi_pipeline *p,
                            int64_t segment, int phase)
{
    comm->request_set = (int)(segment % GHP_MPI_REQUEST_SETS);
    return p->post(comm, p->work, segment, phase);
}

static enum ghp_status finish(struct ghp_mpi_comm *comm, const struct ghp_mpi_pipeline *p,
                              int64_t segment, int phase)
{
    GHP_TRY(ghp_mpi_wait(comm, (int)(segment % GHP_MPI_REQUEST_SETS)));
    return p->finish != NULL ? p->finish(p->work, segment, phase) : GHP_OK;
}

/* The newest segment is sent off before the older ones are added: the link does not wait for the adding. */
enum ghp_status ghp_mpi_pipeline_run(struct ghp_mpi_comm *comm, const struct ghp_mpi_pipeline *p)
{
    GHP_ASSERT(p->phases < GHP_MPI_REQUEST_SETS);
    for (int64_t tick = 0; tick < p->segments + p->phases; tick++) {
        if (tick < p->segments) GHP_TRY(post(comm, p, tick, 0));
        for (int phase = p->phases; phase >= 1; phase--) {
            int64_t segment = tick - phase;

            if (segment < 0 || segment >= p->segments) continue;
            GHP_TRY(finish(comm, p, segment, phase - 1));
            if (phase < p->phases) GHP_TRY(post(comm, p, segment, phase));
        }
    }
    comm->request_set = 0;
    return GHP_OK;
}
