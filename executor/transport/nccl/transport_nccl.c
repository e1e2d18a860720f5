/* executor/transport/nccl/transport_nccl.c - see transport_nccl.h.
 *
 * Communicators block only while they are made, connect for the first time, and end, all under the watchdog; else a
 * call returns when its collective is enqueued, and `check` asks what became of it. */
#include "executor/transport/nccl/transport_nccl.h"

#include "core/base/log.h"
#include "executor/backend/cuda/backend_cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nccl_comm {
    struct ghp_comm base;
    struct nccl *all; /* borrowed */
    struct nccl_comm *next;
    ncclComm_t nccl; /* NULL: not made, or aborted */
    bool taped;      /* a collective of it was recorded */
    bool connected;  /* its first collective was enqueued */
    int lane;        /* its number, -1: it has collectives */
};

struct registration { /* of memory that a communicator knows */
    struct nccl_comm *comm;
    void *base, *handle;
    struct registration *next;
};

struct nccl {
    struct ghp_collectives base;
    const struct ghp_transport *transport; /* borrowed, as the device's backend */
    struct ghp_device device;
    const struct ghp_nccl *nccl;
    struct nccl_comm *comms;            /* owned */
    struct registration *registrations; /* owned */
    int n_comms, n_lanes;
};

/* A lane's receives wait on multiprocessors until their senders come, next to products. With all lanes in use they leave
 * most of a GPU to these. */
enum { LANE_BLOCKS = 4 };

static cudaStream_t stream_of(const struct nccl_comm *c)
{
    return ghp_cuda_of(c->all->device.backend)->streams[c->base.device_stream];
}

static int rank_of(const struct nccl *t)
{
    return t->transport->control->rank;
}

static const char *label_of(const struct nccl_comm *c)
{
    return c->base.label != NULL ? c->base.label : "a collective";
}

/* Whether reductions are to use few multiprocessors, and NCCL has memory that communicators can know. */
static bool registers(const struct nccl *t)
{
    const struct ghp_nccl *n = t->nccl;
    bool symmetric = n->ncclCommWindowRegister != NULL && n->ncclCommWindowDeregister != NULL,
         local = n->ncclCommRegister != NULL && n->ncclCommDeregister != NULL,
         memory = n->ncclMemAlloc != NULL && n->ncclMemFree != NULL && (symmetric || local);

    return memory && t->device.backend->config.reduce_multiprocessors > 0;
}

/* ---- failures ---- */

/* Ends all communicators, so that nothing of them runs on; they are not used again. Those of recorded steps are left
 * to the process's end: from 2.26 on NCCL would wait here until nothing recorded knows them any more. */
static void abort_all(struct nccl *t)
{
    for (struct nccl_comm *c = t->comms; c != NULL; c = c->next) {
        if (c->nccl != NULL && !c->taped) t->nccl->ncclCommAbort(c->nccl);
        c->nccl = NULL;
    }
}

static enum ghp_status fail(struct nccl *t, const struct nccl_comm *c, ncclResult_t result,
                            const char *label)
{
    char reason[256] = "";
    const char *last = t->nccl->ncclGetLastError(c->nccl);

    snprintf(reason, sizeof reason, "%s", last != NULL ? last : "");
    reason[strcspn(reason, "\n")] = '\0';
    abort_all(t);
    return GHP_FAIL(GHP_ERR_COMM,
                    "NCCL failed on worker %d in '%s': %s%s%s; NCCL_DEBUG=WARN says more, "
                    "--transport mpi goes without it",
                    rank_of(t), label, t->nccl->ncclGetErrorString(result),
                    reason[0] != '\0' ? ", " : "", reason);
}

static enum ghp_status fail_late(struct nccl *t, double waited_s, const char *label)
{
    abort_all(t);
    return GHP_FAIL(
        GHP_ERR_COMM,
        "worker %d waited %.0f s in '%s': another worker did not come, or a kernel does "
        "not end; see why, or raise --watchdog",
        rank_of(t), waited_s, label);
}

