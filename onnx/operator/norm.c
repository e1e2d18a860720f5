/* onnx/operator/norm.c - norms. */
#include "onnx/operator/operator.h"

#include "onnx/operator/attention.h"
#include "onnx/operator/bias.h"
#include "onnx/operator/derived.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Whether a node of one of ghp's own files is frozen: such a node says its mode, and others do not. */
static bool is_frozen(const struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return strcmp(im->file->producer, "ghp") == 0 &&
           ghp_onnx_attribute_of(node, "training_mode") != NULL &&
           ghp_onnx_int(node, "training_mode", 0) == 0;
}

/* Whether only the module's next call reads a statistic, in the place of the tensor that it has moved. */
static bool hands_on(const struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i)
{
    for (int k = 0; k < im->file->n_outputs; k++)
        if (strcmp(im->file->outputs[k].name, node->outputs[i]) == 0) return false;
    for (int k = 0; k < im->file->n_nodes; k++)
        for (int j = 0; j < im->nodes[k].n_inputs; j++)
            if (strcmp(im->nodes[k].inputs[j], node->outputs[i]) == 0 &&
                (strcmp(im->nodes[k].op, "BatchNormalization") != 0 || j != 2 + i))
                return false;
    return i < 3;
}

static enum ghp_status read_batch_norm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_BATCH_NORM, .n_inputs = 1};
    struct ghp_onnx_array *x, *from, made;
    double kept = ghp_onnx_real(node, "momentum", 0.9);
    int layer;

    if (ghp_onnx_int(node, "spatial", 1) == 0)
        return ghp_onnx_fail(im, node,
                             "norms each pixel by itself (spatial 0); ghp norms channels");
    for (int i = 1; i < node->n_outputs; i++)
        if (ghp_onnx_wanted(im, node, i) && !hands_on(im, node, i))
            return ghp_onnx_fail(im, node, "hands its statistics on; ghp keeps them in the layer");
    like.fixed = ghp_onnx_has_fixed_scale(im->file, node);
    like.norm.epsilon = ghp_onnx_real(node, "epsilon", 1e-5);
    if (is_frozen(im, node))
        like.op = GHP_OP_FROZEN_BATCH_NORM;
    else
        like.norm.momentum = ghp_onnx_tidy(1 - kept);
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &from));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, from), &layer));
    for (int i = 0; i < 4; i++) {
        struct ghp_onnx_source source = {
            .scale = 1, .layer = layer, .slot = i < 2 ? i : GHP_MAX_PARAMS + i - 2};

        GHP_TRY(ghp_onnx_constant_in(im, node, 1 + i, &from));
        source.array = *from;
        GHP_TRY(ghp_onnx_weight_from(im, node, source));
    }
    made = ghp_onnx_of_layer(im, layer, x->n, x->dims);
    for (int i = 1; i < node->n_outputs && i < 3; i++) {
        if (!ghp_onnx_wanted(im, node, i)) continue;
        GHP_TRY(ghp_onnx_constant_in(im, node, 2 + i, &from));
        GHP_TRY(ghp_onnx_define(im, node, i, from));
    }
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_lrn(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_LRN,
                             .norm = {.size = ghp_onnx_int(node, "size", 0),
                                      .alpha = ghp_onnx_real(node, "alpha", 1e-4),
                                      .beta = ghp_onnx_real(node, "beta", 0.75),
                                      .k = ghp_onnx_real(node, "bias", 1)}};

    if (like.norm.size < 1 || like.norm.size % 2 == 0 || like.norm.size > GHP_ONNX_MAX_SIZE)
        return ghp_onnx_fail(im, node, "has a window of %" PRId64 " channels; ghp takes odd ones",
                             like.norm.size);
    return ghp_onnx_unary(im, node, &like);
}

/* The axis that alone is normed if a file has written a norm out (onnx/pattern/norm.c), or NULL. */
static const struct ghp_onnx_attribute *axis_alone(const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_attribute *axes = ghp_onnx_attribute_of(node, "axes");

    return axes != NULL && axes->kind == GHP_ONNX_INTS && axes->n == 1 ? axes : NULL;
}

