/* executor/transport/mpi/transport_mpi.c - the transport over MPI: start, communicators, the end.
 *
 * MPI carries single messages only; every collective is ghp's own (mpi/reduce.c, mpi/gather.c, mpi/collectives.c),
 * because MPI promises neither the order of a reduction nor the same bits on all ranks. Inside a node sums need no
 * messages if its ranks can share memory (mpi/shared_segment.h). Two threads use it at once, one a stream, each on
 * communicators of its own. */
#include "executor/transport/mpi/shared_segment.h"

#include "core/base/log.h"
#include "executor/platform/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    COMM_TAG = 1,
    TIMER_SLACK_NS = 1000 /* sleeps end when they should: the default adds 50 us to each */
};

/* ---- control ---- */

static enum ghp_status control_barrier(struct ghp_control *control, struct ghp_comm *comm)
{
    (void)control;
    return ghp_mpi_barrier(ghp_mpi_comm_of(comm));
}

static enum ghp_status control_agree(struct ghp_control *control, struct ghp_comm *comm,
                                     enum ghp_status status)
{
    (void)control;
    return ghp_mpi_agree(ghp_mpi_comm_of(comm), status);
}

static enum ghp_status control_tell(struct ghp_control *control, struct ghp_comm *comm,
                                    struct ghp_control_message mine,
                                    const struct ghp_control_message **messages)
{
    (void)control;
    return ghp_mpi_tell(ghp_mpi_comm_of(comm), mine, messages);
}

static void control_alone(struct ghp_control *control, bool alone)
{
    (void)control;
    ghp_mpi_alone(alone);
}

static void control_guard(struct ghp_control *control, const char *library, const char *what)
{
    if (what != NULL)
        ghp_mpi_guard_begin(library, what, control->watchdog_s);
    else
        ghp_mpi_guard_end();
}

static bool control_settled(const struct ghp_control *control)
{
    const struct ghp_mpi *t =
        (const void *)((const char *)control - offsetof(struct ghp_mpi, control));

    return t->settled || control->size == 1;
}

static void control_abort(struct ghp_control *control, int exit_code)
{
    (void)control;
    ghp_mpi_abort(exit_code);
}

static const struct ghp_control_ops control_ops = {.barrier = control_barrier,
                                                   .agree = control_agree,
                                                   .tell = control_tell,
                                                   .alone = control_alone,
                                                   .guard = control_guard,
                                                   .settled = control_settled,
                                                   .abort = control_abort};

/* ---- communicators ---- */

static void comm_close(struct ghp_mpi_comm *comm)
{
    if (comm == NULL) return;
    ghp_shared_segment_close(comm->shared);
    if (comm->mpi != MPI_COMM_NULL && comm->mpi != MPI_COMM_WORLD) MPI_Comm_free(&comm->mpi);
    for (int i = 0; i < GHP_MPI_REQUEST_SETS; i++) {
        free(comm->posted[i].requests);
        free(comm->posted[i].stamps);
        free(comm->posted[i].receives);
        free(comm->posted[i].peer);
    }
    free(comm->messages);
    free(comm);
}

/* An MPI communicator of exactly these ranks, made by its members alone. */
static enum ghp_status comm_make(struct ghp_mpi_comm *c)
{
    static const char doing[] = "making a communicator";
    int n = c->count, *members = c->posted[0].peer; /* not used yet, and long enough */
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    enum ghp_status status = GHP_OK;

    if (n == 1) return GHP_OK;
    for (int i = 0; i < n; i++)
        members[i] = ghp_ranks_at(c->base.ranks, i);
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

static struct ghp_mpi_comm *comm_find(const struct ghp_mpi *t, struct ghp_ranks ranks,
                                      enum ghp_stream stream)
{
    for (struct ghp_mpi_comm *c = t->comms; c != NULL; c = c->next)
        if (ghp_ranks_same(c->base.ranks, ranks) && c->base.stream == stream) return c;
    return NULL;
}

static int node_at(const struct ghp_mpi *t, struct ghp_ranks ranks, int i)
{
    return t->node_of[ghp_ranks_at(ranks, i)];
}

/* Ranks in each node, if the communicator's ranks fill one node after the other with as many in each; else 0. */
static int ranks_in_node(const struct ghp_mpi *t, struct ghp_ranks ranks)
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

/* Sums of the communicator inside a node go through shared memory from here on, if there can be some. */
static enum ghp_status open_shared(struct ghp_mpi_comm *c)
{
    struct ghp_mpi *t = c->transport;

