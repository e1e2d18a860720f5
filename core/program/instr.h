/* core/program/instr.h - one instruction of a program, and what is true of each kind of instruction. Read this first to
 * add a kind.
 *
 * Each kind is one constant `struct ghp_kind_facts` in core/program/kind/NAME.c. Lowering, lifetimes, costs, simulation
 * and reports look everything up there, so they name no kind for what these fields can say.
 *
 * Adding a kind touches
 *   1. core/program/instr.h      one line of GHP_INSTR_LIST;
 *   2. core/program/kind         its facts, in a file of the family or in a new one, which the build finds;
 *   3. core/program              what emits it: a piece of lowering, or a synchroniser;
 *   4. executor/engine/worker    how it runs: its struct ghp_run_kind, next to its functions;
 *   5. a test.
 *
 * Tested  tests/core/program/test_kinds.c */
#ifndef GHP_CORE_PROGRAM_INSTR_H
#define GHP_CORE_PROGRAM_INSTR_H

#include "core/optimizer/optimizer.h"
#include "core/sharding/local.h"
#include "core/sharding/transfer.h"

/* Names of kinds, and of their facts; new ones at the end, because a program's hash names a kind by its place. */
#define GHP_INSTR_LIST(X)                                                                          \
    X(LOAD, load)                                                                                  \
    X(COMPUTE, compute)                                                                            \
    X(ACCUMULATE, accumulate)                                                                      \
    X(RESHARD, reshard)                                                                            \
    X(STAT_REDUCE, stat_reduce)                                                                    \
    X(ALL_REDUCE, all_reduce)                                                                      \
    X(METRIC_REDUCE, metric_reduce)                                                                \
    X(UPDATE, update)                                                                              \
    X(SEND, send)                                                                                  \
    X(RECEIVE, receive)                                                                            \
    X(WAIT, wait)                                                                                  \
    X(REDUCE_SCATTER, reduce_scatter)                                                              \
    X(SHARD_REDUCE, shard_reduce)                                                                  \
    X(ALL_GATHER, all_gather)                                                                      \
    X(AVERAGE, average)                                                                            \
    X(NORM, norm)                                                                                  \
    X(NORM_REDUCE, norm_reduce)                                                                    \
    X(PUSH, push)                                                                                  \
    X(PULL, pull)                                                                                  \
    X(MIX, mix)                                                                                    \
    X(CARRY, carry)                                                                                \
    X(WORKER_NORM, worker_norm)                                                                    \
    X(GATHER, gather)                                                                              \
    X(SHIFT, shift)

enum ghp_instr_kind {
#define GHP_INSTR_ENUM(id, name) GHP_INSTR_##id,
    GHP_INSTR_LIST(GHP_INSTR_ENUM)
#undef GHP_INSTR_ENUM
        GHP_INSTR_COUNT
};

enum ghp_stream { GHP_STREAM_COMPUTE, GHP_STREAM_COMM, GHP_STREAM_TRANSFER, GHP_STREAM_COUNT };

enum ghp_phase { /* where a step's seconds go; they sum to the step */
                 GHP_PHASE_FORWARD,
                 GHP_PHASE_BACKWARD_DATA,
                 GHP_PHASE_BACKWARD_WEIGHT,
                 GHP_PHASE_RESHARD, /* blocking reshards and their packing, batch_norm sums included */
                 GHP_PHASE_UPDATE,
                 GHP_PHASE_LOAD,
                 GHP_PHASE_EXPOSED, /* compute stream waits for reductions, or for other stages */
                 GHP_PHASE_COUNT
};

/* CORRECT: right answers, or of labels that are numbers the sum of absolute errors. */
enum ghp_metric { GHP_METRIC_LOSS, GHP_METRIC_CORRECT, GHP_METRIC_SAMPLES, GHP_METRIC_COUNT };

/* What a worker's step costs in addition to its own work, in messages of all weights, in the mean. */
struct ghp_mix_traffic {
    double out, in; /* sent, received */
    double waits;   /* one-way messages that it stands still for, one after the other */
    double applies; /* updates of all weights by servers that it stands still for */
    /* in addition to one for each message that it stands still for; < 0: these overlap */
    double latencies;
    /* one-way messages that travel during the step, and have to be done when it ends */
    double concurrent;
    int word_bytes; /* of each message, in addition to the weights */
};

