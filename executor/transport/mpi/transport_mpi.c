/* executor/transport/mpi/transport_mpi.c - the transport over MPI: start, communicators, the end.
 *
 * MPI carries single messages only; every collective is ghp's own (mpi/reduce.c, mpi/gather.c, mpi/collectives.c),
 * because MPI promises neither the order of a reduction nor the same bits on all ranks. Inside a node sums need no
 * messages where its ranks can share memory (mpi/shared_segment.h). Two threads use it at once, one a stream, each on
 * communicators of its own. */
#include "executor/transport/mpi/shared_segment.h"

#include "core/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    COMM_TAG = 1,
    TIMER_SLACK_NS = 1000 /* sleeps end when they should: the default adds 50 us to each */
};

static void comm_close(struct ghp_comm *comm)
{
    if (comm == NULL) return;
    ghp_shared_segment_close(comm->shared);
    if (comm->mpi != MPI_COMM_NULL && comm->mpi != MPI_COMM_WORLD) MPI_Comm_free(&comm->mpi);
    for (int i = 0; i < GHP_MPI_REQUEST_SETS; i++) {
        free(comm->posted[i].requests);
        free(comm->posted[i].receives);
        free(comm->posted[i].peer);
    }
    free(comm->words);
    free(comm);
}

/* An MPI communicator of exactly these ranks, made by its members alone. */
static enum ghp_status comm_make(struct ghp_comm *c)
{
    static const char doing[] = "making a communicator";
    int n = c->count, *members = c->posted[0].peer; /* not used yet, and long enough */
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    enum ghp_status status = GHP_OK;

    if (n == 1) return GHP_OK;
    for (int i = 0; i < n; i++)
        members[i] = ghp_ranks_at(c->ranks, i);
    GHP_TRY_GOTO(status, ghp_mpi_check(MPI_Comm_group(MPI_COMM_WORLD, &world), doing), done);
    GHP_TRY_GOTO(status, ghp_mpi_check(MPI_Group_incl(world, n, members, &group), doing), done);
    GHP_TRY_GOTO(
        status,
        ghp_mpi_check(MPI_Comm_create_group(MPI_COMM_WORLD, group, COMM_TAG, &c->mpi), doing),
        done);
    GHP_TRY_GOTO(status, ghp_mpi_check(MPI_Comm_set_errhandler(c->mpi, MPI_ERRORS_RETURN), doing),
                 done);
done:
    if (group != MPI_GROUP_NULL) MPI_Group_free(&group);
    if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
    return status;
}

static struct ghp_comm *comm_find(const struct ghp_transport *t, struct ghp_ranks ranks,
                                  enum ghp_stream stream)
{
    for (struct ghp_comm *c = t->comms; c != NULL; c = c->next)
        if (ghp_ranks_same(c->ranks, ranks) && c->stream == stream) return c;
    return NULL;
}

static int node_at(const struct ghp_transport *t, struct ghp_ranks ranks, int i)
{
    return t->node_of[ghp_ranks_at(ranks, i)];
}

/* Ranks in each node, where the communicator's ranks fill one node after the other with as many in each; else 0. */
static int ranks_in_node(const struct ghp_transport *t, struct ghp_ranks ranks)
{
    int n = 1;

    if (t->node_of == NULL) return 0;
    while (n < ranks.count && node_at(t, ranks, n) == node_at(t, ranks, 0))
        n++;
    if (ranks.count % n != 0) return 0;
    for (int i = n; i < ranks.count; i++) {
        bool same = node_at(t, ranks, i) == node_at(t, ranks, i - 1);

        if (same != (i % n != 0)) return 0;
        for (int j = 0; !same && j < i; j += n)
            if (node_at(t, ranks, j) == node_at(t, ranks, i)) return 0;
    }
    return n;
}

/* Sums of the communicator inside a node go through shared memory from here on, where there can be some. */
static enum ghp_status open_shared(struct ghp_comm *c)
{
    struct ghp_transport *t = c->transport;

    if (c->in_node <= 1) return GHP_OK;
    GHP_TRY(ghp_shared_segment_open(c, &c->shared));
    if (c->shared != NULL || t->told) return GHP_OK;
    t->told = true;
    if (t->rank == 0)
        ghp_note("workers of one host cannot share memory here, so they add by messages, which is "
                 "slower; see whether they may open each other's files in /proc");
    return GHP_OK;
}

/* All of it that is memory of ours; NULL without. */
static struct ghp_comm *comm_allocate(struct ghp_transport *t, struct ghp_ranks ranks)
{
    struct ghp_comm *c = ghp_alloc(1, sizeof(*c));
    size_t slots = 2 * (size_t)ranks.count;
    bool whole;

