/* core/sharding/split.h - how a layer is divided among workers, and how tensors then lie.
 *
 * A *split* is a choice for one layer: what each worker of a subgroup of `tp_size` m consecutive ranks does. A *layout*
 * is where a tensor is afterwards. This file holds the two tables everything else follows: split -> layouts, and
 * reshard -> steps. Nothing else knows how a layer is split.
 *
 * With N workers, global batch B and TP size m, rank r belongs to subgroup r / m as member r % m; the subgroup holds
 * samples [r/m * B m/N, (r/m + 1) * B m/N). Layouts of one tensor, per worker:
 *     batch        B/N samples, all channels                (TP size 1)
 *     channel(m)   B m/N samples, channels [i C/m, (i+1) C/m), i = r % m
 *     full(m)      B m/N samples, all channels, m equal copies
 *     sequence(m)  B m/N samples, all channels of positions [i s/m, (i+1) s/m) of a sequence of s
 *     partial(m)   as full, but the true tensor is the sum over the subgroup
 * Classes and vocabularies (struct ghp_op_facts' `pads`) need not be multiples of m: each member has ceil(C/m) channels
 * in memory, [i ceil(C/m), ...), and those from C on are padding. A network may pad C itself to a multiple
 * (core/model/vocabulary.h), of m = 1 too: then C here is the padded one. Weights of padding are zeros and stay so; no
 * kernel reads logits of padding, and their gradients are zeros. No checkpoint or report contains any.
 * So the number of groups G and the group size K = N/G do not enter: any K that all TP sizes divide describes the same
 * program, and the canonical G is the largest (docs/explanation/time-model.md). */
#ifndef GHP_CORE_SHARDING_SPLIT_H
#define GHP_CORE_SHARDING_SPLIT_H

#include "core/model/op.h"

/* What of a layer's parameters each worker of a replica group keeps. By all but the first, a worker has gradients and
 * moments of its optimizer shard alone (ZeRO-2), and by the last three its weights, too (ZeRO-3, FSDP). */
enum ghp_param_sharding {
    GHP_SHARDING_NONE,      /* all, but for what the synchroniser divides */
    GHP_SHARDING_GRADIENTS, /* the weights; gradients are reduce-scattered as soon as they are made */
    GHP_SHARDING_STEP, /* weights are gathered once a step, gradients summed up over micro-batches */
    GHP_SHARDING_MICRO_BATCH, /* weights are gathered once for both passes of a micro-batch */
    GHP_SHARDING_PASS,        /* weights are gathered for each pass: FSDP's reshard after forward */
    GHP_SHARDING_COUNT
};

struct ghp_split { /* of one layer */
    /* conv2d, linear: data | out | in; grouped conv2d: data | channel; embedding: data | out | rows; others: data |
     * channel | full, of sequences also position, attention ring */
    enum ghp_split_kind kind;
    int tp_size;                      /* 1 for data, else > 1, divides N */
    enum ghp_param_sharding sharding; /* of the parameters, or of the tied ones */
};

/* Their numbers are in program hashes: new ones go to the end. */
enum ghp_layout_kind {
    GHP_LAYOUT_BATCH,
    GHP_LAYOUT_CHANNEL,
    GHP_LAYOUT_FULL,
    GHP_LAYOUT_PARTIAL,
    GHP_LAYOUT_SEQUENCE,
    GHP_LAYOUT_COUNT
};

struct ghp_layout {
    enum ghp_layout_kind kind;
    int tp_size; /* 1 for batch */
};

struct ghp_layouts { /* of a layer's tensors under a split */
    struct ghp_layout x, y, dy, dx;
};

enum { GHP_MAX_WORKERS = 1 << 20 };

/* N workers over a global batch: what a split is checked against. */
struct ghp_problem {
    int workers;          /* N >= 1, at most GHP_MAX_WORKERS */
    int64_t global_batch; /* B, a multiple of N or a divisor of it */
};

/* Workers that share each sample: N / B if a batch has fewer samples than workers, else 1. Every layer then has this TP
 * size, since layouts of others meet through `batch`, which has whole samples for each worker. */
static inline int ghp_problem_sharers(struct ghp_problem problem)
{
    int64_t b = problem.global_batch;

    return b > 0 && b < problem.workers ? problem.workers / (int)b : 1;
}

