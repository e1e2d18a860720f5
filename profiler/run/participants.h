/* profiler/run/participants.h - who measures together: all ranks, and the nodes that they are on.
 *
 * Private to profiler/.  Tested  tests/profiler/run/test_run.c, tests/profiler/validate/test_validation.c */
#ifndef GHP_PROFILER_RUN_PARTICIPANTS_H
#define GHP_PROFILER_RUN_PARTICIPANTS_H

#include "profiler/measure/measure.h"

/* Describes all ranks of the transport to callers that only communicate: no backend, no sample length.
 *
 * m   filled; borrows the transport
 *
 * Collective over all ranks */
enum ghp_status ghp_participants_ranks(struct ghp_transport *transport, struct ghp_measure *m);

/* How many nodes the ranks are on, and that they fill one after the other, as plans will place them.
 *
 * nodes, ranks_per_node   receive the numbers; the last node may have fewer ranks
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (ranks lie otherwise); GHP_ERR_COMM; GHP_ERR_NO_MEMORY
 * Collective over m->world */
enum ghp_status ghp_participants_nodes(const struct ghp_measure *m, int *nodes,
                                       int *ranks_per_node);

#endif
