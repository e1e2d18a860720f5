/* core/model/model.h - the network: a DAG of layers in topological order.
 *
 * A model holds what is true of the network alone: operations, shapes per sample, parameters. It knows nothing of
 * workers, batches or splits. Layer 0 is the input, the last layer is the loss (softmax cross-entropy), and every
 * layer's inputs come before it.
 *
 * Call order: ghp_model_load -> read fields -> ghp_model_release.
 * To add an operation: core/model/op.h says how.
 *
 * Activations are stored N,H,W,C (channels innermost) everywhere; `flatten` reorders to the C,H,W feature order, so
 * weights keep the field's canonical order. */
#ifndef GHP_CORE_MODEL_MODEL_H
#define GHP_CORE_MODEL_MODEL_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* constant, name in files; core/model/op/FAMILY/NAME.c, or a file for several, has its `ghp_op_facts_NAME` */
#define GHP_OP_LIST(X)                                                                             \
    X(INPUT, input)                                                                                \
    X(CONV2D, conv2d)                                                                              \
    X(CONV_TRANSPOSE, conv_transpose)                                                              \
    X(LINEAR, linear)                                                                              \
    X(BIAS, bias)                                                                                  \
    X(RELU, relu)                                                                                  \
    X(ACTIVATION, activation)                                                                      \
    X(GELU, gelu)                                                                                  \
    X(SILU, silu)                                                                                  \
    X(HARD_SWISH, hard_swish)                                                                      \
    X(POINTWISE, pointwise)                                                                        \
    X(MAX_POOL, max_pool)                                                                          \
    X(AVG_POOL, avg_pool)                                                                          \
    X(GLOBAL_AVG_POOL, global_avg_pool)                                                            \
    X(RESIZE, resize)                                                                              \
    X(BATCH_NORM, batch_norm)                                                                      \
    X(FROZEN_BATCH_NORM, frozen_batch_norm)                                                        \
    X(LRN, lrn)                                                                                    \
    X(LAYER_NORM, layer_norm)                                                                      \
    X(RMS_NORM, rms_norm)                                                                          \
    X(SOFTMAX, softmax)                                                                            \
    X(DROPOUT, dropout)                                                                            \
    X(ATTENTION, attention)                                                                        \
    X(WINDOW_ATTENTION, window_attention)                                                          \
    X(ROTARY, rotary)                                                                              \
    X(EMBEDDING, embedding)                                                                        \
    X(POSITION_EMBEDDING, position_embedding)                                                      \
    X(PREPEND, prepend)                                                                            \
    X(PARAMETER, parameter)                                                                        \
    X(ADD, add)                                                                                    \
    X(MUL, mul)                                                                                    \
    X(CONCAT, concat)                                                                              \
    X(FLATTEN, flatten)                                                                            \
    X(VIEW, view)                                                                                  \
    X(PAD, pad)                                                                                    \
    X(RANDOM_FEATURES, random_features)                                                            \
    X(SOFTMAX_CE, softmax_cross_entropy)                                                           \
    X(HINGE, hinge)                                                                                \
    X(SQUARED_ERROR, squared_error)                                                                \
    X(BINARY_CE, binary_cross_entropy)                                                             \
    X(REGRESSION, regression)                                                                      \
    X(LOSSES, losses)

enum ghp_op {
#define GHP_OP_ENUM(id, name) GHP_OP_##id,
    GHP_OP_LIST(GHP_OP_ENUM)
#undef GHP_OP_ENUM
        GHP_OP_COUNT
};

/* activation: name, JSON text. alpha and beta are of struct ghp_activation. */
#define GHP_FUNCTION_LIST(X)                                                                       \
    X(LEAKY_RELU, "leaky_relu") /* x > 0 ? x : alpha x, alpha >= 0 */                              \
    X(SIGMOID, "sigmoid")                                                                          \
    X(TANH, "tanh")                                                                                \
    X(ELU, "elu")       /* x > 0 ? x : alpha (e^x - 1), alpha >= 0 */                              \
    X(CLIP, "clip")     /* min(max(x, alpha), beta), alpha < beta */                               \
    X(AFFINE, "affine") /* alpha x + beta; not trained */

