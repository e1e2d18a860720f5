/* executor/engine/worker_private.h - private to executor/engine/worker.c and executor/engine/worker: what a worker has,
 * and what its parts do for each other. */
#ifndef GHP_EXECUTOR_ENGINE_WORKER_PRIVATE_H
#define GHP_EXECUTOR_ENGINE_WORKER_PRIVATE_H

#include "executor/engine/lanes.h"
#include "executor/engine/p2p_thread.h"
#include "executor/engine/in_flight.h"
#include "executor/engine/comm_stream.h"
#include "executor/engine/pace.h"
#include "executor/engine/worker.h"
#include "executor/platform/failpoint.h"

enum { GHP_WORKER_LABEL_BYTES = 96 };

struct ghp_prepared_instr { /* what a worker has for an instruction of its program */
    bool fuses;   /* its kernel does the work of those that it names (core/program/fuse.h) */
    bool flushes; /* it finishes the step before: it is among the program's flush */
    bool updated; /* of an UPDATE: done in this step */
    int message;  /* of a SEND or RECEIVE, else -1 */
    int leader;   /* the product that it runs at once with, and others, if nobody looks; -1: none */
    struct ghp_kernel *kernel;          /* of a COMPUTE, else NULL */
    struct ghp_comm *comm;              /* of one that sends, else NULL */
    int half;                           /* of one of another stream: of the step that posted it */
    char label[GHP_WORKER_LABEL_BYTES]; /* for the watchdog */
};

struct ghp_worker {
    struct ghp_exec_context exec;
    struct ghp_run_options run;
    struct ghp_kernels kernels;
    struct ghp_program program;
    struct ghp_arena arena;
    void *comm_memory; /* the collectives' memory, which the arena borrows; or NULL */
    struct ghp_comm_stream *comm_stream; /* NULL: none */
    struct ghp_in_flight *in_flight;
    struct ghp_step_timer *timer;
    struct ghp_pace *pace;                   /* NULL: computing takes what it takes */
    struct ghp_prepared_instr *prepared;     /* of each instruction */
    void **address;                          /* of each buffer */
    struct ghp_update *updates;              /* those that run at once */
    int *update_of;                          /* of each of these: its gradient's buffer */
    struct ghp_squares *squares;             /* what a NORM squares */
    struct ghp_tensor_rates rates;           /* of learning rates by norms; no rule: none */
    struct ghp_channel *channel;             /* NULL: no other stages, or lanes to them */
    struct ghp_channel *servers;             /* NULL: no servers */
    struct ghp_p2p_message *server_messages; /* one a server */
    int first_push;                          /* instruction; -1: none */
    bool gave_weights;                       /* to the servers */
    struct ghp_hyperparameters pushed;       /* of the step that is pushed */
    struct ghp_mixer *mixer;                 /* NULL: no mixes of weights */
    struct ghp_mix_numbers mix_numbers;
    void *ema; /* of all parameters that train (worker/ema.c), owned; NULL: none */
    double ema_decay;
    char *saved_states; /* running statistics of its own, while the mean of all is in their place */
    struct ghp_p2p_thread *p2p_thread;
    struct ghp_lanes *lanes;      /* in place of channel and thread; or NULL */
    struct ghp_message *messages; /* sends and receives, in list order */
    int n_messages;
    int *message_instr;   /* of each message */
    int metrics;          /* buffer */
    int metrics_boundary; /* instruction before which the last step's metrics are taken */
    int dropped; /* instruction that GHP_FAULT_DROP_REDUCTION or _SKIP_UPDATE leaves out, else -1 */
    enum ghp_buffer_kind
        collected; /* what of the servers' lies whole among the gradients; KIND_COUNT: nothing */
    enum ghp_buffer_kind
        whole_kind;    /* what of one bucket's optimizer shards does; KIND_COUNT: nothing */
    int whole_bucket;  /* of which bucket */
    int metric_reduce; /* instruction; -1: the metrics are this worker's alone */
    /* If it has a period: steps whose metrics are in the buffer after the sums, and whether they are being summed. */
    int kept_metrics;
    uint64_t kept_last; /* the last one */
    bool sums_metrics;
    bool updates_pending;
    struct ghp_step step;  /* whose updates or result are pending, or that runs */
    uint64_t updating;     /* the step by whose gradients weights are updated now */
    double mean_weight;    /* of the classes of that step's labels, if they have weights */
    double *class_weights; /* the run's, in the tensors' memory; NULL: none */
    double output_weights[GHP_MAX_INPUTS]; /* of a loss of several outputs, in that step */
    double loss_scale;  /* of that step, weight / its labels that are not ignored; 0: none is */
    double own_squares; /* of that step, of this worker's own gradients; below 0: not taken */
    struct ghp_result *results; /* [most_results], of the latest steps, in turn */
    int most_results;
    int64_t n_results;
    const struct ghp_observer *observer; /* NULL: nobody looks */
};

