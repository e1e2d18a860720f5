/* executor/transport/nccl/transport_nccl.c - see transport_nccl.h.
 *
 * Communicators block only while they are made and connect for the first time; else a call returns when its collective
 * is enqueued, and `check` asks what became of it. */
#include "executor/transport/nccl/transport_nccl.h"

#include "executor/backend/cuda/backend_cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ghp_comm {
    struct ghp_transport *transport;
    struct ghp_comm *next;
    struct ghp_ranks ranks;
    enum ghp_stream stream;
    ncclComm_t nccl; /* NULL: not made, or aborted */
    bool taped;      /* a collective of it was recorded */
    const char *label;
};

struct ghp_transport {
    struct ghp_nccl_request request;
    const struct ghp_nccl *nccl;
    struct ghp_comm *comms; /* owned */
    int n_comms;
};

static cudaStream_t stream_of(const struct ghp_comm *c)
{
    enum ghp_device_stream stream =
        c->stream == GHP_STREAM_COMM ? GHP_DEVICE_STREAM_COMM : GHP_DEVICE_STREAM_COMPUTE;

    return ghp_cuda_of(c->transport->request.device.backend)->streams[stream];
}

static int rank_of(const struct ghp_transport *t)
{
    return t->request.base_ops->rank(t->request.base);
}

static const char *label_of(const struct ghp_comm *c)
{
    return c->label != NULL ? c->label : "a collective";
}

/* ---- failures ---- */

/* Ends all communicators, so that nothing of them runs on; they are not used again. Those of recorded steps are left
 * to the process's end: from 2.26 on NCCL would wait here until nothing recorded knows them any more. */
static void abort_all(struct ghp_transport *t)
{
    for (struct ghp_comm *c = t->comms; c != NULL; c = c->next) {
        if (c->nccl != NULL && !c->taped) t->nccl->ncclCommAbort(c->nccl);
        c->nccl = NULL;
    }
}

static enum ghp_status fail(struct ghp_transport *t, const struct ghp_comm *c, ncclResult_t result,
                            const char *label)
{
    char reason[256] = "";
    const char *last = t->nccl->ncclGetLastError(c->nccl);

    snprintf(reason, sizeof(reason), "%s", last != NULL ? last : "");
    reason[strcspn(reason, "\n")] = '\0';
    abort_all(t);
    return GHP_FAIL(GHP_ERR_COMM,
                    "NCCL failed on worker %d in '%s': %s%s%s; NCCL_DEBUG=WARN says more, "
                    "--transport mpi goes without it",
                    rank_of(t), label, t->nccl->ncclGetErrorString(result),
                    reason[0] != '\0' ? ", " : "", reason);
}

static enum ghp_status fail_late(struct ghp_transport *t, double waited_s, const char *label)
{
    abort_all(t);
    return GHP_FAIL(GHP_ERR_COMM,
                    "worker %d waited %.0f s in '%s': another worker did not come; see why it "
                    "stopped, or raise --watchdog",
                    rank_of(t), waited_s, label);
}

static enum ghp_status done(struct ghp_comm *c, ncclResult_t result)
{
    return result == ncclSuccess ? GHP_OK : fail(c->transport, c, result, label_of(c));
}

/* A communicator that may be used. */
static enum ghp_status enter(struct ghp_comm *c)
{
    if (c->nccl == NULL)
        return GHP_FAIL(GHP_ERR_COMM,
                        "NCCL was ended on worker %d before '%s'; see the first failure",
                        rank_of(c->transport), label_of(c));
    if (ghp_cuda_of(c->transport->request.device.backend)->recording) c->taped = true;
    return ghp_cuda_enter(c->transport->request.device.backend);
}

/* ---- communicators ---- */

/* The first rank's identity, to all of the group. */
static enum ghp_status share_identity(struct ghp_comm *c, bool first, ncclUniqueId *id)
{
    struct ghp_transport *t = c->transport;
    const struct ghp_transport_ops *base = t->request.base_ops;
    struct ghp_comm *words = NULL;
    ncclUniqueId *all = ghp_alloc((size_t)c->ranks.count, sizeof(*all));
    enum ghp_status status = all != NULL ? GHP_OK : GHP_NO_MEMORY();
    ncclResult_t made = ncclSuccess;

    if (first) made = t->nccl->ncclGetUniqueId(id);
    GHP_TRY_GOTO(status, base->group(t->request.base, c->ranks, c->stream, &words), done);
    base->label(words, "bringing NCCL together");
    if (status == GHP_OK && made != ncclSuccess)
        status = GHP_FAIL(GHP_ERR_COMM, "NCCL cannot start: %s; NCCL_DEBUG=WARN says why",
                          t->nccl->ncclGetErrorString(made));
    GHP_TRY_GOTO(status, base->agree(words, status), done);
    GHP_TRY_GOTO(status, base->all_gather(words, id, all, (int64_t)sizeof(*id)), done);
    *id = all[0];
done:
    free(all);
    return status;
}

static enum ghp_status make_comm(struct ghp_comm *c)
{
    struct ghp_transport *t = c->transport;
    int rank = ghp_ranks_index(c->ranks, rank_of(t));
    ncclUniqueId id;

    memset(&id, 0, sizeof(id));
    GHP_TRY(ghp_cuda_enter(t->request.device.backend));
    GHP_TRY(share_identity(c, rank == 0, &id));
    c->label = "bringing NCCL together";
    return done(c, t->nccl->ncclCommInitRank(&c->nccl, c->ranks.count, id, rank));
}

static enum ghp_status nccl_group(struct ghp_transport *t, struct ghp_ranks ranks,
                                  enum ghp_stream stream, struct ghp_comm **comm)
{
    struct ghp_comm *c;

