/* core/model/op.h - what is true of an operation without a library; read this first to add one.
 *
 * Each operation is one constant `struct ghp_op_facts` in core/model/op/FAMILY/NAME.c. Reading, shapes, splits,
 * programs, costs and memory look everything up there, so no other file of core, planner or inspect names an operation
 * for what these fields can say.
 *
 * Adding an operation touches
 *   1. core/model/model.h      one line of GHP_OP_LIST (and a field among GHP_ATTRIBUTES, if a key needs one);
 *   2. core/model/op/FAMILY/NAME.c: its facts;
 *   3. executor/backend        its rows in reference/, cpu/ and cuda/kernels/ with their kernels, in a file of the
 *                              family or in a new one, which the build finds; a backend without them is refused
 *                              by name;
 *   4. onnx/operator           its row: how it is written as ONNX, and how it is read; without, it is refused;
 *   5. tests                   executor/op_define.c (its definition); if it takes sizes or several inputs, also
 *                              core/model/test_ops.c (its keys) and executor/op_case.c (shapes);
 *   6. docs/reference/formats.md         its row in the table of operations.
 *
 * docs/developers/tour.md lists the files. Tested  tests/core/model/test_ops.c, tests/core/model/test_model.c */
#ifndef GHP_CORE_MODEL_OP_H
#define GHP_CORE_MODEL_OP_H

#include "core/model/model.h"

struct ghp_attribute; /* core/model/attributes.h */

#define GHP_PASS_LIST(X)                                                                           \
    X(FORWARD, "forward")                                                                          \
    X(BACKWARD_DATA, "backward_data")                                                              \
    X(BACKWARD_WEIGHT, "backward_weight")                                                          \
    X(STATS, "stats") /* batch_norm: sums over local samples, before the forward pass */           \
    X(BACKWARD_STATS,                                                                              \
      "backward_stats") /* batch_norm: sums of dy and dy * xhat, before backward_data */

enum ghp_pass {
#define GHP_PASS_ENUM(id, text) GHP_PASS_##id,
    GHP_PASS_LIST(GHP_PASS_ENUM)
#undef GHP_PASS_ENUM
        GHP_PASS_COUNT
};

/* What each of m workers does of a layer (core/sharding/split.h). */
enum ghp_split_kind {
    GHP_SPLIT_DATA,     /* its own samples */
    GHP_SPLIT_OUT,      /* its output channels */
    GHP_SPLIT_IN,       /* its input channels, and a summand of the output */
    GHP_SPLIT_CHANNEL,  /* its channels, which depend on no others */
    GHP_SPLIT_FULL,     /* the same as the others */
    GHP_SPLIT_ROWS,     /* its rows of a table, and a summand of the output */
    GHP_SPLIT_POSITION, /* its positions of a sequence */
    GHP_SPLIT_RING, /* of an attention: the same, and keys and values come from worker to worker */
    GHP_SPLIT_COUNT
};

/* An operation at the shape that a worker runs it; core/sharding/local.h. */
struct ghp_local {
    enum ghp_op op;
    int64_t n;       /* samples on this worker */
    int64_t c, h, w; /* local input channels (all inputs' sum with `slice`), height, width */
    int64_t k, p, q; /* local output channels, height, width */
    int n_inputs;    /* of those that take several */
    int repeat; /* batch_norm: ghost batches of n samples that it is run on one after the other; 0: 1 */
    int64_t slice[GHP_MAX_INPUTS]; /* concat, attention: local channels of each input */
    GHP_ATTRIBUTES_MEMBERS /* groups of the window, channels of the view and numbers of heads are local */
        int64_t vocabulary; /* of the input; embedding: local rows of the table */
    int parts; /* of a loss whose classes are divided: workers that have a part each; else 0 */
    /* attention over divided positions: positions of keys and values; 0: as many as h */
    int64_t keys;
};

/* What STATS of a loss say of each row of logits whose classes are divided, doubles [parts][rows][GHP_ROW_COUNT]: each
 * worker writes those of its classes and zeros for all others, so that the sum over workers has all. */
enum ghp_row {
    GHP_ROW_MAX, /* its greatest logit; of several equal ones the first counts */
    GHP_ROW_SUM, /* of exp(logit - GHP_ROW_MAX) */
    /* the label's logit, 0 of another worker's label; with label smoothing the logits' mean by their targets */
    GHP_ROW_LABEL,
    GHP_ROW_CORRECT, /* 1 if the greatest is the label's */
    GHP_ROW_COUNT
};