/* NCCL is at `what`, which it may never leave; NULL: it has left it. */
static void guard(const struct nccl *t, const char *what)
{
    struct ghp_control *control = t->transport->control;

    control->ops->guard(control, "NCCL", what);
}

static enum ghp_status done(struct nccl_comm *c, ncclResult_t result)
{
    if (!c->connected) guard(c->all, NULL);
    c->connected = true;
    return result == ncclSuccess ? GHP_OK : fail(c->all, c, result, label_of(c));
}

/* A communicator that may be used. */
static enum ghp_status enter(struct nccl_comm *c)
{
    if (c->nccl == NULL)
        return GHP_FAIL(GHP_ERR_COMM,
                        "NCCL was ended on worker %d before '%s'; see the first failure",
                        rank_of(c->all), label_of(c));
    if (ghp_cuda_of(c->all->device.backend)->recording) c->taped = true;
    GHP_TRY(ghp_cuda_enter(c->all->device.backend));
    if (!c->connected) guard(c->all, label_of(c));
    return GHP_OK;
}

/* ---- communicators ---- */

/* An identity of the rank that is place `first` among some ranks, to all of these that are in its communicator. */
static enum ghp_status share_identity(struct nccl *t, struct ghp_ranks among,
                                      enum ghp_stream stream, int first, ncclUniqueId *id)
{
    struct ghp_control *control = t->transport->control;
    struct ghp_collectives *host = t->transport->host;
    struct ghp_comm *host_comm = NULL;
    ncclUniqueId *all = ghp_alloc((size_t)among.count, sizeof *all);
    enum ghp_status status = all != NULL ? GHP_OK : GHP_NO_MEMORY();
    ncclResult_t made = ncclSuccess;

    memset(id, 0, sizeof *id);
    if (first == ghp_ranks_index(among, rank_of(t))) made = t->nccl->ncclGetUniqueId(id);
    GHP_TRY_GOTO(status, ghp_collectives_group(host, among, stream, &host_comm), done);
    host_comm->label = "bringing NCCL together";
    if (status == GHP_OK && made != ncclSuccess)
        status = GHP_FAIL(GHP_ERR_COMM, "NCCL cannot start: %s; NCCL_DEBUG=WARN says why",
                          t->nccl->ncclGetErrorString(made));
    GHP_TRY_GOTO(status, ghp_control_agree(control, host_comm, status), done);
    GHP_TRY_GOTO(status, host_comm->ops->all_gather(host_comm, id, all, (int64_t)sizeof *id), done);
    if (first >= 0) *id = all[first];
done:
    free(all);
    return status;
}

static enum ghp_status make_comm(struct nccl_comm *c, ncclUniqueId id)
{
    struct nccl *t = c->all;
    int rank = ghp_ranks_index(c->base.ranks, rank_of(t));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int reduce = t->device.backend->config.reduce_multiprocessors;
    int blocks = c->lane >= 0 ? LANE_BLOCKS : c->base.stream == GHP_STREAM_COMM ? reduce : 0;
    ncclResult_t made;

    if (blocks > 0) {
        config.minCTAs = 1;
        config.maxCTAs = blocks;
    }
    c->base.label = "bringing NCCL together";
    guard(t, c->base.label);
    made = t->nccl->ncclCommInitRankConfig(&c->nccl, c->base.ranks.count, id, rank, &config);
    guard(t, NULL);
    return made == ncclSuccess ? GHP_OK : fail(t, c, made, c->base.label);
}

/* A communicator that is in the list, and not made yet. */
static struct nccl_comm *add_comm(struct nccl *t, struct ghp_ranks ranks, enum ghp_stream stream)
{
    struct nccl_comm *c = ghp_alloc(1, sizeof *c);

    if (c == NULL) return NULL;
    c->base.ops = &ghp_nccl_collectives;
    c->base.ranks = ranks;
    c->base.stream = stream;
    c->base.device_stream =
        stream == GHP_STREAM_COMM ? GHP_DEVICE_STREAM_COMM : GHP_DEVICE_STREAM_COMPUTE;
    c->all = t;
    c->next = t->comms;
    c->lane = -1;
    t->comms = c;
    t->n_comms++;
    return c;
}