    for (c = t->comms; c != NULL; c = c->next)
        if (ghp_ranks_same(c->ranks, ranks) && c->stream == stream) {
            *comm = c;
            return GHP_OK;
        }
    c = ghp_alloc(1, sizeof(*c));
    *comm = c;
    if (c == NULL) return GHP_NO_MEMORY();
    *c = (struct ghp_comm){.transport = t, .next = t->comms, .ranks = ranks, .stream = stream};
    t->comms = c;
    t->n_comms++;
    return make_comm(c);
}

enum ghp_status ghp_nccl_open(const struct ghp_nccl_request *request,
                              struct ghp_transport **transport)
{
    const struct ghp_nccl *nccl = NULL;
    struct ghp_transport *t;

    *transport = NULL;
    GHP_TRY(ghp_nccl_load(&nccl));
    t = ghp_alloc(1, sizeof(*t));
    if (t == NULL) return GHP_NO_MEMORY();
    *t = (struct ghp_transport){.request = *request, .nccl = nccl};
    *transport = t;
    return GHP_OK;
}

int ghp_nccl_comms(const struct ghp_transport *t)
{
    return t->n_comms;
}

/* Lets a communicator end what it does. */
static void end_comm(struct ghp_comm *c)
{
    const struct ghp_nccl *nccl = c->transport->nccl;

    if (c->nccl != NULL && nccl->ncclCommFinalize(c->nccl) == ncclSuccess)
        nccl->ncclCommDestroy(c->nccl);
    c->nccl = NULL;
}

static void nccl_close(struct ghp_transport *t)
{
    if (t == NULL) return;
    ghp_cuda_enter(t->request.device.backend);
    while (t->comms != NULL) {
        struct ghp_comm *c = t->comms;

        end_comm(c);
        t->comms = c->next;
        free(c);
    }
    free(t);
}

static void nccl_label(struct ghp_comm *c, const char *label)
{
    c->label = label;
}

/* ---- collectives ---- */

static ncclDataType_t type_of(int element_bytes)
{
    return element_bytes == 2 ? ncclBfloat16 : element_bytes == 4 ? ncclFloat32 : ncclFloat64;
}

static enum ghp_status nccl_all_reduce(struct ghp_comm *c, const struct ghp_reduction *sum)
{
    GHP_TRY(enter(c));
    return done(c, c->transport->nccl->ncclAllReduce(sum->in, sum->out, (size_t)sum->elements,
                                                     type_of(sum->element_bytes), ncclSum, c->nccl,
                                                     stream_of(c)));
}

static enum ghp_status nccl_reduce_scatter(struct ghp_comm *c, const struct ghp_reduction *sum)
{
    GHP_TRY(enter(c));
    return done(c, c->transport->nccl->ncclReduceScatter(sum->in, sum->out, (size_t)sum->elements,
                                                         type_of(sum->element_bytes), ncclSum,
                                                         c->nccl, stream_of(c)));
}

static enum ghp_status nccl_all_gather(struct ghp_comm *c, const void *mine, void *all,
                                       int64_t bytes_each)
{
    GHP_TRY(enter(c));
    return done(c, c->transport->nccl->ncclAllGather(mine, all, (size_t)bytes_each, ncclInt8,
                                                     c->nccl, stream_of(c)));
}

/* One send and one receive with each rank, as one call. */
static enum ghp_status nccl_all_to_all(struct ghp_comm *c, const void *in, void *out,
                                       int64_t bytes_each)
{
    const struct ghp_nccl *nccl = c->transport->nccl;
    ncclResult_t result, ended;

    GHP_TRY(enter(c));
    result = nccl->ncclGroupStart();
    if (result != ncclSuccess) return done(c, result);
    for (int i = 0; i < c->ranks.count && result == ncclSuccess; i++) {
        result = nccl->ncclSend((const char *)in + i * bytes_each, (size_t)bytes_each, ncclInt8, i,
                                c->nccl, stream_of(c));
        if (result == ncclSuccess)
            result = nccl->ncclRecv((char *)out + i * bytes_each, (size_t)bytes_each, ncclInt8, i,
                                    c->nccl, stream_of(c));
    }
    ended = nccl->ncclGroupEnd();
    return done(c, result == ncclSuccess ? ended : result);
}

static enum ghp_status nccl_check(struct ghp_transport *t, double waited_s, const char *label)
{
    for (struct ghp_comm *c = t->comms; c != NULL; c = c->next) {
        ncclResult_t result = ncclSuccess, asked;

        if (c->nccl == NULL) continue;
        asked = t->nccl->ncclCommGetAsyncError(c->nccl, &result);
        if (asked != ncclSuccess) result = asked;
        if (result != ncclSuccess && result != ncclInProgress) return fail(t, c, result, label);
    }
    return waited_s > t->request.watchdog_s ? fail_late(t, waited_s, label) : GHP_OK;
}

/* ---- words: the base's ---- */

static int nccl_size(const struct ghp_transport *t)
{
    return t->request.base_ops->size(t->request.base);
}

static void nccl_abort(struct ghp_transport *t, int exit_code)
{
    abort_all(t);
    t->request.base_ops->abort(t->request.base, exit_code);
}

const struct ghp_transport_ops ghp_transport_nccl = {.name = "nccl",
                                                     .enqueues = true,
                                                     .close = nccl_close,
                                                     .rank = rank_of,
                                                     .size = nccl_size,
                                                     .group = nccl_group,
                                                     .label = nccl_label,
                                                     .all_reduce = nccl_all_reduce,
                                                     .reduce_scatter = nccl_reduce_scatter,
                                                     .all_gather = nccl_all_gather,
                                                     .all_to_all = nccl_all_to_all,
                                                     .abort = nccl_abort,
                                                     .check = nccl_check};
