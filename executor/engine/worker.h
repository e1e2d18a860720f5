/* executor/engine/worker.h - one worker: a program, its memory, its kernels and communicators, and the loop that runs
 * it.
 *
 * The worker knows instructions; it knows nothing of epochs, files, schedules or how a layer is split. Everything is
 * allocated and prepared by ghp_worker_open; the step loop allocates nothing.
 *
 * Call order: open -> connect -> allocate -> parameters (executor/state/parameters.h) -> step ... step -> flush -> read
 * tensors -> close. A step leaves its updates pending: they run at the start of the next step, when their reductions
 * have had all of the backward pass to finish. Code that reads weights must flush first. Flushing more often changes no
 * result.
 *
 * An evaluating worker (run.weight_owner) runs a forward-only program on the weights of a training worker. */
#ifndef GHP_EXECUTOR_ENGINE_WORKER_H
#define GHP_EXECUTOR_ENGINE_WORKER_H

#include "executor/data/prefetch.h"
#include "executor/engine/arena.h"
#include "executor/data/data.h"
#include "executor/engine/fault.h"
#include "executor/engine/kernels.h"
#include "executor/engine/observer.h"
#include "executor/platform/step_timer.h"
#include "executor/transport/exec_context.h"

struct ghp_worker;
struct ghp_step;
struct ghp_run_options;

struct ghp_mix_count {                  /* of mixes of weights (executor/mixing/mixer.h) */
    int64_t mixes;                      /* steps of this worker */
    int64_t sent_bytes, received_bytes; /* of weights and gradients */
    double waited_s;                    /* for messages, between two steps */
    int64_t exchanges; /* without servers: messages of all weights that were sent */
    /* gosgd: of all weights this worker's part; what it has sent of it, and taken from others; sgp: the same times N */
    double sum_weight, sent_sum_weight, taken_sum_weight;
    int64_t led_least, led_most; /* lsgd: pulls in which a worker led its group; of all workers */
};

/* State of a worker's mixes. A checkpoint keeps the parts that mixing->keeps_* name. */
struct ghp_mix_numbers {
    double sum_weight; /* as of struct ghp_mix_count */
    double lost;       /* sum of its mean losses since workers told each other theirs */
};

/* Factor of the learning rate of the next updates. */
static inline double ghp_mix_rate(const struct ghp_mixing_facts *mixing,
                                  const struct ghp_mix_numbers *numbers)
{
    return mixing->whole_sum_weights ? 1 / numbers->sum_weight : 1;
}

struct ghp_mixer; /* executor/mixing/mixer.h */

struct ghp_mixer_place { /* in a worker; borrowed until close */
    const struct ghp_exec_context *exec;
    const struct ghp_run_options *run;
    const struct ghp_program *program;
    struct ghp_mix_numbers *numbers;
};

/* The functions that mix a worker's weights; executor/mixing/mixer.h describes them. */
struct ghp_mixer_hooks {
    enum ghp_status (*open)(const struct ghp_mixer_place *place, struct ghp_mixer **mixer);
    enum ghp_status (*connect)(struct ghp_mixer *mixer);
    enum ghp_status (*begin)(struct ghp_mixer *mixer, void *const *address);
    void (*close)(struct ghp_mixer *mixer);
    enum ghp_status (*start)(struct ghp_mixer *mixer);
    enum ghp_status (*mix)(struct ghp_mixer *mixer, const struct ghp_step *of);
    enum ghp_status (*settle)(struct ghp_mixer *mixer);
    enum ghp_status (*move)(struct ghp_mixer *mixer, enum ghp_buffer_kind kind, bool receives);
    struct ghp_mix_count (*counted)(struct ghp_mixer *mixer);
};

