/* onnx/operator/arithmetic.c - sums and products of tensors and constants, element by element. */
#include "onnx/operator/operator.h"

#include "onnx/operator/attention.h"
#include "onnx/operator/bias.h"
#include "onnx/operator/derived.h"
#include "onnx/operator/embedding.h"
#include "onnx/operator/fold.h"
#include "onnx/operator/join.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/scores.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <math.h>
#include <string.h>

enum kind { PLUS, MINUS, TIMES, OVER };

/* ---- constants with constants ---- */

static double plus(const double *x, int n)
{
    double sum = x[0];

    for (int i = 1; i < n; i++)
        sum += x[i];
    return sum;
}

static double minus(const double *x, int n)
{
    (void)n;
    return x[0] - x[1];
}

static double times(const double *x, int n)
{
    (void)n;
    return x[0] * x[1];
}

static double over(const double *x, int n)
{
    (void)n;
    return x[0] / x[1];
}

/* Sizes are far below 2^53. */
static double whole_over(const double *x, int n)
{
    (void)n;
    return x[1] == 0 ? 0 : (double)(int64_t)(x[0] / x[1]);
}

static double opposite(const double *x, int n)
{
    (void)n;
    return -x[0];
}

static enum ghp_status fold(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            enum kind kind)
{
    static ghp_onnx_function *const functions[] = {
        [PLUS] = plus, [MINUS] = minus, [TIMES] = times, [OVER] = over};
    bool whole = ghp_onnx_in(im, node, 0)->base->whole;

    return ghp_onnx_fold(im, node, whole && kind == OVER ? whole_over : functions[kind], whole);
}

/* ---- a tensor with a constant ---- */

static enum ghp_status affine(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              const struct ghp_onnx_array *x, double alpha, double beta)
{
    struct ghp_layer like = {
        .op = GHP_OP_ACTIVATION,
        .n_inputs = 1,
        .activation = {GHP_FUNCTION_AFFINE, ghp_onnx_tidy(alpha), ghp_onnx_tidy(beta)}};
    struct ghp_onnx_array settled = *x, made;
    int layer;

    if (!(alpha >= -1e30 && alpha <= 1e30 && beta >= -1e30 && beta <= 1e30))
        return ghp_onnx_fail(im, node, "has a constant beyond 1e30; use smaller ones");
    /* heads: of all channels, as an attention takes them */
    if (ghp_onnx_is_sequence(im, x->layer) && x->n > 3)
        like.inputs[0] = x->layer;
    else
        GHP_TRY(ghp_onnx_each_in(im, &settled, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_each_out(&settled, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

/* One over each element. */
static enum ghp_status invert(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_onnx_array *c)
{
    const struct ghp_onnx_array of = *c;
    int64_t n = ghp_onnx_elements(&of);
    const double *values;
    double *inverse;

    GHP_TRY(ghp_onnx_room(im, n, &inverse));
    GHP_TRY(ghp_onnx_values(im, &of, &values));
    for (int64_t i = 0; i < n; i++) {
        if (!(values[i] < 0 || values[i] > 0))
            return ghp_onnx_fail(im, node, "divides by zero; repair the file");
        inverse[i] = 1 / values[i];
    }
    GHP_TRY(ghp_onnx_of_values(im, false, (struct ghp_onnx_sizes){of.n, of.dims}, inverse, c));
    c->name = of.name;
    ghp_onnx_role_hand_on(&of, c);
    return GHP_OK;
}

/* A layer of one parameter a channel: products are a convolution of one pixel with a group for each channel. */
static struct ghp_layer layer_of(int64_t channels, bool product)
{
    struct ghp_layer like = {.op = GHP_OP_BIAS, .n_inputs = 1};

    if (!product) return like;
    like.op = GHP_OP_CONV2D;
    like.out.c = channels;
    like.window = (struct ghp_window){1, 1, 1, 1, 0, 0, 0, 0, 1, 1, channels, true};
    return like;
}

/* The constant as a parameter of one value a channel: trained like any other. */
static enum ghp_status channel_layer(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     struct ghp_onnx_array *x, struct ghp_onnx_source from,
                                     bool product)
{
    struct ghp_layer like = layer_of(x->dims[1], product);
    struct ghp_onnx_array made;

    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, &from.array), &from.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, from));
    made = ghp_onnx_of_layer(im, from.layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* The same, of one value for each place on the last axis. */
static enum ghp_status row_layer(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const struct ghp_onnx_array *x, struct ghp_onnx_source from,
                                 bool product)
{
    struct ghp_layer like = layer_of(x->dims[x->n - 1], product);
    struct ghp_onnx_array made;

    GHP_TRY(ghp_onnx_rows_in(im, x, &like.inputs[0]));
    from.layer = like.inputs[0];
    if (!product && ghp_onnx_is_part(&from.array) &&
        im->model.layers[from.layer].op == GHP_OP_LINEAR) { /* called as the product */
        GHP_TRY(ghp_onnx_bias_on(im, node, &from, &from.layer));
    } else {
        GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, &from.array), &from.layer));
        GHP_TRY(ghp_onnx_weight_from(im, node, from));
    }
    made = ghp_onnx_rows_out(im, x, from.layer);
    return ghp_onnx_define(im, node, 0, &made);
}