static struct nccl_comm *find_comm(const struct nccl *t, struct ghp_ranks ranks,
                                   enum ghp_stream stream, int lane)
{
    for (struct nccl_comm *c = t->comms; c != NULL; c = c->next)
        if (ghp_ranks_same(c->base.ranks, ranks) && c->base.stream == stream && c->lane == lane)
            return c;
    return NULL;
}

static enum ghp_status nccl_group(struct ghp_collectives *nccl, struct ghp_ranks ranks,
                                  enum ghp_stream stream, struct ghp_comm **comm)
{
    struct nccl *t = (struct nccl *)nccl;
    struct nccl_comm *c = find_comm(t, ranks, stream, -1);
    ncclUniqueId id;

    *comm = c != NULL ? &c->base : NULL;
    if (c != NULL) return GHP_OK;
    c = add_comm(t, ranks, stream);
    if (c == NULL) return GHP_NO_MEMORY();
    *comm = &c->base;
    GHP_TRY(ghp_cuda_enter(t->device.backend));
    GHP_TRY(share_identity(t, ranks, stream, 0, &id));
    return make_comm(c, id);
}

/* A lane's stream: the next one. */
static enum ghp_status open_lane(struct nccl *t, struct nccl_comm *c)
{
    if (t->n_lanes == GHP_DEVICE_MAX_LANES)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "worker %d exchanges tensors with other stages in more than %d orders; use "
                        "--transport mpi, or fewer stages",
                        rank_of(t), GHP_DEVICE_MAX_LANES);
    c->base.device_stream = (enum ghp_device_stream)(GHP_DEVICE_STREAM_LANES + t->n_lanes++);
    return ghp_cuda_open_stream(t->device.backend, c->base.device_stream);
}

/* All workers find a lane, or none: those that take no part know no better, so they always share identities. */
static enum ghp_status nccl_lane(struct ghp_collectives *nccl, struct ghp_ranks ranks, int number,
                                 struct ghp_comm **comm)
{
    struct nccl *t = (struct nccl *)nccl;
    struct ghp_ranks all = {.count = t->transport->control->size, .stride = 1};
    bool takes_part = ranks.count > 0;
    struct nccl_comm *c = takes_part ? find_comm(t, ranks, GHP_STREAM_TRANSFER, number) : NULL;
    ncclUniqueId id;

    *comm = c != NULL ? &c->base : NULL;
    GHP_TRY(ghp_cuda_enter(t->device.backend));
    GHP_TRY(
        share_identity(t, all, GHP_STREAM_COMPUTE, takes_part ? ghp_ranks_at(ranks, 0) : -1, &id));
    if (!takes_part || c != NULL) return GHP_OK;
    c = add_comm(t, ranks, GHP_STREAM_TRANSFER);
    if (c == NULL) return GHP_NO_MEMORY();
    c->lane = number;
    *comm = &c->base;
    GHP_TRY(open_lane(t, c));
    return make_comm(c, id);
}

enum ghp_status ghp_nccl_open(const struct ghp_transport *transport, struct ghp_device device,
                              struct ghp_collectives **nccl)
{
    const struct ghp_nccl *library = NULL;
    struct nccl *t;

    *nccl = NULL;
    GHP_TRY(ghp_nccl_load(&library));
    t = ghp_alloc(1, sizeof *t);
    if (t == NULL) return GHP_NO_MEMORY();
    *t = (struct nccl){.base = {.ops = &ghp_nccl_collectives},
                       .transport = transport,
                       .device = device,
                       .nccl = library};
    *nccl = &t->base;
    if (device.backend->config.reduce_multiprocessors > 0 && !registers(t))
        ghp_note("this NCCL registers no memory: reductions copy; 2.19 and later need not");
    return GHP_OK;
}

int ghp_nccl_comms(const struct ghp_collectives *nccl)
{
    return ((const struct nccl *)nccl)->n_comms;
}