    if (c->in_node <= 1) return GHP_OK;
    GHP_TRY(ghp_shared_segment_open(c, &c->shared));
    if (c->shared != NULL || t->told) return GHP_OK;
    t->told = true;
    if (t->control.rank == 0)
        ghp_note("workers of one host cannot share memory here, so they add by messages, which is "
                 "slower; see whether they may open each other's files in /proc");
    return GHP_OK;
}

/* All of it that is memory of ours; NULL without. */
static struct ghp_mpi_comm *comm_allocate(struct ghp_mpi *t, struct ghp_ranks ranks)
{
    struct ghp_mpi_comm *c = ghp_alloc(1, sizeof *c);
    size_t slots = 2 * (size_t)ranks.count;
    bool whole;

    if (c == NULL) return NULL;
    c->mpi = MPI_COMM_NULL;
    c->transport = t;
    c->base.ranks = ranks;
    c->count = ranks.count;
    c->messages = ghp_alloc((size_t)ranks.count, sizeof *c->messages);
    whole = c->messages != NULL;
    for (int i = 0; i < GHP_MPI_REQUEST_SETS; i++) {
        struct ghp_mpi_posted *posted = &c->posted[i];

        posted->requests = ghp_alloc(slots, sizeof *posted->requests);
        posted->stamps = ghp_alloc(slots, sizeof *posted->stamps);
        posted->peer = ghp_alloc(slots, sizeof *posted->peer);
        posted->receives = ghp_alloc(slots, sizeof *posted->receives);
        whole = whole && posted->requests != NULL && posted->stamps != NULL &&
                posted->peer != NULL && posted->receives != NULL;
    }
    if (whole) return c;
    comm_close(c);
    return NULL;
}

static enum ghp_status make_group(struct ghp_mpi *t, struct ghp_ranks ranks, enum ghp_stream stream,
                                  struct ghp_mpi_comm **comm)
{
    enum ghp_status status = GHP_OK;
    struct ghp_mpi_comm *c;

    *comm = comm_find(t, ranks, stream);
    if (*comm != NULL) return GHP_OK;
    GHP_ASSERT(ranks.count >= 1 && ranks.stride >= 1);
    c = comm_allocate(t, ranks);
    if (c == NULL) return ghp_mpi_status_barrier(t, ranks, NULL, GHP_NO_MEMORY());
    c->base.ops = &ghp_mpi_collectives;
    c->base.stream = stream;
    c->index = ranks.count == 1 ? 0 : ghp_ranks_index(ranks, t->control.rank);
    c->in_node = ranks_in_node(t, ranks);
    c->base.label = "making a communicator";
    GHP_TRY_GOTO(status, ghp_mpi_status_barrier(t, ranks, c, GHP_OK), fail);
    ghp_mpi_guard_begin("MPI", c->base.label, t->control.watchdog_s);
    status = comm_make(c);
    ghp_mpi_guard_end();
    GHP_TRY_GOTO(status, status, fail);
    GHP_TRY_GOTO(status, open_shared(c), fail);
    c->base.label = "no instruction";
    c->next = t->comms;
    t->comms = c;
    *comm = c;
    return GHP_OK;
fail:
    comm_close(c);
    return status;
}

static enum ghp_status host_group(struct ghp_collectives *host, struct ghp_ranks ranks,
                                  enum ghp_stream stream, struct ghp_comm **comm)
{
    struct ghp_mpi *t = (struct ghp_mpi *)(void *)((char *)host - offsetof(struct ghp_mpi, host));
    struct ghp_mpi_comm *made = NULL;
    enum ghp_status status = make_group(t, ranks, stream, &made);

    *comm = made != NULL ? &made->base : NULL;
    return status;
}

/* ---- collectives ---- */

/* Tensors go by the port if there is one; what workers tell each other does not. */
static struct ghp_mpi_comm *by_port(struct ghp_comm *comm)
{
    struct ghp_mpi_comm *c = ghp_mpi_comm_of(comm);