/* Takes axis `from` of n to the last place, or the last one back to it. */
static void move_axis(struct ghp_onnx_array *array, int from, bool back)
{
    int order[GHP_ONNX_MAX_DIMS], n = array->n;

    for (int i = 0; i < n; i++) {
        int at = i < from ? i : i + 1 < n ? i + 1 : from;

        order[back ? at : i] = back ? i : at;
    }
    ghp_onnx_permute(array, order);
}

/* x with the axes that are normed as its last one: all from `axis` on, or that one alone. */
static enum ghp_status rows_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               const struct ghp_onnx_array *w, int axis,
                               struct ghp_onnx_array *rows)
{
    const struct ghp_onnx_array x = *rows;
    int64_t dims[GHP_ONNX_MAX_DIMS] = {0};

    if (axis == 0) return ghp_onnx_fail(im, node, "norms over samples; ghp never mixes them");
    if (axis_alone(node) != NULL) {
        move_axis(rows, axis, false);
        if (ghp_onnx_by_axis(&x, w, axis)) return GHP_OK;
        return ghp_onnx_fail(im, node,
                             "norms axis %d, and then multiplies by something else than one "
                             "weight for each of the %" PRId64 " places there; give the norm "
                             "such a weight, and multiply after it",
                             axis, x.dims[axis]);
    }
    for (int i = 0; i < x.n; i++)
        dims[i < axis ? i : axis] = i <= axis ? x.dims[i] : dims[axis] * x.dims[i];
    return ghp_onnx_reshape(im, rows, axis + 1, dims);
}

/* A norm of rows, which become the channels: a weight for each of their places, and perhaps a bias. */
static enum ghp_status read_rows(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 enum ghp_op op)
{
    const struct ghp_onnx_attribute *alone = axis_alone(node);
    struct ghp_layer like = {
        .op = op, .n_inputs = 1, .norm = {.epsilon = ghp_onnx_real(node, "epsilon", 1e-5)}};
    struct ghp_onnx_source source = {.scale = 1};
    struct ghp_onnx_array *x, *w, rows;
    int axis;

    for (int i = 1; i < node->n_outputs; i++)
        if (ghp_onnx_wanted(im, node, i))
            return ghp_onnx_fail(im, node, "hands its statistics on; ghp keeps them in the layer");
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    GHP_TRY(ghp_onnx_axis(im, node, alone != NULL ? alone->ints[0] : ghp_onnx_int(node, "axis", -1),
                          x->n, &axis));
    rows = *x;
    GHP_TRY(rows_of(im, node, w, axis, &rows));
    GHP_TRY(ghp_onnx_rows_in(im, &rows, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, w), &source.layer));
    GHP_TRY(ghp_onnx_channel_values(im, node, w, rows.dims[rows.n - 1], &source.array));
    GHP_TRY(ghp_onnx_weight_from(im, node, source));
    GHP_TRY(ghp_onnx_bias_in(im, node, 2, &source.layer));
    rows = ghp_onnx_rows_out(im, &rows, source.layer);
    if (alone == NULL) return ghp_onnx_reshaped(im, node, &rows, x->n, x->dims);
    move_axis(&rows, axis, true);
    return ghp_onnx_define(im, node, 0, &rows);
}

static enum ghp_status read_layer_norm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return read_rows(im, node, GHP_OP_LAYER_NORM);
}

static enum ghp_status read_rms_norm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return read_rows(im, node, GHP_OP_RMS_NORM);
}

/* ---- vectors over their lengths ---- */

/* A norm's weights that are ones and stay so. */
static enum ghp_status put_weights(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int layer, int64_t n)
{
    struct ghp_onnx_source source = {.layer = layer, .scale = 1};
    double *values;

    GHP_TRY(ghp_onnx_room(im, n, &values));
    for (int64_t i = 0; i < n; i++)
        values[i] = 1;
    GHP_TRY(ghp_onnx_of_values(im, false, (struct ghp_onnx_sizes){1, &n}, values, &source.array));
    return ghp_onnx_weight_from(im, node, source);
}