/* Lets a communicator end what it does. */
static void end_comm(struct nccl_comm *c)
{
    const struct ghp_nccl *nccl = c->all->nccl;

    if (c->nccl == NULL) return;
    guard(c->all, "ending NCCL");
    if (nccl->ncclCommFinalize(c->nccl) == ncclSuccess) nccl->ncclCommDestroy(c->nccl);
    guard(c->all, NULL);
    c->nccl = NULL;
}

static void nccl_close(struct ghp_collectives *nccl)
{
    struct nccl *t = (struct nccl *)nccl;

    ghp_cuda_enter(t->device.backend);
    if (nccl->failed) abort_all(t);
    while (t->comms != NULL) {
        struct nccl_comm *c = t->comms;

        end_comm(c);
        t->comms = c->next;
        free(c);
    }
    free(t);
}

/* ---- registered memory ---- */

#ifdef NCCL_WIN_COLL_SYMMETRIC
enum { SYMMETRIC = NCCL_WIN_COLL_SYMMETRIC };
#else
enum { SYMMETRIC = 1 }; /* as NCCL 2.27 has it */
#endif

/* Memory that NCCL cannot have the device may have yet, and else it says what is missing. */
static enum ghp_status nccl_allocate_memory(struct ghp_collectives *nccl, int64_t bytes,
                                            void **base)
{
    struct nccl *t = (struct nccl *)nccl;

    *base = NULL;
    if (bytes == 0 || !registers(t)) return GHP_OK;
    GHP_TRY(ghp_cuda_enter(t->device.backend));
    if (t->nccl->ncclMemAlloc(base, (size_t)bytes) != ncclSuccess) {
        cudaGetLastError();
        *base = NULL;
        return GHP_OK;
    }
    GHP_TRY(ghp_device_clear(t->device, GHP_DEVICE_STREAM_COPY, *base, bytes));
    return ghp_device_finish(t->device, GHP_DEVICE_STREAM_COPY);
}

/* all[i]: what the communicator's rank i says, through host memory. */
static enum ghp_status hear_all(struct nccl_comm *c, const void *mine, void *all, size_t bytes)
{
    struct ghp_comm *host = NULL;

    GHP_TRY(ghp_collectives_group(c->all->transport->host, c->base.ranks, c->base.stream, &host));
    host->label = "registering memory with NCCL";
    return host->ops->all_gather(host, mine, all, (int64_t)bytes);
}

/* Registers it with this rank; *handle stays NULL if NCCL has no use for it. */
static ncclResult_t add_registration(struct nccl_comm *c, const struct ghp_comm_memory *memory,
                                     bool alike, void **handle)
{
    const struct ghp_nccl *nccl = c->all->nccl;
    size_t bytes = (size_t)memory->bytes;
    ncclResult_t result;

    guard(c->all, "registering memory with NCCL");
    result = nccl->ncclCommWindowRegister != NULL
                 ? nccl->ncclCommWindowRegister(c->nccl, memory->base, bytes, handle,
                                                alike ? SYMMETRIC : 0)
                 : nccl->ncclCommRegister(c->nccl, memory->base, bytes, handle);
    guard(c->all, NULL);
    return result;
}

/* An aborted communicator knows nothing any more. */
static void end_registration(const struct registration *r)
{
    const struct ghp_nccl *nccl = r->comm->all->nccl;

    if (r->comm->nccl == NULL || r->handle == NULL) return;
    if (nccl->ncclCommWindowRegister != NULL)
        nccl->ncclCommWindowDeregister(r->comm->nccl, r->handle);
    else
        nccl->ncclCommDeregister(r->comm->nccl, r->handle);
}

/* Whether all have memory, and lies alike in all of it what lies in this rank's. */
static bool compare_memory(const struct ghp_comm_memory *all, int n,
                           const struct ghp_comm_memory *mine, bool *alike)
{
    bool have = true;

    *alike = true;
    for (int i = 0; i < n; i++) {
        have = have && all[i].base != NULL;
        *alike = *alike && all[i].layout == mine->layout && all[i].bytes == mine->bytes;
    }
    return have;
}