/* A parameter of one value: that of the only channel of an image of all elements. */
static enum ghp_status one_value(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const struct ghp_onnx_array *x, struct ghp_onnx_source from,
                                 enum kind kind)
{
    struct ghp_layer like = layer_of(1, kind == TIMES);
    struct ghp_onnx_array settled = *x, made;
    struct ghp_shape all = {.c = 1, .h = 1, .w = 1};

    if (kind == OVER) return ghp_onnx_role_fail_computed(im, node, &from.array);
    GHP_TRY(ghp_onnx_part_axes(im, &settled));
    if (settled.n > 1) all.h = settled.dims[1];
    all.w = ghp_onnx_elements(&settled) / all.h;
    GHP_TRY(ghp_onnx_settle(im, &settled, all, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, &from.array), &from.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, from));
    made = ghp_onnx_of_layer(im, from.layer, settled.n, settled.dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* The line that a number makes of each element of what is computed of parameters; false if it makes none. */
static bool line_of(enum kind kind, bool number_first, double number, struct ghp_activation *line)
{
    bool inverse = kind == OVER && !number_first;

    *line = (struct ghp_activation){.function = GHP_FUNCTION_AFFINE, .alpha = 1};
    if (!(fabs(number) <= 1e30) || (kind == OVER && number_first) || (inverse && number == 0))
        return false;
    line->alpha = kind == MINUS && number_first ? -1 : 1;
    if (kind == PLUS || kind == MINUS) {
        line->beta = ghp_onnx_tidy(kind == MINUS && !number_first ? -number : number);
        return true;
    }
    line->alpha = ghp_onnx_tidy(inverse ? 1 / number : number);
    return fabs(line->alpha) <= 1e30;
}

/* The input of two constants that is computed of parameters, or that is a parameter next to a number; -1: none is. */
static int derived_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    for (int i = 0; i < 2; i++)
        if (ghp_onnx_is_derived(ghp_onnx_in(im, node, i))) return i;
    for (int i = 0; i < 2; i++) {
        const struct ghp_onnx_base *base = ghp_onnx_in(im, node, i)->base;
        const struct ghp_onnx_array *number = ghp_onnx_in(im, node, 1 - i);

        if (base->role == GHP_ONNX_PARAMETER && base->held == NULL &&
            ghp_onnx_role_is_number(number) && ghp_onnx_elements(number) == 1)
            return i;
    }
    return -1;
}

