/* executor/state/broadcast.c - see state/broadcast.h. */
#include "executor/state/broadcast.h"
#include "core/base/clock.h"

#include <time.h>

enum { PAUSE_NS = 20000, TAG = 0 }; /* nothing else is under way: any tag will do */

static enum ghp_status wait_all(const struct ghp_team *team, struct ghp_mailbox *box, int n)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    double begin = ghp_now_s();

    for (int slot = 0; slot < n;) {
        bool done = false;

        GHP_TRY(team->transport_ops->poll(box, slot, &done));
        if (done) {
            slot++;
            continue;
        }
        if (ghp_now_s() - begin > team->transport_ops->watchdog_s(team->transport))
            return GHP_FAIL(GHP_ERR_COMM,
                            "worker %d waited too long for a tensor of another stage; see why the "
                            "others stopped, or raise --watchdog if they are only slow",
                            team->transport_ops->rank(team->transport));
        nanosleep(&pause, NULL);
    }
    return GHP_OK;
}

/* Messages of one piece of the data: from the holder to each other worker, or from it to this one. */
static enum ghp_status relay_piece(struct ghp_worker *worker, struct ghp_mailbox *box, int holder,
                                   const struct ghp_message *like)
{
    const struct ghp_team *team = ghp_worker_team(worker);
    const struct ghp_seat *seat = ghp_worker_seat(worker);
    int rank = ghp_worker_work(worker)->rank, first = rank / seat->group * seat->group, n = 0;
    struct ghp_message m = *like;

    if (m.receives) {
        m.peer = holder;
        GHP_TRY(team->transport_ops->post(box, n++, &m));
        return wait_all(team, box, n);
    }
    for (int r = first; r < first + seat->group && rank == holder; r++) {
        m.peer = r;
        if (r >= first + seat->from && r < first + seat->from + seat->held) continue;
        GHP_TRY(team->transport_ops->post(box, n++, &m));
    }
    return wait_all(team, box, n);
}

enum ghp_status ghp_relay(struct ghp_worker *worker, int layer, void *data, int64_t bytes)
{
    const struct ghp_team *team = ghp_worker_team(worker);
    const struct ghp_work *work = ghp_worker_work(worker);
    const struct ghp_seat *seat = ghp_worker_seat(worker);
    struct ghp_mailbox *box = NULL;
    int holder = work->rank / (seat->group > 0 ? seat->group : 1) * seat->group;
    enum ghp_status status = GHP_OK;

    if (seat->n_stages == 1) return GHP_OK;
    for (int i = 0; i < ghp_stage_of(work->staging, layer); i++)
        holder += work->staging->stage[i].workers;
    GHP_TRY(team->transport_ops->mail(team->transport, seat->group, &box));
    for (int64_t at = 0; at < bytes && status == GHP_OK; at += GHP_MESSAGE_BYTES) {
        struct ghp_message m = {.data = (char *)data + at,
                                .bytes =
                                    bytes - at < GHP_MESSAGE_BYTES ? bytes - at : GHP_MESSAGE_BYTES,
                                .tag = TAG,
                                .receives = !ghp_worker_owns(worker, layer)};

        status = relay_piece(worker, box, holder, &m);
    }
    team->transport_ops->empty(box);
    return status;
}