/* If one rank cannot, none does. */
static enum ghp_status nccl_register_memory(struct ghp_comm *comm,
                                            const struct ghp_comm_memory *memory)
{
    struct nccl_comm *c = (struct nccl_comm *)comm;
    int n = comm->ranks.count, failed = 0;
    struct ghp_comm_memory *all;
    struct registration *made;
    ncclResult_t mine, *results;
    enum ghp_status status;
    bool alike = false;

    if (!registers(c->all)) return GHP_OK;
    all = ghp_alloc((size_t)n, sizeof *all);
    results = ghp_alloc((size_t)n, sizeof *results);
    made = ghp_alloc(1, sizeof *made);
    status = all != NULL && results != NULL && made != NULL ? GHP_OK : GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, status, done);
    GHP_TRY_GOTO(status, hear_all(c, memory, all, sizeof *memory), done);
    if (!compare_memory(all, n, memory, &alike)) goto done;
    *made = (struct registration){c, memory->base, NULL, c->all->registrations};
    mine = add_registration(c, memory, alike, &made->handle);
    if (mine != ncclSuccess) made->handle = NULL;
    GHP_TRY_GOTO(status, hear_all(c, &mine, results, sizeof mine), done);
    while (failed < n && results[failed] == ncclSuccess)
        failed++;
    if (failed < n) {
        end_registration(made);
        ghp_note("NCCL cannot register memory on worker %d (%s): reductions copy; "
                 "NCCL_DEBUG=WARN says why",
                 ghp_ranks_at(comm->ranks, failed),
                 c->all->nccl->ncclGetErrorString(results[failed]));
        goto done;
    }
    c->all->registrations = made;
    made = NULL;
done:
    free(made);
    free(results);
    free(all);
    return status;
}

static void nccl_release_memory(struct ghp_collectives *nccl, void *base)
{
    struct nccl *t = (struct nccl *)nccl;
    struct registration **at = &t->registrations;

    if (ghp_cuda_enter(t->device.backend) != GHP_OK) return;
    while (*at != NULL) {
        struct registration *r = *at;

        if (r->base == base) {
            end_registration(r);
            *at = r->next;
            free(r);
        } else {
            at = &r->next;
        }
    }
    t->nccl->ncclMemFree(base);
}

/* ---- collectives ---- */

static ncclDataType_t type_of(int element_bytes)
{
    return element_bytes == 2 ? ncclBfloat16 : element_bytes == 4 ? ncclFloat32 : ncclFloat64;
}

static enum ghp_status nccl_all_reduce(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    struct nccl_comm *c = (struct nccl_comm *)comm;

    GHP_TRY(enter(c));
    return done(c, c->all->nccl->ncclAllReduce(sum->in, sum->out, (size_t)sum->elements,
                                               type_of(sum->element_bytes), ncclSum, c->nccl,
                                               stream_of(c)));
}

static enum ghp_status nccl_reduce_scatter(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    struct nccl_comm *c = (struct nccl_comm *)comm;

    GHP_TRY(enter(c));
    return done(c, c->all->nccl->ncclReduceScatter(sum->in, sum->out, (size_t)sum->elements,
                                                   type_of(sum->element_bytes), ncclSum, c->nccl,
                                                   stream_of(c)));
}

static enum ghp_status nccl_all_gather(struct ghp_comm *comm, const void *mine, void *all,
                                       int64_t bytes_each)
{
    struct nccl_comm *c = (struct nccl_comm *)comm;

    GHP_TRY(enter(c));
    return done(c, c->all->nccl->ncclAllGather(mine, all, (size_t)bytes_each, ncclInt8, c->nccl,
                                               stream_of(c)));
}

