/* onnx/operator/attention.c - attention of a sequence to itself, causal or not. */
#include "onnx/operator/cut.h"
#include "onnx/operator/join.h"
#include "onnx/operator/operator.h"
#include "onnx/operator/rows.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Heads of an input: from four axes (batch, head, position, channel of a head), or from three and an attribute. */
struct heads {
    struct ghp_onnx_channels channels;
    int64_t n, positions;
};

static enum ghp_status read_heads(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  int input, struct heads *heads)
{
    const int64_t named = ghp_onnx_int(node, input == 0 ? "q_num_heads" : "kv_num_heads", 0);
    struct ghp_onnx_array *x;
    int64_t size, step; /* step: from one channel to the next */
    bool sound;

    GHP_TRY(ghp_onnx_layer_in(im, node, input, &x));
    if (!ghp_onnx_is_sequence(im, x->layer) || (x->n != 3 && x->n != 4) || (x->n == 3 && named < 1))
        return ghp_onnx_fail(im, node,
                             "has an input %d that is no sequence with heads; give batch, heads, "
                             "positions and channels, or the number of heads",
                             input);
    step = im->model.layers[x->layer].out.h;
    heads->n = x->n == 3 ? named : x->dims[1];
    heads->positions = x->dims[x->n - 2];
    size = x->dims[x->n - 1];
    heads->channels =
        (struct ghp_onnx_channels){x->layer, x->offset / step, x->n == 3 ? size : size * heads->n};
    sound = x->offset % step == 0 && heads->positions == step &&
            (x->strides[x->n - 2] == 1 || step == 1) &&
            (x->strides[x->n - 1] == step || size == 1) &&
            (x->n == 3 || x->strides[1] == size * step || heads->n == 1);
    if (sound && heads->channels.n % heads->n == 0) return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "has an input %d whose heads are not %" PRId64
                         " runs of a sequence's channels; reshape it so in the file",
                         input, heads->n);
}

/* Whether a constant mask says of each position that it sees all (*causal false), or itself and those before it. */
static bool read_mask(const struct ghp_onnx_array *mask, const double *values, int64_t positions,
                      bool *causal)
{
    const double hidden = -1e4; /* exp of it is 0 in every float format */
    int64_t planes = ghp_onnx_elements(mask) / (positions * positions);
    bool all = true, before = true;

    for (int64_t i = 0; i < planes * positions * positions; ++i) {
        int64_t from = i / positions % positions, to = i % positions;
        bool sees = mask->base->whole ? values[i] != 0 : values[i] == 0;

        if (!mask->base->whole && !sees && values[i] > hidden) return false;
        all = all && sees;
        before = before && sees == (to <= from);
    }
    *causal = !all;
    return all || before;
}

static enum ghp_status read_causal(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int64_t positions, bool *causal)
{
    bool said = ghp_onnx_int(node, "is_causal", 0) != 0;
    struct ghp_onnx_array *mask = ghp_onnx_in(im, node, 3);
    const double *values;

    *causal = said;
    if (mask == NULL) return GHP_OK;
    GHP_TRY(ghp_onnx_constant_in(im, node, 3, &mask));
    if (mask->n >= 2 && mask->dims[mask->n - 1] == positions &&
        mask->dims[mask->n - 2] == positions) {
        GHP_TRY(ghp_onnx_values(im, mask, &values));
        if (read_mask(mask, values, positions, causal)) {
            *causal = *causal || said;
            return GHP_OK;
        }
    }
    return ghp_onnx_fail(im, node,
                         "has a mask that is neither causal nor empty; ghp has no other masks");
}

static enum ghp_status check_unused(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    for (int i = 1; i < node->n_outputs; ++i)
        if (ghp_onnx_wanted(im, node, i))
            return ghp_onnx_fail(im, node, "hands its keys, values or scores on; ghp keeps them");
    for (int i = 4; i < node->n_inputs; ++i)
        if (ghp_onnx_in(im, node, i) != NULL)
            return ghp_onnx_fail(im, node, "reads keys of the past; ghp trains whole sequences");
    if (ghp_onnx_real(node, "softcap", 0) != 0)
        return ghp_onnx_fail(im, node, "caps its scores (softcap); ghp does not");
    return GHP_OK;
}

static enum ghp_status read_attention(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    static const char *const parts[3] = {".q", ".k", ".v"};
    struct ghp_layer like = {.op = GHP_OP_ATTENTION, .n_inputs = 3};
    struct heads heads[3];
    struct ghp_onnx_array made, *q;
    double scale;
    int layer;

    GHP_TRY(check_unused(im, node));
    for (int i = 0; i < 3; ++i)
        GHP_TRY(read_heads(im, node, i, &heads[i]));
    like.heads.n = heads[0].n;
    like.heads.n_kv = heads[1].n;
    GHP_TRY(read_causal(im, node, heads[0].positions, &like.heads.causal));
    scale = 1 / sqrt((double)(heads[0].channels.n / heads[0].n));
    if (fabs(ghp_onnx_real(node, "scale", scale) - scale) > 1e-4 * scale)
        return ghp_onnx_fail(im, node,
                             "scales its scores by %g; ghp does by %g, 1 over the root of a head's "
                             "channels",
                             ghp_onnx_real(node, "scale", scale), scale);
    for (int i = 0; i < 3; ++i)
        GHP_TRY(ghp_onnx_cut(im, node, heads[i].channels, parts[i], &like.inputs[i]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &q));
    made = ghp_onnx_of_sequence(im, layer);
    if (q->n == 4) {
        int64_t size = q->dims[3], step = heads[0].positions;

        made.n = 4;
        memcpy(made.dims, q->dims, 4 * sizeof *made.dims);
        memcpy(made.strides, (int64_t[]){0, size * step, 1, step}, 4 * sizeof *made.strides);
    }
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status write_attention(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    struct ghp_onnx_node *node = ghp_export_join(ex, i, "Attention");

    ghp_export_int(ex, node, "q_num_heads", l->heads.n);
    ghp_export_int(ex, node, "kv_num_heads", l->heads.n_kv);
    ghp_export_int(ex, node, "is_causal", l->heads.causal);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_attention[] = {
    {.name = "Attention",
     .since = 23,
     .attributes = "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap "
                   "softmax_precision ",
     .read = read_attention,
     .op = GHP_OP_ATTENTION,
     .write = write_attention},
    {0}};