enum ghp_function {
#define GHP_FUNCTION_ENUM(id, text) GHP_FUNCTION_##id,
    GHP_FUNCTION_LIST(GHP_FUNCTION_ENUM)
#undef GHP_FUNCTION_ENUM
        GHP_FUNCTION_COUNT
};

/* pointwise: name, JSON text. */
#define GHP_CURVE_LIST(X)                                                                          \
    X(EXP, "exp")                                                                                  \
    X(POW, "pow") /* x^exponent; of x < 0 by a whole exponent alone */                             \
    X(LOG, "log")                                                                                  \
    X(SOFTPLUS, "softplus") /* log(1 + e^x); of x > threshold x itself */                          \
    X(ABS, "abs")                                                                                  \
    X(SIN, "sin")                                                                                  \
    X(COS, "cos")

enum ghp_curve {
#define GHP_CURVE_ENUM(id, text) GHP_CURVE_##id,
    GHP_CURVE_LIST(GHP_CURVE_ENUM)
#undef GHP_CURVE_ENUM
        GHP_CURVE_COUNT
};

/* regression: name, JSON text; of d = output less label, with a delta that is of struct ghp_loss. */
#define GHP_ERROR_LIST(X)                                                                          \
    X(SQUARED, "squared")                                                                          \
    X(ABSOLUTE, "absolute")                                                                        \
    X(HUBER, "huber")         /* |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2) */               \
    X(SMOOTH_L1, "smooth_l1") /* that over delta */

enum ghp_error {
#define GHP_ERROR_ENUM(id, text) GHP_ERROR_##id,
    GHP_ERROR_LIST(GHP_ERROR_ENUM)
#undef GHP_ERROR_ENUM
        GHP_ERROR_COUNT
};

/* pad: name, JSON text. */
#define GHP_FILL_LIST(X)                                                                           \
    X(CONSTANT, "constant") /* `value` */                                                          \
    X(REFLECT, "reflect")   /* mirrored about the edge, which is not repeated */                   \
    X(EDGE, "edge")         /* the edge repeated */

enum ghp_fill {
#define GHP_FILL_ENUM(id, text) GHP_FILL_##id,
    GHP_FILL_LIST(GHP_FILL_ENUM)
#undef GHP_FILL_ENUM
        GHP_FILL_COUNT
};

/* resize: what an output pixel i of n is of m input pixels along an axis: name, JSON text. */
#define GHP_RESIZE_LIST(X)                                                                         \
    X(LINEAR, "linear")   /* at (i + 1/2) m / n - 1/2, between two; outside the edge */            \
    X(CORNERS, "corners") /* at i (m - 1) / (n - 1), between two */                                \
    X(NEAREST, "nearest") /* the pixel at the floor of i m / n */                                  \
    X(AREA, "area")       /* the mean of those from floor(i m / n) to ceil((i + 1) m / n) */

enum ghp_resize {
#define GHP_RESIZE_ENUM(id, text) GHP_RESIZE_##id,
    GHP_RESIZE_LIST(GHP_RESIZE_ENUM)
#undef GHP_RESIZE_ENUM
        GHP_RESIZE_COUNT
};

enum ghp_drop { GHP_DROP_ELEMENTS, GHP_DROP_SAMPLES, GHP_DROP_CHANNELS };
enum ghp_gelu { GHP_GELU_ERF, GHP_GELU_TANH, GHP_GELU_COUNT };

enum {
    GHP_MAX_INPUTS = 16,
    GHP_MAX_PARAMS = 4,
    GHP_MAX_STATES = 2,
    GHP_MAX_DIMS = 4,
    GHP_MAX_VIEW = 8,
    GHP_MAX_NAME = 192 /* bytes of a layer's name; a tensor's has a few more */
};