struct
    ghp_run_options { /* how a worker runs its program; pointers are borrowed until ghp_worker_close */
    uint64_t seed;    /* of dropout masks */
    enum ghp_fault fault;
    int groups; /* G, for GHP_FAULT_GROUP_SCALE */
    /* whose scratch bytes are taken if the backend asks for fewer; NULL: ask it alone */
    const struct ghp_profile *profile;
    const double *class_weights;     /* of the loss of trained steps; NULL: all are 1 */
    bool blends;                     /* training samples have second labels */
    struct ghp_worker *weight_owner; /* not NULL: forward only, on its weights and states */
    int threads;                     /* that make samples; 0: one */
    bool no_graph;                   /* on a device: each step is enqueued again */
    /* how long a step's computing is made to take (engine/pace.h); 0: as long as it takes */
    double emulated_step_s;
    const struct ghp_profile *paced_by;   /* divides an emulated step, or NULL */
    const struct ghp_mixer_hooks *mixing; /* if the synchroniser mixes; else may be NULL */
    bool reduces_late; /* on a processor: no thread reduces during the step (comm_stream.h) */
};

struct ghp_step {   /* one pass over one global batch */
    uint64_t index; /* since the start of training, from 0; keys dropout masks */
    int64_t epoch;  /* of the training set, from 0; keys augmentation */
    /* of the samples in the global batch: keys dropout masks too; 0: they are all of it */
    int64_t first_sample;
    struct ghp_data *data; /* borrowed for the call */
    enum ghp_data_set set;
    const int64_t *samples; /* B sample numbers, in global batch order */
    int64_t valid;          /* samples that count, 1 .. B; the rest is padding (evaluation only) */
    int output; /* evaluation: 1 + the output whose loss alone is taken, unweighted; 0: the sum */
    double weight;          /* of this worker's samples in the loss; 0: 1, as others' */
    bool measures;          /* the norm of this worker's own gradients is wanted; in host memory */
    struct ghp_hyperparameters hyperparameters; /* of the update by this step's gradient */
};

struct ghp_result { /* of one step, over the whole global batch */
    uint64_t step;
    double loss;    /* mean */
    double correct; /* samples whose largest output is their label */
    double samples;
    double gradient_norm; /* of all gradients, if the program takes it; else 0 */
};

/* Prepares the program's kernels. Memory comes with ghp_worker_allocate, so that a caller can read the process's memory
 * in between.
 *
 * executable   taken over, whatever is returned; what its program was lowered from is borrowed until the end
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a fault without effect, a profile that calls fused what the backend never fuses);
 *           the backend's failures
 * Local
 * Tested    tests/executor/engine/test_worker.c */
enum ghp_status ghp_worker_open(const struct ghp_exec_context *exec,
                                struct ghp_executable *executable,
                                const struct ghp_run_options *run, struct ghp_worker **worker);

/* The communicators of the program's instructions, and a channel between stages. Collective over all workers of the
 * extent. */
enum ghp_status ghp_worker_connect(struct ghp_worker *worker);

/* The arena, and the threads of communication and transfers. Local. */
enum ghp_status ghp_worker_allocate(struct ghp_worker *worker);

/* Tells the communicators of the arena, if it is of memory that these can know. Collective over all workers, once they
 * are connected and have allocated. */
enum ghp_status ghp_worker_register_memory(struct ghp_worker *worker);

/* Accepts NULL. Waits for reductions under way. */
void ghp_worker_close(struct ghp_worker *worker);

/* One step: the previous step's updates (if pending), then forward and backward; its reductions may still be running on
 * return. A weight owner's updates must be flushed before its borrower steps.
 *
 * Returns   GHP_OK; GHP_ERR_COMM naming instruction, layer and missing ranks; GHP_ERR_BACKEND; data failures. After a
 *           failure the only thing left is the transport's abort.
 * Collective over all workers of the extent */
enum ghp_status ghp_worker_step(struct ghp_worker *worker, const struct ghp_step *step);

