/* executor/transport/mpi/communicator.h - what the files of the MPI transport share; mpi.h appears nowhere else. */
#ifndef GHP_EXECUTOR_TRANSPORT_MPI_COMMUNICATOR_H
#define GHP_EXECUTOR_TRANSPORT_MPI_COMMUNICATOR_H

#include "executor/platform/backoff.h"
#include "executor/platform/processors.h"
#include "executor/transport/mpi/port.h"
#include "executor/transport/transport.h"

#include <mpi.h>
#include <stddef.h>

/* The stamp of a message through a port (mpi/port.h). */
struct ghp_mpi_stamp {
    double left_s;
    int64_t bytes;
    MPI_Request request; /* of the stamp's own message */
};

/* Messages on their way that are waited for together. */
struct ghp_mpi_posted {
    int n;
    int *peer;             /* of each request; 2 count entries */
    bool *receives;        /* whether the request is a receive */
    MPI_Request *requests; /* 2 count entries */
    /* of messages through a port, each with its stamp: when it has left; 2 count entries */
    struct ghp_mpi_stamp *stamps;
};

/* What is on its way while one of them is waited for: mpi/hierarchy.c. */
enum { GHP_MPI_REQUEST_SETS = 5 };

struct ghp_shared_segment; /* mpi/shared_segment.h */

struct ghp_mpi_comm {
    struct ghp_comm base;
    struct ghp_mpi *transport; /* borrowed */
    struct ghp_mpi_comm *next; /* in the transport's list */
    MPI_Comm mpi;              /* MPI_COMM_NULL if count is 1 */
    int count, index;          /* ranks, and this one's place among them */
    int in_node; /* ranks in each node if all have as many, one node after the other; else 0 */
    struct ghp_shared_segment *shared; /* of those of this node; NULL: they share no memory */
    struct ghp_mpi_posted posted[GHP_MPI_REQUEST_SETS];
    struct ghp_mpi_port *port; /* by which its messages go now; NULL: as quickly as they can */
    int request_set;           /* where the next message is posted */
    struct ghp_control_message *messages; /* [count]: room for what the ranks tell each other */
};

struct ghp_mpi_channel {
    struct ghp_channel base;
    struct ghp_mpi *transport; /* borrowed */
    int n;
    MPI_Request *requests; /* MPI_REQUEST_NULL: empty */
    struct ghp_mpi_stamp *stamps;
    double *due_s; /* when the port lets a message through that has come; 0: it has not come */
    bool *receives;
};

struct ghp_mpi {                    /* one a process */
    struct ghp_transport transport; /* of the next three */
    struct ghp_control control;
    struct ghp_collectives host;
    struct ghp_p2p p2p;
    MPI_Comm channel_comm; /* of all workers, for channels; MPI_COMM_NULL until the first */
    MPI_Comm stamp_comm;   /* the same for the stamps of their messages */
    int most_tag;          /* of its messages */
    int *node_of;          /* each rank's node: the first rank there */
    struct ghp_processors processors; /* of this node's ranks together, as they were started */
    bool shares_memory;         /* sums use shared segments; at first true. All workers alike */
    struct ghp_mpi_port *port;  /* owned; NULL: nothing is emulated */
    bool told;                  /* that there are none */
    struct ghp_mpi_comm *comms; /* owned */
    struct ghp_mpi_comm *world; /* in comms */
    struct ghp_mpi_comm *last;  /* owned: of all workers, without MPI's part; for the end */
    bool settled;               /* the last failure is known to all workers */
};

static inline struct ghp_mpi_comm *ghp_mpi_comm_of(struct ghp_comm *comm)
{
    return (struct ghp_mpi_comm *)comm; /* its first member */
}

static inline struct ghp_mpi *ghp_mpi_of(struct ghp_transport *transport)
{
    return (struct ghp_mpi *)transport; /* its first member */
}

/* In mpi/wait.c.
 *
 * Waits for all messages posted in one request set: first by testing, then by testing between short sleeps. Those of
 * the other request set continue meanwhile.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming the label and the ranks whose message has not arrived */
enum ghp_status ghp_mpi_wait(struct ghp_mpi_comm *comm, int request_set);

/* For waits that are not for messages: lets MPI continue with those that are on their way. */
enum ghp_status ghp_mpi_progress(struct ghp_mpi_comm *comm);
/* A wait of the communicator's stream, which begins now. */
struct ghp_backoff_wait ghp_mpi_backoff_begin(const struct ghp_mpi_comm *comm);