struct ghp_mix {
    struct ghp_mix_traffic traffic; /* of messages of the instruction's `bytes` */
    uint64_t rule;                  /* names the synchroniser with its argument */
};

struct ghp_operands { /* buffer ids, -1: none */
    int x[GHP_MAX_INPUTS], dx[GHP_MAX_INPUTS];
    int y, dy;
    int w[GHP_MAX_PARAMS], dw[GHP_MAX_PARAMS], moment[GHP_MAX_MOMENTS][GHP_MAX_PARAMS];
    int w_bf16[GHP_MAX_PARAMS]; /* the weights' copies in bfloat16 */
    int state[GHP_MAX_STATES], stats_delta[GHP_MAX_STATES];
    int saved, stats, labels, metrics, scratch;
    int ring; /* of an attention whose keys come in blocks: core/program/ring.h */
};

/* How a COMPUTE's tensors lie, as a plan says: plain, or in blocks of channels (docs/explanation/cpu.md). */
struct ghp_nchw16c {
    bool requested; /* false: nobody says anything */
    bool x, y;      /* x and dx; y and dy */
};

/* Instructions (or, of a model, layers) whose work another's kernel does; -1: none. A forward pass may do a bias, a
 * ReLU and an addition after it, a batch norm's statistics before it, and another norm's addition before it. In a sum
 * of gradients, a max pool's forward pass, a convolution's BACKWARD_DATA and a batch norm's backward passes, relu is
 * the backward pass of a ReLU. In other backward passes, add is the sum of gradients that follows. In a loss's forward
 * pass, gradient is its own backward pass. A convolution's forward pass may leave the sums of its output where the
 * batch norm after it saves its statistics: sums is then that norm's forward pass; in the norm's STATS and forward pass
 * it is the convolution's. */
struct ghp_epilogue {
    int bias, relu, stats, add, gradient, sums;
};

/* What one kernel does together (core/program/fuse.h); -1: none. */
struct ghp_fusion {
    struct ghp_epilogue does;
    int by;   /* the instruction that does this one's work, if the backend has such a kernel */
    int with; /* a batch norm's other backward pass, which fuses the same ReLU */
    int first, next; /* of products of one tensor: the first of them, and the one after this */
};