enum ghp_comm_op {
    GHP_COMM_NONE,
    GHP_COMM_ALL_REDUCE,
    GHP_COMM_ALL_GATHER,
    GHP_COMM_REDUCE_SCATTER,
    GHP_COMM_ALL_TO_ALL,
    GHP_COMM_TRANSFER, /* pairs: the first of two ranks sends to the second; core/sharding/transfer.h */
    GHP_COMM_SHIFT, /* each rank sends to the next, the last to the first */
    GHP_COMM_COUNT
};

/* One step of a reshard inside a subgroup of `tp_size` ranks. Local shapes: c, hw per pixel of the *whole* tensor,
 * n the samples of the subgroup. "packs" = needs a strided copy between slices of channels, or of positions, and
 * contiguous order. Their numbers are in program hashes: new ones go to the end. */
enum ghp_reshard_op {
    GHP_RESHARD_SLICE_BATCH,         /* full(from) -> full(TP size) | batch: keep own samples */
    GHP_RESHARD_SLICE_CHANNEL,       /* full -> channel: keep own channels (packs) */
    GHP_RESHARD_GATHER_BATCH,        /* batch -> full: all-gather */
    GHP_RESHARD_GATHER_CHANNEL,      /* channel -> full: all-gather, then interleave (packs) */
    GHP_RESHARD_BATCH_TO_CHANNEL,    /* batch -> channel: (packs) all-to-all */
    GHP_RESHARD_CHANNEL_TO_BATCH,    /* channel -> batch: all-to-all (packs) */
    GHP_RESHARD_SUM_TO_BATCH,        /* partial -> batch: reduce-scatter */
    GHP_RESHARD_SUM_TO_CHANNEL,      /* partial -> channel: (packs) reduce-scatter */
    GHP_RESHARD_SUM_TO_FULL,         /* partial -> full: all-reduce */
    GHP_RESHARD_SLICE_POSITION,      /* full -> sequence: keep own positions (packs) */
    GHP_RESHARD_GATHER_POSITION,     /* sequence -> full: all-gather, then interleave (packs) */
    GHP_RESHARD_BATCH_TO_POSITION,   /* batch -> sequence: (packs) all-to-all */
    GHP_RESHARD_POSITION_TO_BATCH,   /* sequence -> batch: all-to-all (packs) */
    GHP_RESHARD_CHANNEL_TO_POSITION, /* channel -> sequence: (packs) all-to-all (packs) */
    GHP_RESHARD_POSITION_TO_CHANNEL, /* sequence -> channel: (packs) all-to-all (packs) */
    GHP_RESHARD_SUM_TO_POSITION,     /* partial -> sequence: (packs) reduce-scatter */
    GHP_RESHARD_OP_COUNT
};

struct ghp_reshard_step {
    enum ghp_reshard_op op;
    struct ghp_layout from, to;
    int tp_size; /* ranks of the subgroup that exchange; for SLICE_BATCH the TP size sliced from */
};

struct ghp_reshard {
    int n_steps; /* 0: the layouts are the same */
    struct ghp_reshard_step steps[3];
};

struct ghp_layouts ghp_split_layouts(struct ghp_split split);
/* The same with `x` and `dx` of the layer's input `slot`: keys and values of an attention by position are whole. */
struct ghp_layouts ghp_split_layouts_at(const struct ghp_layer *layer, int slot,
                                        struct ghp_split split);
/* Those of an edge's reader under its split. */
static inline struct ghp_layouts ghp_edge_layouts(const struct ghp_model *model, int edge,
                                                  struct ghp_split split)
{
    const struct ghp_edge *e = &model->edges[edge];

    return ghp_split_layouts_at(&model->layers[e->to], e->slot, split);
}

/* The steps that turn `from` into `to`; `to` is never partial unless equal to `from`.
 * Returns false if no change exists (anything -> partial). */
bool ghp_reshard_find(struct ghp_layout from, struct ghp_layout to, struct ghp_reshard *reshard);
enum ghp_comm_op ghp_reshard_comm(enum ghp_reshard_op op);
/* Whether it copies between slices of channels or positions and contiguous order. */
bool ghp_reshard_packs(enum ghp_reshard_op op);
/* Channels of the whole tensor as a step moves them: all workers' parts, padding included, if it lies in parts. */
int64_t ghp_reshard_channels(const struct ghp_reshard_step *step, int64_t channels);
const char *ghp_reshard_name(enum ghp_reshard_op op);
const char *ghp_comm_name(enum ghp_comm_op op);