/* What is computed of parameters alone, with a number, or plus a parameter for each channel. */
static enum ghp_status with_derived(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    enum kind kind, int at)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, at), *c = ghp_onnx_in(im, node, 1 - at);
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION};
    struct ghp_onnx_source bias = {.array = *c, .layer = x->base->derived - 1, .scale = 1};
    const double *number;
    int layer;

    if (!ghp_onnx_is_derived(c) && ghp_onnx_elements(c) == 1 && c->n <= x->n &&
        ghp_onnx_role_is_number(c)) {
        GHP_TRY(ghp_onnx_values(im, c, &number));
        if (line_of(kind, at == 1, number[0], &like.activation))
            return ghp_onnx_derive_each(im, node, x, like);
    }
    if (!ghp_onnx_is_derived(x)) return fold(im, node, kind);
    if (kind == PLUS && !ghp_onnx_is_derived(c) && c->n == 1 && ghp_onnx_derived_has_rows(im, x) &&
        c->dims[0] == x->dims[x->n - 1]) {
        GHP_TRY(ghp_onnx_bias_on(im, node, &bias, &layer));
        return ghp_onnx_derive_rows(im, node, x, layer);
    }
    return ghp_onnx_fail(im, node,
                         "combines what is computed of the parameter '%.96s' with something else "
                         "than a number, or a bias after a product; make the result a parameter",
                         x->base->of != NULL ? x->base->of : "");
}

/* Whether a constant has a trained factor for each head of scores, [heads][1][1], or one for all. */
static bool is_by_head(const struct ghp_onnx_scores *scores, const struct ghp_onnx_array *c)
{
    int64_t heads = scores->q.dims[scores->q.n - 3];
    bool sure = ghp_onnx_is_derived(c) || c->base->role == GHP_ONNX_PARAMETER;

    if (!ghp_onnx_may_derive(c)) return false;
    return ghp_onnx_elements(c) == 1
               ? sure
               : ghp_onnx_elements(c) == heads && c->n >= 3 && c->dims[c->n - 3] == heads;
}

static enum ghp_status with_scores(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   enum kind kind, int at)
{
    const struct ghp_onnx_array *c = ghp_onnx_in(im, node, 1 - at);

    if (kind == TIMES && is_by_head(ghp_onnx_in(im, node, at)->scores, c))
        return ghp_onnx_scores_times_heads(im, node, at);
    if (kind == PLUS && ghp_onnx_is_derived(c)) return ghp_onnx_scores_plus(im, node, at, 1);
    if (kind != PLUS || !ghp_onnx_windows_is_bias(im, c))
        GHP_TRY(ghp_onnx_role_check_number(im, node, c));
    if (kind == TIMES) return ghp_onnx_scores_times(im, node, at);
    if (kind == PLUS) return ghp_onnx_scores_plus(im, node, at, 1);
    if (kind == MINUS && at == 0) return ghp_onnx_scores_plus(im, node, at, -1);
    if (kind == OVER && at == 0) return ghp_onnx_scores_over(im, node);
    return ghp_onnx_fail(im, node,
                         "takes scores of an attention from a constant, or a constant "
                         "over them; ghp scales and masks them");
}

static enum ghp_status with_function(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const char *function, const char *part, const char *op);

/* A sum or product with a constant of any shape, as a learned tensor. */
static enum ghp_status with_parameter(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      struct ghp_onnx_array *x, const struct ghp_onnx_array *c,
                                      enum kind kind)
{
    struct ghp_layer opposite_of = {
        .op = GHP_OP_ACTIVATION, .n_inputs = 1, .activation = {GHP_FUNCTION_AFFINE, -1, 0}};
    struct ghp_layer like = {.op = kind == TIMES ? GHP_OP_MUL : GHP_OP_ADD};
    struct ghp_onnx_array both[2] = {*x}, made;
    int layers[2], n = 0, layer;
    bool sequence;