struct ghp_instr {
    enum ghp_instr_kind kind;
    enum ghp_stream stream;
    int point;
    int layer; /* -1 for METRIC_REDUCE */
    int edge;  /* RESHARD, ACCUMULATE of a gradient, SEND, RECEIVE, WAIT; else -1 */
    int micro; /* micro-batch */
    bool backward;
    bool recompute;     /* COMPUTE, RESHARD: recomputed for the backward pass */
    bool masks;         /* ACCUMULATE: the sum also takes the mask of the ReLU that follows */
    bool joins;         /* ACCUMULATE: the kernel that makes the gradient may add it, too */
    enum ghp_pass pass; /* COMPUTE */
    struct ghp_nchw16c nchw16c;
    struct ghp_fusion fusion;
    /* COMPUTE; RESHARD: c, h, w of the whole tensor, n samples of the subgroup */
    struct ghp_local local;
    struct ghp_layouts layouts; /* COMPUTE, LOAD: of its layer's tensors */
    int64_t first_row; /* COMPUTE, of a table that is divided by rows: of this worker's part */
    int blocks, block; /* COMPUTE, SHIFT, of a ring: of how many, which one; 0, 0: of none */
    bool adds_weight;  /* COMPUTE: to the gradient that a tied layer of this stage has made */
    enum ghp_param_sharding sharding; /* COMPUTE, GATHER, reductions: of the parameters */
    bool counts; /* METRIC_REDUCE: false: another worker of the stages counts the same samples */
    union {      /* of one kind */
        struct ghp_reshard_step step; /* RESHARD */
        struct ghp_transfer transfer; /* SEND, RECEIVE */
        struct ghp_mix mix;           /* MIX, CARRY */
    };
    enum ghp_comm_op comm; /* the collective among `ranks`, if it is one */
    /* who takes part; count 1: nothing is sent. UPDATE: among whom the bucket's optimizer shards are divided */
    struct ghp_ranks ranks;
    int servers; /* PUSH, PULL, MIX, CARRY: among which a bucket is sharded; else 0 */
    bool serves; /* PUSH, PULL: of a server, whose bytes are its shard */
    /* comm: the full buffer (all_reduce, all_gather result, reduce_scatter input, all_to_all local buffer; what a shift
     * sends); LOAD, UPDATE, ACCUMULATE: bytes written; norms: bytes read; SEND, RECEIVE: this worker's messages */
    int64_t bytes;
    /* RESHARD, SEND, RECEIVE: bytes that are also copied, with strides, or added; COMPUTE of a ring: that are added;
     * in_bf16: that rounding and widening write */
    int64_t copy_bytes;
    int64_t stat_count; /* batch_norm: samples x pixels that the reduced sums are over */
    bool in_bf16;       /* ALL_REDUCE, GATHER: the bucket's floats travel as bfloat16 */
    /* of gradients or weights: reductions, AVERAGE, ALL_GATHER, GATHER, UPDATE, PULL, and an ACCUMULATE into an
     * optimizer shard; else -1 */
    int bucket;
    /* AVERAGE, METRIC_REDUCE: steps from one run of it to the next, counted from the first of the training. It sums the
     * metrics of all of them. Else 0 */
    int period;
    /* communication instruction of the *previous* step that must be done first, or -1: UPDATE: its bucket's reduction;
     * the loss layer's forward: METRIC_REDUCE */
    int wait;
    /* WAIT: what of another stream of this step must be done; ACCUMULATE into an optimizer shard: the reduction that
     * has made what it adds; else -1 */
    int after;
    const struct ghp_optimizer *optimizer; /* UPDATE, MIX; else NULL */
    struct ghp_operands at;                /* the file of its kind says which it has */
};

/* Whether workers exchange anything in it among `ranks`: SEND and RECEIVE have other stages' workers instead. */
static inline bool ghp_instr_sends(const struct ghp_instr *instr)
{
    return instr->comm != GHP_COMM_NONE && instr->ranks.count > 1;
}

/* ---- what is true of a kind ---- */

/* By which of a profile's figures an instruction is costed (core/cost/profile_cost.c). */
enum ghp_cost_law {
    GHP_COST_COLLECTIVE, /* the collective `comm`, and bytes that are also copied */
    GHP_COST_NOTHING,
    GHP_COST_KERNEL, /* the local operation's entry */
    GHP_COST_LOAD,   /* bytes at a rate, up to GHP_COST_COPY */
    GHP_COST_UPDATE,
    GHP_COST_SQUARES,
    GHP_COST_ACCUMULATE,
    GHP_COST_COPY,
    GHP_COST_TRANSFER, /* between stages */
    GHP_COST_EXCHANGE, /* with servers */
    GHP_COST_MIX,      /* messages of all weights that are waited for */
    GHP_COST_CARRY     /* messages that travel during the step */
};

/* A buffer that lives always, as an operand. */
enum ghp_lasting {
    GHP_LASTING_NONE,
    GHP_LASTING_GRADIENTS, /* of the instruction's bucket, as are the next two */
    GHP_LASTING_WEIGHTS,
    GHP_LASTING_WEIGHT_SHARD,
    GHP_LASTING_RECEIVE, /* of the communication stream */
    GHP_LASTING_METRICS,
    GHP_LASTING_SQUARES,
    GHP_LASTING_COPIES,
    GHP_LASTING_PREFETCH
};

struct ghp_lowering;
struct ghp_program;
struct ghp_accesses;
struct ghp_instr_scratch;
struct ghp_buffer_assignment;

struct ghp_kind_facts {
    const char *name;    /* in reports */
    const char *purpose; /* what it does: a sentence without its full stop */
    /* what it belongs to if it does not belong to a layer; NULL: it always belongs to one */
    const char *of_all;

    /* ---- in a step ---- */