/* The layers of vectors of `size` channels: over the root of the mean square, and then of the size, which an attention
 * takes into its scale. Near zero, where PyTorch takes a number in place of the length, that is added to it, far below
 * the rounding of any other. */
static enum ghp_status unit_layer(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  int input, int64_t size, int *layer)
{
    double least = ghp_onnx_real(node, "epsilon", 1e-12);
    struct ghp_layer like = {.op = GHP_OP_RMS_NORM,
                             .n_inputs = 1,
                             .inputs = {input},
                             .fixed = true,
                             .norm = {.epsilon = fmax(least * least / (double)size, 1e-36)}};
    struct ghp_layer scale = {.op = GHP_OP_ACTIVATION,
                              .n_inputs = 1,
                              .activation = {GHP_FUNCTION_AFFINE, 1 / sqrt((double)size), 0}};
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, NULL);

    if (size != im->model.layers[input].out.c) like.heads.size = size;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".norm"), &scale.inputs[0]));
    GHP_TRY(put_weights(im, node, scale.inputs[0], size));
    return ghp_onnx_emit(im, &scale, hint, layer);
}

/* What to call a part of a product that becomes queries, keys and values, or the last two. */
static const char *part_of(const struct ghp_onnx_import *im, struct ghp_onnx_channels channels)
{
    static const char *const parts[3] = {".q", ".k", ".v"};
    int64_t all = im->model.layers[channels.layer].out.c, n = channels.n;

    if ((all != 2 * n && all != 3 * n) || channels.first % n != 0) return ".unit";
    return parts[channels.first / n + (all == 2 * n)];
}

/* Whether it has the channels of heads as its last axis, and their positions before it. */
static bool has_heads(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    return x->n > 3 && x->lead == 0 && ghp_onnx_is_sequence(im, x->layer) &&
           !ghp_onnx_are_rows(im, x) &&
           (x->strides[x->n - 2] == 1 || im->model.layers[x->layer].out.h == 1) &&
           x->strides[x->n - 1] == im->model.layers[x->layer].out.h;
}

/* Makes each head of an attention a unit vector by itself. */
static enum ghp_status unit_heads(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  const struct ghp_onnx_array *x)
{
    struct ghp_onnx_array made = *x;
    struct ghp_onnx_heads heads;
    int layer;

    GHP_TRY(ghp_onnx_heads_of(im, node, x, 0, "input 0", &heads));
    if (heads.repeats != 1)
        return ghp_onnx_fail(im, node, "norms heads that are repeated; norm them before");
    GHP_TRY(ghp_onnx_take_channels(im, node, heads.channels, part_of(im, heads.channels), &layer));
    GHP_TRY(unit_layer(im, node, layer, x->dims[x->n - 1], &made.layer));
    made.offset = 0;
    made.strides[x->n - 3] = x->dims[x->n - 1] * im->model.layers[layer].out.h;
    return ghp_onnx_define(im, node, 0, &made);
}

/* The same of rows of a parameter, as a cosine classifier has them. */
static enum ghp_status unit_weights(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x)
{
    struct ghp_onnx_array rows;
    int axis, layer;

    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", -1), x->n, &axis));
    if (ghp_onnx_int(node, "p", 2) != 2 || axis != x->n - 1)
        return ghp_onnx_role_fail_computed(im, node, x);
    GHP_TRY(ghp_onnx_derived_rows(im, node, x, &rows));
    GHP_TRY(unit_layer(im, node, rows.layer, x->dims[axis], &layer));
    return ghp_onnx_derive_rows(im, node, x, layer);
}