/* Messages on their way at once, as one call. */
static enum ghp_status nccl_exchange(struct ghp_comm *comm, const struct ghp_p2p_message *messages,
                                     int n)
{
    struct nccl_comm *c = (struct nccl_comm *)comm;
    const struct ghp_nccl *nccl = c->all->nccl;
    ncclResult_t result, ended;

    GHP_TRY(enter(c));
    result = nccl->ncclGroupStart();
    if (result != ncclSuccess) return done(c, result);
    for (int i = 0; i < n && result == ncclSuccess; i++) {
        const struct ghp_p2p_message *m = &messages[i];
        int peer = ghp_ranks_index(c->base.ranks, m->peer);

        result =
            m->receives
                ? nccl->ncclRecv(m->data, (size_t)m->bytes, ncclInt8, peer, c->nccl, stream_of(c))
                : nccl->ncclSend(m->data, (size_t)m->bytes, ncclInt8, peer, c->nccl, stream_of(c));
    }
    ended = nccl->ncclGroupEnd();
    return done(c, result == ncclSuccess ? ended : result);
}

/* One send and one receive with each rank, as one call. */
static enum ghp_status nccl_all_to_all(struct ghp_comm *comm, const void *in, void *out,
                                       int64_t bytes_each)
{
    struct nccl_comm *c = (struct nccl_comm *)comm;
    const struct ghp_nccl *nccl = c->all->nccl;
    ncclResult_t result, ended;

    GHP_TRY(enter(c));
    result = nccl->ncclGroupStart();
    if (result != ncclSuccess) return done(c, result);
    for (int i = 0; i < c->base.ranks.count && result == ncclSuccess; i++) {
        result = nccl->ncclSend((const char *)in + i * bytes_each, (size_t)bytes_each, ncclInt8, i,
                                c->nccl, stream_of(c));
        if (result == ncclSuccess)
            result = nccl->ncclRecv((char *)out + i * bytes_each, (size_t)bytes_each, ncclInt8, i,
                                    c->nccl, stream_of(c));
    }
    ended = nccl->ncclGroupEnd();
    return done(c, result == ncclSuccess ? ended : result);
}

static enum ghp_status nccl_shift(struct ghp_comm *comm, const void *in, void *out, int64_t bytes)
{
    int p = comm->ranks.count;
    int me = ghp_ranks_index(comm->ranks, rank_of(((struct nccl_comm *)comm)->all));
    const struct ghp_p2p_message both[2] = {{.data = (void *)(uintptr_t)in,
                                             .bytes = bytes,
                                             .peer = ghp_ranks_at(comm->ranks, (me + 1) % p)},
                                            {.data = out,
                                             .bytes = bytes,
                                             .peer = ghp_ranks_at(comm->ranks, (me + p - 1) % p),
                                             .receives = true}};

    return nccl_exchange(comm, both, 2);
}

static enum ghp_status nccl_check(struct ghp_collectives *nccl, double waited_s, const char *label)
{
    struct nccl *t = (struct nccl *)nccl;

    for (struct nccl_comm *c = t->comms; c != NULL; c = c->next) {
        ncclResult_t result = ncclSuccess, asked;

        if (c->nccl == NULL) continue;
        asked = t->nccl->ncclCommGetAsyncError(c->nccl, &result);
        if (asked != ncclSuccess) result = asked;
        if (result != ncclSuccess && result != ncclInProgress) return fail(t, c, result, label);
    }
    return waited_s > t->transport->control->watchdog_s ? fail_late(t, waited_s, label) : GHP_OK;
}

const struct ghp_collectives_ops ghp_nccl_collectives = {.name = "nccl",
                                                         .enqueues = true,
                                                         .close = nccl_close,
                                                         .group = nccl_group,
                                                         .all_reduce = nccl_all_reduce,
                                                         .reduce_scatter = nccl_reduce_scatter,
                                                         .all_gather = nccl_all_gather,
                                                         .all_to_all = nccl_all_to_all,
                                                         .shift = nccl_shift,
                                                         .lane = nccl_lane,
                                                         .exchange = nccl_exchange,
                                                         .check = nccl_check,
                                                         .allocate_memory = nccl_allocate_memory,
                                                         .register_memory = nccl_register_memory,
                                                         .release_memory = nccl_release_memory};