    c->port = c->transport->port;
    return c;
}

static enum ghp_status through_port(struct ghp_comm *comm, enum ghp_status status)
{
    ghp_mpi_comm_of(comm)->port = NULL;
    return status;
}

static enum ghp_status host_all_reduce(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    return through_port(comm, ghp_mpi_all_reduce(by_port(comm), sum));
}

static enum ghp_status host_reduce_scatter(struct ghp_comm *comm, const struct ghp_reduction *sum)
{
    return through_port(comm, ghp_mpi_reduce_scatter(by_port(comm), sum));
}

static enum ghp_status host_all_gather(struct ghp_comm *comm, const void *mine, void *all,
                                       int64_t bytes_each)
{
    return through_port(comm, ghp_mpi_all_gather(by_port(comm), mine, all, bytes_each));
}

static enum ghp_status host_all_to_all(struct ghp_comm *comm, const void *in, void *out,
                                       int64_t bytes_each)
{
    return through_port(comm, ghp_mpi_all_to_all(by_port(comm), in, out, bytes_each));
}

static enum ghp_status host_shift(struct ghp_comm *comm, const void *in, void *out, int64_t bytes)
{
    return through_port(comm, ghp_mpi_shift(by_port(comm), in, out, bytes));
}

static void host_close(struct ghp_collectives *host)
{
    (void)host; /* ghp_transport_end does */
}

static enum ghp_status host_check(struct ghp_collectives *host, double waited_s, const char *label)
{
    (void)host;
    (void)waited_s;
    (void)label;
    return GHP_OK;
}

const struct ghp_collectives_ops ghp_mpi_collectives = {.name = "mpi",
                                                        .close = host_close,
                                                        .group = host_group,
                                                        .all_reduce = host_all_reduce,
                                                        .reduce_scatter = host_reduce_scatter,
                                                        .all_gather = host_all_gather,
                                                        .all_to_all = host_all_to_all,
                                                        .shift = host_shift,
                                                        .check = host_check};

/* ---- start and end ---- */

static void release(struct ghp_mpi *t)
{
    while (t->comms != NULL) {
        struct ghp_mpi_comm *c = t->comms;

        t->comms = c->next;
        comm_close(c);
    }
    comm_close(t->last);
    if (t->channel_comm != MPI_COMM_NULL) MPI_Comm_free(&t->channel_comm);
    if (t->stamp_comm != MPI_COMM_NULL) MPI_Comm_free(&t->stamp_comm);
    free(t->port);
    free(t->node_of);
    free(t);
}

enum ghp_status ghp_transport_emulate(struct ghp_transport *transport,
                                      const struct ghp_emulation *emulation)
{
    struct ghp_mpi *t = ghp_mpi_of(transport);
    struct ghp_mpi_port *port = NULL;
    enum ghp_status status = GHP_OK;

    if (!ghp_emulation_delays(emulation)) return GHP_OK;
    if (t->control.node_size != t->control.size)
        status = GHP_FAIL(GHP_ERR_INPUT,
                          "messages are delayed by one clock, and the workers are on several "
                          "nodes; start them on one, or leave port and latency out");
    if (status == GHP_OK) port = ghp_alloc(1, sizeof *port);
    if (status == GHP_OK && port == NULL) status = GHP_NO_MEMORY();
    status = ghp_mpi_agree(t->world, status);
    if (status != GHP_OK) {
        free(port);
        return status;
    }
    ghp_mpi_port_init(port, emulation);
    t->port = port;
    t->shares_memory = false; /* sums go by messages, with the same bits */
    return GHP_OK;
}

/* MPI's own end would wait for a missing worker for ever, and not say for whom. */
void ghp_transport_end(struct ghp_transport *transport)
{
    struct ghp_mpi *t = ghp_mpi_of(transport);

    if (t == NULL) return;
    if (ghp_mpi_status_barrier(t, t->last->base.ranks, t->last, GHP_OK) != GHP_OK) {
        if (t->control.rank > 0) sleep(1); /* rank 0 speaks first */
        ghp_log_failure("%s", ghp_status_message());
        ghp_mpi_abort(ghp_status_exit_code(GHP_ERR_COMM));
    }
    ghp_mpi_guard_begin("MPI", "ending MPI", t->control.watchdog_s);
    release(t);
    MPI_Finalize();
    ghp_mpi_guard_close();
}

struct whereabouts { /* of a rank */
    char host[256];
    struct ghp_processors processors;
};

/* Whether ranks lie as plans count them: as many on each node as on the first, one node after the other. */
static bool fills_nodes(const int *node_of, int size)
{
    int most = 0;

    while (most < size && node_of[most] == 0)
        most++;
    for (int r = 0; r < size; r++)
        if (node_of[r] != r / most * most) return false;
    return true;
}

/* Who is where: ranks whose hosts have one name share a node, and together its processors. */
static enum ghp_status find_nodes(struct ghp_mpi *t)
{
    enum ghp_status status = GHP_OK;
    struct whereabouts mine = {.processors = ghp_processors_of(0)};
    struct whereabouts *all = ghp_alloc((size_t)t->control.size, sizeof *all);
    int *node_of = ghp_alloc((size_t)t->control.size, sizeof *node_of);

