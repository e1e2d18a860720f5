/* executor/backend/backend.h - who computes: one vtable per library, one prepared kernel per (local operation, pass).
 *
 * A backend never sees layers, plans or ranks: it gets a local operation and pointers. The reference backend (plain
 * loops, float and double) is the reference implementation that every other backend is tested against. A backend with a
 * device gets pointers to the device's memory, and its calls enqueue (executor/backend/device.h).
 *
 * Tensors are N,H,W,C (channels innermost). Weights: conv2d [K][C/groups][R][S], linear [K][C]; `flatten` turns H,W,C
 * into C,H,W order. Kernels overwrite their outputs (dw, dx, y), never accumulate, except metrics. y may be x and dx
 * may be dy if ghp_op_in_place says so. */
#ifndef GHP_EXECUTOR_BACKEND_BACKEND_H
#define GHP_EXECUTOR_BACKEND_BACKEND_H

#include "core/sharding/local.h"
#include "core/model/precision.h"
#include "core/program/program.h"
#include "executor/backend/device.h"

struct ghp_backend_config {
    int element_bytes; /* 4, or another if the backend has it: of the network's tensors */
    bool tf32;         /* products of numbers rounded to 10 bits; if the backend has them */
    int threads;       /* OpenMP threads of this worker, >= 1 */
    bool exact; /* direct algorithms, fixed order: runs repeat bit for bit; false: the quickest */
    int local_rank; /* this worker's number on its node, >= 0: which of the node's devices it uses */
    /* of a GPU, that reductions take at most, and products of backward passes leave to them; 0: nothing is said */
    int reduce_multiprocessors;
};

/* What changes from step to step, where kernels of a recorded step read it: in device memory. */
struct ghp_step_hyperparameters {
    uint64_t step;     /* as ghp_kernel_arguments.step */
    double loss_scale; /* as ghp_kernel_arguments.loss_scale */
    /* as these there */
    double mean_weight, output_weights[GHP_MAX_INPUTS];
    struct ghp_hyperparameters update; /* of the updates that run in the step */
    uint64_t update_step;              /* whose gradients those take */
};

/* What updates found in the numbers that they wrote. It is in the same memory as the tensors. Updates only ever
 * lower `first`. */
struct ghp_not_finite {
    /* 0, or NaN once a number was not finite: a sum that takes it carries the word */
    double poison;
    uint64_t first; /* ghp_not_finite_key of the first of these; GHP_ALL_FINITE: none */
};

#define GHP_ALL_FINITE UINT64_MAX

/* The step whose gradients the update takes, then the layer. */
static inline uint64_t ghp_not_finite_key(uint64_t step, int layer)
{
    return step << 24 | (uint64_t)(unsigned)layer;
}
static inline uint64_t ghp_not_finite_step(uint64_t key)
{
    return key >> 24;
}
static inline int ghp_not_finite_layer(uint64_t key)
{
    return (int)(key & 0xffffff);
}
/* Notes that a number of the layer is not finite, in host memory and from any thread. Accepts NULL. */
void ghp_not_finite_note(struct ghp_not_finite *found, uint64_t step, int layer);

struct ghp_second_label { /* of a sample that is blended of two */
    int32_t label;
    double weight; /* of its loss, and the first label's is the rest; 0: there is no second one */
};

struct ghp_tensors { /* NULL if the pass does not use it */
    const void *x[GHP_MAX_INPUTS];
    void *dx[GHP_MAX_INPUTS];
    void *y;  /* forward: written; backward: read (relu, activation, softmax_cross_entropy) */
    void *dy; /* read */
    void *w[GHP_MAX_PARAMS];
    /* in bf16: copies of these that products read instead; NULL: products cast */
    const void *w_bf16[GHP_MAX_PARAMS];
    void *dw[GHP_MAX_PARAMS];
    void *state[GHP_MAX_STATES];
    /* batch_norm: what moves the states instead of this pass; NULL: this pass moves them */
    void *stats_delta[GHP_MAX_STATES];
    void *saved; /* ghp_local_saved_bytes */
    /* Sums of each channel of a convolution's y, then those of the squares: 2 k floats. Its forward pass (spec.sums)
     * writes them, STATS or the forward pass of the batch norm after it reads them; they may lie at its `saved`. NULL:
     * nobody reads them, or nobody made them. */
    float *sums;
    /* batch_norm: 2 c sums; STATS and BACKWARD_STATS write, later passes read them reduced */
    double *stats;
    /* [n][h]; negative: ignored. A loss of numbers: in the shape of x (ghp_label_number). Several outputs that share
     * them: as of one output */
    const int32_t *labels;
    /* softmax_cross_entropy of undivided classes: as labels, in the tensors' memory; NULL: no row has one */
    const struct ghp_second_label *seconds;
    double *metrics; /* GHP_METRIC_COUNT, added to */
    void *scratch;
};

