/* executor/transport/device/device_transport.h - who carries tensors between workers: chosen once a session, for a team whose backend is open.
 *
 * Tensors in host memory go by the team's transport. Tensors on devices go by NCCL where every rank has a device of its
 * own, else through pinned host memory. */
#ifndef GHP_EXECUTOR_TRANSPORT_DEVICE_DEVICE_TRANSPORT_H
#define GHP_EXECUTOR_TRANSPORT_DEVICE_DEVICE_TRANSPORT_H

#include "executor/transport/team.h"

enum ghp_carrier_choice { GHP_CARRIER_AUTO, GHP_CARRIER_NCCL, GHP_CARRIER_MPI, GHP_CARRIER_COUNT };
extern const char *const ghp_carrier_names[GHP_CARRIER_COUNT + 1]; /* NULL-terminated */

/* Fills in the team's carrier.
 *
 * watchdog_s   longest wait, > 0
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (NCCL for ranks that share a GPU, or for host memory); GHP_ERR_BACKEND; the same on all
 * Collective over all workers
 * Tested    tests/executor/transport/nccl/test_nccl.c */
enum ghp_status ghp_carrier_open(struct ghp_team *team, enum ghp_carrier_choice choice,
                                 double watchdog_s);
/* Closes what it opened; before the backend. */
void ghp_carrier_close(struct ghp_team *team);

#endif