    if (c == NULL) return NULL;
    c->mpi = MPI_COMM_NULL;
    c->transport = t;
    c->ranks = ranks;
    c->count = ranks.count;
    c->words = ghp_alloc((size_t)ranks.count, sizeof(*c->words));
    whole = c->words != NULL;
    for (int i = 0; i < GHP_MPI_REQUEST_SETS; i++) {
        struct ghp_mpi_posted *posted = &c->posted[i];

        posted->requests = ghp_alloc(slots, sizeof(*posted->requests));
        posted->peer = ghp_alloc(slots, sizeof(*posted->peer));
        posted->receives = ghp_alloc(slots, sizeof(*posted->receives));
        whole =
            whole && posted->requests != NULL && posted->peer != NULL && posted->receives != NULL;
    }
    if (whole) return c;
    comm_close(c);
    return NULL;
}

static enum ghp_status mpi_group(struct ghp_transport *t, struct ghp_ranks ranks,
                                 enum ghp_stream stream, struct ghp_comm **comm)
{
    enum ghp_status status = GHP_OK;
    struct ghp_comm *c;

    *comm = comm_find(t, ranks, stream);
    if (*comm != NULL) return GHP_OK;
    GHP_ASSERT(ranks.count >= 1 && ranks.stride >= 1);
    c = comm_allocate(t, ranks);
    if (c == NULL) return ghp_mpi_status_barrier(t, ranks, NULL, GHP_NO_MEMORY());
    c->stream = stream;
    c->index = ranks.count == 1 ? 0 : ghp_ranks_index(ranks, t->rank);
    c->in_node = ranks_in_node(t, ranks);
    c->label = "making a communicator";
    GHP_TRY_GOTO(status, ghp_mpi_status_barrier(t, ranks, c, GHP_OK), fail);
    ghp_mpi_guard_begin(c->label, t->watchdog_s);
    status = comm_make(c);
    ghp_mpi_guard_end();
    GHP_TRY_GOTO(status, status, fail);
    GHP_TRY_GOTO(status, open_shared(c), fail);
    c->label = "no instruction";
    c->next = t->comms;
    t->comms = c;
    *comm = c;
    return GHP_OK;
fail:
    comm_close(c);
    return status;
}

static void release(struct ghp_transport *t)
{
    while (t->comms != NULL) {
        struct ghp_comm *c = t->comms;

        t->comms = c->next;
        comm_close(c);
    }
    comm_close(t->last);
    if (t->channel_comm != MPI_COMM_NULL) MPI_Comm_free(&t->channel_comm);
    free(t->node_of);
    free(t);
}

/* MPI's own end would wait for a missing worker for ever, and not say for whom. */
static void mpi_close(struct ghp_transport *t)
{
    if (t == NULL) return;
    if (ghp_mpi_status_barrier(t, t->last->ranks, t->last, GHP_OK) != GHP_OK) {
        if (t->rank > 0) sleep(1); /* rank 0 speaks first */
        ghp_log_failure("%s", ghp_status_message());
        ghp_mpi_abort(ghp_status_exit_code(GHP_ERR_COMM));
    }
    ghp_mpi_guard_begin("ending MPI", t->watchdog_s);
    release(t);
    MPI_Finalize();
    ghp_mpi_guard_close();
}

struct whereabouts { /* of a rank */
    char host[256];
    struct ghp_processors processors;
};

/* Who is where: ranks whose hosts have one name share a node, and together its processors. */
static enum ghp_status find_nodes(struct ghp_transport *t)
{
    enum ghp_status status = GHP_OK;
    struct whereabouts mine = {.processors = ghp_processors_of(0)};
    struct whereabouts *all = ghp_alloc((size_t)t->size, sizeof(*all));
    int *node_of = ghp_alloc((size_t)t->size, sizeof(*node_of));

    if (all == NULL || node_of == NULL) status = GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, ghp_mpi_agree(t->world, status), done);
    if (gethostname(mine.host, sizeof(mine.host) - 1) != 0) mine.host[0] = '\0';
    GHP_TRY_GOTO(status, ghp_mpi_all_gather(t->world, &mine, all, (int64_t)sizeof(mine)), done);
    for (int r = 0; r < t->size; r++) {
        int first = 0;

        while (strcmp(all[first].host, all[r].host) != 0)
            first++;
        node_of[r] = first;
    }
    for (int r = 0; r < t->size; r++)
        if (node_of[r] == node_of[t->rank]) ghp_processors_join(&t->processors, &all[r].processors);
    t->node_of = node_of;
    node_of = NULL;
    t->world->in_node = ranks_in_node(t, t->world->ranks);
    status = open_shared(t->world);