/* Whether the layer can take the split at all (divisibility, operation).
 * Returns GHP_ERR_INPUT naming what would fit. */
enum ghp_status ghp_split_check(const struct ghp_layer *layer, struct ghp_split split,
                                struct ghp_problem problem);

/* The split of a layer that uses the parameters of one with the split `table`, by which both have the same parts of
 * them: data of data, out:m of rows:m, in:m of out:m. */
struct ghp_split ghp_split_of_tied(struct ghp_split table);
struct ghp_split ghp_split_of_owner(struct ghp_split product); /* the other way */

/* Whether layers that share parameters hold the same parts of them: all data; or the table by rows and the product by
 * its outputs, or the table by channels and the product by its inputs.
 * Returns GHP_ERR_INPUT naming both. */
enum ghp_status ghp_split_check_tied(const struct ghp_model *model, const struct ghp_split *splits);

/* Whether each worker's part is the same size, so that none has padding. */
bool ghp_split_is_even(const struct ghp_layer *layer, struct ghp_split split);

/* All splits a layer can take by itself, data first, then by TP size; those of layers that share parameters go by pairs
 * (ghp_split_check_tied). `splits` has room for `max`; returns their number. */
int ghp_split_choices(const struct ghp_layer *layer, struct ghp_problem problem,
                      struct ghp_split *splits, int max);

/* B must be a positive multiple of N, or divide it; the message names the nearest values that do. */
enum ghp_status ghp_problem_check(struct ghp_problem problem);

/* The greatest common divisor of two numbers >= 0: the largest TP size or block that comes out even in both. 0 of 0
 * and 0. */
int64_t ghp_gcd(int64_t a, int64_t b);

bool ghp_layout_same(struct ghp_layout a, struct ghp_layout b);
bool ghp_split_same(struct ghp_split a, struct ghp_split b);
/* The same work on the same parts, however the parameters are sharded. */
bool ghp_split_alike(struct ghp_split a, struct ghp_split b);
/* Whether a layer's parameters can be sharded under a split: others hold the same parts, and their gradients are
 * summed. Returns GHP_ERR_INPUT naming what would do. */
enum ghp_status ghp_sharding_check(const struct ghp_layer *layer, struct ghp_split split,
                                   struct ghp_problem problem);
/* Whether weights are gathered for use; whether each micro-batch's gradients are reduced. */
static inline bool ghp_sharding_gathers(enum ghp_param_sharding sharding)
{
    return sharding > GHP_SHARDING_GRADIENTS;
}
static inline bool ghp_sharding_reduces_each(enum ghp_param_sharding sharding)
{
    return sharding != GHP_SHARDING_NONE && sharding != GHP_SHARDING_STEP;
}
int64_t ghp_layout_samples(struct ghp_layout layout,
                           struct ghp_problem problem); /* samples each worker holds */
/* What each of `parts` parts gets of `whole` things, padding included. */
int64_t ghp_part_of(int64_t whole, int parts);
int64_t ghp_layout_channels(struct ghp_layout layout,
                            int64_t channels); /* channels each worker holds, with padding */
/* Positions, of an image rows, that each worker holds. */
int64_t ghp_layout_positions(struct ghp_layout layout, int64_t positions);
/* Members of a subgroup that have the same positions of the same samples: 1 if each has its own. */
int ghp_split_sharers(struct ghp_split split);
const char *ghp_split_kind_name(enum ghp_split_kind kind);
bool ghp_split_kind_find(const char *name, enum ghp_split_kind *kind);
/* "data", "out:4", "data+pass" */
enum { GHP_SPLIT_TEXT_BYTES = 40 };
void ghp_split_format(struct ghp_split split, char *text, size_t n);
/* Names in options, plans and texts; NULL ends. */
extern const char *const ghp_param_sharding_names[GHP_SHARDING_COUNT + 1];
/* Pairs of another library's word for one, and its name or option; NULL ends them (struct ghp_opt's synonyms). */
extern const char *const ghp_param_sharding_synonyms[];
void ghp_layout_format(struct ghp_layout layout, char *text, size_t n); /* "batch", "channel:4" */
enum ghp_status ghp_split_parse(const char *text, struct ghp_split *split);

/* "choices" never exceed this for N up to 2^20 (240 divisors of N, four kinds other than data). */
enum { GHP_MAX_CHOICES = 960 };

#endif
