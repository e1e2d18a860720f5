/* core/model/op/ends/softmax_cross_entropy.c - the loss: softmax over the classes, and the mean of -log of the right
 * one.
 *
 * With `smoothing` s the target is 1 - s at the label and s / K more at each of the K classes.
 *
 * Each position of a sequence has a label and a loss. A negative label is ignored: it has no loss and no gradient.
 *
 * The logits of a sequence may stay divided by classes. Then each worker makes the few numbers of enum ghp_row from its
 * part of each row. From those of all workers it computes the loss and its part of the gradient. The logits of a single
 * vector are not worth a split of their own: gathered they are a thousandth of those of a sequence. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <stdio.h>

static const struct ghp_attribute attributes[] = {
    {.key = "smoothing",
     .kind = GHP_ATTRIBUTE_REAL,
     .most = 1,
     .at = {offsetof(struct ghp_layer, loss.smoothing)}},
    GHP_ATTRIBUTES_OUTPUTS,
    {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    char text[GHP_SHAPE_TEXT];

    GHP_TRY(ghp_loss_shape(model, layer));
    if (ghp_loss_columns(layer) == 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (softmax_cross_entropy) takes 2 to 2^24 classes, but its input "
                        "is one number; use the loss binary_cross_entropy for one of two classes, "
                        "or regression for a number",
                        layer->name);
    if (ghp_loss_columns(layer) > GHP_MAX_CLASSES)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (softmax_cross_entropy) takes 2 to 2^24 classes, "
                        "but its input is %s; "
                        "put a linear or global_avg_pool layer before it",
                        layer->name, ghp_shape_format(layer->in, text));
    return GHP_OK;
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    bool divided = layer->in.axes == GHP_AXES_SEQUENCE && layer->loss.outputs == 0;

    if (kind == GHP_SPLIT_CHANNEL) return divided ? layer->in.c : 0;
    return kind == GHP_SPLIT_FULL ? 1 : 0;
}

static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    ghp_loss_localize(model, layer, parts, local);
    local->parts = parts > 1 ? parts : 0;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    if (local->parts > 0) snprintf(text, n, " parts%d", local->parts);
}

/* What is known of each row from each part of its classes, if they are divided. */
static int64_t stats_numbers(const struct ghp_local *local)
{
    return local->parts * local->n * local->h * GHP_ROW_COUNT;
}

const struct ghp_op_facts ghp_op_facts_softmax_cross_entropy = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_ROWS,
    .shape = shape,
    .passes = {[GHP_PASS_STATS] = {GHP_AT_X | GHP_AT_LABELS, GHP_AT_STATS},
               [GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_LABELS | GHP_AT_STATS,
                                     GHP_AT_Y | GHP_AT_METRICS},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_LABELS | GHP_AT_STATS, GHP_AT_DX}},
    .stats_numbers = stats_numbers,
    .divides = divides,
    .pads = 1u << GHP_SPLIT_CHANNEL,
    .localize = localize,
    .key = key,
    .is_loss = true,
    .runs_once = true,
    .by_position = true,
    .fuses = GHP_FUSES_GRADIENT,
};
