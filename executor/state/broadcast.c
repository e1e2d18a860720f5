/* executor/state/broadcast.c - see state/broadcast.h. */
#include "executor/state/broadcast.h"
#include "executor/platform/backoff.h"

enum { TAG = 0 }; /* nothing else is under way: any tag will do */

/* Once for a layer of a checkpoint: a message takes much longer than a pause, and nobody computes meanwhile. */
static const struct ghp_backoff pauses = {.first_ns = 20000, .last_ns = 20000, .growth = 1};

static enum ghp_status wait_all(const struct ghp_exec_context *exec, struct ghp_channel *channel,
                                int n)
{
    struct ghp_backoff_wait wait = ghp_backoff_begin(&pauses);

    for (int slot = 0; slot < n;) {
        bool done = false;

        GHP_TRY(channel->ops->poll(channel, slot, &done));
        if (done) {
            slot++;
            continue;
        }
        if (ghp_backoff_waited_s(&wait) > exec->transport->control->watchdog_s)
            return GHP_FAIL(GHP_ERR_COMM,
                            "worker %d waited too long for a tensor of another stage; see why the "
                            "others stopped, or raise --watchdog if they are only slow",
                            exec->transport->control->rank);
        ghp_backoff_pause(&wait);
    }
    return GHP_OK;
}

/* Messages of one segment of the data: from the owner to each other worker, or from it to this one. */
static enum ghp_status broadcast_segment(struct ghp_worker *worker, struct ghp_channel *channel,
                                         int owner, const struct ghp_p2p_message *like)
{
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    const struct ghp_placement *placement = ghp_worker_placement(worker);
    int rank = ghp_worker_program(worker)->rank, first = rank / placement->group * placement->group,
        n = 0;
    struct ghp_p2p_message m = *like;

    if (m.receives) {
        m.peer = owner;
        GHP_TRY(channel->ops->post(channel, n++, &m));
        return wait_all(exec, channel, n);
    }
    for (int r = first; r < first + placement->group && rank == owner; r++) {
        m.peer = r;
        if (r >= first + placement->from && r < first + placement->from + placement->held) continue;
        GHP_TRY(channel->ops->post(channel, n++, &m));
    }
    return wait_all(exec, channel, n);
}

enum ghp_status ghp_broadcast_layer(struct ghp_worker *worker, int layer, void *data, int64_t bytes)
{
    const struct ghp_exec_context *exec = ghp_worker_exec_context(worker);
    const struct ghp_program *program = ghp_worker_program(worker);
    const struct ghp_placement *placement = ghp_worker_placement(worker);
    struct ghp_channel *channel = NULL;
    int owner = program->rank / (placement->group > 0 ? placement->group : 1) * placement->group;
    enum ghp_status status = GHP_OK;

    if (placement->n_stages == 1) return GHP_OK;
    for (int i = 0; i < ghp_stage_of(program->staging, layer); i++)
        owner += program->staging->stage[i].workers;
    GHP_TRY(exec->transport->p2p->ops->open(exec->transport->p2p, placement->group, &channel));
    for (int64_t at = 0; at < bytes && status == GHP_OK; at += GHP_P2P_MESSAGE_BYTES) {
        struct ghp_p2p_message m = {
            .data = (char *)data + at,
            .bytes = bytes - at < GHP_P2P_MESSAGE_BYTES ? bytes - at : GHP_P2P_MESSAGE_BYTES,
            .tag = TAG,
            .receives = !ghp_worker_owns(worker, layer)};

        status = broadcast_segment(worker, channel, owner, &m);
    }
    channel->ops->close(channel);
    return status;
}
