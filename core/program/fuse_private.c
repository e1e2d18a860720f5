/* core/program/fuse_private.c - see fuse_private.h, and fuse.h for what a profile asks. */
#include "core/program/fuse_private.h"

/* The only reader of a layer's output; else -1. */
static int only_reader(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];

    return l->n_consumers == 1 ? model->edges[l->out_edges[0]].to : -1;
}

int ghp_fuse_reader(const struct ghp_model *model, int layer, unsigned what)
{
    int next = only_reader(model, layer);

    return next >= 0 && ghp_is_fused_as(model->layers[next].op, what) ? next : -1;
}

int ghp_fuse_pool(const struct ghp_model *model, int layer)
{
    int next = only_reader(model, layer);

    return next >= 0 && ghp_fuses(model->layers[next].op, GHP_FUSES_RELU_BEFORE) ? next : -1;
}

int ghp_fuse_masked(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *conv = &model->layers[layer], *relu;

    if (!ghp_fuses(conv->op, GHP_FUSES_MASK) || conv->n_inputs != 1) return -1;
    relu = &model->layers[conv->inputs[0]];
    return ghp_is_fused_as(relu->op, GHP_FUSES_RELU) &&
                   only_reader(model, conv->inputs[0]) == layer &&
                   !ghp_fuses(model->layers[relu->inputs[0]].op, GHP_FUSES_STATS)
               ? conv->inputs[0]
               : -1;
}

int ghp_fuse_summed(const struct ghp_model *model, int layer)
{
    bool after = ghp_fuses(model->layers[layer].op, GHP_FUSES_STATS);
    int conv = after ? model->layers[layer].inputs[0] : layer, norm = conv + 1;

    if (norm >= model->n_layers || !ghp_fuses(model->layers[conv].op, GHP_FUSES_SUMS) ||
        !ghp_fuses(model->layers[norm].op, GHP_FUSES_STATS) || only_reader(model, conv) != norm ||
        model->layers[norm].norm.ghost_batch > 0)
        return -1;
    return after ? conv : norm;
}

/* The addition of two tensors that a norm right after it takes. */
static int addition_of(const struct ghp_model *model, int taker)
{
    int before = model->layers[taker].inputs[0];

    return before == taker - 1 && ghp_is_fused_as(model->layers[before].op, GHP_FUSES_ADD) &&
                   model->layers[before].n_inputs == 2
               ? before
               : -1;
}

struct ghp_epilogue ghp_fuse_layers(const struct ghp_model *model, int taker,
                                    struct ghp_fuse_scope scope)
{
    struct ghp_epilogue found = ghp_fuses_nothing;
    enum ghp_op op = model->layers[taker].op;
    int last = taker;

    if (!ghp_fuses(op, GHP_FUSES_FORWARD) || (scope.fuses != NULL && !scope.fuses[op]))
        return ghp_fuses_nothing;
    if (ghp_fuses(op, GHP_FUSES_GRADIENT)) found.gradient = taker;
    if (ghp_fuses(op, GHP_FUSES_BIAS)) found.bias = ghp_fuse_reader(model, taker, GHP_FUSES_BIAS);
    if (ghp_fuses(op, GHP_FUSES_STATS) && scope.local_stats) {
        found.stats = taker;
        found.add = ghp_fuse_reader(model, taker, GHP_FUSES_ADD);
        if (found.add != taker + 1 || model->layers[found.add].n_inputs != 2) found.add = -1;
    }
    if (ghp_fuses(op, GHP_FUSES_ADD_BEFORE)) found.add = addition_of(model, taker);
    if (ghp_fuses(op, GHP_FUSES_SUMS | GHP_FUSES_STATS)) found.sums = ghp_fuse_summed(model, taker);
    if (found.bias >= 0) last = found.bias;
    if (found.add > taker) last = found.add;
    if (ghp_fuses(op, GHP_FUSES_RELU)) found.relu = ghp_fuse_reader(model, last, GHP_FUSES_RELU);
    return found;
}

static bool is_alike(const struct ghp_epilogue *x, const struct ghp_epilogue *y)
{
    return (x->bias >= 0) == (y->bias >= 0) && (x->relu >= 0) == (y->relu >= 0) &&
           (x->stats >= 0) == (y->stats >= 0) && (x->add >= 0) == (y->add >= 0) &&
           (x->sums >= 0) == (y->sums >= 0);
}

/* By Boyer and Moore's majority vote. */
struct ghp_epilogue ghp_fuse_usual(const struct ghp_model *model, int layer, enum ghp_pass pass,
                                   struct ghp_fuse_scope scope)
{
    const struct ghp_layer *l = &model->layers[layer];
    struct ghp_epilogue usual = ghp_fuse_layers(model, layer, scope);
    int votes = 0;