    enum ghp_stream stream;
    enum ghp_phase phase; /* of one that computes; GHP_PHASE_COUNT: its pass says which */
    enum ghp_cost_law cost;
    enum ghp_comm_op comm; /* NONE: none, or lowering says which */
    bool is_local;         /* no other worker is waited for: a slow worker is slow in it */
    bool waits;            /* its time on the compute stream is waiting for others */
    bool of_updates;       /* of the updates by the step before: left out if none are pending */
    bool reduces;          /* sums a bucket of gradients, or has servers sum it */
    bool mixes;            /* takes part in mixes of weights */
    bool is_served;        /* goes between workers and servers */
    bool is_double;        /* what it sums are doubles in every precision */
    int64_t (*sent_bytes)(const struct ghp_instr *instr); /* NULL: its collective says it */

    /* ---- operands ---- */

    unsigned
        writes; /* GHP_AT_*: what it makes; all else it reads, or adds to. A pass says its own. */
    enum ghp_lasting x, y, metrics, scratch; /* at.x[0], at.y, at.metrics, at.scratch */
    /* Further operands that live always; NULL: none. */
    void (*assign)(const struct ghp_buffer_assignment *k, struct ghp_instr *instr);
    /* Tensors that do not live always, as ghp_instr_accesses says; NULL: none. */
    void (*accesses)(const struct ghp_lowering *lowering, const struct ghp_program *program,
                     int index, struct ghp_accesses *accesses);
    /* Bytes of its own while it runs, as ghp_lower_scratch says; NULL: none. */
    enum ghp_status (*work)(const struct ghp_lowering *lowering, const struct ghp_instr *instr,
                            struct ghp_instr_scratch *scratch);
};

/* All, by enum ghp_instr_kind. */
extern const struct ghp_kind_facts *const ghp_kinds[GHP_INSTR_COUNT];

static inline const struct ghp_kind_facts *ghp_kind_of(const struct ghp_instr *instr)
{
    return ghp_kinds[instr->kind];
}

/* Whether it sums a bucket of gradients, or has servers sum it. */
static inline bool ghp_instr_reduces(const struct ghp_instr *instr)
{
    return ghp_kind_of(instr)->reduces;
}

/* Whether the forward pass waits for it before it reads the weights of a bucket. */
static inline bool ghp_instr_brings_weights(const struct ghp_instr *instr)
{
    return ghp_kind_of(instr)->of_updates && ghp_kind_of(instr)->stream == GHP_STREAM_COMM;
}

/* Whether it takes part in mixes of weights. */
static inline bool ghp_instr_mixes(const struct ghp_instr *instr)
{
    return ghp_kind_of(instr)->mixes;
}

/* Whether it goes between workers and servers. */
static inline bool ghp_instr_is_served(const struct ghp_instr *instr)
{
    return ghp_kind_of(instr)->is_served;
}

/* Bytes at the start of an instruction's scratch for the sum of its ghost batches' statistics; 0: it needs none. */
int64_t ghp_instr_sums_bytes(const struct ghp_instr *instr);

/* Bytes that a reduction receives into, and what travels in place of its tensor; of a gather, what it widens last. */
int64_t ghp_instr_receive_bytes(const struct ghp_instr *instr);

/* A METRIC_REDUCE's numbers: the metrics of `period` steps at once, 1 or more. */
void ghp_instr_sum_metrics(struct ghp_instr *instr, struct ghp_ranks ranks, int period);

/* per step by this worker, pairwise algorithms */
int64_t ghp_instr_sent_bytes(const struct ghp_instr *instr);

/* By how much a worker's speed (struct ghp_placement) divides an instruction's cost: what it does alone, not what it
 * waits for others in. */
double ghp_instr_speed(const struct ghp_instr *instr, double speed);
const char *ghp_instr_name(const struct ghp_instr *instr); /* "forward", "reshard", ... */
enum ghp_phase ghp_instr_phase(const struct ghp_instr *instr);
const char *ghp_phase_name(enum ghp_phase phase);
/* "compute", "communication", "transfer", NULL */
extern const char *const ghp_stream_names[GHP_STREAM_COUNT + 1];

#endif