static inline const struct ghp_instr *ghp_worker_instr(const struct ghp_worker *w, int i)
{
    return &w->program.instrs[i];
}

/* ---- worker/tensors.c ---- */

/* The bucket that a layer's gradients lie in; -1: none. */
int ghp_worker_bucket_of(const struct ghp_worker *w, int layer);

/* ---- worker/kinds.c ---- */

/* How a kind of instruction runs; it stands next to its functions, in a file of worker/. */
struct ghp_run_kind {
    /* What the compute stream does when it comes to it, by the rates of the step `previous`; NULL: nothing. */
    enum ghp_status (*run)(struct ghp_worker *w, int i, const struct ghp_step *previous);
    /* What the communication stream does; or NULL. */
    enum ghp_status (*concurrent)(struct ghp_worker *w, int i);
    enum ghp_failpoint failpoint; /* before such an instruction; GHP_FAILPOINT_MPI: none */
};
extern const struct ghp_run_kind *const ghp_run_kinds[GHP_INSTR_COUNT];

/* Runs instruction i, or hands it to its stream; updates by the rates of `previous`. */
enum ghp_status ghp_worker_run(struct ghp_worker *w, int i, const struct ghp_step *previous);
/* Between steps: the same, but that another stream's is done when it returns. */
enum ghp_status ghp_worker_run_now(struct ghp_worker *w, int i, const struct ghp_step *previous);
/* The communication stream's job: on its thread, or at once if the device transport enqueues. */
enum ghp_status ghp_worker_reduce(void *worker, int i);

/* ---- worker/instr.c ---- */

/* Whether another instruction's kernel did its work. */
bool ghp_worker_done_by_another(const struct ghp_worker *w, int i);

/* ---- worker/observe.c ---- */

/* Show the observer what instruction i has made, and the gradient or the logits that it is about to read. They show
 * nothing if the instruction does not belong to a layer. */
enum ghp_status ghp_worker_show_output(struct ghp_worker *w, int i);
enum ghp_status ghp_worker_show_gradient(struct ghp_worker *w, int i);
enum ghp_status ghp_worker_show_logits(struct ghp_worker *w, int i);

/* ---- worker/results.c ---- */

enum ghp_status ghp_worker_open_results(struct ghp_worker *w);
/* The result of a step, from all workers' metrics; steps come in their order. */
void ghp_worker_take_result(struct ghp_worker *w, uint64_t step, const double *metrics,
                            double squares);
/* Whether the metrics of some steps are summed at once. */
bool ghp_worker_keeps_metrics(const struct ghp_worker *w);
/* For such a METRIC_REDUCE: keeps this step's metrics. Returns whether all kept metrics are now due to be summed. */
bool ghp_worker_keep_metrics(struct ghp_worker *w);
/* Sums the kept metrics over the instruction's communicator, which is idle otherwise. */
enum ghp_status ghp_worker_sum_kept(struct ghp_worker *w);
/* Takes the results of their steps once they are summed. */
void ghp_worker_take_kept(struct ghp_worker *w);