struct ghp_kernel_arguments { /* one execution of a kernel */
    struct ghp_tensors at;
    bool training; /* false: dropout is the identity, batch_norm uses running statistics */
    /* 1 / labels of the global batch that are not ignored: gradient of their mean loss */
    double loss_scale;
    /* softmax_cross_entropy: of each class, and their mean over the global batch's labels; loss_scale is then 1 / their
     * sum. In the tensors' memory; NULL: all are 1 */
    const double *class_weights;
    double mean_weight;
    /* a loss of several outputs: what each counts in metrics and gradients; NULL: as the layer says */
    const double *output_weights;
    int counted_output; /* whose hits, or absolute errors, and labels the metrics count */
    int64_t stat_count;       /* batch_norm: values that each (reduced) sum is over */
    double stats_delta_share; /* of these samples in the global batch */
    /* to what the step's earlier samples left in drift; false: the first of the step */
    bool stats_delta_adds;
    /* softmax_cross_entropy: samples counted in metrics; the rest is padding */
    int64_t valid_samples;
    /* dropout masks: keyed by (seed, step, layer, sample, element), never by rank */
    uint64_t seed, step;
    int layer;
    int64_t first_sample;   /* position in the global batch of local sample 0 */
    int64_t first_position; /* of the whole sequence, of local position 0 */
    int64_t first_channel;  /* of the whole tensor, of local channel 0 */
    int64_t global_channels;
    int64_t first_row; /* embedding: of the whole table, of local row 0 */
    bool adds_weight;  /* embedding: dw is added to what is there */
    /* in device memory, in place of `step`, `loss_scale`, `mean_weight` and `output_weights`; or NULL */
    const struct ghp_step_hyperparameters *hyperparameters;
};

struct ghp_joint_run { /* of one kernel, on tensors none of which is written twice, or read too */
    const struct ghp_kernel_arguments *args;
    int n;
    int64_t scratch_bytes; /* from the first's scratch on */
};

struct ghp_update { /* core/optimizer/optimizer.h has the formulas */
    const struct ghp_optimizer *optimizer;
    void *w, *moment[GHP_MAX_MOMENTS]; /* as many as the optimizer has */
    const void *dw;
    void *w_bf16; /* gets the new weights rounded to bfloat16; NULL: nobody reads them so */
    int64_t elements;
    /* sum of the squares of all gradients, where the tensors lie: they are scaled down to given.clip_norm; NULL: not */
    const double *squares;
    bool scales; /* on a processor: gradients are multiplied by `scale`; no squares then */
    double scale;
    bool decays; /* false: without weight decay */
    /* on a processor: `direct` has moved the moments; weights move by their direction */
    bool directed;
    /* Factor of the learning rate. `given` includes it, `hyperparameters` does not; 0: 1. */
    double rate_scale;
    struct ghp_hyperparameters given;
    /* Records weights or moments of this layer that became not finite in this step; NULL: not wanted. */
    struct ghp_not_finite *not_finite;
    int layer;
    uint64_t step; /* on a device: hyperparameters->update_step is in its place */
    /* in device memory, in place of those given; or NULL */
    const struct ghp_step_hyperparameters *hyperparameters;
};

/* Sums that get the squares of a direction's elements [first, end), and of the weights there. */
struct ghp_direction_squares {
    int64_t first, end;
    double *directions, *weights;
};

struct ghp_buffer_extent { /* numbers of a tensor, and the bytes of each */
    int64_t n;
    int bytes;
};

struct ghp_squares { /* of what a square sum is */
    const void *of;
    struct ghp_buffer_extent extent; /* of 4 or 8 bytes each */
};

struct
    ghp_square_sum { /* *sum = squares of all numbers of n tensors, added in an order of its own */
    const struct ghp_squares *tensors; /* stay until it is done */
    int n;
    void *scratch; /* GHP_NORM_PARTS doubles */
    double *sum;
};

struct ghp_masked_sum { /* to += from; if y is there: 0 instead wherever y is not above 0 */
    void *to;
    const void *from, *y;
    struct ghp_buffer_extent extent;
};

/* How a kernel is to run. How its tensors lie: activations plain [n][h][w][c], or blocked [n][c / 16][h][w][16], as
 * Winograd wants them; weights plain [k][c][r][s], or blocked (executor/state/weight_blocks.h). Both take the same
 * bytes, so only kernels, core/program/memory_format.h and code that reads weights need to know the format. */
