/* onnx/operator/function.c - functions of each value whose derivative its input tells, and activations that are made of
 * several layers. */
#include "onnx/operator/operator.h"

#include "onnx/operator/derived.h"
#include "onnx/operator/fold.h"
#include "onnx/operator/join.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"

#include <string.h>

static bool is_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, i);

    return x != NULL && x->base != NULL;
}

/* Whether input 0 is numbers; else it is computed, or is a parameter that is about to be. */
static bool is_number(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0);

    return is_constant(im, node, 0) && !ghp_onnx_is_derived(x) &&
           (x->base->role != GHP_ONNX_PARAMETER || x->base->held != NULL);
}

static enum ghp_status curve(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                             struct ghp_pointwise by)
{
    struct ghp_layer like = {.op = GHP_OP_POINTWISE, .pointwise = by};

    return is_number(im, node) ? ghp_onnx_fold_function(im, node) : ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_curve(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    static const struct {
        const char *op;
        struct ghp_pointwise by;
    } curves[] = {{"Abs", {.curve = GHP_CURVE_ABS}},
                  {"Cos", {.curve = GHP_CURVE_COS}},
                  {"Exp", {.curve = GHP_CURVE_EXP}},
                  {"Log", {.curve = GHP_CURVE_LOG}},
                  {"Reciprocal", {.curve = GHP_CURVE_POW, .exponent = -1}},
                  {"Sin", {.curve = GHP_CURVE_SIN}},
                  {"Sqrt", {.curve = GHP_CURVE_POW, .exponent = 0.5}}};
    size_t i = 0;

    while (strcmp(curves[i].op, node->op) != 0)
        i++;
    return curve(im, node, curves[i].by);
}

static enum ghp_status read_pow(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *exponent;
    const double *value;

    if (is_number(im, node) && is_constant(im, node, 1)) return ghp_onnx_fold_function(im, node);
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &exponent));
    if (ghp_onnx_elements(exponent) != 1)
        return ghp_onnx_fail(im, node, "has several exponents; use one for all elements");
    GHP_TRY(ghp_onnx_role_check_number(im, node, exponent));
    GHP_TRY(ghp_onnx_values(im, exponent, &value));
    if (!(value[0] >= -1e30 && value[0] <= 1e30))
        return ghp_onnx_fail(im, node, "has an exponent beyond 1e30; use a smaller one");
    if (value[0] == 1) return ghp_onnx_identity(im, node);
    return curve(im, node, (struct ghp_pointwise){GHP_CURVE_POW, ghp_onnx_tidy(value[0]), 0});
}

/* ---- of several layers ---- */

/* The next layer of an operator that is made of several; *x becomes its output. */
static enum ghp_status then(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            const char *part, struct ghp_layer like, struct ghp_onnx_array *x)
{
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, NULL);
    int layer;

    like.n_inputs = 1;
    GHP_TRY(ghp_onnx_each_in(im, x, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, part != NULL ? ghp_onnx_part(hint, part) : hint, &layer));
    *x = ghp_onnx_each_out(x, layer);
    return GHP_OK;
}

static struct ghp_layer affine(double alpha, double beta)
{
    return (struct ghp_layer){.op = GHP_OP_ACTIVATION,
                              .activation = {GHP_FUNCTION_AFFINE, alpha, beta}};
}

static struct ghp_layer elu(double alpha)
{
    return (struct ghp_layer){.op = GHP_OP_ACTIVATION, .activation = {GHP_FUNCTION_ELU, alpha, 0}};
}

/* Makes the layer on x, which is multiplied by `by` before it and divided by `by` after it, unless that is 1. */
static enum ghp_status scaled(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              double by, struct ghp_layer like)
{
    struct ghp_onnx_array *in, x;

    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &in));
    x = *in;
    if (by == 1) return ghp_onnx_unary(im, node, &like);
    GHP_TRY(then(im, node, ".scaled", affine(by, 0), &x));
    GHP_TRY(then(im, node, ".part", like, &x));
    GHP_TRY(then(im, node, NULL, affine(1 / by, 0), &x));
    return ghp_onnx_define(im, node, 0, &x);
}

static enum ghp_status read_selu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    double alpha = ghp_onnx_real(node, "alpha", 1.6732632423543772848170429916717),
           gamma = ghp_onnx_real(node, "gamma", 1.0507009873554804934193349852946);
    struct ghp_onnx_array *in, x;

    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &in));
    x = *in;
    GHP_TRY(then(im, node, ".part", elu(alpha), &x));
    GHP_TRY(then(im, node, NULL, affine(gamma, 0), &x));
    return ghp_onnx_define(im, node, 0, &x);
}