/* What the axes of a shape mean. An image of one pixel is a vector; a sequence of one position stays a sequence. */
enum ghp_axes {
    GHP_AXES_VECTOR,   /* c channels; h = w = 1 */
    GHP_AXES_IMAGE,    /* c channels of h x w pixels */
    GHP_AXES_SEQUENCE, /* c channels of h positions; w = 1: in memory [position][channel] */
    GHP_AXES_COUNT
};

struct ghp_shape { /* per sample */
    int64_t c, h, w;
    enum ghp_axes axes;
    int64_t vocabulary; /* 0: numbers; else token ids, 0 to vocabulary - 1 */
    int64_t columns;    /* channels in memory, with padding (core/model/vocabulary.h); 0: c */
};

struct ghp_window {                                   /* conv2d and pools */
    int64_t r, s;                                     /* kernel height, width */
    int64_t stride_h, stride_w;                       /* >= 1 */
    int64_t pad_top, pad_left, pad_bottom, pad_right; /* >= 0 */
    int64_t dilation_h, dilation_w;                   /* >= 1 */
    int64_t groups;                                   /* conv2d; divides both channel counts */
    bool count_pad;                                   /* avg_pool: padding counts in the mean */
};

struct ghp_norm {    /* attributes of norms, lrn, dropout, gelu */
    double epsilon;  /* batch_norm, frozen_batch_norm, layer_norm, rms_norm */
    double offset;   /* rms_norm: added to the weight */
    double momentum; /* batch_norm: running = (1 - momentum) running + momentum batch */
    /* batch_norm: statistics over this worker's samples only (the plan then changes the result) */
    bool local_stats;
    /* batch_norm: global samples that share statistics; 0: the whole batch */
    int64_t ghost_batch;
    int64_t size;          /* lrn: channels in the window, odd */
    double alpha, beta, k; /* lrn: y = x / (k + alpha/size sum x^2)^beta */
    double ratio;          /* dropout: probability of zero, [0, 1) */
    enum ghp_drop drop;    /* dropout: of each element by itself, or of whole samples */
    enum ghp_gelu gelu;    /* exact, or approximated */
};

struct ghp_activation {
    enum ghp_function function;
    double alpha, beta; /* see GHP_FUNCTION_LIST; 0 if not used */
};

/* rotary: how angles are scaled to longer samples (core/model/rotary.h): name, JSON text. */
#define GHP_ROTARY_LIST(X)                                                                         \
    X(UNSCALED, "none")                                                                            \
    X(LINEAR, "linear")                                                                            \
    X(LLAMA3, "llama3")                                                                            \
    X(YARN, "yarn")

enum ghp_rotary {
#define GHP_ROTARY_ENUM(id, text) GHP_ROTARY_##id,
    GHP_ROTARY_LIST(GHP_ROTARY_ENUM)
#undef GHP_ROTARY_ENUM
        GHP_ROTARY_COUNT
};

struct ghp_pointwise {
    enum ghp_curve curve;
    double exponent, threshold; /* see GHP_CURVE_LIST; 0 if not used */
};

struct ghp_heads {   /* rotary, attention, rms_norm */
    int64_t size;    /* channels of a head; rms_norm: 0: all channels are normed together */
    int64_t n, n_kv; /* attention: heads of queries, and of keys and values; n_kv divides n */
    int64_t keys;    /* attention: positions of keys and values; 0: as many as of queries */
    bool causal;     /* attention: a position sees itself and those before it */
    int64_t window;  /* attention, causal: how many of these it sees, the last ones; 0: all */
    double scale;    /* attention: of products of queries and keys; 0: 1 over the root of size */
    double softcap;  /* attention: scores s become softcap tanh(s / softcap); 0: they stay */
    double dropout;  /* attention: probability that training takes a value's weight for zero */
    /* Attention that reads token ids, too: of padding; of a document's last position. -1: there is none. */
    int64_t pad_token, end_token;
    int64_t turned; /* rotary: how many channels of a head turn, the first ones; even */
    double base;    /* rotary: pair i turns by base^(-2 i / turned) from one position to the next */
    enum ghp_rotary scaling;
    double factor, slow, fast; /* of the scaling; llama3, yarn: turns over the original positions */
    int64_t original;          /* llama3, yarn: positions that the network was trained on */
    double amplitude;          /* yarn: of all turned channels; 1: as they are */
    bool truncate;             /* yarn: pairs to whole ones */
};

