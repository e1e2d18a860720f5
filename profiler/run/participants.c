/* profiler/run/participants.c - see run/participants.h. */
#include "profiler/run/participants.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_BYTES = 256 };

enum ghp_status ghp_participants_ranks(struct ghp_transport *transport, struct ghp_measure *m)
{
    struct ghp_ranks all = {.first = 0, .count = transport->control->size, .stride = 1};

    *m = (struct ghp_measure){.transport = transport};
    m->rank = transport->control->rank;
    m->size = all.count;
    GHP_TRY(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &m->world));
    m->world->label = "profiling";
    return GHP_OK;
}

enum ghp_status ghp_participants_nodes(const struct ghp_measure *m, int *nodes, int *ranks_per_node)
{
    char mine[HOST_BYTES] = "";
    char *all = ghp_alloc((size_t)m->size, HOST_BYTES);
    enum ghp_status status = all != NULL ? GHP_OK : GHP_NO_MEMORY();
    double unused = 0;

    if (gethostname(mine, sizeof mine - 1) != 0) mine[0] = '\0';
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    GHP_TRY_GOTO(status, m->world->ops->all_gather(m->world, mine, all, HOST_BYTES), done);
    *nodes = 1;
    for (int r = 1; r < m->size; r++)
        *nodes += strcmp(all + (size_t)r * HOST_BYTES, all + (size_t)(r - 1) * HOST_BYTES) != 0;
    *ranks_per_node = (m->size + *nodes - 1) / *nodes;
    for (int r = 0; r < m->size && status == GHP_OK; r++) {
        const char *first = all + (size_t)(r / *ranks_per_node * *ranks_per_node) * HOST_BYTES;

        if (strcmp(all + (size_t)r * HOST_BYTES, first) != 0)
            status = GHP_FAIL(GHP_ERR_INPUT,
                              "ranks do not fill one node after the other (rank %d is "
                              "on '%s'); start with mpirun --map-by slot and equal "
                              "slots",
                              r, all + (size_t)r * HOST_BYTES);
    }
done:
    free(all);
    return status;
}