    if (ghp_fuses(l->op, GHP_FUSES_MASK) && pass != GHP_PASS_FORWARD) {
        usual = ghp_fuses_nothing;
        if (pass == GHP_PASS_BACKWARD_DATA && scope.masks)
            usual.relu = ghp_fuse_masked(model, layer);
        return usual;
    }
    if (!ghp_fuses(l->op, GHP_FUSES_STATS | GHP_FUSES_ADD_BEFORE)) return usual;
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *other = &model->layers[i];
        struct ghp_epilogue one;

        if (other->op != l->op || other->out.c != l->out.c || other->out.h != l->out.h ||
            other->out.w != l->out.w)
            continue;
        one = ghp_fuse_layers(model, i, scope);
        if (votes == 0) usual = one;
        votes += is_alike(&usual, &one) ? 1 : -1;
    }
    if (ghp_pass_is_backward(pass)) usual.sums = -1;
    return usual;
}

bool ghp_fuse_sum(const struct ghp_model *model, int edge)
{
    int from = model->edges[edge].from;
    const struct ghp_layer *l = &model->layers[from];

    return ghp_is_fused_as(l->op, GHP_FUSES_RELU) && l->n_consumers > 1 &&
           model->edges[edge].to == from + 1;
}

static bool is_summed(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *l = &model->layers[layer];
    bool found = false;

    for (int i = 0; i < l->n_consumers; i++)
        found = found || ghp_fuse_sum(model, l->out_edges[i]);
    return found;
}

/* Whether the convolution that reads a ReLU does its backward pass. */
static bool is_masked(const struct ghp_model *model, int layer)
{
    int next = only_reader(model, layer);

    return next >= 0 && ghp_fuse_masked(model, next) == layer;
}

static bool is_fused_away(const struct ghp_model *model, int layer, enum ghp_pass pass,
                          struct ghp_fuse_scope scope)
{
    const struct ghp_layer *l = &model->layers[layer];

    if (ghp_fuses(l->op, GHP_FUSES_STATS)) return scope.local_stats;
    if (ghp_fuses(l->op, GHP_FUSES_GRADIENT)) return scope.fuses == NULL || scope.fuses[l->op];
    /* by the batch norm before it, or the max pool or convolution after it; or its last reader's gradient is added just before */
    if (pass != GHP_PASS_FORWARD)
        return ghp_fuse_pool(model, layer) >= 0 ||
               (ghp_fuses(model->layers[l->inputs[0]].op, GHP_FUSES_STATS) &&
                ghp_fuse_reader(model, l->inputs[0], GHP_FUSES_RELU) == layer) ||
               is_summed(model, layer) || (scope.masks && is_masked(model, layer));
    for (int i = 0; i < model->n_layers; i++) {
        struct ghp_epilogue epilogue = ghp_fuse_layers(model, i, scope);

        if (epilogue.bias == layer || epilogue.relu == layer || epilogue.add == layer) return true;
    }
    return false;
}

/* Whether a pass of such layers can be another's work. */
static bool can_be_taken(enum ghp_op op, enum ghp_pass pass)
{
    bool forward = pass == GHP_PASS_FORWARD;

    if (ghp_fuses(op, GHP_FUSES_STATS))
        return pass == GHP_PASS_STATS || pass == GHP_PASS_BACKWARD_STATS;
    if (ghp_fuses(op, GHP_FUSES_GRADIENT)) return pass == GHP_PASS_BACKWARD_DATA;
    if (ghp_is_fused_as(op, GHP_FUSES_RELU)) return forward || pass == GHP_PASS_BACKWARD_DATA;
    return forward && (ghp_is_fused_as(op, GHP_FUSES_BIAS) || ghp_is_fused_as(op, GHP_FUSES_ADD));
}

bool ghp_fuse_always(const struct ghp_model *model, int layer, enum ghp_pass pass,
                     struct ghp_fuse_scope scope)
{
    const struct ghp_layer *l = &model->layers[layer];
    bool of_images = pass == GHP_PASS_FORWARD && !ghp_is_fused_as(l->op, GHP_FUSES_ADD);

    if (!can_be_taken(l->op, pass)) return false;
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *other = &model->layers[i];
        bool alike = other->op == l->op && other->out.h == l->out.h && other->out.w == l->out.w;

        alike = alike && (of_images || other->out.c == l->out.c);
        if (alike && !is_fused_away(model, i, pass, scope)) return false;
    }
    return true;
}