enum { GHP_KEY_BYTES = 256 };

enum { GHP_INDEX_MAP_NOTHING = -1 }; /* of `source`: no element, the constant */

/* Tensors that passes touch. */
enum {
    GHP_AT_X = 1 << 0, /* all inputs */
    GHP_AT_DX = 1 << 1,
    GHP_AT_Y = 1 << 2,
    GHP_AT_DY = 1 << 3,
    GHP_AT_W = 1 << 4, /* all parameters */
    GHP_AT_DW = 1 << 5,
    GHP_AT_STATE = 1 << 6, /* running statistics */
    /* what the forward pass keeps for the backward pass, other than x and y */
    GHP_AT_SAVED = 1 << 7,
    GHP_AT_STATS = 1 << 8,  /* what workers reduce between two passes: stats_numbers */
    GHP_AT_LABELS = 1 << 9, /* of the samples */
    GHP_AT_METRICS = 1 << 10
};

struct ghp_op_pass { /* both 0: the operation has no such pass */
    unsigned reads, writes;
};

/* What a dimension of a parameter counts. */
enum ghp_dim {
    GHP_DIM_NONE,
    GHP_DIM_OUT,     /* output channels */
    GHP_DIM_IN,      /* input channels of one group */
    GHP_DIM_GROUP,   /* output channels of one group */
    GHP_DIM_CHANNEL, /* input channels */
    GHP_DIM_HEAD,    /* channels of a head, which all heads share; without heads all channels */
    GHP_DIM_R,       /* rows of the window */
    GHP_DIM_S,       /* columns of the window */
    GHP_DIM_POSITION,
    GHP_DIM_OFFSET, /* places of a key relative to its query in a window */
    GHP_DIM_HEADS,
    GHP_DIM_ADDED,  /* positions of the output that the input does not have */
    GHP_DIM_HEIGHT, /* of the output; a vector has neither it nor what follows */
    GHP_DIM_WIDTH,
    GHP_DIM_VOCABULARY
};

struct ghp_op_param {
    const char *part; /* its name, which follows the layer's and a dot; NULL ends a list */
    enum ghp_init init;
    enum ghp_dim dims[GHP_MAX_DIMS];
};

enum { GHP_MAX_SAVED = 4 };

/* What a kernel does together with others, while the tensor is in registers (core/program/fuse.h): the layers after it,
 * before it, or a part of itself. */
enum {
    GHP_FUSES_BIAS = 1 << 0,  /* after it */
    GHP_FUSES_RELU = 1 << 1,  /* after it */
    GHP_FUSES_ADD = 1 << 2,   /* after it, of two tensors */
    GHP_FUSES_STATS = 1 << 3, /* its own sums over the samples, if no other worker shares them */
    GHP_FUSES_RELU_BEFORE = 1 << 4, /* backward: it gives the gradient of the ReLU's input */
    GHP_FUSES_SUM = 1 << 5,         /* backward: it adds its gradient to those of other readers */
    /* the addition of two tensors right before it, which others read too */
    GHP_FUSES_ADD_BEFORE = 1 << 6,
    GHP_FUSES_GRADIENT = 1 << 7, /* of a loss: its backward pass, where its output would be */
    GHP_FUSES_MASK = 1 << 8,     /* backward: its gradient takes the mask of the ReLU before it */
    GHP_FUSES_SUMS = 1 << 9      /* after it, the sums that a batch norm of its output needs */
};

#define GHP_TAKES(axes) (1u << GHP_AXES_##axes)
#define GHP_TAKES_IMAGES                                                                           \
    (GHP_TAKES(VECTOR) | GHP_TAKES(IMAGE)) /* a vector is an image of one pixel */
#define GHP_TAKES_ROWS                                                                             \
    (GHP_TAKES(VECTOR) | GHP_TAKES(SEQUENCE)) /* vectors, one or one a position */

struct ghp_op_facts {
    const struct ghp_attribute *attributes; /* ends with one without a key; NULL: there are none */

    /* ---- shape ---- */
    int least_inputs, most_inputs;
    /* Shapes of its inputs: bits of GHP_TAKES; 0: any. */
    unsigned takes;
    /* Fills in layer->out from its inputs and attributes, or refuses them with GHP_ERR_INPUT; NULL: out is in. */
    enum ghp_status (*shape)(const struct ghp_model *model, struct ghp_layer *layer);
    struct ghp_op_param params[GHP_MAX_PARAMS + 1], states[GHP_MAX_STATES + 1];