    if (all == NULL || node_of == NULL) status = GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, ghp_mpi_agree(t->world, status), done);
    if (gethostname(mine.host, sizeof mine.host - 1) != 0) mine.host[0] = '\0';
    GHP_TRY_GOTO(status, ghp_mpi_all_gather(t->world, &mine, all, (int64_t)sizeof mine), done);
    for (int r = 0; r < t->control.size; r++) {
        int first = 0;

        while (strcmp(all[first].host, all[r].host) != 0)
            first++;
        node_of[r] = first;
    }
    for (int r = 0; r < t->control.size; r++)
        if (node_of[r] == node_of[t->control.rank])
            ghp_processors_join(&t->processors, &all[r].processors);
    t->node_of = node_of;
    t->control.fills_nodes = fills_nodes(node_of, t->control.size);
    node_of = NULL;
    for (int r = 0; r < t->control.size; r++) {
        if (t->node_of[r] != t->node_of[t->control.rank]) continue;
        t->control.node_rank += r < t->control.rank;
        t->control.node_size += 1;
    }
    t->world->in_node = ranks_in_node(t, t->world->base.ranks);
    status = open_shared(t->world);
done:
    free(node_of);
    free(all);
    return status;
}

/* A launcher that MPI does not know starts N trainings of one worker each, all of which would seem well. */
static enum ghp_status check_launcher(long launched, long rank)
{
    int size = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 1 || launched <= 1) return GHP_OK;
    if (rank > 0) sleep(1); /* one speaks: its end ends the others */
    return GHP_FAIL(GHP_ERR_COMM,
                    "%ld workers were started, and each is alone: their launcher is not one of "
                    "this ghp's MPI, " GHP_MPI_KIND "; start them with '" GHP_MPIRUN
                    " -n %ld', or 'srun --mpi=" GHP_MPI_SRUN "' under Slurm",
                    launched, launched);
}

static enum ghp_status start_mpi(int *argc, char ***argv, double watchdog_s)
{
    int provided = 0, error;
    long launched = ghp_launched_size(), rank = ghp_launched_rank(); /* MPI may change them */

    prctl(PR_SET_TIMERSLACK, (unsigned long)TIMER_SLACK_NS, 0UL, 0UL, 0UL);
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1); /* waiting is ours: see ghp_mpi_wait */
    GHP_TRY(ghp_mpi_guard_open(watchdog_s));
    ghp_mpi_guard_begin("MPI", "starting MPI", watchdog_s);
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
    return check_launcher(launched, rank);
}

static struct ghp_mpi *allocate(double watchdog_s)
{
    struct ghp_mpi *t = ghp_alloc(1, sizeof *t);

    if (t == NULL) return NULL;
    t->transport = (struct ghp_transport){&t->control, &t->host, &t->p2p};
    t->control = (struct ghp_control){
        .ops = &control_ops, .processors = &t->processors, .watchdog_s = watchdog_s, .patience = 1};
    t->host.ops = &ghp_mpi_collectives;
    t->p2p.ops = &ghp_mpi_p2p;
    t->channel_comm = t->stamp_comm = MPI_COMM_NULL;
    t->shares_memory = true;
    MPI_Comm_rank(MPI_COMM_WORLD, &t->control.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->control.size);
    ghp_mpi_guard_know(t->control.rank, t->control.size);
    return t;
}

/* If it cannot start, the process ends without waiting for others; main says why. */
enum ghp_status ghp_transport_start(int *argc, char ***argv, double watchdog_s,
                                    struct ghp_transport **transport)
{
    struct ghp_mpi *t;
    struct ghp_ranks all = {.stride = 1};
    enum ghp_status status = GHP_OK;

    *transport = NULL;
    GHP_TRY(start_mpi(argc, argv, watchdog_s));
    t = allocate(watchdog_s);
    if (t == NULL) return GHP_NO_MEMORY();
    all.count = t->control.size;
    t->last = comm_allocate(t, all);
    if (t->last == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    t->last->index = t->control.rank;
    t->last->base.label = "ending";
    GHP_TRY_GOTO(status, make_group(t, all, GHP_STREAM_COMPUTE, &t->world), fail);
    t->world->base.label = "start";
    GHP_TRY_GOTO(status, find_nodes(t), fail);
    if (t->node_of[t->control.rank] == t->control.rank) ghp_mpi_clean(); /* one of each node */
    *transport = &t->transport;
    return GHP_OK;
fail:
    if (t->control.rank > 0) sleep(1); /* rank 0 speaks first: its end ends the others */
    return status;
}