    GHP_TRY(ghp_onnx_parameter(im, node, c, x->n > c->n ? x->n : c->n, &both[1]));
    made = both[1];
    if (x->n != both[1].n || !ghp_onnx_joint_dims(x, &both[1], &n, made.dims))
        return ghp_onnx_fail(im, node,
                             "combines a constant of %d axes with a tensor that it does "
                             "not fit; reshape it in the file",
                             c->n);
    sequence =
        ghp_onnx_whole_sequence(im, x) && memcmp(made.dims, x->dims, 3 * sizeof *made.dims) == 0;
    for (int i = 0; i < 2; i++) {
        GHP_ASSERT(ghp_onnx_expand(&both[i], n, made.dims));
        if (sequence)
            GHP_TRY(ghp_onnx_as_sequence(im, &both[i]));
        else
            GHP_TRY(ghp_onnx_settle(im, &both[i], ghp_onnx_shape(&both[i]), &layers[i]));
        layers[i] = both[i].layer;
    }
    opposite_of.inputs[0] = layers[1];
    if (kind == MINUS)
        GHP_TRY(ghp_onnx_emit(im, &opposite_of, ghp_onnx_part(ghp_onnx_called(c->name), ".minus"),
                              &layers[1]));
    GHP_TRY(ghp_onnx_join(im, node, like, layers, &layer));
    made = sequence ? ghp_onnx_of_sequence(im, layer) : ghp_onnx_of_layer(im, layer, n, made.dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* Whether a sum or product with a constant is of layers, as no layer has it as its parameter: it is computed of
 * parameters, or it is one and the tensor is divided by it, or one of the two is subtracted. */
static bool takes_layers(const struct ghp_onnx_array *c, enum kind kind)
{
    return ghp_onnx_is_derived(c) || (kind == MINUS && ghp_onnx_role_may_train(c)) ||
           (kind == OVER && c->base->role == GHP_ONNX_PARAMETER && c->base->held == NULL);
}

static enum ghp_status with_layers(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   struct ghp_onnx_array *x, const struct ghp_onnx_array *c,
                                   enum kind kind)
{
    if (kind == OVER) return with_function(im, node, "Reciprocal", "inverse", "Mul");
    if (kind == MINUS && ghp_onnx_in(im, node, 0)->base != NULL)
        return with_function(im, node, "Neg", "negated", "Add");
    GHP_TRY(ghp_onnx_part_axes(im, x));
    return with_parameter(im, node, x, c, kind);
}

static enum ghp_status with_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     enum kind kind)
{
    bool constant_first = ghp_onnx_in(im, node, 0)->base != NULL;
    struct ghp_onnx_source from = {.scale = kind == MINUS ? -1 : 1};
    struct ghp_onnx_array *x, *c;
    const double *value;
    bool positions;
    int at;

    if (ghp_onnx_scores_with_constant(im, node, &at)) return with_scores(im, node, kind, at);
    GHP_TRY(ghp_onnx_joined_in(im, node, constant_first ? 1 : 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, constant_first ? 0 : 1, &c));
    from.array = *c;
    if (takes_layers(c, kind)) return with_layers(im, node, x, c, kind);
    if (ghp_onnx_elements(c) == 1 && c->n <= x->n && ghp_onnx_role_may_train(c))
        return one_value(im, node, x, from, kind);
    if (ghp_onnx_elements(c) == 1) GHP_TRY(ghp_onnx_role_check_number(im, node, c));
    if (kind == OVER && !constant_first && ghp_onnx_elements(c) > 1) {
        GHP_TRY(invert(im, node, &from.array));
        kind = TIMES;
    }
    if (ghp_onnx_are_rows(im, x) && kind <= TIMES && !(kind == MINUS && constant_first) &&
        c->n == 1 && c->dims[0] == x->dims[x->n - 1] && c->dims[0] > 1)
        return row_layer(im, node, x, from, kind == TIMES);
    if (ghp_onnx_is_sequence(im, x->layer) && x->n > 3 && ghp_onnx_elements(c) == 1 &&
        (kind == TIMES || (kind == OVER && !constant_first))) {
        GHP_TRY(ghp_onnx_values(im, c, &value));
        return affine(im, node, x, kind == TIMES ? value[0] : 1 / value[0], 0);
    }
    GHP_TRY(ghp_onnx_part_axes(im, x));
    if (kind == PLUS) {
        GHP_TRY(ghp_onnx_is_position_table(im, x, c, &positions));
        if (positions) return ghp_onnx_add_positions(im, node, x, c);
    }
    if (kind != OVER && !(kind == MINUS && constant_first)) {
        if (ghp_onnx_by_axis(x, c, 1) && (x->dims[1] > 1 || c->n > 1))
            return channel_layer(im, node, x, from, kind == TIMES);
        if (ghp_onnx_by_axis(x, c, x->n - 1) && x->dims[x->n - 1] > 1)
            return row_layer(im, node, x, from, kind == TIMES);
    }
    if (ghp_onnx_elements(c) != 1 || c->n > x->n || (kind == OVER && constant_first))
        return kind == MINUS && constant_first ? with_function(im, node, "Neg", "negated", "Add")
               : kind == OVER && constant_first
                   ? with_function(im, node, "Reciprocal", "inverse", "Mul")
                   : with_parameter(im, node, x, &from.array, kind);
    GHP_TRY(ghp_onnx_values(im, c, &value));
    if (kind == TIMES) return affine(im, node, x, value[0], 0);
    if (kind == OVER) return affine(im, node, x, 1 / value[0], 0);
    if (kind == MINUS && constant_first) return affine(im, node, x, -1, value[0]);
    return affine(im, node, x, 1, from.scale * value[0]);
}

/* ---- tensors with tensors ---- */

/* If all inputs are sequences of one shape, makes an operation on their layers. *done is false if they are not. */
static enum ghp_status of_sequences(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    enum ghp_op op, bool *done)
{
    const struct ghp_layer like = {.op = op};
    int *layers = ghp_onnx_keep(im, (size_t)node->n_inputs, sizeof *layers), layer;
    struct ghp_onnx_array *first, *x, made;