/* ---- worker/update.c ---- */

/* Call when a step's or a flush's updates begin: marks all as not done. */
void ghp_worker_begin_updates(struct ghp_worker *w);
/* Rounds all weights into their copies in bfloat16, for a step before which no update has written these: weights may
 * have come from outside. */
enum ghp_status ghp_worker_copy_weights(struct ghp_worker *w);
/* Adds the squares of this worker's own gradients: those that reduction i is about to sum, or (i -1) of all where
 * nothing was reduced. */
void ghp_worker_measure(struct ghp_worker *w, int i);
/* Notes weights from servers that are not finite, whose updates no worker has seen: a bucket's, or (-1) all. */
void ghp_worker_look_at_pulled(struct ghp_worker *w, int bucket);
/* Memory for learning rates by norms. */
enum ghp_status ghp_worker_open_rates(struct ghp_worker *w);
/* Computes the step's factors once all workers' sums are there. Returns the address of the sum of all gradients'
 * squares. */
const double *ghp_worker_advance_rates(struct ghp_worker *w, double *sums);
/* Buffer `sum` += buffer `more`. */
enum ghp_status ghp_worker_accumulate(struct ghp_worker *w, int sum, int more,
                                      struct ghp_buffer_extent extent);
/* The numbers of a buffer of weights' gradients or of statistics. */
struct ghp_buffer_extent ghp_worker_parameters(const struct ghp_worker *w, int buffer);

/* ---- worker/replicas.c ---- */

/* Whether an instruction with a period is due after a step. */
bool ghp_worker_averages(const struct ghp_instr *instr, const struct ghp_step *of);

/* ---- worker/ema.c ---- */

/* Averages of the weights, which begin with those that are there.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_worker_open_ema(struct ghp_worker *w, double decay);
/* Adds the weights to the averages; lets the two change places; begins again with the weights. Without averages nothing
 * happens. */
void ghp_worker_feed_ema(struct ghp_worker *w);
void ghp_worker_swap_ema(struct ghp_worker *w);
void ghp_worker_restart_ema(struct ghp_worker *w);

/* ---- worker/optimizer_shards.c ---- */

/* Whether servers have its weights, and update them by all workers' gradients. */
bool ghp_worker_is_served(const struct ghp_worker *w);
/* The channel to the servers. Collective over all workers and servers. */
enum ghp_status ghp_worker_open_servers(struct ghp_worker *w);
void ghp_worker_close_servers(struct ghp_worker *w); /* they end when all workers have */
/* Reads a tensor of the servers into its place (a moment into the gradients' place), and writes it back. All workers
 * write the same values, so each reads what it has written. Between steps. Collective. */
enum ghp_status ghp_worker_read_servers(struct ghp_worker *w, enum ghp_buffer_kind kind);
enum ghp_status ghp_worker_write_servers(struct ghp_worker *w, enum ghp_buffer_kind kind);

/* ---- engine/worker/concurrent.c ---- */

/* Hands an instruction to the communication stream. */
enum ghp_status ghp_worker_post(struct ghp_worker *w, int i, const struct ghp_step *previous);
/* Sums `bytes` of buffer `data`, or at an address, over the ranks of instruction i. */
enum ghp_status ghp_worker_sum(struct ghp_worker *w, int i, int data, int64_t bytes);
enum ghp_status ghp_worker_sum_at(struct ghp_worker *w, int i, void *data, int64_t bytes);
/* The lanes between stages, or a channel; the messages at their addresses, and the thread that carries those of a
 * channel. */
enum ghp_status ghp_worker_open_channel(struct ghp_worker *w);
enum ghp_status ghp_worker_open_p2p_thread(struct ghp_worker *w);

#endif