struct ghp_tiles { /* window_attention: windows of h x w pixels, `across` of them in a row */
    int64_t h, w, across;
    int64_t shift_h, shift_w; /* by which the image was rolled up and to the left; below h and w */
};

/* view: which input element each output element is. Both count c, h, w, the last fastest (whatever memory does):
 * output element (i_0, i_1, ...) of the sizes is input element offset + sum i_j strides[j]. The sizes' products fall on
 * the bounds between channels, rows and columns of the output. */
struct ghp_view {
    int n; /* dimensions; 0: one element */
    int64_t offset;
    int64_t sizes[GHP_MAX_VIEW];   /* >= 1 */
    int64_t strides[GHP_MAX_VIEW]; /* of any sign; 0 repeats */
    bool sequence;                 /* the output's rows are positions; its width is 1 */
};

struct ghp_drawn { /* random_features: what its matrix is drawn by */
    double sigma;
    int64_t seed;
};

struct ghp_loss_part { /* losses: one of its outputs, and the loss that it has; small, for each layer has 16 */
    int32_t channels;  /* 0: those of the output that was joined */
    uint8_t op, error; /* enum ghp_op, enum ghp_error */
    bool multi_label;
    double number; /* regression: delta; others: smoothing */
};

struct ghp_loss {
    /* softmax_cross_entropy: part of a target that all classes get alike, [0, 1] */
    double smoothing;
    bool multi_label;     /* binary_cross_entropy: each output has a label of its own, 0 or 1 */
    enum ghp_error error; /* regression */
    double delta;         /* HUBER, SMOOTH_L1 */
    /* Several outputs lie one after the other in its channels, but of `losses` each as wide as the others; 0: there is
     * one. */
    int outputs;
    double weights[GHP_MAX_INPUTS]; /* of each output's loss in their sum */
    bool own_labels;                /* each output has labels of its own; else all have the same */
    struct ghp_loss_part parts[GHP_MAX_INPUTS]; /* losses */
    int alone; /* of what is run of `losses` for one output by itself, 1 + that output; else 0 */
};

/* Whose each of a sample's labels is: those of a position lie output by output. */
struct ghp_label_outputs {
    int n;
    int64_t row;                     /* labels of a position, of all outputs */
    int64_t end[GHP_MAX_INPUTS];     /* where those of each output end among them */
    int64_t classes[GHP_MAX_INPUTS]; /* that they tell apart; 0: they are numbers */
};

struct ghp_border { /* pad: elements added, by channel, row and column */
    int64_t before[3], after[3];
    enum ghp_fill fill;
    double value; /* CONSTANT */
};

/* What operations need in addition to shapes. A layer has these members, and so has the part of it that a worker runs.
 * Attributes of a new operation go here. */
#define GHP_ATTRIBUTES                                                                             \
    struct ghp_window window;                                                                      \
    struct ghp_norm norm;                                                                          \
    struct ghp_activation activation;                                                              \
    struct ghp_pointwise pointwise;                                                                \
    enum ghp_resize resize;                                                                        \
    struct ghp_view view;                                                                          \
    struct ghp_border border;                                                                      \
    struct ghp_heads heads;                                                                        \
    struct ghp_tiles tiles;                                                                        \
    struct ghp_drawn drawn;                                                                        \
    int64_t prepended; /* prepend: positions that it adds */                                       \
    struct ghp_loss loss;

struct ghp_attributes {
    GHP_ATTRIBUTES
};

/* Gives a struct these members, and all of them together as `attributes`. */
#define GHP_ATTRIBUTES_MEMBERS                                                                     \
    union {                                                                                        \
        struct ghp_attributes attributes;                                                          \
        struct {                                                                                   \
            GHP_ATTRIBUTES                                                                         \
        };                                                                                         \
    };

