/* core/model/op.c - see model/op.h: the registry, and what follows from an operation's facts. */
#include "core/model/op.h"

#include <string.h>

#define OP_DECLARE(id, name) extern const struct ghp_op_facts ghp_op_facts_##name;
GHP_OP_LIST(OP_DECLARE)
#undef OP_DECLARE

static const struct ghp_op_facts *const all[GHP_OP_COUNT] = {
#define OP_ENTRY(id, name) [GHP_OP_##id] = &ghp_op_facts_##name,
    GHP_OP_LIST(OP_ENTRY)
#undef OP_ENTRY
};

const struct ghp_op_facts *ghp_op_of(enum ghp_op op)
{
    GHP_ASSERT((int)op >= 0 && op < GHP_OP_COUNT);
    return all[op];
}

const struct ghp_op_facts *const *ghp_op_all(void)
{
    return all;
}

bool ghp_op_find(const char *name, enum ghp_op *op)
{
    for (int i = 0; i < GHP_OP_COUNT; i++) {
        if (strcmp(name, ghp_op_name((enum ghp_op)i)) != 0) continue;
        *op = (enum ghp_op)i;
        return true;
    }
    return false;
}

bool ghp_op_is_weighted(enum ghp_op op)
{
    return ghp_op_of(op)->is_weighted;
}

bool ghp_op_multiplies_weights(enum ghp_op op)
{
    return ghp_op_is_weighted(op) || op == GHP_OP_CONV_TRANSPOSE;
}

bool ghp_op_takes_ids(const struct ghp_op_facts *facts, int input)
{
    return facts->takes_ids || (facts->ids_input > 0 && input == facts->ids_input);
}

unsigned ghp_op_uses(enum ghp_op op, enum ghp_pass pass)
{
    const struct ghp_op_pass *p = &ghp_op_of(op)->passes[pass];

    return p->reads | p->writes;
}

bool ghp_op_has_pass(enum ghp_op op, enum ghp_pass pass)
{
    return ghp_op_uses(op, pass) != 0;
}

bool ghp_pass_is_backward(enum ghp_pass pass)
{
    return pass == GHP_PASS_BACKWARD_DATA || pass == GHP_PASS_BACKWARD_WEIGHT ||
           pass == GHP_PASS_BACKWARD_STATS;
}

unsigned ghp_op_backward_reads(enum ghp_op op)
{
    unsigned reads = 0;

    for (int pass = 0; pass < GHP_PASS_COUNT; pass++)
        if (ghp_pass_is_backward((enum ghp_pass)pass)) reads |= ghp_op_of(op)->passes[pass].reads;
    return reads;
}

bool ghp_op_needs_input(enum ghp_op op)
{
    return (ghp_op_backward_reads(op) & GHP_AT_X) != 0;
}

bool ghp_op_needs_output(enum ghp_op op)
{
    return (ghp_op_backward_reads(op) & GHP_AT_Y) != 0;
}

bool ghp_op_in_place(const struct ghp_layer *layer)
{
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);

    return facts->in_place != NULL && facts->in_place(layer->in);
}

/* ---- parameters ---- */

int ghp_local_param_dims(const struct ghp_local *local, const struct ghp_op_param *param,
                         int64_t dims[GHP_MAX_DIMS])
{
    int64_t groups = local->window.groups > 1 ? local->window.groups : 1;
    const int64_t sizes[] = {[GHP_DIM_OUT] = local->k,
                             [GHP_DIM_IN] = local->c / groups,
                             [GHP_DIM_GROUP] = local->k / groups,
                             [GHP_DIM_CHANNEL] = local->c,
                             [GHP_DIM_HEAD] = ghp_local_head(local),
                             [GHP_DIM_R] = local->window.r,
                             [GHP_DIM_S] = local->window.s,
                             [GHP_DIM_POSITION] = local->h,
                             [GHP_DIM_OFFSET] = (2 * local->tiles.h - 1) * (2 * local->tiles.w - 1),
                             [GHP_DIM_HEADS] = local->heads.n,
                             [GHP_DIM_ADDED] = local->p - local->h,
                             [GHP_DIM_HEIGHT] = local->p,
                             [GHP_DIM_WIDTH] = local->q,
                             [GHP_DIM_VOCABULARY] = local->vocabulary};
    int n = 0;

    for (; n < GHP_MAX_DIMS && param->dims[n] != GHP_DIM_NONE; n++) {
        if (param->dims[n] == GHP_DIM_HEIGHT && local->p * local->q == 1) break;
        dims[n] = sizes[param->dims[n]];
    }
    return n;
}