/* Call before a step to announce the step after it. Its samples are then made while the step runs, if that saves
 * anything (wants_hints). A wrong hint only costs time. `next->samples` are copied, `next->data` is borrowed until
 * ghp_worker_close. */
bool ghp_worker_wants_hints(const struct ghp_worker *worker);
void ghp_worker_hint(struct ghp_worker *worker, const struct ghp_step *next);
/* Samples that steps loaded so far, and how many of them were made ahead. */
struct ghp_prefetch_count ghp_worker_prefetched(const struct ghp_worker *worker);

/* Who sees the tensors of steps from the next one on; NULL: nobody. Borrowed. */
void ghp_worker_observe(struct ghp_worker *worker, const struct ghp_observer *observer);

/* Finishes reductions and updates of the last step. Without any pending it does nothing. Collective. */
enum ghp_status ghp_worker_flush(struct ghp_worker *worker);

/* Finishes reductions of the last step, but not its updates: gradients can be read afterwards. Collective. */
enum ghp_status ghp_worker_settle(struct ghp_worker *worker);

/* The latest finished result: of the step before the last, or of the last one after flush or settle. If
 * METRIC_REDUCE has a period (core/program/program.h), results come for some steps at once, and flush, settle or
 * reduce_results bring those of all steps done. Returns false while there is none. */
bool ghp_worker_result(const struct ghp_worker *worker, struct ghp_result *result);
/* The same for a given step: the latest one, or one whose result came with it. */
bool ghp_worker_result_of(const struct ghp_worker *worker, uint64_t step,
                          struct ghp_result *result);
/* Sums the results that workers have kept. Between steps. Collective. */
enum ghp_status ghp_worker_reduce_results(struct ghp_worker *worker);

/* The first weights, moments or running statistics that updates found not finite. From then on the losses of steps
 * are NaN, on all workers that sum them. Waits for enqueued work. Local. */
enum ghp_status ghp_worker_not_finite(const struct ghp_worker *worker,
                                      struct ghp_not_finite *found);

/* The norm of the gradients of this worker's samples in a step that measures, before they were weighted and summed over
 * workers. */
double ghp_worker_own_norm(const struct ghp_worker *worker);

const struct ghp_program *ghp_worker_program(const struct ghp_worker *worker);
const struct ghp_arena *ghp_worker_arena(const struct ghp_worker *worker);
const struct ghp_exec_context *ghp_worker_exec_context(const struct ghp_worker *worker);
const struct ghp_run_options *ghp_worker_run_options(const struct ghp_worker *worker);
/* Its place among the stages. */
const struct ghp_placement *ghp_worker_placement(const struct ghp_worker *worker);
/* Whether it owns the layer; whether it has the layer's parameters, or copies for a layer that is tied to it. */
bool ghp_worker_owns(const struct ghp_worker *worker, int layer);
bool ghp_worker_holds(struct ghp_worker *worker, int layer);
/* Measured seconds of each instruction, of steps whose results are there; settle or flush before reading. */
struct ghp_step_timer *ghp_worker_step_timer(struct ghp_worker *worker);
/* Counts and times of its mixes of weights so far (executor/mixing/mixer.h); between steps. */
struct ghp_mix_count ghp_worker_mixed(const struct ghp_worker *worker);
/* Waits until no mix is under way. Between steps. Collective over all workers. */
enum ghp_status ghp_worker_settle_mixes(struct ghp_worker *worker);
/* A number of this worker that a checkpoint has in addition to its tensors; NULL: there is none. Between steps, when
 * mixes have settled. */
double *ghp_worker_mix_number(struct ghp_worker *worker);
/* Steps whose computing took longer than the emulated step (engine/pace.h). */
int64_t ghp_worker_late_steps(const struct ghp_worker *worker);
/* Call after a step to discard its times. */
void ghp_worker_skip_timings(struct ghp_worker *worker);