static enum ghp_status read_unit(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t seen[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0), rows;
    int axis, n, input, layer;

    if (ghp_onnx_may_derive(x)) return unit_weights(im, node, x);
    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &x));
    n = ghp_onnx_seen(x, seen);
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", -1), n, &axis));
    if (ghp_onnx_int(node, "p", 2) != 2 || axis == 0)
        return ghp_onnx_fail(im, node,
                             "divides by another norm than the root of a sum of squares, "
                             "or norms over samples; use p 2 and another axis");
    if (axis == n - 1 && has_heads(im, x)) return unit_heads(im, node, x);
    if (axis < n - 1 || !ghp_onnx_are_rows(im, x)) GHP_TRY(ghp_onnx_part_axes(im, x));
    rows = *x;
    axis += x->n - n; /* the last of joined ones */
    move_axis(&rows, axis, false);
    GHP_TRY(ghp_onnx_rows_in(im, &rows, &input));
    GHP_TRY(unit_layer(im, node, input, rows.dims[rows.n - 1], &layer));
    rows = ghp_onnx_rows_out(im, &rows, layer);
    move_axis(&rows, axis, true);
    return ghp_onnx_define(im, node, 0, &rows);
}

/* Over all pixels of each channel: a layer norm whose weights are ones and stay so, of the channels as rows; then the
 * node's weight and bias for each channel, unless they are the ones and zeros of a norm without. Group norm comes as
 * this, of groups as channels. */
static enum ghp_status read_instance_norm(struct ghp_onnx_import *im,
                                          const struct ghp_onnx_node *node)
{
    struct ghp_layer norm = {.op = GHP_OP_LAYER_NORM,
                             .n_inputs = 1,
                             .fixed = true,
                             .norm = {.epsilon = ghp_onnx_real(node, "epsilon", 1e-5)}};
    struct ghp_layer scale = {
        .op = GHP_OP_CONV2D, .n_inputs = 1, .window = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, true}};
    struct ghp_onnx_source weight = {.scale = 1};
    struct ghp_onnx_array *x, *w, made;
    int64_t dims[3] = {0, 0, 1};
    double value;
    bool plain;
    int ones;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    if (x->n < 3)
        return ghp_onnx_fail(im, node, "norms %d axes; give batch, channels and pixels", x->n);
    for (int i = 0; i < x->n; i++)
        dims[i < 2 ? i : 2] = i < 2 ? x->dims[i] : dims[2] * x->dims[i];
    made = *x;
    GHP_TRY(ghp_onnx_reshape(im, &made, 3, dims));
    GHP_TRY(ghp_onnx_rows_in(im, &made, &norm.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &norm, ghp_onnx_part(ghp_onnx_hint(im, node, w), ".norm"), &ones));
    GHP_TRY(put_weights(im, node, ones, dims[2]));
    made = ghp_onnx_rows_out(im, &made, ones);
    GHP_TRY(ghp_onnx_uniform(im, w, &plain, &value));
    if (plain && value == 1 && ghp_onnx_role_is_number(w))
        return ghp_onnx_reshaped(im, node, &made, x->n, x->dims);
    GHP_TRY(ghp_onnx_reshape(im, &made, x->n, x->dims));
    GHP_TRY(ghp_onnx_settle(im, &made, ghp_onnx_shape(&made), &scale.inputs[0]));
    scale.out.c = scale.window.groups = dims[1];
    weight.array = *w;
    GHP_TRY(ghp_onnx_emit(im, &scale, ghp_onnx_hint(im, node, w), &weight.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, weight));
    GHP_TRY(ghp_onnx_bias_in(im, node, 2, &weight.layer));
    made = ghp_onnx_of_layer(im, weight.layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- writing ---- */

/* Over the channels, which are turned to the end if there are pixels. */
static enum ghp_status write_rows(struct ghp_onnx_export *ex, int i, const char *op)
{
    static const int64_t there[4] = {0, 2, 3, 1}, back[4] = {0, 3, 1, 2};
    const struct ghp_layer *l = &ex->model->layers[i];
    const struct ghp_layer *bias = ghp_export_own_bias(ex->model, i);
    bool turns = ex->ranks[i] == 4;
    const char *name = turns ? ghp_export_text(ex, l->name, ".normed") : l->name;
    const char *inputs[4] = {ex->names[l->inputs[0]], ghp_export_owner(ex, l)->params[0].name,
                             bias != NULL ? ghp_export_owner(ex, bias)->params[0].name : NULL};
    struct ghp_onnx_node *node;

    if (turns)
        inputs[0] =
            ghp_export_turned(ex, ghp_export_text(ex, l->name, ".rows"), inputs[0], there, 4);
    GHP_TRY(ghp_export_param_of(ex, l, 0, 0));
    if (bias != NULL) GHP_TRY(ghp_export_param_of(ex, bias, 0, 0));
    node = ghp_export_node(ex, op, name, inputs);
    ghp_export_int(ex, node, "axis", -1);
    ghp_export_real(ex, node, "epsilon", l->norm.epsilon);
    if (turns) ghp_export_turned(ex, l->name, name, back, 4);
    return GHP_OK;
}

static enum ghp_status write_layer_norm(struct ghp_onnx_export *ex, int i)
{
    return write_rows(ex, i, "LayerNormalization");
}

static enum ghp_status write_rms_norm(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];

    if (l->heads.size > 0 || l->norm.offset != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (rms_norm) has a head_size or an offset, which ghp does not "
                        "write as ONNX; write "
                        "the network with --export-hf instead",
                        l->name);
    return write_rows(ex, i, "RMSNormalization");
}