struct ghp_mpi_missing { /* lists of ranks, at first empty */
    char from[256];      /* nothing has come from them */
    char to[256];        /* they have not taken what was for them */
};

void ghp_mpi_miss(struct ghp_mpi_missing *missing, int rank, bool from);
/* The watchdog's failure. */
enum ghp_status ghp_mpi_stalled(const struct ghp_mpi_comm *comm,
                                const struct ghp_mpi_missing *missing);

/* Post one message of at most GHP_MPI_MESSAGE_BYTES in comm->request_set. Between two ranks messages
 * arrive in the order in which they were posted, whatever their request sets. */
enum ghp_status ghp_mpi_receive(struct ghp_mpi_comm *comm, void *to, int64_t bytes, int peer);
enum ghp_status ghp_mpi_send(struct ghp_mpi_comm *comm, const void *from, int64_t bytes, int peer);

enum { GHP_MPI_MESSAGE_BYTES = 1 << 30 }; /* a message's count is an int */

/* In mpi/transport_mpi.c: over host memory. */
extern const struct ghp_collectives_ops ghp_mpi_collectives;

/* In mpi/reduce.c. */
enum ghp_status ghp_mpi_all_reduce(struct ghp_mpi_comm *comm, const struct ghp_reduction *of);
/* The number of segments into which its phases cut a sum over >= 2 ranks, of >= 1 elements. */
int64_t ghp_mpi_all_reduce_segments(const struct ghp_mpi_comm *comm,
                                    const struct ghp_reduction *of);
enum ghp_status ghp_mpi_reduce_scatter(struct ghp_mpi_comm *comm, const struct ghp_reduction *of);
/* In mpi/gather.c. */
enum ghp_status ghp_mpi_all_gather(struct ghp_mpi_comm *comm, const void *mine, void *all,
                                   int64_t bytes_each);

/* In mpi/collectives.c. */
enum ghp_status ghp_mpi_all_to_all(struct ghp_mpi_comm *comm, const void *in, void *out,
                                   int64_t bytes_each);
enum ghp_status ghp_mpi_shift(struct ghp_mpi_comm *comm, const void *in, void *out, int64_t bytes);
/* In mpi/channel.c. */
extern const struct ghp_p2p_ops ghp_mpi_p2p;

/* In guard.c.
 *
 * One guard a process. Between begin and end a library is at `what` (both borrowed), which cannot be left: if that
 * lasts longer than limit_s > 0 the process says so and ends. know: once MPI has said it. */
enum ghp_status ghp_mpi_guard_open(double watchdog_s);
void ghp_mpi_guard_know(int rank, int size);
void ghp_mpi_guard_begin(const char *library, const char *what, double limit_s);
void ghp_mpi_guard_end(void);
void ghp_mpi_guard_close(void); /* harmless if none is open */
_Noreturn void ghp_mpi_abort(int exit_code);
/* Signs of life go to all others from now on, or no more. */
void ghp_mpi_alone(bool alone);
bool ghp_mpi_heard_beat(void); /* whether there is a new one, of any other */

/* In leftover.c: removes shared memory of runs on this host that are certainly over. Local. */
void ghp_mpi_clean(void);

/* In status_barrier.c.
 *
 * Waits until all ranks of `room` have come here, each with its status, before MPI is asked for what only all of them
 * together can do: MPI itself would wait for ever. room NULL: this rank has no memory for it, and only tells the
 * others.
 *
 * Returns   GHP_OK if all are well; the own status, or that of the first rank that is not, with its number;
 * GHP_ERR_COMM
 *           naming the ranks that have not come, after the watchdog's limit
 * Collective over `ranks`, which may have no communicator yet */
enum ghp_status ghp_mpi_status_barrier(struct ghp_mpi *transport, struct ghp_ranks ranks,
                                       struct ghp_mpi_comm *room, enum ghp_status status);

/* GHP_ERR_COMM with MPI's own words if a call failed. */
enum ghp_status ghp_mpi_check(int code, const char *what);

enum ghp_status ghp_mpi_barrier(struct ghp_mpi_comm *comm);
enum ghp_status ghp_mpi_agree(struct ghp_mpi_comm *comm, enum ghp_status status);
enum ghp_status ghp_mpi_tell(struct ghp_mpi_comm *comm, struct ghp_control_message mine,
                             const struct ghp_control_message **messages);

#endif
