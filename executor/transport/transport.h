/* executor/transport/transport.h - all that the workers of a run need to work together: three things.
 *
 *     control      who they are and what they tell each other     transport/control.h
 *     collectives  sums and exchanges of tensors                  transport/collectives.h
 *     p2p          messages from one worker to one other          transport/p2p.h
 *
 * Over MPI (executor/transport/mpi). Tensors on a device have collectives of their own, in addition to the host's:
 * transport/exec_context.h. */
#ifndef GHP_EXECUTOR_TRANSPORT_TRANSPORT_H
#define GHP_EXECUTOR_TRANSPORT_TRANSPORT_H

#include "executor/transport/collectives.h"
#include "executor/transport/control.h"
#include "executor/transport/p2p.h"

struct ghp_emulation; /* executor/platform/emulation.h */

struct ghp_transport {
    struct ghp_control *control;
    struct ghp_collectives *host; /* in host memory */
    struct ghp_p2p *p2p;
};

/* Starts MPI, and with it all three.
 *
 * argc, argv   as main got them
 * watchdog_s   limit of one wait, > 0
 *
 * Returns   GHP_OK; GHP_ERR_COMM; GHP_ERR_NO_MEMORY
 * Collective over all workers
 * Tested    tests/executor/transport/test_transport.c, tests/tools/hardship/test_stall.sh */
enum ghp_status ghp_transport_start(int *argc, char ***argv, double watchdog_s,
                                    struct ghp_transport **transport);

/* From now on tensors arrive as by the emulation's ports and latency; control messages do as before. All workers call
 * it alike, before any collective of tensors. They must be on one node.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (several nodes); GHP_ERR_COMM; GHP_ERR_NO_MEMORY
 * Collective over all workers
 * Tested    tests/executor/transport/test_transport.c, tests/executor/transport/test_p2p.c */
enum ghp_status ghp_transport_emulate(struct ghp_transport *transport,
                                      const struct ghp_emulation *emulation);

/* Waits for all workers, who must be ending it as well, but no longer than the watchdog allows: then the process ends
 * with a message. Releases all communicators in host memory; accepts NULL. */
void ghp_transport_end(struct ghp_transport *transport);

#endif
