/* executor/train/stop.h - whether a run was asked to end: signals, and the agreement of all workers on the step after
 * which they end.
 *
 * SIGTERM, SIGINT (Ctrl-C) and SIGUSR1 (which Slurm can send some time before its limit) to any worker end the run in
 * order. A second SIGINT to the same worker ends it at once. A handler only notes the signal. The workers
 * tell each other of it at boundaries, which all reach in the same order: after a step, and before a batch of an
 * evaluation. They do so about twice a second, not at each boundary, so that it takes no noticeable time. All workers
 * derive the count of boundaries from the same numbers.
 *
 * Call order: listen -> begin -> check ... check -> end. One at a time in a process.
 *
 * Tested  tests/executor/train/test_stop.c, tests/tools/launch/test_signals.sh */
#ifndef GHP_EXECUTOR_TRAIN_STOP_H
#define GHP_EXECUTOR_TRAIN_STOP_H

#include "core/base/heartbeat.h"
#include "executor/engine/worker.h"

struct ghp_stop {
    struct ghp_control *control;
    struct ghp_comm *world;
    int64_t interval, left; /* boundaries from one telling to the next, and until then */
    double since_s;         /* the last telling */
    double told_s; /* between tellings, in all, of the slowest worker: the same on all workers */
    struct ghp_heartbeat *heartbeat; /* NULL, or written whenever all have told: borrowed */
    int signal,
        worker; /* what was agreed on: the signal of the first worker that had one; 0: continue */
};

/* Directs these signals to a thread that does nothing else. They must not come to a thread amid its work: oneDNN's
 * products of float matrices for AVX-512 (before 3.11.2) have the stack pointer in the heap, where a handler's frame
 * overwrites what lies below. Call it once in a process, before there are other threads, which inherit from this one. A
 * process that does not call it gets signals in any thread.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_stop_listen(void);

/* Begins to note signals.
 *
 * workers   all of the run
 *
 * Returns   GHP_OK; GHP_ERR_COMM; GHP_ERR_NO_MEMORY
 * Collective over all workers */
enum ghp_status ghp_stop_begin(struct ghp_stop *stop, const struct ghp_exec_context *exec,
                               int workers);

/* The signal that this worker has noted; 0: none. For workers that tell each other in other ways. Local. */
int ghp_stop_noted(void);
/* What they have agreed on: from then on check says so. Local. */
void ghp_stop_agree(struct ghp_stop *stop, int signal, int worker);

/* Call at a boundary. Tells whether to end here, and keeps telling so afterwards. NULL never ends.
 *
 * Returns   GHP_OK; GHP_ERR_COMM
 * Collective over all workers */
enum ghp_status ghp_stop_check(struct ghp_stop *stop, bool *ends);

/* Whether the last check told: workers then have waited for each other. Local; the same on all workers. */
bool ghp_stop_told(const struct ghp_stop *stop);

/* Restores what signals did before. If all workers end by a signal, a further SIGTERM or SIGUSR1 does nothing, since
 * a checkpoint may be on its way. Local; accepts one that was not begun. */
void ghp_stop_end(struct ghp_stop *stop);

/* For a server, which ends when the workers do: ignores a first signal. Local. */
void ghp_stop_leave_to_workers(void);

/* "SIGTERM" and the like. */
const char *ghp_stop_signal_name(int number);

#endif