int64_t ghp_local_param_elements(const struct ghp_local *local, int param)
{
    int64_t dims[GHP_MAX_DIMS], elements = 1;
    int n = ghp_local_param_dims(local, &ghp_op_of(local->op)->params[param], dims);

    for (int i = 0; i < n; i++)
        elements *= dims[i];
    return elements;
}

int ghp_op_params(enum ghp_op op)
{
    int n = 0;

    while (ghp_op_of(op)->params[n].part != NULL)
        n++;
    return n;
}

struct ghp_label_outputs ghp_loss_label_outputs(const struct ghp_loss *loss)
{
    struct ghp_label_outputs outputs = {.n = loss->outputs};

    for (int i = 0; i < outputs.n; i++) {
        const struct ghp_loss_part *part = &loss->parts[i];
        bool numbers = part->op == GHP_OP_REGRESSION, each = numbers || part->multi_label;

        outputs.row += each ? part->channels : 1;
        outputs.end[i] = outputs.row;
        outputs.classes[i] = numbers                                    ? 0
                             : part->multi_label || part->channels == 1 ? 2
                                                                        : part->channels;
    }
    return outputs;
}

struct ghp_local ghp_local_output(const struct ghp_local *local, int output)
{
    const struct ghp_loss_part *part = &local->loss.parts[output];
    struct ghp_local one = *local;

    one.op = (enum ghp_op)part->op;
    one.c = one.k = part->channels;
    one.h = one.p = local->h * local->w;
    one.w = one.q = 1;
    one.loss.smoothing = part->op == GHP_OP_REGRESSION ? 0 : part->number;
    one.loss.multi_label = part->multi_label;
    one.loss.error = (enum ghp_error)part->error;
    one.loss.delta = part->number;
    one.loss.alone = output + 1;
    return one;
}

int64_t ghp_local_losses(const struct ghp_local *local)
{
    if (local->op == GHP_OP_LOSSES)
        return local->n * local->h * local->w * ghp_loss_label_outputs(&local->loss).row;
    if (ghp_op_of(local->op)->takes_numbers) return local->n * local->h * local->w * local->c;
    return local->n * local->h * (local->loss.multi_label ? local->c : 1);
}

int64_t ghp_local_labels(const struct ghp_local *local)
{
    bool shares = local->loss.outputs > 1 && !local->loss.own_labels;

    return ghp_local_losses(local) / (shares ? local->loss.outputs : 1);
}

int64_t ghp_local_weight_elements(const struct ghp_local *local)
{
    int64_t sum = 0;

    for (int p = 0; p < ghp_op_params(local->op); p++)
        sum += ghp_local_param_elements(local, p);
    return sum;
}

struct ghp_local ghp_local_whole(const struct ghp_layer *layer)
{
    return (struct ghp_local){.op = layer->op,
                              .n = 1,
                              .c = layer->in.c,
                              .h = layer->in.h,
                              .w = layer->in.w,
                              .k = layer->out.c,
                              .p = layer->out.h,
                              .q = layer->out.w,
                              .n_inputs = layer->n_inputs,
                              .vocabulary = layer->in.vocabulary,
                              .attributes = layer->attributes};
}

int64_t ghp_layer_flops(const struct ghp_layer *layer)
{
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);
    const struct ghp_local whole = ghp_local_whole(layer);

    return facts->flops != NULL ? facts->flops(&whole, GHP_PASS_FORWARD) : 0;
}