static enum ghp_status write_batch_norm(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]],
                                  ghp_export_owner(ex, l)->params[0].name,
                                  ghp_export_owner(ex, l)->params[1].name,
                                  ghp_export_owner(ex, l)->states[0].name,
                                  ghp_export_owner(ex, l)->states[1].name,
                                  NULL};
    struct ghp_onnx_node *node;

    if (l->norm.local_stats || l->norm.ghost_batch > 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' (batch_norm) takes statistics of each worker, which ONNX cannot "
            "say; use global statistics",
            l->name);
    for (int p = 0; p < 2; p++)
        GHP_TRY(ghp_export_param_of(ex, l, p, 0));
    for (int s = 0; s < 2; s++)
        GHP_TRY(ghp_export_param_of(ex, l, GHP_MAX_PARAMS + s, 0));
    node = ghp_export_node(ex, "BatchNormalization", l->name, inputs);
    ghp_export_real(ex, node, "epsilon", l->norm.epsilon);
    if (l->op == GHP_OP_BATCH_NORM) {
        ghp_export_real(ex, node, "momentum", 1 - l->norm.momentum);
        return GHP_OK;
    }
    ghp_export_since(ex, 14);
    ghp_export_int(ex, node, "training_mode", 0);
    return GHP_OK;
}

static enum ghp_status write_lrn(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]], NULL};
    struct ghp_onnx_node *node = ghp_export_node(ex, "LRN", l->name, inputs);

    ghp_export_int(ex, node, "size", l->norm.size);
    ghp_export_real(ex, node, "alpha", l->norm.alpha);
    ghp_export_real(ex, node, "beta", l->norm.beta);
    ghp_export_real(ex, node, "bias", l->norm.k);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_norm[] = {
    {.name = "BatchNormalization",
     .since = 1,
     .attributes = "epsilon momentum spatial training_mode ",
     .read = read_batch_norm,
     .op = GHP_OP_BATCH_NORM,
     .write = write_batch_norm},
    {.name = "BatchNormalization",
     .since = 1,
     .op = GHP_OP_FROZEN_BATCH_NORM,
     .write = write_batch_norm},
    {.name = "InstanceNormalization",
     .since = 1,
     .attributes = "epsilon ",
     .read = read_instance_norm},
    {.name = "LRN",
     .since = 1,
     .attributes = "alpha beta bias size ",
     .read = read_lrn,
     .op = GHP_OP_LRN,
     .write = write_lrn},
    {.name = "LayerNormalization",
     .since = 17,
     .attributes = "axes axis epsilon stash_type ",
     .read = read_layer_norm,
     .op = GHP_OP_LAYER_NORM,
     .write = write_layer_norm},
    {.name = "RMSNormalization",
     .since = 23,
     .attributes = "axes axis epsilon stash_type ",
     .read = read_rms_norm,
     .op = GHP_OP_RMS_NORM,
     .write = write_rms_norm},
    {.name = "LpNormalization", .since = 1, .attributes = "axis epsilon p ", .read = read_unit},
    {0}};