    /* ---- computation ---- */
    struct ghp_op_pass passes[GHP_PASS_COUNT];
    /* of a pass that it has, 2 a multiply-add; NULL: 0, it has no matrix product */
    int64_t (*flops)(const struct ghp_local *local, enum ghp_pass pass);
    /* Parts of what the forward pass saves, in this order in one buffer; ghp_local_saved_offset. */
    int64_t (*saved_bytes[GHP_MAX_SAVED])(const struct ghp_local *local, int element_bytes);
    /* Doubles that workers reduce between two passes; NULL: none. */
    int64_t (*stats_numbers)(const struct ghp_local *local);
    bool (*in_place)(struct ghp_shape in); /* y may be x and dx dy; NULL: never */
    /* For each element of the output, the element of the same sample's input that it is, both as they lie in memory, or
     * GHP_INDEX_MAP_NOTHING (core/sharding/index_table.h). NULL: it computes. */
    int32_t (*source)(const struct ghp_local *local, const int64_t out[3]);
    /* How many channels of a pixel, from each multiple of it on, `source` takes from places that follow one another; it
     * divides the channels. NULL: 1. */
    int64_t (*run)(const struct ghp_local *local);

    /* ---- division ---- */
    /* The channels that a split other than data and position divides; of full 1; 0: the operation does not take it.
     * NULL: each channel depends on itself alone (ghp_divides_channels). */
    int64_t (*divides)(const struct ghp_layer *layer, enum ghp_split_kind kind);
    /* Whether workers may have positions of a sequence each: every position of the output depends on its own of the
     * inputs, and on all of `whole_inputs`. Not said of matrix products and tables, whose weights would be summed as by
     * data. */
    bool by_position;
    /* Bits 1 << input of those that each worker has at all positions, however many positions of the others it has: by
     * position it makes a summand of their gradients. */
    unsigned whole_inputs;
    /* Bits 1 << kind of the splits by which it divides the classes of a loss (struct ghp_layer's `logits`) or a
     * vocabulary: these need not come out even, the last parts have padding then (core/sharding/split.h). */
    unsigned pads;
    /* Fills in what the local operation has in addition to its sizes. parts: number of workers among which channels are
     * divided. NULL: nothing. */
    void (*localize)(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local);
    /* Whether a pass would rather have its tensors in blocks of channels, if no plan says anything; NULL: it takes
     * what there is. By the sizes alone, so that a plan's program decides (core/program/memory_format.h). */
    bool (*wants_blocks)(const struct ghp_local *local, enum ghp_pass pass);
    /* Appends to a key what its samples, channels, height and width do not say; NULL: nothing. */
    void (*key)(const struct ghp_local *local, char *text, size_t n);

    /* ---- fusion ---- */
    unsigned fuses;    /* GHP_FUSES_ bits */
    unsigned fused_as; /* to an operation before it: BIAS, RELU or ADD of them; 0: none */

    /* ---- what else is special; false is the rule ---- */
    bool is_input; /* loads samples; computes nothing */
    /* ends the network: reads labels, adds to the metrics, makes the first gradient; has STATS if it is divided */
    bool is_loss;
    /* a loss: each output has a label, a real number (ghp_label_number); of `losses` in the data alone */
    bool takes_numbers;
    bool takes_ids;     /* its input is token ids; others take numbers */
    int ids_input; /* a further input of token ids, all of whose positions each worker has; 0: none */
    /* of its input it takes the number of samples alone, so ids and numbers are both right */
    bool takes_samples;
    bool is_weighted; /* a matrix product: its weights are most of the network's */
    bool may_tie;  /* its first parameter may be that of an embedding, which has the same sizes */
    bool has_bias; /* a bias layer of its own follows it, unless its key `bias` is false */
    /* passes of sums over the samples, which workers reduce, come before the others */
    bool has_batch_statistics;
    bool chooses_format; /* x and y may lie in different memory formats, and so may its weights */
    bool hands_gradient_on; /* each input's gradient is the output's, unchanged */
    bool runs_once;         /* is not recomputed in the backward pass */
    bool stays_fixed;       /* its parameters are never trained */
};

/* Never NULL. */
const struct ghp_op_facts *ghp_op_of(enum ghp_op op);
/* All, by enum ghp_op: [GHP_OP_COUNT]. */
const struct ghp_op_facts *const *ghp_op_all(void);
bool ghp_op_find(const char *name, enum ghp_op *op);