/* NORMAL: of a deviation. KAIMING: normal, variance gain / fan_in; the gain is in executor/state/parameters.c. */
/* UNIFORM: between -1 and 1 over the root of fan_in, PyTorch's first weights of a linear layer. */
enum ghp_init { GHP_INIT_ZERO, GHP_INIT_ONE, GHP_INIT_UNIFORM, GHP_INIT_NORMAL, GHP_INIT_KAIMING };

/* What a linear layer asks of its first weights: by `deviation`, or one of the first kinds of enum ghp_init. */
enum ghp_first { GHP_FIRST_NORMAL, GHP_FIRST_ZEROS, GHP_FIRST_UNIFORM };

/* One tensor: weight, bias, gamma, beta (trained) or running mean, variance (state). */
struct ghp_param {
    char *name; /* checkpoint name, e.g. "conv1.weight" */
    int n_dims;
    int64_t dims[GHP_MAX_DIMS]; /* conv2d [K][C/groups][R][S], linear [K][C], others [C] */
    bool transposed;            /* files of tensors hold it as [C][K] (model/orientation.h) */
    int64_t elements;
    int64_t fan_in;   /* KAIMING, UNIFORM */
    double deviation; /* NORMAL */
    enum ghp_init init;
    /* How a run updates it (core/optimizer/parameter_groups.h): a factor of the learning rate; 0: none, as 1. */
    double rate_scale;
    bool undecayed; /* it takes no weight decay */
};

struct ghp_layer {
    char *name;
    enum ghp_op op;
    int n_inputs;
    int inputs[GHP_MAX_INPUTS]; /* layer indices, each < own index */
    int first_edge;             /* edge of input slot i is first_edge + i */
    struct ghp_shape in;        /* of input 0, per sample */
    struct ghp_shape out;       /* per sample */
    GHP_ATTRIBUTES_MEMBERS
    double deviation; /* of its first weights; 0: as the operation has it */
    enum ghp_first first;
    bool fixed;      /* its parameters keep their first values: nothing computes their gradients */
    bool transposed; /* its module's weight is [C][K]: x @ weight */
    int tied;        /* 1 + the layer whose parameters it uses in place of its own; 0: none */
    bool shared;     /* a later layer uses its parameters too */
    /* it shares parameters in another way than an embedding and one linear layer do */
    bool by_data;
    bool logits;  /* the loss of a sequence, or what it alone reads: its channels are classes */
    int64_t rows; /* of a padded table of tokens, in memory; 0: as many as tokens */
    bool learns;  /* it or a layer before it is trained: gradients flow into its output */
    int n_params, n_states;
    struct ghp_param params[GHP_MAX_PARAMS]; /* weight | bias | gamma, beta */
    struct ghp_param states[GHP_MAX_STATES]; /* running_mean, running_var */
    int n_consumers;
    int *out_edges; /* edge indices, ascending by consumer; owned */
};

struct ghp_edge { /* tensor of layer `from` read by layer `to` as input `slot` */
    int from, to, slot;
};

struct ghp_model {
    char *name;
    char *text;                  /* the description as canonical JSON text; what plans embed */
    uint64_t hash;               /* of `text`, whatever its vocabulary_multiple */
    int64_t vocabulary_multiple; /* core/model/vocabulary.h */
    int classes;
    int n_layers;
    struct ghp_layer *layers;
    int n_edges;
    struct ghp_edge *edges;
    /* [n_layers] layers in order of their names; owned; NULL until the model is complete */
    int *by_name;
};

/* Reads models/NAME.json (or any path; onnx/network.h opens ONNX files too) and checks shapes.
 * Returns GHP_ERR_IO, GHP_ERR_FORMAT (syntax, unknown key; with line and column), GHP_ERR_INPUT (shape chain).
 * Local
 * Tested    tests/core/model/test_model.c */
enum ghp_status ghp_model_load(const char *path, struct ghp_model *model);

