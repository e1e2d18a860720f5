/* executor/transport/team.h - who works for a worker: who computes, who carries tensors, and who carries words.
 *
 * Words - what workers tell each other in host memory - go by the transport. Tensors go by the carrier: the same
 * transport where they lie in host memory, else one that knows the device. */
#ifndef GHP_EXECUTOR_TRANSPORT_TEAM_H
#define GHP_EXECUTOR_TRANSPORT_TEAM_H

#include "executor/backend/backend.h"
#include "executor/transport/transport.h"

struct ghp_team { /* borrowed by whoever uses it */
    const struct ghp_backend_ops *backend_ops;
    struct ghp_backend *backend;
    const struct ghp_transport_ops *transport_ops;
    struct ghp_transport *transport;
    const struct ghp_transport_ops *carrier_ops; /* NULL: the transport carries tensors too */
    struct ghp_transport *carrier;
};

/* The same with the carrier filled in. */
static inline struct ghp_team ghp_team_complete(struct ghp_team team)
{
    if (team.carrier_ops == NULL) {
        team.carrier_ops = team.transport_ops;
        team.carrier = team.transport;
    }
    return team;
}

static inline struct ghp_device ghp_team_device(const struct ghp_team *team)
{
    return ghp_backend_device(team->backend_ops, team->backend);
}

#endif
