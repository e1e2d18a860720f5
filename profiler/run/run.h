/* profiler/run/run.h - a profile by measuring: all ranks at once, resumed if an earlier run stopped.
 *
 * Order: machine, earlier file or kept measurements, speeds of the workers unless these say them, work list, rates,
 * overlap, collectives, operations, analytic models. The file is saved now and then while operations are measured, so
 * that an interrupted run loses
 * seconds, not hours. The budget holds to a tenth, or the result says what took longer.
 *
 * Tested  tests/profiler/run/test_run.c, test_budget.c, tests/tools/profile/test_profile_measured.sh */
#ifndef GHP_PROFILER_RUN_RUN_H
#define GHP_PROFILER_RUN_RUN_H

#include "core/cost/profile.h"
#include "executor/backend/backend.h"
#include "core/model/precision.h"
#include "executor/platform/binding.h"
#include "executor/transport/device/device_transport.h"
#include "executor/transport/transport.h"
#include "profiler/measure/fill.h"

/* What is asked for; everything is borrowed. */
struct ghp_profiling_request {
    const struct ghp_model *models; /* n_models >= 1 */
    int n_models;
    const int64_t *batches; /* n_batches >= 1 */
    int n_batches;
    int workers; /* N; 0: as many as ranks */
    const struct ghp_backend_ops *backend_ops;
    bool exact;
    struct ghp_precision precision;
    int64_t vocabulary_multiple; /* of the models that had none of their own; 0: as they are */
    enum ghp_device_transport_choice device_transport; /* between GPUs */
    int threads;             /* of one worker; 0: the cores of its place */
    enum ghp_bind_mode bind; /* of a rank to the cores of its place */
    double sample_s; /* how long one sample lasts, > 0; twice as long if workers share cores */
    double budget_s; /* for everything, > 0 */
    bool alike;      /* the workers count as equally fast: no speeds are measured */
    bool fresh; /* an existing file is replaced, not continued; nothing that was kept is used */
    const char *like;             /* profile whose operations are taken over; NULL: none */
    const char *output;           /* profile file */
    const char *data;             /* whose loading is measured; NULL: of generated samples */
    const char *only;             /* what to measure: NULL: everything; run/missing.c */
    const char *cache;            /* folder of kept measurements (run/cache.h); NULL: none */
    const char *libraries;        /* with versions, one text: what is measured depends on them */
    struct ghp_link intra, inter; /* if no collective tells */
    int64_t memory_bytes;         /* of a node; 0: as hwloc says */
    int64_t bucket_bytes;         /* gradients reduced together, >= 0 */
};

/* What was done. */
struct ghp_profiling_result {
    int ranks, workers, nodes, threads;
    bool oversubscribed; /* workers shared cores */
    char binding[256];   /* of this rank, one line */
    struct ghp_ops_count ops;
    int comms_measured, comms_kept, comms_left;
    char cache[256]; /* file of kept measurements; "": none */
    double seconds;
    /* where the time went, if it was more than the budget by a tenth; "": it was not */
    char overrun[640];
    char disturbed[256];        /* who disturbed, and how much; "": nobody */
    struct ghp_profile profile; /* rank 0: what was saved; released by the caller */
};

/* Measures and saves.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (more ranks than workers, a batch that does not fit the workers, a file that was
 *           measured otherwise, ranks not placed node by node); GHP_ERR_IO, GHP_ERR_FORMAT (the file); the backend's
 *           and the transport's failures. All ranks fail together; the rank that failed itself holds the message.
 * Collective over all ranks */
enum ghp_status ghp_profiling_run(const struct ghp_profiling_request *request,
                                  struct ghp_transport *transport,
                                  struct ghp_profiling_result *result);

/* What the request's backend wants vocabularies padded to in the request's precision; 0: nothing. */
int64_t ghp_profiling_vocabulary_multiple(const struct ghp_profiling_request *request);

/* The worst of all ranks' statuses, as ghp_measure_max gives it, before anything is measured.
 * Collective over all ranks */
enum ghp_status ghp_profiling_agree(struct ghp_transport *transport, enum ghp_status status);

/* After a failure: whether this rank is the one to print its message (the first whose message is its own).
 * Returns a failure if the other ranks can no longer be reached.
 * Collective over all ranks */
enum ghp_status ghp_profiling_reporter(struct ghp_transport *transport, bool *speaks);

#endif