/* The same from JSON text; `name` stands for the path in messages. */
enum ghp_status ghp_model_parse(const char *text, const char *name, struct ghp_model *model);
void ghp_model_release(struct ghp_model *model);

/* Shapes, edges, consumers and parameters from ops, attributes and inputs (what a reader fills in).
 * Returns GHP_ERR_INPUT naming the layer and what would fit. */
enum ghp_status ghp_model_complete(struct ghp_model *model);

/* Whether all sizes, and sums of sizes, that follow from a network, a batch and a number of workers fit in 64 bits.
 * Code that takes a batch from a file or an option asks before counting anything.
 *
 * batch     samples of all workers together, >= 1
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the largest batch that fits
 * Tested    tests/core/model/test_model.c, tests/tools/hardship/test_huge_sizes.sh */
enum ghp_status ghp_model_check_sizes(const struct ghp_model *model, int64_t batch,
                                      int64_t workers);

int ghp_model_find(const struct ghp_model *model,
                   const char *layer); /* index, or -1; of a complete model */
const char *ghp_function_name(enum ghp_function function);
const char *ghp_fill_name(enum ghp_fill fill);
const char *ghp_rotary_name(enum ghp_rotary scaling);
int64_t ghp_shape_elements(struct ghp_shape shape);
/* Channels in memory, with padding. */
static inline int64_t ghp_shape_columns(struct ghp_shape shape)
{
    return shape.columns > 0 ? shape.columns : shape.c;
}
/* The shape of c channels of h x w pixels: a vector if there is only one pixel. */
struct ghp_shape ghp_shape_image(int64_t c, int64_t h, int64_t w);
struct ghp_shape ghp_shape_sequence(int64_t c, int64_t positions);
/* One token id a position. */
struct ghp_shape ghp_shape_tokens(int64_t positions, int64_t vocabulary);
/* Bytes of an element in memory: 4 if the shape is of token ids, which are int32 at any precision, else
 * element_bytes. */
int ghp_shape_element_bytes(struct ghp_shape shape, int element_bytes);
bool ghp_shape_equal(struct ghp_shape a, struct ghp_shape b);
enum { GHP_SHAPE_TEXT = 72 };
/* "64x32x32", "4096" of a vector, "768 channels x 64 positions"; returns text */
const char *ghp_shape_format(struct ghp_shape shape, char text[GHP_SHAPE_TEXT]);
/* The layer whose parameters a layer uses: itself, or the one that it is tied to. */
int ghp_model_owner(const struct ghp_model *model, int layer);
/* Channels of a loss's first output; but of `losses` all have as many. */
static inline int64_t ghp_loss_columns(const struct ghp_layer *loss)
{
    if (loss->op == GHP_OP_LOSSES) return loss->loss.parts[0].channels;
    return loss->loss.outputs > 1 ? loss->in.c / loss->loss.outputs : loss->in.c;
}
/* Labels of a sample: one for each position, or one for each output if the loss says so. */
int64_t ghp_model_labels(const struct ghp_model *model);
struct ghp_label_outputs ghp_model_label_outputs(const struct ghp_model *model);
/* The output that label i of a sample is of. */
static inline int ghp_label_output(const struct ghp_label_outputs *outputs, int64_t i)
{
    int output = 0;

    i %= outputs->row;
    while (output < outputs->n - 1 && i >= outputs->end[output])
        output++;
    return output;
}
/* The shape of a sample's labels, if they are numbers, one an output, or lie as numbers (losses); zeroed: they are
 * classes. */
struct ghp_shape ghp_model_targets(const struct ghp_model *model);
/* Tokens of a sample; 0 if the network's input is not token ids. */
int64_t ghp_model_tokens(const struct ghp_model *model);
int64_t ghp_layer_weights(const struct ghp_layer *layer); /* scalars of its parameters */
/* Whether gradients change the parameters that a layer uses, its own or those it is tied to. */
bool ghp_layer_trains(const struct ghp_model *model, int layer);

#endif