struct ghp_kernel_spec {
    bool x, y; /* blocked: x and dx; y and dy */
    bool w;    /* blocked: weights and their gradient */
    /* What a forward pass also does to y while it is in registers: adds the bias at w[1], then applies a ReLU.
     * Backward passes of a batch norm: dy is the gradient of that ReLU's output. A max pool's forward pass: x is a
     * ReLU's output, and what is saved makes BACKWARD_DATA write the gradient of that ReLU's input. A convolution's
     * BACKWARD_DATA: x is a ReLU's output, and dx becomes the gradient of that ReLU's input. */
    bool bias, relu;
    /* A batch norm's forward pass and BACKWARD_DATA, if no other worker shares its statistics: they take the sums
     * themselves; no STATS runs before, and BACKWARD_DATA runs in the place of BACKWARD_STATS, writing `stats` as it
     * does. */
    bool stats;
    /* A batch norm's forward pass also adds x[1], as the addition after it would, before the ReLU. That of a norm of
     * rows puts x[0] + x[1] into dx[0], as the addition before it would, and norms its rows. BACKWARD_DATA of what
     * `adds`: dx[0] is added to what is there. */
    bool add;
    /* A loss's forward pass: y gets the gradient that BACKWARD_DATA would make of it. */
    bool gradient;
    /* A convolution's forward pass writes `sums`, a batch norm's STATS and forward pass read them. Only asked of a
     * backend that sums. */
    bool sums;
};

/* Whether anything is fused. */
static inline bool ghp_kernel_spec_is_fused(struct ghp_kernel_spec spec)
{
    return spec.bias || spec.relu || spec.stats || spec.add || spec.gradient || spec.sums;
}

enum { GHP_ALGORITHM_BYTES = 64, GHP_MAX_ALGORITHMS = 12 };

struct
    ghp_algorithms { /* the ways in which a backend can compute a pass; [0]: what prepare chooses */
    int n;
    char names[GHP_MAX_ALGORITHMS][GHP_ALGORITHM_BYTES];
};

struct ghp_backend; /* opened backend, owned by its ops */
struct ghp_kernel;  /* prepared pass, owned by its ops */

/* prepare_as by this name: the library's own first choice, without timing any. */
#define GHP_ALGORITHM_UNTIMED "untimed"