static enum ghp_status read_celu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    double alpha = ghp_onnx_tidy(ghp_onnx_real(node, "alpha", 1));

    if (!(alpha > 0)) return ghp_onnx_fail(im, node, "has alpha %g; use one greater than 0", alpha);
    return scaled(im, node, 1 / alpha, elu(1));
}

/* `threshold` and `beta` are PyTorch's, said by onnx/pattern/softplus.c; -1 is the logarithm of a sigmoid. */
static enum ghp_status read_softplus(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {
        .op = GHP_OP_POINTWISE,
        .pointwise = {GHP_CURVE_SOFTPLUS, 0, ghp_onnx_real(node, "threshold", 1e30)}};
    double beta = ghp_onnx_real(node, "beta", 1);

    if (!(like.pointwise.threshold >= 0 && like.pointwise.threshold <= 1e30) ||
        !(beta < 0 || beta > 0))
        return ghp_onnx_fail(im, node,
                             "has a threshold of %g and beta %g; use 0 or more, and a "
                             "beta that is not 0",
                             like.pointwise.threshold, beta);
    return scaled(im, node, beta, like);
}

static enum ghp_status run(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                           const char *op, const char *a, const char *b, const char *part,
                           const char **out)
{
    return ghp_onnx_part_run(im, node, op, (const char *const[]){a, b}, part, out);
}

static enum ghp_status read_mish(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const char *plus, *gate;

    GHP_TRY(run(im, node, "Softplus", node->inputs[0], NULL, "plus", &plus));
    GHP_TRY(run(im, node, "Tanh", plus, NULL, "share", &gate));
    return run(im, node, "Mul", node->inputs[0], gate, NULL, NULL);
}

static enum ghp_status read_softsign(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_POINTWISE,
                             .pointwise = {.curve = GHP_CURVE_POW, .exponent = -1}};
    struct ghp_layer size = {.op = GHP_OP_POINTWISE, .pointwise = {.curve = GHP_CURVE_ABS}};
    struct ghp_onnx_array *in, x;
    struct ghp_layer mul = {.op = GHP_OP_MUL, .n_inputs = 2};
    int layer;

    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &in));
    GHP_TRY(ghp_onnx_each_in(im, in, &mul.inputs[0]));
    x = *in;
    GHP_TRY(then(im, node, ".size", size, &x));
    GHP_TRY(then(im, node, ".more", affine(1, 1), &x));
    GHP_TRY(then(im, node, ".inverse", like, &x));
    GHP_TRY(ghp_onnx_each_in(im, &x, &mul.inputs[1]));
    GHP_TRY(ghp_onnx_emit(im, &mul, ghp_onnx_hint(im, node, NULL), &layer));
    x = ghp_onnx_each_out(&x, layer);
    return ghp_onnx_define(im, node, 0, &x);
}

/* relu(x) + slope min(x, 0) */
static enum ghp_status read_prelu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer below = {.op = GHP_OP_ACTIVATION, .activation = {GHP_FUNCTION_CLIP, -1e30, 0}};
    const char *above, *part;
    struct ghp_onnx_array *in, x;
    char *name;

    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &in));
    x = *in;
    GHP_TRY(run(im, node, "Relu", node->inputs[0], NULL, "above", &above));
    GHP_TRY(then(im, node, ".below", below, &x));
    name = ghp_onnx_keep(im, strlen(node->outputs[0]) + 8, 1);
    if (name == NULL) return GHP_NO_MEMORY();
    memcpy(name, node->outputs[0], strlen(node->outputs[0]));
    memcpy(name + strlen(name), ".below", 6);
    x.name = name;
    *ghp_onnx_named(im, name) = x;
    GHP_TRY(run(im, node, "Mul", name, node->inputs[1], "sloped", &part));
    return run(im, node, "Add", above, part, NULL, NULL);
}

/* Reads Max or Min of a tensor and a number: a clip on one side. */
static enum ghp_status clip_by(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               int constant, bool max)
{
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION,
                             .activation = {GHP_FUNCTION_CLIP, -1e30, 1e30}};
    struct ghp_onnx_array *number, *x, out;
    const double *value;

    GHP_TRY(ghp_onnx_constant_in(im, node, constant, &number));
    if (ghp_onnx_elements(number) != 1)
        return ghp_onnx_fail(im, node,
                             "compares a tensor with several numbers; ghp compares with one, or "
                             "with another tensor");
    GHP_TRY(ghp_onnx_role_check_number(im, node, number));
    GHP_TRY(ghp_onnx_values(im, number, &value));
    if (!(value[0] > -1e30 && value[0] < 1e30))
        return ghp_onnx_fail(im, node, "compares with a number beyond 1e30; use a smaller one");
    *(max ? &like.activation.alpha : &like.activation.beta) = ghp_onnx_tidy(value[0]);
    GHP_TRY(ghp_onnx_joined_in(im, node, 1 - constant, &x));
    out = *x;
    GHP_TRY(then(im, node, NULL, like, &out));
    return ghp_onnx_define(im, node, 0, &out);
}