/* ---- what follows from the facts ---- */

const char *ghp_op_name(enum ghp_op op);
/* conv2d and linear: the operations that the network's work and most of its weights are in. */
bool ghp_op_is_weighted(enum ghp_op op);
/* Whether its first parameter is multiplied as a matrix or as filters: a transposed convolution's too. */
bool ghp_op_multiplies_weights(enum ghp_op op);
bool ghp_op_has_pass(enum ghp_op op, enum ghp_pass pass);
/* Whether this input, if it is there, is token ids. */
bool ghp_op_takes_ids(const struct ghp_op_facts *facts, int input);
/* What a pass reads and writes: GHP_AT_ bits. */
unsigned ghp_op_uses(enum ghp_op op, enum ghp_pass pass);
/* What the backward passes read. */
unsigned ghp_op_backward_reads(enum ghp_op op);
bool ghp_op_needs_input(enum ghp_op op);  /* backward reads the forward input */
bool ghp_op_needs_output(enum ghp_op op); /* backward reads the forward output */
/* output may overwrite input 0, and dx overwrite dy */
bool ghp_op_in_place(const struct ghp_layer *layer);
bool ghp_pass_is_backward(enum ghp_pass pass);

/* Channels of a head; all of an operation without heads. */
static inline int64_t ghp_local_head(const struct ghp_local *local)
{
    return local->heads.size > 0 ? local->heads.size : local->c;
}

/* Sizes of a parameter of a local operation, and their product; returns the number of dimensions. */
int ghp_local_param_dims(const struct ghp_local *local, const struct ghp_op_param *param,
                         int64_t dims[GHP_MAX_DIMS]);
int64_t ghp_local_param_elements(const struct ghp_local *local, int param);
/* How labels of `losses` lie; and the local loss of one of its outputs by itself, whose rows are its own channels. */
struct ghp_label_outputs ghp_loss_label_outputs(const struct ghp_loss *loss);
struct ghp_local ghp_local_output(const struct ghp_local *local, int output);
/* What a loss has a loss of, one a row, or one an output; and its labels, which several outputs may share. */
int64_t ghp_local_losses(const struct ghp_local *local);
int64_t ghp_local_labels(const struct ghp_local *local);
int64_t ghp_local_weight_elements(const struct ghp_local *local); /* of all parameters */
int ghp_op_params(enum ghp_op op);
/* A layer's operation on one sample, undivided, without what `localize` adds. */
struct ghp_local ghp_local_whole(const struct ghp_layer *layer);

/* forward, per sample, multiply and add = 2 */
int64_t ghp_layer_flops(const struct ghp_layer *layer);

/* ---- for the facts (op_rules.c) ---- */

int64_t ghp_divides_channels(const struct ghp_layer *layer, enum ghp_split_kind kind);
int64_t ghp_divides_matrix(const struct ghp_layer *layer, enum ghp_split_kind kind);
/* A matrix product at each position has as many channels as `features` says, and a product a weight and position. */
enum ghp_status ghp_shape_features(const struct ghp_model *model, struct ghp_layer *layer);
int64_t ghp_product_flops(const struct ghp_local *local, enum ghp_pass pass);
/* Convolutions by Winograd's minimal filtering work on square tiles of GHP_CONV_TILE x GHP_CONV_TILE inputs. The first
 * function says whether there are such tiles. The second says whether a pass is likely faster with them than directly,
 * if nobody measured. That needs enough tiles to share the transformed weights, tiles that lie mostly inside the image,
 * and enough channels to outweigh the tiles' own transforms. */
enum { GHP_CONV_TILE = 6 };
bool ghp_conv_has_tiles(const struct ghp_local *local);
bool ghp_conv_tiles_pay(const struct ghp_local *local, enum ghp_pass pass);
/* A loss's outputs: refuses channels that are not theirs, and makes each output a position of its own. */
enum ghp_status ghp_loss_shape(const struct ghp_model *model, struct ghp_layer *layer);
void ghp_loss_localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                       struct ghp_local *local);
/* Channels depend on each other: only data, or every worker does the same. */
int64_t ghp_divides_samples(const struct ghp_layer *layer, enum ghp_split_kind kind);
bool ghp_in_place_always(struct ghp_shape in);
/* The index in memory of the input element of this channel, row and column. */
int32_t ghp_local_place(const struct ghp_local *local, const int64_t at[3]);

#endif