/* A layer's tensor in this worker's memory (a device's: read it with executor/backend/device.h): WEIGHT,
 * WEIGHT_GRADIENT, a moment (slot: parameter) or STATE (slot: state). elements may be NULL. Returns NULL if the
 * program has none. */
void *ghp_worker_tensor(struct ghp_worker *worker, enum ghp_buffer_kind buffer_kind, int layer,
                        int slot, int64_t *elements);

/* Whether each replica updates an optimizer shard of the layer's weights (core/program/sync.h): then its gradients and
 * moments are whole only when they have been collected, a moment in place of the gradients, which are then gone.
 * Local. */
bool ghp_worker_has_optimizer_shard(const struct ghp_worker *worker, int layer);
/* Whether the layer's weights are sharded in the same way, and gathered for use (enum ghp_param_sharding). Local. */
bool ghp_worker_shards_weights(const struct ghp_worker *worker, int layer);

/* The first layer with a moment, or sharded weights, in this worker's optimizer shards that are not finite; -1: there
 * is none. Works in host memory alone. Flush first. Local. */
int ghp_worker_optimizer_shard_not_finite(struct ghp_worker *worker);

/* Makes the layer's WEIGHTs, WEIGHT_GRADIENTs or a moment whole if they are in optimizer shards; does nothing
 * otherwise. They stay whole until another layer's are made whole, which may use the same memory. Settle first; of
 * all but gradients flush first. Collective over the workers of a stage. */
enum ghp_status ghp_worker_collect(struct ghp_worker *worker, enum ghp_buffer_kind buffer_kind,
                                   int layer);
/* Takes this worker's part from the whole tensor that was written in its place. Call after each tensor that was
 * written, before another layer's is. Local. */
enum ghp_status ghp_worker_keep(struct ghp_worker *worker, enum ghp_buffer_kind buffer_kind,
                                int layer, int slot);
/* Sends a whole moment that was written to the servers, before another moment is written. */
enum ghp_status ghp_worker_distribute(struct ghp_worker *worker, enum ghp_buffer_kind moment);

/* Keeps an exponential moving average of this worker's weights, which begins with those that it has now.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (sharded weights, weights that differ between workers, a GPU); GHP_ERR_NO_MEMORY
 * Local. Tested tests/tools/learn/test_losses_torch.sh */
enum ghp_status ghp_worker_begin_ema(struct ghp_worker *worker, double decay);
/* The decay; 0: there is no average. */
double ghp_worker_ema(const struct ghp_worker *worker);
/* After a step: flushes, and adds the weights to the average, if there is one. Collective. */
enum ghp_status ghp_worker_add_to_ema(struct ghp_worker *worker);

/* Whether workers' weights differ between two averages (core/program/sync.h). */
bool ghp_worker_has_replicas(const struct ghp_worker *worker);
/* Call when a checkpoint's weights for all workers are in place, before each worker's own are read. Servers and
 * moving averages begin with these. */
enum ghp_status ghp_worker_give_weights(struct ghp_worker *worker);
/* Puts the mean of all workers' weights and statistics in place of each worker's own, and back. The gradients'
 * memory keeps the own ones meanwhile. If there is a moving average (ghp_worker_begin_ema), it is put there. Does
 * nothing if they do not differ. Flush first. Taking it is collective over all workers. */
enum ghp_status ghp_worker_take_mean(struct ghp_worker *worker);
enum ghp_status ghp_worker_return_mean(struct ghp_worker *worker);

/* Whether a layer's weights, their gradients and moments lie blocked (executor/state/weight_blocks.h). */
bool ghp_worker_blocks_weights(const struct ghp_worker *worker, int layer);

/* State of learning rates that follow norms; NULL: they do not. A checkpoint writes its values. */
const struct ghp_tensor_rates *ghp_worker_rates(const struct ghp_worker *worker);

/* Gives memory that only lives inside a step back to the system (before an evaluation). Flush first. */
void ghp_worker_rest(struct ghp_worker *worker);

#endif
