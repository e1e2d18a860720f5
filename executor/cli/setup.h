/* executor/cli/setup.h - what a session needs before it computes: its plans, who computes and carries, and what is trained.
 *
 * A session has one plan, or several that are to be compared. All plans of a session are for one model, one global batch
 * and the same workers, and run on one backend with one set of data; each has a worker (and its arena) of its own, made
 * when it is wanted. Every function here ends in agreement: it fails on all workers or on none.
 *
 * Call order: ghp_setup_open -> for a plan: ghp_entrant_open -> train -> ghp_entrant_close ... -> ghp_setup_release. */
#ifndef GHP_EXECUTOR_CLI_SETUP_H
#define GHP_EXECUTOR_CLI_SETUP_H

#include "core/plan/plan.h"
#include "executor/train/training_config.h"
#include "executor/cli/session.h"

struct ghp_entrant { /* one plan of a session */
    const char *path;
    struct ghp_plan plan;
    bool comparable;           /* the plan's profile is of this backend, precision and numerics */
    struct ghp_work work;      /* as the plan says */
    struct ghp_worker *worker; /* NULL unless open */
};

struct ghp_setup {
    struct ghp_session *session; /* borrowed */
    const struct ghp_session_options *options;
    struct ghp_comm *world;
    int rank, size;
    int here, seat; /* workers on this node, and this one's number among them */
    struct ghp_binding binding;
    struct ghp_team team;
    struct ghp_precision precision;
    int element_bytes; /* of that precision */
    int threads;
    bool exact;
    struct ghp_recipe recipe; /* its schedule's steps are the session's to set */
    int n_entrants;
    struct ghp_entrant entrants[GHP_SESSION_PLANS];
};

/* The worst status of all workers; `what` is what the watchdog says that one waits for. Collective. */
enum ghp_status ghp_setup_agree(struct ghp_setup *setup, enum ghp_status status, const char *what);

/* Reads and checks the plans, binds, opens backend and data.
 *
 * setup   zeroed; to be released after a failure too
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (another number of workers, another model; plans that cannot be compared, both named);
 *           the failures of files, backend and data
 * Collective over all workers */
enum ghp_status ghp_setup_open(struct ghp_session *session, struct ghp_setup *setup);
void ghp_setup_release(struct ghp_setup *setup); /* closes the entrants too */

/* The plan's worker: kernels, communicators. Collective over all workers. */
enum ghp_status ghp_entrant_open(struct ghp_setup *setup, struct ghp_entrant *entrant);
/* Its memory, and the first weights, by the session's seed. Collective over all workers. */
enum ghp_status ghp_entrant_allocate(struct ghp_setup *setup, struct ghp_entrant *entrant);
/* Gives the worker and its memory back; the plan stays. Local. */
void ghp_entrant_close(struct ghp_entrant *entrant);

#endif