    *done = false;
    if (layers == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &first));
    for (int i = 0; i < node->n_inputs; i++) {
        GHP_TRY(ghp_onnx_joined_in(im, node, i, &x));
        if (!ghp_onnx_alike(im, first, x)) return GHP_OK;
        layers[i] = x->layer;
    }
    *done = true;
    GHP_TRY(ghp_onnx_join(im, node, like, layers, &layer));
    made = ghp_onnx_each_out(first, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status of_tensors(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  enum ghp_op op)
{
    const struct ghp_layer like = {.op = op};
    int64_t dims[GHP_ONNX_MAX_DIMS];
    int *layers = ghp_onnx_keep(im, (size_t)node->n_inputs, sizeof *layers), n = 0, layer;
    struct ghp_onnx_array *x, joint, made;
    bool done;

    if (layers == NULL) return GHP_NO_MEMORY();
    GHP_TRY(of_sequences(im, node, op, &done));
    if (done) return GHP_OK;
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    joint = *x;
    for (int i = 1; i < node->n_inputs; i++) {
        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        if (x->n != joint.n || !ghp_onnx_joint_dims(&joint, x, &n, dims))
            return ghp_onnx_fail(im, node,
                                 "combines tensors of shapes that do not fit, or of "
                                 "different ranks; reshape them in the file");
        memcpy(joint.dims, dims, sizeof dims);
    }
    for (int i = 0; i < node->n_inputs; i++) {
        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        made = *x;
        if (memcmp(made.dims, joint.dims, (size_t)joint.n * sizeof(int64_t)) == 0) {
            GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &layers[i]));
            continue;
        }
        if (!ghp_onnx_expand(&made, joint.n, joint.dims))
            return ghp_onnx_fail(im, node, "repeats samples; ghp keeps the batch as it is");
        GHP_TRY(ghp_onnx_settle(im, &made, ghp_onnx_shape(&made), &layers[i]));
    }
    GHP_TRY(ghp_onnx_join(im, node, like, layers, &layer));
    made = ghp_onnx_of_layer(im, layer, joint.n, joint.dims);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_neg(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION, .activation = {GHP_FUNCTION_AFFINE, -1, 0}};
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0);

    if (x != NULL && x->base != NULL && !ghp_onnx_is_derived(x) &&
        x->base->role != GHP_ONNX_PARAMETER)
        return ghp_onnx_fold(im, node, opposite, x->base->whole);
    return ghp_onnx_unary(im, node, &like);
}

/* Times one, or plus zero, a parameter stays itself: torch.addcmul is written so. *done is false otherwise. */
static enum ghp_status left_alone(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  enum kind kind, bool *done)
{
    bool turns = kind == MINUS || kind == OVER; /* a parameter in second place */
    double neutral = kind == TIMES || kind == OVER ? 1 : 0;
    const double *value;

    for (int at = 0; at < (turns ? 1 : 2) && !*done; at++) {
        const struct ghp_onnx_array *x = ghp_onnx_in(im, node, at),
                                    *c = ghp_onnx_in(im, node, 1 - at);

        if (!ghp_onnx_role_may_train(x) || ghp_onnx_elements(c) != 1 || c->n > x->n ||
            !ghp_onnx_role_is_number(c))
            continue;
        GHP_TRY(ghp_onnx_values(im, c, &value));
        *done = value[0] == neutral;
        if (*done) GHP_TRY(ghp_onnx_define(im, node, 0, x));
    }
    return GHP_OK;
}