struct ghp_backend_ops {
    const char *name;                    /* "reference", "onednn", "cuda" */
    const struct ghp_device_ops *device; /* NULL: tensors lie in host memory */
    /* What is missing for this backend on this machine, and how to get it; NULL: it needs nothing. */
    enum ghp_status (*check)(void);
    /* Whether there can be such numbers; `open` fails, with what to do, if this machine has none. */
    bool (*has_precision)(int element_bytes);
    bool has_tf32;
    /* In bf16, what it wants vocabularies padded to (core/model/vocabulary.h); 0: nothing. */
    int64_t vocabulary_multiple;
    /* Whether it computes a pass of an operation: prepare does not refuse it. */
    bool (*has)(enum ghp_op op, enum ghp_pass pass);
    enum ghp_status (*open)(const struct ghp_backend_config *config, struct ghp_backend **backend);
    void (*close)(struct ghp_backend *backend);
    enum ghp_status (*prepare)(struct ghp_backend *backend, const struct ghp_local *local,
                               enum ghp_pass pass, struct ghp_kernel **kernel);
    /* As prepare, by the algorithm of this name, which an earlier kernel of the same pass gave; if it is not
     * available, by another. NULL: there is never a choice. */
    enum ghp_status (*prepare_as)(struct ghp_backend *backend, const struct ghp_local *local,
                                  enum ghp_pass pass, const char *algorithm,
                                  struct ghp_kernel **kernel);
    /* All that prepare_nchw16c can be asked for here; NULL: there is never a choice. */
    enum ghp_status (*algorithms)(struct ghp_backend *backend, const struct ghp_local *local,
                                  enum ghp_pass pass, struct ghp_kernel_spec spec,
                                  struct ghp_algorithms *names);
    /* Whether the operation's kernels take blocked x and y; NULL: none does. */
    bool (*can_block)(const struct ghp_backend *backend, const struct ghp_local *local);
    /* Whether the operation's weights lie blocked between steps. Says the same whatever the samples, threads and
     * processor, for all who hold copies must agree. Not NULL if can_block is not. */
    bool (*blocks_weights)(const struct ghp_backend *backend, const struct ghp_local *local);
    /* Whether a pass of the operation may take a ReLU, or a bias, along; of a ReLU's backward pass, whether a sum of
     * gradients may take it. NULL: none may. Not NULL if can_block is not. */
    bool (*fuses)(const struct ghp_backend *backend, enum ghp_op op, enum ghp_pass pass);
    /* Whether BACKWARD_DATA of the operation may add its gradient to what is there (spec.add). NULL: none may. */
    bool (*adds)(const struct ghp_backend *backend, enum ghp_op op);
    /* Whether convolutions' forward passes make the sums of a batch norm's input (spec.sums). NULL: none does. */
    bool (*sums)(const struct ghp_backend *backend);
    /* As prepare_as (algorithm may be NULL), in these formats; if the algorithm of that name reorders otherwise,
     * by the same implementation. With bias, relu, stats or add *kernel becomes NULL, with GHP_OK, if there is no
     * such kernel. Not NULL if can_block or fuses is not. */
    enum ghp_status (*prepare_nchw16c)(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, const char *algorithm,
                                       struct ghp_kernel_spec spec, struct ghp_kernel **kernel);
    int64_t (*scratch_bytes)(const struct ghp_kernel *kernel);
    const char *(*algorithm)(const struct ghp_kernel *kernel);
    enum ghp_status (*run)(struct ghp_kernel *kernel, const struct ghp_kernel_arguments *args);
    /* Whether it may be quicker to run several of the kernel at once; NULL: never. */
    bool (*joins)(const struct ghp_kernel *kernel);
    /* All of them, at once or one after the other, to the same bits. Not NULL if joins is not. */
    enum ghp_status (*run_all)(struct ghp_kernel *kernel, struct ghp_joint_run run);
    void (*release)(struct ghp_kernel *kernel);
    /* In bf16: rounds a weight of n numbers into its copy, which products then read and updates write; enqueued. NULL:
     * products read weights as they are. */
    enum ghp_status (*copy_weight)(struct ghp_backend *backend, const void *w, void *copy,
                                   int64_t n);
    /* Whether it has the optimizer's update; NULL: it has all optimizers'. */
    bool (*has_update)(const struct ghp_optimizer *optimizer);
    /* By an optimizer whose update it has. */
    enum ghp_status (*update)(struct ghp_backend *backend, const struct ghp_update *update);
    /* The first half of an update: its moments move. The direction that they give, with the decay, is what `update`
     * moves weights by afterwards. NULL on a device. */
    enum ghp_status (*direct)(struct ghp_backend *backend, const struct ghp_update *update,
                              const struct ghp_direction_squares *squares);
    /* n updates by one optimizer at once; NULL: one after the other is as good. */
    enum ghp_status (*update_all)(struct ghp_backend *backend, const struct ghp_update *updates,
                                  int n);
    enum ghp_status (*square)(struct ghp_backend *backend, const struct ghp_square_sum *sum);
    /* to += from; of activations, parameters or doubles */
    enum ghp_status (*accumulate)(struct ghp_backend *backend, void *to, const void *from,
                                  struct ghp_buffer_extent extent);
    /* A further gradient of a ReLU's output y, and the ReLU's backward pass. Not NULL if fuses is not. */
    enum ghp_status (*accumulate_masked)(struct ghp_backend *backend,
                                         const struct ghp_masked_sum *sum);
};

extern const struct ghp_backend_ops ghp_backend_reference;
extern const struct ghp_backend_ops ghp_backend_onednn;
#ifdef GHP_HAS_CUDA
extern const struct ghp_backend_ops ghp_backend_cuda;
#endif

/* The backend of a name, or NULL if this build does not have it. */
const struct ghp_backend_ops *ghp_backend_find(const char *name);
bool ghp_backend_has(const struct ghp_backend_ops *ops, struct ghp_precision precision);
bool ghp_backend_has_update(const struct ghp_backend_ops *ops,
                            const struct ghp_optimizer *optimizer);
/* Whether it computes all passes of the operation. */
bool ghp_backend_has_op(const struct ghp_backend_ops *ops, enum ghp_op op);
/* GHP_ERR_USAGE, or GHP_ERR_BACKEND if another build would have it. */
enum ghp_status ghp_backend_fail_unknown(const char *name);
/* The device that an opened backend's tensors lie on. */
struct ghp_device ghp_backend_device(const struct ghp_backend_ops *ops,
                                     struct ghp_backend *backend);
/* All compiled-in backends, NULL-terminated. */
const struct ghp_backend_ops *const *ghp_backend_all(void);

#endif