/* Max, Min: max(a, b) = b + relu(a - b), min(a, b) = a - relu(a - b). If both are equal, the gradient goes to b in a
 * max and to a in a min; PyTorch gives each a half. */
static enum ghp_status read_extreme(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool max = strcmp(node->op, "Max") == 0;
    const char *a = node->n_inputs > 0 ? node->inputs[0] : "", *b, *more, *part;
    int constants;

    GHP_TRY(ghp_onnx_count_constants(im, node, &constants));
    if (constants == node->n_inputs) return ghp_onnx_fold_function(im, node);
    if (node->n_inputs == 1) return ghp_onnx_identity(im, node);
    if (node->n_inputs > 2)
        return ghp_onnx_fail(im, node,
                             "compares more than two tensors; compare two, and the "
                             "result with the third");
    if (constants == 1) return clip_by(im, node, is_constant(im, node, 0) ? 0 : 1, max);
    b = node->inputs[1];
    GHP_TRY(run(im, node, "Sub", a, b, "difference", &part));
    GHP_TRY(run(im, node, "Relu", part, NULL, "more", &more));
    return run(im, node, max ? "Add" : "Sub", max ? b : a, more, NULL, NULL);
}

/* ---- writing ---- */

static void write_pow(struct ghp_onnx_export *ex, const struct ghp_layer *l, const char *x)
{
    const char *const inputs[] = {
        x, ghp_export_number(ex, ghp_export_text(ex, l->name, ".exponent"), l->pointwise.exponent),
        NULL};

    ghp_export_node(ex, "Pow", l->name, inputs);
}

/* With a threshold as PyTorch's exporter writes it. */
static void write_softplus(struct ghp_onnx_export *ex, const struct ghp_layer *l, const char *x)
{
    bool whole = l->pointwise.threshold >= 1e30;
    const char *const inputs[] = {x, NULL};
    const char *name = whole ? l->name : ghp_export_text(ex, l->name, ".smooth");

    ghp_export_node(ex, "Softplus", name, inputs);
    if (whole) return;
    const char *greater = ghp_export_text(ex, l->name, ".greater");
    const char *const limits[] = {
        x,
        ghp_export_number(ex, ghp_export_text(ex, l->name, ".threshold"), l->pointwise.threshold),
        NULL};
    const char *const choices[] = {greater, x, name, NULL};

    ghp_export_node(ex, "Greater", greater, limits);
    ghp_export_node(ex, "Where", l->name, choices);
}

static enum ghp_status write_pointwise(struct ghp_onnx_export *ex, int i)
{
    static const char *const names[GHP_CURVE_COUNT] = {[GHP_CURVE_ABS] = "Abs",
                                                       [GHP_CURVE_COS] = "Cos",
                                                       [GHP_CURVE_EXP] = "Exp",
                                                       [GHP_CURVE_LOG] = "Log",
                                                       [GHP_CURVE_SIN] = "Sin"};
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *x = ex->names[l->inputs[0]];

    if (l->pointwise.curve == GHP_CURVE_POW)
        write_pow(ex, l, x);
    else if (l->pointwise.curve == GHP_CURVE_SOFTPLUS)
        write_softplus(ex, l, x);
    else
        ghp_export_node(ex, names[l->pointwise.curve], l->name, (const char *const[]){x, NULL});
    return GHP_OK;
}

#define CURVE(op)                                                                                  \
    {                                                                                              \
        .name = op, .since = 1, .attributes = "", .read = read_curve                               \
    }

const struct ghp_onnx_operator ghp_onnx_function_rows[] = {
    CURVE("Abs"),
    CURVE("Cos"),
    CURVE("Exp"),
    CURVE("Log"),
    CURVE("Reciprocal"),
    CURVE("Sin"),
    CURVE("Sqrt"),
    {.name = "Pow",
     .since = 1,
     .attributes = "",
     .read = read_pow,
     .op = GHP_OP_POINTWISE,
     .write = write_pointwise},
    {.name = "Selu", .since = 1, .attributes = "alpha gamma ", .read = read_selu},
    {.name = "Celu", .since = 12, .attributes = "alpha ", .read = read_celu},
    {.name = "Softplus", .since = 1, .attributes = "threshold beta ", .read = read_softplus},
    {.name = "Softsign", .since = 1, .attributes = "", .read = read_softsign},
    {.name = "Mish", .since = 18, .attributes = "", .read = read_mish},
    {.name = "PRelu", .since = 1, .attributes = "", .read = read_prelu},
    {.name = "Max", .since = 1, .attributes = "", .read = read_extreme},
    {.name = "Min", .since = 1, .attributes = "", .read = read_extreme},
    {0}};