done:
    free(node_of);
    free(all);
    return status;
}

static enum ghp_status start_mpi(int *argc, char ***argv, double watchdog_s)
{
    int provided = 0, error;

    prctl(PR_SET_TIMERSLACK, (unsigned long)TIMER_SLACK_NS, 0UL, 0UL, 0UL);
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1); /* waiting is ours: see ghp_mpi_wait */
    GHP_TRY(ghp_mpi_guard_open(watchdog_s));
    ghp_mpi_guard_begin("starting MPI", watchdog_s);
    error = MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    ghp_mpi_guard_end();
    if (error != MPI_SUCCESS)
        return GHP_FAIL(GHP_ERR_COMM,
                        "cannot start MPI; start with 'mpirun -n N', or alone for one worker");
    if (provided < MPI_THREAD_MULTIPLE)
        return GHP_FAIL(GHP_ERR_COMM,
                        "this MPI cannot be used by two threads at once (MPI_THREAD_MULTIPLE); "
                        "use one built with thread support, such as Debian's Open MPI");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return GHP_OK;
}

/* A transport of all workers; where it cannot be, the process ends without waiting for others: main says why. */
static enum ghp_status mpi_open(int *argc, char ***argv, double watchdog_s,
                                struct ghp_transport **transport)
{
    struct ghp_transport *t;
    struct ghp_ranks all = {.stride = 1};
    enum ghp_status status = GHP_OK;

    *transport = NULL;
    GHP_TRY(start_mpi(argc, argv, watchdog_s));
    t = ghp_alloc(1, sizeof(*t));
    if (t == NULL) return GHP_NO_MEMORY();
    t->channel_comm = MPI_COMM_NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->size);
    ghp_mpi_guard_know(t->rank, t->size);
    t->watchdog_s = watchdog_s;
    t->shares_memory = true;
    all.count = t->size;
    t->last = comm_allocate(t, all);
    if (t->last == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    t->last->index = t->rank;
    t->last->label = "ending";
    GHP_TRY_GOTO(status, mpi_group(t, all, GHP_STREAM_COMPUTE, &t->world), fail);
    t->world->label = "start";
    GHP_TRY_GOTO(status, find_nodes(t), fail);
    if (t->node_of[t->rank] == t->rank) ghp_mpi_clean(); /* one of each node */
    *transport = t;
    return GHP_OK;
fail:
    if (t->rank > 0) sleep(1); /* rank 0 speaks first: its end ends the others */
    return status;
}

static int mpi_rank(const struct ghp_transport *t)
{
    return t->rank;
}

static int mpi_size(const struct ghp_transport *t)
{
    return t->size;
}

static const struct ghp_processors *mpi_processors(const struct ghp_transport *t)
{
    return &t->processors;
}

static void mpi_place(const struct ghp_transport *t, int *here, int *place)
{
    *here = *place = 0;
    for (int r = 0; r < t->size; r++) {
        if (t->node_of[r] != t->node_of[t->rank]) continue;
        *place += r < t->rank;
        *here += 1;
    }
}

static void mpi_sum_in_rank_order(struct ghp_transport *t, bool on)
{
    t->in_rank_order = on;
}

static void mpi_label(struct ghp_comm *comm, const char *label)
{
    comm->label = label;
}

static double mpi_watchdog_s(const struct ghp_transport *t)
{
    return t->watchdog_s;
}

static void mpi_abort(struct ghp_transport *t, int exit_code)
{
    (void)t;
    ghp_mpi_abort(exit_code);
}

static bool mpi_settled(const struct ghp_transport *t)
{
    return t->settled || t->size == 1;
}

const struct ghp_transport_ops ghp_transport_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .close = mpi_close,
    .rank = mpi_rank,
    .size = mpi_size,
    .processors = mpi_processors,
    .place = mpi_place,
    .sum_in_rank_order = mpi_sum_in_rank_order,
    .group = mpi_group,
    .label = mpi_label,
    .all_reduce = ghp_mpi_all_reduce,
    .reduce_scatter = ghp_mpi_reduce_scatter,
    .all_gather = ghp_mpi_all_gather,
    .all_to_all = ghp_mpi_all_to_all,
    .barrier = ghp_mpi_barrier,
    .agree = ghp_mpi_agree,
    .tell = ghp_mpi_tell,
    .abort = mpi_abort,
    .settled = mpi_settled,
    .alone = ghp_mpi_alone,
    .channel_open = ghp_mpi_channel_open,
    .post = ghp_mpi_channel_post,
    .poll = ghp_mpi_channel_poll,
    .channel_close = ghp_mpi_channel_close,
    .watchdog_s = mpi_watchdog_s,
};