/* Reads a node of which no input is a tensor, or one of two. *done is false if all are tensors. */
static enum ghp_status of_constants(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    enum kind kind, bool *done)
{
    int constants, derived;
    bool alone = false;

    GHP_TRY(ghp_onnx_count_constants(im, node, &constants));
    *done = constants > 0 && node->n_inputs == 2;
    if (*done && constants == 2) GHP_TRY(left_alone(im, node, kind, &alone));
    if (alone) return GHP_OK;
    derived = *done && constants == 2 ? derived_in(im, node) : -1;
    if (derived >= 0) return with_derived(im, node, kind, derived);
    if (*done) return constants == 2 ? fold(im, node, kind) : with_constant(im, node, kind);
    if (constants > 0 && node->n_inputs > 2)
        return ghp_onnx_fail(im, node, "sums constants and tensors; add the constants one by one");
    return GHP_OK;
}

/* Add, Sum */
static enum ghp_status read_add(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool done;

    GHP_TRY(of_constants(im, node, PLUS, &done));
    if (done) return GHP_OK;
    return node->n_inputs == 1 ? ghp_onnx_identity(im, node) : of_tensors(im, node, GHP_OP_ADD);
}

/* Refuses anything but two inputs. */
static enum ghp_status check_two(const struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    if (node->n_inputs == 2) return GHP_OK;
    return ghp_onnx_fail(im, node, "needs exactly two inputs, but has %d; repair the file",
                         node->n_inputs);
}

/* One tensor and another that a function makes: -x for differences, 1/x for quotients. */
static enum ghp_status with_function(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const char *function, const char *part, const char *op)
{
    const char *other;

    GHP_TRY(ghp_onnx_part_run(im, node, function, (const char *const[]){node->inputs[1], NULL},
                              part, &other));
    return ghp_onnx_part_run(im, node, op, (const char *const[]){node->inputs[0], other}, NULL,
                             NULL);
}

static enum ghp_status read_sub(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool done;

    GHP_TRY(check_two(im, node));
    GHP_TRY(of_constants(im, node, MINUS, &done));
    return done ? GHP_OK : with_function(im, node, "Neg", "negated", "Add");
}

static enum ghp_status read_mul(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool done;

    GHP_TRY(check_two(im, node));
    GHP_TRY(of_constants(im, node, TIMES, &done));
    return done ? GHP_OK : of_tensors(im, node, GHP_OP_MUL);
}

static enum ghp_status read_div(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *below;
    bool done;

    GHP_TRY(check_two(im, node));
    below = ghp_onnx_in(im, node, 1);
    if (below == NULL || below->base != NULL || below->scores != NULL) {
        GHP_TRY(of_constants(im, node, OVER, &done));
        if (done) return GHP_OK;
    }
    return with_function(im, node, "Reciprocal", "inverse", "Mul");
}

static enum ghp_status write_add(struct ghp_onnx_export *ex, int i)
{
    ghp_export_join(ex, i, ex->model->layers[i].n_inputs > 2 ? "Sum" : "Add");
    return GHP_OK;
}

static enum ghp_status write_mul(struct ghp_onnx_export *ex, int i)
{
    ghp_export_join(ex, i, "Mul");
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_arithmetic[] = {
    {.name = "Add",
     .since = 1,
     .attributes = "",
     .read = read_add,
     .op = GHP_OP_ADD,
     .write = write_add},
    {.name = "Sum", .since = 1, .attributes = "", .read = read_add},
    {.name = "Sub", .since = 1, .attributes = "", .read = read_sub},
    {.name = "Mul",
     .since = 1,
     .attributes = "",
     .read = read_mul,
     .op = GHP_OP_MUL,
     .write = write_mul},
    {.name = "Neg", .since = 1, .attributes = "", .read = read_neg},
    {.name = "Div", .since = 1, .attributes = "", .read = read_div},
    {0}};
